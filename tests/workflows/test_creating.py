"""Creating under lies: what was asked is made once, and where that cannot be known a human is told."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from domain.evidence import Clock, CreateExchange, Json
from tests.workflows.stage import PLAIN, REPORT, Stage, stage, variant


async def succeeds_with_one_job(on: Stage) -> None:
    [job] = on.books.jobs()
    assert (await on.standing()).job == {"id": job.id}
    assert await on.state() == "succeeded"
    await on.verified()


async def test_a_definitive_rejection_is_failed_and_says_what_the_provider_said(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "reject")
        head = await (await on.start()).result()
        assert head.state == "failed"
        standing = await on.standing()
        assert (standing.why, standing.effect) == ("we do not do this", "none")
        assert on.books.jobs() == []
        assert len(on.books.requests("create")) == 1
        await on.verified()


RETRY_AFTER: Mapping[str, tuple[float, float]] = {
    "seconds": (30, 30), "fraction": (30.25, 30.25), "http_date": (15, 30), "zero": (0.1, 0.1), "past_date": (0.1, 0.1),
    "none": (0.1, 2), "negative": (0.1, 2), "garbage": (0.1, 2),
}  # fmt: skip


@pytest.mark.parametrize("status", ["status_429", "status_503"])
@pytest.mark.parametrize("form", list(RETRY_AFTER))
async def test_a_throttled_create_is_sent_again_when_it_is_due_and_not_before(tmp_path: Path, status: str, form: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": status, "args": {"retry_after": form, "seconds": 30}}, times=1)
        await (await on.start()).result()
        [throttled, accepted] = await on.entries("exchange")
        second = (await on.entries("intent"))[1]
        assert throttled.cause == "exchange.not_executed"
        assert isinstance(throttled.evidence, CreateExchange)
        due = throttled.evidence.next_at
        assert due is not None
        least, most = RETRY_AFTER[form]
        assert least - 0.01 <= (due - throttled.evidence.at).total_seconds() <= most + 0.01
        assert -0.01 <= (second.evidence.at - due).total_seconds() < 20
        assert accepted.cause == "exchange.accepted"
        tokens = {one.token for one in on.books.requests("create")}
        assert len(tokens) == 1
        await succeeds_with_one_job(on)


async def test_throttling_until_the_deadline_is_failed_because_nothing_was_carried_out(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "status_429", "args": {"retry_after": "hour"}})
        head = await (await on.start()).result()
        assert head.state == "failed"
        [attempt] = on.books.requests("create")
        assert attempt.status == 429
        [clock] = await on.entries("clock")
        assert isinstance(clock.evidence, Clock)
        assert clock.evidence.at >= clock.evidence.deadline
        assert (await on.standing()).effect == "none"
        await on.verified()


async def test_at_the_deadline_nothing_is_sent_also_where_the_wait_was_held_inside_the_activity(tmp_path: Path) -> None:
    async with stage(tmp_path, hold=5.0) as on:
        on.books.lie("create", {"word": "status_429", "args": {"retry_after": "hour"}})
        contract = variant("sim.reports.create", {"deadlines": {"create": "3s"}})
        head = await (await on.start(contract)).result()
        assert head.state == "failed"
        assert len(on.books.requests("create")) == 1
        await on.verified()


async def test_an_unproven_attempt_at_the_deadline_leaves_the_create_unknown(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        on.books.lie("create", {"word": "status_429", "args": {"retry_after": "hour"}}, nth=1)
        on.books.lie("create", {"word": "status_429", "args": {"retry_after": "hour"}}, times=9)
        await on.start()
        record = await on.until_state("create_unknown", step=60)
        assert record.standing.effect == "possible"
        assert record.standing.attention
        await on.verified()


@pytest.mark.parametrize("lie", ["drop_after_accepting", "status_500"])
async def test_a_lost_answer_is_asked_for_again_with_the_same_bytes_and_token_and_makes_no_second_job(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", lie, times=2)
        await (await on.start()).result()
        requests = on.books.requests("create")
        assert len(requests) == 3
        assert len({(one.token, one.body_digest, one.reference) for one in requests}) == 1
        assert [entry.cause for entry in await on.entries("exchange")] == [
            "exchange.ambiguous", "exchange.ambiguous", "exchange.accepted",
        ]  # fmt: skip
        await succeeds_with_one_job(on)


async def test_a_lost_answer_without_a_token_parks_and_is_never_sent_again_unasked(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        handle = await on.start("sim.plain.create")
        record = await on.soon_state("create_unknown")
        assert (record.standing.effect, record.standing.attention) == ("possible", True)
        head = await on.shown()
        assert head["state"] == "create_unknown"
        assert head["card"]["choices"] == ["adopt", "retry_create", "abandon"]
        assert len(on.books.requests("create")) == 1
        await on.resolve("abandon")
        assert (await handle.result()).state == "abandoned"
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_request_that_is_still_being_worked_on_is_asked_for_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "in_flight", times=2)
        await (await on.start()).result()
        assert [entry.cause for entry in await on.entries("exchange")] == [
            "exchange.in_flight", "exchange.in_flight", "exchange.accepted",
        ]  # fmt: skip
        await succeeds_with_one_job(on)


async def test_a_stored_error_is_never_resent_because_it_would_be_given_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "error_500_stored", "args": {"created": True}})
        await on.start()
        await on.until_state("create_unknown")
        assert [entry.cause for entry in await on.entries("exchange")] == ["exchange.ambiguous", "exchange.stuck"]
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_credential_that_is_not_there_is_proof_that_nothing_was_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        record = await on.open("sim.plain.create")
        secret = on.folder / "secrets" / "sim"
        kept = secret.read_text()
        secret.unlink()
        await on.tell(record)
        await on.until(lambda one: one.standing.attempts >= 2, step=0.2)
        assert {entry.cause for entry in await on.entries("exchange")} == {"exchange.not_sent"}
        assert on.books.seen == []
        secret.write_text(kept)
        secret.chmod(0o600)
        await on.until_state("succeeded")
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_request_that_cannot_be_rendered_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.plain.create", {"create": {"request": {"path": "/v1/plain/${input.account}"}}})
        head = await (await on.start(contract, {**PLAIN, "account": ".."})).result()
        assert head.state == "failed"
        assert on.books.seen == []
        await on.verified()


async def test_a_job_that_another_operation_has_is_a_violation_and_offers_only_to_abandon(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await (await on.start()).result()
        [job] = on.books.jobs()
        contract = variant("sim.reports.create", {"create": {"job": {"id": f"'{job.id}'"}}, "version": 2})
        handle = await on.start(contract, stream="op-2")
        record = await on.soon_state("contract_violation", "op-2")
        assert record.standing.job is None
        assert record.standing.violation is not None
        assert record.standing.violation["operation"] == "op-1"
        await on.resolve("abandon", "op-2")
        assert (await handle.result()).state == "abandoned"
        await on.verified("op-2")


async def test_a_token_that_was_used_for_other_bytes_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"create": {"answers": [{"when": {"status": 202}, "is": "mismatch"}]}})
        handle = await on.start(contract)
        await on.soon_state("contract_violation")
        await on.resolve("abandon")
        assert (await handle.result()).state == "abandoned"
        await on.verified()


async def test_an_intent_without_an_outcome_is_closed_as_lost_and_without_a_token_left_to_a_human(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.tell(await on.intend_and_die("sim.plain.create"))
        await on.soon_state("create_unknown")
        [lost] = await on.entries("exchange")
        assert (lost.cause, lost.body["word"], lost.body["recovered"]) == ("exchange.ambiguous", "lost", "lost")
        assert on.books.seen == []
        await on.verified()


async def test_no_create_is_sent_again_after_the_tokens_window(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", {"word": "status_503", "args": {"retry_after": "seconds", "seconds": 400}}, nth=1)
        on.books.lie("create", {"word": "status_503", "args": {"retry_after": "seconds", "seconds": 400}})
        contract = variant("sim.reports.create", {"create": {"token": {"window": "5m"}}, "deadlines": {"create": "1h"}})
        await on.start(contract, REPORT)
        await on.until_state("create_unknown", step=60)
        assert len(on.books.requests("create")) == 2
        await on.verified()


async def test_an_intent_without_an_outcome_is_closed_as_lost_and_with_a_token_sent_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        record = await on.intend_and_die()
        frozen = record.standing.request
        await (await on.tell(record)).result()
        assert [entry.cause for entry in await on.entries("exchange")] == ["exchange.ambiguous", "exchange.accepted"]
        [request] = on.books.requests("create")
        intents = [cast("dict[str, Json]", entry.body["request"]) for entry in await on.entries("intent") if entry.cause == "intent.create"]
        assert intents[0] == intents[1]
        assert frozen == (await on.standing()).request
        assert intents[0].items() >= {"body_sha256": request.body_digest}.items()
        assert list((await on.standing()).owners) == [
            "a-run-that-died",
            (await on.env.client.get_workflow_handle("op-1").describe()).run_id,
        ]
        await succeeds_with_one_job(on)
