"""A document read in pieces is JSON exactly if it is JSON read whole, and has as many elements."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.jsontext import MAX_DEPTH, NotReadable
from domain.results.jsonstream import JsonStream, read_value

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=30,
)


def stream(text: str, *, piece: int = 7, window: int = 16, longest: int = 100_000) -> int | None:
    reader = JsonStream(window=window, longest=longest)
    for start in range(0, len(text), piece):
        reader.feed(text[start : start + piece])
    reader.finish()
    return reader.records


def count(text: str) -> int | None:
    value = json.loads(text)
    return len(value) if isinstance(value, list) else None


@given(value=JSON, indent=st.sampled_from([None, 0, 3]), ascii=st.booleans(), piece=st.integers(1, 40), window=st.integers(1, 60))
def test_json_is_json_however_it_is_cut(value: Any, indent: int | None, ascii: bool, piece: int, window: int) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    assert stream(text, piece=piece, window=window) == count(text)


@given(
    value=JSON,
    at=st.integers(0, 400),
    put=st.sampled_from(["", ",", "]", "}", "{", "[", '"', ":", "x", "1", "-", "\\", "\n", "\0", "e", "."]),
)
def test_a_damaged_text_is_json_exactly_if_it_still_is(value: Any, at: int, put: str) -> None:
    text = json.dumps(value)
    at %= len(text) + 1
    text = text[:at] + put + text[at + 1 :]
    try:
        expected: int | str | None = count(text)
    except ValueError:
        expected = "not JSON"
    try:
        found: int | str | None = stream(text)
    except NotReadable:
        found = "not JSON"
    assert found == expected


@given(
    values=st.lists(JSON | st.sampled_from(["\ud800", 10**400, 1e308]), min_size=3, max_size=40),
    at=st.integers(0, 4000),
    put=st.sampled_from(["", ",", "]", "}", "{", "[", '"', ":", "x", "1", "NaN", "-Infinity", "\t", "\0", "e", "0"]),
    damaged=st.booleans(),
    piece=st.integers(20, 90),
)
def test_many_elements_at_once_are_what_they_are_one_by_one(values: list[Any], at: int, put: str, damaged: bool, piece: int) -> None:
    text = json.dumps(values)
    if damaged:
        at %= len(text) + 1
        text = text[:at] + put + text[at + 1 :]
    found: list[int | str | None] = []
    for batch, quick in ((2, 4096), (2, -1), (100_000, -1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("domain.results.jsonstream._MIN_BATCH", batch)
            patch.setattr("domain.results.jsonstream._QUICK", quick)
            try:
                found.append(stream(text, piece=piece, window=32))
            except NotReadable:
                found.append("not JSON")
    assert found[0] == found[1] == found[2]


WRONG = [
    "", " ", "nul", "tru", "-", "+1", "01", "1.", ".5", "1e", "1 2", "[1] [2]", "[1]]", "[1,]", "[,1]", "[1 2]", "[1", "{", '{"a"}',
    '{"a":}', '{"a":1,}', '{,"a":1}', '{"a":1 "b":2}', '{a:1}', "{1:1}", '{"a" 1}', '"', '"abc', '"a\nb"', '"\\x"', '"\\u12"', "'a'",
    "NaN", "[NaN]",
    "Infinity", "-Infinity", '{"a":-Infinity}', "// c\n1", "[1]//", "\x0b[1]", "\xa0[1]", "[1\x00]", "]", "}", ":", ",", "[}", "{]",
    '["a":1]', "nullnull", "[1}", "tRue", "1x", '{"a":[1,2,{"b":3]}',
]  # fmt: skip


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize("window", [1, 4, 1000])
@pytest.mark.parametrize("text", WRONG)
def test_what_is_not_json_is_not_readable(text: str, window: int, piece: int) -> None:
    with pytest.raises(NotReadable):
        stream(text, piece=piece, window=window)


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("0", None),
        ("-0.5e-3", None),
        ("1e400", None),
        ("1e99999999999999999999", None),
        ("true", None),
        (" null ", None),
        ('"\\ud800"', None),
        ('"\\\\"', None),
        ('"a\\"b"', None),
        ("{}", None),
        ('{"a":{},"a":[]}', None),
        ("[]", 0),
        (" [ ] ", 0),
        ("[[],[[]]]", 2),
        ('["]","}",",","\\""]', 4),
        ('[{"a":[1,2,{"b":[]}]} , 1 ,\n"x"]\r\n', 3),
    ],
)
def test_what_is_json_is_read(text: str, records: int | None, piece: int) -> None:
    for window in (1, 5, 1000):
        assert stream(text, piece=piece, window=window) == records


@pytest.mark.parametrize("digits", [5_000, 60_000])
def test_a_number_may_have_any_number_of_digits(digits: int) -> None:
    assert stream("[1" + "0" * digits + ",2]", piece=1000, window=64) == 2
    assert read_value("9" * digits)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("window", [16, 100_000])
def test_depth_is_bounded_however_the_text_is_cut(opening: str, window: int) -> None:
    closing = "]" if opening == "[" else "}"
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        text = opening * depth + '"x"' + closing * depth
        text = text if window < 1000 else text.replace('"x"', '"xxxxxxxxx"')
        if depth == MAX_DEPTH:
            stream(text, window=window)
        else:
            with pytest.raises(NotReadable, match="deeper than 64"):
                stream(text, window=window)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_depth_without_end_is_refused_and_costs_no_stack(text: str) -> None:
    for window in (16, 1_000_000):
        with pytest.raises(NotReadable, match="deeper"):
            stream(text, piece=10_000, window=window)
    with pytest.raises(NotReadable):
        read_value(text)


def test_depth_is_bounded_within_a_batch_of_elements() -> None:
    deep = "[" * 60 + "]" * 60
    many = ",".join([deep] * 100)
    assert stream("[" + many + "]", piece=500, window=2_000) == 100
    with pytest.raises(NotReadable, match=r"deeper than 64 \(near character"):
        stream("[[[[[" + many + "]]]]]", piece=500, window=2_000)


@pytest.mark.parametrize("window", [1_500, 4_000, 64_000])
@pytest.mark.parametrize(
    "element",
    [1, "text, with ] and },", {"id": 1}, {"o": {"a": 1}, "l": [{"b": 2}]}, [1, 2], [[1], [2, {"c": []}]], {"k" * 300: "v" * 300}],
    ids=str,
)
def test_elements_are_counted_whatever_they_are(element: Any, window: int) -> None:
    for comma in (",", " ,\n "):
        text = json.dumps([element] * 3_000, separators=(comma, ":"))
        assert stream(text, piece=700, window=window) == 3_000


def test_elements_larger_than_the_window_are_counted_once() -> None:
    assert stream(json.dumps([["x" * 50] * 100] * 30), piece=1_000, window=2_000) == 30
    assert stream(json.dumps([{"k": ["x" * 50] * 100}] * 30), piece=1_000, window=2_000) == 30


def test_a_map_is_read_and_not_counted() -> None:
    members = {f"key {number}": number for number in range(5_000)}
    assert stream(json.dumps(members), piece=1_000, window=2_000) is None
    assert stream(json.dumps({"features": list(range(5_000))}), piece=1_000, window=2_000) is None
    with pytest.raises(NotReadable, match="a key was expected"):
        stream(json.dumps(members)[:-1] + ",7}", piece=1_000, window=2_000)


def test_a_value_longer_than_may_be_held_is_refused() -> None:
    assert stream('"' + "x" * 1_000 + '"', longest=2_000) is None
    with pytest.raises(NotReadable, match="more than 2000 characters"):
        stream('"' + "x" * 5_000 + '"', longest=2_000)
    with pytest.raises(NotReadable, match="more than 2000 characters"):
        stream("[1" + "0" * 5_000 + "]", longest=2_000)
    with pytest.raises(NotReadable, match="more than 2000 characters"):
        stream('{"' + "k" * 5_000 + '":1}', longest=2_000)
    assert stream(json.dumps(["x" * 1_000] * 50), longest=2_000) == 50


def test_a_fault_says_where_and_shows_nothing_of_the_text() -> None:
    with pytest.raises(NotReadable) as fault:
        stream('{"secret": "swordfish" oops}' + " " * 50)
    assert str(fault.value) == "a comma or } was expected (near character 24)"


@pytest.mark.parametrize("text", ["1", "[1,2]", '{"a":null}', '"x"'])
def test_one_value_is_read_whole(text: str) -> None:
    assert read_value(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "1 2", "[1", " 1", "1 ", "NaN", "[" * 65 + "]" * 65])
def test_anything_but_one_value_is_not_readable(text: str) -> None:
    with pytest.raises(NotReadable):
        read_value(text)
