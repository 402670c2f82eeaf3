"""Many texts, looked for at once in another one.

* Of several that begin at one place, the longest is meant; what was found is not looked at again.
* Without patterns made of what is sought: it is looked up in order, so that many long texts cost little more than few short ones.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

_ONE_BY_ONE: Final = 256
"""Searching a long text for one after another is quicker than looking at each of its places, up to about so many."""
S = TypeVar("S", str, bytes)


class Sought(Generic[S]):
    """Texts of `least` characters or more. One without any is false."""

    def __init__(self, texts: Iterable[S], least: int) -> None:
        self._texts = sorted(text for text in texts if len(text) >= least)
        self._within = _beginnings(self._texts)
        self._heads: set[S] = {text[:least] for text in self._texts}
        self._longest = max(map(len, self._texts), default=0)
        self._least = least

    def __bool__(self) -> bool:
        return bool(self._texts)

    def finds(self, text: S) -> Iterator[tuple[int, S]]:
        """What stands in a text, and where it begins."""
        heads, least, at = self._heads, self._least, 0
        while at <= len(text) - least:
            found = self._found_at(text, at) if text[at : at + least] in heads else None
            if found is None:
                at += 1
                continue
            yield at, found
            at += len(found)

    def stands_in(self, text: S) -> bool:
        """Whether any of them stands in a text, which may be long."""
        if len(self._texts) <= _ONE_BY_ONE:
            return any(one in text for one in self._texts)
        return next(self.finds(text), None) is not None

    def cut(self, text: S) -> int | None:
        """Where the beginning of one begins that the text ends with."""
        for at in range(max(0, len(text) - self._longest), len(text) - self._least + 1):
            if text[at : at + self._least] in self._heads:
                tail = text[at:]
                index = bisect_left(self._texts, tail)
                if index < len(self._texts) and self._texts[index][: len(tail)] == tail:
                    return at
        return None

    def _found_at(self, text: S, at: int) -> S | None:
        """The longest that the text goes on with: the greatest that is not greater than the text, or the next that this begins with."""
        index = bisect_right(self._texts, text[at : at + self._longest]) - 1
        while index >= 0 and not text.startswith(self._texts[index], at):
            index = self._within[index]
        return None if index < 0 else self._texts[index]


def _beginnings(texts: list[S]) -> list[int]:
    """For each of some texts in order, which is the longest other one that it begins with; -1 for none.

    A text between another and what goes on with that goes on with it too: so whoever looks for the longest beginning need not try each.
    """
    within: list[int] = []
    open: list[int] = []
    for index, text in enumerate(texts):
        while open and not text.startswith(texts[open[-1]]):
            open.pop()
        within.append(open[-1] if open else -1)
        open.append(index)
    return within
