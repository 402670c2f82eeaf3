"""What a large result costs: `python -m benchmarks.collecting` prints one table.

A worker as it ships runs in a process of its own, beside Temporal's development server and a provider on loopback that streams results
(`big_results`). One operation per row, one after another. Fetched, measured, checked against the provider's SHA-256, size and number of
records, staged, synced and published: the time runs from the recorded intent to the recorded verdict, so it holds all of it. CPU is the
worker's alone, over the whole operation. Peak memory is what the kernel says of the worker (`VmHWM`), reset before the operation; *idle*
is `VmRSS` after a small one. *Beside it* is the time that a small operation takes from start to end meanwhile: whether the worker
still does other things. Yardsticks in the same run: the same bytes fetched with httpx and only hashed, and hashed alone. Linux only.
"""

import argparse
import asyncio
import hashlib
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx

from benchmarks.big_results import block
from benchmarks.processes import cpu_seconds
from benchmarks.table import Table
from domain.contract import Contract
from domain.evidence import Json
from tests.chaos.processes import ROOT, Child, Temporal
from tests.chaos.site import Site, contract, site

MIB = 1024 * 1024
LARGE, QUICK = 1024, 128
FORMS = ("binary", "csv", "quoted", "jsonl")
NAMES = {"binary": "bytes", "csv": "CSV", "quoted": "CSV, a quoted field in each row", "jsonl": "JSON Lines"}
SETTLED_WITHIN = 580.0


@dataclass(frozen=True, slots=True)
class Collected:
    """One large result: seconds of the clock and of the worker's processor, MiB above idle, seconds of a small operation beside it."""

    form: str
    size: int
    wall: float
    cpu: float
    above_idle: float
    beside: float


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The same bytes, with less done to them."""

    what: str
    size: int
    cpu: float


async def measure(folder: Path, *, mebibytes: int = LARGE, forms: Sequence[str] = FORMS) -> tuple[list[Collected], list[Yardstick], float]:
    """Each form in turn on one worker; the yardsticks; and the worker's idle memory in MiB."""
    temporal = Temporal(folder, ("collecting",))
    provider = Child([sys.executable, "-m", "benchmarks.big_results"], folder / "provider.log", {"PYTHONPATH": str(ROOT)})
    try:
        address = await provider.said("http://")
        await temporal.start()
        async with _site(folder, temporal, address) as (on, worker):
            await _small(on, "warm-up")
            idle = _kib(worker, "VmRSS") / 1024
            found = [await _collected(on, worker, form, mebibytes * MIB, idle) for form in forms]
        return found, [await _fetched(address, mebibytes * MIB), _hashed(mebibytes * MIB)], idle
    finally:
        for child in (temporal.child, provider):
            if child is not None:
                child.end()


@asynccontextmanager
async def _site(folder: Path, temporal: Temporal, address: str) -> AsyncGenerator[tuple[Site, Child]]:
    async with site(folder / "site", temporal=temporal.address, namespace="collecting", provider_url=address) as on:
        worker = on.worker("worker")
        await worker.said("sakshi.worker/1")
        yield on, worker


async def _small(on: Site, name: str) -> float:
    """A small operation, and how long it took."""
    began = time.monotonic()
    await on.start(f"csv-1000-{name}", _contract("csv"))
    [standing] = (await on.settled(f"csv-1000-{name}", within=SETTLED_WITHIN)).values()
    assert standing.state == "succeeded", f"a small operation is {standing.state}"
    return time.monotonic() - began


async def _collected(on: Site, worker: Child, form: str, size: int, idle: float) -> Collected:
    stream = f"{form}-{size}-large"
    pid = worker.process.pid
    _forget_peak(worker)
    before = cpu_seconds([pid])
    await on.start(stream, _contract(form))
    await on.reached(stream, "result_collecting", "succeeded", within=SETTLED_WITHIN)
    beside = await _small(on, f"beside-{form}")
    [standing] = (await on.settled(stream, within=SETTLED_WITHIN)).values()
    assert standing.state == "succeeded", f"{form} is {standing.state}: {await on.story(stream)}"
    cpu = cpu_seconds([pid]) - before
    times = {entry.cause: datetime.fromisoformat(entry.at) for entry in await on.entries(stream)}
    wall = (times["result.verified"] - times["intent.collect"]).total_seconds()
    return Collected(form, standing.outputs[0].size, wall, cpu, _kib(worker, "VmHWM") / 1024 - idle, beside)


def _contract(form: str) -> Contract:
    kind = {"quoted": "csv"}.get(form, form)
    verify: dict[str, Json] = {"records": None, "required": ["content_type", "sha256", "bytes"]} if form == "binary" else {}
    changed: dict[str, Json] = {"version": 2 + FORMS.index(kind), "http": {"limits": {"result_bytes": "2GiB"}}}
    return contract("sim.reports.create", {**changed, "collect": {"format": kind, "verify": verify}})


async def _fetched(address: str, size: int) -> Yardstick:
    account = f"binary-{size}-alone"
    digest, taken, began = hashlib.sha256(), 0, time.process_time()
    async with httpx.AsyncClient(trust_env=False) as http, http.stream("GET", f"{address}/v1/results/{account}") as answer:
        async for chunk in answer.aiter_bytes():
            digest.update(chunk)
            taken += len(chunk)
    return Yardstick("httpx alone, and a SHA-256", taken, time.process_time() - began)


def _hashed(size: int) -> Yardstick:
    some, digest, taken, began = block("binary")[:MIB], hashlib.sha256(), 0, time.process_time()
    while taken < size:
        digest.update(some)
        taken += len(some)
    return Yardstick("a SHA-256 alone", taken, time.process_time() - began)


def _forget_peak(worker: Child) -> None:
    Path(f"/proc/{worker.process.pid}/clear_refs").write_text("5")


def _kib(worker: Child, name: str) -> float:
    lines = Path(f"/proc/{worker.process.pid}/status").read_text("ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def table(found: Sequence[Collected], yardsticks: Sequence[Yardstick], idle: float) -> Table:
    """What was measured, for people."""
    rows = [
        (
            NAMES[one.form], f"{one.size / MIB:.0f} MiB", f"{one.size / MIB / one.wall:.0f}", f"{one.size / MIB / one.cpu:.0f}",
            f"{one.above_idle:.0f} MiB", f"{one.beside:.1f} s",
        )
        for one in found
    ]  # fmt: skip
    rows += [(one.what, f"{one.size / MIB:.0f} MiB", "", f"{one.size / MIB / one.cpu:.0f}", "", "") for one in yardsticks]
    return Table(
        "Collecting a large result",
        ("result", "size", "MiB/s", "MiB per CPU second", "peak above idle", "a small operation beside it"),
        tuple(rows),
        (
            f"The worker, idle after a small operation, holds {idle:.0f} MiB.",
            "Collecting is fetching, counting records, SHA-256, checking against the provider's figures, staging, syncing and publishing.",
            "CPU is the worker's over the whole operation, and the small operation beside it is in it.",
        ),
    )


def tables(*, quick: bool = False) -> list[Table]:
    """Measure, for the report."""
    with tempfile.TemporaryDirectory(prefix="sakshi-collecting-") as folder:
        return [table(*asyncio.run(measure(Path(folder), mebibytes=QUICK if quick else LARGE)))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collecting", description="What a large result costs.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} MiB instead of {LARGE}")
    for one in tables(quick=parser.parse_args().quick):
        print(one.markdown())


if __name__ == "__main__":
    main()
