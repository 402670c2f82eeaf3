"""A worker that dies while it collects: the provider is reached a number of times, and then the activity ends in the middle."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from activities.authority import AuthorityActivities
from activities.ports import Provider
from activities.provider import ProviderActivities
from domain.contract import Contract
from domain.evidence import Json
from domain.exchange import CallPolicy, Exchange, Request
from domain.messages import Head, StepInput
from tests.workflows.stage import Stage, acting_for


class Died(Exception):
    """The worker is gone."""


class Mortal:
    """A provider that can be reached so many times."""

    def __init__(self, real: Provider, calls: int) -> None:
        self._real, self._left = real, calls

    def _live(self) -> None:
        if self._left == 0:
            raise Died
        self._left -= 1

    async def exchange(self, request: Request, policy: CallPolicy) -> Exchange:
        """Reach it, or die."""
        self._live()
        return await self._real.exchange(request, policy)

    @asynccontextmanager
    async def stream(self, request: Request, policy: CallPolicy) -> AsyncGenerator[Any]:
        """Reach it, or die."""
        self._live()
        async with self._real.stream(request, policy) as answer:
            yield answer


async def collecting(on: Stage, contract: Contract, input: Json) -> None:
    """Bring an operation to where its result is to be collected. Its job has to end at the first reading."""
    steps, owner = ProviderActivities(on.world), acting_for("run-1")
    await on.open(contract, input)
    await owner.run(AuthorityActivities(on.world).judge, StepInput(id="op-1", turn=1))
    await owner.run(steps.create, StepInput(id="op-1", turn=2))
    assert (await owner.run(steps.observe, StepInput(id="op-1", turn=3))).state == "result_collecting"


async def die_after(on: Stage, calls: int) -> None:
    """One attempt to collect that ends in the middle."""
    world = replace(on.world, provider=Mortal(on.world.provider, calls))
    with pytest.raises(Died):
        await acting_for("run-1").run(ProviderActivities(world).collect, StepInput(id="op-1", turn=4))


async def go_on(on: Stage) -> Head:
    """The next attempt, of a worker that lives."""
    return await acting_for("run-1", attempt=2).run(ProviderActivities(on.world).collect, StepInput(id="op-1", turn=4))
