"""The chain: canonical bytes of an entry, and its hash. Verifying a stream: `chain_verifying.py`.

* `hash = sha256("sakshi/entry/v1\\0" || prev (32 raw bytes) || canonical(entry without hash))`.
* The first `prev` is `sha256("sakshi/stream/v1\\0" || ledger_id || "\\0" || stream)`: an entry can be carried neither to another
  stream nor to another ledger.
* An entry is stored as its canonical bytes; verification hashes those bytes, then compares the columns beside them.
* An unknown `v` fails verification.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal, cast

from pydantic_core import from_json

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
    value = cast("dict[str, Json]", from_json(raw))
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
