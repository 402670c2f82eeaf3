"""The positive control: a client as it is often written. It records nothing before it sends, and sends again on any error.

It runs beside the operations, against the same provider under the same lies, and the same books must show its duplicates: if they
don't, the ring would not see ours either.
"""

import asyncio

import httpx

TRIES = 10
QUICK = {"polls": 1, "rows": 5, "format": "jsonl", "range": {"start": "2026-01-01", "end": "2026-01-31"}}


async def order(client: httpx.AsyncClient, account: str) -> str | None:
    """Order a report, and again until an answer says that there is one."""
    for attempt in range(TRIES):
        try:
            answer = await client.post("/v1/plain/reports", json={**QUICK, "account": account})
            if answer.status_code == 202:
                return str(answer.json()["job_id"])
        except (httpx.HTTPError, ValueError):
            pass
        await asyncio.sleep(0.05 * 2 ** min(attempt, 4))
    return None


async def customers(url: str, accounts: list[str], seconds: float) -> None:
    """One order of each account, spread over the time."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=10) as client:
        for account in accounts:
            await order(client, account)
            await asyncio.sleep(seconds / len(accounts))
