"""When the next attempt is due, and what a person reads until then.

The ledger keeps the schedule (`next_at`), so a restarted worker keeps it too. A short wait is held inside the activity; a long one
is handed back to the server, which keeps the timer while the worker keeps nothing. In the middle of a list there is something to keep,
the pages that were read: there the wait is held, as long as the list may take and the step it is for has time, and until the activity is
cancelled. Work that is not broken off otherwise is cut short there: nothing is on the wire.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from temporalio import activity

from activities.case import Case
from activities.ports import Clocks
from domain.contract import Contract
from domain.language.calls import PAGES_WITHIN
from domain.language.stages import Poll
from domain.lifecycle import next_step
from domain.polling import LONGEST, next_delay
from domain.standing import Standing, progress_text


@dataclass
class Holding:
    """How many attempts of this worker wait inside their activity; at most half of the slots may."""

    slots: int
    held: int = 0

    @property
    def full(self) -> bool:
        """No further attempt may hold."""
        return self.held >= self.slots // 2


HELD_BACK: Final = frozenset({"quota", "throttled"})
"""Words of a page that was not given, and will be if it is asked for later."""
_LEAST: Final = timedelta(seconds=1)
"""What each wait takes of the patience at least, so that a provider that says "at once" is not asked without end."""


@dataclass
class Patience:
    """How long a walk over pages may wait, in all, for those that are held back: only they are asked for again, and none before.

    A list that is longer than a quota would never be read otherwise: each time, its first pages would use up what there is.
    `until`: when the walk has to be over, by the monotonic clock.
    """

    poll: Poll
    left: timedelta
    until: float
    tries: int = 0

    async def waits(self, clocks: Clocks, word: str, hint_ms: int | None) -> bool:
        """Wait for a page of that word; False, at once, where it is not to be waited for."""
        if word not in HELD_BACK:
            return False
        now, self.tries = clocks.now(), self.tries + 1
        hint = None if hint_ms is None else timedelta(milliseconds=hint_ms)
        delay = next_delay(self.poll, hint=hint, attempt=self.tries, seed="page", now=now, deadline=now + LONGEST)
        if max(delay, _LEAST) > self.left or clocks.monotonic() + delay.total_seconds() > self.until:
            return False
        self.left -= max(delay, _LEAST)
        return await uninterrupted(delay)


def patience_of(case: Case, clocks: Clocks) -> Patience:
    """For one walk that begins now: as long as a list may take, and never past the deadline of the step that it is for."""
    now, deadline = clocks.now(), next_step(case.standing).until
    left = PAGES_WITHIN if deadline is None else min(PAGES_WITHIN, deadline - now)
    return Patience(poll_of(case.contract), left, clocks.monotonic() + PAGES_WITHIN.total_seconds())


async def uninterrupted(delay: timedelta) -> bool:
    """Wait; False, at once, where the activity is cancelled meanwhile, or was before."""
    if not activity.in_activity():
        await asyncio.sleep(delay.total_seconds())
        return True
    with suppress(TimeoutError):
        async with asyncio.timeout(delay.total_seconds()):
            await activity.wait_for_cancelled()
    return not activity.is_cancelled()


def due_in(standing: Standing, now: datetime) -> timedelta:
    """How long until the next attempt is due; zero if it is."""
    return timedelta() if standing.next_at is None else max(standing.next_at - now, timedelta())


def poll_of(contract: Contract) -> Poll:
    """The rhythm of an operation's attempts."""
    return contract.observe.poll if contract.observe else Poll()


def next_instant(contract: Contract, *, stream: str, now: datetime, hint_ms: int | None, tries: int, deadline: datetime | None) -> datetime:
    """When to try again: the provider's hint, else backoff with jitter; never below the floor, never past the deadline."""
    hint = None if hint_ms is None else timedelta(milliseconds=hint_ms)
    end = deadline or now + LONGEST
    return now + next_delay(poll_of(contract), hint=hint, attempt=tries + 1, seed=stream, now=now, deadline=end)


def again(case: Case, clock: str, now: datetime, hint_ms: int | None) -> datetime:
    """When a step that `clock` bounds is to be tried again."""
    standing = case.standing
    return next_instant(
        case.contract, stream=case.record.stream, now=now, hint_ms=hint_ms, tries=standing.tries, deadline=standing.deadlines.get(clock)
    )


def waiting_line(standing: Standing) -> str:
    """`running 146/500; next at 14:31:02`: what a person reads at a pending activity."""
    said = " ".join(part for part in (standing.remote_state or standing.state, progress_text(standing.progress)) if part)
    why = f" ({standing.why})" if standing.why else ""
    then = f"; next at {standing.next_at:%H:%M:%S}" if standing.next_at else ""
    return f"{said}{why}{then}"
