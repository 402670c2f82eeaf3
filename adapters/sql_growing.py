"""A stream while it grows inside one transaction: evidence becomes entries, entries become the standing and the row.

* Moves and stays need an owner whose (epoch, turn) is not lower than the stored pair. A run that the stream has not seen
  claims it with an entry of its own before its first move or stay. Notes need neither.
* A job that another stream has in the same scope is never taken: the fact is recorded as a violation instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from sqlalchemy import Connection, bindparam, insert, select, update

from activities.ports import Owner, Record
from adapters.sql_prepared import Prepared
from adapters.sql_projection import StreamRow, changing_columns, job_scope, job_text
from adapters.sql_tables import entries, streams
from domain.chain import Entry, Role, make_entry
from domain.errors import Refused, StaleOwner
from domain.evidence import Callback, CreateExchange, Decision, Evidence, Json, Late, Lookup, OwnerClaim
from domain.folding import apply
from domain.lifecycle import Move, Note, Outcome, Stay, advance
from domain.standing import Standing

T = TypeVar("T")
ANOTHER_HAS_IT = "another operation has this job"

_SAME_JOB = select(streams.c.stream, streams.c.tenant).where(
    streams.c.job_scope == bindparam("scope"), streams.c.stream != bindparam("stream")
)
_ADVANCE = Prepared(update(streams).where(streams.c.stream == bindparam("of"), streams.c.seq == bindparam("after")))
_INSERT = Prepared(insert(entries))


class LostRace(Exception):
    """The row moved under the lock that should have held it. The transaction is done again."""


class RowIsHeld(Exception):
    """Another transaction holds the stream's row, or it is not there, and this one was not to wait to learn which."""


def wait_for_no_row(connection: Connection) -> None:
    """From here on, whoever finds a row held by another transaction raises RowIsHeld."""
    connection.execution_options(sakshi_waits=False)


def waits(connection: Connection) -> bool:
    """Whether this transaction waits for a row that somebody holds."""
    return bool(connection.get_execution_options().get("sakshi_waits", True))


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """What a transaction came to, and the newest entry it wrote, by which an unknown commit is settled."""

    value: T
    stream: str
    last: Entry | None = None


class Growth:
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
        moved = _ADVANCE.run(self._connection, {"of": record.stream, "after": self._row.seq, **changed})
        if moved.rowcount != 1:
            raise LostRace
        insert_entries(self._connection, record.stream, self.entries)
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


def insert_entries(connection: Connection, stream: str, new: Sequence[Entry]) -> None:
    """Rows of `entries`, in one statement."""
    rows = [
        {
            "stream": stream, "seq": entry.seq, "prev": entry.prev, "hash": entry.hash, "at": entry.at, "actor": entry.actor,
            "kind": entry.kind, "body": entry.raw,
        }
        for entry in new
    ]  # fmt: skip
    _INSERT.run(connection, *rows)


def _role(outcome: Outcome) -> tuple[Role, str | None]:
    match outcome:
        case Move(to=to):
            return "move", to
        case Stay():
            return "stay", None
        case Note():
            return "note", None
