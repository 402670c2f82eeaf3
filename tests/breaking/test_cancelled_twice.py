"""What is on the wire is waited for, however often it is cancelled."""

import asyncio

import pytest

from activities.provider import finished


async def test_an_exchange_in_flight_outlives_a_decision_and_then_a_worker_that_stops() -> None:
    answered = asyncio.Event()

    async def exchange() -> str:
        await answered.wait()
        return "the answer"

    attempt = asyncio.create_task(finished(exchange()))
    for _ in range(3):
        await asyncio.sleep(0)
        attempt.cancel()
        await asyncio.sleep(0)
        assert not attempt.done()
    answered.set()
    assert await attempt == "the answer"


async def test_what_an_exchange_raises_comes_through() -> None:
    async def exchange() -> str:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        await finished(exchange())
