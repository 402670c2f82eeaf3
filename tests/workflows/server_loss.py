"""The one fault of the time-skipping server that stories can't avoid, told apart from faults of ours.

A workflow task that cancels an activity in the very moment in which the activity ends is answered by that server with ACTIVITY_UNKNOWN
and is lost: the workflow waits for ever. Temporal's real servers (the development server among them) take it. Temporal's core reports
the server's words; whoever sees them here ends the story at once with `LostByTheServer`, and only for that the story is told again
(`--only-rerun` in pyproject.toml). A story that fails for any other reason fails.

Or the server goes on counting that activity as running. Then its time passes as ours does, and days never pass: that is seen by a minute
that takes too long.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.testing import WorkflowEnvironment

CORE = logging.Logger("temporal-core")
"""Of its own: a story that reads the log reads ours."""

Runtime.set_default(
    Runtime(
        telemetry=TelemetryConfig(
            logging=LoggingConfig(TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding=LogForwardingConfig(CORE))
        )
    ),
    error_if_already_set=False,
)


AT_ONCE = 3.0
"""Seconds in which a minute must pass. A machine that is too busy for it gets another server, and no failure."""
STANDS = 60.0
"""Seconds after which a story need not wait on: no activity of a story works for so long."""


class LostByTheServer(Exception):
    """The time-skipping server has lost a workflow task of this story, or skips no time any more."""


async def time_is_skipped(env: WorkflowEnvironment) -> bool:
    """Whether days still pass at once on this server, while nothing runs on it."""
    try:
        async with asyncio.timeout(AT_ONCE):
            await env.sleep(60.0)
    except TimeoutError:
        return False
    return True


async def time_passes(env: WorkflowEnvironment, seconds: float, within: float = STANDS) -> None:
    """Let the server's time pass.

    Raises:
        LostByTheServer: it passes as ours does.
    """
    try:
        async with asyncio.timeout(within):
            await env.sleep(seconds)
    except TimeoutError:
        raise LostByTheServer(f"{seconds:.0f} seconds of the server's time had not passed after {within:.0f} of ours") from None


class _Listening(logging.Handler):
    def __init__(self, loop: asyncio.AbstractEventLoop, limit: asyncio.Timeout) -> None:
        super().__init__()
        self.loop = loop
        self.limit = limit
        self.lost: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "ACTIVITY_UNKNOWN" in record.getMessage():
            self.lost.append(record.getMessage())
            self.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self.limit.when() is not None and not self.limit.expired():
            self.limit.reschedule(self.loop.time())


@asynccontextmanager
async def story_ends(within: float) -> AsyncGenerator[None]:
    """A block that ends `within` seconds, or at once when the server has lost it.

    Raises:
        TimeoutError: it did not end.
        LostByTheServer: the server lost a task of it.
    """
    listening: _Listening | None = None
    try:
        async with asyncio.timeout(within) as limit:
            listening = _Listening(asyncio.get_running_loop(), limit)
            CORE.addHandler(listening)
            yield
    except BaseException as error:
        if listening is not None and listening.lost and not isinstance(error, GeneratorExit | KeyboardInterrupt):
            raise LostByTheServer(listening.lost[0]) from error
        raise
    finally:
        if listening is not None:
            CORE.removeHandler(listening)
