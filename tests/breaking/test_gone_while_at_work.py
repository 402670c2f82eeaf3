"""What an operation needs goes away at the worst moments, and comes back: what is then said is true, and nothing is parked for nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError

from activities import loading, options
from activities.authority import AuthorityActivities
from activities.loading import contract_from_canonical
from activities.provider import ProviderActivities
from domain.contract import Contract
from domain.errors import BadContract, Finding
from domain.messages import Head, StepInput
from tests.adapters.sql_ledger_cases import sql
from tests.breaking.test_pages_held_back import listed
from tests.breaking.test_steps_that_come_late import decided
from tests.workflows.stage import REPORT, Stage, acting_for, stage, variant
from tests.workflows.test_missing import (
    LONG,
    POLL,
    STEPPED,
    erase,
    lost_without_its_request,
    missing,
    shown,
    with_another_contract,
    without_input,
    without_steps,
)
from tests.workflows.test_steps import plain, upload

RUN = "run-1"
ENDS_WITHIN = 60.0


class Older:
    """A worker whose version reads no contract of this one, so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = self.met = 0
        monkeypatch.setattr(loading, "contract_from_canonical", self)

    def __call__(self, data: bytes) -> Contract:
        if self.left:
            self.left, self.met = self.left - 1, self.met + 1
            raise BadContract([Finding("<ledger>", 1, 1, "hyperdrive", "an unknown key")])
        return contract_from_canonical(data)


async def test_an_older_worker_that_meets_a_long_polled_job_does_not_park_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = Older(monkeypatch)
    async with stage(tmp_path, work=False) as on:
        await on.start(STEPPED, LONG)
        async with on.working():
            await on.until(lambda one: one.standing.reads > options.UNREADABLE_TRIES + 2, step=60)
        reads, older.left = (await on.standing()).reads, options.UNREADABLE_TRIES - 1
        async with on.working():
            await on.until(lambda one: one.standing.reads > reads, step=10)
        assert older.met == options.UNREADABLE_TRIES - 1
        assert await missing(on) == []
        await on.verified()


async def test_what_no_worker_can_read_comes_before_a_human_after_so_many_tries_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = Older(monkeypatch)
    async with stage(tmp_path, work=False) as on:
        await on.start(STEPPED, LONG)
        async with on.working():
            await on.until(lambda one: one.standing.reads > 3, step=60)
        older.left = 1000
        async with on.working():
            await on.until_state("result_unavailable", step=10)
        assert older.met == options.UNREADABLE_TRIES
        assert [one.fault for one in await missing(on)] == ["unreadable"]
        await on.verified()


async def opened(on: Stage, contract: Contract) -> None:
    await on.open(contract)
    await acting_for(RUN).run(AuthorityActivities(on.world).judge, StepInput(id="op-1", turn=1))


def attempt(on: Stage, provider: ProviderActivities, *, turn: int = 2) -> "asyncio.Task[Head]":
    return asyncio.ensure_future(acting_for(RUN).run(provider.create, StepInput(id="op-1", turn=turn)))


class Meets:
    """A ledger whose reader of payloads stands still until something has happened elsewhere."""

    def __init__(self, real: Any, happens: Callable[[], Awaitable[object]]) -> None:
        self._real, self._happens = real, happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def payload(self, digest: str) -> bytes:
        await self._happens()
        return await self._real.payload(digest)


async def test_what_only_a_create_needs_does_not_park_the_job_that_another_attempt_brings_home(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, variant("sim.reports.create", {"observe": {"poll": {"first": "1ms", "cap": "2ms", "floor": "1ms"}}}))
        on.books.lie("create", "status_503", nth=1)
        assert isinstance((await asyncio.gather(attempt(on, ProviderActivities(on.world)), return_exceptions=True))[0], ApplicationError)
        on.clocks.told(on.clocks.now() + timedelta(minutes=1))
        on.books.lie("create", "hold", nth=1)
        first = attempt(on, ProviderActivities(on.world))
        await on.held()
        request = (await on.standing()).request
        assert request is not None
        await erase(on, request.digest)

        async def answered() -> None:
            on.release()
            await asyncio.wait([first], timeout=ENDS_WITHIN)

        second = attempt(on, ProviderActivities(replace(on.world, ledger=cast("Any", Meets(on.ledger, answered)))))
        await asyncio.wait([second], timeout=ENDS_WITHIN)
        assert first.result().state == second.result().state == "accepted"
        assert (await missing(on), len(on.books.jobs())) == ([], 1)
        await on.verified()


@pytest.mark.parametrize("rounds", [1, 2])
async def test_two_attempts_that_meet_the_same_say_it_once(tmp_path: Path, rounds: int) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, variant("sim.reports.create", POLL))
        await without_input(on, await on.standing())
        for _ in range(rounds):
            both = [attempt(on, ProviderActivities(on.world)), attempt(on, ProviderActivities(on.world))]
            await asyncio.wait(both, timeout=ENDS_WITHIN)
            assert [one.result().state for one in both] == ["create_unknown", "create_unknown"]
        assert len(await missing(on)) == 1
        assert on.books.seen == []
        await on.verified()


