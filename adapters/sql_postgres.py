"""PostgreSQL over asyncpg: a server, whose writers and readers share a pool.

A module of its own, loaded when a server is named: neither the driver nor SQLAlchemy's asynchronous half is wanted by an embedded
ledger, and whoever only looks at one would wait longer for these than for the answer.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import asyncpg
from sqlalchemy.engine import URL, Connection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adapters.sql_dialects import BUSY_S, BareError

T = TypeVar("T")


class PostgresEngines:
    """A server: writers and readers share a pool."""

    embedded = False

    def __init__(self, engine: AsyncEngine) -> None:
        self.url = engine.url
        self.dialect = engine.sync_engine.dialect
        self._writer = engine
        self._reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    async def writing(self, body: Callable[[Connection], T]) -> T:
        with _wrapped():
            async with self._writer.connect() as connection:
                return await connection.run_sync(body)

    async def reading(self, body: Callable[[Connection], T]) -> T:
        with _wrapped():
            async with self._reader.connect() as connection, connection.begin():
                return await connection.run_sync(body)

    async def dispose(self) -> None:
        await self._writer.dispose()


def make_postgres(url: URL) -> PostgresEngines:
    """Engines for a server. Connects to nothing yet."""
    engine = create_async_engine(
        url,
        hide_parameters=True,
        pool_size=10,
        max_overflow=10,
        pool_timeout=BUSY_S,
        connect_args={
            "timeout": 10.0,
            "command_timeout": BUSY_S,
            "server_settings": {"application_name": "sakshi", "synchronous_commit": "on", "lock_timeout": "10s", "timezone": "UTC"},
        },
    )
    return PostgresEngines(engine)


@contextmanager
def _wrapped() -> Generator[None]:
    """SQLAlchemy wraps what the driver raises in a statement, and not all of what it raises while connecting."""
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise BareError(getattr(error, "sqlstate", None)) from None
