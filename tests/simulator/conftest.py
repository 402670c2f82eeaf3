"""A simulator on a real socket, with a client that retries nothing."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest

from simulator.books import Books
from simulator.serve import Running, running

WITHIN = 120.0
"""Seconds of real time for what takes none: a bound that only matters where something hangs."""
ASK: dict[str, object] = {"account": "acme", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv", "rows": 40}


@dataclass
class Desk:
    """A caller of the provider."""

    sim: Running
    client: httpx.AsyncClient
    asked: dict[str, object] = field(default_factory=lambda: dict(ASK))

    @property
    def books(self) -> Books:
        return self.sim.books

    async def create(self, token: str | None = "t-1", path: str = "/v1/reports", **more: object) -> httpx.Response:
        headers = {} if token is None else {"Idempotency-Key": token}
        return await self.client.post(path, json=self.asked | more, headers=headers)

    async def job(self, **more: object) -> str:
        answer = await self.create(**more)  # pyright: ignore[reportArgumentType]
        assert answer.status_code in (200, 202), answer.text
        return answer.json()["job_id"]

    async def read(self, job: str) -> httpx.Response:
        return await self.client.get(f"/v1/jobs/{job}")

    async def state(self, job: str) -> str:
        return (await self.read(job)).json()["state"]

    async def cancel(self, job: str) -> httpx.Response:
        return await self.client.delete(f"/v1/jobs/{job}")

    async def result(self, job: str) -> httpx.Response:
        return await self.client.get(f"/v1/jobs/{job}/result")

    async def finished(self, **more: object) -> str:
        job = await self.job(polls=0, **more)
        assert await self.state(job) == "succeeded"
        return job


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with running() as sim, httpx.AsyncClient(base_url=sim.url, trust_env=False, timeout=WITHIN) as client:
        yield Desk(sim, client)
