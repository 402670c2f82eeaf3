"""A match holds or not; nothing in between, and no conversion."""

from typing import Any

import pytest
from pydantic import JsonValue

from domain.language.expressions import Scope
from domain.language.matching import BadMatch, check_match, compare, holds, roots_of, sameness
from domain.language.matching import tested as looked_at
from domain.language.patterns import BadPattern, pattern

SCOPE = Scope(
    status=404,
    phase="seen",
    body={"n": 1, "t": "Text", "l": [1], "empty": [], "when": "2026-01-01T00:00:00Z", "flag": True, "num": "1"},
    job={"id": "7"},
)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({}, True),
        ({"body.n": 1}, True),
        ({"body.n": 1.0}, True),
        ({"body.n": True}, False),
        ({"body.num": 1}, False),
        ({"body.t": "Text", "body.n": 2}, False),
        ({"body.t": "text"}, False),
        ({"body.t": {"pattern": "(?i)te.t"}}, True),
        ({"body.t": {"pattern": "ex"}}, False),
        ({"body.n": {"pattern": "1"}}, False),
        ({"body.z": None}, True),
        ({"body.n": None}, False),
        ({"body.n": {"not": None}}, True),
        ({"body.z": {"not": None}}, False),
        ({"body.empty": [None, []]}, True),
        ({"body.empty": {"not": [None, []]}}, False),
        ({"body.l": [None, []]}, False),
        ({"body.t": ["a", {"pattern": "T.*"}]}, True),
        ({"body.n": {"min": 1, "max": 1}}, True),
        ({"body.n": {"min": 2}}, False),
        ({"body.n": {"max": 0}}, False),
        ({"body.flag": {"min": 0}}, False),
        ({"body.t": {"min": 0}}, False),
        ({"body.when": {"min": "2025-12-31T23:00:00-02:00"}}, False),
        ({"body.when": {"max": "2026-01-01T01:00:00+01:00"}}, True),
        ({"body.t": {"max": "2026-01-01T01:00:00+01:00"}}, False),
        ({"body.when": {"min": "${window.from}"}}, False),
        ({"status": "4xx"}, True),
        ({"status": "2xx"}, False),
        ({"status": "400..404"}, True),
        ({"status": {"not": "5xx"}}, True),
        ({"body.t": "4xx"}, False),
        ({"job.id": "${job.id}"}, True),
        ({"body.z": "${job.z}"}, False),
        ({"body.z": "x${job.z}"}, False),
        ({"contains(body.l, `1`)": True}, True),
    ],
)
def test_a_match_holds_or_not(match: dict[str, Any], expected: bool) -> None:
    check_match(match)
    assert holds(match, SCOPE) is expected


def test_nothing_or_an_empty_list_is_written_with_a_list_in_a_list() -> None:
    with pytest.raises(BadMatch, match="no list within a list"):
        check_match({"body.l": [None, [1]]})
    assert holds({"body.empty": [None, []]}, Scope(body={})) is True


def test_what_a_key_came_to_is_kept_for_the_next_match_and_only_as_far_as_it_was_asked_for() -> None:
    read: dict[str, JsonValue] = {}
    scope = Scope(status=200, body={"state": "done", "code": 1})
    assert not holds({"body.state": "open", "body.code": 1}, scope, read)
    assert read == {"body.state": "done"}
    assert holds({"body.state": "done", "body.none": None}, scope, read)
    assert read == {"body.state": "done", "body.none": None}
    read["body.state"] = "open"
    assert holds({"body.state": "open"}, scope, read)


def test_a_range_holds_for_integers_alone() -> None:
    assert holds({"status": "2xx"}, Scope()) is False


@pytest.mark.parametrize(
    ("match", "path"),
    [
        ({"body.": 1}, ("body.",)),
        ({"body.a": "${"}, ("body.a",)),
        ({"body.a": {"minimum": 1}}, ("body.a", "minimum")),
        ({"body.a": {}}, ("body.a",)),
        ({"body.a": {"not": 1, "min": 1}}, ("body.a",)),
        ({"body.a": {"min": True}}, ("body.a", "min")),
        ({"body.a": {"min": "yesterday"}}, ("body.a", "min")),
        ({"body.a": {"pattern": "(?=x)"}}, ("body.a", "pattern")),
        ({"body.a": {"pattern": 1}}, ("body.a", "pattern")),
        ({"body.a": [1, {"not": {"pattern": "("}}]}, ("body.a", 1, "not", "pattern")),
    ],
)
def test_what_is_not_a_match_is_refused_with_its_path(match: dict[str, Any], path: tuple[Any, ...]) -> None:
    with pytest.raises(BadMatch) as caught:
        check_match(match)
    assert caught.value.path == path


def test_sameness_tells_a_difference_from_a_missing_value() -> None:
    match = {"body.id": "${job.id}", "body.kind": "report"}
    assert sameness(match, Scope(body={"id": "7", "kind": "report"}, job={"id": "7"})) == "same"
    assert sameness(match, Scope(body={"kind": "report"}, job={"id": "7"})) == "missing"
    assert sameness(match, Scope(body={"kind": "other"}, job={"id": "7"})) == "differs"
    assert sameness({"body.id": ["${job.id}", None]}, Scope(body={}, job={"id": "7"})) == "same"


def test_the_roots_of_a_match_are_those_of_keys_and_templates() -> None:
    assert roots_of({"body.a": ["${job.id}", {"pattern": "${x}"}], "status": "2xx"}) == {"body", "job", "status"}


def test_what_was_tested_is_the_first_plain_value_of_the_body() -> None:
    assert looked_at({"status": 200, "body.l": 1, "body.t": "x"}, SCOPE) == "Text"
    assert looked_at({"status": 200}, SCOPE) is None


@pytest.mark.parametrize(
    ("left", "right", "order"), [(1, 2, -1), (2, 1, 1), (1, 1.0, 0), ("a", "b", None), (1, "1", None), (None, 1, None)]
)
def test_only_numbers_and_times_have_an_order(left: Any, right: Any, order: int | None) -> None:
    assert compare(left, right) == order


def test_a_pattern_takes_any_text_and_no_bad_pattern() -> None:
    assert pattern("a.*").matches("\ud800") is False
    assert pattern("(a)(b)?").find_all("ab a") == [("a", "b"), ("a", "")]
    assert pattern("a").find_all("\ud800") == []
    for text in ("(", "(?=a)", "\\1", "\ud800"):
        with pytest.raises(BadPattern):
            pattern(text)
