"""Records of a result that comes as text, piece by piece: is it what its format says, and how many records has it.

* `jsonl`: one value a line, blank lines count for nothing. `csv`: RFC 4180 as Python's own reader reads it; the first row is the
  header and no record, every other has as many fields, blank lines count for nothing. `json`: see `jsonstream`. `text`: nothing is asked.
* A reader raises `NotReadable` as soon as it is known that it is not that. What it holds is bounded.
* What is plain is counted many lines at once: rows without a quotation mark by their commas, lines that are JSON objects by a
  parser that builds nothing of them. Where that does not find all well, the same lines are read one by one, and that alone decides.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Final, Literal, Protocol

from pydantic_core import SchemaValidator, ValidationError, core_schema

from domain.jsontext import MAX_DEPTH, NotReadable
from domain.results.held_text import HeldText
from domain.results.jsonstream import MAX_RECORD, WINDOW, JsonStream, read_value

Format = Literal["json", "jsonl", "csv", "text", "binary"]
_LONG_LINE: Final = 1024 * 1024

_MANY: Final = 4 * WINDOW
"""What is counted many lines at once, in characters. More than that is one line that was long in coming."""
_OBJECT: Final = SchemaValidator(core_schema.typed_dict_schema({}, extra_behavior="ignore")).validate_json
"""Parses the whole of an object, and builds nothing of it."""

# Process-wide, and by itself far below what a quoted field may hold; the bound on a record is ours.
csv.field_size_limit(MAX_RECORD)


@dataclass(frozen=True, slots=True)
class Limits:
    """`value`: the largest JSON, in bytes, that is kept as a value. `record`: the longest line, row, text or number, in characters."""

    value: int = 1024 * 1024
    record: int = MAX_RECORD
    window: int = WINDOW


class Reader(Protocol):
    """Takes text in order; `records` counts once `finish` has returned."""

    @property
    def records(self) -> int | None:
        """How many; None where records cannot be counted."""
        ...

    def feed(self, text: str) -> None:
        """The next text. Raises NotReadable."""
        ...

    def finish(self) -> None:
        """There is no more. Raises NotReadable."""
        ...


class _Text:
    """Text is whatever decodes."""

    records = None

    def feed(self, text: str) -> None:
        pass

    def finish(self) -> None:
        pass


class _Lines:
    """JSON Lines."""

    def __init__(self, limits: Limits) -> None:
        self.records = 0
        self._limits = limits
        self._line = 0
        self._held = HeldText(longest=limits.record)

    def feed(self, text: str) -> None:
        whole, newline, rest = text.rpartition("\n")
        if newline:
            self._held.add(whole)
            text = self._held.take()
            lines = text.split("\n")
            if _are_objects(text, lines):
                self._line += len(lines)
                self.records += len(lines)
            else:
                for line in lines:
                    self._take(line)
        self._held.add(rest)
        if self._held.length > self._limits.record:
            raise NotReadable(f"line {self._line + 1} has more than {self._limits.record} characters")

    def finish(self) -> None:
        self._take(self._held.take())

    def _take(self, line: str) -> None:
        self._line += 1
        line = line.strip(" \t\r")
        if not line:
            return
        try:
            if len(line) <= _LONG_LINE:
                read_value(line)
            else:
                stream = JsonStream(longest=self._limits.record)
                for start in range(0, len(line), WINDOW):
                    stream.feed(line[start : start + WINDOW])
                stream.finish()
        except NotReadable as error:
            raise NotReadable(f"line {self._line}: {error}") from None
        self.records += 1


def _are_objects(text: str, lines: list[str]) -> bool:
    """Whether each of these lines is beyond doubt one JSON object."""
    # NaN and Infinity are taken by the parser and are not JSON. The bound on depth is ours.
    if len(text) > _MANY or "NaN" in text or "Infinity" in text or _deepest(text, lines) > MAX_DEPTH:
        return False
    try:
        for _ in map(_OBJECT, lines):
            pass
    except ValidationError:
        return False
    return True


def _deepest(text: str, lines: list[str]) -> int:
    """No line that is an object is nested deeper than this."""
    others = len(lines) - 1  # each of which has a brace of its own
    if (most := text.count("{") + text.count("[") - others) <= MAX_DEPTH:
        return most
    return max(map(str.count, lines, repeat("{"))) + max(map(str.count, lines, repeat("[")))


class _Dry(Exception):
    """The reader asks for a line that has not come yet."""


class _Csv:
    """Rows. A row that is not whole is read again when as much again has come."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rows = 0
        self._width: int | None = None
        self._line = 0
        self._held = HeldText(longest=limits.record, least=limits.window)

    @property
    def records(self) -> int:
        return max(0, self._rows - 1)

    def feed(self, text: str) -> None:
        if self._held.add(text):
            self._read(last=False)

    def finish(self) -> None:
        self._read(last=True)

    def _read(self, *, last: bool) -> None:
        text = self._held.take()
        lines = text.split("\n")
        tail = "" if last else lines.pop()
        if self._are_plain(text, lines):
            self._line += len(lines)
            self._held.keep(tail)
            return
        reader = csv.reader(_until_dry(lines, last), strict=True)
        taken = 0
        try:
            for row in reader:
                taken = reader.line_num
                self._row(row, self._line + taken)
        except _Dry:
            pass
        except csv.Error as error:
            raise NotReadable(f"line {self._line + reader.line_num}: {str(error).partition(' - ')[0]}") from None
        rest = "\n".join([*lines[taken:], tail])
        if len(rest) > self._limits.record:
            raise NotReadable(f"line {self._line + taken + 1}: a row of more than {self._limits.record} characters")
        self._line += taken
        self._held.keep(rest)

    def _are_plain(self, text: str, lines: list[str]) -> bool:
        """Count lines that are beyond doubt whole rows of the right width, or blank; False, and nothing counted, if not all are."""
        found = _plain_rows(lines, text) if len(text) <= min(_MANY, self._limits.record) else None
        if found is None:
            return False
        count, widths = found
        known = widths if self._width is None else widths | {self._width}
        if len(known) > 1:
            return False
        self._width = next(iter(known), None)
        self._rows += count
        return True

    def _row(self, row: list[str], line: int) -> None:
        if not row:
            return
        if self._width is None:
            self._width = len(row)
        if len(row) != self._width:
            raise NotReadable(f"the row that ends in line {line} has {len(row)} fields, the header has {self._width}")
        self._rows += 1


def _plain_rows(lines: list[str], text: str) -> tuple[int, set[int]] | None:
    """How many rows these lines are, blank ones left out, and how many fields they have; None if that can't be told at once."""
    if '"' in text:
        try:
            fields = [*filter(None, map(len, csv.reader(lines, strict=True)))]
        except csv.Error:
            return None  # most likely the last row goes on in lines that have not come yet
        return len(fields), set(fields)
    returns = text.count("\r")
    if returns != text.count("\r\n"):
        return None
    if "" in lines or (returns and "\r" in lines):
        lines = [line for line in lines if line not in {"", "\r"}]
    return len(lines), {commas + 1 for commas in set(map(str.count, lines, repeat(",")))}


def _until_dry(lines: list[str], last: bool) -> Iterator[str]:
    yield from lines
    if not last:
        raise _Dry


def reader_of(format: Format, limits: Limits) -> Reader | None:
    """The reader of a format; None for what is bytes alone."""
    match format:
        case "json":
            return JsonStream(window=limits.window, longest=limits.record)
        case "jsonl":
            return _Lines(limits)
        case "csv":
            return _Csv(limits)
        case "text":
            return _Text()
        case _:
            return None
