"""The chain: canonical bytes of an entry, its hash, and the verification of a stream.

* `hash = sha256("sakshi/entry/v1\\0" || prev (32 raw bytes) || canonical(entry without hash))`.
* The first `prev` is `sha256("sakshi/stream/v1\\0" || ledger_id || "\\0" || stream)`: an entry can be carried neither to another
  stream nor to another ledger.
* An entry is stored as its canonical bytes; verification hashes those bytes, then compares the columns beside them.
* An unknown `v` fails verification.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

from domain.evidence import Evidence, Json, instant_text, parse_evidence, recordable
from domain.fingerprint import canonical

VERSION = 1
Role = Literal["move", "stay", "note"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as stored. `raw` is canonical and is what is hashed; the rest is read from it."""

    seq: int
    prev: str
    hash: str
    raw: bytes
    at: str
    actor: str
    kind: str
    role: Role
    epoch: int
    turn: int
    from_: str | None
    to: str | None
    cause: str
    body: dict[str, Json]

    @property
    def evidence(self) -> Evidence:
        """The evidence that this entry holds."""
        return parse_evidence(at=self.at, actor=self.actor, kind=self.kind, body=self.body)


def first_prev(ledger_id: str, stream: str) -> str:
    """What the first entry of a stream links to."""
    return hashlib.sha256(b"sakshi/stream/v1\0" + ledger_id.encode() + b"\0" + stream.encode()).hexdigest()


def entry_hash(prev: str, raw: bytes) -> str:
    """Hash of an entry with canonical bytes `raw` that follows `prev`."""
    return hashlib.sha256(b"sakshi/entry/v1\0" + bytes.fromhex(prev) + raw).hexdigest()


def make_entry(
    evidence: Evidence,
    *,
    ledger_id: str,
    stream: str,
    seq: int,
    prev: str,
    role: Role,
    epoch: int,
    turn: int,
    from_: str | None,
    to: str | None,
) -> Entry:
    """The entry that records `evidence` after `prev`."""
    raw = canonical(
        {
            "v": VERSION,
            "ledger_id": ledger_id,
            "stream": stream,
            "seq": seq,
            "at": instant_text(evidence.at),
            "actor": recordable(evidence.actor),
            "kind": evidence.kind,
            "role": role,
            "epoch": epoch,
            "turn": turn,
            "from": from_,
            "to": to,
            "cause": evidence.key,
            "body": evidence.body(),
        }
    )
    return read_entry(prev=prev, hash=entry_hash(prev, raw), raw=raw)


def read_entry(*, prev: str, hash: str, raw: bytes) -> Entry:
    """An entry from its stored parts. Raises ValueError, KeyError or TypeError if the bytes are not an entry."""
    value = cast("dict[str, Json]", json.loads(raw))
    return Entry(
        seq=cast("int", value["seq"]),
        prev=prev,
        hash=hash,
        raw=raw,
        at=cast("str", value["at"]),
        actor=cast("str", value["actor"]),
        kind=cast("str", value["kind"]),
        role=cast("Role", value["role"]),
        epoch=cast("int", value["epoch"]),
        turn=cast("int", value["turn"]),
        from_=cast("str | None", value["from"]),
        to=cast("str | None", value["to"]),
        cause=cast("str", value["cause"]),
        body=cast("dict[str, Json]", value["body"]),
    )


@dataclass(frozen=True, slots=True)
class Stored:
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


def verify_chain(ledger_id: str, stream: str, rows: Iterable[Stored], *, head: tuple[int, str] | None = None) -> Fault | None:
    """The first fault of a stream, or None if it is whole. `head` is a later witness: (seq, hash) that must be held."""
    prev = first_prev(ledger_id, stream)
    seen: dict[int, str] = {}
    expected = 0
    for row in rows:
        fault = _verify_row(ledger_id, stream, row, expected, prev)
        if fault is not None:
            return Fault(expected, fault)
        seen[row.seq] = row.hash
        prev = row.hash
        expected += 1
    if expected == 0:
        return Fault(0, "the stream has no entries")
    if head is not None and seen.get(head[0]) != head[1]:
        missing = head[0] not in seen
        return Fault(head[0], "entries are missing after the last one" if missing else "another entry stands where a witness knows one")
    return None


def _verify_row(ledger_id: str, stream: str, row: Stored, expected: int, prev: str) -> str | None:
    if row.seq != expected:
        return f"entry {expected} is missing (found {row.seq})"
    if row.prev != prev:
        return "does not link to the entry before"
    if entry_hash(prev, row.raw) != row.hash:
        return "hash differs from the stored bytes"
    try:
        value = cast("dict[str, object]", json.loads(row.raw))
        if value["v"] != VERSION:
            return f"unknown entry version {value['v']!r}"
        said = {name: value[name] for name in ("ledger_id", "stream", "seq", "at", "actor", "kind")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return "bytes are not an entry"
    held = {"ledger_id": ledger_id, "stream": stream, "seq": row.seq, "at": row.at, "actor": row.actor, "kind": row.kind}
    return next((f"column {name} differs from the entry" for name in held if held[name] != said[name]), None)
