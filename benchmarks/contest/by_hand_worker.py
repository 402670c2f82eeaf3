"""The worker of the contestants that are written by hand: `python -m benchmarks.contest.by_hand_worker PROVIDER`."""

import asyncio
import signal
import sys

from temporalio import activity
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from benchmarks.contest.by_hand import WORKFLOWS
from benchmarks.contest.provider import Reports
from benchmarks.contest.work import ACTIVITIES, DELAY_S, WORKFLOW_TASKS, Body

QUEUE = "by-hand"


class Calls:
    """The activities."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports

    @activity.defn
    async def create(self, token: str, body: Body) -> str:
        return await self._reports.create(token, body)

    @activity.defn
    async def read(self, job: str) -> str:
        return await self._reports.result_url(job) or ""

    @activity.defn
    async def read_or_fail(self, job: str) -> str:
        url = await self._reports.result_url(job)
        if url is None:
            raise ApplicationError("not yet", category=ApplicationErrorCategory.BENIGN)
        return url

    @activity.defn
    async def watch(self, job: str) -> str:
        while (url := await self._reports.result_url(job)) is None:
            activity.heartbeat()
            await asyncio.sleep(DELAY_S)
        return url

    @activity.defn
    async def fetch(self, url: str) -> int:
        return await self._reports.fetch(url)


async def work(provider: str) -> None:
    """Work until told to stop."""
    told = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, told.set)
    client = await Client.connect(**ClientConfig.load_client_connect_config())
    reports = Reports(provider)
    calls = Calls(reports)
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=WORKFLOWS,
        activities=[calls.create, calls.read, calls.read_or_fail, calls.watch, calls.fetch],
        max_concurrent_activities=ACTIVITIES,
        max_concurrent_workflow_tasks=WORKFLOW_TASKS,
    )
    async with worker:
        print("ready", flush=True)
        await told.wait()
    await reports.aclose()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
