"""Schemas of an OpenAPI document: what is in them, and as JSON Schema 2020-12.

* Nothing is made up, and what can't be carried is left open: a word that JSON Schema does not have, a number that canonical JSON does
  not, a pattern that is not of linear time, a property whose schema is long.
* Names of properties that a contract could not write plainly are left out.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from adapters.drafting.openapi import Node, as_node, as_nodes, is_true
from domain.errors import BadInput
from domain.jsontext import check_carriable
from domain.language.input_schema import check_schema

LARGE: Final = 600
"""A property whose schema is longer than this is left open: the provider's own document says it better."""

MAX_PROPERTIES: Final = 200
MAX_DEPTH: Final = 6
_NAME: Final = re.compile(r"[^\"\\$`{}]{1,64}")
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})


def can_be_named(name: str) -> bool:
    """Whether a contract writes the name plainly."""
    return _NAME.fullmatch(name) is not None and name.isprintable()


def expression(root: str, *path: str) -> str:
    """A path below a root as an expression."""
    return ".".join([root, *(part if _PLAIN.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)])


def properties(schema: Node, *, writing: bool = False) -> Node:
    """The properties of a schema, those of its parts included; for `writing` without those that only the provider writes."""
    found: Node = {}
    for part in _parts(schema, MAX_DEPTH):
        for name, value in as_node(part.get("properties")).items():
            if can_be_named(name) and not (writing and is_true(as_node(value).get("readOnly"))) and len(found) < MAX_PROPERTIES:
                found[name] = value
    return found


def unnamed(schema: Node) -> list[str]:
    """The properties that a contract could not write."""
    return [name for part in _parts(schema, MAX_DEPTH) for name in as_node(part.get("properties")) if not can_be_named(name)]


def required(schema: Node) -> frozenset[str]:
    """The names that a schema asks for whatever else holds."""
    parts = _parts(schema, MAX_DEPTH, through=("allOf",))
    return frozenset(name for part in parts for name in as_nodes(part.get("required")) if isinstance(name, str))


def has_alternatives(schema: Node) -> bool:
    """Whether properties of a schema exclude each other."""
    return any(as_nodes(part.get(word)) for part in _parts(schema, MAX_DEPTH) for word in ("oneOf", "anyOf"))


def leaves(schema: Node, depth: int = 3) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Properties with their paths, the shallow ones first."""
    level: list[tuple[tuple[str, ...], Node]] = [((), schema)]
    for _ in range(depth):
        level = [((*here, name), as_node(value)) for here, node in level for name, value in properties(node).items()]
        yield from level


def is_text(schema: Node) -> bool:
    """Whether a value of the schema can be a text or a number."""
    return not kinds(schema) or bool(kinds(schema) & {"string", "integer"})


def kinds(schema: Node) -> frozenset[str]:
    """The types that a schema names; none: it leaves them open."""
    kind = schema.get("type")
    return frozenset(str(one) for one in (kind if isinstance(kind, list) else [kind]) if one is not None)


def json_schema(node: JsonValue) -> Node:
    """A property's schema as JSON Schema."""
    kept = _kept(node, 0)
    try:
        check_schema(kept)
    except BadInput:
        return {}
    return kept


def _kept(node: JsonValue, depth: int) -> Node:
    if not isinstance(node, dict) or depth >= MAX_DEPTH:
        return {}
    kept = {word: _below(word, value, depth) for word, value in node.items() if word in _FITS and _FITS[word](value)}
    if is_true(node.get("nullable")):
        _allow_null(kept)
    if len(json.dumps(kept)) <= LARGE:
        return kept
    return {word: kept[word] for word in ("type",) if word in kept}


def _allow_null(kept: Node) -> None:
    """What OpenAPI 3.0 says beside the type."""
    if "type" in kept:
        kept["type"] = [*dict.fromkeys([*as_nodes(kept["type"]), *([kept["type"]] if isinstance(kept["type"], str) else []), "null"])]
    if "enum" in kept and None not in as_nodes(kept["enum"]):
        kept["enum"] = [*as_nodes(kept["enum"]), None]


def _below(word: str, value: JsonValue, depth: int) -> JsonValue:
    match word, value:
        case "properties", dict():
            return {name: _kept(item, depth + 1) for name, item in value.items() if can_be_named(name)}
        case "required", list():
            return [name for name in value if isinstance(name, str) and can_be_named(name)]
        case (("items" | "additionalProperties"), dict()):
            return _kept(value, depth + 1)
        case (("anyOf" | "oneOf" | "allOf"), list()):
            return [_kept(item, depth + 1) for item in value]
        case _:
            return value


def _parts(schema: Node, depth: int, through: tuple[str, ...] = ("allOf", "oneOf", "anyOf")) -> Iterator[Node]:
    yield schema
    if depth:
        for word in through:
            for part in as_nodes(schema.get(word)):
                yield from _parts(as_node(part), depth - 1, through)


def _is_kind(value: JsonValue) -> bool:
    named = value if isinstance(value, list) else [value]
    return bool(named) and all(isinstance(one, str) and one in _TYPES for one in named)


def _is_size(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0 and _is_carried(value)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_carried(value)


def _is_carried(value: JsonValue) -> bool:
    """What a contract can write: no number that it would have to write with an exponent of many digits."""
    try:
        check_carriable(value)
    except BadInput:
        return False
    listed = value if isinstance(value, list) else [value]
    return all(not isinstance(one, dict | list) for one in listed) and all(
        abs(one) < 2**53 for one in listed if isinstance(one, int | float)
    )


def _is_enum(value: JsonValue) -> bool:
    return isinstance(value, list) and bool(value) and _is_carried(value)


def _is_pattern(value: JsonValue) -> bool:
    try:
        check_schema({"pattern": value if isinstance(value, str) else "("})
    except BadInput:
        return False
    return True


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, list) and bool(value)


def _is_schema(value: JsonValue) -> bool:
    return isinstance(value, dict | bool)


_FITS: Final[Mapping[str, Callable[[JsonValue], bool]]] = {
    "type": _is_kind,
    "properties": lambda value: isinstance(value, dict),
    "required": _is_list,
    "enum": _is_enum,
    "const": _is_carried,
    "items": _is_schema,
    "additionalProperties": _is_schema,
    "minimum": _is_number,
    "maximum": _is_number,
    "minLength": _is_size,
    "maxLength": _is_size,
    "minItems": _is_size,
    "maxItems": _is_size,
    "uniqueItems": lambda value: isinstance(value, bool),
    "pattern": _is_pattern,
    "anyOf": _is_list,
    "oneOf": _is_list,
    "allOf": _is_list,
}
"""The words that are carried, each with what its value has to be. `default` is not: the provider applies it."""
