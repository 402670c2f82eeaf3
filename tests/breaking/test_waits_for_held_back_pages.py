"""A wait for a page that is held back: who cancels, and what deadline passes, ends it; and it is no longer than the step has time."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities import beating, waiting
from activities.authority import AuthorityActivities
from activities.provider import ProviderActivities
from domain.contract import Contract
from domain.messages import Head, StepInput
from simulator.books import Books
from tests.breaking.test_pages_held_back import LISTING, QUICK, changes_of, listed
from tests.breaking.test_steps_that_come_late import decided
from tests.workflows.losing import made_by_others
from tests.workflows.stage import Stage, acting_for, stage, variant

RUN = "run-1"
ENDS_WITHIN = 30.0
"""Seconds; a wait that is not ended takes more than twice as long."""
OTHERS: dict[str, Any] = {
    "step": "others",
    "request": LISTING,
    "pages": {"items": "body.items", "next": "body.next"},
    "answers": [{"when": {"status": 200}, "is": "done"}],
    "save": {"count": "length(items)"},
}


LONG = {"create": "1h", "cancel": "1h"}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set as soon as a page is waited for."""
    begun, wait = asyncio.Event(), waiting.uninterrupted

    async def told(delay: timedelta) -> bool:
        begun.set()
        return await wait(delay)

    monkeypatch.setattr(waiting, "uninterrupted", told)
    return begun


def stepped(**more: Any) -> Contract:
    """A contract whose create has a step that reads a list."""
    create = {"before": [OTHERS], "request": {"json": {"reference": "${to_string(steps.others.count)}"}}}
    return variant("sim.plain.create", {"create": create, "deadlines": LONG, **more})


def holds_back(books: Books, *, seconds: int, nth: int = 2) -> None:
    books.lie("list", {"word": "status_429", "args": {"retry_after": "seconds", "seconds": seconds}}, nth=nth)


async def opened(on: Stage, contract: Contract) -> None:
    await on.open(contract)
    await acting_for(RUN).run(AuthorityActivities(on.world).judge, StepInput(id="op-1", turn=1))


async def ended(attempt: "asyncio.Task[Head]") -> type[BaseException]:
    """How an attempt ended that did, and in time."""
    done, _ = await asyncio.wait([attempt], timeout=ENDS_WITHIN)
    assert done, "it still waits"
    error = None if attempt.cancelled() else attempt.exception()
    return asyncio.CancelledError if error is None else type(error)


async def test_a_cancel_ends_the_wait_of_a_step_ahead_of_a_create_at_once(tmp_path: Path, waits: asyncio.Event) -> None:
    async with stage(tmp_path, work=False) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=90)
        await opened(on, stepped())
        env = acting_for(RUN)
        attempt: asyncio.Task[Head] = asyncio.ensure_future(env.run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2)))
        await asyncio.wait_for(waits.wait(), ENDS_WITHIN)
        env.cancel()
        assert await ended(attempt) is asyncio.CancelledError
        assert (await on.story())[-2:] == ["intent.step", "step.again"]
        assert (on.books.requests("create"), len(on.books.requests("list"))) == ([], 2)
        await on.verified()


async def test_a_human_who_cancels_while_a_step_waits_is_heard_at_once(tmp_path: Path, waits: asyncio.Event) -> None:
    async with stage(tmp_path) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=90)
        handle = await on.start(stepped())
        await asyncio.wait_for(waits.wait(), ENDS_WITHIN)
        await handle.signal("cancel", {"request_id": "c-1", "by": "local", "reason": "no longer needed"})
        head = await asyncio.wait_for(handle.result(), ENDS_WITHIN)
        assert head.state == "cancelled"
        assert on.books.requests("create") == []
        await on.verified()


async def test_no_step_waits_past_the_deadline_of_what_it_is_for(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=90)
        await opened(on, stepped(deadlines={"create": "1m"}))
        attempt: asyncio.Task[Head] = asyncio.ensure_future(
            acting_for(RUN).run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))
        )
        assert await ended(attempt) is ApplicationError, "it comes back when it is due"
        assert (await on.story())[-1] == "step.again"
        due = (await on.standing()).next_at
        assert due is not None
        assert due <= (await on.standing()).deadlines["create"]


