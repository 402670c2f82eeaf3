"""What waiting costs, and whether a restart is noticed: `python -m benchmarks.waiting` (`--quick` for a short run).

One worker as it ships, Temporal's development server and the simulator, each a process of its own, SQLite as ledger. Operations
are created whose provider says that the job takes minutes, longer than an activity waits, so each is handed back to the server. All
are due from a moment on by which they should all have been created and measured, 40 a second. Then:

* *memory*: what the worker holds more than after its warm-up, over the operations that wait, ten seconds after the last create; and
  what the second half of them added, when the worker's cache of workflows (`SAKSHI_CACHED_WORKFLOWS`) is full;
* *idle*: its CPU while nothing is due;
* *a cached story*: the worker is started anew and asked for the status of workflows, which it has to replay: memory and CPU per
  replay, and the CPU of asking again what it now has cached;
* *on schedule*: the worker was killed (SIGKILL) before that. Every status read is then held against the instant that the ledger
  had said before the kill. The reading is the provider's: the time at which its books saw the request;
* *catching up* (up to 1,000): the worker is stopped (SIGTERM) until every operation is due, and started. What it then reads per
  second is what one worker sustains at most of reads that are handed back.

All processes share the machine, so times hold for the machine that the table is made on. Linux only.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path

from adapters.settings import Settings
from benchmarks.fleet import IN_FLIGHT, Fleet, cpu_of, fleet, usage
from benchmarks.schedule import Restarted, catch_up, due_of, on_schedule, reads_of
from benchmarks.table import Table
from domain.contract import Contract
from domain.messages import Head
from tests.chaos.processes import Child
from tests.chaos.site import contract

WAITS = "waits-"
CACHED = int(Settings.model_fields["cached_workflows"].default)
SIZES, QUICK = (1_000, 10_000), (300,)
WARM_UP, PACED = 80, 200
MARGIN, UNDISTURBED = 1.5, 75.0
"""The first reading is due so many times later than all should have been created, and so many seconds."""
DUE_PER_SECOND = 40
AFTER_ALL = timedelta(hours=20)
SETTLE, IDLE_FOR = 10.0, 20.0
CATCHES_UP = 1_000
"""Larger sizes would stand still for long."""
ASKED = 500
"""How many workflows are replayed for the price of one."""


@dataclass(frozen=True)
class Cached:
    """What one replayed workflow holds, and what a query costs before and after, in ms of CPU."""

    kib: float
    replay_ms: float
    asked_ms: float


@dataclass(frozen=True)
class Waited:
    """One size. Memory in KiB per waiting operation; `idle` is CPU over wall time."""

    operations: int
    opened_per_second: float
    rss: float
    pss: float
    further: float
    warm_rss: float
    idle: float
    disturbed: int
    temporal_kib: float
    disk_kib: tuple[float, float]
    cached: Cached
    scheduled: Restarted
    caught_up: Restarted | None


def patient() -> Contract:
    """A contract whose provider renders a row a second: its status is read after so many seconds, and after as many again."""
    return contract("sim.reports.create", {"version": 2, "deadlines": {"result": "24h"}, "http": {"delay_hints": ["body.progress.total"]}})


async def measure(operations: int, folder: Path) -> Waited:
    """One size, from the first create to the last read."""
    async with fleet(folder, "waiting") as on:
        worker = await on.worker("worker")
        await on.warm_up(WARM_UP)
        pace = await _pace(on)
        await asyncio.sleep(SETTLE)
        warm, warm_server, files = usage(worker), usage(on.temporal.child), _disk(folder)
        names, began = [f"{WAITS}{n}" for n in range(operations)], time.time()
        _say(f"{operations} operations at {pace:.1f} a second: {operations / pace:.0f} s")
        start, half = _starting(on, operations, pace), operations // 2
        await on.fill(names[:half], start, in_flight=IN_FLIGHT)
        middle = usage(worker)
        await on.fill(names[half:], start, in_flight=IN_FLIGHT)
        took = time.time() - began
        _say(f"created in {took:.0f} s")
        await asyncio.sleep(SETTLE)
        full, full_server, filled = usage(worker), usage(on.temporal.child), _disk(folder)
        idle = await _busy(worker, IDLE_FOR)
        due, reads = await due_of(on, WAITS), await reads_of(on)
        disturbed = sum(len(reads.get(name, ())) for name in due)
        worker.kill()
        worker = await on.worker("restarted")
        _say(f"{len(due)} wait; the worker was killed and is there again")
        cached = await _cached(on, worker, names[:ASKED])
        scheduled = await on_schedule(on, worker, due)
        caught_up = await catch_up(on, worker, WAITS) if operations <= CATCHES_UP else None
    return Waited(
        operations=operations,
        opened_per_second=operations / took,
        rss=(full.rss - warm.rss) / operations,
        pss=(full.pss - warm.pss) / operations,
        further=(full.rss - middle.rss) / (operations - half),
        warm_rss=warm.rss,
        idle=idle,
        disturbed=disturbed,
        temporal_kib=(full_server.rss - warm_server.rss) / operations,
        disk_kib=((filled[0] - files[0]) / operations, (filled[1] - files[1]) / operations),
        cached=cached,
        scheduled=scheduled,
        caught_up=caught_up,
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _pace(on: Fleet) -> float:
    """Operations of this kind that are created in a second, tried on some that are due after all is over."""
    began, chosen = time.monotonic(), patient()
    names = [f"pace-{n}" for n in range(PACED)]
    await on.fill(
        names, lambda name: on.site.start(name, chosen, polls=1_000_000, rows=round(AFTER_ALL.total_seconds())), in_flight=IN_FLIGHT
    )
    return len(names) / (time.monotonic() - began)


def _starting(on: Fleet, operations: int, pace: float) -> Callable[[str], Awaitable[None]]:
    """Starts an operation that is due at its place in a row. The row begins when all should be ready, by the slowest pace so far."""
    chosen, places, began = patient(), count(), time.time()

    async def start(name: str) -> None:
        place, now = next(places), time.time()
        slowest = min(pace, place / (now - began)) if place > PACED else pace
        due = max(began + MARGIN * operations / pace, now + (operations - place) / slowest) + UNDISTURBED + place / DUE_PER_SECOND
        await on.site.start(name, chosen, polls=1_000_000, rows=round(due - now))

    return start


async def _busy(worker: Child, seconds: float) -> float:
    before, began = cpu_of(worker), time.monotonic()
    await asyncio.sleep(seconds)
    return (cpu_of(worker) - before) / (time.monotonic() - began)


def _disk(folder: Path) -> tuple[float, float]:
    """KiB of Temporal's file and of the ledger, with their logs."""
    return _size(folder, "temporal.db*"), _size(folder / "site" / "home", "ledger.db*")


