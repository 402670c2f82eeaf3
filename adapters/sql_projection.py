"""The projection: what a stream's row says, derived from its standing and its newest entry and from nothing else.

Every text of a column comes out of a recorded entry or passes `recordable`: what an entry can hold, a column can hold.
"""

import json
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from domain.errors import Tampered, UnknownStream
from domain.evidence import instant_text, recordable
from domain.fingerprint import canonical, sha256_hex
from domain.lifecycle import next_step
from domain.standing import Standing

Columns = dict[str, str | int | None]
LAST = "\U0010ffff"
"""Sorts after every id that begins with what stands before it."""
SCHEMA = "0001"
"""The newest migration that this code knows. It stands here for those who read a row without loading SQLAlchemy."""


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One row of `streams`: its columns, in their order."""

    stream: str
    tenant: str
    contract: str
    version: int
    contract_digest: str
    key: str | None
    principal: str
    fingerprint: str
    trace_id: str
    state: str
    attention_since: str | None
    created_at: str
    updated_at: str
    next_at: str | None
    deadline: str | None
    epoch: int
    turn: int
    owner: str | None
    seq: int
    head: str
    job: str | None
    job_scope: str | None
    standing_json: str

    @property
    def attention(self) -> bool:
        """It waits for a human."""
        return self.attention_since is not None

    @property
    def standing(self) -> Standing:
        """The standing. Raises Tampered if the row does not hold one."""
        return read_standing(self.standing_json)


def columns_of(stream: str, standing: Standing, *, seq: int, head: str, updated_at: str) -> Columns:
    """The whole row that these entries lead to."""
    opened = standing.opened
    return {
        "stream": stream,
        "tenant": plain(opened.tenant),
        "contract": plain(opened.contract),
        "version": opened.version,
        "contract_digest": plain(opened.contract_digest),
        "key": plain(opened.key_),
        "principal": plain(opened.principal),
        "fingerprint": plain(opened.fingerprint),
        "trace_id": plain(opened.trace_id),
        "created_at": instant_text(opened.at),
    } | changing_columns(standing, seq=seq, head=head, updated_at=updated_at)


def changing_columns(standing: Standing, *, seq: int, head: str, updated_at: str) -> Columns:
    """The part of the row that an append changes."""
    until = next_step(standing).until
    job = job_text(standing)
    return {
        "state": standing.state,
        "attention_since": instant_text(standing.attention_since) if standing.attention_since else None,
        "updated_at": updated_at,
        "next_at": instant_text(standing.next_at) if standing.next_at else None,
        "deadline": instant_text(until) if until else None,
        "epoch": standing.epoch,
        "turn": standing.turn,
        "owner": next((run for run, epoch in standing.owners.items() if epoch == standing.epoch), None),
        "seq": seq,
        "head": head,
        "job": job,
        "job_scope": job_scope(standing, job),
        "standing": write_standing(standing),
    }


def write_standing(standing: Standing) -> str:
    """The standing as the column `standing` holds it."""
    return standing.model_dump_json(exclude_defaults=True)


def read_standing(text: str) -> Standing:
    """The standing that a column holds. Raises Tampered."""
    try:
        return Standing.model_validate_json(text)
    except ValidationError:
        raise Tampered("a stream's row does not hold a standing", hint="python starter.py ledger rebuild") from None


def job_text(standing: Standing) -> str | None:
    """The id of the job that this stream has at the provider."""
    found = (standing.job or {}).get("id")
    if found is None:
        return None
    return plain(found) if isinstance(found, str) else plain(json.dumps(recordable(found)))


def job_scope(standing: Standing, job: str | None) -> str | None:
    """What no two streams may share: contract, origin, account and job id, as one digest."""
    if job is None:
        return None
    opened = standing.opened
    return sha256_hex(canonical(recordable([opened.contract, opened.origin, opened.credential.get("account", ""), job])))


def unknown_stream() -> UnknownStream:
    """What every reader says of a stream that is not there."""
    return UnknownStream("the ledger holds no operation of that id", hint="python starter.py list")


def plain(value: str | None) -> str | None:
    """Text that both databases can hold; the same as its entry shows."""
    return None if value is None else cast("str", recordable(value))
