"""Temporal's own tools on the development server: a reset from any point, and wakes in a row, change nothing that is settled."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from activities.ports import Gate
from domain.errors import StaleOwner
from domain.messages import QUEUE_EFFECTS, QUEUE_LEDGER, QUEUE_READS
from tests.workflows.stage import ALL_QUEUES, PLAIN, REPORT, Stage, development_server, stage, variant
from tests.workflows.test_owning import AsksHumans

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # A reset ends a run whose activity may end in the same moment: the SDK then warns of a cancel that came too late.
    pytest.mark.filterwarnings("ignore:Cannot find activity to cancel:UserWarning"),
]

SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "10m", "cap": "10m"}}})
LONG = {**REPORT, "polls": 500}
HALF_DONE = variant(
    "sim.reports.create",
    {
        "observe": {"states": [{"when": {"body.state": "succeeded"}, "is": "partial"}, {"when": {"status": 200}, "is": "running"}]},
        "collect": {"partial": "attention"},
    },
)
"""What the provider calls success is less than what was asked for, and a human says what that is."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[WorkflowEnvironment]:
    async with await development_server() as env:
        yield env


async def task_ends(handle: WorkflowHandle) -> list[int]:
    """The events that a workflow can be reset to."""
    events = (await handle.fetch_history()).events
    return [event.event_id for event in events if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]


async def reset(on: Stage, run_id: str, event: int) -> None:
    await on.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace="default",
            workflow_execution=WorkflowExecution(workflow_id="op-1", run_id=run_id),
            reason="a test",
            workflow_task_finish_event_id=event,
            request_id=str(uuid4()),
        )
    )


async def reset_to_each(on: Stage) -> int:
    """Reset the current run's first self to each of its points, one after the other; the last reset goes on."""
    handle = on.client.get_workflow_handle("op-1")
    run_id = str((await handle.describe()).run_id)
    # The ledger is ahead of the history: a local activity's entry is there before the task that ran it has ended.
    while not (points := await task_ends(on.client.get_workflow_handle("op-1", run_id=run_id))):
        pass
    for event in points:
        await reset(on, run_id, event)
        seen = 0
        while not seen:
            seen = len([one for one in await task_ends(on.client.get_workflow_handle("op-1")) if one > event])
    return len(points)


async def nothing(_: Stage) -> None: ...


async def succeed(on: Stage) -> None:
    on.books.jobs()[0].end("succeeded", on.books.provider.clock())
    await on.wake()


async def abandon(on: Stage) -> None:
    await on.resolve("abandon", request_id="the-end")


async def throttled(on: Stage) -> None:
    on.books.lie("create", {"word": "status_429", "args": {"seconds": 2}}, nth=1)
    async with on.working(queues=[QUEUE_EFFECTS]):
        await on.start()
        await on.soon(lambda one: one.standing.tries == 1)


async def creating(on: Stage) -> None:
    on.books.lie("create", "hold", nth=1)
    await on.start()
    await on.held()


async def release(on: Stage) -> None:
    on.release()


async def accepted(on: Stage) -> None:
    await on.start(SLOW, LONG)
    await on.soon_state("accepted")


async def observing(on: Stage) -> None:
    await accepted(on)
    await on.wake()
    await on.soon_state("observing")


async def cancelling(on: Stage) -> None:
    on.books.lie("cancel", "cancel_acknowledged_and_ignored")
    await accepted(on)
    await on.cancel()
    await on.soon_state("cancelling")


async def cancel(on: Stage) -> None:
    on.books.jobs()[0].end("cancelled", on.books.provider.clock())
    await on.wake()


async def collecting(on: Stage) -> None:
    on.books.lie("collect", "hold", nth=1)
    await on.start()
    await on.held()


async def timed_out(on: Stage) -> None:
    await on.start(variant("sim.reports.create", {"deadlines": {"result": "1s"}}), LONG)
    await on.soon_state("result_timed_out")


async def unconfirmed(on: Stage) -> None:
    on.books.lie("cancel", "cancel_acknowledged_and_ignored")
    await on.start(
        variant("sim.reports.create", {"deadlines": {"cancel": "1s"}, "observe": {"poll": {"first": "10m", "cap": "10m"}}}), LONG
    )
    await on.soon_state("accepted")
    await on.cancel()
    await on.soon_state("cancellation_unconfirmed")


