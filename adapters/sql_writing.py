"""What writes to the ledger: the bodies of its transactions, as plain functions of a connection that has begun one.

1. The stream's row is locked and read; then the witness is checked, before anything is decided.
2. `decide` sees the standing as it is under the lock. Each piece of evidence becomes an entry with the move it allows.
3. Moves and stays need an owner whose (epoch, turn) is not lower than the stored pair. A run that the stream has not seen
   claims it with an entry of its own before its first move or stay. Notes need neither.
4. A job that another stream has in the same scope is never taken: the fact is recorded as a violation instead.
5. Payloads, entries and the projection are written together. Nothing here commits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import BigInteger, Connection, LargeBinary, Select, bindparam, insert, literal, or_, select, update

from activities.ports import Decide, OpenedStream, Opening, Owner, Record
from adapters.sql_projection import (
    Columns,
    StreamRow,
    changing_columns,
    columns_of,
    job_scope,
    job_text,
    plain,
)
from adapters.sql_tables import Plain, contracts, entries, payloads, streams
from domain.chain import Entry, Role, first_prev, make_entry
from domain.errors import BadInput, LedgerRegressed, Refused, StaleOwner, UnknownStream
from domain.evidence import Callback, CreateExchange, Decision, Erased, Evidence, Json, Late, Lookup, OwnerClaim, instant_text
from domain.fingerprint import sha256_hex
from domain.folding import apply, fold
from domain.lifecycle import Move, Note, Outcome, Stay, advance
from domain.messages import Known
from domain.standing import Standing

T = TypeVar("T")
LONGEST_NAME = 256
ANOTHER_HAS_IT = "another operation has this job"

_LOCKED = select(streams).where(streams.c.stream == bindparam("stream")).with_for_update()
_READ = select(streams).where(streams.c.stream == bindparam("stream"))
_HASH_AT = select(entries.c.hash).where(entries.c.stream == bindparam("stream"), entries.c.seq == bindparam("seq"))
_SAME_JOB = select(streams.c.stream, streams.c.tenant).where(
    streams.c.job_scope == bindparam("scope"), streams.c.stream != bindparam("stream")
)
_ADVANCE = update(streams).where(streams.c.stream == bindparam("of"), streams.c.seq == bindparam("after"))
_TAKEN = select(streams).where(
    or_(
        streams.c.stream == bindparam("stream"),
        (streams.c.tenant == bindparam("tenant")) & (streams.c.contract == bindparam("contract")) & (streams.c.key == bindparam("key")),
    )
)
_PINNED = select(contracts.c.digest).where(
    or_(
        contracts.c.digest == bindparam("digest"),
        (contracts.c.version > 0) & (contracts.c.name == bindparam("name")) & (contracts.c.version == bindparam("version")),
    )
)
_NEW_PAYLOAD = insert(payloads).from_select(
    ["digest", "stream", "size", "bytes"],
    select(
        bindparam("digest", type_=Plain),
        bindparam("stream", type_=Plain),
        bindparam("size", type_=BigInteger),
        bindparam("bytes", type_=LargeBinary),
    ).where(~select(literal(1)).where(payloads.c.digest == bindparam("digest"), payloads.c.stream == bindparam("stream")).exists()),
)
_ERASE = update(payloads).where(payloads.c.stream == bindparam("of"), payloads.c.digest == bindparam("ref"), payloads.c.erased_at.is_(None))


class LostRace(Exception):
    """The row moved under the lock that should have held it. The transaction is done again."""


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """What a transaction came to, and the newest entry it wrote, by which an unknown commit is settled."""

    value: T
    stream: str
    last: Entry | None = None


def open_stream(connection: Connection, ledger_id: str, opening: Opening) -> Written[OpenedStream]:
    """Reserve id and key, pin the contract, write entry 0; or find the equal stream that is there already."""
    _check_opening(opening)
    first = make_entry(
        opening.evidence, ledger_id=ledger_id, stream=opening.stream, seq=0, prev=first_prev(ledger_id, opening.stream), role="move",
        epoch=0, turn=0, from_=None, to="proposed",
    )  # fmt: skip
    standing = fold([first])
    columns = columns_of(opening.stream, standing, seq=0, head=first.hash, updated_at=first.at)
    there = taken_by(connection, stream=opening.stream, tenant=columns["tenant"], contract=columns["contract"], key=columns["key"])
    if there:
        return Written(OpenedStream(_equal(there, columns), created=False), opening.stream)
    _pin(connection, columns, opening.contract)
    connection.execute(insert(streams), columns)
    keep_payloads(connection, opening.stream, opening.payloads)
    _insert(connection, opening.stream, [first])
    return Written(OpenedStream(Record(opening.stream, 0, first.hash, standing), created=True), opening.stream, first)


def append(
    connection: Connection, ledger_id: str, stream: str, decide: Decide, *, owner: Owner | None, known: Known | None,
    payloads: Sequence[bytes] = (),
) -> Written[Record]:  # fmt: skip
    """Append what `decide` returns; rules 1 to 5 above."""
    row = locked(connection, stream)
    witness(connection, row, known)
    standing = row.standing
    growth = _Growth(connection, ledger_id, row, standing, owner)
    for evidence in decide(standing):
        growth.add(evidence)
    if growth.entries:
        keep_payloads(connection, stream, payloads)
    return growth.write()


def claim(connection: Connection, ledger_id: str, stream: str, owner: Owner, *, at: datetime) -> Written[Record]:
    """Take the stream for a run that is the current one. A stream that is final needs no owner, and gets none."""
    row = locked(connection, stream)
    growth = _Growth(connection, ledger_id, row, row.standing, owner)
    if not growth.standing.final:
        growth.claim(at, "worker")
    return growth.write()


def erase(connection: Connection, ledger_id: str, stream: str, erased: Erased) -> Written[Record]:
    """Take away the bytes of payloads, and record by whom and why, together."""
    written = append(connection, ledger_id, stream, lambda _: [erased], owner=None, known=None)
    for ref in erased.refs:
        connection.execute(_ERASE, {"of": stream, "ref": ref, "bytes": None, "erased_at": instant_text(erased.at)})
    return written


def keep_payloads(connection: Connection, stream: str, kept: Sequence[bytes]) -> None:
    """Keep bytes under their digest. What is there already stays, erased or not."""
    for data in dict.fromkeys(kept):
        connection.execute(_NEW_PAYLOAD, {"digest": sha256_hex(data), "stream": stream, "size": len(data), "bytes": data})


def locked(connection: Connection, stream: str) -> StreamRow:
    """The stream's row, locked until the transaction ends. Raises UnknownStream."""
    return _one(connection, _LOCKED, stream)


