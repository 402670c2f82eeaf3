"""The ground: one provider, one Temporal server, one PostgreSQL server, and for each contestant a worker and a starter.

* Everything listens on loopback or on a socket in the folder, and ends with this process.
* Each contestant has its own namespace and its own database, and is started once. One that is not at work costs its long polls.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from adapters.settings import ROOT
from adapters.sql_ledger import migrate
from benchmarks.contest.contestants import Contestant
from benchmarks.contest.dbos_environment import dbos_python
from benchmarks.contest.work import ACTIVITIES, WORKFLOW_TASKS
from benchmarks.processes import Party
from tests.chaos.processes import Temporal
from tests.chaos.site import site
from tests.postgresql import Server, postgresql

SLOTS = {
    "SAKSHI_SLOTS_READS": str(ACTIVITIES),
    "SAKSHI_SLOTS_EFFECTS": str(ACTIVITIES),
    "SAKSHI_SLOTS_WORKFLOWS": str(WORKFLOW_TASKS),
}


@dataclass(frozen=True)
class Team:
    """A contestant at its place: whom to order from, and which processes do what for it."""

    contestant: Contestant
    starter: Party
    processes: Mapping[str, tuple[int, ...]]


@dataclass
class Ground:
    """What all share."""

    folder: Path
    provider: str
    temporal: Temporal | None = None
    server: Server | None = None
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def team(self, contestant: Contestant) -> Team:
        """Start a contestant."""
        match contestant.kind:
            case "temporal":
                return await self._by_hand(contestant)
            case "sakshi":
                return await self._sakshi(contestant)
            case "dbos":
                return await self._dbos(contestant)

    async def party(self, name: str, *words: str, environ: Mapping[str, str], python: str | Path = sys.executable) -> Party:
        """Start one process, and wait until it is ready."""
        party = await Party.start([python, *words], environ={**environ, "PYTHONPATH": str(ROOT)}, log=self.folder / f"{name}.log")
        self.stack.push_async_callback(party.stop)
        await party.hear()
        return party

    async def _by_hand(self, contestant: Contestant) -> Team:
        assert self.temporal is not None
        environ = {**clean(), "TEMPORAL_ADDRESS": self.temporal.address, "TEMPORAL_NAMESPACE": contestant.name}
        name = contestant.name
        worker = await self.party(f"{name}-worker", "-m", "benchmarks.contest.by_hand_worker", self.provider, environ=environ)
        starter = await self._starter(contestant, contestant.workflow, environ=environ)
        return Team(contestant, starter, {"worker": (worker.pid,), "engine": self._engine(), "starter": (starter.pid,)})

    async def _sakshi(self, contestant: Contestant) -> Team:
        assert self.temporal is not None
        url = await self._database(contestant)
        if url is not None:
            await migrate(url)
        made = await self.stack.enter_async_context(
            site(
                self.folder / contestant.name, temporal=self.temporal.address, namespace=contestant.name,
                provider_url=self.provider, ledger_url=url,
            )
        )  # fmt: skip
        environ = made.environ | SLOTS
        worker = await self.party(f"{contestant.name}-worker", str(ROOT / "worker.py"), environ=environ)
        starter = await self._starter(contestant, self.provider, environ=environ)
        processes = {"worker": (worker.pid,), "engine": self._engine(), "starter": (starter.pid,)}
        return Team(contestant, starter, processes | self._postmaster(contestant))

    async def _dbos(self, contestant: Contestant) -> Team:
        """Worker and starter are one process: DBOS is a library."""
        python = await asyncio.to_thread(dbos_python)
        url = await self._database(contestant, driver="psycopg") or f"sqlite:///{self.folder / 'dbos.db'}"
        starter = await self._starter(contestant, self.provider, url, environ=clean(), python=python)
        return Team(contestant, starter, {"worker": (starter.pid,)} | self._postmaster(contestant))

    async def _starter(self, contestant: Contestant, *words: str, environ: Mapping[str, str], python: str | Path = sys.executable) -> Party:
        command = ("-m", "benchmarks.contest.starter", contestant.kind, *words)
        return await self.party(f"{contestant.name}-starter", *command, environ=environ, python=python)

    async def _database(self, contestant: Contestant, driver: str = "asyncpg") -> str | None:
        """The address of an empty database on the PostgreSQL server, for who is to have one."""
        if contestant.database != "postgresql":
            return None
        assert self.server is not None
        name = contestant.name.replace("-", "_")
        await self.server.create(name)
        return self.server.url(name, driver)

    def _postmaster(self, contestant: Contestant) -> dict[str, tuple[int, ...]]:
        return {"database": (self.server.pid,)} if self.server is not None and contestant.database == "postgresql" else {}

    def _engine(self) -> tuple[int, ...]:
        assert self.temporal is not None
        assert self.temporal.child is not None
        return (self.temporal.child.process.pid,)


def clean() -> dict[str, str]:
    """This environment without settings of ours or of Temporal's."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_", "DBOS_"))}


@asynccontextmanager
async def ground(folder: Path, contestants: Collection[Contestant]) -> AsyncGenerator[Ground]:
    """The ground while the block runs, with what these contestants need."""
    async with AsyncExitStack() as stack:
        simulator = await Party.start(
            [sys.executable, "-m", "simulator"], environ={**clean(), "PYTHONPATH": str(ROOT)}, log=folder / "simulator.log"
        )
        stack.push_async_callback(simulator.stop)
        made = Ground(folder, str(json.loads(await simulator.hear())["url"]))
        spaces = tuple(one.name for one in contestants if one.kind != "dbos")
        if spaces:
            made.temporal = Temporal(folder, spaces)
            stack.callback(_end, made.temporal)
            await made.temporal.start()
        if any(one.database == "postgresql" for one in contestants):
            made.server = stack.enter_context(postgresql(folder / "postgresql"))
        await stack.enter_async_context(made.stack)
        yield made


def _end(temporal: Temporal) -> None:
    if temporal.child is not None:
        temporal.child.end()
