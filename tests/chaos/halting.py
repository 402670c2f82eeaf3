"""A worker that halts operations at named points: `python -m tests.chaos.halting`, with the environment of `worker.py`.

* Its parts are those of `worker.py`; only the ports are wrapped, and one interceptor stands where an activity reports.
* The folder `CHAOS_HALTS` holds one file per operation: `POINT hang` or `POINT die`. The first time that an operation reaches its
  point the file is renamed to `<operation>.reached`, so that nobody halts there twice; when the activity that halted has ended
  there is an `<operation>.ended` beside it.
* `hang`: the operation stands still and everything else goes on, heartbeats too, until SIGCONT. Many operations can so stand at
  their points when the process is killed or frozen. `die`: the process kills itself there and then.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from temporalio import activity
from temporalio.client import Client
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput
from temporalio.worker import Interceptor as WorkerInterceptor

import worker
from activities.ports import Decide, Ledger, Owner, Provider, Record, ResultStore, World
from adapters.settings import Settings, load_settings
from adapters.telemetry import configure_logging
from adapters.temporal import connect, register_search_attributes
from domain.evidence import CreateExchange, Evidence, Intent
from domain.exchange import Answer, CallPolicy, Exchange, Request
from domain.messages import Known

Point = Literal[
    "create_loaded", "cancel_loaded", "before_intent", "after_intent", "while_sending", "after_answer", "after_heartbeat",
    "after_append", "before_report", "before_first_poll", "after_terminal_reading", "before_cancel_sent", "after_publish",
]  # fmt: skip
HALTS = "CHAOS_HALTS"
JOB_ENDS = frozenset({"succeeded", "failed", "cancelled"})


class Halts:
    """Who halts where, as the folder says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._gone_on = asyncio.Event()

    def go_on(self) -> None:
        """Let go of all that stand still now."""
        gone_on, self._gone_on = self._gone_on, asyncio.Event()
        gone_on.set()

    def halted(self, stream: str) -> bool:
        """An operation has reached its point."""
        return (self.folder / f"{stream}.reached").exists()

    async def at(self, *points: Point) -> None:
        """Halt the operation of this activity if one of these is its point."""
        stream = activity.info().workflow_id if activity.in_activity() else None
        file = self.folder / str(stream)
        try:
            said = file.read_text().split()
        except OSError:
            return
        if len(said) != 2 or said[0] not in points:
            return
        file.rename(file.with_suffix(".reached"))
        if said[1] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        gone_on = self._gone_on
        while not gone_on.is_set():
            # Nor is a cancel heard meanwhile, as it is not by a process that stands still.
            with suppress(asyncio.CancelledError):
                await gone_on.wait()


class HaltingLedger:
    """A ledger at which appends can be halted, before and after."""

    def __init__(self, ledger: Ledger, halts: Halts) -> None:
        self._ledger, self._halts = ledger, halts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def record(self, stream: str, *, known: Known | None = None) -> Record:
        """Read the record; halt where a step has loaded its operation and has not begun."""
        record = await self._ledger.record(stream, known=known)
        match activity.info().activity_type if activity.in_activity() else "":
            case "create":
                await self._halts.at("create_loaded")
            case "cancel":
                await self._halts.at("cancel_loaded")
            case _:
                pass
        return record

    async def append(
        self, stream: str, decide: Decide, *, owner: Owner | None, known: Known | None = None, payloads: Sequence[bytes] = ()
    ) -> Record:
        """Append; halt before or after if this is a create's intent or its outcome."""
        # What would be appended is asked outside the transaction: nothing halts while a lock is held.
        wanted = decide((await self._ledger.record(stream)).standing)
        if _holds_intent(wanted):
            await self._halts.at("before_intent")
        if _holds_outcome(wanted):
            await self._halts.at("after_heartbeat")
        record = await self._ledger.append(stream, decide, owner=owner, known=known, payloads=payloads)
        if _holds_intent(wanted):
            await self._halts.at("after_intent")
        if _holds_outcome(wanted):
            await self._halts.at("after_append")
        return record


