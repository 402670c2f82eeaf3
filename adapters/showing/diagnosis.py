"""What `doctor` found, as text for a terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from adapters.diagnosis import Finding
from adapters.showing.text import drawn, inert

_STYLES = {"good": "green", "note": "yellow", "wrong": "red"}


def diagnosis_text(findings: Sequence[Finding]) -> str:
    """One line for each finding, and under it what to do."""
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(overflow="fold")
    for one in findings:
        said = Text(inert(one.said))
        if one.hint:
            said.append(f"\n-> {inert(one.hint)}", style="dim")
        table.add_row(Text(one.level, style=_STYLES[one.level]), Text(one.what), said)
    return drawn(table)
