"""Big inputs of an operation: what of them is known to templates, how their records are counted, and how one is made from the input.

* A file is given whole, or made of a list in the input: JSON Lines or CSV, as its media says. Equal input gives equal bytes: keys stand
  in the order in which the input has them, and of CSV the columns in the order in which they first occur.
* What is made is never larger than the file may be, nor than `MAX_MADE`: a few rows with columns of their own make a large table.
* CSV is RFC 4180 with a header row; a field is text, a number, true or false, or empty for null and for what a row lacks. What would not
  come back as it was is refused: a list or map in a field, a row without columns.
* Records are lines, rows, or the elements of one JSON array; files of any other media have none that can be counted.
"""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from domain.contract import File
from domain.errors import BadInput
from domain.evidence import FileFacts
from domain.jsontext import number_text
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.results.counting import Format

MAX_MADE: Final = 32 * 1024 * 1024
"""Bytes of a file that is made of the input: all of it stands in memory."""
_JSON_LINES: Final = frozenset({"jsonl", "jsonlines", "ndjson", "x-jsonl", "x-jsonlines", "x-ndjson", "json-lines"})


def format_of(media: str) -> Format:
    """How the records of a media type are counted and read; `binary` where they are not."""
    kind, _, name = media.partition(";")[0].strip().lower().partition("/")
    if (kind, name) == ("text", "csv"):
        return "csv"
    if kind in {"application", "text"} and name in _JSON_LINES:
        return "jsonl"
    return "json" if kind == "application" and (name == "json" or name.endswith("+json")) else "binary"


def files_root(files: Mapping[str, FileFacts]) -> dict[str, JsonValue]:
    """The root `files`: `files.x.{records,bytes,sha256,media}`."""
    return {name: facts.model_dump(mode="json", exclude_none=True) for name, facts in files.items()}


def made_from(name: str, file: File, scope: Scope) -> bytes | None:
    """The file that the input makes; None if the input has nothing for it. Raises BadInput."""
    try:
        value = first_value(file.source, scope)
    except TooMuch:
        raise BadInput(f"files.{name} is made of more than may be evaluated", hint=f"give it as a file: --file {name}=PATH") from None
    if value is None:
        return None
    if not isinstance(value, list):
        raise BadInput(f"files.{name} is made of a list, and the input has something else for it")
    written = _Written(name, file.max_bytes)
    try:
        if format_of(file.media) == "jsonl":
            _json_lines(value, written)
        else:
            _csv(name, value, written)
    except ValueError:
        raise BadInput(f"files.{name} would have a number that is not finite, or text that is not UTF-8") from None
    return bytes(written.made)


class _Written:
    """What is written to, piece by piece, up to its bound."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self.made = bytearray()

    def write(self, text: str) -> None:
        """Raises BadInput, UnicodeEncodeError."""
        self.made += text.encode("utf-8")
        if len(self.made) > self._most:
            raise BadInput(f"the file {self._name} has more than {self._most} bytes, the most that is taken")
        if len(self.made) > MAX_MADE:
            raise BadInput(
                f"the file {self._name} has more than {MAX_MADE} bytes, the most that is made of an input",
                hint=f"give it as a file: --file {self._name}=PATH",
            )


def _json_lines(elements: Sequence[JsonValue], written: _Written) -> None:
    for element in elements:
        written.write(json.dumps(element, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")


def _csv(name: str, elements: Sequence[JsonValue], written: _Written) -> None:
    rows: list[dict[str, JsonValue]] = []
    for number, element in enumerate(elements, start=1):
        if not isinstance(element, dict):
            raise BadInput(f"files.{name}: a CSV row is made of a map, and element {number} of the list is none")
        rows.append(element)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if not columns:
        raise BadInput(f"files.{name}: no CSV can be made of a list without columns")
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_field(name, number, column, row.get(column)) for column in columns] for number, row in enumerate(rows, start=1))


def _field(name: str, number: int, column: str, value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            if not math.isfinite(value):
                raise ValueError("not finite")
            return number_text(value)
        case _:
            raise BadInput(f"files.{name}: {column[:100]} of element {number} is a list or map, which no CSV field can hold")
