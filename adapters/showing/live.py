"""An operation followed live on a terminal; line by line where there is none."""

import sys
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from adapters.showing.text import inert, provider_words, status_text
from domain.evidence import Json


class Follower:
    """Shows each status as it comes. Use as a context."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True) if sys.stdout.isatty() else None
        self._last: Mapping[str, Json] | None = None

    def __enter__(self) -> "Follower":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
        if self._last is not None:
            sys.stdout.write(status_text(self._last) + "\n")

    def show(self, status: Mapping[str, Json]) -> None:
        """The newest status."""
        changed = self._last is None or line_of(self._last) != line_of(status)
        self._last = status
        if self._live is not None:
            self._live.update(Text.from_ansi(status_text(status)), refresh=True)
        elif changed:
            sys.stdout.write(line_of(status) + "\n")
            sys.stdout.flush()


def line_of(status: Mapping[str, Json]) -> str:
    """A status as one line."""
    waits = f"waits for {status['waiting_for']}" if status["waiting_for"] else ""
    return "  ".join(part for part in (inert(status["state"]), inert(provider_words(status)), waits, inert(status["why"] or "")) if part)
