"""Creates whose outcome is not known: what is proven and what is not, what may be sent again, and who answers late."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities import creating
from activities.authority import AuthorityActivities
from activities.beating import Pulse
from activities.loading import Cases
from activities.ports import Record
from domain.evidence import CreateExchange
from domain.messages import StepInput
from tests.workflows.losing import CACHED, create_intents, ends_with_one_job, interrupted, lookups, made_by_others, sent
from tests.workflows.stage import PLAIN, REPORT, Stage, acting_for, stage, variant

MARKED: Any = {
    "by": "list", "request": {"method": "GET", "path": "/v1/reports", "query": {"reference": "${mark}"}}, "pages": {"items": "body.items"},
    "match": {"item.reference": "${mark}"}, "strength": "exact", "proves_absence": True, "visible_within": "5s",
    "job": {"id": "item.job_id"},
}  # fmt: skip
"""A lookup for the contract that has a token and plants our mark too."""


# --- refusals and stored answers ------------------------------------------------------------------------------------------


async def test_a_refusal_after_an_unproven_attempt_is_unknown_and_not_failed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        on.books.lie("create", "reject", nth=2)
        await on.start()
        record = await on.until(lambda one: one.standing.attention)
        assert [entry.cause for entry in await on.entries("exchange")] == ["exchange.ambiguous", "exchange.refused"]
        assert (record.standing.state, record.standing.effect) == ("create_unknown", "possible")
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_refusal_after_an_unproven_attempt_is_looked_up(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        on.books.lie("create", "reject", nth=2)
        await on.start(variant("sim.reports.create", {"reconcile": [MARKED]}))
        await ends_with_one_job(on)
        assert len(sent(on)) == 2


async def test_a_refusal_after_attempts_that_were_all_proven_is_failed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "status_429", nth=1)
        on.books.lie("create", "reject", nth=2)
        handle = await on.start("sim.listed.create")
        assert (await handle.result()).state == "failed"
        assert await lookups(on) == []
        await on.verified()


@pytest.mark.parametrize("created", [True, False])
async def test_a_stored_error_is_not_sent_for_again_but_looked_up(tmp_path: Path, created: bool) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "error_500_stored", "args": {"created": created}}, times=2)
        await on.start(variant("sim.reports.create", {"reconcile": [MARKED], "deadlines": {"create": "10m"}}))
        await ends_with_one_job(on)
        assert [entry.cause for entry in await on.entries("exchange")][:2] == ["exchange.ambiguous", "exchange.stuck"]
        assert {intent.generation for intent in await create_intents(on)} == ({1} if created else {1, 2})


@pytest.mark.parametrize("lie", ["truncated_body", "invalid_utf8", "endless_body", "deep_json", "huge_header"])
async def test_an_acceptance_that_cannot_be_read_is_no_refusal_and_the_job_is_found(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", lie, times=1)
        await on.start("sim.listed.create")
        await ends_with_one_job(on)
        assert len(sent(on)) == 1


# --- taken without an id ---------------------------------------------------------------------------------------------------


async def test_what_was_taken_without_an_id_is_never_sent_again_and_never_said_to_be_absent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("list", "never_visible")
        await on.start("sim.unnamed.create")
        record = await on.until(lambda one: one.standing.attention, step=5)
        assert (record.standing.state, record.standing.effect) == ("create_unknown", "made")
        assert {lookup.meaning for lookup in await lookups(on)} == {"none"}
        assert len(sent(on)) == 1
        await on.resolve("retry_create")
        assert not (await on.answered("r-1")).accepted
        await on.resolve("replay", request_id="r-2")
        assert not (await on.answered("r-2")).accepted
        on.books.script.clear()
        await on.resolve("look", request_id="r-3")
        await ends_with_one_job(on)
        assert len(sent(on)) == 1


async def test_what_was_taken_without_an_id_is_cancelled_once_it_is_found(tmp_path: Path) -> None:
    async with stage(tmp_path, cached=CACHED) as on:
        on.books.lie("list", "list_lag")
        handle = await on.start("sim.unnamed.create", {**PLAIN, "polls": 500})
        await on.soon_state("reconciling")
        await on.cancel()
        assert (await on.answered("c-1")).accepted
        on.books.script.clear()  # only now can it be found
        assert (await handle.result()).state == "cancelled"
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_a_job_that_was_taken_and_never_shows_is_flagged_and_not_created_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "never_visible")
        await on.start(variant("sim.reports.create", {"observe": {"poll": {"cap": "5m"}}}))
        record = await on.until_state("result_timed_out", step=60)
        assert [flag.word for flag in record.standing.flags] == ["not_visible"]
        assert (len(sent(on)), len(on.books.jobs())) == (1, 1)
        await on.verified()


# --- an earlier sending made it ---------------------------------------------------------------------------------------------


async def test_a_name_that_an_earlier_sending_used_is_adopted_and_compared(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        await on.start("sim.named.create")
        await ends_with_one_job(on)
        first, second = sent(on)
        assert first == second
        assert [entry.body["word"] for entry in await on.entries("exchange") if entry.cause == "exchange.accepted"] == ["exists"]


async def test_an_existing_job_that_is_not_what_was_asked_for_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        on.books.lie("observe", {"word": "nul_in_text", "args": {"field": "account"}})
        await on.start("sim.named.create")
        record = await on.until_state("contract_violation")
        assert record.standing.job is not None
        assert (await on.story())[-1] == "reading.violation"
        await on.verified()


async def test_an_existing_job_that_is_not_what_was_asked_for_is_never_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        on.books.lie("create", "hold", nth=2)
        on.books.lie("observe", {"word": "nul_in_text", "args": {"field": "account"}})
        await on.start("sim.named.create", {**PLAIN, "polls": 500})
        await on.until(lambda one: one.standing.attempts == 2, step=0.1)
        await on.held()
        await on.cancel()
        await interrupted(on)
        on.release()
        await on.until_state("contract_violation")
        assert on.books.requests("cancel") == []
        assert [job.ended for job in on.books.jobs()] == [None]
        await on.verified()


async def test_an_existing_job_that_is_ours_is_read_and_then_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        on.books.lie("create", "hold", nth=2)
        on.books.lie("observe", "status_500", nth=1)
        handle = await on.start("sim.named.create", {**PLAIN, "polls": 500})
        await on.until(lambda one: one.standing.attempts == 2, step=0.1)
        await on.held()
        await on.cancel()
        await interrupted(on)
        on.release()
        assert (await handle.result()).state == "cancelled"
        assert [one.kind for one in on.books.seen][:5] == ["create", "create", "observe", "observe", "cancel"]
        await on.verified()


async def test_our_name_with_other_content_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        record = await on.open("sim.named.create")
        name = (await Cases(on.world).load("op-1", None)).token(1)
        made_by_others(on, 1, name=str(name))
        await on.tell(record)
        await on.until_state("contract_violation")
        assert (await on.standing()).job is None
        assert len(sent(on)) == 1
        await on.verified()


async def test_another_job_under_one_token_is_a_violation_and_the_first_is_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "new_id_for_same_token", nth=2)
        answering = await _fenced(on, "sim.reports.create", {**REPORT, "polls": 500})
        await on.until(lambda one: one.standing.job is not None, step=0.2)
        first = (await on.standing()).job
        on.release()
        await answering
        record = await on.until_state("contract_violation")
        assert record.standing.job == first
        note = next(entry for entry in await on.entries("late") if entry.role == "note")
        assert note.body["job"] != first
        await on.verified()


# --- late answers of attempts that were replaced ---------------------------------------------------------------------------


async def _fenced(on: Stage, contract: Any, input: Any = None) -> "asyncio.Task[Any]":
    """A create of an older run is on the wire, held by the provider, while the workflow starts anew. Ends with its answer."""
    on.books.lie("create", "hold", nth=1)
    record = await on.open(contract, input)
    older = acting_for("an-older-run")
    await older.run(AuthorityActivities(on.world).judge, StepInput(id=record.stream, turn=1))
    case, prepared = await older.run(creating.intend, on.world, await Cases(on.world).load(record.stream, None), turn=2)
    assert prepared is not None
    answering = asyncio.create_task(older.run(creating.send, on.world, prepared, Pulse(), turn=2))
    await on.held()
    await on.tell(case.record)
    return answering


def rests(on: Stage, record: Record) -> bool:
    """What was looked up last shows nothing, and the next lookup is not due while the answer comes."""
    next_at = record.standing.next_at
    return next_at is not None and next_at - on.clocks.now() > timedelta(seconds=30)


async def test_a_late_answer_of_a_replaced_attempt_settles_a_create_that_waits_for_a_human(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        answering = await _fenced(on, "sim.plain.create")
        await on.soon(lambda one: one.standing.attention)
        on.release()
        await answering
        await ends_with_one_job(on)
        assert len(sent(on)) == 1
        note, read = await on.entries("late")
        assert (note.role, read.role, read.body["of"], read.to) == ("note", "move", note.seq, "accepted")


async def test_a_late_answer_is_read_before_anything_is_looked_up(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("list", "never_visible")
        answering = await _fenced(on, "sim.listed.create")
        await on.until(lambda one: one.standing.state == "reconciling" and rests(on, one))
        looked = len(on.books.requests("list"))
        on.release()
        await answering
        await ends_with_one_job(on)
        assert len(on.books.requests("list")) == looked
        assert len(sent(on)) == 1


async def test_a_late_refusal_proves_that_nothing_was_done_and_a_new_generation_is_made(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "status_503", nth=1)
        on.books.lie("list", "never_visible")
        answering = await _fenced(on, "sim.listed.create")
        await on.soon_state("reconciling")
        on.release()
        await answering
        await ends_with_one_job(on)
        assert [(intent.generation, intent.attempt) for intent in await create_intents(on)] == [(1, 1), (2, 1)]
        assert "lookup.absent" not in await on.story()


async def test_a_late_job_of_an_earlier_generation_stops_a_new_one_before_it_is_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        answering = await _fenced(on, "sim.plain.create")
        await on.soon(lambda one: one.standing.attention)
        on.books.lie("create", {"word": "status_429", "args": {"retry_after": "seconds", "seconds": 60}}, nth=1)
        await on.resolve("retry_create")
        await on.soon(lambda one: one.standing.generation == 2 and one.standing.next_at is not None)
        on.release()
        await answering
        await ends_with_one_job(on)
        assert [intent.generation for intent in await create_intents(on)] == [1, 2]
        assert len(on.books.jobs()) == 1


# --- an intent without an outcome -------------------------------------------------------------------------------------------


async def test_an_intent_whose_worker_died_before_sending_is_found_to_have_made_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.tell(await on.intend_and_die("sim.listed.create"))
        await ends_with_one_job(on)
        [lost, *_] = await on.entries("exchange")
        assert isinstance(lost.evidence, CreateExchange)
        assert (lost.evidence.recovered, (await lookups(on))[-1].meaning) == ("lost", "absent")
        assert [intent.generation for intent in await create_intents(on)] == [1, 2]


async def test_an_intent_whose_worker_died_after_sending_is_found_to_have_made_a_job(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        dying = await _fenced(on, "sim.listed.create")
        dying.cancel()
        on.release()
        await ends_with_one_job(on)
        assert len(sent(on)) == 1
        assert [lookup.meaning for lookup in await lookups(on)] == ["found"]
