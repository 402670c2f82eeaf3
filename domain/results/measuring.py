"""What a result is, measured while it passes: size, SHA-256, records, and whether it is what its format says.

* Bounded memory and one pass, whatever the size. Any bytes give a `Measured`; nothing is raised for what they are.
* `json`: one value; records are the elements of a top-level array, else not countable. `jsonl` and `csv`: see `counting`.
  `text`: UTF-8. `binary`: nothing is asked.
* All but `binary` is UTF-8; a byte order mark at the start is passed over.
* After the first problem nothing more is looked at but size and digest, and no count is given: half a count would mislead.
"""

import codecs
import hashlib
from dataclasses import dataclass
from typing import Final

from domain.evidence import Json, bounded
from domain.jsontext import NotReadable, parse_answer
from domain.results.counting import Format, Limits, reader_of

HEAD: Final = 16


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


class Measurer:
    """Feed it all bytes in order, then `finish` it once."""

    def __init__(self, format: Format, limits: Limits | None = None) -> None:
        self._format: Format = format
        self._limits = limits or Limits()
        self._hash = hashlib.sha256()
        self._size = 0
        self._head = b""
        self._reader = reader_of(format, self._limits)
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
