"""The steps that speak to a provider. Each reads the head first; if its step does not belong there, it does nothing.

One effect each, safe to run twice, and each returns the newest head. What an exchange in flight brings is always recorded, also
when the activity is cancelled meanwhile.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities import cancelling, collecting, creating, observing, options, preparing, reconciling, stranding, undoing
from activities.beating import Pulse, beating, last_witness
from activities.case import Case
from activities.deadlines import end_at_deadline
from activities.failures import as_failures, not_yet, regressed
from activities.heads import head_of
from activities.loading import Cases
from activities.ports import World
from activities.waiting import Holding, due_in, waiting_line
from domain.errors import LedgerRegressed, Unloadable
from domain.lifecycle import StepName, next_step
from domain.messages import Head, StepInput

T = TypeVar("T")


class ProviderActivities:
    """The provider activities of one worker. `observe_slots` bounds how many attempts may wait inside their activity."""

    def __init__(self, world: World, *, observe_slots: int = 100, hold_limit: timedelta = options.HOLD_LIMIT) -> None:
        self._world = world
        self._cases = Cases(world)
        self._holding = Holding(slots=observe_slots)
        self._hold_limit = hold_limit

    @activity.defn(name="create")
    async def create(self, step: StepInput) -> Head:
        """One attempt to create."""
        return await self._do("create", step, self._create)

    @activity.defn(name="undo")
    async def undo(self, step: StepInput) -> Head:
        """Undo what the steps of an operation left that ended without a commit."""
        return await self._do("undo", step, self._undo)

    @activity.defn(name="observe")
    async def observe(self, step: StepInput) -> Head:
        """Read the status until it moves the state, or until the next delay is too long to hold."""
        return await self._do("observe", step, self._observe)

    @activity.defn(name="cancel")
    async def cancel(self, step: StepInput) -> Head:
        """Ask the provider to cancel, once per decision."""
        return await self._do("cancel", step, self._cancel)

    @activity.defn(name="collect")
    async def collect(self, step: StepInput) -> Head:
        """Fetch, verify and keep the result."""
        return await self._do("collect", step, self._collect)

    @activity.defn(name="reconcile")
    async def reconcile(self, step: StepInput) -> Head:
        """Settle an unknown create: our own late answers first, then one lookup that is due."""
        return await self._do("reconcile", step, self._reconcile)

    # --- in story order -----------------------------------------------------------------------------------------------

    async def _create(self, step: StepInput, pulse: Pulse) -> Head:
        world, case = self._world, await self._load(step, pulse)
        if self._named(case) == "create":
            case = await creating.close_open_intent(world, case, turn=step.turn)
        if self._named(case) == "create":
            case = await reconciling.read_late_notes(world, case, turn=step.turn)
        if self._named(case) == "create":
            # First wait, then look at the clock: nothing is sent at the deadline.
            await self._until_due(case, pulse)
            case = await finished(preparing.prepare(world, case, pulse, turn=step.turn))
        if preparing.is_ready(case):
            case = await creating.end_at_deadline(world, case, turn=step.turn)
        if preparing.is_ready(case):
            case = await finished(creating.attempt(world, case, pulse, turn=step.turn))
        return self._moved(case, pulse, "create")

    async def _undo(self, step: StepInput, pulse: Pulse) -> Head:
        world, case = self._world, await self._load(step, pulse)
        if self._named(case) == "undo":
            await self._until_due(case, pulse)
            case = await finished(undoing.undo(world, case, turn=step.turn))
        return self._moved(case, pulse, "undo")

    async def _observe(self, step: StepInput, pulse: Pulse) -> Head:
        world, case = self._world, await self._load(step, pulse)
        if self._may_read(case, step):
            case = await reconciling.read_late_notes(world, case, turn=step.turn)
        if not self._may_read(case, step):
            return self._head(case)
        if case.contract.observe is None:
            return await self._without_status(case, pulse, turn=step.turn)
        started = world.clocks.monotonic()
        at_once = self._at_once(case, step)
        while True:
            if not at_once:
                await self._until_due(case, pulse, started=started)
            case = await observing.read_status(world, case, turn=step.turn, woken=at_once and step.wake)
            at_once = False
            pulse.witness(case.record.seq, case.record.hash)
            pulse.says(waiting_line(case.standing))
            if self._named(case) == "observe":
                case = await end_at_deadline(world, case, turn=step.turn)
            if self._named(case) != "observe":
                return self._head(case)

    async def _cancel(self, step: StepInput, pulse: Pulse) -> Head:
        world, case = self._world, await self._load(step, pulse)
        if self._named(case) == "cancel":
            case = await reconciling.read_late_notes(world, case, turn=step.turn)
        if self._named(case) == "cancel":
            case = await cancelling.close_open_cancel(world, case, turn=step.turn)
        if self._named(case) == "cancel" and case.contract.cancel is None:
            return self._head(case.at(await cancelling.say_no_cancel(world, case, turn=step.turn)))
        if self._named(case) == "cancel" and observing.is_over(world, case):
            if case.contract.observe is not None:
                case = await observing.read_status(world, case, turn=step.turn)
            case = await end_at_deadline(world, case, turn=step.turn)
        if self._named(case) != "cancel":
            return self._head(case)
        await self._until_due(case, pulse)
        if cancelling.reads_first(case):
            case = await observing.read_status(world, case, turn=step.turn)
            if self._named(case) != "cancel" or not cancelling.may_be_sent(case):
                return self._moved(case, pulse, "cancel")
        case = case.at(await finished(cancelling.send_cancel(world, case, case.contract, turn=step.turn)))
        return self._moved(case, pulse, "cancel")

    async def _collect(self, step: StepInput, pulse: Pulse) -> Head:
        world, case = self._world, await self._load(step, pulse)
        if self._named(case) == "collect":
            case = await reconciling.read_late_notes(world, case, turn=step.turn)
        if self._named(case) == "collect":
            case = await end_at_deadline(world, case, turn=step.turn)
        if self._named(case) != "collect":
            await collecting.tidy(world, case)
            return self._head(case)
        await self._until_due(case, pulse)
        case = await collecting.collect(world, case, turn=step.turn)
        return self._moved(case, pulse, "collect")

    async def _reconcile(self, step: StepInput, pulse: Pulse) -> Head:
        world, case = self._world, await self._load(step, pulse)
        if self._named(case) == "reconcile":
            case = await creating.close_open_intent(world, case, turn=step.turn)
        if self._named(case) == "reconcile":
            case = await reconciling.read_late_notes(world, case, turn=step.turn)
        if self._named(case) != "reconcile":
            return self._head(case)
        await self._until_due(case, pulse)
        case = await reconciling.look_up(world, case, turn=step.turn)
        if self._named(case) == "reconcile":
            case = await end_at_deadline(world, case, turn=step.turn)
        return self._moved(case, pulse, "reconcile")

    # --- what the steps share -------------------------------------------------------------------------------------------

    async def _do(self, name: StepName, step: StepInput, work: Callable[[StepInput, Pulse], Coroutine[Any, Any, Head]]) -> Head:
        """One attempt. Where something that the operation needs cannot be had, it is brought before a human instead of tried again."""
        with as_failures():
            async with beating() as pulse:
                try:
                    return await work(step, pulse)
                except Unloadable as error:
                    # While a fleet is renewed, another worker may be able to read it.
                    if error.fault == "unreadable" and pulse.unread() < options.UNREADABLE_TRIES:
                        raise
                    record = await stranding.strand(self._world, step.id, name, error, turn=step.turn)
                    return head_of(record, self._world.clocks.now())

    async def _load(self, step: StepInput, pulse: Pulse) -> Case:
        said = [known for known in (step.known, last_witness()) if known is not None]
        newest = max(said, key=lambda known: known.seq, default=None)
        try:
            case = await self._cases.load(step.id, newest)
        except LedgerRegressed as error:
            raise error if newest is None else regressed(error, newest) from None
        pulse.witness(case.record.seq, case.record.hash)
        pulse.has_read()
        return case

    def _named(self, case: Case) -> str:
        return next_step(case.standing).name

    def _head(self, case: Case) -> Head:
        return head_of(case.record, self._world.clocks.now())

    def _moved(self, case: Case, pulse: Pulse, step: str) -> Head:
        """The head, if the step is settled; else come back when the next attempt is due, unless the workflow has asked to end."""
        if self._named(case) != step:
            return self._head(case)
        details = activity.cancellation_details()
        if details is not None and details.cancel_requested:
            raise asyncio.CancelledError
        raise self._handed_back(case, pulse, waiting_line(case.standing), due_in(case.standing, self._world.clocks.now()))

    def _may_read(self, case: Case, step: StepInput) -> bool:
        return self._named(case) == "observe" or (
            step.wake and self._head(case).wake_reads and case.standing.last_reading_turn != step.turn
        )

    def _at_once(self, case: Case, step: StepInput) -> bool:
        """A wake scheduled this turn; or this turn has a reading and starts afresh: an operator reset the activity."""
        read_already = case.standing.last_reading_turn == step.turn
        return (step.wake and not read_already) or (read_already and activity.info().attempt == 1)

    async def _without_status(self, case: Case, pulse: Pulse, *, turn: int) -> Head:
        case = await end_at_deadline(self._world, case, turn=turn)
        if self._named(case) != "observe":
            return self._head(case)
        until = next_step(case.standing).until
        wait = timedelta(minutes=1) if until is None else until - self._world.clocks.now()
        raise self._handed_back(case, pulse, "waiting for the provider's call", wait)

    def _handed_back(self, case: Case, pulse: Pulse, line: str, delay: timedelta) -> ApplicationError:
        """To be raised: the server keeps the timer. It is told the newest head, which the next attempt looks for in the ledger."""
        pulse.witness(case.record.seq, case.record.hash)
        pulse.beat()
        return not_yet(line, self._head(case), delay)

    async def _until_due(self, case: Case, pulse: Pulse, *, started: float | None = None) -> None:
        """Wait here if the wait is short and there is room; else hand it back to the server."""
        delay = due_in(case.standing, self._world.clocks.now())
        if not delay:
            return
        age = 0.0 if started is None else self._world.clocks.monotonic() - started
        if delay > self._hold_limit or age > options.HOLD_FOR.total_seconds() or self._holding.full:
            raise self._handed_back(case, pulse, waiting_line(case.standing), delay)
        self._holding.held += 1
        try:
            await asyncio.sleep(delay.total_seconds())
        finally:
            self._holding.held -= 1


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Let `work` end even if the activity is cancelled meanwhile: what is on the wire is worth more than the seconds."""
    task: asyncio.Task[T] = asyncio.ensure_future(work)
    # Cancelled twice, by a decision and then by a worker that stops, it is not broken off either.
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
