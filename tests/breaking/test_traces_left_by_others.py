"""What was taken away from a SQLite ledger, where a process died, a reader stayed, or another process goes on."""

import asyncio
import logging
import os
import resource
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from adapters import sql_dialects, sql_writing
from adapters.sql_ledger import SqlLedger
from tests.adapters.test_sql_ledger_traces import PLANTED, erased, keep, opened, page, traces
from tests.workflows.stage import REPORT, stage, variant

DYING = """
import asyncio, os
from pathlib import Path
from adapters import sql_dialects
from tests.adapters.test_sql_ledger_traces import erased, keep, opened, page

async def main():
    ledger = await opened(Path({folder!r}))
    await keep(ledger, page(1))
    sql_dialects.SqliteEngines._empty_wal = lambda *_: os._exit(7)
    await ledger.erase("op-1", erased(page(1)))

asyncio.run(main())
"""


def standing(what: bytes, folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if what in path.read_bytes()]


def test_what_a_process_left_that_died_before_it_emptied_the_wal_goes_with_the_first_write_of_the_next(tmp_path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", DYING.format(folder=str(tmp_path))], check=False, env={**os.environ, "PYTHONPATH": "."})
    assert died.returncode == 7
    assert traces(tmp_path) == ["ledger.db-wal"]

    async def go_on() -> None:
        ledger = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
        assert [entry.cause for entry in await ledger.entries("op-1")][-1] == "erased.erased"
        await keep(ledger)
        assert traces(tmp_path) == []
        await ledger.aclose()

    asyncio.run(go_on())


async def test_a_reader_that_goes_before_the_close_is_not_the_reason_that_a_trace_stays_while_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_dialects, "EMPTYING_MS", 1)
    ledger = await opened(tmp_path)
    other = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    await keep(ledger, page(1))
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        await ledger.erase("op-1", erased(page(1)))
        assert traces(tmp_path)
        reader.execute("COMMIT")
        await ledger.aclose()
        assert traces(tmp_path) == []
    assert len(await other.entries("op-1")) == 3
    await other.aclose()


async def test_a_close_with_a_reader_still_there_fails_nothing_and_the_next_that_opens_takes_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_dialects, "EMPTYING_MS", 1)
    ledger = await opened(tmp_path)
    await keep(ledger, page(1))
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        await ledger.erase("op-1", erased(page(1)))
        await ledger.aclose()
        assert traces(tmp_path)
        again = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
        reader.execute("COMMIT")
        await keep(again)
        assert traces(tmp_path) == []
        await again.aclose()


async def test_while_another_process_writes_all_the_time_nothing_fails_and_nothing_stays(tmp_path: Path) -> None:
    ledger = await opened(tmp_path)
    begun, stop = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(tmp_path / "ledger.db", timeout=120, isolation_level=None)) as other:
            other.execute("CREATE TABLE IF NOT EXISTS beside (x)")
            while not stop.wait(0.002):  # SQLite keeps no queue: whoever writes without a pause may keep others out
                other.execute("INSERT INTO beside VALUES (1)")
                begun.set()

    beside = threading.Thread(target=write)
    beside.start()
    try:
        assert await asyncio.to_thread(begun.wait, 120)
        for number in range(10):
            await keep(ledger, page(number))
            await ledger.erase("op-1", erased(page(number)))
    finally:
        stop.set()
        beside.join()
    again = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    await keep(again)
    assert traces(tmp_path) == []
    await again.aclose()
    await ledger.aclose()


async def test_a_disk_that_is_full_when_the_wal_is_to_be_emptied_fails_nothing_of_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sql_dialects, "EMPTYING_EVERY_S", 0.0)
    ledger = await opened(tmp_path)
    await keep(ledger, *(page(number, 20_000) for number in range(100)))
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as beside:
        beside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 * 1024, hard))  # the WAL has room, the file of 2 MB takes nothing at its end
    try:
        with caplog.at_level(logging.WARNING):
            await ledger.erase("op-1", erased(page(99, 20_000)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caplog.text.count("cannot be emptied") == 1
    assert [entry.cause for entry in await ledger.entries("op-1")][-1] == "erased.erased"
    await keep(ledger)
    assert not standing(PLANTED + b"000099-", tmp_path)
    await ledger.aclose()


async def test_an_operation_of_a_contract_that_hides_nothing_takes_nothing_away_and_empties_no_wal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []
    monkeypatch.setattr(sql_writing, "took_away", taken.append)
    async with stage(tmp_path) as on:
        handle = await on.start(variant("sim.reports.create", {"observe": {"poll": {"first": "30s", "cap": "30m"}}}), REPORT)
        assert (await handle.result()).state == "succeeded"
        assert len(await on.entries("reading")) >= 3
    assert taken == []
