"""Verifying one stream: its chain and what it names, every head that Temporal remembers, and the projection."""

from typing import TYPE_CHECKING

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.sql_verifying import Verification
from domain.chain import Entry
from domain.errors import NotFound, Tampered
from domain.evidence import Json

if TYPE_CHECKING:
    from temporalio.client import Client


async def verified(
    ledger: SqlLedger, books: LedgerBooks, chain: Verification, *, client: "Client | None" = None, rebuild: bool = False
) -> dict[str, Json]:
    """One item of `sakshi.verify/1`. `witnesses` is None where Temporal was not asked."""
    stream = chain.stream
    faults: list[tuple[int, str]] = [] if chain.fault is None else [(chain.fault.seq, chain.fault.what)]
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
        "faults": [{"seq": seq, "what": what} for seq, what in faults],
    }


async def _entries(ledger: SqlLedger, stream: str) -> list[Entry]:
    try:
        return await ledger.entries(stream)
    except (NotFound, Tampered):
        return []
