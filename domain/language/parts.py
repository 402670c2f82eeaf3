"""The parts of a contract that stand in many places, each with its path: requests, steps, and lists that are tried in order.

Found by walking the whole model, so that a place that is added to the language is checked without being named here.
"""

from collections.abc import Iterator
from typing import TypeVar, cast

from domain.language.calls import Answer, Lookup, Request, Source, Step
from domain.language.grammar import Strict
from domain.language.texts import Path

P = TypeVar("P", bound=Strict)


def requests(model: Strict) -> Iterator[tuple[Path, Request]]:
    """Every request: of calls, steps, undos, outputs and lookups."""
    yield from _of(Request, model)


def steps(model: Strict) -> Iterator[tuple[Path, Step]]:
    """Every step, in the order in which they stand."""
    yield from _of(Step, model)


def paged(model: Strict) -> Iterator[tuple[Path, Step | Source | Lookup]]:
    """Whatever may be answered in pages."""
    yield from ((path, value) for path, value in _walk(model, ()) if isinstance(value, Step | Source | Lookup))


def entry_lists(model: Strict) -> Iterator[tuple[Path, tuple[Answer[str] | Source, ...]]]:
    """Every list whose entries are tried in order: of answers, states, sources."""
    for path, value in _walk(model, ()):
        if isinstance(value, tuple):
            entries = cast("tuple[object, ...]", value)
            if entries and isinstance(entries[0], Answer | Source):
                yield path, cast("tuple[Answer[str] | Source, ...]", entries)


def _of(kind: type[P], model: Strict) -> Iterator[tuple[Path, P]]:
    yield from ((path, value) for path, value in _walk(model, ()) if isinstance(value, kind))


def _walk(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    yield path, value
    match value:
        case Strict():
            for name, field in type(value).model_fields.items():
                if name in value.model_fields_set:
                    yield from _walk(cast("object", getattr(value, name)), (*path, field.alias or name))
        case tuple():
            for index, item in enumerate(cast("tuple[object, ...]", value)):
                yield from _walk(item, (*path, index))
        case dict():
            for name, item in cast("dict[str, object]", value).items():
                yield from _walk(item, (*path, name))
        case _:
            return