def _size(folder: Path, pattern: str) -> float:
    return sum(file.stat().st_size for file in folder.glob(pattern)) / 1024


async def _cached(on: Fleet, worker: Child, names: Sequence[str]) -> Cached:
    """The first query of each finds nothing cached and replays; the second finds it cached."""
    await _ask(on, names[:10])
    before = usage(worker)
    await _ask(on, names[10:])
    between = usage(worker)
    await _ask(on, names[10:])
    after, asked = usage(worker), len(names) - 10
    return Cached(
        kib=(between.rss - before.rss) / asked,
        replay_ms=(between.cpu - before.cpu) / asked * 1000,
        asked_ms=(after.cpu - between.cpu) / asked * 1000,
    )


async def _ask(on: Fleet, names: Sequence[str]) -> None:
    turns = asyncio.Semaphore(8)

    async def one(name: str) -> None:
        async with turns:
            await on.site.client.get_workflow_handle(name).query("status", result_type=Head)

    await asyncio.gather(*(one(name) for name in names))


def table(found: Sequence[Waited]) -> Table:
    """A column for each size."""
    lines: list[tuple[str, ...]] = [
        ("worker after warm-up, MiB", *(f"{one.warm_rss / 1024:.0f}" for one in found)),
        ("**worker's memory per waiting operation, KiB (RSS / PSS)**", *(f"**{one.rss:.1f}** / {one.pss:.1f}" for one in found)),
        ("the same, of the second half of them alone (RSS)", *(f"{one.further:.1f}" for one in found)),
        ("worker's CPU while nothing is due", *(f"{one.idle:.1%}" for one in found)),
        ("readings before the restart", *(str(one.disturbed) for one in found)),
        ("created per second", *(f"{one.opened_per_second:.1f}" for one in found)),
        ("Temporal server's memory per waiting operation, KiB", *(f"{one.temporal_kib:.1f}" for one in found)),
        ("on disk per operation, KiB (Temporal / ledger)", *(f"{one.disk_kib[0]:.0f} / {one.disk_kib[1]:.0f}" for one in found)),
        ("a cached workflow, KiB", *(f"{one.cached.kib:.0f}" for one in found)),
        ("query, ms of worker CPU (replayed / cached)", *(f"{one.cached.replay_ms:.1f} / {one.cached.asked_ms:.1f}" for one in found)),
        ("after SIGKILL: due / read / read early", *(one.scheduled.counts() for one in found)),
        ("late by, s (p50 / p99 / longest)", *(one.scheduled.lateness() for one in found)),
        ("reads per second, worker's CPU meanwhile", *(f"{one.scheduled.per_second:.1f}, {one.scheduled.busy:.0%}" for one in found)),
        ("after standing still: due / read / read early", *("" if one.caught_up is None else one.caught_up.counts() for one in found)),
        ("reads per second until caught up", *("" if one.caught_up is None else f"{one.caught_up.per_second:.0f}" for one in found)),
        ("ms of worker CPU per read", *("" if one.caught_up is None else f"{one.caught_up.cpu_per_read:.1f}" for one in found)),
    ]
    return Table(
        title="Waiting operations, one worker",
        head=("", *(f"{one.operations:,} waiting" for one in found)),
        rows=tuple(lines),
        notes=(
            "A waiting operation is an activity attempt that the server hands out when it is due; the worker holds of it at most a cached "
            f"workflow, and of those at most {CACHED}. Once these are there, further operations cost it what the second half shows.",
            "*Late* counts from the instant in the ledger to the request in the provider's books.",
        ),
    )


async def measured(sizes: Sequence[int]) -> list[Waited]:
    """One size after another, each on servers of its own."""
    found: list[Waited] = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="sakshi-waiting-") as folder:
            found.append(await measure(size, Path(folder)))
    return found


def tables(*, quick: bool = False) -> list[Table]:
    """Measure, and say what it came to."""
    return [table(asyncio.run(measured(QUICK if quick else SIZES)))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waiting", description="What waiting costs one worker.")
    parser.add_argument("--quick", action="store_true", help="300 operations instead of 1,000 and 10,000")
    parser.add_argument("--operations", type=int, nargs="+", help="other sizes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started and written is cleared away
    found = [table(asyncio.run(measured(options.operations)))] if options.operations else tables(quick=options.quick)
    print("\n".join(one.markdown() for one in found))


if __name__ == "__main__":
    main()
