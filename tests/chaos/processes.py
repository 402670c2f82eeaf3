"""The processes of the ring: Temporal's development server, the simulator and workers, each on loopback, each on a leash.

* A process ends with the tests, however these end. What it says goes to a log in the folder of its installation.
* A server that is killed comes back on the same port with the same file: that is what a restart is about.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx

from adapters.embedded import TUNED, free_port, temporal_binary
from adapters.temporal import SEARCH_ATTRIBUTES, connect_to
from domain.errors import Unreachable
from tests.chaos.halting import HALTS
from tests.live.leash import leashed, stop

ROOT = Path(__file__).parents[2]
WITHIN = 180.0
"""Seconds for what takes some: a bound that only matters where something hangs."""


class ChildEnded(AssertionError):
    """A process ended where it should have come up."""


class Child:
    """One process."""

    def __init__(self, command: list[str], log: Path, environ: Mapping[str, str]) -> None:
        self._log = log
        self._from = log.stat().st_size if log.exists() else 0
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            self.process: subprocess.Popen[bytes] = leashed(command, environ=environ, stdout=out, stderr=out)

    @property
    def alive(self) -> bool:
        """It has not ended."""
        return self.process.poll() is None

    async def said(self, word: str) -> str:
        """The first line of its log, since it was started, that has this word."""
        async with asyncio.timeout(WITHIN):
            while True:
                with self._log.open("rb") as log:
                    log.seek(self._from)
                    lines = log.read().decode("utf-8", "replace").splitlines()
                for line in lines:
                    if word in line:
                        return line
                if not self.alive:
                    raise ChildEnded(f"{self._log.name}: {lines[-20:]}")
                await asyncio.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL; returns when it is dead."""
        if self.alive:
            self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP: it stands still and knows nothing of it."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """SIGTERM, then SIGKILL."""
        if self.alive:
            self.process.send_signal(signal.SIGCONT)
            stop(self.process, within=15)


class Temporal:
    """The development server with its state in a file."""

    def __init__(self, folder: Path, namespaces: tuple[str, ...]) -> None:
        self._folder, self._namespaces = folder, namespaces
        self._port = free_port()
        self._ui = free_port(taken=[self._port])
        self.address = f"127.0.0.1:{self._port}"
        self.child: Child | None = None

    async def start(self) -> None:
        """Start it, or start it again; returns when it answers in each namespace."""
        attributes = [part for key, kind in SEARCH_ATTRIBUTES.items() for part in ("--search-attribute", f"{key}={kind}")]
        spaces = [part for name in self._namespaces for part in ("--namespace", name)]
        command = [
            temporal_binary(), "server", "start-dev", "--db-filename", str(self._folder / "temporal.db"), "--ip", "127.0.0.1",
            "--port", str(self._port), "--ui-port", str(self._ui), "--headless", "--log-level", "error",
            *TUNED, *attributes, *spaces,
        ]  # fmt: skip
        self.child = Child(command, self._folder / "temporal.log", os.environ)
        async with asyncio.timeout(WITHIN):
            while True:
                try:
                    await connect_to(self.address)
                except Unreachable:
                    if not self.child.alive:
                        raise ChildEnded((self._folder / "temporal.log").read_text()[-2000:]) from None
                    await asyncio.sleep(0.1)
                else:
                    return

    def kill(self) -> None:
        """SIGKILL."""
        if self.child is not None:
            self.child.kill()


class Provider:
    """The simulator, and what its books say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = ""
        self.child: Child | None = None

    async def start(self) -> None:
        """Start it with its books in a file."""
        command = [sys.executable, "-m", "simulator", "--state", str(self._folder / "provider.db")]
        self.child = Child(command, self._folder / "provider.log", {**os.environ, "PYTHONPATH": str(ROOT)})
        self.url = str(json.loads(await self.child.said('"url"'))["url"])

    async def ask(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """One call that is entered nowhere."""
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as client:
            answer = await client.request(method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def lie(self, kind: str, word: str, *, account: str | None = None, times: int | None = None, **args: object) -> None:
        """Install one lie."""
        match: dict[str, object] = {"kind": kind, **({} if account is None else {"account": account})}
        rule: dict[str, object] = {"match": match, "lies": [{"word": word, "args": args}]}
        await self.ask("POST", "/script", rule | ({} if times is None else {"times": times}))

    async def books(self) -> dict[str, object]:
        """The whole account."""
        return await self.ask("GET", "/books")


def worker(folder: Path, name: str, environ: Mapping[str, str], *, halts: Path | None = None) -> Child:
    """A worker as it ships; with `halts`, one that halts where the folder says."""
    if halts is None:
        return Child([sys.executable, str(ROOT / "worker.py")], folder / f"{name}.log", environ)
    command = [sys.executable, "-m", "tests.chaos.halting"]
    return Child(command, folder / f"{name}.log", {**environ, HALTS: str(halts), "PYTHONPATH": str(ROOT)})


async def until(condition: Callable[[], bool], *, within: float, what: str) -> None:
    """Wait for a condition."""
    try:
        async with asyncio.timeout(within):
            while not condition():  # noqa: ASYNC110 - other processes set no event of ours
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not within {within} s: {what}") from None
