"""Markdown that is read by people who do not trust its contents, and by programs that draw it.

Whatever came from outside stands in code spans: no link, picture, tag, heading or table cell can be made of it, and characters that
hide or reorder text are shown by their number.
"""

import json
from collections.abc import Iterable, Sequence

from adapters.showing.text import inert
from domain.evidence import Json


def code(value: object) -> str:
    """Any value as a code span. A backtick or a bar, which would end a span or a cell, is shown by its number."""
    text = inert(value).replace("`", "\\u0060").replace("|", "\\u007c")
    return f"`{text}`" if text.strip() else "(empty)"


def plain(value: Json) -> str:
    """Text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {line}" for line in lines)


def numbered(lines: Iterable[str]) -> str:
    """A numbered list."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are ours or went through `code`."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
