"""What hostile answers cost a worker: `python -m benchmarks.hostile_memory` prints one table.

A worker as it ships runs in a process of its own. Operations meet each lie in their create, a status read and their result, several
at once. Peak memory is what the kernel says of the process (`VmHWM`), reset before each lie; *idle* is the worker after an honest
operation. The contract's limits are what the lies would have to pass: one answer has at most 1 MiB, a result here at most 8 MiB.
Linux only.
"""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.table import Table
from domain.contract import Contract
from domain.evidence import Json
from tests.chaos.processes import Child, Provider, Temporal
from tests.chaos.site import Site, contract, site
from tests.workflows.elsewhere import Elsewhere, elsewhere

HEAVY: Mapping[str, dict[str, object]] = {
    "endless_body": {},
    "gzip_bomb": {"mebibytes": 64},
    "deep_json": {"depth": 100_000},
    "huge_header": {"bytes": 8 * 1024 * 1024},
    "slow_body": {"seconds": 0.1, "pieces": 20},
}
AWAY: Mapping[str, dict[str, object]] = {"redirect_elsewhere": {}, "location_elsewhere": {}, "location_metadata": {}}
CALLS = ("create", "observe", "collect")
EACH = 3
"""Operations of each call that meet the same lie at the same time."""
LIMITS: dict[str, Json] = {"http": {"limits": {"result_bytes": "8MiB"}, "timeouts": {"read": "10s", "total": "10s"}}}
RESULT_ROWS = 2_000
SETTLED_WITHIN = 180.0
MIB = 1024.0


@dataclass
class Row:
    """One lie: the peak above idle in MiB, and in which states its operations ended."""

    lie: str
    above_idle: float
    states: dict[str, int]


@dataclass
class Measured:
    """The whole table, and whether the worker is the one that began."""

    idle: float = 0.0
    rows: list[Row] = field(default_factory=list[Row])
    survived: bool = False
    heard: list[bytes] = field(default_factory=list[bytes])


async def measure(folder: Path, *, each: int = EACH) -> Measured:
    """Run all lies, one after another, on one worker."""
    temporal, provider = Temporal(folder, ("memory",)), Provider(folder)
    found = Measured()
    try:
        await asyncio.gather(temporal.start(), provider.start())
        async with _site(folder, temporal, provider) as (on, worker), elsewhere() as strangers:
            await _honest(on, "warm-up")
            found.idle = _kib(worker, "VmRSS") / MIB
            for lie, args in {**HEAVY, **AWAY}.items():
                found.rows.append(await _row(on, provider, worker, strangers, lie, args, each, found.idle))
            await _honest(on, "afterwards")
            found.survived, found.heard = worker.alive, strangers.heard
    finally:
        for child in (temporal.child, provider.child):
            if child is not None:
                child.end()
    return found


@asynccontextmanager
async def _site(folder: Path, temporal: Temporal, provider: Provider) -> AsyncGenerator[tuple[Site, Child]]:
    async with site(folder / "site", temporal=temporal.address, namespace="memory", provider_url=provider.url) as on:
        worker = on.worker("worker")
        await worker.said("sakshi.worker/1")
        yield on, worker


async def _honest(on: Site, stream: str) -> None:
    await on.start(stream, _contract(), polls=1, rows=RESULT_ROWS)
    [standing] = (await on.settled(stream, within=SETTLED_WITHIN)).values()
    assert standing.state == "succeeded", f"an honest operation is {standing.state}"


async def _row(
    on: Site, provider: Provider, worker: Child, strangers: Elsewhere, lie: str, args: dict[str, object], each: int, idle: float
) -> Row:
    streams: list[str] = []
    if lie.endswith("elsewhere"):
        args = {**args, "to": strangers.url}
    for call in CALLS:
        for number in range(each):
            stream = f"{lie}-{call}-{number}"
            await provider.lie(call, lie, account=stream, times=1, **args)
            streams.append(stream)
    _forget_peak(worker)
    await asyncio.gather(*(on.start(stream, _contract(), polls=1, rows=RESULT_ROWS) for stream in streams))
    settled = await on.settled(*streams, within=SETTLED_WITHIN)
    states: dict[str, int] = {}
    for standing in settled.values():
        states[standing.state] = states.get(standing.state, 0) + 1
    return Row(lie, _kib(worker, "VmHWM") / MIB - idle, states)


def _contract() -> Contract:
    return contract("sim.reports.create", LIMITS)


def _forget_peak(worker: Child) -> None:
    Path(f"/proc/{worker.process.pid}/clear_refs").write_text("5")


def _kib(worker: Child, name: str) -> float:
    lines = Path(f"/proc/{worker.process.pid}/status").read_text("ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def table(found: Measured) -> Table:
    """What was measured, for people."""
    rows = tuple(
        (row.lie, f"{row.above_idle:.1f}", ", ".join(f"{count} {state}" for state, count in sorted(row.states.items())))
        for row in found.rows
    )
    notes = (
        f"The worker, idle after an honest operation: {found.idle:.0f} MiB. It survived: {'yes' if found.survived else 'NO'}.",
        f"Requests to hosts that answers named: {len(found.heard)}.",
    )
    return Table("Memory under hostile answers", ("lie", "peak above idle, MiB", "operations ended"), rows, notes)


def tables(*, quick: bool = False) -> list[Table]:
    """The one table. `quick`: fewer operations meet each lie."""
    with tempfile.TemporaryDirectory(prefix="sakshi-memory-") as folder:
        return [table(asyncio.run(measure(Path(folder), each=1 if quick else EACH)))]


def main() -> None:
    """Measure and print."""
    for one in tables():
        print(one.markdown())


if __name__ == "__main__":
    main()
