"""The stage on which stories play: Temporal, the production worker set-up, the simulator and a real ledger.

* Days pass at once on the time-skipping server: the clock of activities follows the server's. Where the server's own ways are the
  story (resetting a workflow), the stage is built on the development server instead.
* Nothing here is a mock: the provider's books, the ledger and the result folder are what assertions are about.
* A story that needs another contract names what is different from one that ships (`variant`).
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

from temporalio import activity
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor, Worker, WorkflowRunner

from activities import creating, options
from activities.authority import AuthorityActivities
from activities.ledger import LedgerActivities
from activities.loading import Cases
from activities.ports import Gate, Opening, Record, World
from activities.provider import ProviderActivities
from adapters.addresses import AddressRules
from adapters.cedar_gate import CedarGate
from adapters.contract_files import ContractFolder, parse
from adapters.credentials import Credentials
from adapters.file_intake import taken_in
from adapters.http_provider import HttpProvider
from adapters.result_store import ObstoreResults
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.temporal import DATA_CONVERTER, SEARCH_ATTRIBUTES, TemporalRuns, sandboxed_runner, search_attribute_keys
from domain.chain import Entry
from domain.contract import Contract
from domain.evidence import Json
from domain.language.loading import parse_contract
from domain.messages import OPERATION_WORKFLOW, QUEUE_EFFECTS, QUEUE_LEDGER, QUEUE_READS, Head, Known, OperationInput, StepInput
from domain.opening import Asked, Drawn, opening
from domain.standing import Answered, Standing
from simulator.books import Books
from simulator.serve import Running, running
from tests.workflows.server_loss import story_ends, time_passes
from workflows.operation import OperationWorkflow

ROOT = Path(__file__).parents[2]
BINARIES = Path(sys.executable).parent
ALL_QUEUES = (QUEUE_LEDGER, QUEUE_EFFECTS, QUEUE_READS)
PATIENCE = 6000
"""How often something that is sure to come is looked for, 5 ms or more apart: it bounds what hangs, and no slow machine."""
INTERRUPTED = frozenset(step for step, chosen in options.STEPS.items() if chosen.interrupted_by_decision)
READINGS = "readings"
"""Of QUEUE_LEDGER only the activities that speak to a provider: no workflow goes on."""
SECRET = "planted-credential-7f3a9c"
REPORT: dict[str, Json] = {"account": "a-1", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv", "rows": 5, "polls": 2}
NO_FILES: Mapping[str, bytes] = {}
PLAIN: dict[str, Json] = {"account": "a-1", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "rows": 5, "polls": 2}


class StageClocks:
    """The server's time, as far as activities have been told of it; the monotonic clock goes with it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def told(self, moment: datetime) -> None:
        """The server's clock has reached `moment`."""
        self.ahead = max(self.ahead, moment - datetime.now(UTC))

    def now(self) -> datetime:
        """Now, on the server's clock."""
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        """Seconds on the same clock."""
        return self.now().timestamp()


class _Told(Interceptor):
    def __init__(self, clocks: StageClocks) -> None:
        self.clocks = clocks

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _ToldActivity(next, self.clocks)


class _ToldActivity(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, clocks: StageClocks) -> None:
        super().__init__(next)
        self.clocks = clocks

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        at = getattr(input.args[0], "at", None) if input.args else None
        if isinstance(at, datetime):
            self.clocks.told(at)
        if not activity.info().is_local:
            self.clocks.told(activity.info().started_time)
        return await super().execute_activity(input)


def variant(base: str, changes: Mapping[str, object]) -> Contract:
    """A contract that ships, with what a story changes: maps are merged, all else is replaced; None takes a key away."""
    document = _merged(_document(base), changes)
    return parse_contract(document, file=f"{base}, changed", positions={})


@cache
def _document(name: str) -> Json:
    """What a contract's file says, which nobody changes."""
    return parse(ROOT / "contracts" / f"{name}.yaml").document


@cache
def _shipped(reference: str) -> Contract:
    return ContractFolder(ROOT / "contracts").get(reference)


