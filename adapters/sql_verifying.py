"""Whether a stream is what was written, and whether its row is what its entries lead to. Plain functions of a connection.

1. The chain: every entry's bytes, hash, link and columns, up to the witness if there is one.
2. The row: its head is the last entry.
3. The contract that entry 0 names is kept, and is that.
4. Every payload that an entry names is kept under the stream and is that, or was erased by an entry that says so.
The first fault, in this order, is reported with the entry it is found at. Entries are read as they come, never all at once.
A column of SQLite may hold a value of any type, and text that is no text: that is a fault like any other, never an error.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar, cast

from pydantic import BaseModel
from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, insert, select, true, update
from sqlalchemy.exc import OperationalError

from adapters.sql_projection import Columns, columns_of, plain, unknown_stream
from adapters.sql_tables import contracts, entries, payloads, streams
from domain.chain import read_entry
from domain.chain_verifying import Fault, Stored, verify_chain
from domain.errors import Tampered
from domain.evidence import Opened
from domain.fingerprint import sha256_hex
from domain.folding import apply, opened_standing
from domain.messages import Known
from domain.references import references
from domain.standing import Standing

T = TypeVar("T")
PIECE = 1000
AT_ONCE = 100
"""Streams that share their statements, and one consistent state of the ledger."""
UNREADABLE = "is no evidence that this version knows"
UNOPENED = "does not open the stream"

_Heads = dict[str, tuple[int, str]]
_Which = Callable[[ColumnElement[str]], ColumnElement[bool]]
_FIRST = itemgetter(0)


_ROWS = (
    select(entries.c.stream, entries.c.seq, entries.c.prev, entries.c.hash, entries.c.at, entries.c.actor, entries.c.kind, entries.c.body)
    .order_by(entries.c.stream, entries.c.seq)
    .execution_options(yield_per=PIECE)
)
_HEADS = select(streams.c.stream, streams.c.seq, streams.c.head).order_by(streams.c.stream)
_ROW = select(streams).where(streams.c.stream == bindparam("stream")).with_for_update()
_CONTRACT = select(contracts.c.body).where(contracts.c.digest == bindparam("digest"))
_KEPT = select(payloads.c.stream, payloads.c.digest, payloads.c.bytes).order_by(payloads.c.stream).execution_options(yield_per=PIECE)
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
    """What is gathered from one stream's entries while the chain is verified over them."""

    count: int = 0
    last: Stored | None = None
    fault: Fault | None = None
    unreadable: int | None = None
    contract: str | None = None
    named: dict[str, int] = field(default_factory=dict[str, int])
    erased: set[str] = field(default_factory=set[str])
    gone: int = 0

    def over(self, rows: Iterable[Sequence[Any]]) -> Iterator[Stored]:
        for row in rows:
            stored = Stored._make(row[1:])
            if type(stored.raw) is not bytes:
                stored = stored._replace(raw=_bytes(stored.raw))
            self.count += 1
            self.last = stored
            yield stored

    def heard(self, seq: int, kind: str, evidence: BaseModel | None) -> None:
        if evidence is None:
            self.unreadable = seq if self.unreadable is None else self.unreadable
            return
        for digest in references(evidence):
            self.named.setdefault(digest, seq)
        if kind == "opened" and seq == 0:
            self.contract = getattr(evidence, "contract_digest", None)
        elif kind in {"erased", "pruned"}:
            self.erased |= set(cast("tuple[str, ...]", getattr(evidence, "refs", ())))

    def paid(self, kept: Iterable[tuple[str, object]]) -> Fault | None:
        """The first fault of the payloads that are kept, held against those that are named."""
        missing = dict(self.named)
        faults = dict[str, Fault]()
        for digest, data in kept:
            seq = missing.pop(digest, None)
            if data is None:
                self.gone += 1
                if digest not in self.erased:
                    faults[digest] = Fault(seq or 0, f"payload {_name(digest)[:12]} was erased, and no entry says so")
            elif sha256_hex(data if type(data) is bytes else _bytes(data)) != digest:
                faults[digest] = Fault(seq or 0, f"payload {_name(digest)[:12]} is not what was stored")
        lost = [Fault(seq, f"payload {digest[:12]} is missing") for digest, seq in missing.items()]
        return min([*(fault for _, fault in sorted(faults.items(), key=_as_text)), *lost], key=lambda fault: fault.seq, default=None)


