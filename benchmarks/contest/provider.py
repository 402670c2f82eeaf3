"""The provider as one would call it by hand: one client that keeps its connections, no record of anything."""

import httpx

from benchmarks.contest.work import Body


class Reports:
    """The three calls."""

    def __init__(self, url: str) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._http = httpx.AsyncClient(base_url=url, timeout=30.0, limits=limits, trust_env=False)

    async def create(self, token: str, body: Body) -> str:
        """Create a job, or get the same again; its id."""
        answer = await self._http.post("/v1/reports", json=body, headers={"Idempotency-Key": token})
        answer.raise_for_status()
        return str(answer.json()["job_id"])

    async def result_url(self, job: str) -> str | None:
        """One reading of the status: where the result is, or None while there is none."""
        answer = await self._http.get(f"/v1/jobs/{job}")
        answer.raise_for_status()
        said = answer.json()
        if said["state"] in ("failed", "cancelled"):
            raise ValueError(f"job {job} is {said['state']}")
        return said["result_url"]

    async def fetch(self, url: str) -> int:
        """Fetch the whole result and count its bytes."""
        count = 0
        async with self._http.stream("GET", url) as answer:
            answer.raise_for_status()
            async for chunk in answer.aiter_bytes():
                count += len(chunk)
        return count

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()
