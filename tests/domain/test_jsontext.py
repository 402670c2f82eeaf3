"""Input is refused where it can't be carried; answers are read without harm."""

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import BadInput
from domain.jsontext import MAX_INPUT_BYTES, NotReadable, check_carriable, equal, number_text, parse_answer, parse_input


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'"' + b"x" * MAX_INPUT_BYTES + b'"', "over 262144"),
        (b'{"a": 1, "a": 2}', "'a' twice"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "Infinity"),
        (b"[1e400]", "not finite"),
        (b"[9007199254740992]", "2^53"),
        (b"[" + b"9" * 5000 + b"]", "2^53"),
        (b'{"a": "\\ud800"}', "lone surrogate at $.a"),
        (b'{"\\ud800": 1}', "lone surrogate"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b"[" * 100_000, "deeper than 64"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b'{"a": ]', "line 1, column 7"),
    ],
)
def test_input_that_canonical_json_cannot_carry_is_refused_with_the_reason(data: bytes, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_input(data)
    assert said in caught.value.message


def test_input_that_fits_is_taken_with_its_types() -> None:
    assert parse_input(b'{"a": [1, 1.5, true, null, "x", -9007199254740991]}') == {"a": [1, 1.5, True, None, "x", -9007199254740991]}


def test_a_value_from_elsewhere_is_checked_for_numbers_that_are_not_finite() -> None:
    with pytest.raises(BadInput, match="not finite at"):
        check_carriable({"a": [math.inf]})


def test_numbers_that_no_machine_type_holds_become_their_own_text() -> None:
    digits = "1" * 5000
    assert parse_answer(f'{{"big": {digits}, "far": 1e400}}') == {"big": digits, "far": "1e400"}


def test_integers_keep_all_digits() -> None:
    assert parse_answer("123456789012345678901234567890") == 123456789012345678901234567890


def test_a_lone_surrogate_is_replaced_in_values_and_keys() -> None:
    assert parse_answer('{"\\ud800k": ["\\ud800", 1, "\\u0041", "\\ud83d\\ude00"]}') == {
        "\ufffd\ufffd\ufffdk": ["\ufffd\ufffd\ufffd", 1, "A", "😀"]
    }


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "[" * 100_000, "[" * 65 + "]" * 65, "[" + "1," * 250_000 + "1]", ""])
def test_what_is_not_json_or_too_much_is_not_readable(text: str) -> None:
    with pytest.raises(NotReadable):
        parse_answer(text)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        ("1", 1, False),
        ([1, {"a": True}], [1.0, {"a": True}], True),
        ([1], [True], False),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 2], False),
        (None, None, True),
    ],
)
def test_equality_is_that_of_json(left: Any, right: Any, same: bool) -> None:
    assert equal(left, right) is same


@pytest.mark.parametrize(("value", "text"), [(10**30, "1" + "0" * 30), (1.5, "1.5"), (1e21, "1e+21")])
def test_numbers_are_written_with_all_their_digits(value: float, text: str) -> None:
    assert number_text(value) == text


@given(st.text())
def test_any_text_is_read_or_not_readable(text: str) -> None:
    with contextlib.suppress(NotReadable):
        parse_answer(text)