async def unknown(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting")
    await on.start("sim.plain.create")
    await on.soon_state("create_unknown")


async def unavailable(on: Stage) -> None:
    on.books.lie("collect", "result_expired", times=1)
    await on.start()
    await on.soon_state("result_unavailable")


async def recollect(on: Stage) -> None:
    await on.resolve("recollect", request_id="the-end")


async def invalid(on: Stage) -> None:
    on.books.lie("collect", "wrong_result_bytes", times=2)
    await on.start()
    await on.soon_state("result_validation_failed")


async def violated(on: Stage) -> None:
    await on.start(variant("sim.reports.create", {"observe": {"same": {"body.job_id": "another"}}}))
    await on.soon_state("contract_violation")


async def succeeded(on: Stage) -> None:
    await on.start()
    await on.soon_state("succeeded")


SCENES = {
    "create_pending, in flight": (creating, release, "succeeded", None),
    "accepted": (accepted, succeed, "succeeded", 1),
    "observing": (observing, succeed, "succeeded", 1),
    "cancelling": (cancelling, cancel, "cancelled", 1),
    "result_collecting": (collecting, release, "succeeded", 1),
    "result_timed_out": (timed_out, succeed, "succeeded", 1),
    "cancellation_unconfirmed": (unconfirmed, cancel, "cancelled", 1),
    "create_unknown": (unknown, abandon, "abandoned", 1),
    "result_unavailable": (unavailable, recollect, "succeeded", 1),
    "result_validation_failed": (invalid, recollect, "succeeded", 1),
    "contract_violation": (violated, abandon, "abandoned", 1),
    "succeeded": (succeeded, nothing, "succeeded", 1),
}


async def proposed(on: Stage) -> None:
    async def fails(*_: object) -> None:
        raise StaleOwner("another was faster")

    vars(on.ledger)["append"] = fails
    await on.start()
    handle = on.client.get_workflow_handle("op-1")
    while not await task_ends(handle):
        pass


async def append_again(on: Stage) -> None:
    del vars(on.ledger)["append"]


async def asked(on: Stage) -> None:
    await on.start()
    await on.soon_state("awaiting_approval")


async def no_longer_wanted(on: Stage) -> None:
    await on.cancel()


async def approved(on: Stage) -> None:
    await on.start()
    await on.soon_state("approved")


async def reconciling(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting")
    on.books.lie("list", "list_lag")
    await on.start("sim.listed.create", PLAIN)
    await on.soon_state("reconciling")


async def let_it_show(on: Stage) -> None:
    on.books.script.clear()


async def cancel_requested(on: Stage) -> None:
    async with on.working(queues=[QUEUE_EFFECTS]):
        await accepted(on)
    await on.cancel()
    await on.soon_state("cancel_requested")


async def see_it_cancelled(on: Stage) -> None:
    await on.soon_state("cancelling")
    await cancel(on)


async def undecided(on: Stage) -> None:
    await on.start(HALF_DONE)
    await on.soon_state("outcome_undecided")


async def accept(on: Stage) -> None:
    await on.resolve("accept_succeeded", request_id="the-end")


@dataclass(frozen=True)
class Held:
    """A state that is over at once unless something is missing: what, and how it ends when it is there."""

    prepare: Callable[[Stage], Awaitable[None]]
    go_on: Callable[[Stage], Awaitable[None]]
    end: str = "succeeded"
    cancels: int = 0
    served: tuple[str, ...] = ALL_QUEUES
    gate: Gate | None = None
    creates: int = 1
    jobs: int = 1


HELD = {
    "proposed": Held(proposed, append_again),
    "awaiting_approval": Held(asked, no_longer_wanted, "cancelled", gate=AsksHumans(), creates=0, jobs=0),
    "approved": Held(approved, nothing, served=(QUEUE_LEDGER, QUEUE_READS)),
    "create_pending": Held(throttled, nothing, served=(QUEUE_LEDGER, QUEUE_READS), creates=2),
    "reconciling": Held(reconciling, let_it_show),
    "cancel_requested": Held(cancel_requested, see_it_cancelled, "cancelled", 1, (QUEUE_LEDGER, QUEUE_READS)),
    "outcome_undecided": Held(undecided, accept),
}


@pytest.mark.parametrize("state", list(HELD))
async def test_a_reset_while_what_it_waits_for_is_missing_ends_as_if_nothing_had_happened(
    server: WorkflowEnvironment, tmp_path: Path, state: str
) -> None:
    held = HELD[state]
    async with stage(tmp_path, env=server, work=False, gate=held.gate) as on, AsyncExitStack() as hands:
        await hands.enter_async_context(on.working(queues=held.served))
        await held.prepare(on)
        assert await reset_to_each(on) >= 1
        assert (await on.state(), on.books.requests("cancel")) == (state, [])
        await hands.enter_async_context(on.working(queues=set(ALL_QUEUES) - set(held.served)))
        await held.go_on(on)
        head = await on.client.get_workflow_handle("op-1", result_type=dict).result()
        assert (head["state"], await on.state()) == (held.end, held.end)
        assert (len(on.books.jobs()), len(on.books.requests("create"))) == (held.jobs, held.creates)
        assert len(on.books.requests("cancel")) == held.cancels
        await on.verified()


@pytest.mark.parametrize("scene", list(SCENES))
async def test_a_reset_to_any_point_ends_as_if_nothing_had_happened(server: WorkflowEnvironment, tmp_path: Path, scene: str) -> None:
    prepare, go_on, end, creates = SCENES[scene]
    async with stage(tmp_path, env=server) as on:
        await prepare(on)
        cancels = len(on.books.requests("cancel"))
        assert await reset_to_each(on) >= 1
        await go_on(on)
        head = await on.client.get_workflow_handle("op-1", result_type=dict).result()
        assert (head["state"], await on.state()) == (end, end)
        assert len(on.books.jobs()) == 1
        sent = on.books.requests("create")
        assert len({(one.token, one.body_digest) for one in sent}) == 1
        assert creates in (None, len(sent))
        assert len(on.books.requests("cancel")) == cancels
        await on.verified()


async def test_three_wakes_in_a_row_on_a_held_reading_leave_one_owner_and_no_false_contradiction(
    server: WorkflowEnvironment, tmp_path: Path
) -> None:
    async with stage(tmp_path, env=server, hold=5.0) as on:
        on.books.lie("observe", "hold", {"word": "stale_status"}, nth=1)
        on.books.lie("collect", "hold", nth=1)  # the operation does not end before the third wake
        handle = await on.start(input={**REPORT, "polls": 0})
        await on.held()
        for _ in range(3):
            await on.wake()
        await on.soon(lambda _: on.provider.app.gate.holding == 2)
        on.release()
        assert (await handle.result()).state == "succeeded"
        standing = await on.standing()
        assert len(standing.owners) == 1
        assert "contract_violation" not in await on.states()
        assert standing.verdict is not None
        assert standing.verdict.verdict == "succeeded"
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_worker_that_is_replaced_between_two_readings_keeps_the_schedule(server: WorkflowEnvironment, tmp_path: Path) -> None:
    async with stage(tmp_path, env=server, work=False) as on:
        contract = variant("sim.reports.create", {"observe": {"poll": {"first": "3s", "cap": "3s"}}})
        handle = await on.start(contract, {**REPORT, "polls": 1})
        async with on.working():
            due = (await on.soon(lambda one: one.standing.reads == 1)).standing.next_at
        async with on.working():
            assert (await handle.result()).state == "succeeded"
        first, second, *_ = await on.entries("reading")
        assert due is not None
        assert due - first.evidence.at >= timedelta(seconds=2)
        assert due <= second.evidence.at < due + timedelta(minutes=1)
        await on.verified()


async def test_a_cancel_during_the_create_waits_for_its_answer_and_cancels_the_job_that_it_made(
    server: WorkflowEnvironment, tmp_path: Path
) -> None:
    async with stage(tmp_path, env=server) as on:
        on.books.lie("create", "hold")
        handle = await on.start(input=LONG)
        await on.held()
        await on.cancel()
        on.release()
        assert (await handle.result()).state == "cancelled"
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        assert (await on.story()).count("intent.create") == 1
        await on.verified()
