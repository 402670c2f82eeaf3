import asyncio
import os
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from adapters.sql_ledger import SqlLedger, migrate
from adapters.sql_projection import SCHEMA
from adapters.sql_schema import MIGRATIONS
from adapters.sql_tables import metadata
from domain.errors import BadInput, Unreachable
from tests.adapters.sql_ledger_cases import FIRST, created, reading, said, sql
from tests.conftest import Postgres


async def test_the_migrations_make_the_tables_that_the_code_speaks_of(ledger: SqlLedger) -> None:
    def differences(connection: Connection) -> list[object]:
        return compare_metadata(MigrationContext.configure(connection), metadata)

    assert await ledger.engines.writing(differences) == []


def test_the_newest_migration_is_the_one_that_the_code_names() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == SCHEMA


async def test_a_ledger_keeps_its_id_and_its_entries_when_it_is_opened_again(ledger: SqlLedger, ledger_url: str) -> None:
    await created(ledger)
    await migrate(ledger_url)
    again = await SqlLedger.connect(ledger_url)
    try:
        assert again.ledger_id == ledger.ledger_id
        assert await again.record("op-1") == await ledger.record("op-1")
    finally:
        await again.aclose()


async def test_many_that_make_one_ledger_at_once_make_one(ledger_url: str) -> None:
    await asyncio.gather(*(migrate(ledger_url) for _ in range(4)))
    ledgers = await asyncio.gather(*(SqlLedger.connect(ledger_url) for _ in range(4)))
    assert len({one.ledger_id for one in ledgers}) == 1
    assert len(ledgers[0].ledger_id) == 32
    for one in ledgers:
        await one.aclose()


async def test_an_embedded_ledger_makes_itself_in_a_file_of_its_owner(tmp_path: Path) -> None:
    ledger = await SqlLedger.connect(f"sqlite:///{tmp_path / 'x.db'}")
    try:
        assert stat.S_IMODE(os.stat(tmp_path / "x.db").st_mode) == 0o600
        assert [tuple(row) for row in await sql(ledger, "PRAGMA journal_mode")] == [("wal",)]
        assert [tuple(row) for row in await sql(ledger, "PRAGMA synchronous")] == [(2,)]
        assert [tuple(row) for row in await sql(ledger, "PRAGMA foreign_keys")] == [(1,)]
    finally:
        await ledger.aclose()


async def test_postgres_commits_to_disk_whatever_its_default_is(postgres_ledger: SqlLedger) -> None:
    await sql(postgres_ledger, "SELECT 1")
    assert [tuple(row) for row in await sql(postgres_ledger, "SHOW synchronous_commit")] == [("on",)]


async def test_postgres_without_tables_is_not_made_by_whoever_connects(postgres_url: str) -> None:
    with pytest.raises(BadInput) as missing:
        await SqlLedger.connect(postgres_url)
    assert missing.value.hint == "python starter.py ledger migrate"


async def test_a_ledger_newer_than_the_code_is_left_alone(ledger: SqlLedger, ledger_url: str) -> None:
    await sql(ledger, "UPDATE alembic_version SET version_num = '9999'")
    for opening in (SqlLedger.connect(ledger_url), migrate(ledger_url)):
        with pytest.raises(BadInput):
            await opening
    assert [tuple(row) for row in await sql(ledger, "SELECT version_num FROM alembic_version")] == [("9999",)]


async def test_an_older_postgres_ledger_asks_to_be_migrated(postgres_ledger: SqlLedger, postgres_url: str) -> None:
    await sql(postgres_ledger, "UPDATE alembic_version SET version_num = '0000'")
    with pytest.raises(BadInput) as older:
        await SqlLedger.connect(postgres_url)
    assert older.value.hint == "python starter.py ledger migrate"


@pytest.mark.parametrize("url", ["", "x", "mysql://u:hunter2@h/d", "sqlite://", "sqlite:///:memory:", "postgresql://u:hunter2@h:port/d"])
async def test_an_address_that_is_none_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        await SqlLedger.connect(url)
    assert "hunter2" not in f"{refused.value!r} {refused.value.hint}"


async def test_a_ledger_that_does_not_answer_is_unreachable_in_our_own_words(tmp_path: Path, postgres: Postgres) -> None:
    for url in (
        "postgresql://ada:hunter2@127.0.0.1:1/sakshi",
        postgres.url("there_is_none"),
        f"postgresql://ada:hunter2@/sakshi?host={tmp_path}",
        f"sqlite:///{tmp_path / 'no folder' / 'x.db'}",
        f"sqlite:///{tmp_path}",
    ):
        with pytest.raises(Unreachable) as unreachable:
            await SqlLedger.connect(url, password=None if "hunter2" in url else "hunter2")
        words = f"{unreachable.value} {unreachable.value.hint} {unreachable.value.__cause__}"
        assert not any(word in words for word in ("hunter2", "127.0.0.1", "ada", str(tmp_path), "asyncpg", "sqlite3"))
        assert unreachable.value.__context__ is None or unreachable.value.__suppress_context__


async def test_a_file_that_is_no_ledger_is_unreachable_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 1000)
    with pytest.raises(Unreachable):
        await SqlLedger.connect(f"sqlite:///{tmp_path / 'x.db'}")
    assert (tmp_path / "x.db").read_bytes() == b"no database" * 1000


async def test_on_postgres_an_appender_appends_and_a_reader_reads(
    postgres: Postgres, postgres_ledger: SqlLedger, postgres_url: str
) -> None:
    suffix = postgres_url.partition("/t")[2].partition("?")[0]
    logins = {"appender": f"a_{suffix}", "reader": f"r_{suffix}"}
    await created(postgres_ledger)
    for role, login in logins.items():
        await sql(postgres_ledger, f"CREATE ROLE {login} LOGIN", f"GRANT sakshi_{role} TO {login}")
    opened = {role: await SqlLedger.connect(postgres_url.replace("postgres@", f"{login}@")) for role, login in logins.items()}
    try:
        appended = await opened["appender"].append("op-1", said(reading()), owner=FIRST, payloads=[b"x"])
        assert await opened["reader"].record("op-1") == appended
        with pytest.raises(Unreachable):
            await opened["reader"].append("op-1", said(reading()), owner=FIRST)
        for statement in ("ALTER TABLE entries DISABLE TRIGGER ALL", "DROP TABLE entries CASCADE", "DELETE FROM entries"):
            with pytest.raises(Exception, match=r"permission denied|must be owner"):
                await sql(opened["appender"], statement)
    finally:
        for one in opened.values():
            await one.aclose()
        await sql(postgres_ledger, *(f"DROP ROLE {login}" for login in logins.values()))
