"""Attempts that were given up for dead come back with a step that is done: what it left is undone, or it is said that it was not."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities import undoing
from activities.authority import AuthorityActivities
from activities.ports import Owner
from activities.provider import ProviderActivities
from adapters.showing.status import status_of
from domain.contract import Contract
from domain.evidence import Decision, Evidence, Ref, StepOutcome, instant
from domain.lifecycle import flags_of
from domain.messages import Head, StepInput
from domain.standing import Leftover, Standing
from tests.domain.growing import told
from tests.workflows.stage import Stage, acting_for, stage
from tests.workflows.test_steps import listed, plain, upload

RUN = "run-1"
ENDS_WITHIN = 120.0
"""Seconds that an attempt takes only when it hangs."""


class Killed(Exception):
    """The process is gone."""


async def opened(on: Stage, contract: Contract) -> None:
    await on.open(contract)
    await acting_for(RUN).run(AuthorityActivities(on.world).judge, StepInput(id="op-1", turn=1))


def attempt(on: Stage, *, turn: int = 2) -> "asyncio.Task[Head]":
    """An attempt to create, of a worker of its own."""
    return asyncio.ensure_future(acting_for(RUN).run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=turn)))


async def decided(on: Stage, verb: str, *, turn: int, **fields: Any) -> None:
    decision = Decision.model_validate(
        {
            "at": instant(on.clocks.now()), "actor": "human:local", "meaning": verb, "request_id": f"r-{turn}", "by": "local",
            "verb": "cancel" if verb == "cancel" else "resolve", **fields,
        }
    )  # fmt: skip
    one: list[Evidence] = [decision]
    await on.ledger.append("op-1", lambda _: one, owner=Owner(RUN, turn))


async def came_late(on: Stage, late: "asyncio.Task[Head]") -> list[str]:
    """The provider answers what it holds; the causes that this adds."""
    before = len(await on.story())
    on.release()
    await asyncio.wait([late], timeout=ENDS_WITHIN)
    assert late.done()
    late.exception()
    await on.verified()
    return (await on.story())[before:]


@pytest.mark.parametrize("turn", [2, 3])
async def test_what_a_step_left_that_is_done_after_the_end_is_undone_by_whoever_did_it(tmp_path: Path, turn: int) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, plain(upload()))
        on.books.lie("upload", "hold", nth=1)
        late = attempt(on)
        await on.held()
        await decided(on, "cancel", turn=turn)
        assert await on.state() == "cancelled"
        assert await came_late(on, late) == ["step.done", "intent.undo", "step.undone"]
        assert [one.removed for one in on.books.uploads()] == [True]
        standing = await on.standing()
        assert (standing.state, standing.leftovers, standing.flags) == ("cancelled", (), ())


async def test_what_is_left_by_a_worker_that_dies_before_its_undo_is_flagged_found_and_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, plain(upload()))
        on.books.lie("upload", "hold", nth=1)
        late = attempt(on)
        await on.held()
        await decided(on, "cancel", turn=3)

        async def killed(*_: object, **__: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(undoing, "undo_late", killed)
            on.release()
            with pytest.raises(Killed):
                await late
        assert (await on.story())[-1] == "step.done"
        [row] = (await on.ledger_books.list(undone=True))[0]
        record = await on.ledger.record("op-1")
        status: Any = status_of(record, at=on.clocks.now() + timedelta(minutes=1), last_entry=on.clocks.now(), by="local")
        assert (row.stream, row.state, status["waiting_for"]) == ("op-1", "cancelled", "worker")
        assert status["flags"][0]["why"] == "what the step upload left is still to be taken back"
        assert "python starter.py run --continue op-1" in status["next"]
        async with on.working():
            head = await (await on.tell(record)).result()
        assert (head.state, [one.removed for one in on.books.uploads()]) == ("cancelled", [True])
        standing = await on.standing()
        assert (standing.leftovers, flags_of(standing)) == ((), ())
        assert (await on.ledger_books.list(undone=True))[0] == []
        await on.verified()


async def test_what_then_cannot_be_undone_is_flagged(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, plain(upload()))
        on.books.lie("upload", "hold", nth=1)
        on.books.lie("remove", "status_500", nth=None)
        late = attempt(on)
        await on.held()
        await decided(on, "cancel", turn=3)
        assert (await came_late(on, late))[-1] == "step.leftover"
        standing = await on.standing()
        assert (standing.state, standing.leftovers) == ("cancelled", ())
        assert [flag.word for flag in standing.flags] == ["leftovers"]


async def test_a_step_without_an_undo_that_is_done_after_the_end_is_only_noted(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, plain(upload(undo=None)))
        on.books.lie("upload", "hold", nth=1)
        late = attempt(on)
        await on.held()
        await decided(on, "cancel", turn=3)
        assert await came_late(on, late) == ["step.done"]
        assert (await on.standing()).flags == ()


async def test_what_a_late_step_left_beside_a_job_is_not_undone_and_that_is_said(tmp_path: Path) -> None:
    """Nobody knows whether the job works with it: a provider may give the same thing for the same bytes."""
    async with stage(tmp_path, work=False) as on:
        await opened(on, plain(upload()))
        on.books.lie("upload", "hold", nth=1)
        late = attempt(on)
        await on.held()
        assert (await attempt(on)).state == "accepted"
        assert "step.done" in await came_late(on, late)
        assert on.books.requests("remove") == []
        standing = await on.standing()
        assert (len(on.books.jobs()), standing.leftovers) == (1, ())
        assert [flag.word for flag in standing.flags] == ["leftovers"]
        assert len(on.books.requests("create")) == 1


async def test_two_attempts_that_do_the_same_step_at_once_make_one_job_and_what_is_too_much_is_undone(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, plain(upload(), upload("second")))
        on.books.lie("upload", "hold", nth=1)
        late = attempt(on)
        await on.held()
        on.books.lie("upload", "status_503", nth=2)
        other = attempt(on)
        await asyncio.wait([other], timeout=ENDS_WITHIN)
        assert other.exception() is not None, "the second step is not done yet"
        await came_late(on, late)
        standing = await on.standing()
        assert len({left.saved.digest for left in standing.leftovers if left.step == "upload" and left.saved}) == 2
        await decided(on, "cancel", turn=3)
        await acting_for(RUN).run(ProviderActivities(on.world).undo, StepInput(id="op-1", turn=4))
        assert on.books.uploads(removed=False) == []
        assert on.books.requests("create") == []
        await on.verified()


async def test_a_step_of_a_generation_that_is_over_is_flagged_and_the_next_one_is_not_held_up(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await opened(on, listed(upload()))
        on.books.lie("upload", "hold", nth=1)
        late = attempt(on)
        await on.held()
        on.books.lie("create", "drop_after_accepting", nth=1)
        other = attempt(on)
        await asyncio.wait([other], timeout=ENDS_WITHIN)
        assert await on.state() == "create_unknown"
        await decided(on, "retry_create", turn=3)
        assert "step.done" in await came_late(on, late)
        standing = await on.standing()
        assert (standing.generation, standing.steps) == (2, {})
        assert [flag.word for flag in standing.flags] == ["leftovers"]
        assert on.books.requests("remove") == []


async def outcomes(on: Stage) -> list[StepOutcome]:
    return [entry.evidence for entry in await on.entries("step") if isinstance(entry.evidence, StepOutcome)]


@pytest.mark.parametrize("owned", [True, False])
def test_who_no_longer_owns_an_operation_does_not_give_up_what_its_next_generation_waits_for(owned: bool) -> None:
    saved = Ref(digest="a" * 64, size=9)
    left = Leftover(generation=1, step="upload", steps={"upload": saved})
    stream = told("policy.unattended", "intent.step", undo=("upload",))
    stream.standing = stream.standing.model_copy(update={"generation": 2, "leftovers": (left,)})
    stream.hear("step.leftover", generation=1, saved=saved, owned=owned)
    assert stream.standing.state == ("awaiting_approval" if owned else "create_pending")
    assert stream.standing.leftovers == (() if owned else (left,))


def late(generation: int = 1, **changes: Any) -> Standing:
    """How it stands after a step of a generation was done by one that is no owner."""
    stream = told("policy.unattended", "intent.step", undo=("upload",))
    stream.standing = stream.standing.model_copy(update=changes)
    stream.hear("step.done", generation=generation, saved=Ref(digest="a" * 64, size=9), owned=False)
    return stream.standing


KNOWN = {"upload": Ref(digest="a" * 64, size=9)}


@pytest.mark.parametrize(
    ("changes", "leftovers", "flags"),
    [
        ({}, 1, 0),
        ({"state": "awaiting_approval"}, 1, 0),
        ({"state": "failed"}, 1, 0),
        ({"state": "failed", "generation": 2}, 1, 0),
        ({"state": "abandoned", "unproven": ((1, 1),)}, 0, 1),
        ({"generation": 2}, 0, 1),
        ({"state": "observing", "job": {"id": "j"}}, 0, 1),
        ({"state": "create_unknown", "unproven": ((1, 1),)}, 1, 0),
        ({"state": "create_unknown", "unnamed": True}, 0, 1),
        ({"state": "observing", "job": {"id": "j"}, "steps": KNOWN}, 0, 0),
        ({"leftovers": (Leftover(generation=1, step="upload", steps=KNOWN),)}, 1, 0),
    ],
)
def test_what_a_late_step_left_is_undone_only_where_nothing_can_be_at_work_with_it(
    changes: dict[str, Any], leftovers: int, flags: int
) -> None:
    standing = late(**changes)
    assert (len(standing.leftovers), [flag.word for flag in standing.flags]) == (leftovers, ["leftovers"] * flags)


class Refuses:
    """A ledger that refuses the n-th append: before it is written, or after, so that nobody hears of it."""

    def __init__(self, real: Any, nth: int, *, written: bool) -> None:
        self._real, self._left, self._written = real, nth, written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def append(self, *args: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left == 0 and not self._written:
            raise ConnectionError("the ledger is gone")
        found = await self._real.append(*args, **named)
        if self._left == 0:
            raise ConnectionError("the ledger is gone")
        return found


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("rejected", [False, True])
async def test_a_ledger_that_fails_at_any_append_of_steps_and_undo_costs_no_second_job_and_no_known_leftover(
    tmp_path: Path, written: bool, rejected: bool
) -> None:
    for nth in range(1, 12):
        folder = tmp_path / str(nth)
        folder.mkdir()
        async with stage(folder, work=False) as on:
            await opened(on, plain(upload(), upload("second"), observe={"poll": {"first": "1ms", "cap": "2ms", "floor": "1ms"}}))
            if rejected:
                on.books.lie("create", "reject", nth=None)
            world = replace(on.world, ledger=Refuses(on.ledger, nth, written=written))
            for turn in range(2, 30):
                step = "undo" if (await on.standing()).final else "create"
                work = getattr(ProviderActivities(world), step)
                task = asyncio.ensure_future(acting_for(RUN).run(work, StepInput(id="op-1", turn=turn)))
                await asyncio.wait([task])
                task.exception()
                standing = await on.standing()
                if standing.state in {"accepted", "create_unknown"} or (standing.final and not standing.undo_due):
                    break
            standing = await on.standing()
            assert len(on.books.jobs()) <= 1
            known = {one.saved.digest for one in await outcomes(on) if one.saved is not None}
            if rejected and standing.state == "failed":
                assert sum(one.removed for one in on.books.uploads()) == len(known), nth
                assert standing.leftovers == ()
            else:
                assert standing.state in {"accepted", "create_unknown"}, (nth, standing.state)
            await on.verified()
