"""A cancel is a request: it is recorded before anything is sent, and only what the provider shows makes it a fact."""

from pathlib import Path

import pytest

from tests.workflows.stage import REPORT, stage, variant

LONG = {**REPORT, "polls": 500}
PACE = {"observe": {"poll": {"first": "5s", "cap": "5s"}}}
PACED = variant("sim.reports.create", PACE)


async def test_a_cancel_is_a_fact_when_a_reading_shows_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(PACED, LONG)
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        assert (await on.states())[-3:] == ["cancel_requested", "cancelling", "cancelled"]
        assert (await on.story()).count("intent.cancel") == 1
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_a_refused_cancel_is_said_plainly_and_the_job_goes_on_to_its_success(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_refused")
        handle = await on.start(PACED, {**REPORT, "polls": 10})
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        assert "cancel_answer.refused" in await on.story()
        states = await on.states()
        assert states[states.index("cancel_requested") + 1] == "observing"
        await on.verified()


@pytest.mark.parametrize("lie", ["success_racing_cancel", "success_after_cancel"])
async def test_a_job_that_succeeds_after_its_cancel_has_succeeded(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", lie)
        handle = await on.start(PACED, LONG)
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        assert "cancelling" in await on.states()
        await on.verified()


async def test_a_cancel_that_meets_an_ended_job_reads_what_became_of_it(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        on.books.lie("cancel", "success_racing_cancel", nth=1)
        handle = await on.start(variant("sim.reports.create", {"observe": {"poll": {"first": "10m", "cap": "10m"}}}), LONG)
        async with on.working():
            await on.soon_state("accepted")
            on.books.jobs()[0].end("succeeded", on.books.provider.clock())
            on.books.script.clear()
            await on.cancel()
            assert (await handle.result()).state == "succeeded"
        assert "cancel_answer.read_again" in await on.story()
        await on.verified()


async def test_where_there_is_no_way_to_cancel_it_is_said_and_nothing_is_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(variant("sim.reports.create", {**PACE, **{"cancel": "none"}}), {**REPORT, "polls": 10})
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        [answer] = await on.entries("cancel_answer")
        assert (answer.cause, "no way to cancel" in str(answer.body["words"])) == ("cancel_answer.refused", True)
        assert on.books.requests("cancel") == []
        await on.verified()


async def test_a_throttled_cancel_is_asked_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", {"word": "status_503", "args": {"seconds": 20}}, times=2)
        handle = await on.start(PACED, LONG)
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        assert len(on.books.requests("cancel")) == 3
        await on.verified()


@pytest.mark.parametrize(("repeatable", "sent"), [(True, 2), (False, 1)])
async def test_a_cancel_whose_answer_was_lost_is_sent_again_only_where_it_may_be(tmp_path: Path, repeatable: bool, sent: int) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "drop_after_accepting", nth=1)
        handle = await on.start(variant("sim.reports.create", {**PACE, **{"cancel": {"repeatable": repeatable}}}), LONG)
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        assert len(on.books.requests("cancel")) == sent
        await on.verified()


async def test_a_cancel_that_no_reading_confirms_parks_at_its_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored")
        handle = await on.start(SLOW, LONG)
        await on.until_state("observing")
        await on.cancel()
        record = await on.until_state("cancellation_unconfirmed", step=30)
        assert record.standing.attention
        asked = next(entry for entry in await on.entries("decision"))
        [clock] = await on.entries("clock")
        assert -2 <= (clock.evidence.at - asked.evidence.at).total_seconds() - 300 < 60
        assert (await on.story())[-2] == "reading.going"
        await on.resolve("abandon")
        assert (await handle.result()).state == "abandoned"
        await on.verified()


async def test_a_cancel_that_could_never_be_sent_is_unconfirmed_after_one_last_reading(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", {"word": "status_503", "args": {"retry_after": "hour"}})
        await on.start(SLOW, LONG)
        await on.until_state("observing")
        await on.cancel()
        await on.until_state("cancellation_unconfirmed", step=60)
        assert (await on.story())[-2:] == ["reading.going", "clock.cancel"]
        await on.verified()


SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "30s", "cap": "2m"}}})


