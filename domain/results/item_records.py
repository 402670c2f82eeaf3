"""The records of a stored object as values, piece by piece: lines of JSON, rows of CSV by their header, elements of one JSON array.

* One pass, bounded memory: what is whole is handed on and dropped. A record longer than `MAX_RECORD` is not readable, nor one of more
  than `WIDEST` parts: sixteen mebibytes of nothing but brackets would take half a gibibyte. Parts are counted before any is made.
* Total: any bytes either are such records or raise `NotReadable`. What is read is a provider's JSON, with its leniencies
  (`jsontext.parse_answer`); of a header that names a column twice the last one counts.
"""

import codecs
import csv
import json
import operator
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final, Literal, Protocol, cast

from pydantic import JsonValue

from domain.jsontext import MAX_NODES, NotReadable, parse_answer
from domain.results.counting import Format, Limits
from domain.results.held_text import HeldText
from domain.results.jsonstream import past_space

WIDEST: Final = MAX_NODES
"""Parts of one record: values of JSON, fields of a row."""
_LONG: Final = 512 * 1024
_PIECE: Final = 256 * 1024
_MORE: Final = 1024 * 1024
"""In characters: from where on parts are counted first, what is taken at a time, and how much more is waited for at most."""

RecordFormat = Literal["jsonl", "csv", "json"]


def record_format(format: Format) -> RecordFormat | None:
    """The format as one whose records are read; None for text and bytes."""
    return None if format == "text" or format == "binary" else format


class _Reader(Protocol):
    def take(self, text: str, *, last: bool) -> Iterator[JsonValue]: ...


