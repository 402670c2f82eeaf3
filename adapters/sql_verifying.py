"""Whether a stream is what was written, and whether its row is what its entries lead to. Plain functions of a connection.

1. The chain: every entry's bytes, hash, link and columns, up to the witness if there is one.
2. The row: its head is the last entry.
3. The contract that entry 0 names is kept, and is that.
4. Every payload that an entry names is kept under the stream and is that, or was erased by an entry that says so.
The first fault, in this order, is reported with the entry it is found at. Entries are read as they come, never all at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection, bindparam, insert, select, union, update

from adapters.sql_projection import Columns, columns_of, plain, unknown_stream
from adapters.sql_tables import contracts, entries, payloads, streams
from domain.chain import Fault, Stored, read_entry, verify_chain
from domain.errors import Tampered
from domain.evidence import Commitment, Erased, Evidence, Opened, Pruned, Ref, RequestFacts, parse_evidence
from domain.fingerprint import sha256_hex
from domain.folding import apply, opened_standing
from domain.messages import Known
from domain.standing import Standing

PIECE = 200
UNREADABLE = "is no evidence that this version knows"

_ROWS = (
    select(entries.c.seq, entries.c.prev, entries.c.hash, entries.c.at, entries.c.actor, entries.c.kind, entries.c.body)
    .where(entries.c.stream == bindparam("stream"))
    .order_by(entries.c.seq)
    .execution_options(yield_per=PIECE)
)
_HEAD = select(streams.c.seq, streams.c.head).where(streams.c.stream == bindparam("stream"))
_ROW = select(streams).where(streams.c.stream == bindparam("stream")).with_for_update()
_CONTRACT = select(contracts.c.body).where(contracts.c.digest == bindparam("digest"))
_KEPT = (
    select(payloads.c.digest, payloads.c.bytes)
    .where(payloads.c.stream == bindparam("stream"))
    .order_by(payloads.c.digest)
    .execution_options(yield_per=PIECE)
)
_REPAIR = update(streams).where(streams.c.stream == bindparam("of"))


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying one stream came to. `erased`: payloads whose bytes were taken away, on the record."""

    stream: str
    ok: bool
    fault: Fault | None
    entries: int
    head: Known | None
    erased: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """One column that is not what the entries lead to. Both as text; `stored` is None where there is no row, or no value."""

    column: str
    stored: str | None
    rebuilt: str | None


@dataclass(slots=True)
class _Walk:
    """What is gathered from entries while the chain is verified over them. Believed only if the chain holds."""

    count: int = 0
    last: Stored | None = None
    unreadable: int | None = None
    contract: str | None = None
    named: dict[str, int] = field(default_factory=dict[str, int])
    erased: set[str] = field(default_factory=set[str])

    def over(self, rows: Iterator[Stored]) -> Iterator[Stored]:
        for row in rows:
            self.count, self.last = self.count + 1, row
            evidence = _evidence(row)
            if evidence is None:
                self.unreadable = row.seq if self.unreadable is None else self.unreadable
            else:
                self._gather(row.seq, evidence)
            yield row

    def _gather(self, seq: int, evidence: Evidence) -> None:
        for digest in references(evidence):
            self.named.setdefault(digest, seq)
        match evidence:
            case Opened(contract_digest=digest) if seq == 0:
                self.contract = digest
            case Erased(refs=refs) | Pruned(refs=refs):
                self.erased |= set(refs)
            case _:
                pass


def streams_of(connection: Connection) -> list[str]:
    """The ids of all streams, those included of which only entries or only a row are left."""
    ids = union(select(streams.c.stream), select(entries.c.stream)).subquery()
    return list(connection.execute(select(ids.c.stream).order_by(ids.c.stream)).scalars())


def verify(connection: Connection, ledger_id: str, stream: str, known: Known | None = None) -> Verification:
    """The first fault of a stream, or none. Raises UnknownStream if nothing of it is there and nobody knows of it."""
    walk = _Walk()
    head = None if known is None else (known.seq, known.hash)
    fault = verify_chain(ledger_id, stream, walk.over(_stored(connection, stream)), head=head)
    row = connection.execute(_HEAD, {"stream": plain(stream)}).first()
    if walk.last is None and row is None and known is None:
        raise unknown_stream()
    if fault is None and walk.unreadable is not None:
        fault = Fault(walk.unreadable, UNREADABLE)
    if fault is None and walk.last is not None:
        fault = _projection_fault(walk.last, row) or _contract_fault(connection, walk.contract)
    erased, payload_fault = _payloads_fault(connection, stream, walk) if fault is None else (0, None)
    fault = fault or payload_fault
    last = None if walk.last is None else Known(seq=walk.last.seq, hash=walk.last.hash)
    return Verification(stream, fault is None, fault, walk.count, last, erased)


