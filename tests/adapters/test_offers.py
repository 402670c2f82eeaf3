"""What `status` offers to type next is what would be taken, and of cancels nothing that would be taken is left out."""

import shlex
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from activities.authority import state_refuses
from activities.ports import Record
from adapters.showing.status import FORCED, status_of
from adapters.showing.waiting import attention_text
from commands.deciding import resolution_of
from domain.evidence import Decision
from domain.lifecycle import find_row
from domain.standing import Attempt, Standing, State, Verdict
from domain.tables import STATES
from tests.domain.growing import T0, standing

AT = datetime(2026, 11, 30, 12, 0, 20, tzinfo=UTC)
FACTS: tuple[dict[str, Any], ...] = (
    {},
    {"cancel_repeatable": True},
    {"cancel_force": True},
    {"cancel_repeatable": True, "cancel_force": True},
    {"reconcile_entries": 1, "token": True, "token_window_ms": 86_400_000, "cancel_force": True},
)
ENDED = Verdict(verdict="succeeded", at=T0, began=T0, call="observe", seq=4)
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"job": {"id": "job-1"}},
    {"job": {"id": "job-1"}, "verdict": ENDED},
    {"open_attempt": Attempt(generation=1, attempt=1, seq=3, at=T0), "attempts": 1, "first_intent_at": T0},
    {"unproven": ((1, 1),), "attempts": 1, "first_intent_at": T0, "cancel_wanted": True},
    {"unproven": ((1, 1),), "unnamed": True, "reconcile_left": 0},
    {"missing": "its input is no longer kept"},
    {"cancel_forced": True, "cancel_sent": True, "job": {"id": "job-1"}},
)


def shown(of: Standing) -> dict[str, Any]:
    return status_of(Record("op-1", 9, "a" * 64, of), at=AT, last_entry=AT - timedelta(seconds=1), by="ada")


def asked(verb: str, meaning: str, *, force: bool = False) -> Decision:
    said = {"at": AT, "actor": "human:ada", "meaning": meaning, "request_id": "r-1", "verb": verb, "by": "ada", "force": force}
    return Decision.model_validate(said)


def typed(line: str) -> Decision | None:
    """The decision that a command asks for; None if it only looks."""
    _, _, verb, _, *rest = shlex.split(line)
    words = rest[: rest.index("--by")] if "--by" in rest else rest
    match verb:
        case "cancel":
            assert words in ([], ["--force"])
            return asked("cancel", "cancel", force="--force" in words)
        case "resolve":
            choice = resolution_of(words, by="ada", reason="", until=None, force=False).choice
            return asked("resolve", choice)
        case _:
            return None


@pytest.mark.parametrize("state", STATES)
def test_what_is_offered_is_taken_and_each_cancel_that_would_be_taken_is_offered(state: State) -> None:
    for facts, changes in product(FACTS, CHANGES):
        of = standing(state, facts, **changes)
        lines = shown(of)["next"]
        offered = [decision for line in lines if (decision := typed(line)) is not None]
        for decision in offered:
            assert state_refuses(of, decision) is None, (decision.meaning, facts, changes)
        for force in (False, True):
            wanted = asked("cancel", "cancel", force=force)
            row = find_row(of, wanted)
            leads = row is not None and not (of.attention and row.to == "stay")
            taken = state_refuses(of, wanted) is None and leads
            said = [one for one in offered if one.meaning == "cancel" and one.force == force]
            assert len(said) == int(taken), (force, lines, facts, changes)


def test_a_cancel_by_force_is_among_the_options_of_what_waits_for_a_human_and_has_the_contracts_call() -> None:
    parked: dict[str, Any] = {"job": {"id": "job-1"}, "attention_since": T0}
    status = shown(standing("cancellation_unconfirmed", {"cancel_force": True}, **parked))
    line = "python starter.py cancel op-1 --force --by ada --reason WHY"
    assert status["attention"]["choices"] == ["resume", "abandon"]
    assert status["attention"]["options"][-1] == {"choice": "cancel --force", "means": FORCED, "commands": [line]}
    assert status["next"][-1] == line
    assert line in attention_text({"items": [status], "next": None}, AT)
    without = shown(standing("cancellation_unconfirmed", {}, **parked))
    assert not any("--force" in one for one in without["next"])


def test_what_was_asked_for_once_and_cannot_be_asked_for_again_is_not_offered() -> None:
    for state in ("cancel_requested", "cancelling", "result_collecting"):
        assert [line.split()[2] for line in shown(standing(state, job={"id": "job-1"}))["next"]] == ["watch"]
