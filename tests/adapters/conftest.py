from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.sql_ledger import SqlLedger, migrate


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger may be made, on each database in turn."""
    return f"sqlite:///{tmp_path / 'ledger.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
async def ledger(ledger_url: str) -> AsyncIterator[SqlLedger]:
    await migrate(ledger_url)
    ledger = await SqlLedger.connect(ledger_url)
    yield ledger
    await ledger.aclose()


@pytest.fixture
async def sqlite_ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    ledger = await SqlLedger.connect(f"sqlite:///{tmp_path / 'ledger.db'}")
    yield ledger
    await ledger.aclose()


@pytest.fixture
async def postgres_ledger(postgres_url: str) -> AsyncIterator[SqlLedger]:
    await migrate(postgres_url)
    ledger = await SqlLedger.connect(postgres_url)
    yield ledger
    await ledger.aclose()
