"""The path that everybody hopes for, and how little of it there is in Temporal's history."""

import hashlib
from pathlib import Path

import pytest

from tests.workflows.stage import PLAIN, REPORT, stage, variant


async def test_an_asynchronous_report_is_created_once_watched_collected_and_verified(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start()).result()
        assert head.state == "succeeded"
        assert await on.states() == ["approved", "create_pending", "accepted", "observing", "result_collecting", "succeeded"]
        [job] = on.books.jobs()
        assert on.books.downloads(job.id) == 1
        output = (await on.standing()).outputs[0]
        body = await on.result_bytes()
        assert (output.size, output.sha256) == (len(body), hashlib.sha256(body).hexdigest())
        assert body == b"".join(job.report.pieces())
        verdicts = {check.check: check.verdict for check in output.checks}
        assert verdicts | {"content_type": "ok", "sha256": "ok", "bytes": "ok", "records": "ok"} == verdicts
        await on.verified()


async def test_a_report_that_is_finished_at_once_is_collected_from_the_create_answer(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start(input={**REPORT, "sync": True})).result()
        assert head.state == "succeeded"
        assert await on.states() == ["approved", "create_pending", "result_collecting", "succeeded"]
        assert on.books.requests("observe") == []
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_report_that_failed_at_once_is_failed_with_the_providers_reason(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start(input={**REPORT, "sync": True, "fail": True})).result()
        assert (head.state, (await on.standing()).why) == ("failed", "the report could not be rendered")
        assert on.books.requests("collect") == []
        await on.verified()


async def test_a_count_that_is_answered_at_once_is_kept_from_the_answer_itself(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        asked = {"account": "a-1", "range": PLAIN["range"]}
        assert (await (await on.start("sim.read.count", asked)).result()).state == "succeeded"
        assert b'"count":' in await on.result_bytes()
        assert [one.kind for one in on.books.seen] == ["read"]
        await on.verified()


async def test_an_operation_without_a_result_to_fetch_succeeds_when_the_provider_says_so(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await (await on.start(variant("sim.reports.create", {"collect": "none"}))).result()
        assert (await on.states())[-2:] == ["result_collecting", "succeeded"]
        assert (await on.standing()).outputs == ()
        await on.verified()


async def test_a_result_that_the_contract_does_not_want_this_time_is_not_fetched(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"collect": {"when": {"observed.body.rows": {"not": 5}}}})
        await (await on.start(contract)).result()
        assert (await on.story())[-1] == "result.empty"
        assert on.books.requests("collect") == []
        await on.verified()


@pytest.mark.parametrize(("polls", "cap"), [(0, "2s"), (10, "2s"), (1000, "2s")])
async def test_the_history_of_a_success_is_short_however_often_the_status_was_read(tmp_path: Path, polls: int, cap: str) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"observe": {"poll": {"cap": cap}}})
        head = await (await on.start(contract, {**REPORT, "polls": polls})).result()
        assert head.state == "succeeded"
        assert len(on.books.requests("observe")) >= polls
        assert await on.history_events() <= 32
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_short_waits_are_held_inside_the_activity_and_read_the_same(tmp_path: Path) -> None:
    async with stage(tmp_path, hold=5.0) as on:
        contract = variant("sim.reports.create", {"observe": {"poll": {"first": "20ms", "floor": "10ms", "cap": "20ms"}}})
        head = await (await on.start(contract)).result()
        assert head.state == "succeeded"
        assert len({entry.turn for entry in await on.entries("reading")}) == 1
        await on.verified()


async def test_what_policy_denies_never_reaches_the_provider(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"effect": {"class": "destructive"}})
        head = await (await on.start(contract)).result()
        assert head.state == "denied"
        assert on.books.seen == []
        await on.verified()
