"""Whoever has the file of an embedded ledger can leave anything in a column: a fault like any other, never an error."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from tests.adapters.sql_ledger_cases import created, drop_triggers

VALUES = ("CAST({0} AS BLOB)", "CAST(x'ff' AS TEXT)", "x'ff'", "'zz'", "2.5", "9223372036854775807", "-1", "x'00'", "{0} || char(0)")
BYTES = {"body", "bytes"}
PLACES = (
    *(f"entries.{column}" for column in ("stream", "seq", "prev", "hash", "at", "actor", "kind", "body")),
    *(f"streams.{column}" for column in ("seq", "head")),
    *(f"payloads.{column}" for column in ("digest", "stream", "bytes")),
    *(f"contracts.{column}" for column in ("digest", "body")),
)
WHERE = {
    "entries": "stream = 'op-1' AND seq = 2",
    "streams": "stream = 'op-1'",
    "payloads": "stream = 'op-1' AND rowid = 3",
    "contracts": "true",
}


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    ledger = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    for stream in ("op-0", "op-1", "op-2"):
        await created(ledger, stream, job=stream)
    await drop_triggers(ledger)
    yield ledger
    await ledger.aclose()


async def faulty(ledger: SqlLedger) -> set[str]:
    return {one.stream for one in [one async for one in LedgerBooks(ledger).verify_all()] if not one.ok}


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_is_left_in_a_column_is_found_with_a_fault(ledger: SqlLedger, tmp_path: Path, place: str) -> None:
    table, _, column = place.partition(".")
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as file, closing(sqlite3.connect(":memory:")) as whole:
        file.backup(whole)
        for value in VALUES[1:] if column in BYTES else VALUES:
            with suppress(sqlite3.IntegrityError):
                file.execute(f"UPDATE {table} SET {column} = {value.format(column)} WHERE {WHERE[table]}")
                found = await faulty(ledger)
                assert "op-1" in found, value
                assert table == "contracts" or not found & {"op-0", "op-2"}, value
                assert not (await LedgerBooks(ledger).verify("op-1")).ok, value
                whole.backup(file)
    assert await faulty(ledger) == set()
