"""The stage on which stories play: time-skipping Temporal, the production worker set-up, the simulator and a real ledger.

Days pass at once: the clock of activities follows the server's. Nothing here is a mock: the provider's books, the ledger and the
result folder are what assertions are about.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor, Worker, WorkflowRunner

from activities.authority import AuthorityActivities
from activities.ledger import LedgerActivities
from activities.ports import Opening, Record, World
from activities.provider import ProviderActivities
from adapters.addresses import AddressRules
from adapters.cedar_gate import CedarGate
from adapters.contract_files import ContractFolder
from adapters.credentials import Credentials
from adapters.http_provider import HttpProvider
from adapters.result_store import ObstoreResults
from adapters.sql_ledger import LedgerBooks, SqlLedger
from adapters.temporal import DATA_CONVERTER, TemporalRuns, production_runner
from domain.evidence import Json
from domain.messages import OPERATION_WORKFLOW, QUEUE_EFFECTS, QUEUE_LEDGER, QUEUE_READS, Head, Known, OperationInput
from domain.opening import Asked, Drawn, opening
from simulator.books import Books
from simulator.serve import Running, running
from workflows.operation import OperationWorkflow

ROOT = Path(__file__).parents[2]
SECRET = "planted-credential-7f3a9c"
REPORT: dict[str, Json] = {"account": "a-1", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv", "rows": 5, "polls": 2}


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
    started: list[str] = field(default_factory=list[str])

    @property
    def books(self) -> Books:
        """What the provider really did."""
        return self.provider.books

    async def open(
        self, contract: str = "sim.reports.create", input: Json = None, *, stream: str = "op-1", target: dict[str, str] | None = None
    ) -> Record:
        """Open an operation: entry 0, no workflow."""
        chosen = self.contracts.get(contract)
        asked = Asked(
            contract=chosen, input=REPORT if input is None else input, target=target or {"server": self.provider.url}, tenant="t1",
            principal="local",
        )  # fmt: skip
        evidence, payloads = opening(asked, Drawn(b"s" * 32, b"i" * 32, "0" * 32), at=self.clocks.now())
        return (await self.ledger.open(Opening(stream, evidence, chosen.canonical, payloads))).record

    async def start(self, contract: str = "sim.reports.create", input: Json = None, *, stream: str = "op-1", **more: Any) -> WorkflowHandle[Any, Head]:
        """Open an operation and start its workflow."""
        record = await self.open(contract, input, stream=stream, **more)
        return await self.tell(record)

    async def tell(self, record: Record) -> WorkflowHandle[Any, Head]:
        """Start the workflow of an open stream."""
        self.started.append(record.stream)
        return await self.client.start_workflow(
            OPERATION_WORKFLOW,
            OperationInput(id=record.stream, known=Known(seq=record.seq, hash=record.hash)),
            id=record.stream,
            task_queue=QUEUE_LEDGER,
            result_type=Head,
        )

    async def state(self, stream: str = "op-1") -> str:
        """The state that the ledger says."""
        return (await self.ledger.record(stream)).standing.state

    async def until(self, condition: Callable[[Record], bool], stream: str = "op-1", *, step: float = 1.0, tries: int = 400) -> Record:
        """Let time pass until the record is as wanted."""
        for _ in range(tries):
            record = await self.ledger.record(stream)
            if condition(record):
                return record
            await asyncio.sleep(0.01)
            await self.env.sleep(step)
        record = await self.ledger.record(stream)
        raise AssertionError(f"still {record.standing.state} after {await self.story(stream)}")

    async def until_state(self, state: str, stream: str = "op-1", **more: Any) -> Record:
        """Let time pass until the operation is in a state."""
        return await self.until(lambda record: record.standing.state == state, stream, **more)

    async def story(self, stream: str = "op-1") -> list[str]:
        """Causes in order."""
        return [entry.cause for entry in await self.ledger.entries(stream)]

    async def states(self, stream: str = "op-1") -> list[str]:
        """States in order of entering."""
        return [str(entry.to) for entry in await self.ledger.entries(stream) if entry.role == "move"]

    async def signal(self, name: str, payload: Any, stream: str = "op-1") -> None:
        """Send a signal as any client would."""
        await self.client.get_workflow_handle(stream).signal(name, payload)

    async def cancel(self, stream: str = "op-1", *, request_id: str = "c-1", by: str = "local", **more: Any) -> None:
        """Ask for a cancel."""
        await self.signal("cancel", {"request_id": request_id, "by": by, "reason": "no longer needed", **more}, stream)

    async def resolve(self, choice: str, stream: str = "op-1", *, request_id: str = "r-1", by: str = "local", **more: Any) -> None:
        """Choose for an operation in attention."""
        await self.signal("resolve", {"request_id": request_id, "by": by, "choice": choice, "reason": "looked", **more}, stream)

    async def verified(self, stream: str = "op-1") -> None:
        """The chain of a stream is whole and its projection is what its entries lead to."""
        verification = await self.ledger_books.verify(stream)
        assert verification.fault is None, verification.fault
        assert await self.ledger_books.rebuild(stream) == []

    async def history_events(self, stream: str = "op-1") -> int:
        """Length of the workflow's history."""
        return len((await self.client.get_workflow_handle(stream).fetch_history()).events)


