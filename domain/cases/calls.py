"""The calls of a contract by the names that cases use, and every entry that a case can reach.

`create`, `observe`, `cancel`, `cancel.force`, `collect` (one output) or `collect.OUTPUT`, `reconcile.N`, `items.N`; steps as
`create.before.STEP`, `create.before.STEP.undo`, `observe.before.STEP`, `collect.OUTPUT.before.STEP` and so on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from domain.contract import Contract
from domain.language.calls import Answer as Entry
from domain.language.calls import ItemRead, Lookup, Output, Request, Source, Step
from domain.language.texts import Path

CallKind = Literal["create", "observe", "cancel", "step", "undo", "collect", "get", "list", "items"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call: where it stands in the contract, and the parts of it that its kind has."""

    name: str
    kind: CallKind
    path: Path
    request: Request | None = None
    entries: Sequence[Entry[str]] = ()
    entries_key: str = "answers"
    step: Step | None = None
    output: Output | None = None
    lookup: Lookup | None = None
    read: ItemRead | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """An entry, or a source of an output, and where it stands."""

    path: Path
    entry: Entry[str] | Source


def calls_of(contract: Contract) -> dict[str, Call]:
    """Every call by its name."""
    return {call.name: call for call in _calls(contract)}


def places_of(contract: Contract) -> tuple[Place, ...]:
    """Every entry that a case should reach, each once: where several sources stand in a list, these too."""
    return tuple(_places(contract))


def _calls(contract: Contract) -> Iterator[Call]:
    create, observe, cancel = contract.create, contract.observe, contract.cancel
    yield Call("create", "create", ("create",), create.request, create.answers)
    yield from _steps("create", ("create",), create.before)
    if observe:
        yield Call("observe", "observe", ("observe",), observe.request, observe.states, "states")
        yield from _steps("observe", ("observe",), observe.before)
    if cancel:
        yield Call("cancel", "cancel", ("cancel",), cancel.request, cancel.answers)
        yield from _steps("cancel", ("cancel",), cancel.before)
    if cancel and cancel.force:
        yield Call("cancel.force", "cancel", ("cancel", "force"), cancel.force.request, cancel.force.answers)
        yield from _steps("cancel.force", ("cancel", "force"), cancel.force.before)
    yield from _collecting(contract)
    for index, lookup in enumerate(contract.reconcile):
        if lookup.by != "webhook":
            call = Call(f"reconcile.{index}", lookup.by, ("reconcile", index), lookup.request, lookup.answers, lookup=lookup)
            yield call


def _collecting(contract: Contract) -> Iterator[Call]:
    collect = contract.collect
    if collect is None:
        return
    if collect.outputs:
        yield from _steps("collect", ("collect",), collect.before)
    for name, output in collect.every.items():
        path: Path = ("collect", "outputs", name) if collect.outputs else ("collect",)
        yield Call(".".join(map(str, path)).replace("collect.outputs.", "collect."), "collect", path, output=output)
        yield from _steps(f"collect.{name}" if collect.outputs else "collect", path, output.before)
    for index, read in enumerate(collect.items.read if collect.items else ()):
        yield Call(f"items.{index}", "items", ("collect", "items", "read", index), entries=read.states, entries_key="states", read=read)


def _steps(name: str, path: Path, steps: Sequence[Step]) -> Iterator[Call]:
    for index, step in enumerate(steps):
        here: Path = (*path, "before", index)
        call = Call(f"{name}.before.{step.step}", "step", here, step.request, step.answers, step=step)
        yield call
        if step.undo:
            yield replace(call, name=f"{call.name}.undo", kind="undo", request=step.undo, entries=(), path=(*here, "undo"))


def _places(contract: Contract) -> Iterator[Place]:
    for call in _calls(contract):
        yield from (Place((*call.path, call.entries_key, index), entry) for index, entry in enumerate(call.entries))
        sources = call.output.source if call.output else ()
        for index, source in enumerate(sources):
            if len(sources) > 1:
                yield Place((*call.path, "from", index), source)
            yield from (Place((*call.path, "from", index, "answers", at), entry) for at, entry in enumerate(source.answers))
    yield from (Place(("errors", "answers", index), entry) for index, entry in enumerate(contract.errors.answers))
