"""Group commit under attack: no body hurts another, nothing is told early, nothing is written twice."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy.util import await_only

from activities.ports import Record
from adapters.sql_books import LedgerBooks
from adapters.sql_growing import Growth, LostRace, Written
from adapters.sql_ledger import SqlLedger, migrate
from domain.errors import NotPermitted
from domain.evidence import Evidence
from domain.standing import Standing
from tests.adapters.sql_ledger_cases import FIRST, created, opening, reading, said
from tests.adapters.test_sql_ledger_batching import Commits
from tests.conftest import Postgres

STREAMS = [f"op-{number}" for number in range(6)]
Raised = Callable[[Standing], Sequence[Evidence]]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@asynccontextmanager
async def filled(url: str) -> AsyncGenerator[SqlLedger]:
    """A ledger in which each of STREAMS has its job."""
    await migrate(url)
    ledger = await SqlLedger.connect(url)
    for stream in STREAMS:
        await created(ledger, stream, job=stream)
    yield ledger
    await ledger.aclose()


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[SqlLedger]:
    async with filled(url) as made:
        yield made


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[SqlLedger]:
    async with filled(postgres_url) as made:
        yield made


@pytest.fixture
async def admin(postgres: Postgres, server: SqlLedger) -> AsyncIterator[asyncpg.Connection]:
    connection = await postgres.connect(str(server.engines.url.database))
    yield connection
    await connection.close()


def append(ledger: SqlLedger, stream: str, decide: Raised | None = None) -> Coroutine[Any, Any, Record]:
    return ledger.append(stream, decide or said(reading()), owner=FIRST)


def raising(error: BaseException) -> Raised:
    def decide(_: Standing) -> Sequence[Evidence]:
        raise error

    return decide


async def reads(ledger: SqlLedger) -> list[int]:
    """How many readings each stream holds; whatever else is wrong with the ledger is found here too."""
    assert [one async for one in LedgerBooks(ledger).verify_all() if not one.ok] == []
    assert [one for stream in STREAMS for one in await LedgerBooks(ledger).rebuild(stream)] == []
    for stream in STREAMS:
        seqs = [entry.seq for entry in await ledger.entries(stream)]
        assert seqs == [*range(len(seqs))]
    return [(await ledger.record(stream)).standing.reads for stream in STREAMS]


@pytest.mark.parametrize("error", [StopIteration(), RecursionError(), TimeoutError("of ours"), KeyError("x"), NotPermitted("no")], ids=repr)
async def test_whatever_one_body_raises_the_others_are_written_and_the_ledger_goes_on(ledger: SqlLedger, error: BaseException) -> None:
    calls = [append(ledger, "op-0"), append(ledger, "op-1"), append(ledger, "op-2", raising(error)), append(ledger, "op-3")]
    async with asyncio.timeout(60):
        results = await asyncio.gather(*calls, return_exceptions=True)
        await append(ledger, "op-4")
    assert [isinstance(one, Record) for one in results] == [True, True, False, True]
    assert await reads(ledger) == [1, 1, 0, 1, 1, 0]


async def test_a_body_that_is_alone_and_raises_stop_iteration_is_answered_too(ledger: SqlLedger) -> None:
    async with asyncio.timeout(60):
        with pytest.raises(RuntimeError):
            await append(ledger, "op-0", raising(StopIteration()))
        await append(ledger, "op-0")
    assert await reads(ledger) == [1, 0, 0, 0, 0, 0]


async def test_a_transaction_that_the_event_loop_breaks_off_is_not_done_again_beside_itself(tmp_path: Path) -> None:
    """Its thread goes on and commits; a caller who is shielded from the cancel must not write a second time."""
    ledger = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    await created(ledger, "op-1")
    begun, go_on = threading.Event(), threading.Event()

    def decide(_: Standing) -> Sequence[Evidence]:
        begun.set()
        assert go_on.wait(60)
        return [reading()]

    call = asyncio.create_task(append(ledger, "op-1", decide))
    await asyncio.to_thread(begun.wait, 60)
    work = [task for task in asyncio.all_tasks() if task not in {call, asyncio.current_task()}]
    for one in work:
        one.cancel()
    await asyncio.wait(work)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    await append(ledger, "op-1")
    assert (await ledger.record("op-1")).standing.reads == 2, "what the thread wrote, and what was appended after it"
    await ledger.aclose()


async def test_callers_cancelled_at_any_moment_lose_their_own_answer_and_nothing_else(ledger: SqlLedger) -> None:
    told = [0] * len(STREAMS)
    for moment in range(25):
        tasks = [asyncio.create_task(append(ledger, STREAMS[number % 6])) for number in range(18)]
        for _ in range(moment):
            await asyncio.sleep(0)
        for one in tasks[::3]:
            one.cancel()
        async with asyncio.timeout(60):
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(one) for one in results} <= {Record, asyncio.CancelledError}
        for number, one in enumerate(results):
            told[number % 6] += isinstance(one, Record)
    there = await reads(ledger)
    assert all(told[number] <= there[number] <= 75 for number in range(6))


async def test_a_ledger_that_is_closed_first_ends_what_is_under_way(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = await SqlLedger.connect(url)
    for stream in STREAMS:
        await created(ledger, stream, job=stream)
    with Commits(ledger, fail=(2,), done=False):
        tasks = [asyncio.create_task(append(ledger, stream)) for stream in STREAMS]
        await asyncio.sleep(0)
        await ledger.aclose()
        results = await asyncio.gather(*tasks)
    assert len({one.hash for one in results}) == len(STREAMS)
    again = await SqlLedger.connect(url)
    assert await reads(again) == [1] * 6
    await again.aclose()


async def _cut(admin: asyncpg.Connection) -> None:
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def test_a_server_that_drops_the_connection_amid_the_bodies_loses_and_doubles_nothing(
    server: SqlLedger, admin: asyncpg.Connection
) -> None:
    times = 0

    def decide(_: Standing) -> Sequence[Evidence]:
        nonlocal times
        times += 1
        if times == 1:
            await_only(_cut(admin))
        return [reading()]

    await asyncio.gather(*(append(server, stream, decide if stream == "op-3" else None) for stream in STREAMS))
    assert times == 2
    assert await reads(server) == [1] * 6


async def test_a_server_that_drops_the_connection_at_the_commit_loses_and_doubles_nothing(
    server: SqlLedger, admin: asyncpg.Connection
) -> None:
    cuts = 0

    def cut() -> None:
        nonlocal cuts
        cuts += 1
        if cuts == 2:
            await_only(_cut(admin))

    with Commits(server, told=cut):
        await asyncio.gather(*(append(server, stream) for stream in STREAMS))
    assert cuts > 2
    assert await reads(server) == [1] * 6


async def test_an_opening_that_waits_for_another_process_keeps_nobody_else_waiting(server: SqlLedger, admin: asyncpg.Connection) -> None:
    """Another worker has pinned the same contract and not committed: it may be frozen."""
    new = opening("op-new", contract="sim.plain.create")
    async with asyncio.timeout(60):
        await append(server, "op-0")
        transaction = admin.transaction()
        await transaction.start()
        await admin.execute(
            "INSERT INTO contracts (digest, name, version, body) VALUES ($1, $2, 1, $3)",
            new.evidence.contract_digest, "sim.plain.create", new.contract,
        )  # fmt: skip
        first = asyncio.create_task(append(server, "op-0"))
        opened = asyncio.create_task(server.open(new))
        async with asyncio.timeout(9):  # the server itself would wait for ten
            await asyncio.gather(first, *(append(server, stream) for stream in STREAMS[1:]))
        assert not opened.done()
        await transaction.commit()
        assert (await opened).created
    assert await reads(server) == [2, 1, 1, 1, 1, 1]


async def test_a_race_that_one_body_loses_is_run_again_by_all_and_written_once_by_each(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = Growth.write, 0

    def write(growth: Growth) -> Written[Record]:
        nonlocal lost
        written = real(growth)
        if written.stream == "op-3" and lost < 2:
            lost += 1
            raise LostRace
        return written

    monkeypatch.setattr(Growth, "write", write)
    async with asyncio.timeout(60):
        await asyncio.gather(*(append(ledger, stream) for stream in STREAMS), append(ledger, "op-1"))
    assert lost == 2
    assert await reads(ledger) == [1, 2, 1, 1, 1, 1]
