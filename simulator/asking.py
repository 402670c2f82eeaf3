"""What a report may be asked for: bytes become an `Ask` or a refusal, at the edge and nowhere else."""

import json
from dataclasses import dataclass
from datetime import date
from typing import cast

from simulator.answer import Answer, Json, refusal
from simulator.rows import CONTENT_TYPES, Format, Report

MAX_ROWS = 5_000_000
DEFAULT_ROWS = 120
KNOWN = frozenset({"account", "range", "format", "rows", "polls", "seconds", "fail", "sync", "reference"})


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a job takes: a number of readings if `polls` is set (so that tests need no time), else seconds."""

    polls: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Ask:
    """One well-formed question."""

    report: Report
    pace: Pace
    fail: bool
    sync: bool


class Unfit(Exception):
    """The question cannot be taken: 400 if it is not JSON, 422 if it is not a question of ours."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.answer: Answer = refusal(status, error, message)


def parse(body: bytes) -> dict[str, Json]:
    """The body as a JSON object."""
    try:
        value = cast("Json", json.loads(body))
    except (ValueError, RecursionError):
        raise Unfit(400, "not_json", "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Unfit(400, "not_an_object", "the body is not a JSON object")
    return value


def read(fields: dict[str, Json], usual: Pace) -> Ask:
    """The question in these fields, at the usual pace unless they name another."""
    for name in sorted(set(fields) - KNOWN):
        raise Unfit(422, "unknown_field", f"{name!r} is not a field of a report")
    polls = fields.get("polls")
    seconds = fields.get("seconds")
    return Ask(
        report=Report(account(fields), *span(fields), layout(fields), _whole(fields, "rows", DEFAULT_ROWS, MAX_ROWS)),
        pace=usual if polls is None and seconds is None else Pace(_polls(fields), _seconds(fields)),
        fail=fields.get("fail") is True,
        sync=fields.get("sync") is True,
    )


def account(fields: dict[str, Json]) -> str:
    """Whose report."""
    value = fields.get("account")
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value) <= 64:
        raise Unfit(422, "invalid_account", "account is 1 to 64 printable characters")
    return value


def span(fields: dict[str, Json]) -> tuple[date, date]:
    """From which day to which, both included."""
    value = fields.get("range")
    if not isinstance(value, dict):
        raise Unfit(422, "invalid_range", "range is {start, end}")
    start, end = _day(value.get("start")), _day(value.get("end"))
    if end < start:
        raise Unfit(422, "invalid_range", "range ends before it starts")
    return start, end


def layout(fields: dict[str, Json]) -> Format:
    """In which form."""
    value = fields.get("format")
    for known in CONTENT_TYPES:
        if value == known:
            return known
    raise Unfit(422, "invalid_format", f"format is one of {', '.join(CONTENT_TYPES)}")


def _day(value: Json) -> date:
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise Unfit(422, "invalid_range", "a day is written YYYY-MM-DD") from None


def _whole(fields: dict[str, Json], name: str, usual: int, most: int) -> int:
    value = fields.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise Unfit(422, f"invalid_{name}", f"{name} is a whole number from 0 to {most}")
    return value


def _polls(fields: dict[str, Json]) -> int | None:
    return None if fields.get("polls") is None else _whole(fields, "polls", 0, 1_000_000)


def _seconds(fields: dict[str, Json]) -> float:
    value = fields.get("seconds")
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 31_536_000:
        raise Unfit(422, "invalid_seconds", "seconds is a number from 0 to a year")
    return float(value)
