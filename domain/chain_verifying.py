"""Whether stored rows are the stream that was written: every entry's bytes, hash, link and columns.

* Hash first: nothing is read from bytes that do not hash to what the next entry links to.
* The columns beside an entry are compared with what its bytes say; an unknown `v` is a fault.
* An entry whose evidence this version does not know holds the chain all the same, and is told apart from what is damaged.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

from pydantic import BaseModel, ValidationError

from domain.chain import VERSION, entry_hash, first_prev, read_entry
from domain.whole_entries import read_whole


class Stored(NamedTuple):
    """One row of `entries` as the database gave it, nothing believed yet."""

    seq: int
    prev: str
    hash: str
    at: str
    actor: str
    kind: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """The first place at which a stream is not what was written."""

    seq: int
    what: str


Heard = Callable[[int, str, BaseModel | None], None]
"""Told of each entry that holds, in order: its number, its kind, its evidence or None where no version that we know wrote it."""


def verify_chain(
    ledger_id: str, stream: str, rows: Iterable[Stored], *, head: tuple[int, str] | None = None, heard: Heard | None = None
) -> Fault | None:
    """The first fault of a stream, or None if it is whole. `head` is a later witness: (seq, hash) that must be held."""
    prev = first_prev(ledger_id, stream)
    witnessed = -1 if head is None else head[0]
    held: str | None = None
    expected = 0
    for row in rows:
        if row.seq != expected:
            return Fault(expected, f"entry {expected} is missing (found {row.seq})")
        if row.prev != prev:
            return Fault(expected, "does not link to the entry before")
        prev = entry_hash(prev, row.raw)
        if prev != row.hash:
            return Fault(expected, "hash differs from the stored bytes")
        wrong, evidence = _read(ledger_id, stream, row)
        if wrong is not None:
            return Fault(expected, wrong)
        if heard is not None:
            heard(expected, row.kind, evidence)
        if expected == witnessed:
            held = prev
        expected += 1
    if expected == 0:
        return Fault(0, "the stream has no entries")
    if head is not None and held != head[1]:
        return Fault(
            witnessed, "entries are missing after the last one" if held is None else "another entry stands where a witness knows one"
        )
    return None


def _read(ledger_id: str, stream: str, row: Stored) -> tuple[str | None, BaseModel | None]:
    """What is wrong with an entry that hashes as it should, and its evidence."""
    whole = read_whole(row.raw)
    if (
        whole is not None
        and whole.seq == row.seq
        and whole.at == row.at
        and whole.kind == row.kind
        and whole.actor == row.actor
        and whole.stream == stream
        and whole.ledger_id == ledger_id
    ):
        return None, whole.body
    wrong = _wrong(ledger_id, stream, row)
    return wrong, None if wrong else evidence_of(row)


def _wrong(ledger_id: str, stream: str, row: Stored) -> str | None:
    try:
        value = cast("dict[str, object]", json.loads(row.raw))
        if value["v"] != VERSION:
            return f"unknown entry version {value['v']!r}"
        said = {name: value[name] for name in ("ledger_id", "stream", "seq", "at", "actor", "kind")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return "bytes are not an entry"
    held = {"ledger_id": ledger_id, "stream": stream, "seq": row.seq, "at": row.at, "actor": row.actor, "kind": row.kind}
    return next((f"column {name} differs from the entry" for name in held if held[name] != said[name]), None)


def evidence_of(row: Stored) -> BaseModel | None:
    """The evidence of an entry, read slowly; None if it is none that this version knows."""
    try:
        return read_entry(prev=row.prev, hash=row.hash, raw=row.raw).evidence
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        return None
