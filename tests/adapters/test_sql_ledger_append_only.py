import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.chain import entry_hash
from domain.fingerprint import sha256_hex
from domain.messages import Known
from tests.adapters.sql_ledger_cases import FIRST, answer, created, drop_triggers, opening, reading, said, sql

REWRITES = (
    "UPDATE entries SET actor = 'x'",
    "UPDATE entries SET body = body",
    "DELETE FROM entries",
    "UPDATE ledger SET ledger_id = 'x'",
    "DELETE FROM ledger",
    "INSERT INTO ledger (one, ledger_id, made_at) VALUES (2, 'x', 'x')",
    "UPDATE contracts SET name = 'x'",
    "DELETE FROM contracts",
    "DELETE FROM payloads",
    "UPDATE payloads SET bytes = NULL",
    "UPDATE payloads SET erased_at = 'x'",
    "UPDATE payloads SET bytes = digest_of_another, erased_at = 'x'",
    "UPDATE payloads SET digest = 'x', bytes = NULL, erased_at = 'x'",
    "DELETE FROM streams",
)
ON_SQLITE = (
    "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE seq = 0",
    "INSERT OR REPLACE INTO entries SELECT stream, seq, prev, hash, at, 'x', kind, body FROM entries WHERE seq = 1",
    "UPDATE OR REPLACE entries SET seq = 0 WHERE seq = 1",
    "INSERT INTO entries SELECT * FROM entries WHERE seq = 0 ON CONFLICT DO UPDATE SET actor = 'x'",
    "INSERT OR REPLACE INTO contracts SELECT 'x', name, version, body FROM contracts",
    "INSERT OR REPLACE INTO payloads SELECT digest, stream, size, x'00', NULL FROM payloads",
    "INSERT OR REPLACE INTO payloads (rowid, digest, stream, size) SELECT rowid, 'x', stream, 1 FROM payloads",
    "INSERT OR REPLACE INTO ledger VALUES (1, 'x', 'x')",
)
ON_POSTGRES = (
    "TRUNCATE entries",
    "TRUNCATE streams CASCADE",
    "TRUNCATE payloads",
    "TRUNCATE contracts",
    "TRUNCATE ledger",
    "INSERT INTO entries SELECT * FROM entries WHERE seq = 0 ON CONFLICT (stream, seq) DO UPDATE SET actor = 'x'",
    "MERGE INTO entries e USING ledger l ON true WHEN MATCHED THEN DELETE",
)


