"""Which objects a result has, whatever the answer holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.language.calls import Output
from domain.language.expressions import Scope
from domain.language.stages import Collect
from domain.results.pieces import MAX_NAME, MAX_OBJECTS, lifetime_s, plan, safe_name

FROM = {"request": {"method": "GET", "path": "/x"}}
TOO_MUCH = "observed.body.list" + " | [@, @][]" * 60


def collect(**outputs: dict[str, Any]) -> Collect:
    return Collect.model_validate({"outputs": {name: {"from": FROM, **keys} for name, keys in outputs.items()}})


def over(body: Any) -> Scope:
    return Scope(observed={"body": body})


def test_one_output_written_directly_is_one_piece() -> None:
    found = plan(Collect.model_validate({"from": FROM}), over({}))
    assert [(piece.name, piece.element) for piece in found.pieces] == [("output", None)]


def test_outputs_come_in_the_order_of_their_names_and_what_has_nothing_is_empty() -> None:
    wanted = collect(z={}, a={}, no={"when": {"observed.body.x": {"not": None}}}, nothing={"each": "observed.body.list"})
    found = plan(wanted, over({"list": []}))
    assert ([piece.name for piece in found.pieces], found.empty, found.problem) == (["a", "z"], ("no", "nothing"), None)


def test_elements_have_names_or_numbers_and_their_own_scope() -> None:
    found = plan(collect(a={"each": "observed.body.list", "name": "${each.n}"}), over({"list": [{"n": "x"}, {"n": 7}]}))
    assert [piece.name for piece in found.pieces] == ["a/x", "a/7"]
    assert found.pieces[1].scope(Scope()).each == {"n": 7}
    assert len({piece.mark for piece in found.pieces}) == 2
    numbered = plan(collect(a={"each": "observed.body.list"}), over({"list": ["x", "x"]}))
    assert [piece.name for piece in numbered.pieces] == ["a/1", "a/2"]


@pytest.mark.parametrize(
    ("keys", "body", "said"),
    [
        ({"name": "${each.n}"}, {"list": [{"n": "x"}, {"n": "x"}]}, "a: the elements 1 and 2 have one name, x"),
        ({"name": "${each.n}"}, {"list": [{"n": "x"}, {}]}, "a: the element 2 has no name"),
        ({"name": "${each.n}"}, {"list": [{"n": []}]}, "a: the element 1 has no name"),
        ({"name": "${each.n}"}, {"list": [{"n": ""}]}, "a: the element 1 has no name"),
        ({}, {"list": "x"}, "a: the answer holds no list of elements where the contract says it is"),
        ({}, {}, "a: the answer holds no list of elements where the contract says it is"),
        (
            {},
            {"list": list(range(MAX_OBJECTS + 1))},
            "a: the answer names 1001 elements; one operation keeps 1000 ",
        ),
        ({"each": TOO_MUCH}, {"list": [1, 2]}, "more elements than can be looked at"),
    ],
)
def test_a_list_that_says_not_what_the_result_is_is_a_problem(keys: dict[str, Any], body: Any, said: str) -> None:
    found = plan(collect(a={"each": "observed.body.list", **keys}), over(body))
    assert said in str(found.problem)
    assert found.pieces == ()


def test_objects_of_all_outputs_are_counted_together() -> None:
    found = plan(collect(a={"each": "observed.body.list"}, b={}), over({"list": list(range(MAX_OBJECTS))}))
    assert found.problem == "one operation keeps 1000 objects at most"


def test_a_when_that_is_too_much_does_not_hold() -> None:
    assert plan(collect(a={"when": {TOO_MUCH: 1}}), over({"list": [1, 2]})).empty == ("a",)


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("report-1_a.csv", "report-1_a.csv"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        (".hidden", "%2Ehidden"),
        ("a~b c\0\u202e\ud800", "a%7Eb%20c%00%E2%80%AE%ED%A0%80"),
    ],
)
def test_a_name_is_safe_for_a_file(given_name: str, safe: str) -> None:
    assert safe_name(given_name) == safe


@given(st.text(max_size=200), st.text(max_size=200))
def test_other_names_are_other_safe_names_and_all_are_short_and_plain(one: str, other: str) -> None:
    safe = safe_name(one)
    assert len(safe) <= MAX_NAME
    assert safe.isascii()
    assert "/" not in safe
    assert not safe.startswith(".")
    assert (safe == safe_name(other)) is (one == other)


def test_names_that_differ_at_their_ends_only_stay_apart() -> None:
    assert safe_name("x" * 500 + "a") != safe_name("x" * 500 + "b")


@pytest.mark.parametrize(
    ("good_for", "seconds"),
    [
        (None, None), ("10m", 600), ("${observed.body.n}", 90), ("${observed.body.t}", 1.5), ("${observed.body.none}", None),
        ("${observed.body.l}", None), ("${observed.body.b}", None), ("${observed.body.w}", None), ("${observed.body.nan}", None),
        ("${observed.body.less}", None), ("${observed.body.huge}", None), ("${observed.body.ages}", None), (f"${{{TOO_MUCH}}}", None),
    ],
)  # fmt: skip
def test_a_lifetime_is_a_duration_or_seconds_that_the_provider_says(good_for: str | None, seconds: float | None) -> None:
    body = {"n": 90, "t": "1.5", "l": [], "b": True, "w": "soon", "nan": "nan", "less": -1, "huge": 10**400, "ages": 1e12, "list": [1, 2]}
    assert lifetime_s(Output.model_validate({"from": FROM, "good_for": good_for} if good_for else {"from": FROM}), over(body)) == seconds
