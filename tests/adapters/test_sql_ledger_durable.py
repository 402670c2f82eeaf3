"""What a crash, a lost connection or a cancelled call leaves behind: all of a transaction or nothing, once, and never a lie."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.errors import NotFound, Unreachable
from domain.fingerprint import sha256_hex
from tests.adapters.sql_ledger_cases import FIRST, created, opening, reading, said, sql
from tests.conftest import Postgres


class Commits:
    """Stands in for COMMIT: fails as told, before or after it is done."""

    def __init__(self, ledger: SqlLedger, *, fail: int, done: bool) -> None:
        self.dialect: Any = ledger.engines.dialect
        self.real = self.dialect.do_commit
        self.left, self.done = fail, done

    def __enter__(self) -> "Commits":
        self.dialect.do_commit = self.commit
        return self

    def __exit__(self, *_: object) -> None:
        self.dialect.do_commit = self.real

    def commit(self, connection: object) -> None:
        if self.left == 0:
            self.real(connection)
            return
        self.left -= 1
        if self.done:
            self.real(connection)
        raise ConnectionResetError("the connection went, said somebody who knows the password")


@pytest.mark.parametrize("done", [True, False], ids=["the commit was done", "the commit was not done"])
async def test_an_append_whose_commit_did_not_answer_is_there_once(ledger: SqlLedger, done: bool) -> None:
    await created(ledger)
    with Commits(ledger, fail=2, done=done):
        record = await ledger.append("op-1", said(reading()), owner=FIRST, payloads=[b"x"])
    assert (record.seq, record.standing.reads) == (6, 1)
    assert await ledger.record("op-1") == record
    assert await ledger.payload(sha256_hex(b"x")) == b"x"
    assert (await LedgerBooks(ledger).verify("op-1")).ok


@pytest.mark.parametrize("done", [True, False], ids=["the commit was done", "the commit was not done"])
async def test_an_opening_whose_commit_did_not_answer_was_ours(ledger: SqlLedger, done: bool) -> None:
    with Commits(ledger, fail=1, done=done):
        opened = await ledger.open(opening())
    assert opened.created
    assert await ledger.record("op-1") == opened.record


async def test_commits_that_never_answer_are_unreachable_in_our_words(ledger: SqlLedger) -> None:
    await created(ledger)
    with Commits(ledger, fail=99, done=False), pytest.raises(Unreachable) as unreachable:
        await ledger.append("op-1", said(reading()), owner=FIRST)
    assert "password" not in f"{unreachable.value} {unreachable.value.hint}"
    assert unreachable.value.retryable
    assert (await ledger.record("op-1")).seq == 5


async def test_a_transaction_that_fails_half_way_leaves_nothing(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    await created(ledger)
    before = await ledger.record("op-1")

    def fall(*_: object) -> None:
        raise RuntimeError("the process fell over here")

    for module in ("sql_writing", "sql_growing"):
        monkeypatch.setattr(f"adapters.{module}.insert_entries", fall)
    with pytest.raises(RuntimeError):
        await ledger.append("op-1", said(reading()), owner=FIRST, payloads=[b"unseen"])
    with pytest.raises(RuntimeError):
        await ledger.open(opening("op-2"))
    monkeypatch.undo()
    assert await ledger.record("op-1") == before
    with pytest.raises(NotFound):
        await ledger.payload(sha256_hex(b"unseen"))
    assert [tuple(row) for row in await sql(ledger, "SELECT stream FROM streams")] == [("op-1",)]
    assert (await LedgerBooks(ledger).verify("op-1")).ok


async def test_calls_that_are_cancelled_anywhere_leave_a_whole_ledger_that_goes_on(ledger: SqlLedger) -> None:
    await created(ledger)
    for steps in range(40):
        call = asyncio.create_task(ledger.append("op-1", said(reading()), owner=FIRST))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    record = await ledger.append("op-1", said(reading()), owner=FIRST)
    verified = await LedgerBooks(ledger).verify("op-1")
    assert (verified.ok, verified.entries) == (True, record.seq + 1)
    assert await LedgerBooks(ledger).rebuild("op-1") == []


async def test_postgres_that_dropped_every_connection_is_connected_to_again(postgres: Postgres, postgres_ledger: SqlLedger) -> None:
    await created(postgres_ledger)
    await LedgerBooks(postgres_ledger).ping()
    database = postgres_ledger.engines.url.database
    admin = await postgres.connect()
    try:
        for call in ("append", "record"):
            await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", database)
            if call == "append":
                await postgres_ledger.append("op-1", said(reading()), owner=FIRST)
            else:
                assert (await postgres_ledger.record("op-1")).seq == 6
    finally:
        await admin.close()


async def test_a_writer_in_another_process_is_waited_for(sqlite_ledger: SqlLedger) -> None:
    await created(sqlite_ledger)
    other = await SqlLedger.connect(sqlite_ledger.engines.url.render_as_string())
    try:
        appends = [one.append("op-1", said(reading()), owner=FIRST) for _ in range(10) for one in (sqlite_ledger, other)]
        await asyncio.gather(*appends)
    finally:
        await other.aclose()
    assert (await sqlite_ledger.record("op-1")).standing.reads == 20
    assert (await LedgerBooks(sqlite_ledger).verify("op-1")).ok


KILLED = """
import asyncio, sys
from adapters.sql_ledger import SqlLedger
from tests.adapters.sql_ledger_cases import FIRST, created, reading, said

async def main():
    ledger = await SqlLedger.connect(sys.argv[1])
    await created(ledger)
    while True:
        record = await ledger.append("op-1", said(reading()), owner=FIRST)
        print(record.seq, record.hash, flush=True)

asyncio.run(main())
"""


async def test_what_was_reported_before_a_sigkill_is_there_after_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    root = str(Path(__file__).parents[2])
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, url, cwd=root, stdout=subprocess.PIPE)
    assert child.stdout is not None
    lines = [await child.stdout.readline() for _ in range(20)]
    child.kill()
    lines += (await child.stdout.read()).splitlines(keepends=True)
    await child.wait()
    whole = [line.split() for line in lines if line.endswith(b"\n")]
    assert len(whole) >= 20
    ledger = await SqlLedger.connect(url)
    try:
        entries = await ledger.entries("op-1")
        assert {int(seq): digest.decode() for seq, digest in whole}.items() <= {entry.seq: entry.hash for entry in entries}.items()
        assert (await LedgerBooks(ledger).verify("op-1")).ok
        assert await LedgerBooks(ledger).rebuild("op-1") == []
    finally:
        await ledger.aclose()
