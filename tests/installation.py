"""A home folder of its own, commands against it, and `dev` in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.settings import ROOT

WITHIN = 600.0
"""Seconds of real time for a process to do what it was asked for or to end: a bound that only matters where something hangs."""
INPUT = {"account": "acct-7", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv"}


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        (line,) = self.out.splitlines()
        return json.loads(line)


class Installation:
    """A home folder, commands against it, and `dev` in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_"))}
        self.environ = {**kept, "SAKSHI_HOME": str(home), "SAKSHI_LOCAL_USER": "ada", "XDG_CONFIG_HOME": str(home)}
        self.process: subprocess.Popen[str] | None = None

    def dev(self) -> dict[str, Any]:
        """Start `dev`, and return what it says once it is up."""
        self.process = subprocess.Popen(
            [sys.executable, "starter.py", "dev", "--json"],
            cwd=ROOT,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return json.loads(line)

    def end(self, how: signal.Signals) -> int:
        """End `dev` with a signal, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.communicate(timeout=WITHIN)
        code = self.process.returncode
        self.process = None
        return code

    def __call__(self, *words: str) -> Said:
        command = [sys.executable, "starter.py", *words]
        done = subprocess.run(command, cwd=ROOT, env=self.environ, capture_output=True, text=True, timeout=WITHIN, check=False)
        return Said(done.returncode, done.stdout, done.stderr)

    def run(self, *words: str, **more: Any) -> Said:
        return self("run", "sim.reports.create", "--input", json.dumps(INPUT | more), *words, "--json")
