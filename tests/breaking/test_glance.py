"""`status` by the short way says what the ledger proper says, or leaves it to that."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from adapters.client import sakshi
from adapters.settings import Settings, load_settings
from adapters.sql_ledger import SqlLedger
from adapters.sql_projection import StreamRow
from adapters.sqlite_glance import glance
from domain.errors import SakshiError
from tests.adapters.sql_ledger_cases import created

ROOT = Path(__file__).parents[2]
IDS = ("op-1", "op-10", "op-2", "x.1.sim@1")
ODD = ("", "op", "op-", "op-1", "op-10", "op-2", "x", "OP-1", "op_1", "%", "op-1\0", "\ud800", "é", "\U0010ffff", "op-1" * 100, "op-1'--")
KILLED = """
import asyncio, os, sys
from adapters.sql_ledger import SqlLedger
from tests.adapters.sql_ledger_cases import created

async def main():
    await created(await SqlLedger.connect(sys.argv[1]), "op-1")
    os._exit(9)

asyncio.run(main())
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    async def make() -> None:
        ledger = await SqlLedger.connect(f"sqlite:///{tmp_path / 'home' / 'ledger.db'}")
        for stream in IDS:
            await created(ledger, stream, job=stream)
        await ledger.aclose()

    (tmp_path / "home").mkdir(mode=0o700)
    asyncio.run(make())
    return tmp_path / "home"


def ordinary(settings: Settings, prefix: str) -> StreamRow | type[SakshiError]:
    async def ask() -> StreamRow:
        async with sakshi(settings) as there:
            return await there.books.row(await there.find(prefix))

    try:
        return asyncio.run(ask())
    except SakshiError as error:
        return type(error)


def agrees(home: Path, prefix: str = "op-10") -> bool:
    """Whether the short way answers; if it does, it is the answer."""
    settings = load_settings(home=home)
    quick = glance(settings, prefix)
    assert quick is None or quick == ordinary(settings, prefix)
    return quick is not None


def change(home: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as connection:
        connection.execute(statement, values)
        connection.commit()


def test_whatever_is_typed_means_what_it_means_to_the_ledger(home: Path) -> None:
    assert [prefix for prefix in ODD if agrees(home, prefix)] == ["op-1", "op-10", "op-2", "x"]


def test_a_row_that_was_tampered_with_is_the_same_row_either_way(home: Path) -> None:
    for column in ("state", "seq", "head", "standing", "updated_at", "version", "job"):
        with closing(sqlite3.connect(home / "ledger.db")) as connection:
            kept = connection.execute(f"SELECT {column} FROM streams WHERE stream = 'op-10'").fetchone()
        for value in (b"\xff", 1.5, "{", ""):
            change(home, f"UPDATE streams SET {column} = ? WHERE stream = 'op-10'", value)
            assert agrees(home)
        change(home, f"UPDATE streams SET {column} = ? WHERE stream = 'op-10'", *kept)


def test_a_row_that_is_no_text_is_left_to_the_ledger(home: Path) -> None:
    change(home, "UPDATE streams SET state = CAST(x'ff' AS TEXT) WHERE stream = 'op-10'")
    assert not agrees(home)


@pytest.mark.parametrize("version", ["0000", "0002", ""])
def test_tables_of_another_version_are_left_to_the_ledger(home: Path, version: str) -> None:
    change(home, f"UPDATE alembic_version SET version_num = '{version}'")
    assert glance(load_settings(home=home), "op-10") is None


def test_a_file_that_is_reached_by_a_link_is_the_same_file(home: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(home)
    assert agrees(tmp_path / "linked")
    (tmp_path / "other").mkdir(mode=0o700)
    (tmp_path / "other" / "ledger.db").symlink_to(home / "ledger.db")
    assert agrees(tmp_path / "other")


def test_a_writer_at_work_hides_nothing_that_was_committed(home: Path) -> None:
    writer = sqlite3.connect(home / "ledger.db", isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("UPDATE streams SET state = 'unseen'")
    row = glance(load_settings(home=home), "op-10")
    assert row is not None
    assert row.state == "accepted"
    writer.rollback()
    writer.close()


def test_what_was_written_before_a_sigkill_is_seen(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    subprocess.run([sys.executable, "-c", KILLED, f"sqlite:///{home / 'ledger.db'}"], cwd=ROOT, check=False)
    assert (home / "ledger.db-wal").stat().st_size > 0
    row = glance(load_settings(home=home), "op-1")
    assert row is not None
    assert row.state == "accepted"
    assert agrees(home, "op-1")


def test_what_is_no_ledger_is_left_to_whoever_says_so(home: Path, tmp_path: Path) -> None:
    for name, content in (("garbage", b"garbage" * 1000), ("empty", b""), ("cut", (home / "ledger.db").read_bytes()[:5000])):
        (tmp_path / name).mkdir(mode=0o700)
        (tmp_path / name / "ledger.db").write_bytes(content)
        assert not agrees(tmp_path / name)
    (tmp_path / "folder" / "ledger.db").mkdir(parents=True)
    assert not agrees(tmp_path / "folder")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "ledger.db")
    assert glance(load_settings(home=tmp_path / "pipe"), "op-1") is None
    assert glance(load_settings(home=tmp_path / "nowhere"), "op-1") is None
    assert not (tmp_path / "nowhere").exists()


def test_a_home_that_cannot_be_looked_into_is_left_to_whoever_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert glance(load_settings(home=tmp_path / ("long" * 100)), "op-1") is None

    def forbidden(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_file", forbidden)
    assert glance(load_settings(home=tmp_path), "op-1") is None
