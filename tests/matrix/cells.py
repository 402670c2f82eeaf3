"""Every cell: each word of the simulator in each phase that it can be told in, for each contract, told once and told always.

Told always is told for one of the kinds that say the same of a phase; told once is told for all.
"""

from collections.abc import Iterator
from functools import cache

from simulator.answer import Kind as Call
from simulator.lies import LIES
from tests.matrix.kinds import Kind, kinds
from tests.matrix.oracle import PHASES, Cell, Phase
from tests.matrix.words import WORDS


def calls_of(phase: Phase, kind: Kind) -> frozenset[Call]:
    """What the calls of a phase are to the simulator. A lie about lists is told to a lookup by name where a status can tell it too."""
    match phase:
        case "create":
            return frozenset({"read" if kind.at_once else "create"})
        case "lookup":
            return frozenset({"list", kind.lookups_are})
        case "observe" | "cancel" | "collect":
            return frozenset({phase})


def has(phase: Phase, kind: Kind) -> bool:
    """Whether operations of this kind come to that phase."""
    return phase == "create" or (kind.looks_up if phase == "lookup" else not kind.at_once)


def cells(phase: Phase, kind: Kind) -> list[Cell]:
    """The cells of one phase of one kind."""
    return [cell for word in WORDS for cell in _of_word(word, phase, kind)] if has(phase, kind) else []


@cache
def cells_of(phase: Phase) -> tuple[Cell, ...]:
    """The cells of one phase."""
    return tuple(cell for kind in kinds() for cell in cells(phase, kind))


def every_cell() -> list[Cell]:
    """The whole matrix."""
    return [cell for phase in PHASES for cell in cells_of(phase)]


def _of_word(word: str, phase: Phase, kind: Kind) -> Iterator[Cell]:
    row = WORDS[word]
    if not calls_of(phase, kind) <= LIES[word].kinds:
        return
    for number, (form, _) in enumerate(row.forms):
        if number and phase not in {"create", "observe"}:
            return
        yield Cell(word, form, False, phase, kind)
        if not row.once_only and number == 0 and kind.name in _insistent(phase):
            yield Cell(word, form, True, phase, kind)


@cache
def _insistent(phase: Phase) -> frozenset[str]:
    """The kinds to which a lie is told always: the first of those that say the same of the phase."""
    first: dict[str, str] = {}
    for kind in kinds():
        if has(phase, kind):
            first.setdefault(kind.said_of(phase), kind.name)
    return frozenset(first.values())