class Shipped(ContractFolder):
    """The contracts that ship, each read once in a process: every story has a stage of its own."""

    def get(self, reference: str) -> Contract:
        return _shipped(reference)


def _merged(old: Json, new: object) -> Json:
    if not isinstance(old, dict) or not isinstance(new, Mapping):
        return cast("Json", new)
    changes = cast("Mapping[str, Json]", new)
    kept = {key: value for key, value in old.items() if changes.get(key, value) is not None}
    return kept | {key: _merged(old.get(key), value) for key, value in changes.items() if value is not None}


@dataclass
class Stage:
    """Everything a story needs."""

    env: WorkflowEnvironment
    client: Client
    ledger: SqlLedger
    ledger_books: LedgerBooks
    results: ObstoreResults
    provider: Running
    world: World
    clocks: StageClocks
    contracts: ContractFolder
    folder: Path
    runner: WorkflowRunner
    shared: bool = False
    started: list[str] = field(default_factory=list[str])

    @property
    def books(self) -> Books:
        """What the provider really did."""
        return self.provider.books

    # --- starting -----------------------------------------------------------------------------------------------------

    async def open(
        self, contract: str | Contract = "sim.reports.create", input: Json = None, *, stream: str = "op-1", principal: str = "local",
        files: Mapping[str, bytes] = NO_FILES,
    ) -> Record:  # fmt: skip
        """Open an operation: entry 0, no workflow. `files`: what `--file` would give, by name."""
        chosen = self.contracts.get(contract) if isinstance(contract, str) else contract
        usual = REPORT if "format" in json.dumps(chosen.input) else PLAIN
        asked = Asked(
            contract=chosen, input=usual if input is None else input, target={"server": self.provider.url}, tenant="t1",
            principal=principal,
        )  # fmt: skip
        drawn = Drawn(stream.encode().ljust(32, b"s"), b"i" * 32, "0" * 32)
        taken = taken_in(
            self.results, chosen, tenant=asked.tenant, input=asked.input, target=asked.target, paths=self._written(stream, files), stored={}
        )
        async with taken as intake:
            evidence, payloads = opening(replace(asked, files=intake.files), drawn, at=self.clocks.now())
            await intake.keep()
        return (await self.ledger.open(Opening(stream, evidence, chosen.canonical, payloads))).record

    def _written(self, stream: str, files: Mapping[str, bytes]) -> dict[str, Path]:
        paths = {name: self.folder / f"{stream}-{name}" for name in files}
        for name, path in paths.items():
            path.write_bytes(files[name])
        return paths

    async def start(
        self, contract: str | Contract = "sim.reports.create", input: Json = None, *, stream: str = "op-1", principal: str = "local",
        files: Mapping[str, bytes] = NO_FILES,
    ) -> WorkflowHandle[Any, Head]:  # fmt: skip
        """Open an operation and start its workflow."""
        return await self.tell(await self.open(contract, input, stream=stream, principal=principal, files=files))

    async def tell(self, record: Record) -> WorkflowHandle[Any, Head]:
        """Start the workflow of an open stream."""
        self.started.append(record.stream)
        return await self.client.start_workflow(
            OPERATION_WORKFLOW,
            OperationInput(id=record.stream, known=Known(seq=record.seq, hash=record.hash), fresh=record.seq == 0),
            id=record.stream,
            task_queue=QUEUE_LEDGER,
            result_type=Head,
        )

    async def intend_and_die(self, contract: str | Contract = "sim.reports.create", *, run_id: str = "a-run-that-died") -> Record:
        """The ledger as a worker leaves it that dies after its intent and before it sends."""
        record = await self.open(contract)
        alive = acting_for(run_id)
        await alive.run(AuthorityActivities(self.world).judge, StepInput(id=record.stream, turn=1))
        case = await Cases(self.world).load(record.stream, None)
        await alive.run(creating.intend, self.world, case, turn=2)
        return await self.ledger.record(record.stream)

    @asynccontextmanager
    async def working(self, *, hold: float = 0.0, cached: int = 0, queues: Collection[str] = ALL_QUEUES) -> AsyncGenerator[None]:
        """The workers are at work in this block, and stopped after it."""
        async with workers(self.client, self.world, self.clocks, self.runner, hold=hold, cached=cached, queues=queues):
            yield

    async def closed(self) -> None:
        """Leave nothing running on a server that other stories use too."""
        for stream in self.started if self.shared else ():
            with suppress(RPCError):
                await self.client.get_workflow_handle(stream).terminate()

    # --- looking ------------------------------------------------------------------------------------------------------

    async def standing(self, stream: str = "op-1") -> Standing:
        """The standing that the ledger says."""
        return (await self.ledger.record(stream)).standing

    async def state(self, stream: str = "op-1") -> str:
        """The state that the ledger says."""
        return (await self.standing(stream)).state

    async def entries(self, kind: str | None = None, stream: str = "op-1") -> list[Entry]:
        """Entries in order; of one kind if it is named."""
        return [entry for entry in await self.ledger.entries(stream) if kind in (None, entry.evidence.kind)]

    async def story(self, stream: str = "op-1") -> list[str]:
        """Causes in order."""
        return [entry.cause for entry in await self.ledger.entries(stream)]

    async def states(self, stream: str = "op-1") -> list[str]:
        """States in order of entering, after the first."""
        return [str(entry.to) for entry in await self.ledger.entries(stream) if entry.role == "move" and entry.seq > 0]

    async def answered(self, request_id: str, stream: str = "op-1") -> Answered:
        """The recorded verdict on a message, once there is one."""
        record = await self.soon(lambda one: request_id in one.standing.answered, stream)
        return record.standing.answered[request_id]

    async def verified(self, stream: str = "op-1") -> None:
        """The chain of a stream is whole and its projection is what its entries lead to."""
        verification = await self.ledger_books.verify(stream)
        assert verification.fault is None, verification.fault
        assert await self.ledger_books.rebuild(stream) == []

    async def history_events(self, stream: str = "op-1") -> int:
        """Length of the history of the workflow's current run."""
        return len((await self.client.get_workflow_handle(stream).fetch_history()).events)

    def stored(self, *under: str) -> list[Path]:
        """The files of the result store, or of one folder of it. That a folder is tidied away meanwhile is no error."""
        walked = os.walk(self.folder.joinpath("results", *under))
        return [Path(above, name) for above, _, names in walked for name in names]

    async def result_bytes(self, stream: str = "op-1") -> bytes:
        """The verified result, read back from the store."""
        output = (await self.standing(stream)).outputs[0]
        return b"".join([chunk async for chunk in self.results.read(output.key)])

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[Record], bool], stream: str = "op-1", *, step: float = 1.0, tries: int = 1200) -> Record:
        """Let the server's time pass until the record is as wanted."""
        return await self._wait(condition, stream, tries, lambda: self.pass_time(step))

    async def until_state(self, state: str, stream: str = "op-1", **more: Any) -> Record:
        """Let the server's time pass until the operation is in a state."""
        return await self.until(lambda record: record.standing.state == state, stream, **more)

    async def pass_time(self, seconds: float) -> None:
        """Let the server's time pass, whatever comes of it."""
        await (self.env.sleep(seconds) if self.shared else time_passes(self.env, seconds))

    async def soon(self, condition: Callable[[Record], bool], stream: str = "op-1") -> Record:
        """Wait until the record is as wanted, while the server's time stands."""
        return await self._wait(condition, stream, PATIENCE, lambda: asyncio.sleep(0.005))

    async def soon_state(self, state: str, stream: str = "op-1") -> Record:
        """Wait until the operation is in a state, while the server's time stands."""
        return await self.soon(lambda record: record.standing.state == state, stream)

    async def held(self) -> None:
        """Wait until the provider holds a call."""
        for _ in range(PATIENCE):
            if self.provider.app.gate.holding:
                return
            await asyncio.sleep(0.005)
        raise AssertionError("nothing is held")

    def release(self) -> None:
        """Let the provider answer what it holds."""
        self.provider.app.gate.release()

    async def shown(self, stream: str = "op-1") -> dict[str, Any]:
        """What the workflow itself answers, once it knows all that is recorded: until the activity reports, the ledger is ahead."""
        handle = self.client.get_workflow_handle(stream)
        for _ in range(PATIENCE):
            head: dict[str, Any] | None = await handle.query("status", result_type=None)
            if head is not None and head["seq"] >= (await self.ledger.record(stream)).seq:
                return head
            await asyncio.sleep(0.005)
        raise AssertionError("the workflow does not know what is recorded")

    async def resting(self, stream: str = "op-1") -> None:
        """Wait until no attempt that a message may interrupt is about to end by itself: until it has reported, or rests between two.

        What the provider holds does not end by itself, and is not waited for.
        """
        for _ in range(0 if self.shared else PATIENCE // 6):
            pending = (await self.client.get_workflow_handle(stream).describe()).raw_description.pending_activities
            steps = [one for one in pending if one.activity_type.name in INTERRUPTED]
            if self.provider.app.gate.holding or all(_rests(one) for one in steps):
                break
            await asyncio.sleep(0.01)

    async def _wait(self, condition: Callable[[Record], bool], stream: str, tries: int, pause: Callable[[], Awaitable[object]]) -> Record:
        for _ in range(tries):
            record = await self.ledger.record(stream)
            if condition(record):
                return record
            await pause()
        raise AssertionError(f"still {await self.state(stream)} after {await self.story(stream)}")

    # --- telling ------------------------------------------------------------------------------------------------------

    async def signal(self, name: str, *payload: Any, stream: str = "op-1") -> None:
        """Send a signal as any client would.

        The time-skipping server loses the workflow task that cancels an activity in the very moment in which its attempt ends (the
        development server does not), so there it is sent while the attempt that it may interrupt rests.
        """
        await self.resting(stream)
        await self.client.get_workflow_handle(stream).signal(name, args=payload)

    async def cancel(self, stream: str = "op-1", *, request_id: str = "c-1", by: str = "local", **more: Any) -> None:
        """Ask for a cancel."""
        await self.signal("cancel", {"request_id": request_id, "by": by, "reason": "no longer needed", **more}, stream=stream)

    async def resolve(self, choice: str, stream: str = "op-1", *, request_id: str = "r-1", by: str = "local", **more: Any) -> None:
        """Choose for an operation in attention."""
        await self.signal("resolve", {"request_id": request_id, "by": by, "choice": choice, "reason": "looked", **more}, stream=stream)

    async def wake(self, stream: str = "op-1") -> None:
        """Say that something may have changed."""
        await self.signal("wake", {"source": "test"}, stream=stream)


def _rests(one: PendingActivityInfo) -> bool:
    """Between two attempts. (The time-skipping server calls an activity started then too.)"""
    return one.attempt > 1 and one.last_attempt_complete_time.ToNanoseconds() >= one.last_started_time.ToNanoseconds()


def acting_for(run_id: str, **info: Any) -> ActivityEnvironment:
    """An activity of that run, outside any worker."""
    env = ActivityEnvironment()
    env.info = replace(env.info, workflow_run_id=run_id, **info)
    return env


@asynccontextmanager
async def workers(
    client: Client,
    world: World,
    clocks: StageClocks,
    runner: WorkflowRunner,
    *,
    hold: float = 0.0,
    cached: int = 0,
    queues: Collection[str] = ALL_QUEUES,
) -> AsyncGenerator[None]:
    """The three workers of one worker process, or those of `queues`.

    Nothing is `cached`, so that each workflow task replays its whole history; many operations at once need it, because a full cache
    evicts workflows whose local activities still run.
    """
    provider = ProviderActivities(world, observe_slots=20, hold_limit=timedelta(seconds=hold))
    authority, ledger = AuthorityActivities(world), LedgerActivities(world)
    local: Sequence[Callable[..., Any]] = [authority.judge, authority.judge_decision, ledger.look, ledger.record_clock]
    common: dict[str, Any] = {"interceptors": [_Told(clocks)], "max_heartbeat_throttle_interval": timedelta(milliseconds=500)}
    verbs: dict[str, list[Callable[..., Any]]] = {queue: [] for queue in ALL_QUEUES}
    for step, chosen in options.STEPS.items():
        verbs[chosen.queue].append(getattr(provider, step))
    verbs[options.LEDGER_QUEUE] += local
    async with AsyncExitStack() as stack:
        if QUEUE_LEDGER in queues:
            await stack.enter_async_context(
                Worker(
                    client, task_queue=QUEUE_LEDGER, workflows=[OperationWorkflow], activities=[*local, *verbs[QUEUE_LEDGER]],
                    workflow_runner=runner, max_cached_workflows=cached, workflow_failure_exception_types=[Exception], **common,
                )
            )  # fmt: skip
        alone = {QUEUE_EFFECTS, QUEUE_READS}.intersection(queues) | ({QUEUE_LEDGER} if READINGS in queues else set())
        for queue in sorted(alone):
            await stack.enter_async_context(Worker(client, task_queue=queue, activities=verbs[queue], **common))
        yield


async def time_skipping() -> WorkflowEnvironment:
    """The server on which days pass at once, with our search attributes."""
    env = await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=str(BINARIES / "temporal-test-server"), data_converter=DATA_CONVERTER
    )
    kinds = {name: IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}") for name, kind in SEARCH_ATTRIBUTES.items()}
    await env.client.operator_service.add_search_attributes(AddSearchAttributesRequest(namespace="default", search_attributes=kinds))
    return env


