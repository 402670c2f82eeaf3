"""The folder of contracts: strict YAML files, one per contract and version.

* One document of UTF-8, 256 KiB, JSON's scalars only; no tags, no merge keys, no directives, no double keys. Aliases are
  expanded, counted before they cost anything: 10,000 nodes, 64 levels.
* `NAME.yaml` or `NAME@VERSION.yaml`, and the content says the same name. The newest version is the default.
* One broken file does not hide the others; it is named when it is asked for or checked.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import yaml
from pydantic import JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from domain.contract import Contract
from domain.contract_loading import parse_contract, safety
from domain.errors import BadContract, Finding, NotFound

MAX_BYTES: Final = 256 * 1024
MAX_NODES: Final = 10_000
MAX_DEPTH: Final = 64

_FILE: Final = re.compile(r"([a-z][a-z0-9_.-]*?)(?:@([0-9]+))?\.yaml")
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_WORDS: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(slots=True)
class _Node:
    """A value with its place, and how many nodes it is when every alias below it is written out."""

    line: int
    column: int
    value: JsonValue = None
    entries: dict[str, "_Node"] | None = None
    items: "list[_Node] | None" = None
    keys: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    size: int = 1
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file as JSON, and the place of every path."""

    document: JsonValue
    positions: dict[tuple[str | int, ...], tuple[int, int]]


class ContractFolder:
    """The contracts of one folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Every contract, by name, whether it loads or not."""
        return sorted({name for name, _, _ in self._files()})

    def get(self, reference: str) -> Contract:
        """The contract `name`, in its newest version, or `name@version`. Raises NotFound, BadContract."""
        name, _, version = reference.partition("@")
        paths = [path for found, stated, path in self._files() if found == name and (not version or stated in (None, version))]
        loaded = [load(path) for path in paths]
        fitting = [contract for contract in loaded if not version or str(contract.version) == version]
        if not fitting:
            raise self._not_found(reference, name)
        return max(fitting, key=lambda contract: contract.version)

    def _files(self) -> Iterator[tuple[str, str | None, Path]]:
        for path in sorted(self._path.glob("*.yaml")):
            found = _FILE.fullmatch(path.name)
            if found and not path.name.endswith(".cases.yaml"):
                yield found[1], found[2], path

    def _not_found(self, reference: str, name: str) -> NotFound:
        near = difflib.get_close_matches(name, self.names(), 3, 0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(self.names()) or 'none'}"
        return NotFound(f"no contract {reference}", hint=hint)


def load(path: Path) -> Contract:
    """The contract of one file. Raises NotFound, BadContract."""
    parsed = parse(path)
    contract = parse_contract(parsed.document, file=str(path), positions=parsed.positions)
    found = _FILE.fullmatch(path.name)
    if found and (found[1] != contract.contract or found[2] not in (None, str(contract.version))):
        line, column = parsed.positions.get(("contract",), (1, 1))
        raise BadContract([Finding(str(path), line, column, "contract", f"the name and version of the file, {path.stem}")])
    return contract


def check(path: Path, today: date) -> list[Finding]:
    """What is wrong with one file, and what it leaves unsafe."""
    try:
        parsed = parse(path)
        return safety(load(path), today=today, file=str(path), positions=parsed.positions)
    except BadContract as error:
        return list(error.findings)


def parse(path: Path) -> Parsed:
    """One file as JSON. Raises NotFound, BadContract."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None
    return parse_yaml(data, str(path))


def parse_yaml(data: bytes, file: str) -> Parsed:
    """Strict YAML as JSON. Raises BadContract."""
    if len(data) > MAX_BYTES:
        raise _bad(file, 1, 1, "a file of at most 256 KiB")
    try:
        root = _Reader(file).read(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _bad(file, data.count(b"\n", 0, error.start) + 1, 1, "UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        raise _bad(file, line + 1, column + 1, f"YAML ({error.problem})") from None
    except (yaml.YAMLError, ValueError, OverflowError):  # the scanner lets bad escapes of characters through as ValueError
        raise _bad(file, 1, 1, "YAML of printable characters") from None
    positions: dict[tuple[str | int, ...], tuple[int, int]] = {}
    return Parsed(_plain(root, (), positions), positions)


def json_schema() -> JsonSchemaValue:
    """The language as JSON Schema."""
    return {"$schema": GenerateJsonSchema.schema_dialect, **Contract.model_json_schema(schema_generator=_EditorSchema)}


class _EditorSchema(GenerateJsonSchema):
    """An optional key is left out, never null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


