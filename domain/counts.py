"""What a provider counts: done = succeeded + failed + cancelled + expired, total = done + unprocessed.

* Any of the seven may be given; the rest follows. What is neither given nor follows is not known, except that a provider who never
  counts cancelled or expired items has none of them, nor unprocessed ones if it gives no total either. Nobody is presumed to have
  no failures.
* A number that is negative, no whole number, text, or that contradicts another is said, and then nothing is claimed at all: from
  figures of which one is wrong nothing follows. So are numbers that add up to 2^53 or more: no entry holds such a sum.
* Counts decide an `ended` job, and nothing else ever: on the way they inform.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from pydantic import JsonValue

from domain.language.calls import ItemWord
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.stages import Counts

Outcome = Literal["whole", "partial", "none"]

WORDS: Final[tuple[ItemWord, ...]] = get_args(ItemWord)
OTHERS: Final = tuple(word for word in WORDS if word != "succeeded")
_LAWS: Final = (("done", ("succeeded", "failed", "cancelled", "expired")), ("total", ("done", "unprocessed")))
_LARGEST: Final = 2**53


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of one answer, those that follow among them; or why nothing is claimed. Both empty: none were given."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    problem: str | None = None


def read_counts(wanted: Counts | None, scope: Scope) -> Counted:
    """The counts that an answer holds. Total."""
    if wanted is None:
        return Counted()
    given: dict[str, int] = {}
    for name in named_counts(wanted):
        try:
            value = first_value(getattr(wanted, name), scope)
        except TooMuch:
            return Counted(problem=f"the count {name} is more than is read")
        number = whole_number(value)
        if number is not None:
            given[name] = number
        elif value is not None:
            return Counted(problem=f"the count {name} is {_kind(value)}")
    return complete(given, named=named_counts(wanted))


def named_counts(wanted: Counts) -> tuple[str, ...]:
    """What the contract says where to find."""
    return tuple(name for name in Counts.model_fields if getattr(wanted, name))


def complete(given: Mapping[str, int], *, named: tuple[str, ...]) -> Counted:
    """The counts with all that follows from them; or what contradicts."""
    found = dict(given)
    if not found:
        return Counted()
    presumed = [word for word in ("cancelled", "expired") if word not in named]
    if not {"total", "unprocessed"} & set(named):
        presumed.append("unprocessed")
    _solve(found)
    for word in presumed:
        # Whatever follows from what was given comes first: only what is still open is presumed to be none.
        found.setdefault(word, 0)
        _solve(found)
    return Counted(problem=problem) if (problem := _contradiction(found)) else Counted(found)


def _solve(found: dict[str, int]) -> None:
    """Add what follows."""
    for _ in _LAWS:
        for whole, parts in _LAWS:
            open_parts = [part for part in parts if part not in found]
            if whole not in found and not open_parts:
                found[whole] = sum(found[part] for part in parts)
            elif whole in found and len(open_parts) == 1:
                found[open_parts[0]] = found[whole] - sum(found[part] for part in parts if part in found)


def _contradiction(found: Mapping[str, int]) -> str | None:
    if any(number >= _LARGEST for number in found.values()):
        return "the counts add up to 2^53 or more"
    for whole, parts in (*_LAWS, ("total", WORDS)):
        here = {part: found[part] for part in parts if part in found}
        said = " and ".join(f"{number} {part}" for part, number in here.items() if number)
        if whole in found and (sum(here.values()) > found[whole] or (len(here) == len(parts) and sum(here.values()) != found[whole])):
            return f"the counts contradict each other: {said} are not {found[whole]} {whole}"
    below = next((word for word, number in found.items() if number < 0), None)
    return None if below is None else f"the counts contradict each other: {below} would be {found[below]}"


def outcome_of(counts: Mapping[str, int]) -> Outcome | None:
    """What counts say of a job that has ended; None if they leave it open."""
    succeeded, total = counts.get("succeeded"), counts.get("total")
    if succeeded is None or total is None:
        return None
    if succeeded == total:
        return "whole"
    return "partial" if succeeded else "none"


def whole_number(value: JsonValue) -> int | None:
    """A count is a whole number that is not negative; `2.0` is the same number as `2`."""
    match value:
        case bool():
            return None
        case int() if 0 <= value < _LARGEST:
            return value
        case float() if 0 <= value < _LARGEST and value.is_integer():
            return int(value)
        case _:
            return None


def _kind(value: JsonValue) -> str:
    match value:
        case bool() | str() | list() | dict() | None:
            return "no number"
        case _ if value < 0:
            return "negative"
        case _:
            return "no whole number within 2^53"
