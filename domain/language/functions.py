"""The functions of expressions: JMESPath's and ours, under one budget. Every function is total in time, not in its domain:
what it cannot take raises, and an expression that raises has no value.

* `Budget` counts visits and what is built. Functions that could double a value (text above all) are charged before they do.
* Time is only ever an argument: nothing here looks at a clock.
"""

import difflib
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import jmespath.exceptions
import jmespath.functions
from jmespath.functions import signature
from pydantic import JsonValue

from domain.jsontext import MAX_DEPTH, MAX_DIGITS, MAX_NODES, equal, parse_answer
from domain.language.patterns import pattern

MAX_VISITS: Final = 50_000
MAX_BUILT: Final = MAX_NODES + 50_000
"""A whole answer can be taken as a value, if it can be read at all; doubling it can't."""
CHARACTERS: Final = 64
"""So many characters count as one element: 16 MiB of text fit."""
ARITHMETIC: Final = frozenset(
    ["add", "plus", "subtract", "minus", "multiply", "times", "mul", "product", "divide", "div", "mod", "modulo", "round", "pow"]
)
"""What people call functions that the language does not have, and is not going to."""
UNIX_FROM: Final = 1_000_000_000
"""From here on a number that stands for a time is Unix time; below it is a count of seconds."""

_NUMBER: Final = pattern(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_RFC3339: Final = pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?([Zz]|[+-][0-9]{2}:?[0-9]{2})")


class TooMuch(Exception):
    """An evaluation passed its budget: unreadable, never a meaning."""


class KeepSlashes(str):
    """Text that a path takes with its slashes. Everywhere else it is text."""

    __slots__ = ()


class Budget:
    """What one evaluation may still visit and build."""

    def __init__(self) -> None:
        self._visits = MAX_VISITS
        self._built = MAX_BUILT

    def spend(self, visits: int) -> None:
        """Count `visits`."""
        self._visits -= visits
        if self._visits < 0:
            raise TooMuch("visits")

    def built(self, value: object) -> None:
        """Count a new value by its own length; what it holds was counted when it was made."""
        match value:
            case str():
                self.charge(1, len(value))
            case list() | dict():
                self.charge(len(cast("Sequence[object]", value)))
            case _:
                pass

    def charge(self, elements: int, characters: int = 0) -> None:
        """Count elements, and characters as what they cost beside them."""
        self._built -= elements + characters // CHARACTERS
        if self._built < 0:
            raise TooMuch("size")

    def measure(self, value: object, depth: int = 0) -> None:
        """Count a whole value as if it were written out: shared parts count each time, which is what makes doubling visible."""
        if depth > MAX_DEPTH:
            raise TooMuch("depth")
        self.charge(1)
        match value:
            case str():
                self.charge(0, len(value))
            case list():
                for item in cast("list[object]", value):
                    self.measure(item, depth + 1)
            case dict():
                for name, item in cast("dict[str, object]", value).items():
                    self.charge(0, len(name))
                    self.measure(item, depth + 1)
            case _:
                pass


def instant_of(value: JsonValue) -> datetime | None:
    """A moment from RFC 3339 text or an HTTP date; numbers (and text that is one) from 1,000,000,000 on are Unix time."""
    match value:
        case bool():
            return None
        case int() | float():
            return _from_unix(value)
        case str():
            return _from_unix(float(value)) if len(value) <= 32 and _NUMBER.matches(value) else (rfc3339(value) or http_date(value))
        case _:
            return None


def rfc3339(text: str) -> datetime | None:
    """RFC 3339 with an offset. Fractions beyond microseconds are cut; a leap second counts as the next second."""
    text = text.strip()
    if len(text) > 64 or not text.isascii() or not _RFC3339.matches(text):
        return None
    leap = text[17:19] == "60"
    text = f"{text[:17]}59{text[19:]}" if leap else text
    try:
        moment = datetime.fromisoformat(text.upper().replace(" ", "T").replace(",", ".")).astimezone(UTC)
        return moment + timedelta(seconds=1) if leap else moment
    except (ValueError, OverflowError):
        return None


def http_date(text: str) -> datetime | None:
    """The three forms of RFC 9110: IMF-fixdate, RFC 850, asctime."""
    text = text.strip()
    if len(text) > 64 or not text.isascii():
        return None
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _from_unix(number: float) -> datetime | None:
    if not number >= UNIX_FROM:
        return None
    try:
        return datetime.fromtimestamp(number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


class Functions(jmespath.functions.Functions):
    """JMESPath's functions, those of them mended that trust their arguments too much, and ours."""

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()

    def bound_to(self, budget: Budget) -> "Functions":
        """The same functions charging `budget`."""
        return Functions(budget)

    def check(self, name: str, arguments: int) -> None:
        """Raise a JMESPathError if there is no such function, or not with that many arguments."""
        table = cast("dict[str, dict[str, Sequence[dict[str, object]]]]", self.FUNCTION_TABLE)
        if name not in table:
            near = difflib.get_close_matches(name, table, 1)
            hint = "; there is no arithmetic" if name in ARITHMETIC else f"; did you mean {near[0]}?" if near else ""
            raise jmespath.exceptions.UnknownFunctionError(f"Unknown function: {name}{hint}")
        wanted = table[name]["signature"]
        if arguments != len(wanted) and not (wanted[-1].get("variadic") and arguments > len(wanted)):
            raise jmespath.exceptions.ArityError(len(wanted), arguments, name)

    @signature({"types": []})
    def _func_to_string(self, value: object) -> str:
        if isinstance(value, str):
            return value
        self._budget.measure(value)
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @signature({"types": []})
    def _func_to_number(self, value: object) -> float | None:
        match value:
            case bool():
                return None
            case int() | float():
                return value
            case str() if len(value) <= MAX_DIGITS and _NUMBER.matches(value):
                return float(value) if any(letter in ".eE" for letter in value) else int(value)
            case _:
                return None

    @signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, separator: str, parts: list[str]) -> str:
        self._budget.charge(len(parts), sum(map(len, parts)) + len(separator) * len(parts))
        return separator.join(parts)

    @signature({"types": ["array", "string"]}, {"types": []})
    def _func_contains(self, subject: list[JsonValue] | str, search: JsonValue) -> bool:
        if isinstance(subject, str):
            return isinstance(search, str) and search in subject
        for item in subject:
            self._budget.measure(item)
        return any(equal(item, search) for item in subject)

    @signature({"types": ["string"]})
    def _func_last_segment(self, url: str) -> str | None:
        return unquote(urlsplit(url).path.rstrip("/").rsplit("/", 1)[-1], errors="strict") or None

    @signature({"types": ["string"]}, {"types": ["string"]})
    def _func_query_value(self, url: str, name: str) -> str | None:
        return next(
            (value for key, value in parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=1_000) if key == name), None
        )

    @signature({"types": ["string"]}, {"types": ["string"]})
    def _func_link(self, header: str, relation: str) -> str | None:
        for target, parameters in _LINK.find_all(header):
            for _, quoted, plain in _LINK_PARAMETER.find_all(parameters):
                if relation.lower() in (quoted or plain).lower().split():
                    return target
        return None

    @signature({"types": ["string"]}, {"types": ["string"]})
    def _func_after(self, text: str, prefix: str) -> str | None:
        return text[len(prefix) :] if text.startswith(prefix) else None

    @signature({"types": ["string"]}, {"types": ["string"]})
    def _func_fields(self, text: str, name: str) -> list[str]:
        pairs = (part.strip().partition("=") for part in text.split(","))
        return [value for key, found, value in pairs if found and key == name]

    @signature({"types": ["number"]})
    def _func_ms(self, milliseconds: float) -> float:
        whole, rest = divmod(milliseconds, 1_000)
        return milliseconds / 1_000 if rest else int(whole)

    @signature({"types": ["string", "number"]})
    def _func_epoch(self, time: JsonValue) -> float | None:
        moment = instant_of(time)
        if moment is None:
            return None
        seconds = moment.timestamp()
        return int(seconds) if seconds.is_integer() else seconds

    @signature({"types": ["string", "number"]})
    def _func_http_date(self, time: JsonValue) -> str | None:
        moment = instant_of(time)
        return None if moment is None else format_datetime(moment, usegmt=True)

    @signature({"types": ["string"]})
    def _func_from_json(self, text: str) -> JsonValue:
        value = parse_answer(text)
        self._budget.measure(value)
        return value

    @signature({"types": ["string"]})
    def _func_lower(self, text: str) -> str:
        return text.lower()

    @signature({"types": ["string"]})
    def _func_keep_slashes(self, text: str) -> str:
        return KeepSlashes(text)

    @signature({"types": ["string"]})
    def _func_sha256_hex(self, text: str) -> str:
        return hashlib.sha256(text.encode("utf-8")).hexdigest()


_LINK: Final = pattern(r"<([^<>]*)>((?:\s*;[^,<\"]*(?:\"[^\"]*\")?)*)")
_LINK_PARAMETER: Final = pattern(r"(?i);\s*(rel)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")

FUNCTIONS: Final = Functions()
