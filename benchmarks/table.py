"""One table of figures, as Markdown."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """What one measurement came to. `notes` say what the figures mean and what they leave out."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """A heading, the table, and the notes as a list."""
        lines = [f"### {self.title}", "", _row(self.head), _row("---" for _ in self.head), *map(_row, self.rows)]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
