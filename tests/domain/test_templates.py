"""Templates expand in one pass; a hole keeps its type alone and becomes text within text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import RenderError
from domain.language.expressions import Scope
from domain.language.templates import BadTemplate, compile_template, fill, fill_text, fill_tree

SCOPE = Scope(input={"a": 1, "b": "x", "c": [1], "d": True, "e": "${input.b}", "n": None})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${input.a}", 1),
        ("${input.c}", [1]),
        ("${input.z}", None),
        ("v${input.a}-${input.b}-${input.d}", "v1-x-true"),
        ("$${input.a}", "${input.a}"),
        ("cost: $5 {x}", "cost: $5 {x}"),
        ("", ""),
        ("${input.z || 'no}ne'}", "no}ne"),
        ("${ {k: input.a} }", {"k": 1}),
        ('${input.z || `"}"`}!', "}!"),
        ("${input.z || 'it\\'s'}", "it's"),
        ("${input.e}", "${input.b}"),
        (">${input.e}<", ">${input.b}<"),
    ],
)
def test_a_template_gives_its_value(text: str, value: Any) -> None:
    assert fill(text, SCOPE) == value


@pytest.mark.parametrize("text", ["${", "${input.a", "${}", "${input.a)}", "${'x}", "${foo(}", "${(input.a}"])
def test_what_is_not_a_template_is_refused(text: str) -> None:
    with pytest.raises(BadTemplate):
        compile_template(text)


@pytest.mark.parametrize("text", ["v${input.z}", "v${input.c}", "v${input.n}"])
def test_longer_text_needs_a_plain_value(text: str) -> None:
    with pytest.raises(RenderError):
        fill(text, SCOPE)


def test_a_value_that_is_too_much_is_not_sent() -> None:
    with pytest.raises(RenderError, match="more than may be evaluated"):
        fill_text("${[@, @]" + " | [@, @]" * 40 + "}", Scope())


def test_a_map_key_without_a_value_is_left_out_and_a_list_element_is_an_error() -> None:
    assert fill_tree({"a": "${input.a}", "z": "${input.z}", "n": None, "k": {"z": "${input.z}"}, "l": ["${input.b}", 2]}, SCOPE) == {
        "a": 1,
        "n": None,
        "k": {},
        "l": ["x", 2],
    }
    with pytest.raises(RenderError):
        fill_tree(["${input.z}"], SCOPE)


@given(st.text())
def test_expansion_is_one_pass(text: str) -> None:
    assert fill("${input.t}", Scope(input={"t": text})) == text
    assert fill("<${input.t}>", Scope(input={"t": text})) == f"<{text}>"


@given(st.text())
def test_text_whose_holes_are_escaped_comes_out_as_it_was(text: str) -> None:
    escaped = text.replace("${", "$${")
    assert "$${" in text or fill(escaped, Scope()) == text