@asynccontextmanager
async def workers(client: Client, world: World, clocks: StageClocks, runner: WorkflowRunner, *, hold: float = 0.0) -> AsyncGenerator[None]:
    """The three workers of one worker process."""
    provider = ProviderActivities(world, observe_slots=20, hold_limit=timedelta(seconds=hold))
    authority, ledger = AuthorityActivities(world), LedgerActivities(world)
    local: Sequence[Callable[..., Any]] = [authority.judge, authority.judge_decision, ledger.look, ledger.record_clock]
    common: dict[str, Any] = {"interceptors": [_Told(clocks)], "max_heartbeat_throttle_interval": timedelta(milliseconds=500)}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            Worker(
                client, task_queue=QUEUE_LEDGER, workflows=[OperationWorkflow], activities=local, workflow_runner=runner,
                max_cached_workflows=0, workflow_failure_exception_types=[Exception], **common,
            )
        )  # fmt: skip
        effects = [provider.create, provider.cancel, provider.reconcile]
        await stack.enter_async_context(Worker(client, task_queue=QUEUE_EFFECTS, activities=effects, **common))
        await stack.enter_async_context(Worker(client, task_queue=QUEUE_READS, activities=[provider.observe, provider.collect], **common))
        yield


@asynccontextmanager
async def stage(
    folder: Path, *, runner: WorkflowRunner | None = None, polls: int = 2, work: bool = True
) -> AsyncGenerator[Stage]:
    """A stage, with its workers at work unless `work` is False."""
    async with AsyncExitStack() as stack:
        env = await stack.enter_async_context(
            await WorkflowEnvironment.start_time_skipping(
                test_server_existing_path=cast("str", shutil.which("temporal-test-server")), data_converter=DATA_CONVERTER
            )
        )
        provider = await stack.enter_async_context(running(polls=polls))
        secrets = folder / "secrets"
        secrets.mkdir(mode=0o700)
        (secrets / "sim").write_text(
            json.dumps({"scheme": "bearer", "value": SECRET, "origins": [provider.url], "tenants": ["t1"], "account": "acct-1"})
        )
        (secrets / "sim").chmod(0o600)
        ledger = await SqlLedger.connect(f"sqlite+aiosqlite:///{folder / 'ledger.db'}")
        stack.push_async_callback(ledger.aclose)
        credentials = Credentials(environ={}, folder=secrets, embedded=True)
        http = HttpProvider(credentials, AddressRules(loopback=True))
        stack.push_async_callback(http.aclose)
        clocks = StageClocks()
        results = ObstoreResults(folder / "results")
        world = World(
            ledger=ledger,
            provider=http,
            results=results,
            gate=CedarGate(ROOT / "policies", embedded=True, local_user="local"),
            runs=TemporalRuns(env.client),
            clocks=clocks,
            credentials=credentials,
            identity="worker:stage",
        )
        made = Stage(
            env, env.client, ledger, LedgerBooks(ledger), results, provider, world, clocks, ContractFolder(ROOT / "contracts"), folder
        )
        if work:
            await stack.enter_async_context(workers(env.client, world, clocks, runner or production_runner()))
        yield made
