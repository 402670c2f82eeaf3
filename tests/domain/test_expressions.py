"""Expressions read values, have no value where they fail, and stop at their budget."""

import json
import sys
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.language.expressions import MAX_EXPRESSION, BadExpression, Scope, TooMuch, compile_expression, evaluate, first_value

LINK = '<https://x.example/a?page=2>; rel="next last", <https://y.example/>; title="a"; rel=prev, <bad'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("body.list[2].x", True),
        ("body.list[0:2]", [1, 2]),
        ("body.missing", None),
        ("body.null", None),
        ("length(body.number)", None),
        ("last_segment('https://h.example/jobs/a%2Fb/')", "a/b"),
        ("last_segment('https://h.example/')", None),
        ("last_segment('http://[')", None),
        ("last_segment('/%ff')", None),
        ("query_value('/x?a=1&b=', 'b')", ""),
        ("query_value('/x?a=1', 'c')", None),
        ("link(headers.link, 'next')", "https://x.example/a?page=2"),
        ("link(headers.link, 'PREV')", "https://y.example/"),
        ("link(headers.link, 'first')", None),
        ("after('sha256=ab', 'sha256=')", "ab"),
        ("after('md5=ab', 'sha256=')", None),
        ("fields('t=1,v1=a, v1=b,junk', 'v1')", ["a", "b"]),
        ("ms(`1500`)", 1.5),
        ("ms(`2000`)", 2),
        ("epoch('2026-01-01T00:00:00Z')", 1767225600),
        ("epoch('2026-01-01T00:00:00.5Z')", 1767225600.5),
        ("epoch(`1767225600`)", 1767225600),
        ("epoch('never')", None),
        ("epoch(`5`)", None),
        ("http_date('2026-01-01T00:00:00+01:00')", "Wed, 31 Dec 2025 23:00:00 GMT"),
        ("http_date('x')", None),
        ("from_json('{\"a\": [1]}').a[0]", 1),
        ("from_json('{')", None),
        ("lower('AbC')", "abc"),
        ("keep_slashes('a/b')", "a/b"),
        ("sha256_hex('')", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("to_number('12345678901234567890123')", 12345678901234567890123),
        ("to_number('1e2')", 100.0),
        ("to_number('nan')", None),
        ("to_number('1e999')", None),
        ("to_number(`true`)", None),
        ("to_number(`7`)", 7),
        ("to_number(body.list)", None),
        ("to_string(body.list[0])", "1"),
        ("to_string('x')", "x"),
        ("join('-', ['a', 'b'])", "a-b"),
        ("contains(body.list, `true`)", False),
        ("contains(body.list, `1`)", True),
        ("contains('abc', 'b')", True),
        ("contains('abc', `1`)", False),
        ("body.list[0] == `1.0`", True),
        ("body.list[0] == `true`", False),
        ("body.list[0] != 'x'", True),
        ("body.list[0] < `2`", True),
        ("body.none || 'fallback'", "fallback"),
        ("sum([`1e308`, `1e308`])", None),
        ("call.id", "c1"),
        ("callback.url", None),
        ("nothing.at.all", None),
    ],
)
def test_an_expression_gives_its_value(text: str, value: Any) -> None:
    scope = Scope(body={"list": [1, 2, {"x": True}], "null": None, "number": 5}, headers={"link": LINK}, call_id="c1")
    assert evaluate(text, scope) == value


@pytest.mark.parametrize(
    "text", ["lower(", "nope(@)", "lower('a', 'b')", "merge()", "a b", "x" * (MAX_EXPRESSION + 1), "(" * 2000, "", "`{bad`"]
)
def test_what_is_not_an_expression_is_refused(text: str) -> None:
    with pytest.raises(BadExpression):
        compile_expression(text)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("input.a.b", {("input", "a", "b")}),
        ("body.list[?x == '1'].y | [0]", {("body", "list")}),
        ("body.l[0].y", {("body", "l")}),
        ("merge(not_null(input.inputs, `{}`), {sakshi: mark})", {("input", "inputs"), ("mark",)}),
        ("sort_by(body.x, &item.y)", {("body", "x")}),
        ("from_json(text).a", {("text",)}),
        ("body.x.length(@)", {("body", "x")}),
        ("@", {("@",)}),
        ("*.a", {("@",)}),
        ("[0]", {("@",)}),
    ],
)
def test_the_paths_from_the_roots_are_known(text: str, paths: set[tuple[str, ...]]) -> None:
    assert compile_expression(text).paths == paths


def test_only_a_plain_path_is_a_plain_path() -> None:
    assert compile_expression("input.a").plain_path == ("input", "a")
    assert compile_expression("input.a || 'x'").plain_path is None
    assert compile_expression("input.a[0]").plain_path is None


@pytest.mark.parametrize(
    "text",
    [
        "[@, @]" + " | [@, @]" * 40,
        "[@, @]" + " | [@, @]" * 40 + " | to_string(@)",
        "[@, @]" + " | [@, @]" * 40 + " | @ == @",
        "'x'" + " | join('y', [@, @])" * 40,
        "[`1`]" + " | [@, @][]" * 60,
        "body.many[*].[a, b, c, d]",
        "map(&[@, @, @], body.many)",
    ],
)
def test_doubling_and_walking_stop_at_the_budget(text: str) -> None:
    with pytest.raises(TooMuch):
        evaluate(text, Scope(body={"many": cast("Any", [{"a": 1}] * 40_000)}))


def test_a_whole_answer_of_text_can_be_taken_as_a_value() -> None:
    long = "x" * (15 * 1024 * 1024)
    assert evaluate("body", Scope(body=[long])) == [long]


def test_depth_stops_at_the_budget() -> None:
    deep: Any = 1
    for _ in range(63):
        deep = [deep]
    with pytest.raises(TooMuch):
        evaluate("[[body]]", Scope(body=deep))
    with pytest.raises(TooMuch):
        evaluate("!" * 70 + "body", Scope(body=1))


def test_a_stack_that_is_nearly_full_is_too_much_and_not_no_value() -> None:
    def below(frames: int) -> Any:
        return below(frames - 1) if frames else evaluate("[[[body]]]", Scope(body=1))

    outcomes: set[str] = set()
    for frames in range(sys.getrecursionlimit() - 300, sys.getrecursionlimit()):
        try:
            outcomes.add(str(below(frames)))
        except (TooMuch, RecursionError) as error:
            outcomes.add(type(error).__name__)
    assert outcomes == {"[[[1]]]", "TooMuch", "RecursionError"}


def test_the_first_expression_with_a_value_counts() -> None:
    assert first_value(("body.a", "body.b", "body.c"), Scope(body={"b": False, "c": 1})) is False
    assert first_value(("body.a",), Scope()) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(
    json_values,
    st.sampled_from(["body", "to_string(body)", "sort(body)", "keys(body)", "body[*].x", "epoch(body)", "link(body, 'a')", "avg(body)"]),
)
def test_no_value_makes_an_expression_raise(value: Any, text: str) -> None:
    json.dumps(evaluate(text, Scope(body=value)))
