"""Writes docs/failures.md from the matrix of lies: `python -m docs.write_failures`.

Every line is what `tests/matrix` expects of its cells, and the tests there play them all. Nothing is worded for one
line alone: a lie is what the simulator says it is, an outcome what the rules of `tests/matrix/oracle.py` derive.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from simulator.lies import LIES
from tests.matrix.cells import calls_of, cells_of, every_cell, has
from tests.matrix.kinds import Kind, kinds
from tests.matrix.oracle import PHASES, Cell, Expected, Phase, expected
from tests.matrix.words import WORDS

PAGE = Path(__file__).with_name("failures.md")

HEAD = """\
# What comes of what a provider does wrong

Made by `python -m docs.write_failures` from `tests/matrix/`; change that, not this page. The tests there play it: {cells}
cells on a real ledger, with the simulator's books beside them.

In every cell, whatever else is said of it: the books and the ledger agree, `succeeded` has the very bytes that the provider made,
`cancelled` and `failed` stand only where the books say so or nothing was made, every create had its intent first, the chain is whole,
the worker goes on, and no credential went anywhere else.

- *once*: the lie is told one time. *always*: it is told until the deadline of its phase.
- *jobs*: how many the provider's books show in the end. *sent*: how many creates they show. *human*: somebody has to choose; see
  [lifecycle.md](lifecycle.md) for what may be chosen.
- Where two jobs are made, the provider broke the very promise that its contract rests on, or made them of one request.
"""

TITLES: dict[Phase, str] = {
    "create": "While creating",
    "lookup": "While looking up a create whose answer was lost",
    "observe": "While the job runs",
    "cancel": "While cancelling",
    "collect": "While the result is fetched",
}

Label = tuple[str, str]
Outcomes = tuple[tuple[str, Expected], ...]


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            HEAD.format(cells=len(every_cell())),
            "## What each contract can promise\n\n" + _promises(),
            *(f"## {TITLES[phase]}\n\n" + _phase(phase) for phase in PHASES),
            "## The lies\n\n" + _lies(),
        ]
    )


def _promises() -> str:
    rows: list[tuple[str, ...]] = []
    for kind in kinds():
        again = "the same bytes, under a token" if kind.resends else "no"
        found = {"exact": "surely", "heuristic": "perhaps, by a human", "none": "no"}[kind.certainty]
        cancel = "-" if kind.at_once else ("yes" if kind.cancels_again else "no")
        rows.append((f"{_short(kind)} (`{kind.name}`)", again, found, cancel))
    return _table(("contract", "a lost create is sent again", "its job is found", "a lost cancel is sent again"), rows)


def _phase(phase: Phase) -> str:
    """Lies of which the same comes for every contract share their lines."""
    alike: defaultdict[tuple[str, Outcomes], list[Label]] = defaultdict(list)
    labels_told = list(dict.fromkeys((cell.word, cell.form) for cell in cells_of(phase)))
    for label in labels_told:
        once, always = (_outcomes(label, phase, always=always) for always in (False, True))
        if once == always:
            alike["once or always", once].append(label)
            continue
        alike["once", once].append(label)
        if always:
            alike["always", always].append(label)
    lines: list[tuple[str, ...]] = []
    for (told, outcomes), labels in alike.items():
        lines += _lines(_names(labels, labels if told == "always" else labels_told), told, outcomes)
    return _table(("the lie", "told", "contracts", "ends in", "jobs", "sent", "human", "what is done"), lines)


def _outcomes(label: Label, phase: Phase, *, always: bool) -> Outcomes:
    """What comes of it for each contract. Told always is played for one of the kinds that say the same of a phase, and holds for all."""
    word, form = label
    if not any((cell.word, cell.form, cell.always) == (word, form, always) for cell in cells_of(phase)):
        return ()
    about = [kind for kind in kinds() if has(phase, kind) and calls_of(phase, kind) <= LIES[word].kinds]
    return tuple((_short(kind), expected(Cell(word, form, always, phase, kind))) for kind in about)


def _short(kind: Kind) -> str:
    return kind.name.removeprefix("sim.").removesuffix(".create")


def _names(labels: Sequence[Label], told: Sequence[Label]) -> str:
    """The words; with their forms, where another form of a word has another end."""
    forms: defaultdict[str, list[str]] = defaultdict(list)
    for word, form in labels:
        forms[word].append(form)
    return ", ".join(f"`{word}`{_more(word, named, [form for other, form in told if other == word])}" for word, named in forms.items())


def _more(word: str, named: Sequence[str], every: Sequence[str]) -> str:
    after = " after a lost answer" if WORDS[word].after else ""
    return after + ("" if list(named) == list(every) else f" ({', '.join(named)})")


def _lines(names: str, told: str, outcomes: Outcomes) -> list[tuple[str, ...]]:
    by_outcome: defaultdict[Expected, list[str]] = defaultdict(list)
    for kind, outcome in outcomes:
        by_outcome[outcome].append(kind)
    lines: list[tuple[str, ...]] = []
    for outcome, named in by_outcome.items():
        which = "every one" if len(by_outcome) == 1 else ", ".join(named)
        human = "yes" if outcome.human else ""
        shown = (names, told) if not lines else ("", "")
        lines.append((*shown, which, f"`{outcome.state}`", str(outcome.jobs), _sent(outcome), human, outcome.does))
    return lines


def _sent(outcome: Expected) -> str:
    return str(outcome.least_sent) if outcome.most_sent == outcome.least_sent else f"{outcome.least_sent} or more"


def _lies() -> str:
    return _table(("word", "what it is"), ((f"`{word}`", lie.sentence) for word, lie in LIES.items()))


def _table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [names, tuple("---" for _ in names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
