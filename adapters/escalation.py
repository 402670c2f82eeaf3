"""One folder, and a zip of it, that shows the support of a provider what happened, without asking us.

* Everything comes from the ledger and the result store. Entries hold no secret; a credential is named by its account only.
* Raw bodies are handed out only where the contract keeps them, each against its recorded SHA-256: what is missing or altered is
  said and not written.
* Names on disk are ours. Files are written as `adapters/output_folder.py` says; `manifest.json`, with the SHA-256 of each, is last.
* The same record gives the same files, but for the time at which they were made.
"""

import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, cast

from activities.ports import Ledger, Record, ResultStore
from adapters.output_folder import MANIFEST, OutputFolder
from adapters.showing.dossier import FAILED_ITEMS, MOST_ITEMS, Dossier, Sending
from adapters.showing.exchanges import Shown, bodies_of, exchanges_of, request_ids
from adapters.showing.markdown import code
from adapters.showing.story import timeline
from adapters.showing.support import readme
from adapters.sql_books import LedgerBooks
from adapters.verifying import kept_body
from domain.chain import Entry
from domain.contract import Contract
from domain.errors import BadContract, BadInput, NotFound, Tampered, Unloadable, fault_of
from domain.evidence import Json, instant_text
from domain.fingerprint import mark, token_digest
from domain.language.loading import contract_from_canonical
from domain.needs import CONTRACT

BODIES = "bodies"
_BODY = re.compile(r"[0-9a-f]{64}\.bin")
_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Escalated:
    """What was written. `faults`: what does not verify, in words; it is written all the same."""

    folder: Path
    zip: Path
    files: tuple[str, ...]
    faults: tuple[str, ...]


async def dossier_of(ledger: Ledger, books: LedgerBooks, stream: str, at: datetime) -> Dossier:
    """All that the record says of an operation. Raises UnknownStream, Unloadable."""
    record = await ledger.record(stream)
    entries = await ledger.entries(stream)
    verification = await books.verify(stream)
    contract = await _contract(ledger, record)
    fault = None if verification.fault is None else f"entry {verification.fault.seq}: {verification.fault.what}"
    return Dossier(
        made_at=at,
        ledger_id=ledger.ledger_id,
        record=record,
        entries=entries,
        contract=contract,
        exchanges=exchanges_of(entries),
        sendings=await _sendings(ledger, record, contract, entries),
        fault=fault,
    )


async def _contract(ledger: Ledger, record: Record) -> Contract:
    """The contract, by which everything on the pages is read."""
    digest = record.standing.opened.contract_digest
    hint = f"no page can be made without it; python starter.py evidence {record.stream} --json has every entry"
    try:
        return contract_from_canonical(await ledger.contract(digest))
    except (NotFound, Tampered, BadContract) as error:
        raise Unloadable(CONTRACT, fault_of(error), digest=digest, hint=hint) from None


async def _sendings(ledger: Ledger, record: Record, contract: Contract, entries: list[Entry]) -> tuple[Sending, ...]:
    """What the provider can find each generation by: the token, and the mark where the contract plants it."""
    opened = record.standing.opened
    try:
        salt = await ledger.payload(opened.salt.digest)
    except (NotFound, Tampered):  # erased, and with it all that was made from it; or not to be relied on
        salt = None
    names = {"ledger_id": ledger.ledger_id, "operation": record.stream, "fingerprint": opened.fingerprint}
    planted = "${mark}" in json.dumps(contract.create.request.model_dump(mode="json"))
    made: dict[int, Sending] = {}
    for entry in (one for one in entries if one.cause == "intent.create"):
        number = cast("int", entry.body.get("generation", 1))
        if number in made:
            made[number] = replace(made[number], last=entry.at)
            continue
        token = None if salt is None else _token(contract, token_digest(salt, generation=number, **names))
        made[number] = Sending(number, entry.at, entry.at, token, mark(salt, generation=number, **names) if salt and planted else None)
    return tuple(made.values())


def _token(contract: Contract, digest: bytes) -> str | None:
    token = contract.create.token
    if token is None or token.source:
        return None
    return token.shaped(digest)


async def escalate(dossier: Dossier, results: ResultStore, directory: Path, *, force: bool = False) -> Escalated:
    """Write the folder and the zip beside it. Raises BadInput where it can't be written, or is there already."""
    place = _place(directory)
    with ExitStack() as stack:
        beside = stack.enter_context(OutputFolder(place.parent))
        folder = stack.enter_context(beside.below(place.name))
        bodies = stack.enter_context(folder.below(BODIES)) if _any_bodies(dossier, folder) else None
        zipped = f"{place.name}.zip"
        if not force:
            beside.refuse_existing([zipped])
            folder.refuse_existing(["README.md", "timeline.md", "exchanges.json", "chain.jsonl", FAILED_ITEMS, MANIFEST])
        packing = _Packing(dossier.made_at, stack.enter_context(tempfile.TemporaryFile()))
        faults = await _write_bodies(dossier, results, bodies, packing)
        faults += await _write_items(dossier, results, folder, packing)
        for name, text in _texts(dossier, faults).items():
            await packing.add(folder, name, text)
        await folder.write_whole(MANIFEST, packing.manifest(dossier))
        packing.close_with(MANIFEST, packing.manifest(dossier))
        await beside.write(zipped, _chunks(packing.file))
        if bodies is not None:
            _forget_others(bodies, packing)
            bodies.name_all(force=force)
        folder.name_all(force=force)
        beside.name_all(force=force)
        record_fault = () if dossier.fault is None else (dossier.fault,)
        return Escalated(place, place.with_name(zipped), (*packing.digests, MANIFEST), (*record_fault, *faults))


