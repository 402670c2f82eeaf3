"""A quota that is used up holds an operation back: nothing is sent, nothing fails, and whoever looks sees why."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

from simulator import lies
from simulator.answer import Answer, Call, Json
from simulator.provider import Provider
from tests.workflows.stage import Stage, stage, variant

QUOTA = {"http": {"quota": {"remaining": "headers.x_ratelimit_remaining", "reset": "headers.x_ratelimit_reset"}}}


def spent(call: Call, args: dict[str, Json], provider: Provider) -> Answer:
    """The honest answer, and the word that it was the last for a while."""
    honest = provider.answer(call)
    reset = str(args.get("seconds", 60))
    return Answer(honest.status, (*honest.headers, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)), honest.body)


@pytest.fixture(autouse=True)
def a_provider_with_a_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lies.LIES, "spent", lies.Lie("Says that nothing is left.", lies.ANY, {"seconds": 60}, instead=spent))


async def held(on: Stage, kind: str) -> list[str]:
    """Why the entries of a kind say that nothing was sent."""
    found = [entry.body for entry in await on.entries(kind) if entry.body.get("word") == "quota"]
    return [str(body["words"]["reason"]) for body in found if isinstance(body["words"], dict)]


async def test_a_reading_waits_for_the_reset_and_says_so(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "spent", "args": {"seconds": 120}}, nth=1)
        handle = await on.start(variant("sim.reports.create", QUOTA))
        record = await on.soon(lambda one: one.standing.remote_read == "failed")
        assert record.standing.why is not None
        assert record.standing.why.startswith("nothing was sent: the provider's quota is used up until 20")
        assert on.books.requests("observe") == []
        assert (await handle.result()).state == "succeeded"
        [why] = await held(on, "reading")  # it comes back when the quota does, not sooner
        assert "used up until" in why
        [created] = await on.entries("exchange")
        held_back, answered = (await on.entries("reading"))[:2]
        assert held_back.body["meaning"] == "failed"
        assert answered.evidence.at - created.evidence.at >= timedelta(seconds=119)
        await on.verified()


async def test_a_create_that_is_held_back_was_not_executed_and_is_made_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", QUOTA)
        on.books.lie("create", {"word": "spent", "args": {"seconds": 60}}, nth=1)
        first = await on.start(contract, stream="op-1")
        await on.soon_state("accepted")
        second = await on.start(contract, stream="op-2")
        record = await on.soon(lambda one: one.standing.attempts == 1 and one.standing.open_attempt is None, "op-2")
        assert (record.standing.unproven, record.standing.state) == ((), "create_pending")
        assert "used up until" in str(record.standing.why)
        assert len(on.books.requests("create")) == 1
        assert [(await one.result()).state for one in (first, second)] == ["succeeded", "succeeded"]
        assert len(on.books.jobs()) == 2
        await on.verified("op-2")


async def test_a_reset_past_the_deadline_holds_no_longer_than_the_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {**QUOTA, "deadlines": {"create": "2m"}})
        on.books.lie("create", {"word": "spent", "args": {"seconds": int(time.time()) + 86_400}}, nth=1)
        await on.start(contract, stream="op-1")
        await on.soon_state("accepted")
        second = await on.start(contract, stream="op-2")
        assert (await second.result()).state == "failed"
        assert len(on.books.requests("create")) == 1
        [clock] = await on.entries("clock", "op-2")
        assert clock.cause == "clock.create"
        await on.verified("op-2")
