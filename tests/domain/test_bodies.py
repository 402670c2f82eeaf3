"""A body is what its content type says it is, or it has a fault."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.bodies import MAX_TEXT, Decoded, decode, headers_root, media_type
from domain.exchange import Answer


def typed(media: str, body: bytes) -> Decoded:
    return decode(Answer(200, (("content-type", media),) if media else (), body))


@pytest.mark.parametrize(
    ("media", "body", "decoded"),
    [
        ("application/json", b'{"a": 1}', Decoded(body={"a": 1})),
        ("application/json; charset=UTF-8", b'\xef\xbb\xbf{"a": 1}', Decoded(body={"a": 1})),
        ("application/problem+json", b"[1]", Decoded(body=[1])),
        ("application/json", b"null", Decoded()),
        ("application/json", b"", Decoded()),
        ("application/json", b"<html>", Decoded(fault="undecodable")),
        ("application/json", b'"\xff"', Decoded(fault="undecodable")),
        ("application/json", b"[NaN]", Decoded(fault="undecodable")),
        ("application/json; charset=latin-1", b'"\xe9"', Decoded(fault="undecodable")),
        ("application/json", b"[" * 200_000, Decoded(fault="undecodable")),
        ("", b' {"a": 1}', Decoded(body={"a": 1})),
        ("", b"{a}", Decoded(text="{a}")),
        ("", b"plain", Decoded(text="plain")),
        ("text/html", b'{"a": 1}', Decoded(text='{"a": 1}')),
        ("text/plain", b"\xff", Decoded(fault="undecodable")),
        ("text/plain", b"x" * (MAX_TEXT + 9), Decoded(text="x" * MAX_TEXT)),
        ("text/event-stream", b'event: a\ndata: {"n": 1}\n\nid: 2\r\ndata: {"n":\r\ndata: 2}\r\n\r\n: comment\n\n', Decoded(body={"n": 2})),
        ("text/event-stream", b'data:{"n": 3}', Decoded(body={"n": 3})),
        ("text/event-stream", b": nothing\n\n", Decoded()),
        ("text/event-stream", b"data: done\n\n", Decoded(fault="undecodable")),
        ("text/event-stream", b"data: \xff\n\n", Decoded(fault="undecodable")),
    ],
)
def test_a_body_is_read_as_its_type_says(media: str, body: bytes, decoded: Decoded) -> None:
    assert typed(media, body) == decoded


@pytest.mark.parametrize("fault", ["cut", "oversized", "encoding", "slow", "undecodable"])
def test_a_body_that_was_not_read_whole_keeps_its_fault(fault: Any) -> None:
    assert decode(Answer(200, (("content-type", "application/json"),), b"{}", fault)) == Decoded(fault=fault)


def test_headers_are_named_as_expressions_name_them() -> None:
    answer = Answer(200, (("retry-after", "3"), ("link", "a"), ("link", "b")))
    assert headers_root(answer) == {"retry_after": "3", "link": "a, b"}


def test_a_content_type_has_a_media_type_and_a_charset() -> None:
    assert media_type('Text/CSV; header=present; charset="UTF-8"') == ("text/csv", "utf-8")


@given(st.binary(max_size=300), st.sampled_from(["application/json", "text/event-stream", "text/plain", "", "x/y;charset"]))
def test_any_bytes_are_decoded(body: bytes, media: str) -> None:
    decoded = typed(media, body)
    assert decoded.fault in (None, "undecodable")
