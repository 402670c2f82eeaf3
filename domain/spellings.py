"""Other ways in which a text may stand in what a stranger sends back, and how to find it there.

* Found is a text of `LOOSE_FROM` characters or more: as it is, in another case of the letters a to z, with blanks, line breaks or NULs
  added, in hexadecimal, and in base64 of either alphabet, also in the middle of something longer that was encoded with it; and each of
  these behind escapes of JSON, of a programming language, of an address or of HTML, `PASSES` deep.
* Not found is what changes every character and has no one form: another encoding (base32, base85, quoted-printable), base64 twice over,
  compression, encryption, a text in parts. A stranger who wants to hide what he was told can; what is found here is an echo.
* A shorter text is left to whoever asks: loosely it would be found in ordinary words. Blanks do not make a text longer: one that has so
  many characters only with them is found with them, in any letter case and behind escapes, and in hexadecimal and base64.
* What is not ASCII is found in UTF-8, and in Latin-1 where that can say it.
* Total, and linear in what is searched: escapes are undone once for each pass, and what is sought is derived from the text, never the
  other way round. Where a find stands in the original is worked out only when there is one.
"""

import base64
import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, cast

LOOSE_FROM: Final = 8
PASSES: Final = 3
"""So often are escapes undone: an address in JSON in JSON is at three."""

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\"'\\/bfnrt])"
    rb"|%[0-9a-fA-F]{2}"
    rb"|&(?:\#0{0,16}[0-9]{1,7};?|\#[xX]0{0,16}[0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,30};)"
)
_BLANKS: Final = b" \t\r\n\v\f\0"
_BLANK: Final = re.compile(rb"[ \t\r\n\v\f\0]+")
_SHORT: Final = {"b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t"}
_MIDDLE: Final = re.compile(rb"(?<![\x80-\xbf]{3})[\x80-\xbf]")
_ONE_ALPHABET: Final = bytes.maketrans(b"-_", b"+/")
_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


@dataclass(frozen=True, slots=True)
class Coded:
    """What base64 makes of a text at one of three places in a longer one, without the letters that it shares with its neighbours.

    `before`, `after`: whether it shares one there.
    """

    letters: bytes
    before: bool
    after: bool


def loose_forms(text: str) -> tuple[bytes, ...]:
    """What is sought in `View.loose`. Nothing for a text that is too short."""
    raw = _raw(text)
    written = (raw, *_latin(text), _ESCAPE.sub(_meant, raw), raw.replace(b" ", b"+"))
    squeezed = [_squeezed(form).lower() for form in written]
    hexadecimal = (raw.hex().encode(),) if len(text) >= LOOSE_FROM else ()
    return tuple(dict.fromkeys((*(form for form in squeezed if len(form) >= LOOSE_FROM), *hexadecimal)))


def spaced_forms(text: str) -> tuple[bytes, ...]:
    """What is sought in `View.spaced`: a text that is long enough, and without its blanks is not."""
    raw = _raw(text)
    return (raw.lower(),) if len(text) >= LOOSE_FROM > len(_squeezed(raw)) else ()


def coded_forms(text: str) -> tuple[Coded, ...]:
    """What is sought in `View.coded`. Nothing for a text that is too short."""
    raw = _raw(text)
    return tuple(_coded(raw, lead) for lead in range(3)) if len(text) >= LOOSE_FROM else ()


def _coded(raw: bytes, lead: int) -> Coded:
    first, (last, rest) = (0, 2, 3)[lead], divmod(8 * (lead + len(raw)), 6)
    return Coded(base64.b64encode(bytes(lead) + raw)[first:last], before=lead > 0, after=rest > 0)


def spelt_in(text: str, view: "View") -> bool:
    """Whether a text stands in a reading, in any spelling. A short one never does."""
    return any(form in view.loose for form in loose_forms(text)) or any(form.letters in view.coded for form in coded_forms(text))


