"""Verifying one stream: its chain and what it names, kept bodies, every head that Temporal remembers, and the projection."""

import json
from typing import TYPE_CHECKING, Literal

from activities.ports import ResultStore
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.sql_verifying import Verification
from domain.chain import Entry
from domain.errors import NotFound, Tampered
from domain.evidence import Json, object_key
from domain.fingerprint import sha256_hex

if TYPE_CHECKING:
    from temporalio.client import Client


async def verified(
    ledger: SqlLedger,
    books: LedgerBooks,
    chain: Verification,
    *,
    results: ResultStore | None = None,
    client: "Client | None" = None,
    rebuild: bool = False,
) -> dict[str, Json]:
    """One item of `sakshi.verify/1`. `witnesses` is None where Temporal was not asked, `bodies` counts kept bodies that were read."""
    stream = chain.stream
    faults: list[tuple[int, str]] = [] if chain.fault is None else [(chain.fault.seq, chain.fault.what)]
    bodies: int | None = None
    if results is not None and not faults:
        bodies, wrong = await _bodies(ledger, stream, results)
        faults += wrong
    known: int | None = None
    if client is not None:
        from adapters.witnesses import missing, witnesses

        remembered = await witnesses(client, stream)
        known = len(remembered)
        lost = missing(remembered, await _entries(ledger, stream))
        faults += [(one.seq, f"Temporal remembers another entry here, or one more: {one.hash[:12]}") for one in lost]
    if rebuild and not faults:
        differences = await books.rebuild(stream)
        last = chain.entries - 1
        faults += [(last, f"the projection's {one.column} is not what the entries lead to") for one in differences]
    head: Json = None if chain.head is None else {"seq": chain.head.seq, "hash": chain.head.hash}
    return {
        "id": stream,
        "ok": not faults,
        "entries": chain.entries,
        "erased": chain.erased,
        "head": head,
        "witnesses": known,
        "bodies": bodies,
        "faults": [{"seq": seq, "what": what} for seq, what in faults],
    }


async def _bodies(ledger: SqlLedger, stream: str, results: ResultStore) -> tuple[int, list[tuple[int, str]]]:
    """How many kept bodies were read, and which are not what their entries say. Only a contract that keeps them has any."""
    opened = (await ledger.record(stream)).standing.opened
    # Of the contract as it was stored, which need not be one that this version still reads.
    match json.loads(await ledger.contract(opened.contract_digest)):
        case {"record": {"bodies": "keep"}}:
            pass
        case _:
            return 0, []
    first: dict[str, tuple[int, int]] = {}
    for entry in await ledger.entries(stream):
        match entry.body.get("http"):
            case {"body_kept": True, "body_sha256": str(digest), "body_bytes": int(size)}:
                first.setdefault(digest, (entry.seq, size))
            case _:
                pass
    faults: list[tuple[int, str]] = []
    for digest, (seq, size) in first.items():
        found = await kept_body(results, opened.tenant, stream, digest, size)
        if isinstance(found, str):
            faults.append((seq, f"the kept body {digest[:12]} is {found}"))
    return len(first), faults


async def kept_body(results: ResultStore, tenant: str, stream: str, digest: str, size: int) -> bytes | Literal["missing", "altered"]:
    """The raw body of an answer, as its entry says that it is."""
    data = bytearray()
    try:
        async for chunk in results.read(object_key(tenant, stream, digest)):
            data += chunk
            if len(data) > size:
                return "altered"
    except NotFound:
        return "missing"
    return bytes(data) if sha256_hex(bytes(data)) == digest else "altered"


async def _entries(ledger: SqlLedger, stream: str) -> list[Entry]:
    try:
        return await ledger.entries(stream)
    except (NotFound, Tampered):
        return []
