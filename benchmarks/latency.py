"""How soon Sakshi knows, and how soon the provider does: `python -m benchmarks.latency` (`--quick` for a short run).

One worker as it ships, and not much for it to do: an operation is started every 0.2 s. All processes share one clock.

* *terminal to succeeded*: from the instant at which the provider's job had ended, by the provider's books, to the ledger's entry that
  says `succeeded`, whose result has been fetched and verified by then. Polled as the contract that ships has it (every 0.2 s at first,
  2 s at most), and woken: polled once a minute, with a wake sent at the instant at which the job ends, as the gateway sends one.
* *cancel to provider*: from the signal of a person's cancel to the instant at which the provider took it, by its books, while the
  worker holds the wait (short polls), and while Temporal does (a poll each minute).
"""

import argparse
import asyncio
import math
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from adapters.temporal import TemporalRuns
from benchmarks.table import Table
from domain.contract import Contract
from domain.evidence import Json
from tests.chaos.processes import Provider, Temporal
from tests.chaos.site import Site, contract, site

OPERATIONS, QUICK = 100, 15
EVERY_S = 0.2
JOB_S, NEVER_S = 3.0, 3600.0
REPORT = "sim.reports.create"
SELDOM: dict[str, Json] = {"contract": "sim.reports.seldom", "observe": {"poll": {"first": "60s", "factor": 1, "cap": "60s"}}}
WITHIN = 120.0
MILLISECOND = 0.001
"""What a stamp of the provider's may be short of its clock."""


@dataclass(frozen=True)
class Delays:
    """Seconds of each operation."""

    what: str
    seconds: tuple[float, ...]

    def at(self, share: float) -> float:
        """The least delay that so many operations did not exceed."""
        return quantile(self.seconds, share)


def quantile(values: Sequence[float], share: float) -> float:
    """The least of these values that a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


async def measured(count: int) -> list[Delays]:
    """All four, one after the other."""
    with tempfile.TemporaryDirectory(prefix="sakshi-latency-") as folder:
        async with _installation(Path(folder)) as (on, provider):
            await _finished(on, provider, "warm", min(count, 10), contract(REPORT), woken=False)
            return [
                Delays("terminal to succeeded, polled", await _finished(on, provider, "polled", count, contract(REPORT), woken=False)),
                Delays("terminal to succeeded, woken", await _finished(on, provider, "woken", count, contract(REPORT, SELDOM), woken=True)),
                Delays("cancel to provider, wait held by the worker", await _cancelled(on, provider, "held", count, contract(REPORT))),
                Delays(
                    "cancel to provider, wait held by Temporal", await _cancelled(on, provider, "handed", count, contract(REPORT, SELDOM))
                ),
            ]


@asynccontextmanager
async def _installation(folder: Path) -> AsyncGenerator[tuple[Site, Provider]]:
    temporal, provider = Temporal(folder, ("latency",)), Provider(folder)
    try:
        await asyncio.gather(temporal.start(), provider.start())
        async with site(folder / "site", temporal=temporal.address, namespace="latency", provider_url=provider.url) as on:
            await on.worker("worker").said("sakshi.worker/1")
            yield on, provider
    finally:
        for child in (temporal.child, provider.child):
            if child is not None:
                child.end()


async def _finished(on: Site, provider: Provider, name: str, count: int, chosen: Contract, *, woken: bool) -> tuple[float, ...]:
    runs = TemporalRuns(on.client)

    async def one(stream: str) -> None:
        await on.start(stream, chosen, seconds=int(JOB_S))
        if woken:
            created = datetime.fromisoformat(str((await provider.ask("GET", f"/v1/jobs/{await _job(on, stream)}"))["created_at"]))
            await asyncio.sleep(max(0.0, created.timestamp() + JOB_S + MILLISECOND - time.time()))
            await runs.wake(stream, "benchmark")

    streams = await _one_by_one(name, count, one)
    standings = await on.settled(*streams, within=WITHIN)
    books = await _jobs(provider)
    assert {standing.state for standing in standings.values()} == {"succeeded"}
    return tuple(standings[stream].state_since.timestamp() - float(books[stream]["ended_at"]) for stream in streams)


async def _cancelled(on: Site, provider: Provider, name: str, count: int, chosen: Contract) -> tuple[float, ...]:
    asked: dict[str, float] = {}

    async def one(stream: str) -> None:
        await on.start(stream, chosen, seconds=int(NEVER_S))
        await _job(on, stream)
        await asyncio.sleep(1.0)  # by now the wait has begun
        asked[stream] = time.time()
        await on.cancel(stream)

    streams = await _one_by_one(name, count, one)
    async with asyncio.timeout(WITHIN):
        while not (seen := _cancels(await _jobs(provider))).keys() >= asked.keys():  # noqa: ASYNC110 - another process sets no event of ours
            await asyncio.sleep(0.2)
    return tuple(seen[stream] - asked[stream] for stream in streams)


async def _one_by_one(name: str, count: int, one: Callable[[str], Awaitable[None]]) -> list[str]:
    """Begin one after the other, each at its time; the streams."""
    streams = [f"{name}-{number}" for number in range(count)]

    async def at_its_time(number: int) -> None:
        await asyncio.sleep(number * EVERY_S)
        await one(streams[number])

    await asyncio.gather(*(at_its_time(number) for number in range(count)))
    return streams


async def _job(on: Site, stream: str) -> str:
    """The job of an operation, once its create is answered."""
    async with asyncio.timeout(WITHIN):
        while (job := (await on.standing(stream)).job) is None:  # noqa: ASYNC110 - another process sets no event of ours
            await asyncio.sleep(0.05)
    return str(job["id"])


async def _jobs(provider: Provider) -> dict[str, dict[str, Any]]:
    """The provider's jobs, by the operation that each is for."""
    books = cast("dict[str, Any]", await provider.ask("GET", "/books?requests=0"))
    return {str(job["report"]["account"]): job for job in books["jobs"]}


def _cancels(jobs: dict[str, dict[str, Any]]) -> dict[str, float]:
    """When the provider took each cancel that it has taken."""
    return {stream: float(job["cancel_asked_at"]) for stream, job in jobs.items() if job["cancel_asked_at"] is not None}


def table(delays: Sequence[Delays]) -> Table:
    """What was measured, for people."""
    head = ("from, to", "operations", "p50", "p99", "most")
    rows = tuple(
        (one.what, str(len(one.seconds)), *(f"{one.at(share):.3f} s" for share in (0.5, 0.99)), f"{max(one.seconds):.3f} s")
        for one in delays
    )  # fmt: skip
    return Table("How soon it is known", head, rows, notes=(_POLLED, _WOKEN))


_POLLED = "Polled, a job of three seconds ends between two readings: half of the contract's delay there (about a second) is the mean wait."
_WOKEN = "Woken, what is left is the signal, a status read, the fetch and verification of the result, and the entries of all of it."


def tables(*, quick: bool = False) -> list[Table]:
    """Measure, and say what it came to."""
    return [table(asyncio.run(measured(QUICK if quick else OPERATIONS)))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description="How soon it is known.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} operations of each kind instead of {OPERATIONS}")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is started is stopped, and the folder removed
    print("\n".join(one.markdown() for one in tables(quick=options.quick)))


if __name__ == "__main__":
    main()
