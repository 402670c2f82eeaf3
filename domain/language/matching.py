"""Match: the only conditions of the language. All entries of a map must hold.

* A key is an expression; a value says what it must be: equal with exact case and no conversion, `~` no value, a list any of its
  elements (an inner `[]`: the empty list), `{not}`, `{min, max}` for two numbers or two RFC 3339 times, `{pattern}` for the whole text
  in RE2 syntax.
* A text is a template; one without a value equals nothing, not even no value.
* Under the key `status` alone, `2xx` and `400..499` are ranges.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from pydantic import JsonValue

from domain.errors import BadInput, RenderError
from domain.jsontext import equal
from domain.language.expressions import Scope, compile_expression, evaluate
from domain.language.functions import TooMuch, rfc3339
from domain.language.patterns import BadPattern, pattern
from domain.language.templates import compile_template, fill, texts_of

Match = Mapping[str, JsonValue]
Sameness = Literal["same", "differs", "missing"]

CONDITIONS: Final = ("not", "min", "max", "pattern")
_CLASS: Final = pattern(r"[1-5]xx")
_RANGE: Final = pattern(r"([1-9][0-9]{2})\.\.([1-9][0-9]{2})")


class BadMatch(BadInput):
    """The value is not a match of the language; `path` leads to what is wrong."""

    code = "bad_match"

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


def check_match(match: Match) -> None:
    """Raise BadMatch, BadExpression or BadTemplate (as BadMatch with its path) for what is not a match."""
    for key, wanted in match.items():
        try:
            compile_expression(key)
            _check_wanted(key, wanted, (key,))
        except BadMatch:
            raise
        except BadInput as error:
            raise BadMatch(error.message, (key,)) from None


def roots_of(match: Match) -> frozenset[str]:
    """Every root that a match mentions, in its keys and its templates."""
    keys = frozenset(root for key in match for root in compile_expression(key).roots)
    return keys.union(*(hole.roots for _, text in templates_of(match) for hole in compile_template(text).holes))


def templates_of(match: Match) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every template of a match with its path; patterns are none."""
    for key, wanted in match.items():
        for path, text in texts_of(wanted):
            if "pattern" not in path:
                yield (key, *path), text


def holds(match: Match, scope: Scope, read: dict[str, JsonValue] | None = None) -> bool:
    """Whether all entries hold. Raises TooMuch.

    `read` keeps what each key came to, for whoever tries many matches on one scope: hundreds of states ask for the same few values.
    """
    values = {} if read is None else read
    for key, wanted in match.items():
        if key not in values:
            values[key] = evaluate(key, scope)
        if not _holds(key, values[key], wanted, scope):
            return False
    return True


def sameness(match: Match, scope: Scope) -> Sameness:
    """`differs` as soon as one value is there and does not hold; else `missing` if one has no value and that is not allowed."""
    found: Sameness = "same"
    for key, wanted in match.items():
        value = evaluate(key, scope)
        if _holds(key, value, wanted, scope):
            continue
        if value is not None:
            return "differs"
        found = "missing"
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """The first value of a match that is there and does not hold: of which key, what was due (one of these), what was found.

    `roots`: what the values that were due are made of.
    """

    field: str
    expected: tuple[JsonValue, ...]
    found: JsonValue
    roots: frozenset[str]


def difference(match: Match, scope: Scope) -> Difference | None:
    """Where a match `differs`, or None; total, as `is_met` is."""
    try:
        return _difference(match, scope)
    except TooMuch:
        return None


def _difference(match: Match, scope: Scope) -> Difference | None:
    for key, wanted in match.items():
        value = evaluate(key, scope)
        if value is not None and not _holds(key, value, wanted, scope):
            due = tuple(_due(key, one, scope) for one in (wanted if isinstance(wanted, list) else [wanted]))
            roots = (hole.roots for _, text in templates_of({key: wanted}) for hole in compile_template(text).holes)
            return Difference(key, due, value, frozenset[str]().union(*roots))
    return None


def _due(key: str, wanted: JsonValue, scope: Scope) -> JsonValue:
    """What a value had to be, with its templates filled; a condition as it is written."""
    match wanted:
        case str() if not (key == "status" and is_range(wanted)):
            return _filled(wanted, scope)
        case dict():
            return ", ".join(f"{word} {operand if isinstance(operand, str) else json.dumps(operand)}" for word, operand in wanted.items())
        case _:
            return wanted


