"""Processes that a measurement starts, the lines that they exchange with it, and what the kernel says they have cost.

No process outlives the one that started it. Linux only: the costs are read from `/proc`.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.live.leash import on_leash

TICKS = os.sysconf("SC_CLK_TCK")
ANSWER_WITHIN = 300.0


class Ended(AssertionError):
    """A process ended, or fell silent, where an answer was due."""


class Party:
    """One process that is talked with by lines. What it says besides goes to its log."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process, self._log = process, log

    @classmethod
    async def start(cls, command: Sequence[str | Path], *, environ: Mapping[str, str], log: Path) -> "Party":
        """Start it."""
        with log.open("ab") as said:
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                *on_leash(command), stdin=pipe, stdout=pipe, stderr=said, env=dict(environ), start_new_session=True, limit=2**24
            )
        return cls(process, log)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    async def hear(self) -> str:
        """The next line that it says. Raises Ended."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise Ended(f"no answer within {ANSWER_WITHIN:.0f} s; {self._last()}") from None
        if not line:
            raise Ended(self._last())
        return line.decode()

    async def ask(self, line: str) -> str:
        """Say a line, and hear the next one."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()
        return await self.hear()

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL if that is not enough."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(15):
                await self._process.communicate()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _last(self) -> str:
        return f"{self._log.name} ends with: {self._log.read_text('utf-8', 'replace')[-2000:]}"


def cpu_seconds(roots: Iterable[int]) -> float:
    """Processor time of these processes and all below them, those included that have ended and were waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                facts = (entry / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
                pid = int(entry.name)
                parents[pid] = int(facts[1])
                ticks[pid] = sum(int(fact) for fact in facts[11:15])
    tree = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(ticks.get(pid, 0) for pid in tree) / TICKS
