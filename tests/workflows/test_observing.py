"""Watching a job: what the provider shows decides, at the pace that it asks for, until the deadline and no longer."""

from pathlib import Path

import pytest

from tests.workflows.stage import REPORT, stage, variant

LONG = {**REPORT, "polls": 500}
SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "10m"}}})


async def test_a_job_that_fails_is_failed_with_the_providers_reason(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start(input={**REPORT, "fail": True})).result()
        assert head.state == "failed"
        assert (await on.standing()).why == "the report could not be rendered"
        assert on.books.requests("collect") == []
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_job_that_the_provider_cancelled_unasked_is_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "remote_cancel", nth=2)
        head = await (await on.start(input=LONG)).result()
        assert head.state == "cancelled"
        assert await on.entries("decision") == []
        assert on.books.requests("cancel") == []
        await on.verified()


async def test_a_job_that_is_gone_leaves_its_result_unavailable_and_may_be_read_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        rule = on.books.lie("observe", "job_gone", nth=3)
        handle = await on.start(input={**REPORT, "polls": 4})
        record = await on.until_state("result_unavailable", step=0.5)
        assert (record.standing.attention, record.standing.verdict) == (True, None)
        assert rule.used == 1
        await on.resolve("resume")
        assert (await handle.result()).state == "succeeded"
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_job_that_has_not_appeared_yet_is_waited_for_and_flagged_when_it_should_have(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "never_visible", times=12)
        on.books.lie("observe", "hold", nth=13)
        handle = await on.start()
        record = await on.until(lambda one: bool(one.standing.flags), step=0.5)
        assert [flag.word for flag in record.standing.flags] == ["not_visible"]
        await on.until(lambda one: one.standing.reads == 12, step=0.5)
        await on.held()
        on.release()
        assert (await handle.result()).state == "succeeded"
        assert (await on.standing()).flags == ()
        await on.verified()


async def test_an_unknown_word_is_held_flagged_after_ten_readings_and_decides_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "unknown_state", times=11)
        on.books.lie("observe", "hold", nth=10)
        on.books.lie("observe", "hold", nth=12)
        handle = await on.start()
        record = await on.until(lambda one: one.standing.held_run == 9, step=0.2)
        assert record.standing.flags == ()
        await on.held()
        on.release()
        record = await on.until(lambda one: one.standing.held_run >= 10, step=0.2)
        assert [(flag.word, "percolating" in flag.why) for flag in record.standing.flags] == [("unknown_state", True)]
        await on.until(lambda one: one.standing.held_run == 11, step=0.2)
        await on.held()
        on.release()
        assert (await handle.result()).state == "succeeded"
        assert (await on.standing()).flags == ()
        await on.verified()


async def test_a_job_that_waits_for_somebody_at_the_provider_is_flagged_and_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "needs_input", times=2)
        on.books.lie("observe", "hold", nth=3)
        handle = await on.start()
        await on.until(lambda one: [flag.word for flag in one.standing.flags] == ["needs_input"], step=0.2)
        await on.until(lambda one: one.standing.reads == 2, step=0.2)
        await on.held()
        on.release()
        assert (await handle.result()).state == "succeeded"
        assert (await on.standing()).flags == ()
        await on.verified()


@pytest.mark.parametrize("lie", ["drop_before_accepting", "status_500", "invalid_utf8", "deep_json", "truncated_body", "unauthorized"])
async def test_a_failed_reading_decides_nothing_and_is_repeated(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", lie, times=2)
        assert (await (await on.start()).result()).state == "succeeded"
        assert {entry.cause for entry in (await on.entries("reading"))[:2]} <= {"reading.failed", "reading.held"}
        await on.verified()


async def test_a_refused_reading_is_flagged_and_repeated_at_the_slowest_pace(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "reject", times=2)
        handle = await on.start(SLOW)
        record = await on.until(lambda one: one.standing.reads == 1, step=30)
        assert [flag.word for flag in record.standing.flags] == ["read_rejected"]
        assert (await handle.result()).state == "succeeded"
        first, second = (await on.entries("reading"))[:2]
        assert (second.evidence.at - first.evidence.at).total_seconds() == pytest.approx(600, abs=60)
        await on.verified()


async def test_a_status_that_names_another_job_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"observe": {"same": {"body.job_id": "another"}}})
        handle = await on.start(contract)
        record = await on.until_state("contract_violation", step=0.5)
        assert record.standing.attention
        await on.resolve("cancel")
        verdict = await on.answered("r-1")
        assert not verdict.accepted
        await on.resolve("abandon", request_id="r-2")
        assert (await handle.result()).state == "abandoned"
        await on.verified()