def tested(match: Match, scope: Scope) -> str | int | float | bool | None:
    """The first value of the answer's body that the match looks at, if it is a plain one: what a person would call the state."""
    for key in match:
        if "body" in compile_expression(key).roots:
            value = evaluate(key, scope)
            if isinstance(value, str | int | float):
                return value
    return None


def _holds(key: str, value: JsonValue, wanted: JsonValue, scope: Scope) -> bool:
    match wanted:
        case None:
            return value is None
        case list():
            return any(value == [] if one == [] else _holds(key, value, one, scope) for one in wanted)
        case dict():
            return all(_condition(key, value, word, operand, scope) for word, operand in wanted.items())
        case str():
            return _in_range(value, wanted) if key == "status" and is_range(wanted) else _equals(value, wanted, scope)
        case _:
            return equal(value, wanted)


def _condition(key: str, value: JsonValue, word: str, operand: JsonValue, scope: Scope) -> bool:
    match word:
        case "not":
            return not _holds(key, value, operand, scope)
        case "pattern":
            return isinstance(value, str) and pattern(str(operand)).matches(value)
        case _:
            bound = _filled(operand, scope) if isinstance(operand, str) else operand
            order = compare(value, bound)
            return order is not None and (order >= 0 if word == "min" else order <= 0)


def is_met(match: Match, scope: Scope) -> bool:
    """`holds`, total: what is more than may be evaluated does not hold."""
    try:
        return holds(match, scope)
    except TooMuch:
        return False


def compare(value: JsonValue, bound: JsonValue) -> int | None:
    """-1, 0 or 1 for two numbers or two RFC 3339 times; None for anything else."""
    if isinstance(value, str) and isinstance(bound, str):
        left, right = rfc3339(value), rfc3339(bound)
        return None if left is None or right is None else (left > right) - (left < right)
    if isinstance(value, bool) or isinstance(bound, bool) or not (isinstance(value, int | float) and isinstance(bound, int | float)):
        return None
    return (value > bound) - (value < bound)


@lru_cache(maxsize=256)
def is_range(text: str) -> bool:
    """Whether `text` is a range of status codes."""
    return bool(_CLASS.matches(text) or _RANGE.matches(text))


def _in_range(value: JsonValue, text: str) -> bool:
    if not isinstance(value, int):
        return False
    low, high = _bounds(text)
    return low <= value <= high


@lru_cache(maxsize=256)
def _bounds(text: str) -> tuple[int, int]:
    if _CLASS.matches(text):
        return int(text[0]) * 100, int(text[0]) * 100 + 99
    low, high = text.split("..")
    return int(low), int(high)


def _equals(value: JsonValue, text: str, scope: Scope) -> bool:
    wanted = _filled(text, scope)
    return wanted is not None and equal(value, wanted)


def _filled(text: str, scope: Scope) -> JsonValue:
    """The template's value, or None where it has none: nothing is sent here, so that is no error."""
    try:
        return fill(text, scope)
    except RenderError:
        return None


def _check_wanted(key: str, wanted: JsonValue, path: tuple[str | int, ...]) -> None:
    match wanted:
        case str():
            if key != "status" or not is_range(wanted):
                compile_template(wanted)
        case list():
            for index, one in enumerate(wanted):
                if isinstance(one, list) and one:
                    raise BadMatch("no list within a list, but `[]` for the empty list", (*path, index))
                _check_wanted(key, one, (*path, index))
        case dict():
            _check_conditions(key, wanted, path)
        case _:
            pass


def _check_conditions(key: str, wanted: Mapping[str, JsonValue], path: tuple[str | int, ...]) -> None:
    for word, operand in wanted.items():
        match word, operand:
            case "not", _:
                _check_wanted(key, operand, (*path, word))
            case "pattern", str():
                try:
                    pattern(operand)
                except BadPattern as error:
                    raise BadMatch(error.message, (*path, word)) from None
            case (("min" | "max"), int() | float() | str()) if not isinstance(operand, bool):
                if isinstance(operand, str) and not compile_template(operand).holes and rfc3339(operand) is None:
                    raise BadMatch("a number, an RFC 3339 time or a template", (*path, word))
            case _:
                raise BadMatch(f"one of {', '.join(CONDITIONS)}, with a fitting value", (*path, word))
    if not wanted or not ({"min", "max"} >= wanted.keys() or len(wanted) == 1):
        raise BadMatch(f"exactly one of {', '.join(CONDITIONS)} (min and max may stand together)", path)
