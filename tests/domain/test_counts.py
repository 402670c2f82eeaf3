"""Counts decide an ended job only where they say all that is needed, and figures that don't fit each other say nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.counts import Counted, complete, named_counts, outcome_of, read_counts
from domain.language.expressions import Scope
from domain.language.stages import Counts
from domain.reading import read_observe
from domain.standing import counts_text
from tests.domain.sample_contract import answer, sample
from tests.domain.test_reading import NOW, SCOPE

WORDS = ("succeeded", "failed", "cancelled", "expired", "unprocessed")
NAMES = ("total", "done", *WORDS)
ALL = Counts.model_validate({name: f"body.{name}" for name in NAMES})
TOO_MUCH = "body" + " | [@, @]" * 40


def counted(**given: int) -> Counted:
    return complete(given, named=tuple(given))


def whole(**words: int) -> dict[str, int]:
    found = dict.fromkeys(WORDS, 0) | words
    done = sum(found[word] for word in WORDS[:-1])
    return found | {"done": done, "total": done + found["unprocessed"]}


@given(st.tuples(*[st.integers(0, 10_000)] * 5), st.sets(st.sampled_from(NAMES)))
def test_whatever_of_true_counts_is_given_nothing_that_follows_is_false(numbers: tuple[int, ...], names: set[str]) -> None:
    true = whole(**dict(zip(WORDS, numbers, strict=True)))
    found = complete({name: true[name] for name in names}, named=NAMES)
    assert found.problem is None
    assert all(true[name] == number for name, number in found.counts.items())
    assert names <= found.counts.keys()


@given(st.tuples(*[st.integers(0, 100)] * 7))
def test_seven_counts_say_something_if_and_only_if_they_add_up(numbers: tuple[int, ...]) -> None:
    total, done, *rest = numbers
    found = complete(dict(zip(NAMES, numbers, strict=True)), named=NAMES)
    assert (found.problem is None) is (done == sum(rest[:-1]) and total == done + rest[-1])
    assert bool(found.counts) is (found.problem is None)


@given(st.tuples(*[st.integers(0, 50)] * 5))
def test_all_counts_decide_by_what_succeeded_of_all(numbers: tuple[int, ...]) -> None:
    found = complete(dict(zip(WORDS, numbers, strict=True)), named=WORDS)
    expected = "whole" if not any(numbers[1:]) else "partial" if numbers[0] else "none"
    assert outcome_of(found.counts) == expected


def test_a_batch_that_counts_total_completed_and_failed_leaves_the_rest_unprocessed() -> None:
    found = counted(total=100, succeeded=50, failed=2)
    assert found.counts == whole(succeeded=50, failed=2, unprocessed=48)
    assert outcome_of(found.counts) == "partial"


def test_a_load_that_counts_done_and_failed_has_succeeded_with_the_rest_of_them() -> None:
    assert counted(done=500, failed=2).counts == whole(succeeded=498, failed=2)


def test_nothing_is_presumed_of_failures_or_of_what_the_contract_reads_and_the_answer_lacks() -> None:
    assert outcome_of(counted(total=10, done=10).counts) is None
    assert outcome_of(counted(succeeded=10).counts) is None
    assert outcome_of(complete({"succeeded": 8, "failed": 0}, named=("succeeded", "failed", "expired")).counts) is None
    assert outcome_of(counted(total=10, succeeded=8).counts) == "partial"
    assert "failed" not in counted(total=10, succeeded=8).counts


def test_a_job_without_items_is_whole() -> None:
    assert outcome_of(counted(total=0, succeeded=0).counts) == "whole"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"done": 5, "failed": 7}, "succeeded would be -2"),
        ({"total": 5, "done": 6}, "unprocessed would be -1"),
        ({"total": 5, "succeeded": 6}, "6 succeeded are not 5 total"),
        ({"done": 3, "succeeded": 1, "failed": 1, "cancelled": 0, "expired": 0}, "1 succeeded and 1 failed are not 3 done"),
    ],
)
def test_counts_that_contradict_each_other_are_said_and_claim_nothing(given: dict[str, int], says: str) -> None:
    found = counted(**given)
    assert found.counts == {}
    assert says in str(found.problem)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("12", "no number"), (True, "no number"), ([], "no number"), ({}, "no number"), (-1, "negative"), (-0.5, "negative"),
        (1.5, "no whole number"), (2**53, "no whole number"), (1e300, "no whole number"),
    ],
)  # fmt: skip
def test_what_is_no_count_is_said_and_nothing_is_claimed(value: Any, says: str) -> None:
    found = read_counts(ALL, Scope(body={"succeeded": 3, "failed": value}))
    assert found.counts == {}
    assert found.problem is not None
    assert found.problem.startswith("the count failed is ")
    assert says in found.problem


def test_a_whole_number_is_a_count_however_it_is_written() -> None:
    body: dict[str, Any] = dict.fromkeys(NAMES, 0) | {"total": 2.0, "done": 2, "failed": 2}
    assert read_counts(ALL, Scope(body=body)).counts["total"] == 2


def test_an_answer_without_counts_and_a_contract_without_them_say_nothing() -> None:
    assert read_counts(ALL, Scope(body={"total": None})) == Counted()
    assert read_counts(None, Scope(body={"total": 3})) == Counted()


def test_a_count_that_costs_too_much_to_read_is_said() -> None:
    wanted = Counts.model_validate({"total": TOO_MUCH})
    assert named_counts(wanted) == ("total",)
    assert read_counts(wanted, Scope(body={"a": 1})).problem == "the count total is more than is read"


def test_counts_are_told_in_words_without_those_of_which_there_are_none() -> None:
    assert counts_text(whole(succeeded=498, failed=2)) == "498 succeeded, 2 failed of 500"
    assert counts_text({"done": 5}) == "5 done"
    assert counts_text({"total": 7}) == "7"
    assert counts_text({"submitted": None, "succeeded": 0}) == "0 succeeded"
    assert counts_text({"disagreements": ["x"]}) is None
    assert counts_text(None) is None


# --- as a status reads them ---------------------------------------------------------------------------------------------

STATES = [{"when": {"body.state": "over"}, "is": "ended"}, {"when": {"body.state": "busy"}, "is": "running"}]
ENDED = sample(
    observe__states=STATES, observe__counts={"total": "body.n", "succeeded": "body.ok", "failed": "body.bad"}, collect__partial="failed"
)


def read(**body: Any) -> Any:
    return read_observe(ENDED, answer(200, json.dumps(body).encode()), SCOPE, NOW)


@pytest.mark.parametrize(("ok", "bad", "verdict"), [(3, 0, "succeeded"), (2, 1, "partial"), (0, 3, "failed"), (1, 1, "partial")])
def test_an_ended_job_came_to_what_its_counts_say(ok: int, bad: int, verdict: str) -> None:
    reading = read(state="over", n=3, ok=ok, bad=bad)
    assert (reading.meaning, reading.word, reading.verdict, reading.undecided) == ("terminal", "ended", verdict, False)
    assert reading.counts["total"] == 3


@pytest.mark.parametrize(("body", "problem"), [({}, None), ({"n": "3", "ok": 3, "bad": 0}, "the count total is no number")])
def test_an_ended_job_without_counts_to_go_by_is_undecided(body: dict[str, Any], problem: str | None) -> None:
    reading = read(state="over", **body)
    assert (reading.verdict, reading.undecided, reading.counts, reading.counts_problem) == ("partial", True, None, problem)


def test_progress_is_what_the_counts_say_where_the_contract_names_none() -> None:
    assert read(state="busy", n=10, ok=4, bad=1).progress == {"completed": 5, "total": 10}
    assert read(state="busy", ok=4, bad=1).progress == {"completed": 5}
    assert read(state="busy").progress is None
