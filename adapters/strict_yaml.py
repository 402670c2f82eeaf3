"""Strict YAML: what a person wrote, as JSON, with the place of every value.

* One document of UTF-8, JSON's scalars only: `true false null ~`, integers, decimals, text. No tags, no merge keys, no directives, no
  double keys. Aliases are expanded, and counted before they cost anything.
* Whoever reads names the bounds: bytes, values, levels. What breaks a rule is a finding with line and column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import yaml
from pydantic import JsonValue

from domain.errors import BadContract, Finding

Positions = dict[tuple[str | int, ...], tuple[int, int]]

_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_TEXT_MEANT: Final = re.compile(
    r"but (found|got) (?!'?<(stream|document) end)|cannot start any token|(keys|values|entries) are not allowed|did not find expected"
)
_WORDS: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a file may have. `what`: what is expected where it has nothing. `quick`: by the parser in C, if there is one, which has
    other words for what is wrong."""

    what: str
    size: int
    values: int
    levels: int
    quick: bool = False

    @property
    def said(self) -> str:
        """The size, as a person says it."""
        return f"{self.size // 2**20} MiB" if self.size >= 2**20 else f"{self.size // 2**10} KiB"


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


@dataclass(frozen=True)
class Parsed:
    """A file as JSON, and the place of every path."""

    root: _Node

    @cached_property
    def document(self) -> JsonValue:
        """The value."""
        return _plain(self.root)

    @cached_property
    def positions(self) -> Positions:
        """Lines and columns; of a value in a map, those of its key."""
        found: Positions = {}
        _place_all(self.root, (), found)
        return found


def read_yaml(data: bytes, file: str, bounds: Bounds) -> Parsed:
    """Strict YAML as JSON. Raises BadContract."""
    if len(data) > bounds.size:
        raise _bad(file, 1, 1, f"a file of at most {bounds.said}")
    try:
        return Parsed(_Reader(file, bounds).read(data.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise _bad(file, data.count(b"\n", 0, error.start) + 1, 1, "UTF-8") from None
    except yaml.MarkedYAMLError as error:
        endless = "end of stream" in (error.problem or "")  # what has no end is looked for where it begins
        mark = (endless and error.context_mark) or error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        hint = "; quote it, if it is meant as text" if _TEXT_MEANT.search(error.problem or "") else ""
        raise _bad(file, line + 1, column + 1, f"YAML ({error.problem}){hint}") from None
    except (yaml.YAMLError, ValueError, OverflowError):  # the scanner lets bad escapes of characters through as ValueError
        raise _bad(file, 1, 1, "YAML of printable characters") from None


class _Reader:
    """Builds nodes from YAML's events, so that tags, anchors and directives are seen before anything interprets them."""

    def __init__(self, file: str, bounds: Bounds) -> None:
        self._file = file
        self._bounds = bounds
        self._anchors: dict[str, _Node] = {}

    def read(self, text: str) -> _Node:
        loader = yaml.CSafeLoader if self._bounds.quick and yaml.__with_libyaml__ else yaml.SafeLoader
        events = iter(yaml.parse(text, Loader=loader))
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
            raise _bad(self._file, 1, 1, f"{self._bounds.what}; the file is empty")
        return root

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> _Node:
        if depth > self._bounds.levels:
            raise self._wrong(event, f"at most {self._bounds.levels} levels")
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
        if depth + found.depth - 1 > self._bounds.levels:
            raise self._wrong(event, f"at most {self._bounds.levels} levels")
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
        if parent.size > self._bounds.values:
            raise self._wrong(event, f"at most {self._bounds.values} values, aliases written out")
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


def _plain(node: _Node) -> JsonValue:
    if node.entries is not None:
        return {name: _plain(child) for name, child in node.entries.items()}
    if node.items is not None:
        return [_plain(child) for child in node.items]
    return node.value


def _place_all(node: _Node, path: tuple[str | int, ...], positions: Positions) -> None:
    positions.setdefault(path, (node.line, node.column))
    for name, child in (node.entries or {}).items():
        positions[(*path, name)] = node.keys[name]
        _place_all(child, (*path, name), positions)
    for index, child in enumerate(node.items or ()):
        _place_all(child, (*path, index), positions)


def _bad(file: str, line: int, column: int, expected: str) -> BadContract:
    return BadContract([Finding(file, line, column, "", expected)])