async def unknown(on: Stage, contract: Contract) -> None:
    """A create whose answer was lost, and the lookup of it is due."""
    await opened(on, contract)
    on.books.lie("create", "drop_after_accepting")
    head = await acting_for(RUN).run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))
    assert head.step == "reconcile"


async def test_a_cancel_breaks_off_the_wait_of_a_lookup_and_nothing_is_recorded_of_half_a_list(
    tmp_path: Path, waits: asyncio.Event
) -> None:
    async with stage(tmp_path, work=False) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=90)
        await unknown(on, variant("sim.listed.create", {**changes_of(listed()), "deadlines": LONG}))
        env = acting_for(RUN)
        attempt: asyncio.Task[Head] = asyncio.ensure_future(env.run(ProviderActivities(on.world).reconcile, StepInput(id="op-1", turn=3)))
        await asyncio.wait_for(waits.wait(), ENDS_WITHIN)
        env.cancel()
        assert await ended(attempt) is asyncio.CancelledError
        assert (await on.story())[-1] == "intent.lookup"
        head = await acting_for(RUN).run(ProviderActivities(on.world).reconcile, StepInput(id="op-1", turn=4))
        assert (head.state, len(on.books.jobs("a-1"))) == ("accepted", 1)
        assert len(on.books.requests("list")) == 2 + 3, "begun anew"
        await on.verified()


async def test_no_lookup_waits_past_its_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=90)
        await unknown(on, variant("sim.listed.create", {**changes_of(listed()), "deadlines": {"create": "1m"}}))
        attempt: asyncio.Task[Head] = asyncio.ensure_future(
            acting_for(RUN).run(ProviderActivities(on.world).reconcile, StepInput(id="op-1", turn=3))
        )
        assert await ended(attempt) is ApplicationError
        standing = await on.standing()
        assert (await on.story())[-1] == "lookup.failed"
        assert standing.next_at == standing.deadlines["lookup"]


async def test_a_cancel_breaks_off_the_wait_of_a_step_ahead_of_a_reading(tmp_path: Path, waits: asyncio.Event) -> None:
    async with stage(tmp_path, work=False) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=90)
        await opened(on, variant("sim.plain.create", {"observe": {**QUICK, "before": [OTHERS]}}))
        assert (await acting_for(RUN).run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))).state == "accepted"
        env = acting_for(RUN)
        attempt: asyncio.Task[Head] = asyncio.ensure_future(env.run(ProviderActivities(on.world).observe, StepInput(id="op-1", turn=3)))
        await asyncio.wait_for(waits.wait(), ENDS_WITHIN)
        env.cancel()
        assert await ended(attempt) is asyncio.CancelledError
        assert (await on.story())[-1] == "exchange.accepted"


async def test_a_cancel_ends_the_wait_of_a_step_ahead_of_a_cancel_that_is_then_not_sent(tmp_path: Path, waits: asyncio.Event) -> None:
    async with stage(tmp_path, work=False) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=90)
        await opened(on, variant("sim.plain.create", {"observe": QUICK, "cancel": {"before": [OTHERS]}, "deadlines": LONG}))
        assert (await acting_for(RUN).run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))).state == "accepted"
        await decided(on, "cancel", turn=3)
        env = acting_for(RUN)
        attempt: asyncio.Task[Head] = asyncio.ensure_future(env.run(ProviderActivities(on.world).cancel, StepInput(id="op-1", turn=4)))
        await asyncio.wait_for(waits.wait(), ENDS_WITHIN)
        env.cancel()
        assert await ended(attempt) is asyncio.CancelledError
        assert (await on.story())[-1] == "cancel_answer.again"
        assert on.books.requests("cancel") == []
        await on.verified()


async def test_the_worker_beats_while_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beating, "HEARTBEAT_EVERY", timedelta(milliseconds=20))
    async with stage(tmp_path, work=False) as on:
        made_by_others(on, 5)
        holds_back(on.books, seconds=1)
        await unknown(on, listed())
        env, beats = acting_for(RUN), 0

        def beat(*_: object) -> None:
            nonlocal beats
            beats += 1

        env.on_heartbeat = beat
        head = await env.run(ProviderActivities(on.world).reconcile, StepInput(id="op-1", turn=3))
        assert head.state == "accepted"
        assert beats > 5
