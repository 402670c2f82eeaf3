"""Text that has come and could not be read yet, because what it belongs to is not whole.

* What was read in vain is read again only when as much again has come: a long record costs its length a few times, in whatever pieces
  it comes.
* How long a record may be is the reader's rule. It is asked as soon as what is held passes that, never much later.
"""

import math


class HeldText:
    """`least`: so much is worth reading. `longest`: more than that is no record. `more`: so much more is waited for at most."""

    def __init__(self, *, longest: int, least: int = 0, more: float = math.inf) -> None:
        self._longest = longest
        self._least = least
        self._more = more
        self._parts: list[str] = []
        self._need: float = least
        self.length = 0

    def add(self, text: str) -> bool:
        """More has come; whether it is now worth reading."""
        self._parts.append(text)
        self.length += len(text)
        return self.length >= self._need

    def take(self) -> str:
        """All of it, which is then held no longer."""
        text = "".join(self._parts)
        self._parts, self.length = [], 0
        return text

    def keep(self, rest: str) -> None:
        """What is left of the text that was taken."""
        self._parts, self.length = [rest], len(rest)
        doubled = max(self._least, 2 * len(rest))
        self._need = min(doubled, len(rest) + self._more, self._longest + 1)
