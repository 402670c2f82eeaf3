"""What people who cancel jobs complain about, each as it was met and as it has to be. The project and number can be read there."""

from pathlib import Path

from adapters.showing.status import effect_is_over, safe_to_run_again
from tests.workflows.stage import REPORT, stage, variant

LONG = {**REPORT, "polls": 500}
RARELY_READ = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "10m"}}})


async def test_airflow_36090_whoever_stops_the_waiter_stops_the_paid_job_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(input=LONG)
        await on.soon_state("observing")
        await handle.cancel()
        assert (await handle.result()).state == "cancelled"
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_airflow_36090_a_cancel_that_could_not_reach_the_provider_says_so_and_asks_a_human(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "drop_before_accepting")
        await on.start(RARELY_READ, LONG)
        await on.soon_state("accepted")
        await on.cancel()
        record = await on.until_state("cancellation_unconfirmed", step=60)
        assert (record.standing.attention, record.standing.cancel_acknowledged) == (True, False)
        assert [job.ended for job in on.books.jobs()] == [None]
        await on.verified()


async def test_airflow_36090_a_cancel_that_the_provider_does_not_know_of_is_never_said_to_have_worked(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(variant("sim.reports.create", {"cancel": "none"}), {**REPORT, "polls": 10})
        await on.soon_state("observing")
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        [answer] = await on.entries("cancel_answer")
        assert answer.cause == "cancel_answer.refused"
        assert "cancelled" not in await on.states()
        await on.verified()


async def test_ballista_1493_and_airbyte_35348_an_answer_of_cancelled_for_a_finished_job_is_not_believed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored")
        handle = await on.start(RARELY_READ, LONG)
        await on.soon_state("accepted")
        [job] = on.books.jobs()
        job.end("succeeded", on.books.provider.clock())
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        assert await on.result_bytes() == b"".join(job.report.pieces())
        assert "cancelled" not in await on.states()
        await on.verified()


async def test_gtm_skills_43_while_a_cancel_is_not_confirmed_the_same_run_may_not_be_started_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(RARELY_READ, LONG)
        await on.soon_state("accepted")
        await on.cancel()
        record = await on.soon_state("cancelling")
        assert (record.standing.final, record.standing.effect) == (False, "made")
        assert (safe_to_run_again(record.standing), effect_is_over(record.standing)) == (False, False)
        assert (await handle.result()).state == "cancelled"
        assert effect_is_over(await on.standing())
        await on.verified()


async def test_azure_sdk_for_js_22121_a_cancel_does_not_stop_the_reading_and_a_late_success_is_collected(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "success_after_cancel")
        handle = await on.start(input=LONG)
        await on.soon_state("observing")
        before = len(await on.entries("reading"))
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        assert len(await on.entries("reading")) > before
        [job] = on.books.jobs()
        assert await on.result_bytes() == b"".join(job.report.pieces())
        await on.verified()
