"""One installation under load: Temporal, the provider and workers, each a process of its own, and what the kernel says of them.

* Everything listens on loopback, keeps its state in one temporary folder and ends with this process, however that ends.
* CPU is what `/proc/PID/stat` counts (user and system, all threads); memory is `smaps_rollup`. Linux only.
* Operations are opened as any client opens them. At most `in_flight` of them are on their way to their first wait at a time, so
  that no create waits longer than its deadline.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select

from adapters.sql_ledger import reading
from adapters.sql_tables import streams
from tests.chaos.processes import Child, Provider, Temporal
from tests.chaos.site import Site, contract, site

_TICKS = os.sysconf("SC_CLK_TCK")
ON_THE_WAY = frozenset({"proposed", "approved", "create_pending"})
"""States of an operation whose create was not answered yet."""
LOOK_EVERY = 0.1
IN_FLIGHT, WARM_WITHIN = 60, 120.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used: CPU seconds since it began, and the memory it holds now, in KiB."""

    cpu: float
    rss: float
    pss: float


def usage(child: Child | None) -> Usage:
    """What the kernel says of a process."""
    assert child is not None
    proc = Path(f"/proc/{child.process.pid}")
    lines = (line.split() for line in (proc / "smaps_rollup").read_text("ascii").splitlines()[1:])
    held = {name: float(value) for name, value, *_ in lines}
    return Usage(cpu_of(child), held["Rss:"], held["Pss:"])


def cpu_of(child: Child) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{child.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@dataclass
class Fleet:
    """The processes and the site that they serve."""

    temporal: Temporal
    provider: Provider
    site: Site

    async def worker(self, name: str, **settings: str) -> Child:
        """Start a worker as it ships, and wait until it says that it works."""
        self.site.environ |= settings
        made = self.site.worker(name)
        await made.said("sakshi.worker/1")
        return made

    async def states(self) -> dict[str, int]:
        """How many operations are in each state, by the ledger."""

        def counted(connection: Connection) -> dict[str, int]:
            return {str(state): int(n) for state, n in connection.execute(select(streams.c.state, func.count()).group_by(streams.c.state))}

        return await reading(self.site.ledger.engines, counted)

    async def warm_up(self, operations: int) -> None:
        """Let so many operations pass through."""
        chosen = contract("sim.reports.create")
        names = [f"warm-{n}" for n in range(operations)]
        await self.fill(names, lambda name: self.site.start(name, chosen, polls=1), in_flight=IN_FLIGHT)
        await self.until("succeeded", operations, within=WARM_WITHIN)

    async def fill(self, names: Sequence[str], start: Callable[[str], Awaitable[None]], *, in_flight: int) -> None:
        """Open and start these operations; returns when the create of each was answered."""
        waiting, started = list(reversed(names)), 0
        before = sum((await self.states()).values())
        while True:
            states = await self.states()
            behind = sum(count for state, count in states.items() if state in ON_THE_WAY) + started + before - sum(states.values())
            room = min(in_flight - behind, len(waiting))
            if not waiting and not behind:
                return
            batch = [waiting.pop() for _ in range(max(room, 0))]
            await asyncio.gather(*(start(name) for name in batch))
            started += len(batch)
            await asyncio.sleep(LOOK_EVERY)

    async def until(self, state: str, count: int, *, within: float) -> None:
        """Wait until that many operations are in a state."""
        last = time.monotonic() + within
        while (found := await self.states()).get(state, 0) < count:
            if time.monotonic() > last:
                raise TimeoutError(f"not {count} operations {state} within {within:g} s, but {found}")
            await asyncio.sleep(LOOK_EVERY)


@asynccontextmanager
async def fleet(folder: Path, namespace: str, *, ledger_url: str | None = None) -> AsyncGenerator[Fleet]:
    """Temporal, the provider and a site while the block runs; its workers end with it."""
    temporal, provider = Temporal(folder, (namespace,)), Provider(folder)
    try:
        await asyncio.gather(temporal.start(), provider.start())
        async with site(
            folder / "site", temporal=temporal.address, namespace=namespace, provider_url=provider.url, ledger_url=ledger_url
        ) as on:
            yield Fleet(temporal, provider, on)
    finally:
        for child in (temporal.child, provider.child):
            if child is not None:
                child.end()
