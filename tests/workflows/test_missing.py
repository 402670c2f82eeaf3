"""What was kept for an operation and is gone: nothing is sent without it, and a human is told what is missing and what may be done."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.client import WorkflowHandle

from activities import loading, options
from activities.authority import AuthorityActivities
from activities.loading import contract_from_canonical
from activities.ports import Record
from activities.provider import ProviderActivities
from adapters.escalation import dossier_of
from adapters.showing.entries import entry_shape
from adapters.showing.status import status_of
from adapters.showing.support import readme
from adapters.showing.text import said as said_of
from adapters.showing.text import status_text
from domain.contract import Contract
from domain.errors import BadContract, Finding, Unloadable
from domain.evidence import Erased, Missing
from domain.messages import QUEUE_EFFECTS, QUEUE_LEDGER, Head, StepInput
from domain.standing import Standing
from tests.adapters.sql_ledger_cases import drop_triggers, sql
from tests.workflows.stage import PLAIN, REPORT, Stage, acting_for, stage, variant
from tests.workflows.test_steps import listed, outcomes, plain, upload

POLL: dict[str, Any] = {"observe": {"poll": {"first": "1m", "cap": "1m"}}}
LONG = {**PLAIN, "polls": 500}
STEPPED = plain(upload(undo=None), **POLL)
SEEN_FAILED = {
    "collect": {
        "after": ["succeeded", "failed"],
        "from": {"request": {"url": None, "path": "/v1/jobs/${job.id}/result"}, "answers": [{"when": {"status": 200}, "is": "done"}]},
    }
}


async def erase(on: Stage, *digests: str) -> None:
    await on.ledger.erase("op-1", Erased(at=on.clocks.now(), actor="human:local", refs=digests, by="local", reason="asked for"))


async def without_steps(on: Stage, standing: Standing) -> None:
    await erase(on, *(ref.digest for ref in standing.steps.values()))


async def without_input(on: Stage, standing: Standing) -> None:
    await erase(on, standing.opened.input.ref)


async def without_salt(on: Stage, standing: Standing) -> None:
    await erase(on, standing.opened.salt.digest)


async def without_contract(on: Stage, standing: Standing) -> None:
    await drop_triggers(on.ledger)
    await sql(on.ledger, ("DELETE FROM contracts WHERE digest = :digest", {"digest": standing.opened.contract_digest}))


async def with_another_contract(on: Stage, standing: Standing) -> None:
    await drop_triggers(on.ledger)
    await sql(on.ledger, ("UPDATE contracts SET body = :new", {"new": b"{}"}))


async def with_another_input(on: Stage, standing: Standing) -> None:
    await drop_triggers(on.ledger)
    await sql(on.ledger, ("UPDATE payloads SET bytes = :new WHERE digest = :digest", {"new": b"x", "digest": standing.opened.input.ref}))


Takes = Callable[[Stage, Standing], Awaitable[None]]
TAKEN: dict[str, tuple[Takes, str, str]] = {
    "steps": (without_steps, "what the step upload saved is no longer kept", "absent"),
    "input": (without_input, "its input is no longer kept", "absent"),
    "salt": (without_salt, "the salt that its names are made with is no longer kept", "absent"),
    "contract": (without_contract, "the contract it was pinned to is no longer kept", "absent"),
    "changed contract": (with_another_contract, "the contract it was pinned to is not what was kept", "changed"),
    "changed input": (with_another_input, "its input is not what was kept", "changed"),
}


async def lost_without_its_request(on: Stage) -> WorkflowHandle[Any, Head]:
    """A create whose answer was lost, with the worker gone, and then the request that was recorded for it."""
    on.books.lie("create", "drop_after_accepting", nth=1)
    handle = await on.start(variant("sim.reports.create", POLL))
    async with on.working():
        waits = (await on.until(lambda one: one.standing.uncertain, step=0.05)).standing
    assert waits.request is not None
    await erase(on, waits.request.digest)
    return handle


async def missing(on: Stage) -> list[Missing]:
    return [cast("Missing", entry.evidence) for entry in await on.entries("missing")]


def shown(on: Stage, standing: Standing) -> dict[str, Any]:
    """What `status` says."""
    return status_of(Record("op-1", 9, "0" * 64, standing), at=on.clocks.now(), last_entry=on.clocks.now(), by="local")


@pytest.mark.parametrize("taken", TAKEN)
async def test_what_is_gone_while_the_job_runs_parks_the_operation_and_says_what_and_what_to_do(tmp_path: Path, taken: str) -> None:
    take, words, fault = TAKEN[taken]
    async with stage(tmp_path, work=False) as on:
        handle = await on.start(STEPPED, LONG)
        async with on.working():
            running = (await on.until_state("observing", step=10)).standing
        await take(on, running)
        async with on.working():  # a worker that remembers nothing
            parked = (await on.until_state("result_unavailable", step=10)).standing
            asked, [one] = len(on.books.seen), await missing(on)
            assert (one.fault, parked.attention, parked.missing) == (fault, True, words)
            status = shown(on, parked)
            assert status["attention"]["why"] == status["why"]
            assert words in status["why"]
            assert f"see to the job {parked.job_id} at the provider yourself, and abandon this" in status["why"]
            assert any("resolve op-1 abandon" in line for line in status["next"])
            if "contract" in taken:
                with pytest.raises(Unloadable, match=words) as refused:
                    await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now())
                assert "evidence op-1 --json" in refused.value.hint
            else:
                page = readme(await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now()), ())
                assert "is gone at our side" in page
                assert "In what state is job" in page
                assert "no longer showed it to us" not in page
            assert words in " ".join(status_text(status).split())
            await on.resolve("abandon")
            assert (await handle.result()).state == "abandoned"
            assert (await on.standing()).missing is None
        assert len(on.books.seen) == asked, "nothing is sent without it"
        assert len(await missing(on)) == 1
        told = next(entry for entry in await on.entries("missing"))
        assert words in said_of(entry_shape(told))
        if "changed" not in taken and taken != "contract":  # those are found by verify
            await on.verified()


async def test_it_goes_on_where_a_human_says_that_what_was_gone_is_there_again(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await on.start(STEPPED)
        async with on.working():
            running = (await on.until_state("accepted", step=0.1)).standing
        kept = await on.ledger.contract(running.opened.contract_digest)
        await with_another_contract(on, running)
        async with on.working():
            await on.until_state("result_unavailable", step=10)
            await on.resolve("resume")
            await on.until(lambda one: one.standing.state == "result_unavailable" and one.standing.answered != {}, step=1)
            await sql(on.ledger, ("UPDATE contracts SET body = :new", {"new": kept}))
            await on.resolve("resume", request_id="r-2")
            assert (await handle.result()).state == "succeeded"
        assert len(await missing(on)) == 2
        assert len(on.books.jobs()) == 1


async def test_what_is_gone_before_the_create_asks_a_human_who_may_have_it_done_anew(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        on.books.lie("create", "status_503", nth=1)
        handle = await on.start(plain(upload(undo=None), **POLL))
        async with on.working():
            waits = (await on.until(lambda one: one.standing.attempts == 1 and one.standing.open_attempt is None, step=0.05)).standing
        await without_steps(on, waits)
        async with on.working():
            parked = (await on.until_state("create_unknown", step=10)).standing
            assert (parked.attention, parked.missing is not None) == (True, True)
            await on.resolve("retry_create")
            assert (await handle.result()).state == "succeeded"
        assert (len(on.books.jobs()), len(on.books.uploads())) == (1, 2)
        await on.verified()


async def test_where_nothing_was_created_yet_that_is_said(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await on.start()
        await without_input(on, await on.standing())
        async with on.working():
            parked = (await on.until_state("create_unknown", step=1)).standing
            assert (parked.effect, on.books.seen) == ("none", [])
            assert "abandon this and run it anew; nothing has been created" in shown(on, parked)["why"]
            await on.resolve("abandon")
            assert (await handle.result()).state == "abandoned"
        await on.verified()


async def test_a_recorded_request_that_is_gone_is_never_made_anew(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await lost_without_its_request(on)
        async with on.working():
            parked = (await on.until_state("create_unknown", step=10)).standing
            assert (parked.effect, len(on.books.requests("create"))) == ("possible", 1)
            assert "look at the provider whether it made a job, and adopt that one" in shown(on, parked)["why"]
            await on.resolve("abandon")
            await handle.result()
        assert len(on.books.requests("create")) == 1
        await on.verified()


async def test_what_a_lookup_needs_is_gone_and_no_lookup_is_made_until_a_human_has_chosen(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        handle = await on.start(listed(upload(undo=None)))
        async with on.working(queues=[QUEUE_LEDGER, QUEUE_EFFECTS]):
            unknown = (await on.until_state("create_unknown", step=0.05)).standing
        assert not unknown.attention
        await without_steps(on, unknown)
        looked = len(on.books.requests("list"))
        async with on.working():
            parked = (await on.until(lambda one: one.standing.attention, step=1)).standing
            assert (parked.state, parked.lookup_left, parked.reconcile_left > 0) == ("create_unknown", False, True)
            await on.resolve("adopt", arguments={"id": on.books.jobs("a-1")[0].id})
            assert not (await on.answered("r-1")).accepted
            await on.resolve("abandon", request_id="r-2")
            await handle.result()
        assert "what the step upload saved is no longer kept" in str((await on.standing()).answered["r-1"].why)
        assert len(on.books.requests("list")) == looked
        await on.verified()


async def test_an_answer_that_the_result_is_fetched_with_is_gone(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        on.books.lie("collect", "status_503", nth=None)
        handle = await on.start()
        async with on.working():
            collecting = (await on.until(lambda one: one.standing.collect_attempts > 0, step=1)).standing
        assert collecting.verdict is not None
        assert collecting.verdict.observed is not None
        await erase(on, collecting.verdict.observed.digest)
        async with on.working():
            parked = (await on.until_state("result_unavailable", step=5)).standing
            assert "the answer that showed the end of the job is no longer kept" in shown(on, parked)["why"]
            await on.resolve("abandon")
            await handle.result()
        await on.verified()


async def test_of_a_job_that_failed_only_what_it_left_is_then_missing(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        on.books.lie("collect", "status_503", nth=None)
        handle = await on.start(variant("sim.reports.create", SEEN_FAILED), {**REPORT, "fail": True})
        async with on.working():
            collecting = (await on.until(lambda one: one.standing.collect_attempts > 0, step=1)).standing
        await without_input(on, collecting)
        async with on.working():
            assert (await handle.result()).state == "failed"
        [flag] = (await on.standing()).flags
        assert (flag.word, flag.why) == ("leftovers", "they could not be had: its input is no longer kept")
        await on.verified()


async def test_what_a_cancel_needs_is_gone_and_it_is_not_sent(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await on.start(STEPPED, LONG)
        async with on.working():
            running = (await on.until_state("observing", step=10)).standing
        await without_steps(on, running)
        await on.cancel()
        async with on.working():
            assert (await on.until_state("result_unavailable", step=10)).standing.cancel_wanted
            await on.resolve("abandon")
            await handle.result()
        assert on.books.requests("cancel") == []
        assert [entry.from_ for entry in await on.entries("missing")] == ["cancel_requested"]


async def test_what_cannot_be_undone_without_it_is_said_to_stay(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        on.books.lie("create", "reject")
        on.books.lie("remove", "status_500", nth=None)
        handle = await on.start(plain())
        async with on.working():
            ended = (await on.until(lambda one: one.standing.final and one.standing.next_at is not None, step=0.05)).standing
        await without_input(on, ended)
        async with on.working():
            assert (await handle.result()).state == "failed"
        assert (await outcomes(on))[-1].words.reason == "its input is no longer kept"
        standing = await on.standing()
        assert ([flag.word for flag in standing.flags], standing.leftovers) == (["leftovers"], ())
        await on.verified()


@pytest.mark.parametrize(("tries", "state"), [(options.UNREADABLE_TRIES, "succeeded"), (2, "result_unavailable")])
async def test_a_contract_of_a_newer_version_waits_for_a_newer_worker_before_it_asks_a_human(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tries: int, state: str
) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.start(STEPPED)
        async with on.working():
            await on.until_state("accepted", step=0.05)
        unread = 3

        def newer(data: bytes) -> Contract:
            nonlocal unread
            if unread:
                unread -= 1
                raise BadContract([Finding("<ledger>", 1, 1, "hyperdrive", "an unknown key")])
            return contract_from_canonical(data)

        monkeypatch.setattr(options, "UNREADABLE_TRIES", tries)
        monkeypatch.setattr(loading, "contract_from_canonical", newer)
        async with on.working():
            reached = (await on.until_state(state, step=1)).standing
        if reached.attention:
            assert "the contract it was pinned to cannot be read by this version" in shown(on, reached)["why"]
        await on.verified()


async def test_a_fact_is_recorded_and_hidden_whole_where_what_it_may_repeat_cannot_be_looked_up(tmp_path: Path) -> None:
    quiet = {"record": {"sensitive": ["body.words", "body.checksum"]}, "collect": "none"}
    async with stage(tmp_path, work=False) as on:
        await on.open(variant("sim.reports.create", quiet))
        worker = acting_for("run-1")
        await worker.run(AuthorityActivities(on.world).judge, StepInput(id="op-1", turn=1))
        await worker.run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))
        await worker.run(ProviderActivities(on.world).observe, StepInput(id="op-1", turn=3))
        verdict = (await on.standing()).verdict
        assert verdict is not None
        assert verdict.observed is not None
        await erase(on, verdict.observed.digest)
        head = await worker.run(ProviderActivities(on.world).collect, StepInput(id="op-1", turn=4))
        assert (head.state, (await on.story())[-2:]) == ("succeeded", ["result.none", "pruned.pruned"])
        await on.verified()
