"""The ledger alone: appends, reads and verification, small and large: `python -m benchmarks.ledger` (`--quick` for a short run).

* *Appends*: readings of 900 bytes on streams of their own through `SqlLedger`, each awaited by its caller: one caller, then 100 at
  once. CPU is this process's and, beside it, the database server's; what is on disk is on disk (fsync on).
* *Size*: two ledgers of one kind, one with 10 thousand entries and one with 2 million (operations of 20 entries, each a copy of one
  that a ledger wrote, chained anew). The same calls are made on both in turn, on operations drawn at random with a fixed seed;
  the figure is the median of wall-clock times, the ratio that of large to small.
* *Verification*: `verify_all` over short operations, every chain, row, contract and payload; entries per second of this process's
  CPU time, over pages of the whole ledger, best of the rounds.

Everything lies in a temporary folder and on a PostgreSQL server of its own, reached through its socket. Linux only.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger, migrate
from benchmarks.ledger_contents import OWNER, Template, fill, opening, reading, stream_of, template
from benchmarks.processes import cpu_seconds
from benchmarks.table import Table
from tests.postgresql import Server, postgresql

SMALL, LARGE, QUICK = 10_000, 2_000_000, 100_000
TOGETHER = (1, 100)
APPENDS = 1500
ROUNDS, CALLS = 12, 25
VERIFIED = 60_000
_SEED = 20261130
_numbers = count()


@dataclass(frozen=True)
class Appending:
    """Appends by so many callers at once; CPU in seconds per append."""

    database: str
    callers: int
    per_second: float
    cpu: float
    server_cpu: float


@dataclass(frozen=True)
class Sized:
    """One call on a small and on a large ledger; medians in seconds."""

    database: str
    call: str
    small: float
    large: float


@dataclass(frozen=True)
class Verified:
    """How fast a ledger is verified."""

    database: str
    entries: int
    per_cpu_second: float


@dataclass(frozen=True)
class Figures:
    """What one run came to."""

    entries: tuple[int, int]
    appending: tuple[Appending, ...]
    sized: tuple[Sized, ...]
    verified: tuple[Verified, ...]


async def measured(*, large: int = LARGE) -> Figures:
    """Measure all of it."""
    appending: list[Appending] = []
    sized: list[Sized] = []
    verified: list[Verified] = []
    one = await template()
    with tempfile.TemporaryDirectory(prefix="sakshi-bench-") as folder, postgresql(Path(folder) / "postgresql") as server:
        for database in ("SQLite", "PostgreSQL"):
            small, big = [await _ledger(database, name, Path(folder), server) for name in ("small", "large")]
            try:
                await fill(small, one, 0, SMALL // len(one.entries))
                appending += [await _appending(small, database, callers, server) for callers in TOGETHER]
                await fill(big, one, 0, large // len(one.entries))
                sized += await _sized(database, small, big, one, large)
                verified.append(await _verified(database, big))
            finally:
                await small.aclose()
                await big.aclose()
    return Figures((SMALL, large), tuple(appending), tuple(sized), tuple(verified))


async def _ledger(database: str, name: str, folder: Path, server: Server) -> SqlLedger:
    if database == "SQLite":
        return await SqlLedger.connect(f"sqlite:///{folder / name}.db")
    await server.create(name)
    await migrate(server.url(name))
    return await SqlLedger.connect(server.url(name))


async def _appending(ledger: SqlLedger, database: str, callers: int, server: Server) -> Appending:
    streams = [f"appending-{callers}-{number}" for number in range(callers)]
    await asyncio.gather(*(ledger.open(opening(stream)) for stream in streams))

    async def caller(stream: str, appends: int) -> None:
        for _ in range(appends):
            await ledger.append(stream, lambda _: [reading(5)], owner=OWNER)

    await asyncio.gather(*(caller(stream, 2) for stream in streams))
    each = max(1, APPENDS // callers)
    began, own, theirs = time.monotonic(), time.process_time(), cpu_seconds([server.pid])
    await asyncio.gather(*(caller(stream, each) for stream in streams))
    done = each * callers
    took, own, theirs = time.monotonic() - began, time.process_time() - own, cpu_seconds([server.pid]) - theirs
    return Appending(database, callers, done / took, own / done, theirs / done if database != "SQLite" else 0.0)


async def _sized(database: str, small: SqlLedger, big: SqlLedger, one: Template, large: int) -> list[Sized]:
    drawn = random.Random(_SEED)
    streams = {id(small): SMALL // len(one.entries), id(big): large // len(one.entries)}

    def old(ledger: SqlLedger) -> str:
        return stream_of(drawn.randrange(streams[id(ledger)]))

    calls: dict[str, Callable[[SqlLedger], Awaitable[object]]] = {
        "open": lambda ledger: ledger.open(opening(f"opened-{next(_numbers)}")),
        "append": lambda ledger: ledger.append(old(ledger), lambda _: [reading(5)], owner=OWNER),
        "record": lambda ledger: ledger.record(old(ledger)),
        "entries of an operation": lambda ledger: ledger.entries(old(ledger)),
        "newest 50 rows": lambda ledger: LedgerBooks(ledger).list(limit=50),
    }
    found: list[Sized] = []
    for name, call in calls.items():
        times: dict[int, list[float]] = {id(small): [], id(big): []}
        for number in range(ROUNDS):
            for ledger in (small, big) if number % 2 else (big, small):
                for _ in range(CALLS):
                    began = time.perf_counter()
                    await call(ledger)
                    times[id(ledger)].append(time.perf_counter() - began)
        found.append(Sized(database, name, median(times[id(small)]), median(times[id(big)])))
    return found


async def _verified(database: str, ledger: SqlLedger) -> Verified:
    best = 0.0
    seen = 0
    for _ in range(5):
        seen, began = 0, time.process_time()
        async for one in LedgerBooks(ledger).verify_all():
            if not one.ok:
                raise AssertionError(f"{one.stream}: {one.fault}")
            seen += one.entries
            if seen >= VERIFIED:
                break
        best = max(best, seen / (time.process_time() - began))
    return Verified(database, seen, best)


def tables(*, quick: bool = False) -> list[Table]:
    """Measure, and say what it came to."""
    found = asyncio.run(measured(large=QUICK if quick else LARGE))
    small, large = (f"{entries:,}" for entries in found.entries)
    return [
        Table(
            title="Ledger: appends",
            head=("database", "callers at once", "appends/s", "CPU ms per append: this process", "database server"),
            rows=tuple(
                (one.database, str(one.callers), f"{one.per_second:,.0f}", f"{one.cpu * 1000:.2f}", f"{one.server_cpu * 1000:.2f}")
                for one in found.appending
            ),
            notes=("A reading of 900 bytes: entry, standing and row in one transaction, durable when the call returns.",
                   "Calls that meet share a transaction; a call that is alone does not wait for others."),
        ),
        Table(
            title=f"Ledger: {small} and {large} entries",
            head=("database", "call", f"ms at {small}", f"ms at {large}", "ratio"),
            rows=tuple(
                (one.database, one.call, f"{one.small * 1000:.2f}", f"{one.large * 1000:.2f}", f"{one.large / one.small:.2f}")
                for one in found.sized
            ),
            notes=("Medians, of calls made in turn on both ledgers; operations drawn at random.",),
        ),
        Table(
            title="Ledger: verification",
            head=("database", "entries", "entries per CPU second"),
            rows=tuple((one.database, f"{one.entries:,}", f"{one.per_cpu_second:,.0f}") for one in found.verified),
            notes=("Operations of 20 entries and four payloads; CPU of the verifying process, one core, all checks.",),
        ),
    ]  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description="The ledger alone, small and large.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} entries instead of {LARGE:,}")
    print("\n".join(one.markdown() for one in tables(quick=parser.parse_args().quick)))


if __name__ == "__main__":
    main()
