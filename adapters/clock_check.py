"""A worker whose clock is wrong does nothing for anyone.

Deadlines, a token's window and the proof that nothing was made are reckoned from instants that several workers wrote, with a minute
of margin for the difference of their clocks. Here that difference is held to it: Temporal says when it handed an attempt out, and
a worker that is further off than half of the minute lets the attempt fail, to be tried again, in time or elsewhere.
"""

from datetime import UTC, timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.ports import Clocks

MAX_OFF = timedelta(seconds=30)
WRONG_CLOCK = "WrongClock"


class ClockCheck(Interceptor):
    """For every worker that runs activities."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Checked(next, self._clocks)


class _Checked(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, clocks: Clocks) -> None:
        super().__init__(next)
        self._clocks = clocks

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if not info.is_local:  # a local one has no clock to compare with but this worker's own
            off = self._clocks.now() - info.started_time.astimezone(UTC)
            if abs(off) > MAX_OFF:
                way = "ahead of" if off > timedelta() else "behind"
                raise ApplicationError(
                    f"this worker's clock is {abs(off).total_seconds():.0f} s {way} Temporal's: nothing was done - set its clock",
                    type=WRONG_CLOCK,
                )
        return await super().execute_activity(input)
