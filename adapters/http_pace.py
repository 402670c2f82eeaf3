"""How many calls at once, and how many a second, per credential and host in this process; and none while a quota is used up.

Whoever waits here has sent nothing. Turns are given in the order of arrival, and whoever gives up waiting pushes nobody back. Where
contracts name different limits for one credential and host, the strictest that was ever named counts.

What a provider says of its quota is believed for an hour at a time: then one call asks again. A reset that is a mistake heals by itself.
"""

import asyncio
from collections import deque
from datetime import datetime, timedelta

LONGEST_SPENT = timedelta(hours=1)


class QuotaSpent(Exception):
    """The provider takes nothing more for so long. Nothing was sent."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__()
        self.wait = wait


class Turnstile:
    """Of one credential and host."""

    def __init__(self) -> None:
        self._busy = 0
        self._limit: int | None = None
        self._interval = 0.0
        self._next_start = 0.0
        self._spacing = asyncio.Lock()
        self._queue: deque[asyncio.Future[None]] = deque()

    async def enter(self, parallel: int | None, per_second: float | None) -> None:
        """Wait for a turn; `leave` must follow, unless this raised."""
        if parallel is not None:
            self._limit = min(parallel, self._limit or parallel)
        if per_second is not None:
            self._interval = max(1.0 / per_second, self._interval)
        if self._queue or not self._free():
            await self._queued()
        else:
            self._busy += 1
        try:
            await self._spaced()
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Give the turn back; the longest waiting gets it."""
        self._busy -= 1
        while self._queue and self._free():
            turn = self._queue.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)

    def _free(self) -> bool:
        return self._limit is None or self._busy < self._limit

    async def _queued(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    async def _spaced(self) -> None:
        if not self._interval:
            return
        async with self._spacing:
            now = asyncio.get_running_loop().time()
            start = max(now, self._next_start)
            if start > now:
                await asyncio.sleep(start - now)
            # Only now: an instant that was taken by someone who then gave up would be lost to all who come after.
            self._next_start = start + self._interval


class Pace:
    """All turnstiles of a process. Only calls with a limit pass through one."""

    def __init__(self) -> None:
        self._gates: dict[tuple[str, str], Turnstile] = {}
        self._spent: dict[tuple[str, str], datetime] = {}

    def spend(self, credential: str, host: str, until: datetime, now: datetime) -> None:
        """Nothing more is taken until then."""
        self._spent[credential, host] = min(until, now + LONGEST_SPENT)

    def spent_until(self, credential: str, host: str, now: datetime) -> datetime | None:
        """Until when nothing is taken, if that is so."""
        until = self._spent.get((credential, host))
        if until is not None and until <= now:
            del self._spent[credential, host]
            return None
        return until

    async def enter(self, credential: str, host: str, parallel: int | None, per_second: float | None) -> Turnstile:
        """A turn at the turnstile of this credential and host."""
        gate = self._gates.setdefault((credential, host), Turnstile())
        await gate.enter(parallel, per_second)
        return gate
