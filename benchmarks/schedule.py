"""Status reads against the schedule that the ledger keeps, by the provider's books.

An operation is *read* if the provider saw a request for its status at the instant in the ledger or later, and *late* by the time
between the two; it is *early* if it was also asked for shortly before that instant.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from benchmarks.fleet import Fleet, cpu_of
from tests.chaos.processes import Child

SLACK = timedelta(minutes=5)
"""How much later than the last due instant a read is still waited for."""
CAUGHT_UP_WITHIN = timedelta(minutes=10)
SHORTLY = timedelta(seconds=20)
NEARLY_ALL = 0.99
LOOK_EVERY = 1.0


@dataclass(frozen=True)
class Restarted:
    """What came of the instants at which operations were due. `late` is in seconds (median, p99, longest); `cpu_per_read` in ms of the
    worker; `busy` its CPU over wall time."""

    due: int
    observed: int
    early: int
    late: tuple[float, float, float]
    per_second: float
    cpu_per_read: float
    busy: float

    def counts(self) -> str:
        """How many were due, were read, and were read early."""
        return f"{self.due} / {self.observed} / {self.early}"

    def lateness(self) -> str:
        """Median, p99 and longest."""
        return " / ".join(f"{seconds:.1f}" for seconds in self.late)


async def due_of(on: Fleet, prefix: str) -> dict[str, datetime]:
    """When each waiting operation is due, by the ledger; those whose id has this prefix."""
    rows, _ = await on.site.books.list(state="accepted", limit=1_000_000)
    more, _ = await on.site.books.list(state="observing", limit=1_000_000)
    return {
        row.stream: datetime.fromisoformat(row.next_at)
        for row in (*rows, *more)
        if row.next_at is not None and row.stream.startswith(prefix)
    }


async def on_schedule(on: Fleet, worker: Child, due: Mapping[str, datetime]) -> Restarted:
    """What becomes of these instants with this worker, which runs before the first of them."""
    last = max(due.values())
    await _sleep_until(min(due.values()) - timedelta(seconds=1))
    before = cpu_of(worker)
    await _sleep_until(last + timedelta(seconds=1))
    await _all_read(on, due, last + SLACK)
    return await _restarted(on, due, before, worker)


async def catch_up(on: Fleet, worker: Child, prefix: str) -> Restarted:
    """Stop the worker until everything is due, and start another."""
    due = await due_of(on, prefix)
    worker.end()
    await _sleep_until(max(due.values()) + timedelta(seconds=2))
    worker = await on.worker("late")
    before = cpu_of(worker)
    await _all_read(on, due, datetime.now(UTC) + CAUGHT_UP_WITHIN)
    return await _restarted(on, due, before, worker)


async def _all_read(on: Fleet, due: Mapping[str, datetime], last: datetime) -> None:
    """Wait until the ledger has a later instant for each, or until it is time to count what is missing."""
    while datetime.now(UTC) < last:
        now = await due_of(on, "")
        if all(now.get(name, moment) > moment for name, moment in due.items()):
            return
        await asyncio.sleep(LOOK_EVERY)


async def _restarted(on: Fleet, due: Mapping[str, datetime], before: float, worker: Child) -> Restarted:
    cpu = cpu_of(worker) - before
    reads = await reads_of(on)
    first = {name: next((at for at in reads.get(name, ()) if at >= moment), None) for name, moment in due.items()}
    late = sorted((at - due[name]).total_seconds() for name, at in first.items() if at is not None)
    seen = sorted(at for at in first.values() if at is not None)
    span = max((seen[-1] - seen[0]).total_seconds(), 0.001)
    early = sum(bool([at for at in reads.get(name, ()) if at < moment and at > moment - SHORTLY]) for name, moment in due.items())
    return Restarted(
        due=len(due),
        observed=len(late),
        early=early,
        late=(late[len(late) // 2], late[int(len(late) * NEARLY_ALL)], late[-1]),
        per_second=len(late) / span,
        cpu_per_read=cpu / len(late) * 1000,
        busy=cpu / span,
    )


async def reads_of(on: Fleet) -> dict[str, list[datetime]]:
    """When the provider's books saw a status read of each operation, in order."""
    books = await on.provider.books()
    jobs = {job["id"]: job["report"]["account"] for job in cast("list[dict[str, Any]]", books["jobs"])}
    found: dict[str, list[datetime]] = {}
    for seen in cast("list[dict[str, Any]]", books["requests"]):
        if seen["kind"] == "observe" and seen["job"] in jobs:
            found.setdefault(jobs[seen["job"]], []).append(datetime.fromisoformat(seen["at"]))
    return found


async def _sleep_until(moment: datetime) -> None:
    await asyncio.sleep(max((moment - datetime.now(UTC)).total_seconds(), 0))
