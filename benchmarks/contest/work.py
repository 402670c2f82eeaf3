"""What is asked of the provider, the same for all. Imports no library: a contestant may live in an environment of its own."""

from typing import Any

Body = dict[str, Any]
"""Temporal's converter reads no narrower type."""
DELAY_S = 0.1
"""Between two readings of a job's status."""
IN_FLIGHT = 100
"""So many operations at once, at most: more than the delays need to keep all processors busy."""
ROWS = 5
ACTIVITIES, WORKFLOW_TASKS = 200, 100
"""What a worker of any kind may do at a time."""


def report(polls: int) -> Body:
    """A small report that takes so many readings until it has ended, and one that sees it."""
    return {"account": "contest", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv", "rows": ROWS, "polls": polls}
