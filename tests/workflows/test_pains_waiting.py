"""What people who wait for jobs complain about, each as it was met and as it has to be. The project and number can be read there."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from activities.options import HOLD_LIMIT
from domain.evidence import Json
from domain.exchange import Answer
from domain.language.expressions import Scope
from domain.messages import Head
from domain.reading import read_observe
from tests.workflows.elsewhere import elsewhere
from tests.workflows.stage import REPORT, stage, variant

LONG = {**REPORT, "polls": 500}
BY_THE_MINUTE = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "10m"}}})
IN_TIME = timedelta(minutes=1)
"""How late a slow machine may be. What is waited for here by the minute or the hour is not that near by chance."""
FLOORED = variant("sim.reports.create", {"observe": {"poll": {"first": "5s", "cap": "1m", "floor": "5s"}}})


def throttled(form: str, seconds: int = 1) -> dict[str, Json]:
    return {"word": "status_503", "args": {"retry_after": form, "seconds": seconds}}


async def handed_back(handle: WorkflowHandle[Any, Head]) -> str:
    """What the one pending activity says, once the server has heard of it: the ledger knows sooner."""
    while True:
        pending = (await handle.describe()).raw_description.pending_activities
        if [one.last_failure.message for one in pending if one.HasField("last_failure")]:
            return pending[0].last_failure.message
        await asyncio.sleep(0.01)


async def test_durabletask_a_retry_after_of_zero_does_not_make_us_hammer_the_provider(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", throttled("zero"), times=4)
        assert (await (await on.start(FLOORED)).result()).state == "succeeded"
        readings = [entry.evidence.at for entry in await on.entries("reading")]
        pauses = [later - earlier for earlier, later in pairwise(readings)]
        assert len(readings) >= 5
        assert min(pauses) >= timedelta(seconds=5)
        await on.verified()


async def test_durabletask_waiting_has_a_deadline_and_then_a_human_is_asked(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(BY_THE_MINUTE, LONG)
        record = await on.until_state("result_timed_out", step=120)
        assert record.standing.attention
        assert (record.standing.state_since - record.standing.deadlines["result"]) < IN_TIME
        await on.verified()


@pytest.mark.parametrize("word", ["status_429", "status_503"])
async def test_durabletask_a_throttled_status_read_is_our_business_and_not_the_callers(tmp_path: Path, word: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", word, times=3)
        assert (await (await on.start()).result()).state == "succeeded"
        assert (await on.story()).count("reading.failed") == 3
        await on.verified()


async def test_durabletask_no_header_of_ours_goes_to_a_host_that_an_answer_names(tmp_path: Path) -> None:
    async with stage(tmp_path) as on, elsewhere() as strangers:
        on.books.lie("create", {"word": "location_elsewhere", "args": {"to": strangers.url}})
        on.books.lie("observe", {"word": "redirect_elsewhere", "args": {"to": strangers.url}}, nth=1)
        on.books.lie("observe", {"word": "location_elsewhere", "args": {"to": strangers.url}}, nth=2)
        assert (await (await on.start()).result()).state == "succeeded"
        assert len(on.books.requests("observe")) >= 3
        assert strangers.heard == []
        await on.verified()


async def test_azure_core_a_retry_after_that_is_a_date_is_waited_for(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        clocks = on.clocks
        on.books.provider.clock = lambda: clocks.now().timestamp()
        on.books.lie("observe", throttled("http_date", 120), nth=1)
        assert (await (await on.start()).result()).state == "succeeded"
        first, second = [entry.evidence.at for entry in await on.entries("reading")][:2]
        assert timedelta(seconds=118) <= second - first <= timedelta(seconds=120) + IN_TIME
        await on.verified()


@pytest.mark.parametrize("hours", [1, 10])
async def test_gong_hours_of_retry_after_are_waited_for_on_the_servers_timer_and_it_is_said_until_when(tmp_path: Path, hours: int) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", throttled("seconds", hours * 3600), nth=1)
        handle = await on.start(variant("sim.reports.create", {"deadlines": {"result": "24h"}}))
        record = await on.until(lambda one: one.standing.tries == 1, step=1)
        assert record.standing.next_at is not None
        waits = record.standing.next_at - (await on.entries("reading"))[-1].evidence.at
        assert waits == pytest.approx(timedelta(hours=hours), abs=timedelta(seconds=2))
        assert f"next at {record.standing.next_at:%H:%M:%S}" in await handed_back(handle)
        seen = len(on.books.seen)
        await on.env.sleep(hours * 3600 - 120)
        assert len(on.books.seen) == seen
        assert (await handle.result()).state == "succeeded"
        await on.verified()


async def test_gong_a_retry_after_beyond_the_deadline_is_cut_to_the_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", throttled("seconds", 10 * 3600))
        await on.start(BY_THE_MINUTE, LONG)
        record = await on.until_state("result_timed_out", step=300)
        assert record.standing.state_since - record.standing.deadlines["result"] < IN_TIME
        assert len(on.books.requests("observe")) == 2
        await on.verified()


async def test_agent_framework_6319_one_slow_status_read_neither_aborts_nor_orphans_the_job(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "hold", nth=1)
        contract = variant("sim.reports.create", {"http": {"timeouts": {"read": "300ms", "total": "1s"}}})
        assert (await (await on.start(contract)).result()).state == "succeeded"
        first = (await on.entries("reading"))[0]
        assert (first.cause, first.body["word"]) == ("reading.failed", "timeout")
        assert [job.ended for job in on.books.jobs()] == ["succeeded"]
        await on.verified()


async def test_ax_mcp_113_what_is_refused_for_good_is_not_tried_until_the_budget_ends(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "reject")
        assert (await (await on.start()).result()).state == "failed"
        assert len(on.books.requests("create")) == 1
        await on.verified()


async def test_ax_mcp_113_a_status_that_is_refused_is_flagged_at_once_and_asked_for_at_the_slowest_pace(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "reject")
        await on.start(BY_THE_MINUTE, LONG)
        record = await on.until(lambda one: one.standing.reads == 1, step=10)
        assert [flag.word for flag in record.standing.flags] == ["read_rejected"]
        await on.until_state("result_timed_out", step=300)
        assert len(on.books.requests("observe")) <= 8
        await on.verified()


async def test_ax_mcp_113_a_job_that_is_gone_is_said_to_be_gone_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "job_gone", nth=2)
        await on.start(BY_THE_MINUTE, LONG)
        record = await on.until_state("result_unavailable", step=30)
        assert record.standing.attention
        assert len(on.books.requests("observe")) == 2
        await on.verified()


async def test_airflow_71211_a_word_that_nobody_announced_is_held_flagged_in_time_and_not_polled_for_ever(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", {"word": "unknown_state", "args": {"state": "ERROR"}})
        await on.start(variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "2m"}}}))
        record = await on.until(lambda one: bool(one.standing.flags), step=60)
        [flag] = record.standing.flags
        assert (flag.word, "'ERROR'" in flag.why) == ("unknown_state", True)
        assert record.standing.state == "observing"
        assert flag.since < record.standing.deadlines["result"] - timedelta(minutes=30)
        record = await on.until_state("result_timed_out", step=120)
        assert record.standing.attention
        await on.verified()


def test_medplum_5575_a_job_that_answers_202_for_ever_is_what_its_body_says() -> None:
    states: list[Json] = [
        {"when": {"status": 202, "body.state": "cancelled"}, "is": "cancelled"},
        {"when": {"status": 202}, "is": "running"},
    ]
    contract = variant("sim.reports.create", {"observe": {"states": states}})
    scope = Scope(job={"id": "job-1"})
    headers = (("content-type", "application/json"),)
    said = {
        state: read_observe(contract, Answer(202, headers, f'{{"job_id":"job-1","state":"{state}"}}'.encode()), scope, datetime.now(UTC))
        for state in ("in-progress", "cancelled")
    }
    assert (said["in-progress"].meaning, said["cancelled"].meaning, said["cancelled"].verdict) == ("going", "terminal", "cancelled")


async def test_medplum_5575_a_cancelled_job_whose_status_answers_as_ever_is_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "remote_cancel", nth=2)
        assert (await (await on.start(input=LONG)).result()).state == "cancelled"
        assert {one.status for one in on.books.requests("observe")} == {200}
        await on.verified()


async def test_sdk_go_463_an_expected_not_yet_is_no_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with stage(tmp_path) as on:
        assert (await (await on.start(BY_THE_MINUTE, {**REPORT, "polls": 8})).result()).state == "succeeded"
        readings = [entry.evidence.at for entry in await on.entries("reading")]
        assert len(readings) >= 9
        assert min(later - earlier for earlier, later in pairwise(readings)) > HOLD_LIMIT, "each wait was handed back to the server"
    assert [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING] == []
