"""Writes docs/lifecycle.md from the data of the rules: `python -m docs.write_lifecycle`.

Nothing on the page is said twice: rows, guards, steps, clocks and choices come from `domain/`; only the sentences between them are
written here. A test compares the page with what this makes.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from domain.evidence import FROM_OUTSIDE, Evidence
from domain.facts import DeadlinesMs
from domain.folding import CLOCK_STARTED_BY
from domain.guards import GUARDS
from domain.lifecycle import CHOICES, CLOCKS, STEPS, WHY
from domain.standing import FINAL, HELD_READS_BEFORE_FLAG, PARKED, State
from domain.tables import GROUPS, STATES, TABLES, Row

Line = tuple[tuple[State, ...], tuple[str, ...], str]
PAGE = Path(__file__).with_name("lifecycle.md")

HEAD = """\
# The life of an operation

Made by `python -m docs.write_lifecycle` from `domain/tables.py` and its neighbours; change those, not this page.

- An operation has a *state*, and a stream of entries. `domain/lifecycle.py` says what a piece of evidence does: *move* (change the
  state), *stay* (an entry of the owner that does not), or *note* (a fact from anyone, which changes neither the state nor what may
  be sent). Nothing else moves a state.
- `domain/folding.py` folds the entries into the *standing*, which is all that a rule may ask. The same entries give the same standing
  on every machine.
- Rows are tried from top to bottom; the first whose state, evidence and conditions fit decides. A pair that no row has is a flagged
  note if the evidence comes from outside ({outside}), and an error if it is of our own making.
- Nothing leaves a final state; later facts are notes. Policy, a clock or a human ends an operation only while no attempt of any
  generation is unproven and no job is known; otherwise the same evidence leads to `create_unknown`.
- What the steps ahead of a create left at the provider is undone once the operation has ended without a commit, and before a new
  generation starts: the last step of a final state is then `undo`, and a note says what came of it. What a generation left whose
  create may have been carried out is never undone.
- An attempt is *unproven* while its intent has no outcome, or its outcome does not show that nothing was executed.
- The first terminal observation is kept for ever. Progress, counts and what a provider answers to a cancel never end anything.
- While an operation is in attention nothing with an effect is sent. Proof that arrives still counts.
"""

PICTURE = """\
## The picture

Moves only. Left out, because they start almost everywhere: `contract_violation` (a provider contradicts its contract or itself) and
`abandoned` (a human gives up an operation in attention).
"""

ENDED_TWICE = """\
`verdict` stands for `failed` or `cancelled`, whichever the terminal observation says.
"""


def page() -> str:
    """The whole page."""
    parts = [
        HEAD.format(outside=", ".join(f"`{kind}`" for kind in _kinds() if kind in FROM_OUTSIDE)),
        PICTURE + "\n" + _picture(),
        "## States\n\n" + _states() + "\n" + _groups(),
        *(f"## {title}\n\n" + _rows(rows) for title, rows in TABLES.items()),
        "## What may be chosen, in words\n\n" + _choices(),
        "## Clocks\n\n" + _clocks(),
        "## Flags\n\n" + _FLAGS,
        "## Evidence\n\n" + _evidence(),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


_FLAGS = f"""\
A flag is something that a human should see while work goes on. The next decided reading clears all but `leftovers`.

