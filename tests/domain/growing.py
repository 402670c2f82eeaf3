"""Streams and standings made in memory: evidence by its key, and a stream that grows as a ledger would let it grow."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from domain.chain import Entry, first_prev, make_entry
from domain.evidence import Commitment, Evidence, Opened, Ref, parse_evidence
from domain.facts import ContractFacts
from domain.folding import apply, fold, opened_standing
from domain.lifecycle import Move, Note, Outcome, Stay, advance
from domain.standing import Standing, State

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)
LEDGER, STREAM = "5ac3" * 8, "reports-1"

REQUIRED: dict[str, dict[str, Any]] = {
    "owner": {"run_id": "run-1", "epoch": 1},
    "policy": {"bundle": "b" * 64},
    "decision": {"request_id": "r-1", "verb": "resolve", "by": "asha"},
    "reading": {"began": T0},
    "step": {"step": "upload"},
    "callback": {"delivery": "d-1"},
    "clock": {"deadline": T0},
    "regressed": {"known_seq": 7, "known_hash": "c" * 64, "by": "asha"},
    "refusals": {"count": 1, "last_request_id": "r-21"},
    "linked": {"other": "reports-2"},
    "erased": {"refs": ("d" * 64,), "by": "asha"},
    "pruned": {"refs": ("d" * 64,)},
    "missing": {"what": "its input"},
}
KEYS: tuple[str, ...] = tuple(
    f"{model.model_fields['kind'].default}.{meaning}"
    for model in get_args(Evidence)
    for meaning in get_args(model.model_fields["meaning"].annotation)
)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def opened(**facts: Any) -> Opened:
    return Opened(
        at=T0, actor="human:asha", contract="sim.reports.create", version=1, contract_digest="a" * 64,
        facts=ContractFacts(**facts).model_dump(mode="json"),
        origin="https://api.example", tenant="default", principal="asha", requesters=("asha",), trace_id="1" * 32,
        fingerprint="f" * 64, salt=Ref(digest="e" * 64, size=32),
        input=Commitment(commit="1" * 64, ref="2" * 64, size=40), effect={"class": "external_write"},
    )  # fmt: skip


def said(key: str, when: datetime | None = None, **fields: Any) -> Evidence:
    """Evidence of that key with what its kind requires."""
    kind, _, meaning = key.partition(".")
    if kind == "opened":
        return opened()
    body = REQUIRED.get(kind, {}) | {"meaning": meaning} | fields
    return parse_evidence(at=(when or at(60)).isoformat(), actor="worker:w-1", kind=kind, body=body)


def standing(state: State, facts: dict[str, Any] | None = None, **changes: Any) -> Standing:
    """An operation that stands like that, however it came there."""
    return opened_standing(opened(**(facts or {}))).model_copy(update={"state": state, **changes})


def role_of(outcome: Outcome) -> tuple[Any, str | None]:
    match outcome:
        case Move(to=to):
            return "move", to
        case Stay():
            return "stay", None
        case Note():
            return "note", None


class Stream:
    """Grows by what `advance` allows, one entry at a time, as an owner appends."""

    def __init__(self, **facts: Any) -> None:
        first = make_entry(
            opened(**facts), ledger_id=LEDGER, stream=STREAM, seq=0, prev=first_prev(LEDGER, STREAM), role="move", epoch=0, turn=0,
            from_=None, to="proposed",
        )  # fmt: skip
        self.entries: list[Entry] = [first]
        self.standing = fold(self.entries)

    def tell(self, evidence: Evidence, *, owned: bool = True) -> Outcome:
        """One more entry. Not `owned`: whoever appends is no owner, so it is a note."""
        outcome = advance(self.standing, evidence) if owned else Note()
        role, to = role_of(outcome)
        last, before = self.entries[-1], self.standing
        entry = make_entry(
            evidence, ledger_id=LEDGER, stream=STREAM, seq=last.seq + 1, prev=last.hash, role=role, epoch=1, turn=last.seq,
            from_=before.state, to=to or before.state,
        )  # fmt: skip
        self.entries.append(entry)
        self.standing = apply(before, entry)
        return outcome

    def hear(self, key: str, when: datetime | None = None, *, owned: bool = True, **fields: Any) -> Outcome:
        """`tell`, by key."""
        return self.tell(said(key, when, **fields), owned=owned)


def told(*keys: str | tuple[str, dict[str, Any]], **facts: Any) -> Stream:
    """A stream that was told these things, a second apart."""
    stream = Stream(**facts)
    for second, key in enumerate(keys, start=1):
        name, fields = (key, {}) if isinstance(key, str) else key
        stream.hear(name, at(second), **fields)
    return stream