def _place(directory: Path) -> Path:
    """The folder's own name is never followed as a link; the folders above it are where they lead to."""
    if directory.name in {"", ".", ".."}:
        raise BadInput(f"{directory} is no name for a folder with a zip beside it", hint="--output escalation-of-ID")
    return directory.absolute().parent.resolve() / directory.name


def _any_bodies(dossier: Dossier, folder: OutputFolder) -> bool:
    return any(True for _ in bodies_of(dossier.exchanges)) or BODIES in folder.names()


def _forget_others(bodies: OutputFolder, packing: "_Packing") -> None:
    """Bodies of an earlier escalation into the same folder, which this one does not speak of."""
    for name in bodies.names():
        if _BODY.fullmatch(name) and f"{BODIES}/{name}" not in packing.digests:
            bodies.remove(name)


async def _write_bodies(dossier: Dossier, results: ResultStore, bodies: OutputFolder | None, packing: "_Packing") -> list[str]:
    """Write each kept body once, and note in its descriptions where it is. What is not as recorded is told."""
    opened = dossier.record.standing.opened
    fates: dict[str, str] = {}
    faults: list[str] = []
    for body in bodies_of(dossier.exchanges):
        digest = str(body["sha256"])
        if digest not in fates:
            data = await kept_body(results, opened.tenant, dossier.record.stream, digest, cast("int", body["bytes"]))
            if isinstance(data, str):
                fates[digest] = data
                faults.append(f"the kept body {digest[:12]} is {data}")
            else:
                fates[digest] = ""
                assert bodies is not None
                await packing.add(bodies, f"{digest}.bin", data, below=f"{BODIES}/")
        body["file"] = f"{BODIES}/{digest}.bin" if not fates[digest] else None
        body["fate"] = fates[digest] or "written"
    return faults


async def _write_items(dossier: Dossier, results: ResultStore, folder: OutputFolder, packing: "_Packing") -> list[str]:
    """Write the list of the items that did not succeed, if there is one and it is not too long to be sent around."""
    listed = dossier.standing.failed_items
    if listed is None or listed.size > MOST_ITEMS:
        return []
    opened = dossier.standing.opened
    data = await kept_body(results, opened.tenant, dossier.record.stream, listed.sha256, listed.size)
    if isinstance(data, str):
        return [f"the list of items is {data}"]
    await packing.add(folder, FAILED_ITEMS, data)
    return []


def _texts(dossier: Dossier, faults: list[str]) -> Mapping[str, bytes]:
    """Every file but bodies and manifest."""
    lines = [json.dumps({"seq": entry.seq, "prev": entry.prev, "hash": entry.hash, "raw": entry.raw.decode()}) for entry in dossier.entries]
    title = f"# Timeline of {code(dossier.record.stream)}\n\nTimes are UTC. `exchanges.json` has each request with its answer.\n\n"
    return {
        "README.md": readme(dossier, faults).encode(),
        "timeline.md": f"{title}{timeline(dossier.entries)}\n".encode(),
        "exchanges.json": _json(_exchanges(dossier)),
        "chain.jsonl": "".join(f"{line}\n" for line in lines).encode(),
    }


def _exchanges(dossier: Dossier) -> Shown:
    standing = dossier.record.standing
    return {
        "schema": "sakshi.exchanges/1",
        "operation": dossier.record.stream,
        "trace_id": standing.opened.trace_id,
        "trace_header": dossier.contract.http.trace_header,
        "remote_job": standing.job,
        "sent": [one.shape() for one in dossier.sendings],
        "provider_request_ids": request_ids(dossier.exchanges),
        "exchanges": cast("list[Json]", dossier.exchanges),
    }


def _json(value: Mapping[str, Json]) -> bytes:
    """Printable ASCII: what a provider wrote is shown, and acts on nothing."""
    return json.dumps(value, indent=2, ensure_ascii=True).encode("ascii") + b"\n"


@dataclass
class _Packing:
    """The zip while it is filled, and the digests of all that went into folder and zip."""

    made_at: datetime
    file: IO[bytes]
    digests: dict[str, Shown] = field(default_factory=dict[str, Shown])

    def __post_init__(self) -> None:
        self._zip = zipfile.ZipFile(self.file, "w", zipfile.ZIP_DEFLATED)

    async def add(self, folder: OutputFolder, name: str, data: bytes, *, below: str = "") -> None:
        await folder.write_whole(name, data)
        self.digests[f"{below}{name}"] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        self._put(f"{below}{name}", data)

    def manifest(self, dossier: Dossier) -> bytes:
        head = {"seq": dossier.record.seq, "hash": dossier.record.hash}
        told = {"whole": dossier.fault is None, "fault": dossier.fault}
        return _json(
            {
                "schema": "sakshi.escalation/1", "operation": dossier.record.stream, "ledger_id": dossier.ledger_id,
                "made_at": instant_text(self.made_at), "head": cast("Json", head), "chain": cast("Json", told),
                "files": cast("Json", dict(sorted(self.digests.items()))),
            }
        )  # fmt: skip

    def close_with(self, name: str, data: bytes) -> None:
        self._put(name, data)
        self._zip.close()
        self.file.seek(0)

    def _put(self, name: str, data: bytes) -> None:
        info = zipfile.ZipInfo(name, self.made_at.timetuple()[:6])
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o100600 << 16
        self._zip.writestr(info, data)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