| flag | raised by |
| --- | --- |
| `unknown_state` | a word that the contract does not know, {HELD_READS_BEFORE_FLAG} readings in a row |
| `needs_input` | a reading that says so |
| `read_rejected` | a status read or a fetch of the result that the provider refuses |
| `not_visible` | no reading showed the job within the contract's `appears_within` |
| `leftovers` | the output of a failed or cancelled job could not be had; or what a step left was not undone, or not yet after the end |
"""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def _picture() -> str:
    edges: dict[tuple[str, str], list[str]] = {}
    for row in (row for rows in TABLES.values() for row in rows):
        kind = row.evidence.partition(".")[0]
        for edge in _edges(row):
            words = edges.setdefault(edge, [])
            if kind not in words:
                words.append(kind)
    lines = [f"    {start} --> {end}: {', '.join(words)}" for (start, end), words in sorted(edges.items(), key=_in_order)]
    ends = [f"    {state} --> [*]" for state in STATES if state in FINAL]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> proposed", *lines, *ends, "```"]) + "\n"


def _edges(row: Row) -> Iterator[tuple[str, str]]:
    if row.to in {"stay", "note", "contract_violation", "abandoned"}:
        return
    for start in row.states:
        yield from ((start, end) for end in (("failed", "cancelled") if row.to == "verdict" else (row.to,)))


def _in_order(edge: tuple[tuple[str, str], list[str]]) -> tuple[int, int]:
    order = [str(state) for state in STATES]
    return order.index(edge[0][0]), order.index(edge[0][1])


def _states() -> str:
    return _table(("state", "kind", "step", "clock", "why it waits"), (_state(state) for state in STATES))


def _state(state: State) -> tuple[str, ...]:
    kind = "final" if state in FINAL else "attention" if state in PARKED else "at work"
    step = "`undo` where something is left to undo" if state in FINAL else f"`{STEPS.get(state, 'inbox')}`"
    if state == "create_unknown":
        kind, step = "attention if nothing automatic is left", "`reconcile` while a lookup or an unread late answer is left, else `inbox`"
    return f"`{state}`", kind, step, f"`{CLOCKS[state]}`" if state in CLOCKS else "-", WHY.get(state, "-")


def _rows(rows: tuple[Row, ...]) -> str:
    blocks: dict[tuple[Line, ...], list[str]] = {}
    for evidence in dict.fromkeys(row.evidence for row in rows):
        lines = tuple((row.states, row.when, row.to) for row in rows if row.evidence == evidence)
        blocks.setdefault(lines, []).append(evidence)
    cells: list[tuple[str, ...]] = []
    for lines, words in blocks.items():
        if (said := _evidence_of(words, lines)) is not None:
            cells.extend((_from(states), said, _if(when), f"`{to}`") for states, when, to in lines)
    text = _table(("from", "evidence", "if", "to"), cells)
    return text + ("\n" + ENDED_TWICE if any(row.to == "verdict" for row in rows) else "")


def _evidence_of(words: list[str], lines: tuple[Line, ...]) -> str | None:
    """The evidence of a block; None if it is shown beside its twin: a late answer counts as its create word."""
    if all(word.startswith("late.") and _lines("exchange" + word.removeprefix("late")) == lines for word in words):
        return None
    twins = ["late" + word.removeprefix("exchange") for word in words if word.startswith("exchange.")]
    both = [*words, *(twin for twin in twins if _lines(twin) == lines)]
    return ", ".join(f"`{word}`" for word in both)


def _lines(evidence: str) -> tuple[Line, ...]:
    return tuple((row.states, row.when, row.to) for rows in TABLES.values() for row in rows if row.evidence == evidence)


def _from(states: tuple[State, ...]) -> str:
    left, named = set(states), list[str]()
    if left == set(STATES):
        return "any"
    if left == set(STATES) - FINAL:
        return "any that is not final"
    if len(missing := set(STATES) - left) == 1:
        return f"any but `{missing.pop()}`"
    for name, group in GROUPS.items():
        if left >= set(group):
            named.append(f"*{name}*")
            left -= set(group)
    return ", ".join([*(f"`{state}`" for state in states if state in left), *named])


def _groups() -> str:
    return _table(
        ("in the tables", "stands for"), ((f"*{name}*", ", ".join(f"`{state}`" for state in group)) for name, group in GROUPS.items())
    )


def _if(when: tuple[str, ...]) -> str:
    return "; ".join(f"not: {GUARDS[guard[1:]][0]}" if guard.startswith("!") else GUARDS[guard][0] for guard in when) or "-"


def _choices() -> str:
    return _table(("choice", "what it does"), ((f"`{verb}`", words) for verb, words in CHOICES.items()))


def _clocks() -> str:
    spans = DeadlinesMs()
    rows: list[tuple[str, ...]] = []
    for clock in dict.fromkeys(CLOCKS.values()):
        started = [f"`{state}`" for state, name in CLOCK_STARTED_BY.items() if name == clock] or ["the entry that learns the job"]
        bounded = [f"`{state}`" for state, name in CLOCKS.items() if name == clock]
        span = getattr(spans, "create" if clock == "lookup" else clock) // 60_000
        rows.append((f"`{clock}`", ", ".join(started), ", ".join(bounded), f"{span} min"))
    return (
        "Absolute instants, set by the entry that enters. A new generation after proven absence keeps its create clock; `replay` and\n"
        "`retry_create` set a new one, `resume` a new result or cancel clock, `recollect` a new collect clock. A contract may set each\n"
        "but `lookup`, which is as long as `create`.\n\n"
        + _table(("clock", "started by entering", "bounds", "unless the contract says"), rows)
    )


def _kinds() -> dict[str, type[BaseModel]]:
    return {model.model_fields["kind"].default: model for model in get_args(Evidence)}


def _evidence() -> str:
    rows: list[tuple[str, ...]] = []
    for kind, model in _kinds().items():
        meanings = get_args(model.model_fields["meaning"].annotation)
        said = " ".join((model.__doc__ or "").split())
        rows.append((f"`{kind}`", said, ", ".join(f"`{meaning}`" for meaning in meanings)))
    return _table(("kind", "what it is", "meanings"), rows)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
