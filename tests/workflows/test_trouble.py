"""When what a workflow needs is not there for a while: it waits, tries again, and loses nothing."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle

from activities import options
from domain.authority import Judgement
from domain.errors import StaleOwner, Unreachable
from domain.messages import QUEUE_EFFECTS, QUEUE_LEDGER, Head
from tests.workflows.stage import READINGS, REPORT, Stage, stage, variant

SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "1m"}}})
TIMER = "timer_started_event_attributes"
LONG = {**REPORT, "polls": 500}


@contextmanager
def failing(on: Stage, monkeypatch: pytest.MonkeyPatch, verb: str, *errors: Exception) -> Generator[list[Exception]]:
    """The ledger fails so often, one error after the other, and then works again."""
    left = list(errors)
    honest = getattr(on.ledger, verb)

    async def fails(*args: object, **named: object) -> object:
        if left:
            raise left.pop(0)
        return await honest(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(on.ledger, verb, fails)
        yield left


async def test_a_ledger_that_is_away_for_a_while_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path) as on:
        with failing(on, monkeypatch, "record", *[Unreachable("the ledger is away")] * 5) as left:
            record = await on.open()
            handle = await on.tell(record)
            assert (await handle.result()).state == "succeeded"
            assert left == []
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_judgement_that_could_not_be_recorded_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path) as on:
        record = await on.open()
        with failing(on, monkeypatch, "append", StaleOwner("another was faster"), StaleOwner("and again")):
            handle = await on.tell(record)
            assert (await handle.result()).state == "succeeded"
        assert "after trouble" in str(await handle.fetch_history())
        await on.verified()


async def test_a_message_that_could_not_be_recorded_is_kept_and_recorded_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(SLOW, LONG)
        await on.soon_state("accepted")
        with failing(on, monkeypatch, "append", StaleOwner("another was faster")) as left:
            await on.cancel()
            assert (await handle.result()).state == "cancelled"
            assert left == []
        assert (await on.standing()).answered["c-1"].accepted
        await on.verified()


async def test_with_no_executor_alive_nothing_is_sent_and_at_its_deadline_the_operation_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "backstop", lambda *_: timedelta(milliseconds=500))
    async with stage(tmp_path, work=False) as on:
        handle = await on.start(variant("sim.reports.create", {"deadlines": {"create": "500ms"}}))
        async with on.working(queues=[QUEUE_LEDGER]):
            await timed_out(handle)
            assert await on.state() == "approved"
        async with on.working():
            assert (await handle.result()).state == "expired"
        assert on.books.seen == []
        await on.verified()


async def test_a_recorder_whose_clock_is_behind_is_asked_again_after_a_pause_until_the_approval_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path) as on:
        asks = Judgement(answer="needs_human", bundle="0" * 64, why="a human is asked")
        monkeypatch.setattr(on.world.gate, "judge", lambda _: asks)
        handle = await on.start()
        await on.soon_state("awaiting_approval")
        honest = on.clocks.now
        monkeypatch.setattr(on.clocks, "now", lambda: honest() - timedelta(seconds=14))
        assert (await handle.result()).state == "expired"
        timers = [event.timer_started_event_attributes for event in (await handle.fetch_history()).events if event.HasField(TIMER)]
        pauses = [timer for timer in timers if timer.start_to_fire_timeout.ToTimedelta() == timedelta(seconds=5)]
        assert 1 <= len(pauses) <= 3, "each brings the recorder five seconds nearer"
        assert [entry.cause for entry in await on.entries("clock")] == ["clock.approval"]
        assert on.books.seen == []
        await on.verified()


async def timed_out(handle: WorkflowHandle[Any, Head]) -> None:
    """Wait until the backstop has ended an activity that nobody took, and another is scheduled."""
    for _ in range(2000):
        kinds = [event.event_type for event in (await handle.fetch_history()).events]
        if EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT in kinds and kinds[-1] == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("no activity was timed out")


async def test_a_message_that_comes_with_the_last_answer_is_refused_on_the_record(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await on.start(SLOW, LONG)
        async with on.working():
            await on.until_state("observing")
        on.books.jobs()[0].end("failed", on.books.provider.clock())
        async with on.working(queues=[QUEUE_EFFECTS, READINGS]):
            await on.until_state("failed", step=30)
            await on.cancel()
        async with on.working():
            assert (await handle.result()).state == "failed"
        verdict = (await on.standing()).answered["c-1"]
        assert (verdict.accepted, verdict.why) == (False, "the operation has ended: failed")
        await on.verified()


async def test_a_message_to_a_stream_that_is_not_there_waits_with_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.client.start_workflow("SakshiOperation", {"id": "op-9"}, id="op-9", task_queue=QUEUE_LEDGER)
        await on.cancel("op-9")
        await on.env.sleep(60)
        assert (await handle.describe()).search_attributes.get("SakshiAttention") == [True]
        record = await on.open(stream="op-9")
        assert record.standing.state == "proposed"
        await on.wake("op-9")
        await on.soon_state("cancelled", "op-9")
        assert on.books.seen == []
        await on.verified("op-9")


async def test_the_credential_of_another_tenant_is_never_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        secret = on.folder / "secrets" / "sim"
        secret.write_text(secret.read_text().replace('"t1"', '"t2"'))
        handle = await on.start(variant("sim.reports.create", {"deadlines": {"create": "5s"}}))
        assert (await handle.result()).state == "failed"
        assert {entry.cause for entry in await on.entries("exchange")} == {"exchange.not_sent"}
        assert on.books.seen == []
        await on.verified()
