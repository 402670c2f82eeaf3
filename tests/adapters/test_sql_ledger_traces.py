"""What was taken away from a SQLite ledger stands in none of its files, not even as a trace."""

import logging
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from adapters import sql_dialects
from adapters.sql_ledger import SqlLedger
from domain.evidence import Erased, Ref
from domain.fingerprint import sha256_hex
from tests.adapters.sql_ledger_cases import FIRST, NOW, answer, intent, opening, policy, reading, said

PLANTED = b"planted-value-"
SIZES = (60, 400, 3_900, 20_000)


def page(number: int, size: int = 60) -> bytes:
    return b"%s%06d-" % (PLANTED, number) * (size // 21 + 1)


def traces(folder: Path) -> list[str]:
    """The files in which anything planted stands."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and PLANTED in path.read_bytes())


def erased(*payloads: bytes) -> Erased:
    return Erased(at=NOW, actor="human:ada", refs=tuple(map(sha256_hex, payloads)), by="ada", reason="asked for")


async def opened(folder: Path) -> SqlLedger:
    ledger = await SqlLedger.connect(f"sqlite:///{folder / 'ledger.db'}")
    await ledger.open(opening())
    return ledger


async def keep(ledger: SqlLedger, *pages: bytes) -> None:
    await ledger.append("op-1", said(reading()), owner=None, payloads=pages)


async def test_what_was_erased_stands_in_none_of_the_files_whatever_its_size(tmp_path: Path) -> None:
    drawn = Random(20261130)
    ledger = await opened(tmp_path)
    kept: list[bytes] = []
    for number in range(150):
        kept.append(page(number, drawn.choice(SIZES)))
        await keep(ledger, kept[-1])
        if number % 3 == 0 and len(kept) > 20:
            await ledger.erase("op-1", erased(*(kept.pop(drawn.randrange(len(kept))) for _ in range(3))))
    assert traces(tmp_path)
    await ledger.erase("op-1", erased(*kept))
    assert (tmp_path / "ledger.db-wal").exists()
    assert traces(tmp_path) == []
    await ledger.aclose()
    assert traces(tmp_path) == []


async def test_what_was_pruned_when_an_operation_ended_stands_in_none_of_the_files(tmp_path: Path) -> None:
    ledger = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    given = opening()
    facts = {**given.evidence.facts, "sensitive": True}
    await ledger.open(replace(given, evidence=given.evidence.model_copy(update={"facts": facts})))
    await ledger.append("op-1", said(policy()), owner=FIRST)
    await ledger.append("op-1", said(policy(), intent()), owner=FIRST)
    named = answer().model_copy(update={"sensitive": Ref(digest=sha256_hex(page(1)), size=len(page(1)))})
    await ledger.append("op-1", said(named), owner=FIRST, payloads=[page(1)])
    assert traces(tmp_path)
    record = await ledger.append("op-1", said(reading("terminal", verdict="failed")), owner=FIRST)
    assert (record.standing.state, record.standing.apart) == ("failed", ())
    assert traces(tmp_path) == []
    await ledger.aclose()


async def test_a_reader_in_the_way_puts_it_off_to_a_later_write_and_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_dialects, "EMPTYING_MS", 1)
    ledger = await opened(tmp_path)
    await keep(ledger, page(1))
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM entries").fetchone() == (2,)
        await ledger.erase("op-1", erased(page(1)))
        assert traces(tmp_path)
        await keep(ledger)  # too soon to try again: a reader that stays does not slow each write
        reader.execute("COMMIT")
        assert traces(tmp_path)
        await keep(ledger)
        assert traces(tmp_path)
        monkeypatch.setattr(sql_dialects, "EMPTYING_EVERY_S", 0.0)
        await keep(ledger)
        assert traces(tmp_path) == []
    assert len(await ledger.entries("op-1")) == 6
    await ledger.aclose()


async def test_a_wal_that_cannot_be_emptied_is_no_failure_of_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sql_dialects, "_EMPTY_WAL", "PRAGMA wal_checkpoint(TRUNCATE) of the moon")
    ledger = await opened(tmp_path)
    await keep(ledger, page(1))
    with caplog.at_level(logging.WARNING):
        await ledger.erase("op-1", erased(page(1)))
    assert "cannot be emptied" in caplog.text
    assert [entry.cause for entry in await ledger.entries("op-1")][-1] == "erased.erased"
    await ledger.aclose()
    assert traces(tmp_path) == []
