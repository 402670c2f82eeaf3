"""What a result is, measured while it passes: size, SHA-256, records, and whether it is what its format says.

* Bounded memory and one pass, whatever the size. Any bytes give a `Measured`; nothing is raised for what they are.
* `json`: one value; records are the elements of a top-level array, else not countable. `jsonl`: one value a line, blank lines
  count for nothing. `csv`: RFC 4180 as Python's own reader reads it; the first row is the header and no record, every other has
  as many fields, blank lines count for nothing. `text`: UTF-8. `binary`: nothing is asked.
* All but `binary` is UTF-8; a byte order mark at the start is passed over.
* After the first problem nothing more is looked at but size and digest, and no count is given: half a count would mislead.
"""

import codecs
import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from domain.evidence import Json, bounded
from domain.jsonstream import MAX_RECORD, WINDOW, JsonStream, read_value
from domain.jsontext import NotReadable, parse_answer

Format = Literal["json", "jsonl", "csv", "text", "binary"]
HEAD: Final = 16
_LONG_LINE: Final = 1024 * 1024

# Process-wide, and by itself far below what a quoted field may hold; the bound on a record is ours.
csv.field_size_limit(MAX_RECORD)


@dataclass(frozen=True, slots=True)
class Limits:
    """`value`: the largest JSON, in bytes, that is kept as a value. `record`: the longest line, row, text or number, in characters."""

    value: int = 1024 * 1024
    record: int = MAX_RECORD
    window: int = WINDOW


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured. `value` counts only where `value_read`: JSON's null is a value too. `head`: the first bytes."""

    format: Format
    size: int
    sha256: str
    head: bytes
    records: int | None = None
    well_formed: bool = True
    problem: str | None = None
    value: Json = None
    value_read: bool = False


class _Reader(Protocol):
    @property
    def records(self) -> int | None: ...

    def feed(self, text: str) -> None: ...

    def finish(self) -> None: ...


class Measurer:
    """Feed it all bytes in order, then `finish` it once."""

    def __init__(self, format: Format, limits: Limits | None = None) -> None:
        self._format: Format = format
        self._limits = limits or Limits()
        self._hash = hashlib.sha256()
        self._size = 0
        self._head = b""
        self._reader = _reader(format, self._limits)
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._pending = bytearray()
        self._read = 0
        self._kept: bytearray | None = bytearray() if format == "json" else None
        self._problem: str | None = None

    @property
    def size(self) -> int:
        """How many bytes were taken so far."""
        return self._size

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._hash.update(chunk)
        self._size += len(chunk)
        if len(self._head) < HEAD:
            self._head += chunk[: HEAD - len(self._head)]
        if self._reader is None:
            return
        # Gathered, so that a provider that sends single bytes costs no more than one that doesn't.
        self._pending += chunk
        if len(self._pending) >= self._limits.window:
            self._pass_on(last=False)

    def finish(self) -> Measured:
        """There is no more."""
        self._pass_on(last=True)
        records = None if self._reader is None else self._reader.records
        value, value_read = self._value()
        return Measured(
            format=self._format,
            size=self._size,
            sha256=self._hash.hexdigest(),
            head=self._head,
            records=records,
            well_formed=self._problem is None,
            problem=self._problem,
            value=value,
            value_read=value_read,
        )

    def _pass_on(self, *, last: bool) -> None:
        """Hand what is gathered to the reader, as text."""
        reader = self._reader
        if reader is None:
            return
        chunk = bytes(self._pending)
        self._pending.clear()
        if self._kept is not None:
            self._kept += chunk
            if len(self._kept) > self._limits.value:
                self._kept = None
        try:
            text = self._decode.decode(chunk, last)
            reader.feed(text.removeprefix("\ufeff") if self._read == 0 else text)
            self._read += len(text)
            if last:
                reader.finish()
        except UnicodeDecodeError as error:
            self._fail(f"not UTF-8 ({error.reason}, after {self._read} characters)")
        except NotReadable as error:
            self._fail(f"not {self._format}: {error}")

    def _fail(self, problem: str) -> None:
        self._problem = bounded(problem, 300)
        self._reader = None
        self._kept = None
        self._pending.clear()

    def _value(self) -> tuple[Json, bool]:
        if self._kept is None:
            return None, False
        try:
            return parse_answer(self._kept.decode("utf-8").removeprefix("\ufeff")), True
        except NotReadable:
            # It is JSON, of more nodes than are held as a value.
            return None, False


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
        self._parts: list[str] = []
        self._held = 0

    def feed(self, text: str) -> None:
        whole, newline, rest = text.rpartition("\n")
        if newline:
            self._parts.append(whole)
            lines = "".join(self._parts).split("\n")
            self._parts, self._held = [], 0
            for line in lines:
                self._take(line)
        self._parts.append(rest)
        self._held += len(rest)
        if self._held > self._limits.record:
            raise NotReadable(f"line {self._line + 1} has more than {self._limits.record} characters")

    def finish(self) -> None:
        self._take("".join(self._parts))

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
                stream.feed(line)
                stream.finish()
        except NotReadable as error:
            raise NotReadable(f"line {self._line}: {error}") from None
        self.records += 1


class _Dry(Exception):
    """The reader asks for a line that has not come yet."""


class _Csv:
    """Rows. A row that is not whole is read again when as much again has come."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rows = 0
        self._width: int | None = None
        self._line = 0
        self._parts: list[str] = []
        self._held = 0
        self._need = limits.window

    @property
    def records(self) -> int:
        return max(0, self._rows - 1)

    def feed(self, text: str) -> None:
        self._parts.append(text)
        self._held += len(text)
        if self._held >= self._need:
            self._read(last=False)

    def finish(self) -> None:
        self._read(last=True)

    def _read(self, *, last: bool) -> None:
        lines = "".join(self._parts).split("\n")
        tail = "" if last else lines.pop()
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
        self._parts, self._held = [rest], len(rest)
        self._need = min(max(self._limits.window, 2 * len(rest)), self._limits.record + 1)

    def _row(self, row: list[str], line: int) -> None:
        if not row:
            return
        if self._width is None:
            self._width = len(row)
        if len(row) != self._width:
            raise NotReadable(f"the row that ends in line {line} has {len(row)} fields, the header has {self._width}")
        self._rows += 1


def _until_dry(lines: list[str], last: bool) -> Iterator[str]:
    yield from lines
    if not last:
        raise _Dry


def _reader(format: Format, limits: Limits) -> _Reader | None:
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
