"""The job on DBOS, and the starter's hand for it: `python -m benchmarks.contest.starter dbos PROVIDER DATABASE`.

* DBOS is a library: workflows run in the process that starts them, which is its shortest way. So worker and starter are one process.
* Its database is given what makes it fast and stays durable: on SQLite a write-ahead log, which DBOS does not ask for by itself.
* What counts as an event is a recorded step: a call or a sleep. It keeps no evidence and verifies no result.

It lives in an environment of its own, made from `benchmarks/dbos.lock`.
"""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownParameterType=false
# DBOS is not in the environment of the checker.

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dbos import DBOS, DBOSConfig

from benchmarks.contest.provider import Reports
from benchmarks.contest.starter import Cost
from benchmarks.contest.work import DELAY_S, Body, report

FILE = "sqlite:///"
held: dict[str, Reports] = {}
"""The provider's client: a step is a plain function, and finds it here."""


@DBOS.step()
async def create(token: str, body: Body) -> str:
    return await held["reports"].create(token, body)


@DBOS.step()
async def read(job: str) -> str | None:
    return await held["reports"].result_url(job)


@DBOS.step()
async def fetch(url: str) -> int:
    return await held["reports"].fetch(url)


@DBOS.workflow()
async def job(body: Body) -> int:
    """Create, read and sleep durably until it has ended, fetch."""
    made = await create(str(DBOS.workflow_id), body)
    while (url := await read(made)) is None:
        await DBOS.sleep_async(DELAY_S)
    return await fetch(url)


class DbosHand:
    """Starts workflows in this process, and waits for their results."""

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}

    async def once(self, polls: int) -> str:
        handle = await DBOS.start_workflow_async(job, report(polls))
        self._bytes[handle.workflow_id] = await handle.get_result()
        return handle.workflow_id

    async def cost(self, id: str) -> Cost:
        return Cost(self._bytes.pop(id), len(await DBOS.list_workflow_steps_async(id)))


@asynccontextmanager
async def opened(provider: str, database: str) -> AsyncGenerator[DbosHand]:
    """A hand with this system database."""
    if database.startswith(FILE):
        connection = sqlite3.connect(database.removeprefix(FILE))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    held["reports"] = Reports(provider)
    config: DBOSConfig = {"name": "contest", "system_database_url": database, "log_level": "ERROR"}
    DBOS(config=config)
    DBOS.launch()
    try:
        yield DbosHand()
    finally:
        DBOS.destroy()
        await held["reports"].aclose()
