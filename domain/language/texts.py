"""Every template, expression and match of a contract, with its path: the one walk that all checks share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from domain.language.calls import FilePart, Request
from domain.language.expressions import Expression, compile_expression
from domain.language.grammar import Kind, Strict
from domain.language.matching import templates_of
from domain.language.templates import Template, compile_template, texts_of

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """One expression where it stands; `template` is the text around it, if it is a hole."""

    path: Path
    expression: Expression
    template: Template | None


def texts(model: Strict) -> Iterator[Text]:
    """Every expression below `model`, holes of templates included."""
    for path, kind, value in _fields(model, ()):
        yield from _texts(path, kind, value)


def fits(pattern: str, path: Path) -> bool:
    """Whether `path` is at or below the dotted `pattern`; `*` stands for one part."""
    wanted = pattern.split(".")
    return len(path) >= len(wanted) and all(one in ("*", str(part)) for one, part in zip(wanted, path, strict=False))


def _fields(model: Strict, path: Path) -> Iterator[tuple[Path, Kind, object]]:
    for name, field in type(model).model_fields.items():
        if name not in model.model_fields_set:
            continue
        here, value = (*path, field.alias or name), cast("object", getattr(model, name))
        kind = next((mark for mark in field.metadata if isinstance(mark, Kind)), None)
        if kind is not None:
            yield here, kind, value
        elif isinstance(model, Request) and name == "multipart":  # a part is a file or a text: the mark would stand too deep to be seen
            yield from _parts(model, here)
        else:
            yield from _below(value, here)


def _parts(request: Request, path: Path) -> Iterator[tuple[Path, Kind, object]]:
    for name, part in (request.multipart or {}).items():
        if isinstance(part, FilePart):
            yield from _fields(part, (*path, name))
        else:
            yield (*path, name), Kind.TEMPLATE, part


def _below(value: object, path: Path) -> Iterator[tuple[Path, Kind, object]]:
    match value:
        case Strict():
            yield from _fields(value, path)
        case tuple():
            for index, item in enumerate(cast("tuple[object, ...]", value)):
                yield from _below(item, (*path, index))
        case dict():
            for name, item in cast("dict[str, object]", value).items():
                yield from _below(item, (*path, name))
        case _:
            return


def _texts(path: Path, kind: Kind, value: object) -> Iterator[Text]:
    match kind, value:
        case Kind.EXPRESSION, tuple():
            for index, text in enumerate(cast("tuple[str, ...]", value)):
                yield Text((*path, index), compile_expression(text), None)
        case Kind.EXPRESSION, dict():
            for name, item in cast("dict[str, object]", value).items():
                yield from _texts((*path, name), kind, item)
        case Kind.MATCH, dict():
            match = cast("dict[str, JsonValue]", value)
            for key in match:
                yield Text((*path, key), compile_expression(key), None)
            for below, text in templates_of(match):
                yield from _holes((*path, *below), text)
        case _:
            for below, text in texts_of(cast("JsonValue", value)):
                yield from _holes((*path, *below), text)


def _holes(path: Path, text: str) -> Iterator[Text]:
    template = compile_template(text)
    for hole in template.holes:
        yield Text(path, hole, template)
