"""Addresses that live shortly: renewed by a new reading, which stands under the rules of observing; and what works once."""

from pathlib import Path
from typing import Any

import pytest

from domain.evidence import ResultOutcome
from tests.workflows.dying import collecting, die_after, go_on
from tests.workflows.stage import REPORT, Stage, stage, variant

GONE: dict[str, Any] = {"when": {"status": [403, 404, 410]}, "is": "gone"}
FROM: dict[str, Any] = {"request": {"method": "GET", "url": "${observed.body.result_url}"}, "answers": [GONE]}


def lived(source: Any = FROM, **collect: Any) -> Any:
    """The shipped contract with a result whose address lives shortly."""
    return variant("sim.reports.create", {"collect": {"from": [source], **collect}})


def keys(on: Stage) -> list[str | None]:
    return [one.query.get("key") for one in on.books.requests("collect")]


@pytest.mark.parametrize("status", [403, 404, 410])
async def test_an_address_that_is_over_ends_the_result_as_the_contract_says(tmp_path: Path, status: int) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", {"word": "result_expired", "args": {"status": status}})
        await on.start(lived())
        record = await on.until_state("result_unavailable", step=0.5)
        [entry] = await on.entries("result")
        said = entry.evidence
        assert isinstance(said, ResultOutcome)
        assert said.http is not None
        assert (said.meaning, said.http.status, said.words.message) == ("gone", status, "the result has expired")
        assert record.standing.verdict is not None
        await on.verified()


@pytest.mark.parametrize("status", [403, 404, 410])
async def test_an_address_that_is_over_is_renewed_by_a_new_reading(tmp_path: Path, status: int) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "new_address")
        on.books.lie("collect", {"word": "result_expired", "args": {"status": status}}, times=1)
        await on.start(lived(refresh="observe"))
        await on.until_state("succeeded", step=0.5)
        assert keys(on) == ["3", "4"]
        assert (await on.story())[-4:] == ["reading.terminal", "intent.collect", "reading.terminal", "result.verified"]
        await on.verified()


async def test_a_renewed_address_that_is_over_too_ends_the_result_and_a_human_may_have_it_tried_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "new_address")
        on.books.lie("collect", "result_expired", times=3)
        await on.start(lived(refresh="observe"))
        record = await on.until_state("result_unavailable", step=0.5)
        assert record.standing.problems == ("a new status reading was made, and by what it shows the result is gone too",)
        await on.resolve("recollect")
        await on.until_state("succeeded", step=0.5)
        assert keys(on) == ["3", "4", "4", "5"]
        await on.verified()


async def test_an_address_at_another_host_may_be_renewed_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "location_elsewhere", nth=3)
        await on.start(lived(refresh="observe"))
        await on.until_state("succeeded", step=0.5)
        assert len(on.books.requests("observe")) == 4
        await on.verified()


async def test_a_new_reading_that_contradicts_the_end_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "result_expired", times=1)
        on.books.lie("observe", "terminal_then_running")
        await on.start(lived(refresh="observe"))
        record = await on.until_state("contract_violation", step=0.5)
        assert record.standing.violation == {"why": "a later reading contradicts the first terminal observation"}
        await on.verified()


async def test_another_end_at_the_new_reading_renews_nothing_where_an_end_may_change(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "result_expired", times=2)
        on.books.lie("observe", {"word": "unknown_state", "args": {"state": "failed"}}, nth=4)
        end = {"observe": {"terminal_is_final": False}, "collect": {"from": [FROM], "refresh": "observe"}}
        await on.start(variant("sim.reports.create", end))
        await on.until_state("succeeded", step=0.5)
        first = (await on.entries("result"))[0].evidence
        assert isinstance(first, ResultOutcome)
        assert first.problems == ("a new status reading was made, and it does not show the end that was seen first",)
        assert first.next_at is not None
        await on.verified()


async def test_a_reading_that_fails_renews_nothing_and_is_made_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "result_expired", times=2)
        on.books.lie("observe", "status_500", nth=4)
        await on.start(lived(refresh="observe"))
        await on.until_state("succeeded", step=0.5)
        story = await on.story()
        assert story[story.index("intent.collect") :] == [
            "intent.collect", "reading.failed", "intent.collect", "reading.terminal", "result.verified",
        ]  # fmt: skip
        await on.verified()