async def everything(ledger: SqlLedger) -> list[object]:
    return [
        await sql(ledger, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("entries", "ledger", "contracts", "payloads", "streams")
    ]


async def test_nothing_that_is_written_is_changed_or_taken_away(ledger: SqlLedger) -> None:
    await created(ledger)
    before = await everything(ledger)
    for statement in (*REWRITES, *(ON_SQLITE if ledger.engines.embedded else ON_POSTGRES)):
        with pytest.raises(DBAPIError):
            await sql(ledger, statement.replace("digest_of_another", "x'00'" if ledger.engines.embedded else "'\\x00'::bytea"))
        assert await everything(ledger) == before, statement


async def test_a_plain_connection_to_the_file_is_refused_as_well(sqlite_ledger: SqlLedger) -> None:
    await created(sqlite_ledger)
    before = await everything(sqlite_ledger)
    plain = sqlite3.connect(str(sqlite_ledger.engines.url.database))
    try:
        for statement in (*ON_SQLITE, "DELETE FROM entries", "DELETE FROM payloads"):
            with pytest.raises(sqlite3.IntegrityError):
                plain.execute(statement)
            plain.rollback()
    finally:
        plain.close()
    assert await everything(sqlite_ledger) == before


# --- with the triggers gone, verify finds it ----------------------------------------------------------------------------

Tamper = Callable[[SqlLedger], Awaitable[object]]


def change(column: str, value: object) -> Tamper:
    return lambda ledger: sql(ledger, (f"UPDATE entries SET {column} = :value WHERE seq = 3", {"value": value}))


async def swap(ledger: SqlLedger) -> None:
    await sql(
        ledger,
        "UPDATE entries SET seq = 99 WHERE seq = 2",
        "UPDATE entries SET seq = 2 WHERE seq = 3",
        "UPDATE entries SET seq = 3 WHERE seq = 99",
    )


async def rewrite_the_last_with_a_fitting_hash(ledger: SqlLedger) -> None:
    last = (await ledger.entries("op-1"))[-1]
    body = last.raw.replace(b'"job-1"', b'"job-2"')
    values = {"body": body, "hash": entry_hash(last.prev, body), "seq": last.seq}
    await sql(ledger, ("UPDATE entries SET body = :body, hash = :hash WHERE seq = :seq", values))


TAMPERINGS: dict[str, Tamper] = {
    "bytes": change("body", b"{}"),
    "no bytes": change("body", b""),
    "hash": change("hash", "0" * 64),
    "a hash that is none": change("hash", "x"),
    "link": change("prev", "0" * 64),
    "column at": change("at", "2020-01-01T00:00:00.000Z"),
    "column actor": change("actor", "human:mallory"),
    "column kind": change("kind", "opened"),
    "dropped from the middle": lambda ledger: sql(ledger, "DELETE FROM entries WHERE seq = 2"),
    "dropped from the start": lambda ledger: sql(ledger, "DELETE FROM entries WHERE seq = 0"),
    "cut tail": lambda ledger: sql(ledger, "DELETE FROM entries WHERE seq >= 4"),
    "all dropped": lambda ledger: sql(ledger, "DELETE FROM entries"),
    "swapped": swap,
    "inserted": lambda ledger: sql(
        ledger, "INSERT INTO entries SELECT stream, 6, hash, hash, at, actor, kind, body FROM entries WHERE seq = 5"
    ),
    "rewritten with a fitting hash": rewrite_the_last_with_a_fitting_hash,
    "another contract": lambda ledger: sql(ledger, ("UPDATE contracts SET body = :new", {"new": b"x"})),
    "no contract": lambda ledger: sql(ledger, "DELETE FROM contracts"),
    "another payload": lambda ledger: sql(ledger, ("UPDATE payloads SET bytes = :new", {"new": b"x"})),
    "erased without a record": lambda ledger: sql(ledger, "UPDATE payloads SET bytes = NULL, erased_at = 'x'"),
    "no payload": lambda ledger: sql(ledger, "DELETE FROM payloads"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
async def test_verify_finds_an_entry_or_what_it_names_tampered_with(ledger: SqlLedger, name: str) -> None:
    await created(ledger)
    await drop_triggers(ledger)
    assert (await LedgerBooks(ledger).verify("op-1")).ok
    await TAMPERINGS[name](ledger)
    verified = await LedgerBooks(ledger).verify("op-1")
    assert (verified.ok, verified.fault is None) == (False, False)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET body = CAST(body AS TEXT) || ' ' WHERE seq = 2",
        "UPDATE entries SET body = 7 WHERE seq = 2",
        "UPDATE contracts SET body = 'text'",
        "UPDATE payloads SET bytes = 'text'",
    ],
)
async def test_verify_finds_a_value_of_another_type_where_bytes_were_stored(sqlite_ledger: SqlLedger, change: str) -> None:
    await created(sqlite_ledger)
    await drop_triggers(sqlite_ledger)
    await sql(sqlite_ledger, change)
    assert not (await LedgerBooks(sqlite_ledger).verify("op-1")).ok


async def test_entries_carried_into_another_ledger_or_stream_do_not_verify(ledger: SqlLedger) -> None:
    await created(ledger)
    await ledger.open(opening("op-2"))
    await drop_triggers(ledger)
    await sql(
        ledger,
        "DELETE FROM entries WHERE stream = 'op-2'",
        "INSERT INTO entries SELECT 'op-2', seq, prev, hash, at, actor, kind, body FROM entries WHERE stream = 'op-1'",
    )
    assert not (await LedgerBooks(ledger).verify("op-2")).ok
    await sql(ledger, "UPDATE ledger SET ledger_id = 'x'")
    url = ledger.engines.url.render_as_string(hide_password=False)
    other = await SqlLedger.connect(url)
    try:
        assert not (await LedgerBooks(other).verify("op-1")).ok
    finally:
        await other.aclose()


async def test_a_tail_cut_off_with_its_row_is_found_by_a_later_witness(ledger: SqlLedger) -> None:
    await created(ledger)
    kept = (await ledger.entries("op-1"))[3]
    head = await ledger.record("op-1")
    await drop_triggers(ledger)
    await sql(ledger, "DELETE FROM entries WHERE seq > 3", ("UPDATE streams SET seq = 3, head = :head", {"head": kept.hash}))
    books = LedgerBooks(ledger)
    assert (await books.verify("op-1")).ok
    assert (await books.verify("op-1", Known(seq=3, hash=kept.hash))).ok
    found = await books.verify("op-1", Known(seq=head.seq, hash=head.hash))
    assert found.fault is not None
    assert found.fault.seq == head.seq
    await sql(ledger, "DELETE FROM entries")
    assert not (await books.verify("op-1", Known(seq=head.seq, hash=head.hash))).ok


EDITED = ("seq", "prev", "hash", "at", "actor", "kind", "body")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
async def test_verify_finds_any_edit_of_any_row(ledger: SqlLedger, data: st.DataObject) -> None:
    stream = f"s-{sha256_hex(str(await sql(ledger, 'SELECT count(*) FROM streams')).encode())[:12]}"
    await created(ledger, stream, job=stream)
    for _ in range(data.draw(st.integers(0, 3))):
        await ledger.append(stream, said(reading()), owner=FIRST)
    await ledger.append(stream, said(answer(job=stream)), owner=FIRST)
    await drop_triggers(ledger)
    rows: list[list[Any]] = [
        list(row) for row in await sql(ledger, (f"SELECT {', '.join(EDITED)} FROM entries WHERE stream = :s ORDER BY seq", {"s": stream}))
    ]
    edited = [list(row) for row in rows]
    victim = data.draw(st.integers(0, len(rows) - 1))
    match data.draw(st.sampled_from(["column", "byte", "drop", "swap", "insert"])):
        case "column":
            column = data.draw(st.integers(1, 5))
            edited[victim][column] = data.draw(st.text("0123456789abcdefxyzé", max_size=64))
        case "byte":
            body = bytearray(edited[victim][6])
            place = data.draw(st.integers(0, len(body) - 1))
            body[place] ^= data.draw(st.integers(1, 255))
            edited[victim][6] = bytes(body)
        case "drop":
            del edited[victim]
        case "swap":
            other = data.draw(st.integers(0, len(rows) - 1))
            edited[victim][1:], edited[other][1:] = edited[other][1:], edited[victim][1:]
        case _:
            edited = [*edited[: victim + 1], [0, *edited[victim][1:]], *edited[victim + 1 :]]
            edited = [[seq, *row[1:]] for seq, row in enumerate(edited)]
    insertion = f"INSERT INTO entries (stream, {', '.join(EDITED)}) VALUES (:stream, {', '.join(':' + name for name in EDITED)})"
    await sql(
        ledger,
        ("DELETE FROM entries WHERE stream = :s", {"s": stream}),
        *((insertion, {"stream": stream, **dict(zip(EDITED, row, strict=True))}) for row in edited),
    )
    assert (await LedgerBooks(ledger).verify(stream)).ok == (edited == rows)