def verify(connection: Connection, ledger_id: str, stream: str, known: Known | None = None) -> Verification:
    """The first fault of a stream, or none. Raises UnknownStream if nothing of it is there and nobody knows of it."""
    return _tolerant(connection, lambda: _verify(connection, ledger_id, str(plain(stream)), known))


def _verify(connection: Connection, ledger_id: str, name: str, known: Known | None) -> Verification:
    heads = _heads(connection, _HEADS.where(streams.c.stream == name))
    walks = _walk(connection, ledger_id, lambda column: column == name, {name: _Walk()}, known)
    if walks[name].last is None and not heads and known is None:
        raise unknown_stream()
    return _verified(connection, lambda column: column == name, walks, heads)[0]


def verify_next(connection: Connection, ledger_id: str, after: str | None) -> tuple[list[Verification], str | None]:
    """Streams in the order of their ids, from the one after `after`, and how far that went; None: to the end.

    Pages leave no gap between them: entries whose row is gone fall into one, and are found.
    """
    return _tolerant(connection, lambda: _verify_next(connection, ledger_id, after))


def _verify_next(connection: Connection, ledger_id: str, after: str | None) -> tuple[list[Verification], str | None]:
    above = true() if after is None else streams.c.stream > after
    heads = _heads(connection, _HEADS.where(above).limit(AT_ONCE))
    last = next(reversed(heads)) if len(heads) == AT_ONCE else None

    def page(column: ColumnElement[str]) -> ColumnElement[bool]:
        return and_(true() if after is None else column > after, true() if last is None else column <= last)

    walks = _walk(connection, ledger_id, page, {stream: _Walk() for stream in heads}, None)
    return _verified(connection, page, dict(sorted(walks.items(), key=_FIRST)), heads), last


def _heads(connection: Connection, query: "Select[Any, Any, Any]") -> _Heads:
    rows = cast("Iterable[tuple[str, int, str]]", connection.execute(query))
    return {_name(stream): (seq, digest) for stream, seq, digest in rows}


def _walk(connection: Connection, ledger_id: str, which: _Which, walks: dict[str, _Walk], known: Known | None) -> dict[str, _Walk]:
    """Verify the chains of these streams; `known` is of each of them."""
    head = None if known is None else (known.seq, known.hash)
    for stream, rows in groupby(connection.execute(_ROWS.where(which(entries.c.stream))), key=_FIRST):
        walk = walks.setdefault(_name(stream), _Walk())
        walk.fault = verify_chain(ledger_id, _name(stream), walk.over(rows), head=head, heard=walk.heard)
    return walks


def _verified(connection: Connection, which: _Which, walks: Mapping[str, _Walk], heads: _Heads) -> list[Verification]:
    """Hold what the entries say against rows, contracts and payloads."""
    contracts_seen: dict[str | None, Fault | None] = {None: Fault(0, f"entry 0 {UNOPENED}")}
    for stream, walk in walks.items():
        if walk.last is None:
            walk.fault = Fault(0, "the stream has no entries")
        elif walk.fault is None and walk.unreadable is not None:
            walk.fault = Fault(walk.unreadable, UNREADABLE)
        elif walk.fault is None:
            if walk.contract not in contracts_seen:
                contracts_seen[walk.contract] = _contract_fault(connection, str(walk.contract))
            walk.fault = _projection_fault(walk.last, heads.get(stream)) or contracts_seen[walk.contract]
    whole = {stream: walk for stream, walk in walks.items() if walk.fault is None}
    for stream, rows in groupby(connection.execute(_KEPT.where(which(payloads.c.stream))), key=_FIRST):
        if (walk := whole.pop(stream, None)) is not None:
            walk.fault = walk.paid((digest, data) for _, digest, data in rows)
    for walk in whole.values():
        walk.fault = walk.paid(())
    return [_verification(stream, walk) for stream, walk in walks.items()]


def _verification(stream: str, walk: _Walk) -> Verification:
    last: Known | None = None
    if walk.last is not None and type(walk.last.seq) is int and type(walk.last.hash) is str:
        last = Known(seq=walk.last.seq, hash=walk.last.hash)
    return Verification(stream, walk.fault is None, walk.fault, walk.count, last, walk.gone)


def rebuild(connection: Connection, ledger_id: str, stream: str, *, repair: bool = False) -> list[Difference]:
    """Fold the entries anew and compare with the stored row; `repair` writes what they lead to.

    Raises UnknownStream; Tampered if the chain does not hold, since nothing may be built from it.
    """
    return _tolerant(connection, lambda: _rebuild(connection, ledger_id, stream, repair=repair))


