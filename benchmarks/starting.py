"""How long it takes until something is there: `python -m benchmarks.starting` prints one table.

Each command is a process of its own, from its spawn to its end: what a person or an agent waits for. `status` and `list` ask an
embedded ledger of one finished operation, whose installation has no Temporal server. The worker is measured from its spawn to the line
that it says once it works, against Temporal's development server; its ledger and results are folders of its own. Rounds go through all
rows in turn, so that a busy moment meets all alike; the first, which fills the caches, is not counted. CPU is the least of all rounds,
wall the median.

Yardsticks in the same run: Python alone, and Python with the libraries that all of this is made of. `--beside FOLDER` also measures
another checkout, with this Python, in the same rounds. The recorded figures of *before* are of such a run: the checkout in which every
command loaded what any command needs. Linux only.
"""

import argparse
import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from activities.ports import Owner
from adapters.client import sakshi
from adapters.settings import Settings
from benchmarks.processes import Party, cpu_seconds
from benchmarks.table import Table
from domain.evidence import Intent, Output, ResultOutcome
from tests.adapters.sql_ledger_cases import HASH, NOW, answer, intent, opening, policy, reading, said
from tests.chaos.processes import ROOT, Temporal
from tests.chaos.site import site

ROUNDS, QUICK = 11, 4
STREAM = "op-1"
COMMANDS = {"--help": ("--help",), "status": ("status", STREAM), "status --json": ("status", STREAM, "--json"), "list": ("list",)}
ALONE, LIBRARIES, WORKER = "Python alone", "Python and the libraries", "a worker, until it works"
LOADED = "import temporalio.client, temporalio.worker, sqlalchemy, pydantic, httpx, typer, rich"
BEFORE: Mapping[str, float] = {"--help": 0.45, "status": 1.28, "status --json": 1.27, "list": 1.17, WORKER: 1.87}
"""CPU before, as parts of what Python and the libraries took in the same run."""


@dataclass(frozen=True, slots=True)
class Started:
    """One row: seconds of CPU, the least of all rounds, and of the clock, their median."""

    what: str
    cpu: float
    wall: float


@dataclass(slots=True)
class _Times:
    cpu: list[float] = field(default_factory=list[float])
    wall: list[float] = field(default_factory=list[float])


async def measure(folder: Path, *, rounds: int = ROUNDS, beside: Path | None = None) -> list[Started]:
    """All rows, in rounds."""
    home = folder / "home"
    await _finished(home)
    environ = _environ() | {"SAKSHI_HOME": str(home), "SAKSHI_LOCAL_USER": "ada", "XDG_CONFIG_HOME": str(folder)}
    temporal = Temporal(folder, ("starting",))
    places = {"": ROOT} if beside is None else {"": ROOT, f", in {beside.name}": beside}
    times: dict[str, _Times] = {}
    try:
        await temporal.start()
        async with site(folder / "site", temporal=temporal.address, namespace="starting", provider_url="http://127.0.0.1:9") as on:
            for _ in range(rounds + 1):
                _note(times, ALONE, await _run(["-c", "pass"], environ))
                _note(times, LIBRARIES, await _run(["-c", LOADED], environ))
                for where, root in places.items():
                    for what, words in COMMANDS.items():
                        _note(times, what + where, await _run([str(root / "starter.py"), *words], environ))
                    _note(times, WORKER + where, await _worker(root, on.environ, folder / "worker.log"))
    finally:
        if temporal.child is not None:
            temporal.child.end()
    return [Started(what, min(one.cpu[1:]), statistics.median(one.wall[1:])) for what, one in times.items()]


def _note(times: dict[str, _Times], what: str, took: tuple[float, float]) -> None:
    one = times.setdefault(what, _Times())
    one.cpu.append(took[0])
    one.wall.append(took[1])


async def _run(words: list[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """CPU and wall of one process, which has to succeed."""
    pipe = asyncio.subprocess.PIPE
    began, before = time.monotonic(), _children()
    process = await asyncio.create_subprocess_exec(sys.executable, *words, env=dict(environ), stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    wall = time.monotonic() - began
    assert process.returncode == 0, (words, out, err)
    return _children() - before, wall


async def _worker(root: Path, environ: Mapping[str, str], log: Path) -> tuple[float, float]:
    """CPU and wall of a worker until it says that it works."""
    began = time.monotonic()
    async with _party([sys.executable, str(root / "worker.py")], environ, log) as worker:
        line = await worker.hear()
        took = cpu_seconds([worker.pid]), time.monotonic() - began
    assert "sakshi.worker/1" in line, line
    return took


@asynccontextmanager
async def _party(command: list[str], environ: Mapping[str, str], log: Path) -> AsyncGenerator[Party]:
    party = await Party.start(command, environ=environ, log=log)
    try:
        yield party
    finally:
        await party.stop()


def _children() -> float:
    """CPU of all processes that this one has waited for."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_"))}


async def _finished(home: Path) -> None:
    """An embedded ledger of one operation that has succeeded."""
    kept = Output(name="output", key=f"acme/{STREAM}/{HASH}", sha256=HASH, size=3)
    story = (
        policy(),
        intent(),
        answer(),
        reading(),
        reading("terminal", remote_state="succeeded", verdict="succeeded"),
        Intent(at=NOW, actor="worker:w", meaning="collect", attempt=1, staging=f"{STREAM}/5"),
        ResultOutcome(at=NOW, actor="worker:w", meaning="verified", outcome="whole", outputs=(kept,)),
    )
    async with sakshi(Settings(home=home, local_user="ada")) as there:
        await there.ledger.open(opening(STREAM))
        for one in story:
            await there.ledger.append(STREAM, said(one), owner=Owner("run-1", 1))
        assert (await there.status(STREAM))["state"] == "succeeded"


def table(found: list[Started]) -> Table:
    """What was measured, for people."""
    unit = next(one.cpu for one in found if one.what == LIBRARIES)
    rows: list[tuple[str, ...]] = []
    for one in found:
        parts, before = one.cpu / unit, BEFORE.get(one.what)
        then = ("", "") if before is None else (f"{before:.2f}", f"{parts / before:.2f}")
        rows.append((one.what, f"{one.cpu * 1000:.0f} ms", f"{one.wall * 1000:.0f} ms", f"{parts:.2f}", *then))
    return Table(
        "Until something is there",
        ("process", "CPU", "wall", "CPU, libraries = 1", "the same before", "now of before"),
        tuple(rows),
        (
            f"*Python and the libraries* is `python -c '{LOADED}'`, measured in the same rounds.",
            "`status` and `list` ask an embedded ledger of one finished operation; no Temporal server is asked.",
            "A worker's time runs to the line that it says once it works, against Temporal's development server.",
        ),
    )


def tables(*, quick: bool = False, beside: Path | None = None) -> list[Table]:
    """Measure, for the report."""
    with tempfile.TemporaryDirectory(prefix="sakshi-starting-") as folder:
        return [table(asyncio.run(measure(Path(folder), rounds=QUICK if quick else ROUNDS, beside=beside)))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starting", description="How long it takes until something is there.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rounds instead of {ROUNDS}")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout, measured in the same rounds")
    options = parser.parse_args()
    for one in tables(quick=options.quick, beside=options.beside and options.beside.absolute()):
        print(one.markdown())


if __name__ == "__main__":
    main()
