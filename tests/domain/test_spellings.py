"""A text is found however a stranger writes it, and what is found is a place in what he wrote."""

import base64
import html
import json
import re
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.sought import Sought
from domain.spellings import LOOSE_FROM, PASSES, coded_forms, loose_forms, views

TEXT = "Ada Lovelace+ä/5"
RAW = TEXT.encode()


def found(text: str, body: bytes) -> list[bytes]:
    """What of a body the text is found to be."""
    places: list[tuple[int, int]] = []
    for view in views(body):
        for form in loose_forms(text):
            at = view.loose.find(form)
            places += [] if at < 0 else [view.place(at, at + len(form))]
        for coded in coded_forms(text):
            at = view.coded.find(coded.letters)
            places += [] if at < 0 else [view.place_coded(coded, at)]
    return [body[start:end] for start, end in places]


def pairs(text: str) -> str:
    return " ".join(text[index : index + 2] for index in range(0, len(text), 2))


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in capitals": lambda text: text.upper().replace("Ä", "ä"),
    "in small letters": str.lower,
    "with blanks": lambda text: " ".join(text),
    "over several lines": lambda text: text.replace("Love", "Lo\r\n    ve"),
    "with NULs, as UTF-16 has them": "\0".join,
    "in JSON": lambda text: json.dumps(text)[1:-1],
    "in JSON, every character escaped": lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    "in JSON, slashes escaped": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "in JSON in JSON": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "in an address": quote,
    "in an address, all of it": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "in a form": quote_plus,
    "in an address in a form": lambda text: quote_plus(quote(text, safe="")),
    "in an address in JSON in JSON": lambda text: json.dumps(json.dumps(quote(text, safe="").replace("%", "\u0001"))).replace(
        "u0001", "u0025"
    ),
    "in HTML": lambda text: html.escape(text).replace("/", "&#x2F;").replace("ä", "&auml;"),
    "in HTML, every character as a number": lambda text: "".join(f"&#{ord(letter):05d};" for letter in text),
    "in HTML in JSON": lambda text: "".join(f"\\u0026#{ord(letter)};" for letter in text),
    "as bytes of a programming language": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal, in capitals and pairs": lambda text: pairs(text.encode().hex().upper()),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of one that begins with another": lambda text: base64.b64encode(b"user:" + text.encode() + b"; more").decode(),
    "base64 of one that begins with two others": lambda text: base64.b64encode(b"name:" * 2 + text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(b"\xfb\xff" + text.encode() + b"\xff").decode(),
    "base64 in lines": lambda text: base64.encodebytes(b"x" * 50 + text.encode()).decode(),
    "base64 in lines in JSON": lambda text: json.dumps(base64.encodebytes(b"x" * 50 + text.encode()).decode()),
    "base64 in an address": lambda text: quote(base64.b64encode(b"\xfb" + text.encode()), safe=""),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_text_is_found_in_every_spelling(way: str) -> None:
    written = WAYS[way](TEXT)
    before, after = "the holder, ", "; nothing else"
    [*places] = found(TEXT, f"{before}{written}{after}".encode())
    assert places
    for place in places:
        assert place in written.encode()


@pytest.mark.parametrize("lead", range(6))
@pytest.mark.parametrize("length", range(LOOSE_FROM, LOOSE_FROM + 3))
def test_what_base64_leaves_around_a_text_that_was_found_tells_nothing_of_it(lead: int, length: int) -> None:
    secret = bytes(range(97, 97 + length))
    written = base64.b64encode(b"\0" * lead + secret + b"\xff\xff\xff")
    [place] = found(secret.decode(), written)
    start = written.index(place)
    left = base64.b64decode(written[: start - start % 4] + b"A" * 4) + base64.b64decode(written[start + len(place) :][-4:])
    assert not set(left) & set(secret)
    assert len(place) <= (8 * length) // 6 + 3


def test_the_letter_case_of_base64_counts() -> None:
    assert found(TEXT, base64.b64encode(RAW).lower()) == []


@pytest.mark.parametrize("short", ["abc", "a" * (LOOSE_FROM - 1), "      a"])
def test_a_short_text_is_not_sought_for_it_would_be_found_everywhere(short: str) -> None:
    assert loose_forms(short) == ()
    assert coded_forms(short) == ()


def test_blanks_make_no_text_longer() -> None:
    assert set(loose_forms("a b c d e")) == {b"a b c d e".hex().encode(), b"a+b+c+d+e"}


def test_a_text_that_holds_an_escape_itself_is_found_as_it_is_and_as_it_is_read() -> None:
    secret = "key%2Fwith\\u0041&amp;"
    for body in (secret, json.dumps(secret), quote(secret), html.escape(secret), "key/withA&"):
        assert found(secret, body.encode())


def test_escapes_are_undone_as_deep_as_promised_and_no_deeper() -> None:
    written = "%41" * LOOSE_FROM
    for depth in range(1, PASSES + 2):
        assert bool(found("A" * LOOSE_FROM, written.encode())) == (depth <= PASSES)
        written = written.replace("%", "%25")


@given(st.text(min_size=LOOSE_FROM, max_size=40), st.binary(max_size=60), st.binary(max_size=60))
def test_wherever_a_text_stands_its_place_is_found(text: str, before: bytes, after: bytes) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    if loose_forms(text)[0] != raw.hex().encode():
        assert found(text, before + raw + after)
    assert found(text, before + raw.hex().encode() + after)


PIECES = ("\\", "\\u", "\\ud83d", "\\ude00", "00e9", "%", "%e9", "&#", "&#x1F600;", "&amp;", "&#0;", ";", " \0", "é")
ODD = st.lists(st.sampled_from([piece.encode() for piece in PIECES]) | st.binary(max_size=3), max_size=30)


@given(ODD, st.data())
def test_any_bytes_can_be_read_and_every_place_in_a_reading_is_one_in_them(parts: list[bytes], data: st.DataObject) -> None:
    body = b"".join(parts)
    for view in views(body):
        assert len(view.loose) == len(view.coded)
        if view.loose:
            start = data.draw(st.integers(0, len(view.loose) - 1))
            end = data.draw(st.integers(start + 1, len(view.loose)))
            first, last = view.place(start, end)
            assert 0 <= first < last <= len(body)
            if len(view.loose) == len(body):
                assert (first, last) == (start, end) or re.search(rb"[\x80-\xbf]", body)


@given(st.binary(max_size=20), st.text("äé€😀", min_size=1, max_size=6))
def test_no_character_is_parted(before: bytes, text: str) -> None:
    body = before.replace(b"\\", b"") + b"." + text.encode()
    view = next(iter(views(body)))
    for start in range(len(view.loose) - len(text.encode()), len(view.loose)):
        first, last = view.place(start, start + 1)
        assert len(body[first:last].decode()) == 1


@pytest.mark.parametrize(
    "body", [b"\\u0061" * 150_000, b" a" * 500_000, b"%25" * 300_000, b"&#00000000000000065;" * 50_000, b"\\" * 400_000]
)
def test_reading_a_large_body_that_is_all_escapes_takes_no_time_to_speak_of(body: bytes) -> None:
    began = time.process_time()
    for view in views(body):
        view.place(0, len(view.loose))
    assert time.process_time() - began < 8


@given(st.lists(st.text("ab", min_size=1, max_size=6), max_size=6), st.text("ab", max_size=30), st.integers(1, 3))
def test_what_is_sought_is_found_where_it_begins_the_longest_of_several(texts: list[str], text: str, least: int) -> None:
    sought = Sought(texts, least)
    long_enough = [one for one in texts if len(one) >= least]
    assert bool(sought) == bool(long_enough)
    expected: list[tuple[int, str]] = []
    at = 0
    while at < len(text):
        here = max((one for one in long_enough if text.startswith(one, at)), key=len, default=None)
        expected += [] if here is None else [(at, here)]
        at += len(here or "x")
    assert list(sought.finds(text)) == expected
    assert sought.stands_in(text) == bool(expected)
    begun = [at for at in range(len(text) - least + 1) if any(one.startswith(text[at:]) for one in long_enough)]
    assert sought.cut(text) == (begun[0] if begun else None)


def test_many_texts_are_sought_in_a_long_one_as_few_are() -> None:
    many = Sought([f"text {number:04d}" for number in range(2000)], 4)
    assert many.stands_in("x" * 50_000 + "text 1999")
    assert not many.stands_in("x" * 50_000 + "text 2000")
