"""The story of one operation: while the head is not final, do the step that it names.

What always holds:

* The workflow decides and waits. It computes no state, holds no input and sees no credential: every activity reads the ledger
  and returns the newest head. So a reset, a continue-as-new, a new workflow on an old stream and a deadline race are one path.
* Signals only put into an inbox, as raw text. The story drains it one by one: after opening, between steps, and before it
  returns or continues as new. Each message is recorded, accepted or refused, by an activity.
* Every scheduled step has the next turn, so that an older step of this run which is still running cannot move the state.
* A native cancel is a decision of an unauthenticated user, recorded and judged like any other: the story is shielded from it.
* The ledger may turn out to be older than what this workflow knows. Then nothing is sent, and the operation waits for a human.
"""

import asyncio
import builtins
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import MappingProxyType
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RawValue, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType, is_cancelled_exception

from activities import options
from activities.authority import AuthorityActivities
from activities.failures import LEDGER_BROKEN, NOT_YET, missing_in
from activities.ledger import LedgerActivities
from activities.provider import ProviderActivities
from domain.messages import (
    MAX_SIGNAL_BYTES,
    OPERATION_WORKFLOW,
    ClockInput,
    Head,
    JudgedDecision,
    JudgeDecisionInput,
    Known,
    OperationInput,
    Received,
    StepInput,
)
from workflows.card import attributes_of, details_of, inert

_STEPS: Mapping[str, Callable[[ProviderActivities, StepInput], Awaitable[Head]]] = MappingProxyType(
    {
        "create": ProviderActivities.create,
        "cancel": ProviderActivities.cancel,
        "reconcile": ProviderActivities.reconcile,
        "observe": ProviderActivities.observe,
        "collect": ProviderActivities.collect,
        "undo": ProviderActivities.undo,
    }
)
R = TypeVar("R")
FAILED = (ActivityError, ApplicationError)
"""How an activity fails: an ordinary one's failure is wrapped, a local one's arrives as it is."""
_AFTER_TROUBLE = timedelta(seconds=5)


