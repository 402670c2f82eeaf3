"""What writes to the ledger: the bodies of its transactions, as plain functions of a connection that has begun one.

1. The stream's row is locked and read; then the witness is checked, before anything is decided.
2. `decide` sees the standing as it is under the lock. Each piece of evidence becomes an entry with the move it allows.
   Who may, and whose job it is: `sql_growing.py`.
3. Payloads, entries and the projection are written together; what an operation that is final no longer needs of sensitive values is
   taken away with the entry that makes it so (`domain/pruning.py`). Nothing here commits.
4. Whatever refuses (`SakshiError`) refuses before anything is written: others may share the transaction.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, LargeBinary, bindparam, insert, literal, or_, select, update

from activities.ports import Decide, OpenedStream, Opening, Owner, Record
from adapters.sql_dialects import took_away
from adapters.sql_growing import Growth, RowIsHeld, Written, insert_entries, waits
from adapters.sql_prepared import Prepared
from adapters.sql_projection import (
    Columns,
    StreamRow,
    columns_of,
    plain,
    unknown_stream,
)
from adapters.sql_tables import Plain, contracts, entries, payloads, streams
from domain.chain import first_prev, make_entry
from domain.errors import BadInput, LedgerRegressed, Refused, UnknownStream
from domain.evidence import Erased, Opened, instant_text
from domain.fingerprint import sha256_hex
from domain.folding import fold
from domain.messages import Known
from domain.pruning import pruning

LONGEST_NAME = 256

_LOCKED = Prepared(select(streams).where(streams.c.stream == bindparam("stream")).with_for_update())
_LOCKED_OR_HELD = Prepared(select(streams).where(streams.c.stream == bindparam("stream")).with_for_update(skip_locked=True))
_READ = Prepared(select(streams).where(streams.c.stream == bindparam("stream")))
_HASH_AT = Prepared(select(entries.c.hash).where(entries.c.stream == bindparam("stream"), entries.c.seq == bindparam("seq")))
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
_BRIEFLY = "SET LOCAL lock_timeout = '250ms'"
_ERASE = update(payloads).where(payloads.c.stream == bindparam("of"), payloads.c.digest == bindparam("ref"), payloads.c.erased_at.is_(None))


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
        return Written(OpenedStream(_equal(there, columns, opening.evidence), created=False), opening.stream)
    if not waits(connection) and connection.dialect.name == "postgresql":
        # An equal id, key or contract that another has written and not committed is waited for, and others share this transaction.
        connection.exec_driver_sql(_BRIEFLY)
    _pin(connection, columns, opening.contract)
    connection.execute(insert(streams), columns)
    keep_payloads(connection, opening.stream, opening.payloads)
    insert_entries(connection, opening.stream, [first])
    return Written(OpenedStream(Record(opening.stream, 0, first.hash, standing), created=True), opening.stream, first)


def append(
    connection: Connection, ledger_id: str, stream: str, decide: Decide, *, owner: Owner | None, known: Known | None,
    payloads: Sequence[bytes] = (),
) -> Written[Record]:  # fmt: skip
    """Append what `decide` returns; the rules above."""
    row = locked(connection, stream)
    witness(connection, row, known)
    standing = row.standing
    growth = Growth(connection, ledger_id, row, standing, owner)
    decided = tuple(decide(standing))
    for evidence in decided:
        growth.add(evidence)
    pruned = pruning(growth.standing, decided[-1]) if decided else None
    if pruned is not None:
        growth.add(pruned)
    written = growth.write()
    if written.last is not None:
        keep_payloads(connection, stream, payloads)
    if pruned is not None:
        _take_away(connection, stream, pruned.refs, pruned.at)
    return written


def claim(connection: Connection, ledger_id: str, stream: str, owner: Owner, *, at: datetime) -> Written[Record]:
    """Take the stream for a run that is the current one. A stream that is final needs no owner, and gets none."""
    row = locked(connection, stream)
    growth = Growth(connection, ledger_id, row, row.standing, owner)
    if not growth.standing.final:
        growth.claim(at, "worker")
    return growth.write()


def erase(connection: Connection, ledger_id: str, stream: str, erased: Erased) -> Written[Record]:
    """Take away the bytes of payloads, and record by whom and why, together."""
    written = append(connection, ledger_id, stream, lambda _: [erased], owner=None, known=None)
    _take_away(connection, stream, erased.refs, erased.at)
    return written


def _take_away(connection: Connection, stream: str, refs: Sequence[str], at: datetime) -> None:
    took_away(connection)
    for ref in refs:
        connection.execute(_ERASE, {"of": stream, "ref": ref, "bytes": None, "erased_at": instant_text(at)})


def keep_payloads(connection: Connection, stream: str, kept: Sequence[bytes]) -> None:
    """Keep bytes under their digest. What is there already stays, erased or not."""
    for data in dict.fromkeys(kept):
        connection.execute(_NEW_PAYLOAD, {"digest": sha256_hex(data), "stream": stream, "size": len(data), "bytes": data})


def locked(connection: Connection, stream: str) -> StreamRow:
    """The stream's row, locked until the transaction ends. Raises UnknownStream, RowIsHeld."""
    if waits(connection):
        return _one(connection, _LOCKED, stream)
    try:
        return _one(connection, _LOCKED_OR_HELD, stream)
    except UnknownStream:
        raise RowIsHeld from None


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
    _LOCKED.run(connection, {"stream": written.stream})
    return hash_at(connection, written.stream, written.last.seq) == written.last.hash


