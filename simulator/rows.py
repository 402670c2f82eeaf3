"""The content of a report: a pure function of what was asked, so that two honest results of one question are equal bytes.

Large reports are made in pieces and never held whole.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

Format = Literal["csv", "jsonl", "json"]
CONTENT_TYPES: dict[Format, str] = {"csv": "text/csv", "jsonl": "application/x-ndjson", "json": "application/json"}
ROWS_PER_PIECE = 2_000


@dataclass(frozen=True, slots=True)
class Report:
    """What was asked for."""

    account: str
    start: date
    end: date
    format: Format
    rows: int

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the report, a few thousand rows at a time."""
        match self.format:
            case "csv":
                yield b"line,account,day,amount\n"
                yield from self._joined(_csv_row)
            case "jsonl":
                yield from self._joined(_json_line)
            case "json":
                yield b"["
                yield from self._joined(_json_element)
                yield b"]"

    def _joined(self, row: Callable[[int, str, str, int], str]) -> Iterator[bytes]:
        days = (self.end - self.start).days + 1
        names = [(self.start + timedelta(days=day)).isoformat() for day in range(min(days, 366))]
        salt = zlib.crc32(self.account.encode())
        account = _quoted(self.account) if self.format == "csv" else _escaped(self.account)
        for first in range(0, self.rows, ROWS_PER_PIECE):
            numbers = range(first, min(first + ROWS_PER_PIECE, self.rows))
            yield "".join(row(n + 1, account, names[n % len(names)], (n * 7919 + salt) % 100_000) for n in numbers).encode()

    def summary(self) -> "Summary":
        """Size and checksum, made without holding the report."""
        return _summary(self)


@dataclass(frozen=True, slots=True)
class Summary:
    """Size in bytes and SHA-256 in hex."""

    size: int
    sha256: str


@lru_cache(maxsize=256)
def _summary(report: Report) -> Summary:
    digest, size = hashlib.sha256(), 0
    for piece in report.pieces():
        digest.update(piece)
        size += len(piece)
    return Summary(size, digest.hexdigest())


def _csv_row(line: int, account: str, day: str, amount: int) -> str:
    return f"{line},{account},{day},{amount}\n"


def _json_line(line: int, account: str, day: str, amount: int) -> str:
    return f'{{"line":{line},"account":{account},"day":"{day}","amount":{amount}}}\n'


def _json_element(line: int, account: str, day: str, amount: int) -> str:
    comma = "" if line == 1 else ","
    return f'{comma}{{"line":{line},"account":{account},"day":"{day}","amount":{amount}}}'


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if any(c in text for c in ',"') else text


def _escaped(text: str) -> str:
    return json.dumps(text)