async def test_the_answer_of_a_create_whose_input_was_erased_meanwhile_still_counts(tmp_path: Path) -> None:
    """The attempt that has it lives; another one, that has not, has already brought the operation before a human."""
    async with stage(tmp_path, work=False) as on:
        await opened(on, variant("sim.reports.create", POLL))
        on.books.lie("create", "hold", nth=1)
        alive = attempt(on, ProviderActivities(on.world))
        await on.held()
        await without_input(on, await on.standing())
        assert (await attempt(on, ProviderActivities(on.world))).state == "create_unknown"
        parked = await on.standing()
        assert (parked.attention, parked.effect) == (True, "possible")
        on.release()
        await asyncio.wait([alive], timeout=ENDS_WITHIN)
        found = await on.standing()
        assert (found.state, found.missing, found.attention) == ("accepted", None, False)
        head = await acting_for(RUN).run(ProviderActivities(on.world).observe, StepInput(id="op-1", turn=3))
        assert head.state == "result_unavailable"
        why = shown(on, await on.standing())["why"]
        assert "its input is no longer kept" in why
        assert f"see to the job {on.books.jobs()[0].id} at the provider yourself" in why
        await on.verified()


async def test_a_found_job_is_adopted_and_gone_on_with_though_the_request_that_made_it_is_gone(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await lost_without_its_request(on)
        async with on.working():
            parked = (await on.until_state("create_unknown", step=10)).standing
            assert "and adopt that one, or abandon this" in shown(on, parked)["why"]
            await on.resolve("replay")
            await on.until(lambda one: len(one.standing.answered) == 1 and one.standing.attention, step=1)
            await on.resolve("adopt", request_id="r-2", arguments={"id": on.books.jobs()[0].id})
            assert (await handle.result()).state == "succeeded"
        assert (len(await missing(on)), len(on.books.requests("create"))) == (2, 1)
        await on.verified()


async def test_a_new_create_that_cannot_take_back_what_the_old_one_left_says_what_stays(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        on.books.lie("create", "status_503", nth=1)
        await on.start(plain(upload(), **POLL))
        async with on.working():
            waits = (await on.until(lambda one: one.standing.attempts == 1 and one.standing.open_attempt is None, step=0.05)).standing
        await without_steps(on, waits)
        async with on.working():
            await on.until_state("create_unknown", step=10)
            await on.resolve("retry_create")
            waits = (await on.until_state("awaiting_approval", step=1)).standing
            status = shown(on, waits)
            stays = "what the step upload left could not be undone: what the step upload saved is no longer kept"
            assert status["why"].endswith(f"for a human to say: {stays}")
            assert [flag["why"] for flag in status["flags"]] == [stays]
            await on.cancel()
            await on.until_state("cancelled", step=1)
        assert len(on.books.requests("create")) == 1
        await on.verified()


async def test_a_wake_that_meets_what_is_gone_changes_nothing_of_what_a_human_was_asked(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.start(variant("sim.reports.create", {**POLL, "deadlines": {"result": "3m"}}), {**REPORT, "polls": 500})
        async with on.working():
            timed_out = (await on.until_state("result_timed_out", step=30)).standing
        await without_input(on, timed_out)
        reads, told = len(on.books.requests("observe")), len(await on.story())
        async with on.working():
            await on.wake()
            await on.resolve("resume")
            parked = (await on.until_state("result_unavailable", step=1)).standing
            assert "its input is no longer kept" in shown(on, parked)["why"]
        assert [cause for cause in (await on.story())[told:] if not cause.startswith("owner")] == ["decision.resume", "missing.needed"]
        assert len(on.books.requests("observe")) == reads > 0
        await on.verified()


async def test_hidden_values_that_are_gone_park_it_and_are_not_pruned_twice(tmp_path: Path) -> None:
    contract = variant(
        "sim.reports.create", {**POLL, "record": {"sensitive": ["body.account"]}, "create": {"job": {"account": "body.account"}}}
    )
    async with stage(tmp_path, work=False) as on:
        await opened(on, contract)
        assert (await acting_for(RUN).run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))).state == "accepted"
        hidden = (await on.standing()).sensitive
        assert hidden
        await erase(on, *hidden)
        head = await acting_for(RUN).run(ProviderActivities(on.world).observe, StepInput(id="op-1", turn=3))
        assert head.state == "result_unavailable"
        why = shown(on, await on.standing())["why"]
        assert "what was hidden in its record is no longer kept" in why
        await decided(on, "abandon", turn=4)
        assert (await on.standing()).sensitive == ()
        await on.verified()


async def test_a_late_answer_beside_what_is_gone_is_kept_and_read_once_it_is_there_again(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, listed())
        on.books.lie("create", "hold", nth=1)
        alive = attempt(on, ProviderActivities(on.world))
        await on.held()
        standing = await on.standing()
        kept = await on.ledger.contract(standing.opened.contract_digest)
        await with_another_contract(on, standing)
        assert (await attempt(on, ProviderActivities(on.world))).state == "create_unknown"
        await decided(on, "look", turn=3)
        on.release()
        await asyncio.wait([alive], timeout=ENDS_WITHIN)
        assert (await on.standing()).unread_late
        blind = await acting_for(RUN).run(ProviderActivities(on.world).reconcile, StepInput(id="op-1", turn=4))
        assert (blind.state, blind.attention) == ("create_unknown", True)
        await sql(on.ledger, ("UPDATE contracts SET body = :new", {"new": kept}))
        await decided(on, "look", turn=5)
        head = await acting_for(RUN).run(ProviderActivities(on.world).reconcile, StepInput(id="op-1", turn=6))
        assert (head.state, len(on.books.jobs())) == ("accepted", 1)
        await on.verified()