def hash_at(connection: Connection, stream: str, seq: int) -> str | None:
    """The hash of one entry, or None."""
    return _HASH_AT.run(connection, {"stream": stream, "seq": seq}).scalar()


def taken_by(connection: Connection, *, stream: object, tenant: object, contract: object, key: object) -> list[StreamRow]:
    """The streams that have this id, or this key for that tenant and contract."""
    asked = {"stream": stream, "tenant": tenant, "contract": contract, "key": key}
    return [StreamRow(*row) for row in connection.execute(_TAKEN, asked)]


def _one(connection: Connection, statement: Prepared, stream: str) -> StreamRow:
    found = statement.run(connection, {"stream": plain(stream)}).first()
    if found is None:
        raise unknown_stream()
    return StreamRow(*found)


def _check_opening(opening: Opening) -> None:
    opened = opening.evidence
    if sha256_hex(opening.contract) != opened.contract_digest:
        raise BadInput("the contract is not the one whose digest entry 0 names")
    names = (opening.stream, opened.tenant, opened.contract, opened.key_ or "-", opened.principal)
    if any(not 0 < len(name) <= LONGEST_NAME for name in names) or plain(opening.stream) != opening.stream:
        raise BadInput(f"id, key, tenant, principal and contract have 1 to {LONGEST_NAME} characters")


def _equal(there: Sequence[StreamRow], asked: Columns, opened: Opened) -> Record:
    """The one stream that is there, if it is what is asked for.

    The refusal tells only the tenant and principal whose own all of it is what has the id or key; to anyone else it is always the same.
    """
    if any(getattr(row, name) != asked[name] for row in there for name in ("tenant", "principal")):
        raise Refused("this id or key is taken", hint="use another, or none")
    if len(there) == 1 and there[0].fingerprint == asked["fingerprint"]:
        return record_of(there[0])
    of = (f"the id {row.stream} is taken" if row.stream == asked["stream"] else f"the key {row.key} is of {row.stream}" for row in there)
    other = f", with another {_difference(there[0].standing.opened, opened)}" if len(there) == 1 else ""
    raise Refused(f"{' and '.join(of)}{other}", hint=f"python starter.py status {there[0].stream}; or use another id or key, or none")


def _difference(old: Opened, new: Opened) -> str:
    """What differs of that which a fingerprint is made of. The input is committed to under a salt of its own: it is what is left."""
    if old.contract != new.contract:
        return "contract"
    if old.contract_digest != new.contract_digest:
        return f"text of the contract (its version was {old.version})"
    if (old.target, old.origin) != (new.target, new.origin):
        return "target"
    return "file" if old.files != new.files else "input"


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