class View:
    """One way to read a body: some escapes undone."""

    def __init__(self, original: bytes, body: bytes, undone: "tuple[_Change, ...]" = ()) -> None:
        self._original, self._body, self._undone = original, body, undone

    @cached_property
    def coded(self) -> bytes:
        """Without blanks, in base64's one alphabet."""
        return _squeezed(self._body).translate(_ONE_ALPHABET)

    @cached_property
    def loose(self) -> bytes:
        """Without blanks, in small letters."""
        return _squeezed(self._body).lower()

    @cached_property
    def spaced(self) -> bytes:
        """With its blanks, in small letters."""
        return self._body.lower()

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where in the original stands what is from `start` to `end` in `loose` and `coded`. Escapes and characters are never parted."""
        return self.place_spaced(*self._squeezing.place(start, end))

    def place_spaced(self, start: int, end: int) -> tuple[int, int]:
        """The same for `spaced`."""
        for change in reversed(self._undone):
            start, end = change.place(start, end)
        while start and _MIDDLE.match(self._original, start):
            start -= 1
        while _MIDDLE.match(self._original, end):
            end += 1
        return start, end

    def place_coded(self, form: Coded, start: int) -> tuple[int, int]:
        """The same for what base64 made of a text, with the letters that it shares."""
        end = start + len(form.letters)
        begin = start - (form.before and self.coded[start - 1 : start] != b"" and self.coded[start - 1] in _ALPHABET)
        return self.place(begin, end + (form.after and end < len(self.coded) and self.coded[end] in _ALPHABET))

    @cached_property
    def _squeezing(self) -> "_Change":
        return _Change(self._body, _BLANK)


def views(body: bytes) -> Iterator[View]:
    """The body as it is, and as it reads behind its escapes."""
    original, undone = body, cast("tuple[_Change, ...]", ())
    yield View(original, body)
    for _ in range(PASSES):
        after, found = _ESCAPE.subn(_meant, body)
        if not found:
            return
        body, undone = after, (*undone, _Change(body, _ESCAPE))
        yield View(original, body, undone)


class _Change:
    """A text in which every find of a pattern was replaced, and the way back."""

    def __init__(self, before: bytes, pattern: re.Pattern[bytes]) -> None:
        self._before, self._pattern = before, pattern

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where it stood before the change; what replaced a find stands where all of that did."""
        starts, places = self._edges
        first = bisect_right(starts, start) - 1
        last = bisect_right(starts, end - 1) - 1
        begin = places[first] if first % 2 else places[first] + start - starts[first]
        return begin, places[last + 1] if last % 2 else places[last] + end - starts[last]

    @cached_property
    def _edges(self) -> tuple[list[int], list[int]]:
        """By turns: where what was kept begins, and where what was replaced does; after the change, and before it."""
        starts, places, less = [0], [0], 0
        for found in self._pattern.finditer(self._before):
            begin, end = found.span()
            starts.append(begin - less)
            less += end - begin - (0 if self._pattern is _BLANK else len(_meant(found)))
            starts.append(end - less)
            places += (begin, end)
        return starts, places


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _latin(text: str) -> tuple[bytes, ...]:
    """The bytes of a text that is not ASCII, in the encoding that is one byte a character."""
    return () if text.isascii() or any(ord(letter) > 0xFF for letter in text) else (text.encode("latin-1"),)


def _squeezed(text: bytes) -> bytes:
    return text.translate(None, _BLANKS)


def _meant(found: re.Match[bytes]) -> bytes:
    return _unescaped(found.group())


@lru_cache(maxsize=4096)
def _unescaped(escape: bytes) -> bytes:
    """What one escape stands for."""
    match chr(escape[0]), chr(escape[1]):
        case "\\", "u":
            units = bytes.fromhex(escape.replace(b"\\u", b"").decode())
            return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
        case "\\", "x":
            return bytes([int(escape[2:], 16)])
        case "\\", letter:
            return _SHORT.get(letter, escape[1:])
        case "%", _:
            return bytes([int(escape[1:], 16)])
        case _:
            return html.unescape(escape.decode()).encode("utf-8", "surrogatepass")
