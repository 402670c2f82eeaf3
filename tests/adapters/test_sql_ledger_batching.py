"""Calls that meet share a transaction, and nothing else: no failure, no wait, no order but their own."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from activities.ports import Owner, Record
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.errors import NotPermitted, StaleOwner, UnknownStream
from domain.evidence import Evidence
from domain.standing import Standing
from tests.adapters.sql_ledger_cases import FIRST, created, opening, reading, said

STREAMS = [f"op-{number}" for number in range(8)]


class Commits:
    """Stands in for COMMIT: tells of each before it is done, and lets some fail, done or not."""

    def __init__(self, ledger: SqlLedger, *, told: Callable[[], None] = lambda: None, fail: Sequence[int] = (), done: bool = True) -> None:
        self.dialect: Any = ledger.engines.dialect
        self.real = self.dialect.do_commit
        self.told, self.fail, self.done = told, fail, done
        self.count = 0

    def __enter__(self) -> "Commits":
        self.dialect.do_commit = self.commit
        return self

    def __exit__(self, *_: object) -> None:
        self.dialect.do_commit = self.real

    def commit(self, connection: object) -> None:
        self.count += 1
        self.told()
        failing = self.count in self.fail
        if not failing or self.done:
            self.real(connection)
        if failing:
            raise ConnectionResetError("the connection went")


async def several(ledger: SqlLedger) -> None:
    for stream in STREAMS:
        await created(ledger, stream, job=stream)


def append(ledger: SqlLedger, stream: str, *evidence: Evidence, owner: Owner | None = FIRST) -> Coroutine[Any, Any, Record]:
    return ledger.append(stream, said(*(evidence or (reading(),))), owner=owner)


def refuse(_: Standing) -> Sequence[Evidence]:
    raise NotPermitted("not now")


def fall(_: Standing) -> Sequence[Evidence]:
    raise RuntimeError("a mistake of ours")


async def whole(ledger: SqlLedger) -> bool:
    verified = [one async for one in LedgerBooks(ledger).verify_all()]
    return all(one.ok for one in verified) and [d for stream in STREAMS for d in await LedgerBooks(ledger).rebuild(stream)] == []


async def test_calls_that_meet_share_a_commit_and_one_that_is_alone_has_its_own(ledger: SqlLedger) -> None:
    await several(ledger)
    with Commits(ledger) as commits:
        records = await asyncio.gather(*(append(ledger, stream) for stream in STREAMS))
        assert commits.count == 2, "the first at once, the others together"
        await append(ledger, "op-0")
        assert commits.count == 3
    assert [record.stream for record in records] == STREAMS
    assert [await ledger.record(stream) for stream in STREAMS[1:]] == list(records[1:])
    assert await whole(ledger)


async def test_whoever_is_refused_among_others_fails_alone_and_writes_nothing(ledger: SqlLedger) -> None:
    await several(ledger)
    await append(ledger, "op-3", owner=Owner("run-2", 5))
    before = [await ledger.record(stream) for stream in ("op-2", "op-3")]
    results = await asyncio.gather(
        append(ledger, "op-0"), append(ledger, "op-1"), ledger.append("op-2", refuse, owner=FIRST, payloads=[b"unseen"]),
        append(ledger, "op-3"), append(ledger, "op-9"), append(ledger, "op-4"), return_exceptions=True,
    )  # fmt: skip
    assert [type(one) for one in results] == [Record, Record, NotPermitted, StaleOwner, UnknownStream, Record]
    assert [await ledger.record(stream) for stream in ("op-2", "op-3")] == before
    assert await whole(ledger)


async def test_a_mistake_of_ours_in_one_call_ends_that_call_alone(ledger: SqlLedger) -> None:
    await several(ledger)
    calls = [append(ledger, "op-0"), append(ledger, "op-1"), ledger.append("op-2", fall, owner=FIRST), append(ledger, "op-3")]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in results] == [Record, Record, RuntimeError, Record]
    assert [(await ledger.record(stream)).standing.reads for stream in STREAMS[:4]] == [1, 1, 0, 1]
    assert await whole(ledger)


@pytest.mark.parametrize("done", [True, False], ids=["the commit was done", "the commit was not done"])
async def test_calls_whose_common_commit_did_not_answer_are_each_there_once(ledger: SqlLedger, done: bool) -> None:
    await several(ledger)
    with Commits(ledger, fail=(2,), done=done):
        results = await asyncio.gather(
            *(append(ledger, stream) for stream in STREAMS), append(ledger, "op-1"), ledger.append("op-2", refuse, owner=FIRST),
            return_exceptions=True,
        )  # fmt: skip
    assert [type(one) for one in results] == [Record] * 9 + [NotPermitted]
    assert [(await ledger.record(stream)).standing.reads for stream in STREAMS] == [1, 2, 1, 1, 1, 1, 1, 1]
    assert await whole(ledger)


async def test_nobody_is_told_anything_before_the_commit_and_a_refusal_neither(ledger: SqlLedger) -> None:
    await several(ledger)
    told: list[set[str]] = []
    with Commits(ledger, told=lambda: told.append({task.get_name() for task in tasks if task.done()})):
        calls = [append(ledger, "op-0"), append(ledger, "op-1"), ledger.append("op-2", refuse, owner=FIRST), append(ledger, "op-3")]
        tasks = [asyncio.create_task(call, name=str(number)) for number, call in enumerate(calls)]
        await asyncio.gather(*tasks, return_exceptions=True)
    assert told[0] == set()
    assert told[1] <= {"0"}
    assert len(told) == 2


async def test_calls_on_one_stream_are_written_in_the_order_in_which_they_came(ledger: SqlLedger) -> None:
    await several(ledger)
    await asyncio.gather(
        *(append(ledger, stream, reading(remote_state=f"{number}")) for number in range(10) for stream in ("op-0", "op-1"))
    )
    for stream in ("op-0", "op-1"):
        states = [entry.body.get("remote_state") for entry in (await ledger.entries(stream))[6:]]
        assert states == [str(number) for number in range(10)]


async def test_a_caller_who_goes_away_takes_back_what_has_not_begun_and_nothing_else(ledger: SqlLedger) -> None:
    await several(ledger)
    tasks = [asyncio.create_task(append(ledger, stream)) for stream in STREAMS[:4]]
    await asyncio.sleep(0)
    tasks[2].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in results] == [Record, Record, asyncio.CancelledError, Record]
    assert [(await ledger.record(stream)).standing.reads for stream in STREAMS[:4]] == [1, 1, 0, 1]
    assert await whole(ledger)


async def test_of_openings_that_meet_one_creates_and_the_others_find_it(ledger: SqlLedger) -> None:
    opened = await asyncio.gather(*(ledger.open(opening(f"op-{number}", key="k")) for number in range(6)))
    assert [one.created for one in opened] == [True, False, False, False, False, False]


async def test_a_row_that_another_process_holds_keeps_nobody_else_waiting(postgres_ledger: SqlLedger) -> None:
    ledger = postgres_ledger
    await several(ledger)
    other = create_async_engine(ledger.engines.url)
    async with other.connect() as connection:
        await connection.execute(text("SELECT 1 FROM streams WHERE stream = 'op-1' FOR UPDATE"))
        held = asyncio.create_task(append(ledger, "op-1"))
        others = await asyncio.gather(*(append(ledger, stream) for stream in STREAMS if stream != "op-1"))
        assert len(others) == 7
        assert not held.done()
        await connection.rollback()
    assert (await held).standing.reads == 1
    await other.dispose()
    assert await whole(ledger)
