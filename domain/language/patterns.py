"""Patterns in RE2 syntax: linear in time, whatever the text. The one place that touches the library, which has no types."""

from functools import lru_cache
from typing import Any, cast

import re2

from domain.errors import BadInput


class BadPattern(BadInput):
    """The text is not a pattern in RE2 syntax."""

    code = "bad_pattern"


class Pattern:
    """A compiled pattern. Text that UTF-8 cannot carry matches nothing."""

    __slots__ = ("_compiled",)

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = cast("Any", re2.compile(text, options))  # pyright: ignore[reportUnknownMemberType]
        except re2.error as error:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            raise BadPattern(f"a pattern in RE2 syntax ({_message(cast('Exception', error))})") from None
        except UnicodeEncodeError:
            raise BadPattern("a pattern in RE2 syntax (text without lone surrogates)") from None

    def matches(self, text: str) -> bool:
        """Whether the whole text fits."""
        try:
            return self._compiled.fullmatch(text) is not None
        except UnicodeEncodeError:
            return False

    def find_all(self, text: str) -> list[tuple[str, ...]]:
        """The groups of each place that fits."""
        try:
            return [cast("tuple[str, ...]", found.groups(default="")) for found in self._compiled.finditer(text)]
        except UnicodeEncodeError:
            return []


@lru_cache(maxsize=1_024)
def pattern(text: str) -> Pattern:
    """The compiled pattern. Raises BadPattern."""
    return Pattern(text)


def _message(error: Exception) -> str:
    detail: object = error.args[0] if error.args else ""
    return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