def seen(connection: Connection, stream: str) -> StreamRow:
    """The stream's row. Raises UnknownStream."""
    return _one(connection, _READ, stream)


def record_of(row: StreamRow) -> Record:
    """A row as activities know it."""
    return Record(row.stream, row.seq, row.head, row.standing)


def witness(connection: Connection, row: StreamRow, known: Known | None) -> None:
    """Raises LedgerRegressed if the ledger does not hold the entry that someone else remembers."""
    if known is None:
        return
    held = row.head if known.seq == row.seq else hash_at(connection, row.stream, known.seq) if 0 <= known.seq < row.seq else None
    if held != known.hash:
        raise LedgerRegressed(
            f"the ledger does not hold entry {known.seq} of {row.stream} as Temporal knows it",
            hint="it was restored from an older copy, cut, or is another ledger; nothing was written",
        )


def was_committed(connection: Connection, written: Written[Any]) -> bool:
    """Whether a transaction whose COMMIT did not answer was done.

    Asked under the stream's lock: a server that is still at it would otherwise say no, and then finish.
    """
    if written.last is None:
        return False
    connection.execute(_LOCKED, {"stream": written.stream})
    return hash_at(connection, written.stream, written.last.seq) == written.last.hash


def hash_at(connection: Connection, stream: str, seq: int) -> str | None:
    """The hash of one entry, or None."""
    return connection.execute(_HASH_AT, {"stream": stream, "seq": seq}).scalar()


def taken_by(connection: Connection, *, stream: object, tenant: object, contract: object, key: object) -> list[StreamRow]:
    """The streams that have this id, or this key for that tenant and contract."""
    asked = {"stream": stream, "tenant": tenant, "contract": contract, "key": key}
    return [StreamRow(*row) for row in connection.execute(_TAKEN, asked)]


