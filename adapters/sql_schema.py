"""Making the ledger's tables, and refusing a ledger whose tables are not those this code knows.

* An embedded ledger (SQLite) brings itself up to date when it is opened; its write lock lets one process do it.
* A PostgreSQL ledger is brought up to date by `migrate` alone, under an advisory lock.
* A ledger that is newer than this code is never touched.
"""

import asyncio
import threading
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.engine import URL

from adapters.sql_dialects import DRIVER_ERRORS, Engines, Trouble, ledger_url, make_engines, make_file, trouble_of, unreachable
from adapters.sql_projection import SCHEMA
from domain.errors import BadInput

MIGRATIONS = Path(__file__).parent / "migrations"
TRIES = 8
_LOCK_KEY = 0x53414B53  # "SAKS"
_ALEMBIC = threading.Lock()
"""Alembic keeps the migration under way in globals of its process."""


async def migrate(url: str, password: str | None = None) -> None:
    """Make a ledger's tables, or bring them to this version. Safe to repeat and to run twice at once."""
    await migrate_parsed(ledger_url(url, password))


async def migrate_parsed(url: URL) -> None:
    # In a thread with a loop of its own: the lock around Alembic's globals may be waited for without stopping anyone.
    await asyncio.to_thread(_migrate, url)


def version(connection: Connection) -> str | None:
    """The newest migration that the ledger has seen; None if there is none."""
    tables = "sqlite_master WHERE type = 'table' AND name" if connection.dialect.name == "sqlite" else "pg_tables WHERE tablename"
    if connection.execute(text(f"SELECT 1 FROM {tables} = 'alembic_version'")).first() is None:  # noqa: S608 - two constants
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def check(found: str | None) -> None:
    """Raises BadInput for a ledger that this code cannot use as it is."""
    if found == SCHEMA:
        return
    hint = "python starter.py ledger migrate"
    if found is None:
        raise BadInput("the ledger has no tables yet", hint=hint)
    if found > SCHEMA:
        raise newer()
    raise BadInput("the ledger's tables are of an older version", hint=hint)


def newer() -> BadInput:
    return BadInput("the ledger was made by a newer version of Sakshi", hint="use that version, or a newer one; nothing was changed")


def _migrate(url: URL) -> None:
    with _ALEMBIC:
        asyncio.run(_upgrade(url))


async def _upgrade(url: URL) -> None:
    if url.get_backend_name() == "sqlite":
        make_file(url)
    engines = make_engines(url)
    try:
        for attempt in range(TRIES):
            try:
                await _upgrade_once(engines)
            except DRIVER_ERRORS as error:
                # Two processes that switch a new file to WAL at once: SQLite answers "locked" at once, without waiting.
                trouble = trouble_of(error)
                if attempt + 1 == TRIES or trouble is Trouble.REFUSED:
                    raise unreachable(trouble) from None
                await asyncio.sleep(0.02 * 2**attempt)
            else:
                return
    finally:
        await engines.dispose()


async def _upgrade_once(engines: Engines) -> None:
    def upgrade(connection: Connection) -> None:
        with connection.begin():
            _upgrade_locked(connection)

    await engines.writing(upgrade)


def _upgrade_locked(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
    found = version(connection)
    if found == SCHEMA:
        return
    if found is not None and found > SCHEMA:
        raise newer()
    from alembic import command  # here, past the question whether there is anything to do: it costs more than opening a ledger
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
