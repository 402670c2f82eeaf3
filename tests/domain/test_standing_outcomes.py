"""What the fold remembers of counts and outcomes, and what is said of them."""

from typing import Any

import pytest

from domain.evidence import Output, Ref
from domain.lifecycle import why_it_waits, why_of
from tests.domain.growing import Stream, at, standing, told

RUNNING = (
    "policy.unattended",
    "intent.create",
    ("exchange.accepted", {"attempt": 1, "job": {"id": "j1"}}),
    ("reading.going", {"counts": {"done": 1}}),
)


def going(**facts: Any) -> Stream:
    return told(*RUNNING, **facts)


def test_counts_on_the_way_are_kept_until_newer_ones_come() -> None:
    stream = going()
    stream.hear("reading.going", at(5))
    assert stream.standing.counts == {"done": 1}
    stream.hear("reading.going", at(6), counts={"done": 2})
    assert stream.standing.counts == {"done": 2}


def test_the_counts_of_the_first_terminal_observation_are_kept_for_ever() -> None:
    stream = going(collect_after=("succeeded",), terminal_is_final=False)
    stream.hear("reading.terminal", at(5), verdict="succeeded", counts={"total": 3, "succeeded": 3})
    stream.hear("reading.terminal", at(6), verdict="succeeded", counts={"total": 9}, began=at(6))
    assert (stream.standing.state, stream.standing.counts) == ("result_collecting", {"total": 3, "succeeded": 3})


def test_counts_that_claim_nothing_at_the_end_are_none_and_old_ones_do_not_stand_for_them() -> None:
    stream = going()
    stream.hear("reading.terminal", at(5), verdict="partial", word="ended", undecided=True, counts_problem="the count total is no number")
    assert (stream.standing.counts, stream.standing.counts_problem) == (None, "the count total is no number")
    assert stream.standing.verdict is not None
    assert stream.standing.verdict.undecided


@pytest.mark.parametrize(
    ("first", "later", "renewed"),
    [
        ({"verdict": "partial"}, {"verdict": "partial"}, True),
        ({"verdict": "partial"}, {"verdict": "succeeded"}, False),
        ({"verdict": "partial", "undecided": True}, {"verdict": "succeeded"}, True),
        ({"verdict": "succeeded"}, {"verdict": "partial", "undecided": True}, True),
    ],
)
def test_addresses_are_renewed_by_a_reading_of_the_same_end(first: dict[str, Any], later: dict[str, Any], renewed: bool) -> None:
    stream = going()
    stream.hear("reading.terminal", at(5), word="ended", **first)
    stream.hear("reading.terminal", at(6), word="ended", observed=Ref(digest="a" * 64, size=1).model_dump(), **later)
    assert (stream.standing.renewed is not None) is renewed
    assert stream.standing.verdict is not None
    assert stream.standing.verdict.verdict == first["verdict"]


def test_a_collected_outcome_is_remembered_with_its_list() -> None:
    stream = going()
    listed = Output(name="failed-items", key="k", sha256="a" * 64, size=3)
    stream.hear("reading.terminal", at(5), verdict="partial")
    stream.hear("result.verified", at(6), outcome="none", items={"failed": 3}, failed_items=listed.model_dump())
    kept = stream.standing
    assert (kept.state, kept.outcome, kept.items, kept.failed_items) == ("failed", "none", {"failed": 3}, listed)


def test_items_are_told_before_the_counts_of_the_provider() -> None:
    counts = {"total": 5, "succeeded": 5}
    assert standing("observing").counted is None
    assert standing("observing", counts=counts).counted == "5 succeeded of 5"
    assert (
        standing("succeeded", counts=counts, items={"submitted": 5, "succeeded": 4, "missing": 1}).counted == "4 succeeded, 1 missing of 5"
    )
    assert standing("succeeded", items={"disagreements": ["a", "b"]}).disagreements == ("a", "b")
    assert standing("succeeded", items={"disagreements": "a"}).disagreements == ()


def test_why_a_human_is_asked_says_what_does_not_agree() -> None:
    items: Any = {"submitted": 5, "succeeded": 4, "missing": 1, "disagreements": ["one", "two", "three", "four"]}
    undecided = standing("outcome_undecided", items=items, outcome="partial")
    assert str(why_it_waits(undecided)).startswith("what was said of the outcome does not agree")
    assert str(why_of(undecided)).endswith("4 succeeded, 1 missing of 5; one; two; three")
    quiet = standing("outcome_undecided", outcome="partial", why="the provider's own")
    assert str(why_of(quiet)).endswith("to say: the provider's own")


def test_why_an_operation_failed_by_what_the_contract_takes_partial_for_is_said() -> None:
    assert why_of(standing("failed", outcome="partial", items={"succeeded": 1, "failed": 2})) == (
        "as the contract takes it: 1 succeeded, 2 failed"
    )
    assert why_of(standing("failed", outcome="partial")) == "as the contract takes it: the job was done in part only"
    assert why_of(standing("failed", why="no such account", counts={"failed": 3})) == "no such account"
    assert why_of(standing("failed", counts={"total": 3, "failed": 3})) == "3 failed of 3"
