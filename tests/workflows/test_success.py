"""The path that everybody hopes for, and how little of it there is in Temporal's history."""

from pathlib import Path

from tests.workflows.stage import REPORT, stage


async def test_an_asynchronous_report_is_created_once_watched_collected_and_verified(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start()).result()
        assert head.state == "succeeded"
        assert len(on.books.jobs()) == 1
        assert await on.states() == ["approved", "create_pending", "accepted", "observing", "result_collecting", "succeeded"]
        await on.verified()
        assert await on.history_events() <= 32


async def test_a_report_that_is_finished_at_once_is_collected_from_the_create_answer(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start(input={**REPORT, "sync": True})).result()
        assert head.state == "succeeded"
        assert await on.states() == ["approved", "create_pending", "result_collecting", "succeeded"]
        assert on.books.requests("observe") == []
        await on.verified()
