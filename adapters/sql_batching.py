"""Group commit: bodies of transactions that meet in one process share a transaction, and so its trips and its COMMIT.

1. Nothing waits for company: a body that finds nothing under way runs at once, alone. What comes meanwhile goes together next.
2. Bodies run one after another, in the order in which they came. Each sees what those before it wrote.
3. A body that refuses (`SakshiError`) does so before it writes; it fails nobody else. Any other error ends the transaction.
4. Nobody is told anything before the COMMIT, refusals included: what was refused may have been seen in what is not yet durable.
5. If the transaction does not commit, or nobody knows whether it did, each of its bodies goes on by itself (`Apart`), with what it
   wrote, by whose hash its caller settles whether it is there.
6. No row is waited for here: a body whose row another transaction holds goes on by itself, and waits there (`RowIsHeld`). An opening
   can only learn by waiting that another writes the same: it waits for a moment, and then all go on by themselves.
7. A caller who goes away takes back what has not begun, and nothing else.
8. If the event loop breaks the transaction off, its callers are broken off too: what was sent may be there, and is not sent again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection

from adapters.sql_dialects import DRIVER_ERRORS, Engines
from adapters.sql_growing import LostRace, RowIsHeld, Written, wait_for_no_row
from domain.errors import SakshiError

T = TypeVar("T")
AT_ONCE = 50


class Apart(Exception):
    """This body has to be run by itself. `written`: what it wrote in a transaction of which nobody knows whether it is there."""

    def __init__(self, written: Written[Any] | None) -> None:
        super().__init__()
        self.written = written


class _Member:
    """One body, and whoever waits for it."""

    def __init__(self, body: Callable[[Connection], Written[Any]], caller: asyncio.Future[Any]) -> None:
        self.body, self.caller = body, caller
        self.written: Written[Any] | None = None
        self.error: Exception | None = None

    def run(self, connection: Connection) -> None:
        try:
            self.written = self.body(connection)
        except RowIsHeld:
            self.error = Apart(None)
        except SakshiError as refusal:
            self.error = refusal
        except StopIteration as error:
            # No future can hold one: whoever waits for this transaction, and all who come after, would wait for ever.
            self.error = RuntimeError("a body of a transaction raised StopIteration")
            raise self.error from error
        except Exception as error:
            self.error = error
            raise

    def release(self, failure: BaseException | None) -> None:
        """Tell the caller, if it still waits. `failure`: of the whole transaction."""
        if self.caller.done():
            return
        if isinstance(failure, asyncio.CancelledError):
            # The thread that writes goes on and may commit: to begin again would write twice.
            self.caller.cancel()
            return
        own = failure is self.error and not isinstance(failure, (*DRIVER_ERRORS, LostRace))
        if failure is not None and not own:
            self.caller.set_exception(Apart(self.written))
        elif self.error is not None:
            self.caller.set_exception(self.error)
        elif self.written is not None:
            self.caller.set_result(self.written.value)


class GroupCommit:
    """Of one ledger in one process; its state is touched by the event loop alone."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._waiting: deque[_Member] = deque()
        self._work: asyncio.Task[None] | None = None

    async def run(self, body: Callable[[Connection], Written[T]]) -> T:
        """What the body came to, once it is durable. Raises what the body raised; Apart."""
        member = _Member(body, asyncio.get_running_loop().create_future())
        self._waiting.append(member)
        self._begin()
        return await member.caller

    async def idle(self) -> None:
        """Returns when nothing is under way."""
        while self._work is not None:
            await asyncio.wait([self._work])

    def _begin(self) -> None:
        if self._work is not None:
            return
        batch: list[_Member] = []
        while self._waiting and len(batch) < AT_ONCE:
            member = self._waiting.popleft()
            if not member.caller.done():
                batch.append(member)
        if batch:
            self._work = asyncio.create_task(self._engines.writing(partial(_together, batch)))
            self._work.add_done_callback(partial(self._ended, batch))

    def _ended(self, batch: Sequence[_Member], work: asyncio.Task[None]) -> None:
        failure = asyncio.CancelledError() if work.cancelled() else work.exception()
        self._work = None
        self._begin()
        for member in batch:
            member.release(failure)


def _together(batch: Sequence[_Member], connection: Connection) -> None:
    wait_for_no_row(connection)
    with connection.begin():
        for member in batch:
            member.run(connection)