# No versioning behaviour here: a server refuses one from a worker that belongs to no deployment. Such a worker's workflows go on
# with whatever code runs, which is what auto-upgrade means.
@workflow.defn(name=OPERATION_WORKFLOW)
class OperationWorkflow:
    """See the module's docstring."""

    @workflow.init
    def __init__(self, start: OperationInput) -> None:
        self._id = start.id
        self._known = start.known
        self._head: Head | None = None
        self._missing: Known | None = None
        self._turn = 0
        self._inbox: deque[Received] = deque()
        self._woken = start.woken
        self._native = False
        self._unlisted = 0
        self._shown: dict[str, object] = {}

    @workflow.run
    async def run(self, start: OperationInput) -> Head:
        """Tell the story to its end, whatever Temporal's own cancel says."""
        story = asyncio.create_task(self._story(start))
        while True:
            try:
                return await asyncio.shield(story)
            except asyncio.CancelledError:
                if story.cancelled():
                    raise
                self._native_cancel()

    async def _story(self, start: OperationInput) -> Head:
        head = await (self._judge(start.known) if start.fresh else self._look())
        parked = False
        while not head.final:
            head = await self._drain(head)
            if head.final:
                break
            # A parked operation may have waited for months: what it does next is done by today's code from a fresh history.
            # A wake goes along: waited for, a flood of them would let the history grow until the server ends the workflow.
            if workflow.info().is_continue_as_new_suggested() or (parked and head.step != "inbox" and not self._woken):
                workflow.continue_as_new(OperationInput(id=self._id, known=head.known, woken=self._woken))
            parked = head.step == "inbox"
            head = await self._step(head)
        while self._inbox:
            head = await self._drain(head)
        return head

    # --- messages -------------------------------------------------------------------------------------------------------

    @workflow.signal(dynamic=True)
    def received(self, name: str, args: Sequence[RawValue]) -> None:
        """`cancel`, `decide`, `resolve`, `wake`, and whatever else someone sends: nothing is dropped here."""
        if name == "wake":
            self._woken = True
            return
        data = args[0].payload.data if args else b""
        body = data[:MAX_SIGNAL_BYTES].decode("utf-8", "replace")
        self._inbox.append(Received(kind=name[:64], body=body, size=len(data), event=workflow.info().get_current_history_length()))

    @workflow.query
    def status(self) -> Head | None:
        """The newest head that this workflow knows. Everything else the ledger answers."""
        return self._head

    def _native_cancel(self) -> None:
        if not self._native:
            self._native = True
            self._inbox.append(Received(kind="cancel", native=workflow.info().run_id))

    async def _drain(self, head: Head) -> Head:
        """Have each message verified, judged and recorded, in order of arrival."""
        while self._inbox:
            message = self._inbox[0]
            judged = await self._judged(head, message)
            if judged is None:
                return await self._look()
            self._inbox.popleft()
            self._unlisted += 0 if judged.listed else 1
            head = self._show(judged.head)
        return head

    async def _judged(self, head: Head, message: Received) -> JudgedDecision | None:
        argument = JudgeDecisionInput(
            id=self._id,
            turn=self._next_turn(),
            known=head.known,
            received=message,
            unlisted=self._unlisted,
            at=workflow.now(),
        )
        try:
            return await self._local(AuthorityActivities.judge_decision, argument, f"record {message.kind}")
        except FAILED as error:
            await self._trouble(error)
            return None

    # --- steps, in story order --------------------------------------------------------------------------------------------

    async def _step(self, head: Head) -> Head:
        if head.step == "judge":
            return await self._judge(head.known)
        if head.step == "inbox":
            return await self._wait_for_people(head)
        return await self._do(head)

    async def _look(self) -> Head:
        """Read the head. A ledger that does not hold what we know stops everything until a human has acted."""
        while True:
            argument = StepInput(id=self._id, turn=self._next_turn(), known=self._witness(), at=workflow.now())
            try:
                head = await self._local(LedgerActivities.look, argument, "read the head")
            except FAILED as error:
                await self._trouble(error)
                continue
            return self._show(head)

    async def _trouble(self, error: ActivityError | ApplicationError) -> None:
        """Not in a hot loop: where the ledger is not what it was, wait for people; else a little while."""
        cause = _cause(error)
        if not (isinstance(cause, ApplicationError) and cause.type in LEDGER_BROKEN):
            await workflow.sleep(_AFTER_TROUBLE, summary="after trouble")
            return
        self._missing = missing_in(cause) or self._missing
        said = inert(cause.message)
        workflow.set_current_details(f"# The ledger is not what it was\n\n{said}\n\nNothing is sent until a human has acted.")
        self._upsert({"SakshiAttention": True})
        if not await self._accepted_ledger():
            await self._news()

    async def _accepted_ledger(self) -> bool:
        """Have waiting messages judged for a human's `accept_ledger`; all others stay where they are."""
        known = self._witness()
        for message in list(self._inbox):
            argument = JudgeDecisionInput(id=self._id, turn=self._next_turn(), received=message, regressed=known, at=workflow.now())
            try:
                judged = await self._local(AuthorityActivities.judge_decision, argument, "accept the ledger")
            except FAILED:
                return False
            if not judged.waits:
                self._inbox.remove(message)
            if judged.accepted:
                self._head, self._missing = judged.head, None
                return True
        return False

    def _witness(self) -> Known | None:
        """The newest entry that anyone here has seen: an activity may have seen more of the ledger than it came to tell."""
        return self._missing or (self._head.known if self._head else self._known)

    async def _news(self) -> None:
        """Wait for the next wake or message; messages stay where they are."""
        waiting = len(self._inbox)
        await workflow.wait_condition(lambda: self._woken or len(self._inbox) > waiting)
        self._woken = False

    async def _judge(self, known: Known | None) -> Head:
        argument = StepInput(id=self._id, turn=self._next_turn(), known=known, at=workflow.now())
        return await self._recorded(AuthorityActivities.judge, argument, "judge")

    async def _recorded(self, method: "Callable[..., Awaitable[Head]]", argument: object, summary: str) -> Head:
        try:
            return self._show(await self._local(method, argument, summary))
        except FAILED as error:
            return await self._recover(error)

    async def _wait_for_people(self, head: Head) -> Head:
        """Parked: for a message, a wake (which allows one reading), or the approval clock."""
        timeout = None if head.until is None else max(head.until - workflow.now(), timedelta())
        try:
            await workflow.wait_condition(lambda: self._woken or bool(self._inbox), timeout=timeout, timeout_summary=head.state)
        except builtins.TimeoutError:
            argument = ClockInput(id=self._id, turn=self._next_turn(), known=head.known, clock="approval", at=workflow.now())
            recorded = await self._recorded(LedgerActivities.record_clock, argument, "record the clock")
            if recorded.seq == head.seq:  # by the clock of whoever records it is not over yet: not asked again in a hot loop
                await self._pause()
            return recorded
        if not self._woken:
            return head
        self._woken = False
        fresh = await self._look()
        if fresh.step == "inbox" and fresh.wake_reads:
            return await self._activity("observe", fresh, wake=True)
        return fresh

    async def _pause(self) -> None:
        """A little while, or until there is news."""
        with suppress(builtins.TimeoutError):
            await workflow.wait_condition(lambda: self._woken or bool(self._inbox), timeout=_AFTER_TROUBLE, timeout_summary="a pause")

    async def _do(self, head: Head) -> Head:
        wake, self._woken = self._woken, False
        return await self._activity(head.step, head, wake=wake)

    # --- scheduling -----------------------------------------------------------------------------------------------------

    async def _activity(self, step: str, head: Head, *, wake: bool) -> Head:
        """Run one step's activity until it ends, or until a message is a reason to interrupt it."""
        chosen = options.STEPS[step]
        backstop: timedelta | None = None
        if head.until is not None and head.step == step:
            backstop = options.backstop(head.until - workflow.now(), head.http_total_ms)
        while True:
            argument = StepInput(id=self._id, turn=self._next_turn(), known=head.known, wake=wake, at=workflow.now())
            handle = workflow.start_activity_method(
                _STEPS[step],
                argument,
                task_queue=chosen.queue,
                schedule_to_close_timeout=backstop,
                start_to_close_timeout=options.start_to_close(step, head.http_total_ms),
                heartbeat_timeout=options.HEARTBEAT_TIMEOUT,
                retry_policy=options.UNEXPECTED_RETRY,
                cancellation_type=chosen.cancellation,
                summary=chosen.summary,
            )
            try:
                return self._show(await self._interruptible(handle, chosen, head))
            except ActivityError as error:
                if _no_executor(error):
                    # Nothing was appended and nobody is alive to do it: schedule again without a backstop.
                    backstop = None
                    continue
                if is_cancelled_exception(error) or _is_not_yet(error):
                    return await self._after_interruption(head)
                return await self._recover(error)

    async def _interruptible(self, handle: "workflow.ActivityHandle[Head]", chosen: options.StepOptions, head: Head) -> Head:
        def interrupt() -> bool:
            return (chosen.interrupted_by_decision and bool(self._inbox)) or (chosen.interrupted_by_wake and self._woken)

        while not handle.done():
            await workflow.wait_condition(lambda: handle.done() or interrupt() or bool(self._inbox))
            if not handle.done() and interrupt():
                handle.cancel()
                break
            if not handle.done():
                head = await self._drain(head)
        return await handle

    async def _after_interruption(self, head: Head) -> Head:
        """The interrupted attempt may have appended last facts: with messages to drain they are read on the way."""
        return head if self._inbox or self._woken else await self._look()

    async def _recover(self, error: ActivityError | ApplicationError) -> Head:
        """What an activity could not do: read the head again, and go on from there."""
        await self._trouble(error)
        return await self._look()

    async def _local(self, method: "Callable[..., Awaitable[R]]", argument: object, summary: str) -> "R":
        """Locally, twice and quickly; then as an ordinary activity without end."""
        try:
            return await workflow.execute_local_activity_method(
                method,
                argument,
                start_to_close_timeout=options.LOCAL_TIMEOUT,
                local_retry_threshold=options.LOCAL_THRESHOLD,
                retry_policy=options.LOCAL_RETRY,
                summary=summary,
            )
        except FAILED as error:
            if is_cancelled_exception(error) or _is_final(error):
                raise
        return await workflow.execute_activity_method(
            method,
            argument,
            task_queue=options.LEDGER_QUEUE,
            start_to_close_timeout=options.LEDGER_TIMEOUT,
            retry_policy=options.LEDGER_RETRY,
            summary=summary,
        )

    # --- what people see ------------------------------------------------------------------------------------------------

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn

    def _show(self, head: Head) -> Head:
        """Keep the newest head, and go on by it: an activity may return an older one than a message that was judged meanwhile.

        The UI and the search index are told what changed, at most once per task and value.
        """
        newest = head if self._head is None or head.seq >= self._head.seq else self._head
        self._head = newest
        workflow.set_current_details(details_of(self._id, newest))
        self._upsert(attributes_of(newest))
        return newest

    def _upsert(self, values: dict[str, str | bool]) -> None:
        changed = {name: value for name, value in values.items() if self._shown.get(name) != value}
        if changed:
            self._shown |= changed
            workflow.upsert_search_attributes(  # pyright: ignore[reportUnknownMemberType] - the SDK leaves the value's type open
                [
                    SearchAttributeKey.for_bool(name).value_set(value)
                    if isinstance(value, bool)
                    else SearchAttributeKey.for_keyword(name).value_set(value)
                    for name, value in changed.items()
                ]
            )


def _no_executor(error: ActivityError) -> bool:
    return isinstance(error.cause, TimeoutError) and error.cause.type in (
        TimeoutType.SCHEDULE_TO_CLOSE,
        TimeoutType.SCHEDULE_TO_START,
    )


def _is_not_yet(error: ActivityError) -> bool:
    """An attempt that was interrupted ended as it would have anyway: there is more to do, and no trouble."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == NOT_YET


def _is_final(error: ActivityError | ApplicationError) -> bool:
    cause = _cause(error)
    return isinstance(cause, ApplicationError) and cause.non_retryable


def _cause(error: ActivityError | ApplicationError) -> BaseException | None:
    return error if isinstance(error, ApplicationError) else error.cause
