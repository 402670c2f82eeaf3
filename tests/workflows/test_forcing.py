"""A forced cancel: the contract's own call, sent where a human insists, and only there."""

from pathlib import Path

import pytest

from tests.workflows.stage import REPORT, Stage, stage, variant

LONG = {**REPORT, "polls": 500}
PACE = {"observe": {"poll": {"first": "30s", "cap": "2m"}}}
FORCE = {
    "request": {"method": "DELETE", "path": "/v1/jobs/${job.id}", "query": {"force": "true"}},
    "answers": [{"when": {"status": 202}, "is": "acknowledged"}, {"when": {"status": 409}, "is": "already_terminal"}],
}
FORCIBLE = variant("sim.reports.create", {**PACE, **{"cancel": {"repeatable": False, "force": FORCE}}})


def sent(on: Stage) -> list[dict[str, str]]:
    return [one.query for one in on.books.requests("cancel")]


async def test_a_cancel_that_does_nothing_is_followed_by_force_where_a_human_insists(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored", nth=1)
        handle = await on.start(FORCIBLE, LONG)
        await on.until_state("observing")
        await on.cancel(request_id="c-1")
        await on.soon_state("cancelling")
        await on.cancel(request_id="c-2")
        again = await on.answered("c-2")
        assert (again.accepted, again.why) == (
            False,
            "already asked, and this provider's cancel is not to be repeated; --force sends the contract's forced cancel",
        )
        await on.cancel(request_id="c-3", force=True)
        assert (await on.answered("c-3")).accepted
        assert (await handle.result()).state == "cancelled"
        assert sent(on) == [{}, {"force": "true"}]
        assert [entry.body.get("forced") for entry in await on.entries("intent") if entry.cause == "intent.cancel"] == [None, True]
        await on.verified()


async def test_a_first_cancel_by_force_sends_the_force_call_alone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(FORCIBLE, LONG)
        await on.until_state("observing")
        await on.cancel(force=True)
        assert (await handle.result()).state == "cancelled"
        assert sent(on) == [{"force": "true"}]
        await on.verified()


async def test_an_unconfirmed_cancel_may_still_be_forced(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored", nth=1)
        handle = await on.start(FORCIBLE, LONG)
        await on.until_state("observing")
        await on.cancel()
        await on.until_state("cancellation_unconfirmed", step=30)
        await on.cancel(request_id="c-2", force=True)
        assert (await handle.result()).state == "cancelled"
        assert sent(on) == [{}, {"force": "true"}]
        await on.verified()


@pytest.mark.parametrize("state", ["accepted", "cancelling"])
async def test_where_the_contract_has_no_such_call_force_is_refused_in_words(tmp_path: Path, state: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored")
        await on.start(variant("sim.reports.create", PACE), LONG)
        await on.soon_state("accepted")
        if state == "cancelling":
            await on.cancel()
            await on.soon_state("cancelling")
        await on.cancel(request_id="c-9", force=True)
        verdict = await on.answered("c-9")
        assert (verdict.accepted, verdict.why) == (
            False,
            "this provider's contract has no call that forces a cancel; ask without --force",
        )
        assert all("force" not in query for query in sent(on))
        assert await on.state() in {state, "observing"}
        await on.verified()


async def test_a_forced_cancel_whose_answer_was_lost_is_not_sent_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "drop_after_accepting", nth=1)
        contract = variant("sim.reports.create", {**PACE, **{"cancel": {"repeatable": True, "force": FORCE}}})
        handle = await on.start(contract, LONG)
        await on.until_state("observing")
        await on.cancel(force=True)
        assert (await handle.result()).state == "cancelled"
        assert sent(on) == [{"force": "true"}]
        await on.verified()


async def test_only_a_cancel_can_be_forced(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored")
        await on.start(FORCIBLE, LONG)
        await on.until_state("observing")
        await on.cancel()
        await on.until_state("cancellation_unconfirmed", step=30)
        await on.resolve("abandon", force=True)
        verdict = await on.answered("r-1")
        assert (verdict.accepted, verdict.why) == (False, "only a cancel can be forced")
        await on.verified()


async def test_an_overdue_job_is_cancelled_by_force_as_its_resolution(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {**PACE, **{"deadlines": {"result": "2m"}, "cancel": {"force": FORCE}}})
        handle = await on.start(contract, LONG)
        await on.until_state("result_timed_out", step=30)
        await on.resolve("cancel", force=True)
        assert (await handle.result()).state == "cancelled"
        assert sent(on) == [{"force": "true"}]
        await on.verified()
