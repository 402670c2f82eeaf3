"""The JSON Schema of an operation's input (and of a result): compiled without retrieval, with linear-time patterns.

* Edition 2020-12. `$ref` leads into the same document only.
* What the schema has is asked by path, so that a contract that reads `input.x` without `x` is found before it is used.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, cast

import jsonschema_rs
from pydantic import JsonValue

from domain.errors import BadInput

MAX_PROBLEMS: Final = 20
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OPEN: Final = frozenset({"allOf", "anyOf", "oneOf", "if", "then", "else", "patternProperties", "dependentSchemas", "$dynamicRef"})

Schema = Mapping[str, JsonValue]


class BadSchema(BadInput):
    """The schema is not one, or leads out of its document."""

    code = "bad_schema"


def check_schema(schema: Schema) -> None:
    """Raise BadSchema for what can't be compiled."""
    _compiled(json.dumps(schema, sort_keys=True))


def problems_of(schema: Schema, value: JsonValue) -> tuple[str, ...]:
    """What is wrong with `value`, each as `path: what was expected`, at most 20; empty if it fits."""
    errors = _compiled(json.dumps(schema, sort_keys=True)).iter_errors(value)
    return tuple(_problem(error) for _, error in zip(range(MAX_PROBLEMS), errors, strict=False))


def has_path(schema: Schema, path: tuple[str, ...]) -> bool:
    """Whether the schema knows the path. What it leaves open it is taken to know."""
    return _step(schema, schema, path, 0)


def is_required(schema: Schema, path: tuple[str, ...]) -> bool:
    """Whether an input that fits always has a value at `path`, as far as `properties` and `required` tell."""
    node: JsonValue = dict(schema)
    for name in path:
        resolved = _resolved(schema, node)
        if resolved is None or name not in _list(resolved.get("required")) or not isinstance(resolved.get("properties"), dict):
            return False
        node = cast("dict[str, JsonValue]", resolved["properties"]).get(name)
    return True


def _step(root: Schema, node: JsonValue | Schema, path: tuple[str, ...], depth: int) -> bool:
    resolved = _resolved(root, node)
    if not path or resolved is None or depth > 64:
        return True
    properties = resolved.get("properties")
    if isinstance(properties, dict) and path[0] in properties:
        return _step(root, properties[path[0]], path[1:], depth + 1)
    if _OPEN & resolved.keys() or resolved.get("additionalProperties", False) is not False:
        return True
    return not isinstance(properties, dict) and "additionalProperties" not in resolved


def _resolved(root: Schema, node: JsonValue | Schema) -> Schema | None:
    """The schema behind local references; None where it can't be told."""
    for _ in range(64):
        if not isinstance(node, Mapping):
            return None
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return node
        node = _pointed(root, reference)
    return None


def _pointed(root: Schema, reference: str) -> JsonValue:
    node: JsonValue = dict(root)
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, dict) else None
    return node


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _references(node: JsonValue) -> Iterator[str]:
    if isinstance(node, dict):
        for name, item in node.items():
            if name in ("$ref", "$dynamicRef") and isinstance(item, str):
                yield item
            elif name != "enum":
                yield from _references(item)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


@lru_cache(maxsize=256)
def _compiled(text: str) -> jsonschema_rs.Draft202012Validator:
    schema = cast("dict[str, JsonValue]", json.loads(text))
    if schema.get("$schema", DIALECT) != DIALECT:
        raise BadSchema(f"a JSON Schema of the edition {DIALECT}")
    if any(not reference.startswith("#") for reference in _references(schema)):
        raise BadSchema("a JSON Schema with references into itself only (#/...)")
    try:
        return jsonschema_rs.Draft202012Validator(schema, offline=True, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError as error:
        raise BadSchema(f"a JSON Schema ({str(error).splitlines()[0]})") from None


def place_of(error: jsonschema_rs.ValidationError) -> str:
    """Where in the value it is, as a JSON path."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)


def _problem(error: jsonschema_rs.ValidationError) -> str:
    return f"{place_of(error)}: {error.message}"[:500]