def _rebuild(connection: Connection, ledger_id: str, stream: str, *, repair: bool) -> list[Difference]:
    found = connection.execute(_ROW, {"stream": plain(stream)}).mappings().first()
    walk = _Walk()
    fold: list[Standing] = []
    rows = connection.execute(_ROWS.where(entries.c.stream == plain(stream)))
    fault = verify_chain(ledger_id, stream, _folded(walk, rows, fold), heard=walk.heard)
    if walk.last is None and found is None:
        raise unknown_stream()
    if fault is not None or walk.last is None or walk.unreadable is not None or not fold:
        unread = (walk.unreadable, UNREADABLE) if walk.unreadable is not None else (0, UNOPENED)
        at, what = (fault.seq, fault.what) if fault else unread
        raise Tampered(f"{stream}, entry {at}: {what}", hint="a row is rebuilt only from a chain that holds")
    rebuilt = columns_of(stream, fold[0], seq=walk.last.seq, head=walk.last.hash, updated_at=walk.last.at)
    stored = {} if found is None else {str(name): value for name, value in found.items()}
    differences = [
        Difference(name, _shown(stored.get(name)), _shown(value)) for name, value in rebuilt.items() if not found or stored[name] != value
    ]
    if repair and differences:
        _repair(connection, stream, rebuilt, there=found is not None)
    return differences


def _tolerant(connection: Connection, body: Callable[[], T]) -> T:
    """Run `body`; once more, with text read as it may be, where the driver finds text that is none."""
    try:
        return body()
    except OperationalError as error:
        driver = connection.connection.driver_connection
        if not isinstance(driver, sqlite3.Connection) or "decode" not in str(error.orig):
            raise
        before = driver.text_factory
        driver.text_factory = _as_it_may_be
        try:
            return body()
        finally:
            driver.text_factory = before


def _as_it_may_be(stored: bytes) -> str:
    return stored.decode("utf-8", "backslashreplace")


def _name(stored: object) -> str:
    return stored if isinstance(stored, str) else str(stored)


def _as_text(one: tuple[object, object]) -> str:
    return _name(one[0])


def _bytes(stored: object) -> bytes:
    """What a column of bytes holds. Whoever tampers with SQLite may leave a value of any other type there."""
    if isinstance(stored, bytes | bytearray | memoryview):
        return bytes(cast("bytes", stored))
    return str(stored).encode("utf-8", "surrogatepass")


def _folded(walk: _Walk, rows: Iterable[Sequence[Any]], fold: list[Standing]) -> Iterator[Stored]:
    """Rows as they come, and in `fold` the standing after the newest that `verify_chain` has passed."""
    for row in walk.over(rows):
        yield row
        # Reached only when the next row is asked for: this one has held, and the walk has heard whether its evidence is known.
        if walk.unreadable is not None:
            continue
        entry = read_entry(prev=row.prev, hash=row.hash, raw=row.raw)
        if fold:
            fold[0] = apply(fold[0], entry)
        elif row.seq == 0 and isinstance(evidence := entry.evidence, Opened):
            fold.append(opened_standing(evidence))


def _projection_fault(last: Stored, row: object) -> Fault | None:
    if row is None:
        return Fault(last.seq, "the stream's row is missing; its entries can rebuild it")
    seq, head = row  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    if type(seq) is int and seq > last.seq:  # pyright: ignore[reportUnknownArgumentType]
        return Fault(last.seq + 1, f"entries are missing: the stream's row knows of entry {seq}")
    if (seq, head) != (last.seq, last.hash):
        return Fault(last.seq, "the stream's row names another head than the last entry")
    return None


def _contract_fault(connection: Connection, digest: str) -> Fault | None:
    body = connection.execute(_CONTRACT, {"digest": digest}).scalar()
    if body is None:
        return Fault(0, "the contract that it names is missing")
    return None if sha256_hex(_bytes(body)) == digest else Fault(0, "the contract that it names is not what was stored")


def _repair(connection: Connection, stream: str, rebuilt: Columns, *, there: bool) -> None:
    if there:
        connection.execute(_REPAIR, {"of": stream, **{name: value for name, value in rebuilt.items() if name != "stream"}})
    else:
        connection.execute(insert(streams), rebuilt)


def _shown(value: object) -> str | None:
    return None if value is None else str(value)
