"""A contradiction says which field it is, what was due and what was found, and shows no value that no entry holds."""

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.contradictions import DIFFERS, MAX_EXPECTED, MAX_VALUE, contradiction, contradiction_text
from domain.evidence import recordable
from domain.fingerprint import canonical
from domain.language.expressions import Scope
from domain.language.matching import Difference, difference
from domain.lifecycle import why_of
from domain.standing import Standing
from tests.domain.growing import standing

SALT = b"s" * 32
SCOPE = Scope(
    status=200, job={"id": "job-1"}, input={"account": "a-1"}, steps={"upload": {"id": "u-1"}}, operation={"id": "op-1"},
    body={"id": "job-2", "account": "a-2", "kind": None, "list": [1, 2], "named": {"a": 1}, "flag": True, "many": 10**20, "half": 0.5},
)  # fmt: skip


def said(match: Any, scope: Scope = SCOPE, **more: Any) -> dict[str, Any]:
    return contradiction("the status", difference(match, scope), "otherwise", salt=SALT, **more)


@pytest.mark.parametrize(
    ("match", "field", "expected", "found"),
    [
        ({"body.id": "${job.id}"}, "body.id", ["job-1"], "job-2"),
        ({"body.id": ["${job.id}", None]}, "body.id", ["job-1", "no value"], "job-2"),
        ({"body.account": "a-2", "body.id": "${job.id}"}, "body.id", ["job-1"], "job-2"),
        ({"body.kind": "report", "body.account": {"not": "a-2"}}, "body.account", ["not a-2"], "a-2"),
        ({"body.half": {"min": 1, "max": 2}}, "body.half", ["min 1, max 2"], "0.5"),
        ({"body.list": "x"}, "body.list", ["x"], "a list of 2"),
        ({"body.list": [[]]}, "body.list", ["a list of 0"], "a list of 2"),
        ({"body.named": "x"}, "body.named", ["x"], "an object of 1"),
        ({"body.flag": False}, "body.flag", ["false"], "true"),
        ({"body.many": 7}, "body.many", ["7"], str(10**20)),
        ({"body.id": "${job.no}"}, "body.id", ["no value"], "job-2"),
        ({"status": "4xx"}, "status", ["4xx"], "200"),
        ({"status": ["201", "4xx"]}, "status", ["201", "4xx"], "200"),
    ],
)
def test_the_first_field_that_differs_is_named_with_what_was_due_and_found(match: Any, field: str, expected: Any, found: str) -> None:
    recorded = said(match)
    assert (recorded["field"], recorded["expected"], recorded["found"]) == (field, expected, found)
    assert recorded == recordable(recorded)


def test_only_where_a_job_is_compared_it_is_said_to_be_another_job() -> None:
    assert said({"body.id": "${job.id}"})["why"] == "the status names another job than the one asked for"
    assert said({"body.account": "${operation.id}"})["why"] == "the status shows something else than was asked for"


@pytest.mark.parametrize("template", ["${input.account}", "${steps.upload.id}", "${job.id}-${input.account}"])
def test_what_no_entry_holds_is_recorded_as_a_digest_that_only_the_salt_can_test(template: str) -> None:
    recorded = said({"body.account": template})
    assert recorded["expected"][0].startswith("salted digest ")
    assert recorded["found"].startswith("salted digest ")
    assert recorded["found"] != recorded["expected"][0]
    assert not any(value in str(recorded) for value in ("a-1", "a-2", "u-1"))
    again = contradiction("the status", difference({"body.account": template}, SCOPE), "otherwise", salt=b"t" * 32)
    assert again["found"] != recorded["found"]


def test_equal_values_have_equal_digests() -> None:
    first = said({"body.account": "${input.account}"})
    other = said({"body.account": "${input.account}"}, replace(SCOPE, input={"account": "a-9"}))
    assert first["found"] == other["found"]
    assert first["expected"] != other["expected"]


def test_nothing_differs_where_it_is_the_same_or_not_there() -> None:
    assert difference({"body.id": "job-2"}, SCOPE) is None
    assert difference({"body.nothing": "job-2"}, SCOPE) is None
    assert said({"body.id": "job-2"}, word="mismatch") == {"why": "otherwise", "word": "mismatch"}


def test_a_difference_that_is_too_much_to_look_at_is_none() -> None:
    assert difference({"[`1`]" + " | [@, @][]" * 60: "x"}, SCOPE) is None


def test_a_contradiction_is_one_line() -> None:
    line = "the status names another job than the one asked for: body.id is job-2, where job-1 or no value is due"
    assert contradiction_text(said({"body.id": ["${job.id}", None]})) == line
    assert contradiction_text({"why": DIFFERS}) == DIFFERS
    assert contradiction_text({"field": "body.id"}) is None


@pytest.mark.parametrize("violation", [{}, {"job": "j"}])
def test_one_without_words_says_what_else_is_known(violation: Any) -> None:
    parked: Standing = standing("contract_violation", violation=violation, why="the provider's words")
    assert "the provider's words" in str(why_of(parked))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
        max_leaves=8,
    )
)
def test_whatever_was_found_is_bounded_and_can_be_recorded(value: Any) -> None:
    for roots in (frozenset[str](), frozenset({"input"})):
        recorded = contradiction("the status", Difference("body.x", (value,) * 99, value, roots), "otherwise", salt=SALT)
        canonical(recordable(recorded))
        assert recorded == recordable(recorded)
        assert len(str(recorded["found"])) <= MAX_VALUE + 200
        assert len(cast("list[str]", recorded["expected"])) == MAX_EXPECTED
