"""A draft as YAML: values, and beside them what a person should know of them.

* `Said(value, remark)` is a value of which a person should know something; `hole(remark)` is what only a person can give.
* Whatever a text holds, it stays in its place: what is not plain is quoted, what is not printable is escaped, and a remark is one line
  of printable characters. A text of the document that is just `?` becomes a hole, as the language has it.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias, TypeGuard

from domain.language.holes import HOLE

WIDTH: Final = 132
COMMENTS_AT: Final = 60
MAX_REMARK: Final = 240
MAX_NESTED: Final = 3
"""So many levels stand in one line."""

_PART: Final = r"(?:[A-Za-z0-9_./@()+-]|:(?=[A-Za-z0-9/]))"
_PLAIN: Final = re.compile(rf"[A-Za-z_/]{_PART}*(?: (?:[A-Za-z0-9_./@()+]|:(?=[A-Za-z0-9/])){_PART}*)*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class Said:
    """A value, and what a person should know of it."""

    value: str | int | bool
    remark: str


Tree: TypeAlias = "Said | str | int | float | bool | Sequence[Tree] | Mapping[str, Tree] | None"


@dataclass(frozen=True, slots=True)
class Section:
    """Top keys of a file, and the comment above them (empty: none)."""

    content: Mapping[str, Tree]
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A file, and how many holes it has."""

    text: str
    holes: int


def hole(remark: str) -> Said:
    """What only a person can say."""
    return Said(HOLE, remark)


def one_line(text: str, limit: int = MAX_REMARK) -> str:
    """A stranger's text as one line of printable characters."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 3].rstrip()}..."


def written(sections: Sequence[Section]) -> Written:
    """The sections as YAML, with a blank line between."""
    pages = [_Page() for _ in sections]
    for page, section in zip(pages, sections, strict=True):
        page.lines += _comment(section.comment, "")
        for name, value in section.content.items():
            page.top(name, value)
    return Written("\n".join("\n".join([*page.lines, ""]) for page in pages), sum(page.holes for page in pages))


@dataclass(frozen=True, slots=True)
class _Flow:
    """A value in one line."""

    text: str
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Page:
    """Lines as they come."""

    lines: list[str] = field(default_factory=list[str])
    holes: int = 0

    def top(self, name: str, value: Tree) -> None:
        """A top key; a map stands below it, however short."""
        if isinstance(value, Mapping) and value:
            self.lines.append(f"{scalar(name)}:")
            self._block("  ", "  ", value)
        else:
            self._entry(f"{scalar(name)}:", "  ", value)

    def _block(self, first: str, below: str, value: "Sequence[Tree] | Mapping[str, Tree]") -> None:
        """The entries of a map or list, the first one behind `first`."""
        named = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
        for index, (name, item) in enumerate(named):
            head = f"{below if index else first}{'-' if name is None else f'{scalar(name)}:'}"
            self._entry(head, f"{below}  ", item)

    def _entry(self, head: str, below: str, value: Tree) -> None:
        flow = _flow(value)
        line = f"{head} {flow.text}"
        if not _is_inner(value) or (len(line) <= WIDTH and len(flow.remarks) <= 1 and _is_short(value)):
            self._say(line, flow.remarks[:1])
            self.holes += sum(1 for _ in _holes(value))
        elif head.endswith("-"):
            self._block(f"{head} ", below, value)
        else:
            self.lines.append(head)
            self._block(below, below, value)

    def _say(self, line: str, remarks: tuple[str, ...]) -> None:
        """A line with its remark behind it, or above it where that would be too long."""
        remark = one_line(remarks[0]) if remarks else ""
        beside = f"{line.ljust(COMMENTS_AT - 2)}  # {remark}"
        if remark and len(beside) > WIDTH:
            self.lines += _comment(remark, " " * (len(line) - len(line.lstrip())))
        self.lines.append(beside if remark and len(beside) <= WIDTH else line)


def _comment(text: str, indent: str) -> Iterator[str]:
    for paragraph in text.split("\n"):
        wrapped = textwrap.wrap(one_line(paragraph, 2_000), WIDTH - len(indent) - 2, break_on_hyphens=False)
        yield from (f"{indent}# {line}" for line in wrapped)


def _flow(value: Tree) -> _Flow:
    match value:
        case Said():
            return _Flow(scalar(value.value), (value.remark,))
        case str():
            return _Flow(scalar(value), ("the document has a question mark here",) if value == HOLE else ())
        case Mapping():
            parts = [(f"{scalar(name)}: ", _flow(item)) for name, item in value.items()]
            return _Flow(f"{{{', '.join(name + part.text for name, part in parts)}}}", _remarks(part for _, part in parts))
        case Sequence():
            inner = [_flow(item) for item in value]
            return _Flow(f"[{', '.join(part.text for part in inner)}]", _remarks(inner))
        case _:
            return _Flow(scalar(value))


def _remarks(parts: Iterable[_Flow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remark for part in parts for remark in part.remarks))


def _is_inner(value: Tree) -> TypeGuard["Sequence[Tree] | Mapping[str, Tree]"]:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(value)


def _is_short(value: "Sequence[Tree] | Mapping[str, Tree]") -> bool:
    """Whether a value may stand in one line: a list of maps has a line for each."""
    return _depth(value) <= MAX_NESTED and (isinstance(value, Mapping) or not any(map(_is_inner, value)))


def _inner(value: Tree) -> Iterator[Tree]:
    match value:
        case str() | Said():
            return
        case Mapping():
            yield from value.values()
        case Sequence():
            yield from value
        case _:
            return


def _depth(value: Tree) -> int:
    return max((1 + _depth(item) for item in _inner(value)), default=0)


def _holes(value: Tree) -> Iterator[Tree]:
    if value == HOLE or (isinstance(value, Said) and value.value == HOLE):
        yield value
    for item in _inner(value):
        yield from _holes(item)


def scalar(value: str | int | float | bool | None) -> str:
    """A value as it stands in a line, bare if that reads back as the same."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return format(Decimal(repr(value)), "f")
        case str() if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        case str():
            return f'"{"".join(map(_escaped, value))}"'


def _escaped(letter: str) -> str:
    code = ord(letter)
    match letter:
        case '"' | "\\":
            return f"\\{letter}"
        case _ if letter.isprintable():
            return letter
        case _ if 0xD800 <= code < 0xE000:
            return "\N{REPLACEMENT CHARACTER}"
        case _:
            return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
