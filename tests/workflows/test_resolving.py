"""What a human may choose for an operation that waits, what is refused, and that each refusal says what is possible."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from domain.evidence import instant_text
from domain.messages import Head
from tests.workflows.stage import REPORT, Stage, stage, variant

LONG = {**REPORT, "polls": 500}
SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "20m"}}})


async def timed_out(on: Stage) -> WorkflowHandle[Any, Head]:
    handle = await on.start(SLOW, LONG)
    await on.until_state("result_timed_out", step=600)
    return handle


async def test_a_timed_out_operation_goes_on_with_a_new_deadline_that_a_human_names(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await timed_out(on)
        first_run = (await handle.describe()).run_id
        until = on.clocks.now() + timedelta(days=2)
        await on.resolve("resume", until=instant_text(until))
        record = await on.soon_state("observing")
        assert instant_text(record.standing.deadlines["result"]) == instant_text(until)
        await on.until(lambda one: one.standing.deadlines["result"] - on.clocks.now() < timedelta(hours=45), step=3600)
        assert await on.state() == "observing"
        on.books.jobs()[0].end("succeeded", on.books.provider.clock())
        assert (await handle.result()).state == "succeeded"
        assert (await on.client.get_workflow_handle("op-1").describe()).run_id != first_run
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_timed_out_operation_can_be_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await timed_out(on)
        await on.resolve("cancel")
        assert (await handle.result()).state == "cancelled"
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_an_unconfirmed_cancellation_goes_on_being_watched(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored")
        handle = await on.start(SLOW, LONG)
        await on.soon_state("accepted")
        await on.cancel()
        await on.until_state("cancellation_unconfirmed", step=60)
        await on.resolve("resume")
        await on.soon_state("cancelling")
        on.books.jobs()[0].end("cancelled", on.books.provider.clock())
        assert (await handle.result()).state == "cancelled"
        await on.verified()


async def test_an_abandoned_operation_is_final_and_its_job_is_left_as_it_is(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await timed_out(on)
        await on.resolve("abandon")
        assert (await handle.result()).state == "abandoned"
        assert [job.ended for job in on.books.jobs()] == [None]
        assert on.books.requests("cancel") == []
        await on.verified()


async def test_what_is_not_possible_is_refused_with_what_is(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await timed_out(on)
        for choice in ("recollect", "accept_succeeded", "replay", "retry_create", "look", "accept_ledger"):
            await on.resolve(choice, request_id=choice)
            verdict = await on.answered(choice)
            assert not verdict.accepted, choice
            assert verdict.why, choice
        assert "possible: resume, cancel, abandon" in str((await on.answered("recollect")).why)
        past = instant_text(on.clocks.now() - timedelta(hours=1))
        await on.resolve("resume", request_id="past", until=past)
        assert (await on.answered("past")).why == "until is not in the future"
        assert await on.state() == "result_timed_out"
        await on.resolve("abandon")
        assert (await handle.result()).state == "abandoned"
        await on.verified()


async def test_a_person_without_the_right_cannot_resolve(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await timed_out(on)
        await on.resolve("abandon", by="temporal-ui")
        assert not (await on.answered("r-1")).accepted
        await on.resolve("abandon", request_id="r-2")
        assert (await handle.result()).state == "abandoned"
        await on.verified()


async def test_a_create_that_a_human_tries_again_has_another_token_and_the_first_request_is_never_sent_twice(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "error_500_stored"}, times=2)
        handle = await on.start()
        await on.until_state("create_unknown")
        await on.resolve("retry_create")
        assert (await handle.result()).state == "succeeded"
        assert len({one.token for one in on.books.requests("create")}) == 2
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_job_that_a_human_found_at_the_provider_is_taken_as_this_operations(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        handle = await on.start("sim.plain.create")
        await on.soon_state("create_unknown")
        [job] = on.books.jobs()
        await on.resolve("adopt", request_id="r-1", arguments={"id": job.id})
        assert "adopt needs exactly" in str((await on.answered("r-1")).why)
        address = f"{on.provider.url}/v1/jobs/{job.id}"
        await on.resolve("adopt", request_id="r-2", arguments={"id": job.id, "status_url": address})
        assert (await handle.result()).state == "succeeded"
        assert len(on.books.jobs()) == 1
        await on.verified()
