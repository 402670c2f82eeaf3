"""Two workers against one, on one PostgreSQL ledger: `python -m benchmarks.sharing` (`--quick` for a short run).

500 operations of three polls each are started by one client as fast as creates are answered, on a warm installation: workers as they ship,
Temporal's development server, the simulator and PostgreSQL (fsync on), each a process of its own on this machine. Two loads:

* *prompt provider*: nothing waits for the provider, so the machine's processors are what there is to share;
* *slow provider*: a create is answered after six seconds. A worker sends 20 at a time (`SAKSHI_SLOTS_EFFECTS`), so one worker
  begins at most 3.3 operations a second, whatever the machine could do. Here a second worker adds what is scarce: slots.

Throughput is operations over the time from the first start to the last success, by the ledger. CPU is that of all processes,
divided by the operations. Afterwards all books are held against each other: each operation has one job and each job one operation,
each token made one job, each chain is unbroken and holds what Temporal remembers. Linux only.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from adapters.settings import Settings
from adapters.sql_ledger import migrate
from benchmarks.fleet import IN_FLIGHT, Fleet, fleet
from benchmarks.processes import cpu_seconds
from benchmarks.table import Table
from tests.chaos.processes import Child
from tests.chaos.site import contract
from tests.postgresql import Server, postgresql

OPERATIONS, QUICK = 500, 100
POLLS = 3
WARM_UP = 40
SLOW_S = 6.0
LOADS: Mapping[str, float] = {"prompt provider": 0.0, "slow provider": SLOW_S}
WITHIN = 600.0
SLOTS = int(Settings.model_fields["slots_effects"].default)


@dataclass(frozen=True)
class Shared:
    """One load on so many workers. `cpu`: ms per operation, by whom; `by_worker`: creates that each worker sent."""

    load: str
    workers: int
    operations: int
    per_second: float
    cpu: Mapping[str, float]
    by_worker: tuple[int, ...]
    wrong: tuple[str, ...]


async def measure(load: str, workers: int, operations: int, folder: Path, server: Server) -> Shared:
    """One load on so many workers, from the first start to the books."""
    database = f"{load.split()[0]}{workers}"
    await server.create(database)
    await migrate(server.url(database))
    async with fleet(folder, "sharing", ledger_url=server.url(database)) as on:
        children = await asyncio.gather(*(on.worker(f"worker-{n}") for n in range(workers)))
        names = [f"s-{n}" for n in range(operations)]
        await on.warm_up(WARM_UP * workers)
        if LOADS[load]:
            await on.provider.lie("create", "delay", seconds=LOADS[load])
        roots = _roots(on, children, server)
        before, began, started = _cpu(roots), time.time(), time.monotonic()
        chosen = contract("sim.reports.create")
        await on.fill(names, lambda name: on.site.start(name, chosen, polls=POLLS), in_flight=IN_FLIGHT * workers)
        await on.until("succeeded", WARM_UP * workers + operations, within=WITHIN - (time.monotonic() - started))
        after = _cpu(roots)
        took = await _last_end(on) - began
        sent, wrong = await _books(on, names)
    return Shared(
        load=load,
        workers=workers,
        operations=operations,
        per_second=operations / took,
        cpu={name: (after[name] - before[name]) / operations * 1000 for name in after},
        by_worker=tuple(sorted(sent.values(), reverse=True)),
        wrong=tuple(wrong),
    )


def _roots(on: Fleet, children: Sequence[Child], server: Server) -> dict[str, tuple[int, ...]]:
    temporal, provider = on.temporal.child, on.provider.child
    assert temporal is not None
    assert provider is not None
    return {
        "workers": tuple(child.process.pid for child in children),
        "Temporal": (temporal.process.pid,),
        "PostgreSQL": (server.pid,),
        "provider": (provider.process.pid,),
    }


def _cpu(roots: Mapping[str, tuple[int, ...]]) -> dict[str, float]:
    return {name: cpu_seconds(pids) for name, pids in roots.items()} | {"client": time.process_time()}


async def _last_end(on: Fleet) -> float:
    rows, _ = await on.site.books.list(limit=1)
    return datetime.fromisoformat(rows[0].updated_at).astimezone(UTC).timestamp()


async def _books(on: Fleet, names: Sequence[str]) -> tuple[Counter[str], list[str]]:
    """Who sent the creates, and what is wrong with the books."""
    books = await on.provider.books()
    jobs = Counter(job["report"]["account"] for job in cast("list[dict[str, Any]]", books["jobs"]))
    tokens = cast("dict[str, list[str]]", books["tokens"])
    wrong = [f"{name} has {jobs[name]} jobs" for name in names if jobs[name] != 1]
    wrong += [f"a token made {len(made)} jobs" for made in tokens.values() if len(made) != 1]
    owned: Counter[str | None] = Counter()
    sent: Counter[str] = Counter()
    for name in names:
        if (broken := await on.site.broken(name)) is not None:
            wrong.append(f"{name}: {broken}")
        row = await on.site.books.row(name)
        owned[row.job] += 1
        if row.state != "succeeded":
            wrong.append(f"{name} is {row.state}")
        sent.update(entry.actor for entry in await on.site.entries(name) if entry.cause == "intent.create")
    wrong += [f"job {job} has {count} owners" for job, count in owned.items() if job is None or count != 1]
    return sent, wrong


async def measured(operations: int, loads: Sequence[str] = tuple(LOADS)) -> list[Shared]:
    """Each load on one worker and on two, each on a Temporal server and a database of its own."""
    found: list[Shared] = []
    with tempfile.TemporaryDirectory(prefix="sakshi-sharing-") as name, postgresql(Path(name) / "postgresql") as server:
        for load in loads:
            for workers in (1, 2):
                folder = Path(name) / f"{load.split()[0]}-{workers}"
                folder.mkdir()
                found.append(await measure(load, workers, operations, folder, server))
    return found


def table(found: Sequence[Shared]) -> Table:
    """A row for each load and number of workers."""
    alone = {one.load: one.per_second for one in found if one.workers == 1}
    rows = tuple(
        (
            one.load,
            str(one.workers),
            f"{one.per_second:.1f}",
            f"{one.per_second / alone[one.load]:.2f}",
            " + ".join(f"{ms:.0f}" for ms in one.cpu.values()),
            f"{one.per_second * sum(one.cpu.values()) / 1000:.2f} of {os.cpu_count()}",
            " / ".join(map(str, one.by_worker)),
            "right" if not one.wrong else f"WRONG: {len(one.wrong)}, first: {one.wrong[0]}",
        )
        for one in found
    )
    return Table(
        title=f"{found[0].operations} operations on PostgreSQL: one worker and two",
        head=(
            "load", "workers", "operations/s", "ratio", "CPU ms per operation: workers + Temporal + PostgreSQL + provider + client",
            "processors in use", "creates by worker", "books",
        ),
        rows=rows,
        notes=(
            f"Three polls each. Slow: a create is answered after {SLOW_S:g} s, and a worker has {SLOTS} slots for creates: at most "
            f"{SLOTS / SLOW_S:.1f} a second and worker.",
            "With a prompt provider the processors of this one machine are shared by all processes, the client included: a second worker "
            "gains what they leave idle.",
        ),
    )  # fmt: skip


def tables(*, quick: bool = False) -> list[Table]:
    """Measure, and say what it came to."""
    return [table(asyncio.run(measured(QUICK if quick else OPERATIONS)))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharing", description="Two workers against one.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} operations instead of {OPERATIONS}")
    print("\n".join(one.markdown() for one in tables(quick=parser.parse_args().quick)))


if __name__ == "__main__":
    main()