class Records:
    """Feed it all bytes in order, then `finish` it once; each gives the records that are whole by then. Raises NotReadable."""

    def __init__(self, format: RecordFormat, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        readers: dict[RecordFormat, type[_Lines | _Rows | _Elements]] = {"jsonl": _Lines, "csv": _Rows, "json": _Elements}
        self._reader: _Reader = readers[format](limits)
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[JsonValue]:
        """The next bytes."""
        return self._take(chunk, last=False)

    def finish(self) -> Iterator[JsonValue]:
        """There is no more."""
        return self._take(b"", last=True)

    def _take(self, chunk: bytes, *, last: bool) -> Iterator[JsonValue]:
        try:
            text = self._decode.decode(chunk, last)
        except UnicodeDecodeError:
            raise NotReadable("not UTF-8") from None
        if text and not self._begun:
            self._begun, text = True, text.removeprefix("\ufeff")
        for start in range(0, len(text), _PIECE):
            yield from self._reader.take(text[start : start + _PIECE], last=False)
        if last:
            yield from self._reader.take("", last=True)


class _Lines:
    """JSON Lines; blank lines count for nothing."""

    def __init__(self, limits: Limits) -> None:
        self._longest = limits.record
        self._held = HeldText(longest=limits.record)

    def take(self, text: str, *, last: bool) -> Iterator[JsonValue]:
        whole, newline, rest = text.rpartition("\n")
        if newline:
            self._held.add(whole)
            yield from _lines_read(self._held.take().split("\n"))
        self._held.add(rest)
        if self._held.length > self._longest:
            raise NotReadable(f"a line of more than {self._longest} characters")
        if last:
            yield from _lines_read([self._held.take()])


def _lines_read(lines: list[str]) -> Iterator[JsonValue]:
    for line in lines:
        if line.strip(" \t\r"):
            try:
                yield _value(line)
            except NotReadable:
                raise NotReadable("a line is not JSON, or nested or wide beyond what is read") from None


_PART: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|,|[\[{](?![ \t\n\r]*[\]}])', re.DOTALL)


def _widest_at(text: str) -> int | None:
    """Where JSON has more than `WIDEST` values; None if it has no more. Text that ends in the middle is taken as it is."""
    values = 1
    for found in _PART.finditer(text):
        if text[found.start()] != '"' and (values := values + 1) > WIDEST:
            return found.start()
    return None


def _value(text: str) -> JsonValue:
    """One record. Raises NotReadable."""
    if len(text) > _LONG and _widest_at(text) is not None:
        raise NotReadable("too wide")
    return parse_answer(text)


class _Dry(Exception):
    """The reader asks for a line that has not come yet."""


class _Rows:
    """CSV as Python's own reader reads it. A row that is not whole is read again when as much again has come."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._header: list[str] | None = None
        self._held = HeldText(longest=limits.record)

    def take(self, text: str, *, last: bool) -> Iterator[JsonValue]:
        if not self._held.add(text) and not last:
            return
        text = self._held.take()
        # One line after the other: a list of the lines of one long field takes thirty times their length.
        whole, taken = len(text) if last else text.rfind("\n") + 1, 0
        lines = map(_line, _LINE.finditer(text, 0, whole))
        reader = csv.reader(lines if last else chain(lines, iter(_dry, "")), strict=True)
        try:
            for row in reader:
                taken = reader.line_num
                if row:
                    yield from self._row(row)
        except _Dry:
            pass
        except csv.Error as error:
            raise NotReadable(str(error).partition(" - ")[0]) from None
        rest = text[next(islice(_LINE.finditer(text), taken - 1, None)).end() if taken else 0 :]
        if len(rest) > self._limits.record:
            raise NotReadable(f"a row of more than {self._limits.record} characters")
        self._held.keep(rest)

    def _row(self, row: list[str]) -> Iterator[JsonValue]:
        if self._header is None:
            if len(row) > WIDEST:
                raise NotReadable(f"a header wider than {WIDEST} fields")
            self._header = row
        elif len(row) != len(self._header):
            raise NotReadable(f"a row has {len(row)} fields, the header has {len(self._header)}")
        else:
            yield cast("JsonValue", dict(zip(self._header, row, strict=True)))


_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_line = operator.itemgetter(0)


def _dry() -> str:
    raise _Dry


def _kept(digits: str) -> str:
    return digits


def _not_json(word: str) -> JsonValue:
    raise NotReadable(f"{word} is not JSON")


_NUMBER_GOES_ON: Final = re.compile(r"\.?|[eE][+-]?")
_end_of: Final = json.JSONDecoder(parse_int=_kept, parse_float=_kept, parse_constant=_not_json).raw_decode
"""Only where a value ends is asked; an int of a hundred thousand digits is then never made."""


class _Elements:
    """The elements of one JSON array. One that is not whole is read again when as much again has come."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = HeldText(longest=limits.record, more=_MORE)
        self._expect: Literal["array", "first", "element", "comma", "nothing"] = "array"

    def take(self, text: str, *, last: bool) -> Iterator[JsonValue]:
        if not self._held.add(text) and not last:
            return
        text = self._held.take()
        widest = _widest_at(text) if len(text) > _LONG else None
        at = past_space(text, 0)
        while at < len(text):
            if self._expect in {"first", "element"} and not (self._expect == "first" and text[at] == "]"):
                # Of what is longer than is taken at a time only the first element can be long: it is looked at before it is made.
                end = self._end(text if widest is None else text[:widest], at, last)
                if end is None and widest is not None:
                    raise NotReadable("an element is nested or wide beyond what is read")
                if end is None:
                    break
                widest = None
                yield self._element(text[at:end])
                self._expect = "comma"
                at = past_space(text, end)
            else:
                self._mark(text[at])
                at = past_space(text, at + 1)
        rest = text[at:]
        if len(rest) > self._limits.record:
            raise NotReadable(f"an element of more than {self._limits.record} characters")
        if last and self._expect != "nothing":
            raise NotReadable("the array does not end")
        self._held.keep(rest)

    def _element(self, text: str) -> JsonValue:
        try:
            return parse_answer(text)
        except NotReadable:
            raise NotReadable("an element is nested or wide beyond what is read") from None

    def _mark(self, letter: str) -> None:
        match self._expect, letter:
            case "array", "[":
                self._expect = "first"
            case "comma", ",":
                self._expect = "element"
            case (("comma" | "first"), "]"):
                self._expect = "nothing"
            case "array", _:
                raise NotReadable("not one JSON array")
            case _:
                raise NotReadable("not JSON: a comma or the end of the array was expected")

    def _end(self, text: str, at: int, last: bool) -> int | None:
        """Where the element ends; None while more of it may come."""
        try:
            _, end = cast("tuple[object, int]", _end_of(text, at))
        except RecursionError:
            raise NotReadable("nested too deeply") from None
        except json.JSONDecodeError:
            if last:
                raise NotReadable("not JSON") from None
            return None
        # A number that goes up to the end of what has come may go on: so may the 1 of a `1.`, and of a `1e-`.
        return end if last or _NUMBER_GOES_ON.fullmatch(text, end) is None else None
