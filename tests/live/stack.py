"""Sakshi as an operator has it: `starter.py dev` in one process, and every word to it through the command line."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.processes import identity_of
from adapters.stack_file import remembered_stack
from tests.live.leash import leashed, on_leash, stop, until

ROOT = Path(__file__).parents[2]
STARTER = [sys.executable, str(ROOT / "starter.py")]
CONTRACT = "ogc.processes.execute"
Shown = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What a command said, and with which code it exited."""

    code: int
    text: bytes
    complaint: str

    @property
    def shown(self) -> Shown:
        """Its one object."""
        return json.loads(self.text)


@dataclass(frozen=True)
class Sakshi:
    """A running stack."""

    home: Path

    def say(self, *words: str, server: str = "") -> Said:
        """One command."""
        targets = {"SAKSHI_TARGETS": json.dumps({name: {"server": server} for name in ("ogc", "prefect")})} if server else {}
        done = subprocess.run(on_leash([*STARTER, *words]), env=_environ(self.home) | targets, cwd=ROOT, capture_output=True, timeout=180)
        return Said(done.returncode, done.stdout, done.stderr.decode())

    def ask(self, *words: str, server: str = "", code: int = 0) -> Shown:
        """One command with --json that exits with `code`."""
        said = self.say(*words, "--json", server=server)
        assert said.code == code, (words, said)
        return said.shown

    def run(self, process: str, inputs: object, *, server: str, wait: bool = True, code: int = 0) -> Shown:
        """Start an execution of a process, and wait for its end unless told otherwise."""
        return self.start(CONTRACT, {"process": process, "inputs": inputs}, server=server, wait=wait, code=code)

    def start(self, contract: str, asked: object, *, server: str, wait: bool = True, code: int = 0) -> Shown:
        """Start an operation, and wait for its end unless told otherwise."""
        waiting = ["--wait", "--timeout", "90s"] if wait else []
        return self.ask("run", contract, "--input", json.dumps(asked), *waiting, server=server, code=code)

    def status(self, stream: str) -> Shown:
        """How an operation stands."""
        return self.ask("status", stream)

    def reached(self, stream: str, *states: str) -> Shown:
        """The status, once the operation is in one of these states."""
        assert until(lambda: self.status(stream)["state"] in states, within=90), self.status(stream)
        return self.status(stream)

    def entries(self, stream: str) -> list[Shown]:
        """The evidence, nothing folded."""
        return self.ask("evidence", stream, "--all")["entries"]

    def causes(self, stream: str) -> list[str]:
        """What the evidence says, in order."""
        return [entry["cause"] for entry in self.entries(stream)]

    def is_whole(self, stream: str) -> None:
        """The chain verifies, Temporal remembers no other head, and the projection is what the entries lead to."""
        (found,) = self.ask("verify", stream, "--against-temporal", "--rebuild")["items"]
        assert found["ok"] is True, found
        assert found["witnesses"] > 0


@contextmanager
def running(home: Path) -> Generator[Sakshi]:
    """The embedded stack while the block runs. When it ends, none of its processes is left."""
    with (home.parent / "dev.log").open("ab") as log:
        process = leashed([*STARTER, "dev", "--json"], environ=_environ(home), stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    try:
        where = json.loads(process.stdout.readline() or b"null")
        assert where is not None, (home.parent / "dev.log").read_text()
        assert where["schema"] == "sakshi.stack/1", where
        parts = remembered_stack(home).components
        assert set(parts) == {"temporal", "simulator", "worker"}
        yield Sakshi(home)
    finally:
        stop(process, within=40)
    assert until(lambda: all(identity_of(part.pid) != part.identity for part in parts.values()), within=10)


def _environ(home: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_"))}
    return ours | {"SAKSHI_HOME": str(home)}
