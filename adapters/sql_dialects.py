"""SQLite and PostgreSQL, as far as they differ: how an engine is made, how a transaction begins, which errors pass by themselves.

* A transaction that writes holds its lock from the start: `BEGIN IMMEDIATE` on SQLite, the stream's row on PostgreSQL.
* What was committed is on disk: `synchronous=FULL`, `synchronous_commit=on`, whatever the server's default is.
* SQLite has one writing connection, waited for in turn, and readers beside it, which WAL never blocks.
* No error of a driver leaves this package: its text may name a host, a role, or the values of a statement.
"""

import os
from dataclasses import dataclass
from enum import Enum

import asyncpg
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry, PoolResetState

from domain.errors import BadInput, Unreachable

BUSY_S = 30.0
READERS = 4
WRITE, READ = "BEGIN IMMEDIATE", "BEGIN"
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON", "trusted_schema = OFF")
DRIVER_ERRORS = (DBAPIError, PoolTimeout, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
"""All that a call into a database may raise. Connecting raises some of these bare."""


class Trouble(Enum):
    """What an error of a driver means for the transaction that met it."""

    CONFLICT = "another transaction came first; nothing was written; do it again"
    LOST = "the connection went; whether a commit under way was done is not known"
    REFUSED = "the database does not let us in"
    BROKEN = "the database cannot do it"


_BY_SQLSTATE = (
    ("40", Trouble.CONFLICT),  # serialization failure, deadlock
    ("55P03", Trouble.CONFLICT),  # lock timeout
    ("08", Trouble.LOST),
    ("57P", Trouble.LOST),  # the server stops, or starts
    ("53300", Trouble.LOST),  # too many connections
    ("28", Trouble.REFUSED),
    ("3D000", Trouble.REFUSED),  # no such database
    ("42501", Trouble.REFUSED),  # the role may not
)


@dataclass(frozen=True, slots=True)
class Engines:
    """One engine that writes and one that reads; on PostgreSQL they share a pool."""

    writer: AsyncEngine
    reader: AsyncEngine

    @property
    def embedded(self) -> bool:
        """A file of our own, which migrates itself."""
        return self.writer.dialect.name == "sqlite"

    async def dispose(self) -> None:
        await self.writer.dispose()
        await self.reader.dispose()


def ledger_url(url: str, password: str | None) -> URL:
    """The address of a ledger with the driver that we use. Raises BadInput, which does not repeat the address."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadInput("the ledger's address cannot be read", hint="postgresql://ROLE@HOST:PORT/DATABASE or sqlite:///FILE") from None
    match parsed.get_backend_name():
        case "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise BadInput("a ledger in memory would keep nothing", hint="sqlite:///FILE")
            return parsed.set(drivername="sqlite+aiosqlite")
        case "postgresql" | "postgres":
            return parsed.set(drivername="postgresql+asyncpg", password=parsed.password if password is None else password)
        case _:
            raise BadInput("the ledger is kept in SQLite or PostgreSQL", hint="postgresql://ROLE@HOST:PORT/DATABASE or sqlite:///FILE")


def make_engines(url: URL) -> Engines:
    """Engines for a ledger. Connects to nothing yet."""
    if url.get_backend_name() == "sqlite":
        return Engines(_sqlite(url, connections=1, begin=WRITE), _sqlite(url, connections=READERS, begin=READ))
    writer = create_async_engine(
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
    return Engines(writer, writer.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True))


def make_file(url: URL) -> None:
    """A SQLite ledger's file, readable by nobody else."""
    try:
        os.close(os.open(str(url.database), os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise Unreachable(
            f"the ledger's file cannot be opened: {error.strerror}", hint="check the folder and who may write there"
        ) from None


def trouble_of(error: BaseException) -> Trouble:
    """What an error of a driver means."""
    if isinstance(error, IntegrityError):
        return Trouble.CONFLICT
    if isinstance(error, DBAPIError):
        state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        if _sqlite_word(error) in {"SQLITE_BUSY", "SQLITE_LOCKED"}:
            return Trouble.CONFLICT
        if error.connection_invalidated:
            return Trouble.LOST
        return _by_sqlstate(state) or Trouble.BROKEN
    return _by_sqlstate(getattr(error, "sqlstate", None)) or Trouble.LOST


def unreachable(trouble: Trouble) -> Unreachable:
    """Our words for a database that does not answer."""
    match trouble:
        case Trouble.CONFLICT:
            return Unreachable("the ledger is too busy", hint="try again")
        case Trouble.REFUSED:
            return Unreachable("the ledger refuses the role, its password or the database's name", hint="check SAKSHI_LEDGER_URL")
        case Trouble.LOST:
            return Unreachable("the ledger does not answer", hint="check SAKSHI_LEDGER_URL, and that the database runs")
        case Trouble.BROKEN:
            return Unreachable(
                "the ledger's database cannot do what was asked", hint="its own log says why; is the disk full or read-only?"
            )


def _by_sqlstate(state: object) -> Trouble | None:
    return next((trouble for start, trouble in _BY_SQLSTATE if str(state).startswith(start)), None)


def _sqlite_word(error: DBAPIError) -> str:
    name = str(getattr(error.orig, "sqlite_errorname", ""))
    return "_".join(name.split("_")[:2])


def _sqlite(url: URL, *, connections: int, begin: str) -> AsyncEngine:
    engine = create_async_engine(
        url,
        hide_parameters=True,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=BUSY_S,
        pool_reset_on_return=None,
        # Without a level of its own the driver begins no transactions, which would be deferred ones and could fail half-way.
        connect_args={"timeout": BUSY_S, "isolation_level": None},
    )

    def connected(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for pragma in (*_PRAGMAS, *(() if begin == WRITE else ("query_only = ON",))):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def began(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    def returned(connection: DBAPIConnection, _: ConnectionPoolEntry, state: PoolResetState) -> None:
        # A rollback is a trip to the driver's thread; only a transaction that was cut off needs one.
        if state.asyncio_safe and connection.driver_connection.in_transaction:
            connection.rollback()

    event.listen(engine.sync_engine, "connect", connected)
    event.listen(engine.sync_engine, "begin", began)
    event.listen(engine.sync_engine.pool, "reset", returned)
    return engine
