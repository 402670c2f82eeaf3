"""A result in pages: every way to lead on, joined whole, and what pages may do wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from domain.evidence import Json
from tests.workflows.dying import collecting, die_after, go_on
from tests.workflows.stage import REPORT, Stage, stage, variant

AT_ONCE: dict[str, Json] = {**REPORT, "polls": 1, "rows": 9}
LINES: dict[str, Any] = {"input": {"properties": {"format": {"enum": ["csv", "jsonl"]}}}}
PAGES: dict[str, Any] = {"method": "GET", "path": "/v1/jobs/${job.id}/pages", "query": {"cursor": "${page.next}"}}
ROWS: dict[str, Any] = {"method": "GET", "path": "/v1/jobs/${job.id}/rows", "query": {"cursor": "${page.next}"}}
BY_CURSOR = {"request": PAGES, "pages": {"next": "headers.x_next", "records": "headers.x_rows"}}


def paged(source: Any, **collect: Any) -> Any:
    """The shipped contract with its result in pages."""
    listed = "items" in source["pages"]
    verify = dict.fromkeys(("content_type", "bytes", "sha256", "required")) if listed else {}  # a list is not what the status tells of
    return variant("sim.reports.create", {**LINES, "collect": {"from": [source], "format": "jsonl", "verify": verify, **collect}})


def rows_of(on: Stage) -> bytes:
    return b"".join(on.books.jobs()[0].report.pieces())


async def invalid(on: Stage, contract: Any, said: str, input: Json = None) -> None:
    """It is fetched twice, and then a human is asked, who reads why."""
    await on.start(contract, input or {**REPORT, "rows": 9})
    record = await on.until_state("result_validation_failed", step=0.5)
    assert any(said in problem for problem in record.standing.problems), record.standing.problems
    assert [entry.cause for entry in await on.entries("result")] == ["result.invalid", "result.invalid"]
    await on.soon(lambda _: on.stored() == [])
    await on.verified()


async def test_pages_of_csv_are_one_table_with_one_header(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start(paged(BY_CURSOR, format="csv"), {**REPORT, "rows": 9})).result()
        assert head.state == "succeeded"
        assert await on.result_bytes() == rows_of(on)
        output = (await on.standing()).outputs[0]
        assert {check.check: check.verdict for check in output.checks} == {
            "format": "ok", "content_type": "ok", "bytes": "ok", "sha256": "ok", "records": "ok", "schema": "not_offered",
            "page_records": "ok",
        }  # fmt: skip
        assert len(on.books.requests("collect")) == 5
        assert on.stored(".staging") == []
        await on.verified()


NEXT_URL = {"next_url": "body.next_url", "items": "body.items", "records": "body.rows"}
COUNTED = {**ROWS, "query": {"index": "${page.index}"}}
WAYS: dict[str, Any] = {
    "a cursor": {"request": ROWS, "pages": {"next": "body.next", "items": "body.items"}},
    "an address": {"request": {**ROWS, "query": {"size": "2"}}, "pages": NEXT_URL},
    "a count": {"request": COUNTED, "pages": {"count": "body.pages", "items": "body.items"}},
    "more": {"request": COUNTED, "pages": {"more": {"body.more": True}, "items": "body.items", "limit": 5}},
}


@pytest.mark.parametrize("way", list(WAYS))
async def test_items_of_pages_are_lines_however_a_page_leads_on(tmp_path: Path, way: str) -> None:
    async with stage(tmp_path) as on:
        assert (await (await on.start(paged(WAYS[way]), {**REPORT, "rows": 9, "format": "jsonl"})).result()).state == "succeeded"
        lines = (await on.result_bytes()).splitlines()
        assert [json.loads(line) for line in lines] == [json.loads(line) for line in rows_of(on).splitlines()]
        assert ((await on.standing()).outputs[0].media, len(on.books.requests("collect"))) == ("application/jsonl", 5)
        await on.verified()


async def test_pages_of_lines_are_joined_as_they_are(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        assert (await (await on.start(paged(BY_CURSOR), {**REPORT, "rows": 9, "format": "jsonl"})).result()).state == "succeeded"
        assert await on.result_bytes() == rows_of(on)
        await on.verified()


async def test_a_page_that_was_not_had_is_asked_for_again_and_none_before_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "status_500", nth=4)
        assert (await (await on.start(paged(BY_CURSOR, format="csv"), {**REPORT, "rows": 9})).result()).state == "succeeded"
        assert [one.query.get("cursor") for one in on.books.requests("collect")] == [None, "2", "4", "6", "6", "8"]
        assert [entry.cause for entry in await on.entries("result")] == ["result.again", "result.verified"]
        assert await on.result_bytes() == rows_of(on)
        await on.verified()


async def test_after_a_crash_behind_page_3_of_5_the_first_pages_are_not_asked_for_again(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await collecting(on, paged(BY_CURSOR, format="csv"), AT_ONCE)
        await die_after(on, 3)
        assert (await go_on(on)).state == "succeeded"
        assert [one.query.get("cursor") for one in on.books.requests("collect")] == [None, "2", "4", "6", "8"]
        assert await on.result_bytes() == rows_of(on)
        assert on.stored(".staging") == []
        await on.verified()


WRONG: dict[str, tuple[Any, str]] = {
    "page_leads_back": (BY_CURSOR, "leads back to a page that was read"),
    "page_never_last": ({**BY_CURSOR, "pages": {**BY_CURSOR["pages"], "limit": 7}}, "goes on after 7 pages"),
    "page_rows_wrong": (BY_CURSOR, "page 1 says that it has 3 rows, and has 2"),
    "page_columns_moved": (BY_CURSOR, "page 2 has another header row than the first"),
    "wrong_content_type": (BY_CURSOR, "page 2 came as text/html, the first as text/csv"),
    "page_elsewhere": ({"request": {**ROWS, "query": {"size": "2"}}, "pages": NEXT_URL}, "https://elsewhere.example"),
}


@pytest.mark.parametrize("lie", list(WRONG))
async def test_pages_that_can_not_be_a_whole_are_no_result(tmp_path: Path, lie: str) -> None:
    source, said = WRONG[lie]
    async with stage(tmp_path) as on:
        for nth in {"page_columns_moved": (2, 7), "wrong_content_type": (2, 4)}.get(lie, (None,)):
            on.books.lie("collect", lie, nth=nth)
        await invalid(on, paged(source, format="jsonl" if "items" in source["pages"] else "csv"), said)


async def test_rows_that_can_not_be_counted_are_not_as_many_as_a_page_says(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "invalid_utf8")
        await invalid(on, paged(BY_CURSOR, format="csv"), "page 1 says that it has 2 rows, and has rows that can't be counted")


async def test_a_page_that_says_no_number_of_rows_is_no_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        said = {"request": ROWS, "pages": {"next": "body.next", "items": "body.items", "records": "body.more"}}
        await invalid(on, paged(said), "page 1 says that it has no number of rows, and has 2")


async def test_pages_that_say_nothing_of_their_rows_are_said_to(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        silent = {"request": PAGES, "pages": {"next": "headers.x_next", "records": "headers.x_nothing"}}
        await on.start(paged(silent, format="csv"), {**REPORT, "rows": 9})
        await on.until_state("succeeded", step=0.5)
        checks = {check.check: check.verdict for check in (await on.standing()).outputs[0].checks}
        assert (checks["page_records"], checks["records"]) == ("not_offered", "ok")
        await on.verified()


async def test_fewer_rows_than_the_provider_said_are_no_result_though_every_page_was_right(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        counted = {"request": COUNTED, "pages": {"count": "`3`", "items": "body.items", "records": "body.rows"}}
        await invalid(on, paged(counted), "records: expected 9, found 6")


async def test_a_page_without_the_list_is_no_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await invalid(on, paged({"request": ROWS, "pages": {"next": "body.next", "items": "body.rows"}}), "page 1 holds no list")


async def test_what_leads_on_has_to_be_readable(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        source = {"request": ROWS, "pages": {"next_url": "body.rows", "items": "body.items"}}
        await invalid(on, paged(source), "what leads on from page 1 can't be read")


@pytest.mark.parametrize("source", [BY_CURSOR, {"request": ROWS, "pages": {"next": "body.next", "items": "body.items"}}])
async def test_pages_together_have_the_room_of_one_result(tmp_path: Path, source: Any) -> None:
    async with stage(tmp_path) as on:
        limits = {"http": {"limits": {"result_bytes": "100B"}}}
        collect = {"from": [source], "format": "csv" if source is BY_CURSOR else "jsonl", "verify": None}
        await invalid(on, variant("sim.reports.create", {**limits, "collect": collect}), "larger than the contract allows")
        assert len(on.books.requests("collect")) > 1


async def test_pages_without_end_stop_at_the_collect_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "page_never_last")
        on.books.lie("collect", {"word": "status_429", "args": {"seconds": 20}}, probability=0.5, seed=1)
        await on.start(variant("sim.reports.create", {"deadlines": {"collect": "2m"}, "collect": {"from": [BY_CURSOR], "verify": None}}))
        record = await on.until_state("result_unavailable", step=10)
        assert record.standing.why == "the collect deadline passed"
        await on.verified()


@pytest.mark.parametrize("lie", ["result_expired", "status_429", "truncated_body", "drop_before_accepting", "unauthorized"])
async def test_a_list_that_breaks_off_goes_on_where_it_was(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", lie, nth=3)
        await on.start(paged(WAYS["a cursor"]), {**REPORT, "rows": 9, "format": "jsonl"})
        await on.until_state("succeeded", step=0.5)
        assert len((await on.result_bytes()).splitlines()) == 9
        await on.verified()
