"""What is wrong with the steps of a contract: where each of them stands, what it may know, and what is known of it.

* A step knows the steps before it; its undo knows its own values too. What every other call knows: the steps of create, and those
  of its own stage. A step that asks for a later one, or for itself, could never be sent: that is what a circle of steps is.
* The steps of an output are done for each of its elements, and known to that output alone; which elements there are is decided
  before. The steps of `collect`, where it has several outputs, are done once and known to all of them.
* `undo` belongs to the steps of create alone: no other stage has anything to take back if nothing is committed.
"""

from collections.abc import Iterator
from typing import Final

from domain.contract import Contract
from domain.language.calls import Step
from domain.language.expressions import compile_expression
from domain.language.page_checks import check_way
from domain.language.parts import steps
from domain.language.texts import Path, Text


def check_steps(contract: Contract, found: tuple[Text, ...]) -> Iterator[tuple[Path, str]]:
    """Every error of the steps, as path and what was expected. `found`: every text of the contract."""
    seen: set[str] = set()
    for path, step in steps(contract):
        if step.step in seen:
            yield (*path, "step"), f"a name of its own; {step.step} is the name of an earlier step"
        seen.add(step.step)
        yield from _check_step(path, step)
    for text in found:
        yield from _check_text(contract, text, seen)
    yield from _check_token(contract, found)


def _check_step(path: Path, step: Step) -> Iterator[tuple[Path, str]]:
    if "done" not in {answer.word for answer in step.answers}:
        yield (*path, "answers"), "an answer that is done"
    if step.undo is not None and path[:2] != ("create", "before"):
        yield (*path, "undo"), "no undo outside of create.before: nothing else is taken back when an operation ends without a commit"
    if step.pages is not None:
        yield from (((*path, "pages"), said) for said in check_way(step.pages, needed=True))
    if step.pages is None or not step.pages.items:
        for name, expressions in step.save.items():
            if any("items" in compile_expression(text).roots for text in expressions):
                yield (*path, "save", name), "no items where pages names none"


def _check_text(contract: Contract, text: Text, everywhere: set[str]) -> Iterator[tuple[Path, str]]:
    known = {step.step: step for step in known_at(contract, text.path)}
    for path in sorted(text.expression.paths):
        if path[0] != "steps" or len(path) == 1:
            continue
        name = path[1]
        if name not in everywhere:
            yield text.path, f"steps has no {name}; it has {', '.join(sorted(everywhere)) or 'nothing'}"
        elif name not in known:
            yield text.path, f"a step that is done before this; {name} is not: known here are {', '.join(known) or 'none'}"
        elif len(path) > 2 and path[2] not in known[name].save:
            yield text.path, f"the step {name} saves no {path[2]}; it saves {', '.join(sorted(known[name].save)) or 'nothing'}"


def known_at(contract: Contract, path: Path) -> tuple[Step, ...]:
    """The steps whose values are known at a place, in the order in which they are done."""
    made, collect = contract.create.before, contract.collect
    match path:
        case ("create", "before", int(index), "undo", *_):
            return made[: index + 1]
        case ("create", "before", int(index), *_):
            return made[:index]
        case ("observe", *rest) if contract.observe:
            return made + _before(contract.observe.before, rest)
        case ("cancel", "force", *rest) if contract.cancel and contract.cancel.force:
            return made + _before(contract.cancel.force.before, rest)
        case ("cancel", *rest) if contract.cancel:
            return made + _before(contract.cancel.before, rest)
        case ("collect", "outputs", str(name), *rest) if collect:
            return made + collect.before + _of_output(collect.outputs[name].before, rest)
        case ("collect", *rest) if collect:
            return made + (_before if collect.outputs else _of_output)(collect.before, rest)
        case _:
            return made


def _before(before: tuple[Step, ...], rest: list[str | int]) -> tuple[Step, ...]:
    match rest:
        case ["before", int(index), *_]:
            return before[:index]
        case _:
            return before


def _of_output(before: tuple[Step, ...], rest: list[str | int]) -> tuple[Step, ...]:
    return () if rest[0] in _BESIDE_AN_OUTPUT else _before(before, rest)


_BESIDE_AN_OUTPUT: Final = frozenset({"when", "each", "items", "expect"})
"""What is asked of an output before its steps are done, or after all of it was stored."""
_OURS: Final = ("format", "min", "max", "charset")


def _check_token(contract: Contract, found: tuple[Text, ...]) -> Iterator[tuple[Path, str]]:
    token = contract.create.token
    if token is None or not token.source:
        return
    for name in _OURS:
        if name in token.model_fields_set:
            yield ("create", "token", name), f"no {name} beside from: what a step gave is sent as it is"
    if any(compile_expression(text).roots != frozenset({"steps"}) for text in token.source):
        yield ("create", "token", "from"), "a value of an earlier step, as in steps.upload.id"
    for text in found:
        if text.path[:2] == ("create", "before") and "token" in text.expression.roots:
            yield text.path, "no ${token} before the step that gives it"
