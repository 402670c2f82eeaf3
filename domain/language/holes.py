"""Holes of a draft: what only a person can say, and has not said yet.

* A text that is exactly `?`, anywhere in a contract's file, is a hole. A file with a hole is no contract, whatever stands around it.
* No value of a contract is therefore this text: `{pattern: "[?]"}` compares with it.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from domain.language.checks import Problem
from domain.language.texts import Path

HOLE: Final = "?"


def holes(document: JsonValue, path: Path = ()) -> Iterator[Problem]:
    """Every hole of a parsed file, in its order."""
    match document:
        case str() if document == HOLE:
            yield Problem(path, "a hole that a person has to fill", "hole")
        case list():
            for index, item in enumerate(document):
                yield from holes(item, (*path, index))
        case dict():
            for name, item in document.items():
                yield from holes(item, (*path, name))
        case _:
            return