class _Growth:
    """A stream while it grows inside one transaction."""

    def __init__(self, connection: Connection, ledger_id: str, row: StreamRow, standing: Standing, owner: Owner | None) -> None:
        self.entries: list[Entry] = []
        self.standing = standing
        self._connection, self._ledger_id, self._row, self._owner = connection, ledger_id, row, owner
        self._seq, self._head = row.seq, row.head
        self._scope = row.job_scope

    def add(self, evidence: Evidence) -> None:
        """One more piece of evidence, with the move it allows. Raises StaleOwner, EvidenceError, Refused."""
        outcome = advance(self.standing, evidence) if self._owner is not None else Note()
        if isinstance(outcome, Note):
            epoch, turn = self._pair() if self._owner else (self.standing.epoch, self.standing.turn)
            self._grow(evidence, outcome, epoch, turn)
            return
        assert self._owner is not None
        if self._owner.run_id not in self.standing.owners:
            self.claim(evidence.at, evidence.actor)
        pair = self._pair()
        if pair < (self.standing.epoch, self.standing.turn):
            raise StaleOwner(f"{self._row.stream} has moved on from epoch {pair[0]}, turn {pair[1]}")
        self._grow(evidence, outcome, *pair)

    def claim(self, at: datetime, actor: str) -> None:
        """The owner's entry: epoch is the stored one plus one, turn 0."""
        assert self._owner is not None
        epoch = self.standing.epoch + 1
        taken = OwnerClaim(at=at, actor=actor, run_id=self._owner.run_id, epoch=epoch)
        self._grow(taken, advance(self.standing, taken), epoch, 0)

    def write(self) -> Written[Record]:
        """Entries and projection into the transaction."""
        record = Record(self._row.stream, self._seq, self._head, self.standing)
        if not self.entries:
            return Written(record, record.stream)
        last = self.entries[-1]
        changed = changing_columns(self.standing, seq=last.seq, head=last.hash, updated_at=last.at)
        moved = self._connection.execute(_ADVANCE, {"of": record.stream, "after": self._row.seq, **changed})
        if moved.rowcount != 1:
            raise LostRace
        _insert(self._connection, record.stream, self.entries)
        return Written(record, record.stream, last)

    def _pair(self) -> tuple[int, int]:
        assert self._owner is not None
        return self.standing.owners.get(self._owner.run_id, self.standing.epoch), self._owner.turn

    def _grow(self, evidence: Evidence, outcome: Outcome, epoch: int, turn: int) -> None:
        entry, after = self._next(evidence, outcome, epoch, turn)
        scope = self._scope if after.job is self.standing.job else job_scope(after, job_text(after))
        if scope not in (None, self._scope) and (holder := self._holder(str(scope))) is not None:
            evidence = without_job(evidence, self.standing, after, holder)
            outcome = Note(flagged=True) if isinstance(evidence, Callback) else advance(self.standing, evidence)
            entry, after = self._next(evidence, outcome, epoch, turn)
            scope = self._scope
        self.entries.append(entry)
        self.standing, self._seq, self._head, self._scope = after, entry.seq, entry.hash, scope

    def _next(self, evidence: Evidence, outcome: Outcome, epoch: int, turn: int) -> tuple[Entry, Standing]:
        role, to = _role(outcome)
        entry = make_entry(
            evidence, ledger_id=self._ledger_id, stream=self._row.stream, seq=self._seq + 1, prev=self._head, role=role, epoch=epoch,
            turn=turn, from_=self.standing.state, to=to or self.standing.state,
        )  # fmt: skip
        return entry, apply(self.standing, entry)

    def _holder(self, scope: str) -> tuple[str, str] | None:
        found = self._connection.execute(_SAME_JOB, {"scope": scope, "stream": self._row.stream}).first()
        return None if found is None else (str(found[0]), str(found[1]))


def without_job(evidence: Evidence, standing: Standing, after: Standing, holder: tuple[str, str]) -> Evidence:
    """The twin of evidence whose job is another operation's. Raises Refused for a human's choice; a provider's fact is kept.

    The other operation is named only to its own tenant.
    """
    job = job_text(after)
    violation: dict[str, Json] = {"why": ANOTHER_HAS_IT, "job": job}
    if holder[1] == standing.opened.tenant:
        violation["operation"] = holder[0]
    match evidence:
        case CreateExchange() | Late() | Lookup():
            return evidence.model_copy(update={"meaning": "violation", "violation": violation})
        case Decision():
            raise Refused(f"{ANOTHER_HAS_IT}: {job}", hint="one job belongs to one operation")
        case _:
            return evidence


def _role(outcome: Outcome) -> tuple[Role, str | None]:
    match outcome:
        case Move(to=to):
            return "move", to
        case Stay():
            return "stay", None
        case Note():
            return "note", None


def _one(connection: Connection, statement: Select[Any], stream: str) -> StreamRow:
    found = connection.execute(statement, {"stream": plain(stream)}).first()
    if found is None:
        raise UnknownStream("the ledger holds no operation of that id", hint="python starter.py list")
    return StreamRow(*found)


def _insert(connection: Connection, stream: str, new: Sequence[Entry]) -> None:
    rows = [
        {
            "stream": stream, "seq": entry.seq, "prev": entry.prev, "hash": entry.hash, "at": entry.at, "actor": entry.actor,
            "kind": entry.kind, "body": entry.raw,
        }
        for entry in new
    ]  # fmt: skip
    connection.execute(insert(entries), rows)


def _check_opening(opening: Opening) -> None:
    opened = opening.evidence
    if sha256_hex(opening.contract) != opened.contract_digest:
        raise BadInput("the contract is not the one whose digest entry 0 names")
    names = (opening.stream, opened.tenant, opened.contract, opened.key_ or "-", opened.principal)
    if any(not 0 < len(name) <= LONGEST_NAME for name in names) or plain(opening.stream) != opening.stream:
        raise BadInput(f"id, key, tenant, principal and contract have 1 to {LONGEST_NAME} characters")


def _equal(there: Sequence[StreamRow], asked: Columns) -> Record:
    """The one stream that is there, if it is what is asked for. The refusal is the same whatever differs."""
    same = ("tenant", "principal", "fingerprint")
    if len(there) == 1 and all(getattr(there[0], name) == asked[name] for name in same):
        return record_of(there[0])
    raise Refused("this id or key is taken", hint="use another, or none")


def _pin(connection: Connection, columns: Columns, body: bytes) -> None:
    row = {"digest": columns["contract_digest"], "name": columns["contract"], "version": columns["version"]}
    pinned = set(connection.execute(_PINNED, row).scalars())
    if pinned - {row["digest"]}:
        raise Refused(
            f"contract {row['name']}@{row['version']} was used with another content",
            hint="give the changed contract a new version; version 0 is for drafts",
        )
    if not pinned:
        connection.execute(insert(contracts), {**row, "body": body})
