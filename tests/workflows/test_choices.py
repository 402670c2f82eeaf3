"""What a human may choose where nobody else can: allowed only where it leads somewhere, refused with what to do instead."""

from pathlib import Path
from typing import Any

import pytest

from domain.contract import Contract
from tests.workflows.losing import (
    candidates_of,
    copy_ledger,
    create_intents,
    ends_with_one_job,
    ledger_is_missed,
    lookups,
    one_clock,
    proof_is_due,
    put_back,
    sent,
)
from tests.workflows.stage import PLAIN, Stage, stage, variant

UNKNOWN = {"sim.plain.create": "adopt retry_create abandon", "sim.searched.create": "adopt look retry_create abandon"}
SHORT = variant("sim.listed.create", {"deadlines": {"create": "1m"}})
"""Proof of absence would come after its deadline: a human is asked."""


async def parked(on: Stage, contract: str | Contract, stream: str = "op-1", *, lie: str = "drop_after_accepting") -> None:
    """An operation that waits for a human because its create is unknown."""
    on.books.lie("create", lie)
    await on.start(contract, stream=stream)
    await on.until(lambda one: one.standing.attention, stream)
    on.books.script.clear()


async def refused(on: Stage, choice: str, request_id: str, stream: str = "op-1", **more: Any) -> str:
    """Why a choice was refused."""
    await on.resolve(choice, stream, request_id=request_id, **more)
    verdict = await on.answered(request_id, stream)
    assert not verdict.accepted
    return str(verdict.why)


@pytest.mark.parametrize("contract", list(UNKNOWN))
async def test_an_unknown_create_offers_what_leads_on_and_nothing_else(tmp_path: Path, contract: str) -> None:
    async with stage(tmp_path) as on:
        await parked(on, contract)
        head = await on.shown()
        assert head["state"] == "create_unknown"
        assert head["card"]["choices"] == UNKNOWN[contract].split()
        for choice in ("resume", "recollect", "accept_succeeded", "replay"):
            why = await refused(on, choice, choice)
            assert why == f"{choice} is not possible in create_unknown; possible: {', '.join(UNKNOWN[contract].split())}"
        assert len(sent(on)) == 1
        await on.verified()


# --- adopt -------------------------------------------------------------------------------------------------------------------