async def test_a_reading_that_cannot_be_rendered_fails_until_the_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        changes = {"observe": {"request": {"path": "/v1/jobs/${input.account}"}, "poll": {"first": "10m", "cap": "20m"}}}
        await on.start(variant("sim.reports.create", changes), {**REPORT, "account": ".."})
        await on.until_state("result_timed_out", step=300)
        assert {str(entry.body["word"]) for entry in await on.entries("reading")} == {"unrenderable"}
        assert on.books.requests("observe") == []
        await on.verified()


async def test_at_the_result_deadline_one_last_reading_is_made_and_then_a_human_is_asked(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(SLOW, LONG)
        record = await on.until_state("result_timed_out", step=60)
        last, clock = (await on.entries())[-2:]
        deadline = record.standing.deadlines["result"]
        assert (last.cause, clock.cause) == ("reading.going", "clock.result")
        assert 0 <= (last.evidence.at - deadline).total_seconds() < 120
        accepted = (await on.entries("exchange"))[0].evidence.at
        assert (deadline - accepted).total_seconds() == 3600
        await on.resolve("resume")
        record = await on.until_state("observing")
        on.books.jobs()[0].end("succeeded", on.books.provider.clock())
        assert (await handle.result()).state == "succeeded"
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_success_that_the_last_reading_at_the_deadline_shows_is_a_success(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", {"word": "status_503", "args": {"retry_after": "hour"}}, nth=2)
        on.books.lie("observe", "stale_status", nth=1)
        handle = await on.start(SLOW, {**REPORT, "polls": 0})
        assert (await handle.result()).state == "succeeded"
        readings = await on.entries("reading")
        assert [entry.cause for entry in readings] == ["reading.going", "reading.failed", "reading.terminal"]
        accepted = (await on.entries("exchange"))[0].evidence.at
        assert 3600 <= (readings[-1].evidence.at - accepted).total_seconds() < 3660
        await on.verified()


async def test_a_hint_beyond_the_deadline_does_not_cut_the_hour_short(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", {"word": "status_503", "args": {"retry_after": "hour"}})
        await on.start(SLOW, LONG)
        record = await on.until_state("result_timed_out", step=120)
        readings = await on.entries("reading")
        assert len(readings) == 2
        assert readings[-1].evidence.at >= record.standing.deadlines["result"]
        assert await on.history_events() <= 32
        await on.verified()


async def test_a_wake_reads_at_once_though_the_next_reading_is_far(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(variant("sim.reports.create", {"observe": {"poll": {"first": "30m", "cap": "30m"}}}), LONG)
        await on.soon_state("accepted")
        await on.wake()
        record = await on.soon(lambda one: one.standing.reads == 1)
        assert record.standing.state == "observing"
        [reading] = await on.entries("reading")
        assert reading.body["woken"] is True
        await on.verified()


async def test_a_wake_of_a_timed_out_operation_allows_exactly_one_reading(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(SLOW, LONG)
        record = await on.until_state("result_timed_out", step=60)
        before = record.standing.reads
        await on.wake()
        await on.soon(lambda one: one.standing.reads == before + 1)
        await on.env.sleep(7200)
        record = await on.ledger.record("op-1")
        assert (record.standing.state, record.standing.reads) == ("result_timed_out", before + 1)
        on.books.jobs()[0].end("succeeded", on.books.provider.clock())
        await on.wake()
        assert (await handle.result()).state == "succeeded"
        await on.verified()
