"""Three ways to write the job on Temporal by hand. Each is what a careful engineer would write, and no more.

* None keeps evidence, checks an authority or verifies a result.
* What is not over yet is told by a benign failure without a cause, as the SDK advises for polling: no log line, no stack.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from benchmarks.contest.work import DELAY_S, Body

CALL = timedelta(seconds=30)
WHOLE = timedelta(hours=1)
SILENCE = timedelta(seconds=10)
EVERY = RetryPolicy(initial_interval=timedelta(seconds=DELAY_S), backoff_coefficient=1.0)


async def _create(body: Body) -> str:
    token = str(workflow.uuid4())
    return await workflow.execute_activity("create", args=[token, body], start_to_close_timeout=CALL, result_type=str)


async def _fetch(url: str) -> int:
    return await workflow.execute_activity("fetch", url, start_to_close_timeout=CALL, result_type=int)


@workflow.defn
class TimerLoop:
    """Reads the status in an activity and sleeps in the workflow, until the job has ended."""

    @workflow.run
    async def run(self, body: Body) -> int:
        job = await _create(body)
        while True:
            url = await workflow.execute_activity("read", job, start_to_close_timeout=CALL, result_type=str)
            if url:
                return await _fetch(url)
            await workflow.sleep(DELAY_S)


@workflow.defn
class RetryPoll:
    """One activity that fails until the job has ended: the server keeps the timer."""

    @workflow.run
    async def run(self, body: Body) -> int:
        job = await _create(body)
        url = await workflow.execute_activity(
            "read_or_fail", job, start_to_close_timeout=CALL, schedule_to_close_timeout=WHOLE, retry_policy=EVERY, result_type=str
        )
        return await _fetch(url)


@workflow.defn
class LongActivity:
    """One activity that reads, waits and heartbeats until the job has ended."""

    @workflow.run
    async def run(self, body: Body) -> int:
        job = await _create(body)
        url = await workflow.execute_activity("watch", job, start_to_close_timeout=WHOLE, heartbeat_timeout=SILENCE, result_type=str)
        return await _fetch(url)


WORKFLOWS = (TimerLoop, RetryPoll, LongActivity)
