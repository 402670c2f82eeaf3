"""A value of an answer is the same bytes for whoever stores or measures it."""

import pytest

from domain.evidence import Json
from domain.results.counting import Format
from domain.results.inline import inline_bytes


@pytest.mark.parametrize(
    ("value", "format", "data"),
    [
        ("a,b\r\n", "csv", b"a,b\r\n"),
        ("\ud800", "text", b"?"),
        ("a", "json", b'"a"'),
        ([{"b": 1, "a": "é"}, 2], "jsonl", '{"b":1,"a":"é"}\n2\n'.encode()),
        ({"b": 1, "a": 2}, "json", b'{"a":2,"b":1}'),
        ({"b": 1, "a": 2}, "text", b'{"a":2,"b":1}'),
        ({"b": 2**60, "a": 1}, "json", b'{"b":1152921504606846976,"a":1}'),
    ],
)
def test_a_value_is_written_as_its_format_asks(value: Json, format: Format, data: bytes) -> None:
    assert inline_bytes(value, format) == data