async def test_a_job_that_is_gone_at_the_new_reading_has_no_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "result_expired")
        on.books.lie("observe", "job_gone", nth=4)
        await on.start(lived(refresh="observe"))
        await on.until_state("result_unavailable", step=0.5)
        assert (await on.story())[-1] == "reading.gone"
        await on.verified()


@pytest.mark.parametrize("good_for", ["10s", "${to_number('10')}", "${'10'}"])
async def test_an_address_is_renewed_before_it_is_asked_in_vain_once_its_time_is_over(tmp_path: Path, good_for: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "new_address")
        on.books.lie("collect", {"word": "status_429", "args": {"seconds": 60}}, times=1)
        await on.start(lived(refresh="observe", good_for=good_for))
        await on.until_state("succeeded", step=5)
        assert keys(on) == ["3", "4"]
        await on.verified()


@pytest.mark.parametrize(
    ("good_for", "end", "why"), [("10s", "result_unavailable", "it could be fetched until"), ("${'soon'}", "result_unavailable", None)]
)
async def test_what_can_not_be_fetched_any_more_by_the_contract_is_gone_and_not_waited_for(
    tmp_path: Path, good_for: str, end: str, why: str | None
) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", {"word": "status_429", "args": {"seconds": 60}}, nth=1)
        on.books.lie("collect", "status_500")
        await on.start(lived(good_for=good_for))
        record = await on.until_state(end, step=5)
        gone = (await on.entries("result"))[-1].cause == "result.gone"
        assert gone is (why is not None)
        assert not why or record.standing.problems[0].startswith(why)
        await on.verified()


async def test_a_walk_over_pages_whose_address_is_over_begins_anew(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "result_expired", nth=3)
        rows = {"method": "GET", "path": "/v1/jobs/${job.id}/rows", "query": {"size": "2"}}
        verify = dict.fromkeys(("content_type", "bytes", "sha256", "required"))
        source = {"request": rows, "pages": {"next_url": "body.next_url", "items": "body.items"}, "answers": [GONE]}
        await on.start(lived(source, refresh="observe", format="jsonl", verify=verify))
        await on.until_state("succeeded", step=0.5)
        assert [one.query.get("cursor") for one in on.books.requests("collect")] == [None, "2", "4", None, "2", "4"]
        await on.verified()


async def test_a_one_time_result_that_was_cut_is_over(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "truncated_body")
        await on.start(lived(one_time=True))
        await on.until_state("result_unavailable", step=0.5)
        assert len(on.books.requests("collect")) == 1
        await on.verified()


async def test_that_another_output_was_cut_does_not_end_one_that_can_be_had_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        once = {"from": [FROM], "format": "csv", "one_time": True}
        often = {"from": [FROM], "format": "csv"}
        on.books.lie("collect", "truncated_body", nth=2)
        direct = dict.fromkeys(("from", "format", "verify"))
        await on.start(variant("sim.reports.create", {"collect": {**direct, "outputs": {"a_once": once, "often": often}}}))
        await on.until_state("succeeded", step=0.5)
        assert len(on.books.requests("collect")) == 3
        await on.verified()


async def test_what_can_be_had_once_is_had_though_the_worker_dies_before_it_is_said(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        once = {"from": [FROM], "format": "csv", "one_time": True}
        often = {"from": {"request": {"method": "GET", "path": "/v1/jobs/${job.id}/pages"}}, "format": "csv"}
        direct = dict.fromkeys(("from", "format", "verify"))
        contract = variant("sim.reports.create", {"collect": {**direct, "outputs": {"a_once": once, "often": often}}})
        await collecting(on, contract, {**REPORT, "polls": 1})
        await die_after(on, 1)
        assert (await go_on(on)).state == "succeeded"
        assert [one.path.rsplit("/", 1)[1] for one in on.books.requests("collect")] == ["result", "pages"]
        await on.verified()
