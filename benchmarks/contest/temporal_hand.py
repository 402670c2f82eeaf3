"""The starter's hand for workflows written by hand."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from benchmarks.contest.by_hand_worker import QUEUE
from benchmarks.contest.starter import Cost
from benchmarks.contest.work import report


class TemporalHand:
    """Starts workflows of one name, and waits for their results."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name
        self._bytes: dict[str, int] = {}

    async def once(self, polls: int) -> str:
        id = uuid.uuid4().hex
        handle = await self._client.start_workflow(self._name, report(polls), id=id, task_queue=QUEUE, result_type=int)
        self._bytes[id] = await handle.result()
        return id

    async def cost(self, id: str) -> Cost:
        return await cost_of(self._client, id, self._bytes.pop(id))


async def cost_of(client: Client, id: str, result: int) -> Cost:
    """The cost of a workflow."""
    described = await client.get_workflow_handle(id).describe()
    return Cost(result, described.history_length, described.raw_description.workflow_execution_info.history_size_bytes)


@asynccontextmanager
async def opened(name: str) -> AsyncGenerator[TemporalHand]:
    """A hand for workflows of this name, on the server that the environment names."""
    yield TemporalHand(await Client.connect(**ClientConfig.load_client_connect_config()), name)
