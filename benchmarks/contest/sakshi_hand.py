"""The starter's hand for Sakshi: what a gateway does to open, start and wait, on the installation that the environment names."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from adapters.client import Sakshi, sakshi
from adapters.contract_files import parse
from adapters.settings import ROOT, load_settings
from benchmarks.contest.starter import Cost
from benchmarks.contest.temporal_hand import cost_of
from benchmarks.contest.work import DELAY_S, report
from domain.contract import Contract
from domain.evidence import Json
from domain.language.loading import parse_contract
from domain.opening import Asked


def contract() -> Contract:
    """The contract that ships, with the contest's delay between two readings."""
    document = parse(ROOT / "contracts" / "sim.reports.create.yaml").document
    assert isinstance(document, dict)
    observe = document["observe"]
    assert isinstance(observe, dict)
    delay = f"{DELAY_S * 1000:.0f}ms"
    poll: dict[str, Json] = {"first": delay, "factor": 1, "cap": delay, "floor": delay}
    changed: dict[str, Json] = {**document, "observe": {**observe, "poll": poll}}
    return parse_contract(changed, file="contest", positions={})


class SakshiHand:
    """Opens operations, starts their workflows, and waits for their ends."""

    def __init__(self, client: Sakshi, provider: str) -> None:
        self._client, self._provider = client, provider
        self._contract = contract()

    async def once(self, polls: int) -> str:
        asked = Asked(
            contract=self._contract, input=dict(report(polls)), target={"server": self._provider}, tenant="t1", principal="operator"
        )  # fmt: skip
        started = await self._client.open_and_start(asked)
        temporal = await self._client.temporal()
        await temporal.get_workflow_handle(started.id).result()
        return started.id

    async def cost(self, id: str) -> Cost:
        standing = (await self._client.ledger.record(id)).standing
        assert standing.state == "succeeded", f"{id} is {standing.state}: {standing.why}"
        return await cost_of(await self._client.temporal(), id, standing.outputs[0].size)


@asynccontextmanager
async def opened(provider: str) -> AsyncGenerator[SakshiHand]:
    """A hand for the installation that the environment names."""
    async with sakshi(load_settings()) as client:
        made = SakshiHand(client, provider)
        await client.temporal()
        yield made