async def development_server(*extra: str) -> WorkflowEnvironment:
    """A server like the embedded one: everything that Temporal does, in real time."""
    return await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(BINARIES / "temporal"), data_converter=DATA_CONVERTER, search_attributes=search_attribute_keys(),
        dev_server_log_level="error", dev_server_extra_args=list(extra),
    )  # fmt: skip


@asynccontextmanager
async def stage(
    folder: Path,
    *,
    env: WorkflowEnvironment | None = None,
    runner: WorkflowRunner | None = None,
    gate: Gate | None = None,
    polls: int = 2,
    work: bool = True,
    hold: float = 0.0,
    cached: int = 0,
    within: float = 240.0,
) -> AsyncGenerator[Stage]:
    """A stage, with its workers at work unless `work` is False. A story that does not end `within` seconds fails."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(story_ends(within))
        shared = env is not None
        if env is None:
            env = await stack.enter_async_context(await time_skipping())
        provider = await stack.enter_async_context(running(polls=polls))
        secrets = folder / "secrets"
        secrets.mkdir(mode=0o700)
        (secrets / "sim").write_text(
            json.dumps({"scheme": "bearer", "value": SECRET, "origins": [provider.url], "tenants": ["t1"], "account": "acct-1"})
        )
        (secrets / "sim").chmod(0o600)
        ledger = await SqlLedger.connect(f"sqlite:///{folder / 'ledger.db'}")
        stack.push_async_callback(ledger.aclose)
        credentials = Credentials(environ={}, folder=secrets, embedded=True)
        results = ObstoreResults(folder / "results")
        clocks = StageClocks()
        http = HttpProvider(credentials, AddressRules(loopback=True), files=results, now=clocks.now)
        stack.push_async_callback(http.aclose)
        world = World(
            ledger=ledger,
            provider=http,
            results=results,
            gate=gate or CedarGate(ROOT / "policies", embedded=True, local_user="local"),
            runs=TemporalRuns(env.client),
            clocks=clocks,
            identity="worker:stage",
        )
        made = Stage(
            env=env, client=env.client, ledger=ledger, ledger_books=LedgerBooks(ledger), results=results, provider=provider, world=world,
            clocks=clocks, contracts=Shipped(ROOT / "contracts"), folder=folder, runner=runner or sandboxed_runner(),
            shared=shared,
        )  # fmt: skip
        stack.push_async_callback(made.closed)
        if work:
            await stack.enter_async_context(made.working(hold=hold, cached=cached))
        yield made
