"""Who may move a stream, what becomes of those who may not, and a ledger that has forgotten."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities import creating
from activities.case import Case
from activities.loading import Cases
from activities.owning import append_as_owner, append_fact, late_of
from activities.provider import ProviderActivities
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.authority import Judgement, Question
from domain.errors import StaleOwner
from domain.evidence import CreateExchange, Observation, instant
from domain.messages import Known, StepInput
from tests.workflows.stage import PATIENCE, REPORT, Stage, acting_for, stage, variant

LONG = {**REPORT, "polls": 500}
SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "1m"}}})


async def attention(on: Stage, stream: str = "op-1") -> None:
    """Wait until the search index says that a human is needed."""
    for _ in range(PATIENCE):
        described = await on.client.get_workflow_handle(stream).describe()
        if described.search_attributes.get("SakshiAttention") == [True]:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("no attention")


async def case_of(on: Stage) -> Case:
    return await Cases(on.world).load("op-1", None)


async def run_of(on: Stage) -> str:
    return str((await on.client.get_workflow_handle("op-1").describe()).run_id)


async def test_the_current_run_claims_a_stream_back_from_a_run_that_is_gone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.start(SLOW, LONG)
        record = await on.soon_state("accepted")
        reading = Observation(
            at=instant(on.clocks.now()), actor="worker:old", meaning="failed", word="timeout", began=instant(on.clocks.now()), turn=99
        )
        await acting_for("an-older-run").run(append_fact, on.world, await case_of(on), reading, turn=99)
        assert (await on.standing()).epoch == record.standing.epoch + 1
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        assert [entry.body["run_id"] for entry in await on.entries("owner")][-1] == await run_of(on)
        await on.verified()


async def test_what_a_stale_owner_learns_late_is_kept_as_a_note_and_moves_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        record = await on.intend_and_die(SLOW)
        handle = await on.tell(record)
        await on.soon_state("accepted")
        answer = CreateExchange(
            at=instant(on.clocks.now()), actor="worker:gone", meaning="accepted", generation=1, attempt=1, word="accepted",
            job={"id": on.books.jobs()[0].id},
        )  # fmt: skip
        await acting_for("a-run-that-died").run(append_fact, on.world, await case_of(on), answer, turn=2)
        last = (await on.entries())[-1]
        assert (last.role, last.cause) == ("note", "late.accepted")
        with pytest.raises(StaleOwner):
            await acting_for("a-run-that-died").run(append_as_owner, on.world, "op-1", lambda _: [answer], turn=2)
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_an_older_turn_of_the_same_run_leaves_a_note(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(SLOW, LONG)
        await on.soon_state("accepted")
        reading = Observation(
            at=instant(on.clocks.now()), actor="worker:old", meaning="going", word="running", began=instant(on.clocks.now()), turn=1
        )
        await acting_for(await run_of(on)).run(append_fact, on.world, await case_of(on), reading, turn=1)
        last = (await on.entries())[-1]
        assert (last.role, await on.state()) == ("note", "accepted")
        await on.verified()


async def test_our_own_late_answer_settles_an_unknown_create(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        handle = await on.start("sim.plain.create")
        await on.soon_state("create_unknown")
        [job] = on.books.jobs()
        answer = CreateExchange(
            at=instant(on.clocks.now()), actor="worker:gone", meaning="accepted", generation=1, attempt=1, word="accepted",
            job={"id": job.id, "status_url": f"{on.provider.url}/v1/jobs/{job.id}"},
        )  # fmt: skip
        await on.ledger.append("op-1", lambda _: [late_of(answer)], owner=None)
        await on.wake()
        assert (await handle.result()).state == "succeeded"
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_an_activity_that_belongs_to_no_run_owns_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.open()
        nobody = acting_for("x")
        nobody.info = replace(nobody.info, workflow_run_id=None)
        with pytest.raises(StaleOwner):
            await nobody.run(append_as_owner, on.world, "op-1", lambda _: [], turn=1)


async def test_an_answer_that_was_only_heartbeated_is_recovered_by_the_next_attempt(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        record = await on.intend_and_die(run_id="run-1")
        case = await Cases(on.world).load("op-1", None)
        request = await creating.frozen_request(on.ledger, str(record.standing.request.digest if record.standing.request else ""))
        exchange = await on.world.provider.exchange(request, case.policy(max_bytes=100_000))
        prepared = creating.Prepared(case, request, 1, 1, on.clocks.now(), on.world.clocks.monotonic() + 5)
        fact, _ = await creating._fact(on.world, prepared, exchange)
        beat = {
            "seq": record.seq,
            "hash": record.hash,
            "answer": fact.model_dump(mode="json", exclude_defaults=True) | {"meaning": fact.meaning},
        }
        next_attempt = acting_for("run-1", heartbeat_details=[beat], attempt=2)
        head = await next_attempt.run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))
        assert head.state == "accepted"
        [closed] = await on.entries("exchange")
        assert closed.body["recovered"] == "recovered"
        assert len(on.books.requests("create")) == 1
        await on.verified()


@pytest.mark.parametrize("beat", [{"answer": {"meaning": "accepted"}}, {"answer": "?"}, {"seq": 1}, "?"])
async def test_a_heartbeat_that_does_not_fit_recovers_nothing(tmp_path: Path, beat: object) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.intend_and_die("sim.plain.create", run_id="run-1")
        attempt = acting_for("run-1", heartbeat_details=[beat], attempt=2)
        head = await attempt.run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))
        assert head.state == "create_unknown"
        [closed] = await on.entries("exchange")
        assert closed.body["recovered"] == "lost"


async def test_a_ledger_that_lacks_what_the_workflow_knows_stops_everything_until_it_is_whole_again(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        record = await on.open()
        await on.tell(replace(record, seq=record.seq + 3, hash="f" * 64))
        async with on.working():
            await attention(on)
            await on.wake()
            await on.env.sleep(3600)
            assert on.books.seen == []
            assert [entry.cause for entry in await on.entries()] == ["opened.opened"]
        await on.verified()


def copied(folder: Path) -> dict[Path, bytes]:
    """A copy of the closed ledger."""
    return {path: path.read_bytes() for path in folder.glob("ledger.db*")}


def restored(folder: Path, copy: dict[Path, bytes]) -> None:
    """The closed ledger is what the copy was."""
    for path in folder.glob("ledger.db*"):
        path.unlink()
    for path, data in copy.items():
        path.write_bytes(data)


async def reopened(on: Stage) -> None:
    """The ledger is whatever its file holds now."""
    on.ledger = await SqlLedger.connect(f"sqlite:///{on.folder / 'ledger.db'}")
    on.world = replace(on.world, ledger=on.ledger)
    on.ledger_books = LedgerBooks(on.ledger)


async def test_after_an_older_copy_was_restored_nothing_is_sent_until_a_human_accepts_it(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await on.start(SLOW, LONG)
        await on.ledger.aclose()
        older = copied(tmp_path)
        await reopened(on)
        async with on.working():
            await on.until(lambda one: one.standing.reads >= 2, step=30)
        await on.ledger.aclose()
        restored(tmp_path, older)
        await reopened(on)
        sent = len(on.books.seen)
        async with on.working():
            await on.wake()
            await attention(on)
            await on.resolve("abandon", request_id="r-1")
            await on.wake()
            await on.env.sleep(60)
            assert len(on.books.seen) == sent
            await on.resolve("accept_ledger", request_id="r-2")
            assert (await on.answered("r-2")).accepted
            await on.soon(lambda one: "r-1" in one.standing.answered)
            assert (await handle.result()).state == "abandoned"
            assert len(on.books.seen) == sent
        assert await on.states() == ["create_unknown", "abandoned"]
        await on.verified()
        await on.ledger.aclose()


async def test_a_stream_that_is_not_in_the_ledger_is_attention_and_not_a_loop(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await on.client.start_workflow("SakshiOperation", {"id": "no-such"}, id="no-such", task_queue="sakshi-ledger")
        await attention(on, "no-such")
        await on.env.sleep(3600)
        described = await handle.describe()
        assert described.search_attributes.get("SakshiAttention") == [True]
        assert len((await handle.fetch_history()).events) < 20
        await handle.terminate()


class AsksHumans:
    """A gate that leaves everything to a human."""

    def judge(self, question: Question) -> Judgement:
        return Judgement(answer="needs_human", bundle="0" * 64, why="a human is asked")

    def judge_decision(self, question: Question, verb: str, person: str) -> Judgement:
        return Judgement(answer="unattended", bundle="0" * 64)


async def test_an_operation_that_no_human_consents_to_expires_and_was_never_sent(tmp_path: Path) -> None:
    async with stage(tmp_path, gate=AsksHumans()) as on:
        handle = await on.start()
        await on.soon_state("awaiting_approval")
        await on.signal("decide", {"request_id": "d-1", "by": "local", "decision": "approve", "action_hash": "0" * 64})
        assert not (await on.answered("d-1")).accepted
        await on.wake()
        began = on.clocks.now()
        assert (await handle.result()).state == "expired"
        assert on.clocks.now() - began >= timedelta(hours=23)
        assert on.books.seen == []
        await on.verified()


async def test_an_activity_without_a_workflow_that_names_a_stream_that_does_not_permit_it_sends_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        record = await on.open()
        provider = ProviderActivities(on.world)
        intruder = acting_for("an-intruder")
        for step in (provider.create, provider.observe, provider.cancel, provider.collect, provider.reconcile):
            head = await intruder.run(step, StepInput(id="op-1", turn=1, wake=True))
            assert head.state == "proposed"
        with pytest.raises(ApplicationError) as raised:
            await intruder.run(provider.create, StepInput(id="op-1", turn=1, known=Known(seq=9, hash="0" * 64)))
        assert (raised.value.type, raised.value.non_retryable) == ("LedgerRegressed", True)
        assert on.books.seen == []
        assert (await on.ledger.record("op-1")).seq == record.seq
