"""Which objects a result has: each output is one, or with `each` one per element of a list.

* A plan is made from what the contract says and from the answer that ended the waiting, before anything is fetched. The same answer
  gives the same plan, so a later attempt finds what an earlier one staged: a piece is known by its output and its name. Where elements
  have no names, their numbers mean something in that one list only: of another list, in whatever order, none was staged.
* An output whose `when` does not hold is *empty*, and so is one with a list of no elements: both are said, neither is passed over.
* A name comes from a stranger. What is kept of it is safe as a file's name, is never a path, and is another for every other name: what
  has no place in it is percent-encoded, what is too long ends in its digest. Two elements of one name are an error, and so are more
  objects than one operation keeps: which of them would have been the result, nobody could say.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from domain.errors import RenderError
from domain.fingerprint import sha256_hex
from domain.language.calls import Output, Source
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.grammar import parse_duration
from domain.language.matching import is_met
from domain.language.stages import Collect
from domain.language.templates import compile_template, fill, fill_text

MAX_OBJECTS: Final = 1_000
"""Stored objects of one operation."""
MAX_NAME: Final = 100
LONGEST_S: Final = 10 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Piece:
    """One object that is to be stored. `element`: its name within an output with `each`, made safe. `listed`: the list that numbers it."""

    output: str
    model: Output
    element: str | None = None
    each: JsonValue = None
    listed: str = ""

    @property
    def name(self) -> str:
        """The name in the record."""
        return self.output if self.element is None else f"{self.output}/{self.element}"

    @property
    def mark(self) -> str:
        """What tells it from every other piece of the operation, as part of a key."""
        return sha256_hex(f"{self.name}{self.listed}".encode())[:32]

    def scope(self, scope: Scope) -> Scope:
        """The roots that its templates know."""
        return replace(scope, each=self.each)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be had, or the problem that makes it impossible to say. `empty` names outputs that have nothing."""

    pieces: tuple[Piece, ...] = ()
    empty: tuple[str, ...] = ()
    problem: str | None = None


class _Impossible(Exception):
    """It can't be said what the result is; the text says why."""


def plan(collect: Collect, scope: Scope) -> Plan:
    """The pieces of a result, in the order of the outputs' names. Total: whatever the provider answered gives a plan."""
    pieces: list[Piece] = []
    empty: list[str] = []
    try:
        for name, output in sorted(collect.every.items()):
            found = list(_pieces(name, output, scope, MAX_OBJECTS - len(pieces)))
            pieces += found
            if not found:
                empty.append(name)
    except _Impossible as problem:
        return Plan(problem=str(problem))
    return Plan(tuple(pieces), tuple(empty))


def _pieces(name: str, output: Output, scope: Scope, room: int) -> Iterator[Piece]:
    if output.when is not None and not is_met(output.when, scope):
        return
    if not output.each:
        if room < 1:
            raise _Impossible(_TOO_MANY)
        yield Piece(name, output)
        return
    elements = _elements(name, output, scope)
    if len(elements) > room:
        raise _Impossible(f"{name}: the answer names {len(elements)} elements; {_TOO_MANY}")
    listed = "" if output.name else f"@{sha256_hex(json.dumps(elements, sort_keys=True).encode())}"
    named: dict[str, int] = {}
    for number, element in enumerate(elements, start=1):
        safe = _name_of(name, output, scope, element, number)
        if safe in named:
            raise _Impossible(f"{name}: the elements {named[safe]} and {number} have one name, {safe}")
        named[safe] = number
        yield Piece(name, output, safe, element, listed)


_TOO_MANY: Final = f"one operation keeps {MAX_OBJECTS} objects at most"


def _elements(name: str, output: Output, scope: Scope) -> list[JsonValue]:
    try:
        found = first_value(output.each, scope)
    except TooMuch:
        raise _Impossible(f"{name}: the answer names more elements than can be looked at; {_TOO_MANY}") from None
    if not isinstance(found, list):
        raise _Impossible(f"{name}: the answer holds no list of elements where the contract says it is")
    return found


def _name_of(name: str, output: Output, scope: Scope, element: JsonValue, number: int) -> str:
    if output.name is None:
        return str(number)
    try:
        given = fill_text(output.name, replace(scope, each=element))
    except RenderError:
        raise _Impossible(f"{name}: the element {number} has no name") from None
    if not given:
        raise _Impossible(f"{name}: the element {number} has no name")
    return safe_name(given)


def safe_name(text: str) -> str:
    """`text` as the name of a file: letters, digits and `-_.` as they are, all else percent-encoded; no other text gives the same."""
    safe = quote(text.encode("utf-8", "surrogatepass"), safe="").replace("~", "%7E")
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    return safe if len(safe) <= MAX_NAME else f"{safe[: MAX_NAME - 17]}~{sha256_hex(safe.encode())[:16]}"


def source_of(output: Output, scope: Scope) -> Source | None:
    """The first source that fits; None where none does."""
    return next((one for one in output.source if one.when is None or is_met(one.when, scope)), None)


def lifetime_s(output: Output, scope: Scope) -> float | None:
    """For how many seconds an output can be fetched; None where that is not said, or what is said is no such number."""
    text = output.good_for
    if text is None:
        return None
    if not compile_template(text).holes:
        return parse_duration(text).total_seconds()
    try:
        value = fill(text, scope)
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (RenderError, ValueError, OverflowError):
        return None
    return seconds if seconds is not None and 0 <= seconds <= LONGEST_S else None