def rebuild(connection: Connection, ledger_id: str, stream: str, *, repair: bool = False) -> list[Difference]:
    """Fold the entries anew and compare with the stored row; `repair` writes what they lead to.

    Raises UnknownStream; Tampered if the chain does not hold, since nothing may be built from it.
    """
    found = connection.execute(_ROW, {"stream": plain(stream)}).mappings().first()
    walk = _Walk()
    fold: list[Standing] = []
    fault = verify_chain(ledger_id, stream, _folded(walk.over(_stored(connection, stream)), fold))
    if walk.last is None and found is None:
        raise unknown_stream()
    if fault is not None or walk.last is None or walk.unreadable is not None:
        at, what = (fault.seq, fault.what) if fault else (walk.unreadable or 0, UNREADABLE)
        raise Tampered(f"{stream}, entry {at}: {what}", hint="a row is rebuilt only from a chain that holds")
    rebuilt = columns_of(stream, fold[0], seq=walk.last.seq, head=walk.last.hash, updated_at=walk.last.at)
    stored = {} if found is None else {str(name): value for name, value in found.items()}
    differences = [
        Difference(name, _shown(stored.get(name)), _shown(value)) for name, value in rebuilt.items() if not found or stored[name] != value
    ]
    if repair and differences:
        _repair(connection, stream, rebuilt, there=found is not None)
    return differences


def references(evidence: BaseModel) -> Iterator[str]:
    """Digests of all payloads that evidence names, wherever they stand in it."""
    for value in dict(evidence).values():
        match value:
            case Ref(digest=digest):
                yield digest
            case Commitment(ref=digest) | RequestFacts(ref=digest):
                yield digest
            case BaseModel():
                yield from references(value)
            case tuple():
                yield from (digest for item in value if isinstance(item, BaseModel) for digest in references(item))  # pyright: ignore[reportUnknownVariableType]
            case _:
                pass


def _stored(connection: Connection, stream: str) -> Iterator[Stored]:
    for seq, prev, digest, at, actor, kind, body in connection.execute(_ROWS, {"stream": plain(stream)}):
        yield Stored(seq, prev, digest, at, actor, kind, _bytes(body))


def _bytes(stored: object) -> bytes:
    """What a column of bytes holds. Whoever tampers with SQLite may leave a value of any other type there."""
    if isinstance(stored, bytes | bytearray | memoryview):
        return bytes(cast("bytes", stored))
    return str(stored).encode("utf-8", "surrogatepass")


def _evidence(row: Stored) -> Evidence | None:
    try:
        entry = read_entry(prev=row.prev, hash=row.hash, raw=row.raw)
        return parse_evidence(at=entry.at, actor=entry.actor, kind=entry.kind, body=entry.body)
    except (ValueError, KeyError, TypeError, ValidationError):
        return None


def _folded(rows: Iterator[Stored], fold: list[Standing]) -> Iterator[Stored]:
    """Rows as they come, and in `fold` the standing after the newest that `verify_chain` has passed."""
    for row in rows:
        yield row
        # Reached only when the next row is asked for: this one has held.
        evidence = _evidence(row)
        if evidence is None:
            continue
        if row.seq == 0 and isinstance(evidence, Opened):
            fold[:] = [opened_standing(evidence)]
        elif fold:
            fold[0] = apply(fold[0], read_entry(prev=row.prev, hash=row.hash, raw=row.raw))


def _projection_fault(last: Stored, row: object) -> Fault | None:
    if row is None:
        return Fault(last.seq, "the stream's row is missing; its entries can rebuild it")
    seq, head = row  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    if seq > last.seq:
        return Fault(last.seq + 1, f"entries are missing: the stream's row knows of entry {seq}")
    if (seq, head) != (last.seq, last.hash):
        return Fault(last.seq, "the stream's row names another head than the last entry")
    return None


def _contract_fault(connection: Connection, digest: str | None) -> Fault | None:
    if digest is None:
        return Fault(0, "entry 0 does not open the stream")
    body = connection.execute(_CONTRACT, {"digest": digest}).scalar()
    if body is None:
        return Fault(0, "the contract that it names is missing")
    return None if sha256_hex(_bytes(body)) == digest else Fault(0, "the contract that it names is not what was stored")


def _payloads_fault(connection: Connection, stream: str, walk: _Walk) -> tuple[int, Fault | None]:
    missing = dict(walk.named)
    erased, faults = 0, list[Fault]()
    for digest, data in connection.execute(_KEPT, {"stream": plain(stream)}):
        seq = missing.pop(digest, None)
        if data is None:
            erased += 1
            if digest not in walk.erased:
                faults.append(Fault(seq or 0, f"payload {digest[:12]} was erased, and no entry says so"))
        elif sha256_hex(_bytes(data)) != digest:
            faults.append(Fault(seq or 0, f"payload {digest[:12]} is not what was stored"))
    faults.extend(Fault(seq, f"payload {digest[:12]} is missing") for digest, seq in missing.items())
    return erased, min(faults, key=lambda fault: fault.seq, default=None)


def _repair(connection: Connection, stream: str, rebuilt: Columns, *, there: bool) -> None:
    if there:
        connection.execute(_REPAIR, {"of": stream, **{name: value for name, value in rebuilt.items() if name != "stream"}})
    else:
        connection.execute(insert(streams), rebuilt)


def _shown(value: object) -> str | None:
    return None if value is None else str(value)