class _Reader:
    """Builds nodes from YAML's events, so that tags, anchors and directives are seen before anything interprets them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._anchors: dict[str, _Node] = {}

    def read(self, text: str) -> _Node:
        events = iter(yaml.parse(text, Loader=yaml.SafeLoader))
        root: _Node | None = None
        for event in events:
            match event:
                case yaml.DocumentStartEvent():
                    if root is not None or event.version or event.tags:
                        raise self._wrong(event, "one document, without directives")
                    root = self._node(next(events), events, 1)
                case _:
                    pass
        if root is None:
            raise _bad(self._file, 1, 1, "a contract; the file is empty")
        return root

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise self._wrong(event, f"at most {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        if getattr(event, "tag", None) is not None:
            raise self._wrong(event, "a value without a tag")
        node = _Node(*_place(event))
        match event:
            case yaml.MappingStartEvent():
                self._mapping(node, events, depth)
            case yaml.SequenceStartEvent():
                self._sequence(node, events, depth)
            case _:
                node.value = _scalar(event)
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is not None:
            if anchor in self._anchors:
                raise self._wrong(event, f"an anchor that is defined once, not &{anchor} again")
            self._anchors[anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent, depth: int) -> _Node:
        found = self._anchors.get(event.anchor or "")
        if found is None:
            raise self._wrong(event, f"an anchor that was completed before *{event.anchor}")
        if depth + found.depth - 1 > MAX_DEPTH:
            raise self._wrong(event, f"at most {MAX_DEPTH} levels")
        return found

    def _mapping(self, node: _Node, events: Iterator[yaml.Event], depth: int) -> None:
        node.entries = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or event.anchor is not None:
                raise self._wrong(event, "a key that is plain text")
            if event.value == "<<" and event.implicit[0]:
                raise self._wrong(event, "no merge key")
            if event.value in node.entries:
                raise self._wrong(event, f"the key {event.value} once")
            node.keys[event.value] = _place(event)
            node.entries[event.value] = self._add(node, self._node(next(events), events, depth + 1), event)

    def _sequence(self, node: _Node, events: Iterator[yaml.Event], depth: int) -> None:
        node.items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            node.items.append(self._add(node, self._node(event, events, depth + 1), event))

    def _add(self, parent: _Node, child: _Node, event: yaml.Event) -> _Node:
        parent.size += child.size
        parent.depth = max(parent.depth, child.depth + 1)
        if parent.size > MAX_NODES:
            raise self._wrong(event, f"at most {MAX_NODES} values, aliases written out")
        return child

    def _wrong(self, event: yaml.Event, expected: str) -> BadContract:
        return _bad(self._file, *_place(event), expected)


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _scalar(event: yaml.Event) -> JsonValue:
    assert isinstance(event, yaml.ScalarEvent), "the parser gives a value where one is due"
    text = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= 1_000 else text
    return float(text) if _DECIMAL.fullmatch(text) else text


def _plain(node: _Node, path: tuple[str | int, ...], positions: dict[tuple[str | int, ...], tuple[int, int]]) -> JsonValue:
    positions.setdefault(path, (node.line, node.column))
    if node.entries is not None:
        for name, place in node.keys.items():
            positions[(*path, name)] = place
        return {name: _plain(child, (*path, name), positions) for name, child in node.entries.items()}
    if node.items is not None:
        return [_plain(child, (*path, index), positions) for index, child in enumerate(node.items)]
    return node.value


def _bad(file: str, line: int, column: int, expected: str) -> BadContract:
    return BadContract([Finding(file, line, column, "", expected)])