def _holds_intent(wanted: Sequence[Evidence]) -> bool:
    return any(isinstance(one, Intent) and one.meaning == "create" for one in wanted)


def _holds_outcome(wanted: Sequence[Evidence]) -> bool:
    return any(isinstance(one, CreateExchange) and one.recovered is None for one in wanted)


class HaltingProvider:
    """A provider at whose door requests and answers can be halted."""

    def __init__(self, provider: Provider, halts: Halts) -> None:
        self._provider, self._halts = provider, halts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def exchange(self, request: Request, policy: CallPolicy) -> Exchange:
        """Exchange; halt on the way there or back."""
        if policy.send_by is not None:
            return await self._create(request, policy)
        if request.method == "DELETE":
            await self._halts.at("before_cancel_sent")
        elif request.method == "GET" and "/v1/jobs/" in request.url:
            await self._halts.at("before_first_poll")
        exchange = await self._provider.exchange(request, policy)
        if _shows_end(exchange):
            await self._halts.at("after_terminal_reading")
        return exchange

    async def _create(self, request: Request, policy: CallPolicy) -> Exchange:
        sending = asyncio.ensure_future(self._provider.exchange(request, policy))
        await asyncio.wait({sending}, timeout=0.02)
        await self._halts.at("while_sending")
        exchange = await sending
        await self._halts.at("after_answer")
        return exchange


def _shows_end(exchange: Exchange) -> bool:
    outcome = exchange.outcome
    if exchange.request.method != "GET" or not isinstance(outcome, Answer):
        return False
    try:
        body = json.loads(outcome.body)
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("state") in JOB_ENDS


class HaltingResults:
    """A result store at which a published result can be halted before the ledger knows of it."""

    def __init__(self, results: ResultStore, halts: Halts) -> None:
        self._results, self._halts = results, halts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._results, name)

    async def publish(self, staging: str, key: str) -> None:
        """Publish, and halt."""
        await self._results.publish(staging, key)
        await self._halts.at("after_publish")


class HaltingReports(ClientInterceptor, WorkerInterceptor):
    """Halts a create that is done and has not said so to Temporal."""

    def __init__(self, halts: Halts) -> None:
        self.halts = halts

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _HaltingActivity(next, self.halts)


class _HaltingActivity(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, halts: Halts) -> None:
        super().__init__(next)
        self._halts = halts

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        stream = str(activity.info().workflow_id)
        halted_before = self._halts.halted(stream)
        try:
            done = await super().execute_activity(input)
            if activity.info().activity_type == "create":
                await self._halts.at("before_report")
            return done
        finally:
            if self._halts.halted(stream) and not halted_before:
                (self._halts.folder / f"{stream}.ended").touch()


@asynccontextmanager
async def world_of(settings: Settings, client: Client, identity: str, halts: Halts) -> AsyncGenerator[World]:
    """The world of a worker, with the ports wrapped."""
    async with worker.world_of(settings, client, identity) as world:
        yield replace(
            world,
            ledger=cast("Ledger", HaltingLedger(world.ledger, halts)),
            provider=cast("Provider", HaltingProvider(world.provider, halts)),
            results=cast("ResultStore", HaltingResults(world.results, halts)),
        )


async def work(folder: Path) -> None:
    """Work until told to stop, or until killed."""
    halts, told = Halts(folder), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCONT, halts.go_on)
    loop.add_signal_handler(signal.SIGTERM, told.set)
    settings, identity = load_settings(), f"{os.getpid()}@halting"
    configure_logging(level=settings.log_level, form=settings.log_format, identity=identity)
    plain = await connect(settings, identity=identity)
    config = plain.config()
    config["interceptors"] = [HaltingReports(halts)]
    client = Client(**config)
    await register_search_attributes(client)
    async with world_of(settings, client, identity, halts) as world, AsyncExitStack() as stack:
        for one in worker.workers_of(settings, client, world):
            await stack.enter_async_context(one)
        print(json.dumps({"schema": "sakshi.worker/1", "identity": identity}), flush=True)
        await told.wait()


if __name__ == "__main__":
    asyncio.run(work(Path(os.environ[HALTS])))
    sys.exit(0)