async def test_before_anything_was_sent_a_cancel_is_a_fact_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await on.start()
        await on.cancel()
        async with on.working():
            assert (await handle.result()).state == "cancelled"
        assert on.books.seen == []
        await on.verified()


async def test_a_cancel_while_the_create_is_throttled_ends_it_without_another_attempt(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "status_429", "args": {"seconds": 60}})
        handle = await on.start()
        await on.soon(lambda one: one.standing.tries == 1)
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        assert len(on.books.requests("create")) == 1
        await on.verified()


async def test_a_cancel_while_the_result_is_collected_is_refused_and_the_result_is_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "hold")
        handle = await on.start()
        await on.until(lambda one: one.standing.staging is not None, step=0.5)
        await on.held()
        await on.cancel()
        verdict = await on.answered("c-1")
        assert (verdict.accepted, verdict.why) == (False, "the job has ended; its result is being collected")
        on.release()
        assert (await handle.result()).state == "succeeded"
        assert on.books.requests("cancel") == []
        await on.verified()


async def test_two_people_who_cancel_are_both_recorded_and_the_provider_is_asked_as_often_as_it_may_be(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored")
        contract = variant("sim.reports.create", {"cancel": {"repeatable": False}, "observe": {"poll": {"first": "30s", "cap": "2m"}}})
        await on.start(contract, LONG)
        await on.until_state("observing")
        await on.cancel(request_id="c-1")
        assert (await on.answered("c-1")).accepted
        await on.soon_state("cancelling")
        await on.cancel(request_id="c-2")
        verdict = await on.answered("c-2")
        assert (verdict.accepted, verdict.why) == (False, "already asked, and this provider's cancel is not to be repeated")
        assert len(on.books.requests("cancel")) == 1
        await on.verified()


async def test_a_repeatable_cancel_is_asked_once_per_decision(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("cancel", "cancel_acknowledged_and_ignored", nth=1)
        handle = await on.start(PACED, LONG)
        await on.soon_state("accepted")
        await on.cancel(request_id="c-1")
        await on.soon_state("cancelling")
        await on.cancel(request_id="c-2")
        await on.cancel(request_id="c-2")
        assert (await handle.result()).state == "cancelled"
        assert len(on.books.requests("cancel")) == 2
        assert len(await on.entries("decision")) == 2
        await on.verified()


async def test_where_a_cancel_destroys_what_is_finished_the_status_is_read_first_and_success_is_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant(
            "sim.reports.create", {"cancel": {"destroys_finished_jobs": True}, "observe": {"poll": {"first": "10m", "cap": "10m"}}}
        )
        handle = await on.start(contract, LONG)
        await on.soon_state("accepted")
        on.books.jobs()[0].end("succeeded", on.books.provider.clock())
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        assert on.books.requests("cancel") == []
        await on.verified()


async def test_where_a_cancel_destroys_what_is_finished_a_running_job_is_cancelled_after_a_reading(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "status_500", nth=1)
        contract = variant(
            "sim.reports.create", {"cancel": {"destroys_finished_jobs": True}, "observe": {"poll": {"first": "30s", "cap": "30s"}}}
        )
        handle = await on.start(contract, LONG)
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        before = (await on.story())[: (await on.story()).index("intent.cancel")]
        assert before[-2:] == ["reading.failed", "reading.going"]
        await on.verified()


async def test_an_answer_to_a_cancel_that_names_another_job_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"cancel": {"same": {"body.job_id": "another"}}})
        await on.start(contract, LONG)
        await on.soon_state("observing")
        await on.cancel()
        await on.soon_state("contract_violation")
        await on.verified()


async def test_a_cancel_that_cannot_be_rendered_is_refused_and_the_job_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {**PACE, **{"cancel": {"request": {"path": "/v1/jobs/${input.account}"}}}})
        handle = await on.start(contract, {**REPORT, "account": "..", "polls": 6})
        await on.soon_state("accepted")
        await on.cancel()
        assert (await handle.result()).state == "succeeded"
        assert on.books.requests("cancel") == []
        await on.verified()