async def test_adopting_needs_every_name_and_says_which(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await parked(on, "sim.plain.create")
        [job] = on.books.jobs()
        url = f"{on.provider.url}/v1/jobs/{job.id}"
        needed = "adopt needs exactly: JOB status_url=VALUE"
        assert await refused(on, "adopt", "r-1") == needed
        assert await refused(on, "adopt", "r-2", arguments={"id": job.id}) == needed
        assert await refused(on, "adopt", "r-3", arguments={"id": job.id, "status_url": url, "more": 1}) == needed
        assert await refused(on, "adopt", "r-4", arguments={"id": "two words", "status_url": url}) == needed
        await on.resolve("adopt", request_id="r-5", arguments={"id": job.id, "status_url": url})
        await ends_with_one_job(on)
        assert len(sent(on)) == 1


async def test_a_job_of_another_operation_cannot_be_adopted(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        one_clock(on)
        await on.start("sim.searched.create", {**PLAIN, "polls": 500})
        await on.soon_state("observing")
        await parked(on, "sim.searched.create", "op-2")
        shown = (await on.standing("op-2")).candidates
        theirs = (await on.standing()).job
        assert theirs is not None
        [ours] = [job for job in shown if job["id"] != theirs["id"]]
        assert candidates_of(shown) == {job.id for job in on.books.jobs()}
        assert "another operation has this job" in await refused(on, "adopt", "r-1", "op-2", arguments=theirs)
        await on.resolve("adopt", "op-2", request_id="r-2", arguments=ours)
        record = await on.until_state("succeeded", "op-2")
        assert record.standing.job == ours
        await on.verified("op-2")


async def test_a_job_that_is_adopted_after_a_cancel_is_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        await on.start("sim.plain.create", {**PLAIN, "polls": 500})
        await on.soon(lambda one: one.standing.attention)
        await on.cancel()
        assert (await on.answered("c-1")).accepted
        assert await on.state() == "create_unknown"
        [job] = on.books.jobs()
        await on.resolve("adopt", arguments={"id": job.id, "status_url": f"{on.provider.url}/v1/jobs/{job.id}"})
        await on.until_state("cancelled")
        assert [one.ended for one in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_a_violation_is_ended_by_adopting_what_a_human_has_looked_at(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        on.books.lie("observe", {"word": "nul_in_text", "args": {"field": "account"}})
        await on.start("sim.named.create")
        record = await on.until_state("contract_violation")
        assert record.standing.job is not None
        await on.resolve("adopt", arguments=record.standing.job)
        await ends_with_one_job(on)
        assert (await on.standing()).violation is None


# --- look, replay, retry_create ---------------------------------------------------------------------------------------------


async def test_looking_again_finds_what_has_appeared_meanwhile(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("list", "list_lag")
        await parked(on, SHORT)
        await on.resolve("look")
        await ends_with_one_job(on)
        assert len(sent(on)) == 1


async def test_looking_again_later_proves_that_nothing_was_made(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await parked(on, SHORT, lie="drop_before_accepting")
        await on.env.sleep(600)
        due = await proof_is_due(on, visible_s=5)
        await on.resolve("look")
        record = await on.until(lambda one: one.standing.final)
        last = (await lookups(on))[-1]
        assert last.began is not None
        assert (last.meaning, last.began >= due, record.standing.state, record.standing.effect) == ("absent", True, "failed", "none")
        assert on.books.jobs() == []
        await on.verified()


async def test_a_replay_sends_the_same_token_and_bytes_while_the_window_is_open(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        on.books.lie("create", "reject", nth=2)
        await on.start()
        await on.until(lambda one: one.standing.attention)
        await on.resolve("replay")
        await ends_with_one_job(on)
        assert len(sent(on)) == 3
        assert len(set(sent(on))) == 1
        assert [(one.generation, one.attempt) for one in await create_intents(on)] == [(1, 1), (1, 2), (1, 3)]


async def test_a_replay_is_refused_once_the_window_is_over(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await parked(on, variant("sim.reports.create", {"create": {"token": {"window": "155s"}}}))
        asked = len(sent(on))
        assert (await refused(on, "replay", "r-1")).startswith("replay is not possible in create_unknown; possible: adopt")
        assert len(sent(on)) == asked
        await on.verified()


async def test_a_replay_after_a_cancel_is_the_humans_word_that_it_is_wanted_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        on.books.lie("create", "reject", nth=2)
        await on.start()
        await on.until(lambda one: one.standing.attention)
        await on.cancel()
        await on.answered("c-1")
        assert len(sent(on)) == 2
        await on.resolve("replay")
        await ends_with_one_job(on)
        assert on.books.requests("cancel") == []


async def test_creating_again_takes_a_new_token_and_authority_and_forgets_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await parked(on, "sim.plain.create", lie="drop_before_accepting")
        await on.resolve("retry_create")
        await ends_with_one_job(on)
        first, second = sent(on)
        assert first[1] is None or first[1] != second[1]
        assert first[3] != second[3], "our mark is another one"
        assert [entry.body.get("generation", 1) for entry in await on.entries("policy")] == [1, 1, 2]
        assert (await on.standing()).unproven == ((1, 1),)


async def test_creating_again_after_the_deadline_has_a_new_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await parked(on, "sim.plain.create", lie="drop_before_accepting")
        before = (await on.standing()).deadlines["create"]
        await on.env.sleep(3600)
        await on.resolve("retry_create")
        await ends_with_one_job(on)
        assert (await on.standing()).deadlines["create"] > before


async def test_a_second_generation_that_is_lost_too_is_proven_absent_without_saying_so_of_the_first(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await parked(on, SHORT, lie="drop_before_accepting")
        on.books.lie("create", {"word": "status_429", "args": {"retry_after": "seconds", "seconds": 1}}, nth=1)
        on.books.lie("create", "drop_before_accepting", nth=2)
        await on.resolve("retry_create")
        record = await on.until(lambda one: one.standing.generation == 2 and one.standing.attention)
        assert record.standing.unproven == ((1, 1), (2, 2))
        await on.env.sleep(600)
        await on.resolve("look", request_id="r-2")
        record = await on.until(lambda one: one.standing.attention and one.standing.unproven == ((1, 1),))
        assert (record.standing.state, record.standing.effect) == ("create_unknown", "possible")
        await on.verified()


async def test_choices_belong_to_attention_and_are_refused_while_work_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start("sim.plain.create", {**PLAIN, "polls": 500})
        await on.soon_state("observing")
        for choice, arguments in {"adopt": {"id": "j", "status_url": "u"}, "look": {}, "replay": {}, "retry_create": {}}.items():
            why = await refused(on, choice, choice, arguments=arguments)
            assert why == "the operation is observing and waits for no human"
        assert "there is nothing to accept" in await refused(on, "accept_ledger", "r-9")
        await on.verified()


# --- a ledger that is not what it was -----------------------------------------------------------------------------------------


async def test_an_older_ledger_sends_nothing_until_a_human_accepts_it_and_then_says_unknown(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        record = await on.open("sim.plain.create", {**PLAIN, "polls": 500})
        backup = copy_ledger(on)
        async with on.working():
            await on.tell(record)
            await on.soon_state("observing")
        await put_back(on, backup)
        before = len(on.books.seen)
        async with on.working():
            await ledger_is_missed(on)
            await on.resolve("abandon", request_id="r-1")
            for _ in range(20):
                await on.env.sleep(30)
            assert (await on.state(), len(on.books.seen)) == ("proposed", before)
            await on.resolve("accept_ledger", request_id="r-2")
            await on.soon_state("abandoned")
        assert len(on.books.seen) == before
        causes = await on.story()
        assert causes.index("decision.accept_ledger") < causes.index("regressed.accepted") < causes.index("decision.abandon")
        assert (await on.states())[-2:] == ["create_unknown", "abandoned"]
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_after_an_older_ledger_a_job_is_found_by_its_mark_and_absence_proves_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        record = await on.open("sim.listed.create", {**PLAIN, "polls": 10})
        backup = copy_ledger(on)
        async with on.working():
            await on.tell(record)
            await on.soon_state("observing")
        await put_back(on, backup)
        on.books.lie("list", "never_visible")
        async with on.working():
            await ledger_is_missed(on)
            await on.resolve("accept_ledger")
            record = await on.until(lambda one: one.standing.attention, step=30)
            assert (record.standing.state, record.standing.absence_provable) == ("create_unknown", False)
            assert {lookup.meaning for lookup in await lookups(on)} == {"none"}
            on.books.script.clear()
            await on.resolve("look", request_id="r-2")
            await ends_with_one_job(on)
        assert len(sent(on)) == 1


async def test_an_older_ledger_that_knows_the_job_goes_on_with_it(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        async with on.working():
            await on.start("sim.plain.create", {**PLAIN, "polls": 5000})
            await on.soon_state("observing")
        backup, reads = copy_ledger(on), (await on.standing()).reads
        async with on.working():
            await on.until(lambda one: one.standing.reads >= reads + 5)
        await put_back(on, backup)
        on.books.jobs()[0].end("succeeded", on.books.provider.clock())
        async with on.working():
            await ledger_is_missed(on)
            assert (await on.standing()).reads == reads
            await on.resolve("accept_ledger")
            await ends_with_one_job(on)
        assert len(sent(on)) == 1


async def test_a_lost_ledger_is_never_papered_over(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        async with on.working():
            await on.start("sim.plain.create", {**PLAIN, "polls": 500})
            await on.soon_state("observing")
        await put_back(on, None)
        before = len(on.books.seen)
        async with on.working():
            await ledger_is_missed(on)
            await on.resolve("accept_ledger")
            await on.resolve("abandon", request_id="r-2")
            await on.cancel()
            for _ in range(10):
                await on.env.sleep(60)
            described = await on.client.get_workflow_handle("op-1").describe()
            assert described.close_time is None
        assert len(on.books.seen) == before
        assert await on.ledger.engines.reading(lambda connection: connection.exec_driver_sql("SELECT count(*) FROM streams").scalar()) == 0
