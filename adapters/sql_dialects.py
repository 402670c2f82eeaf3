"""SQLite and PostgreSQL, as far as they differ: how an engine is made, how a transaction begins, which errors pass by themselves.

* A transaction that writes holds its lock from the start: `BEGIN IMMEDIATE` on SQLite, the stream's row on PostgreSQL.
* What was committed is on disk: `synchronous=FULL`, `synchronous_commit=on`, whatever the server's default is.
* SQLite has one writing connection, waited for in turn, and readers beside it, which WAL never blocks. It is driven by its own
  threads: a transaction is one trip there and back, where an asynchronous driver would make one for each statement.
* What was taken away is nowhere in SQLite's files: what is freed is overwritten (`secure_delete`), and the WAL, which holds it as it was
  written, is emptied before the caller is told. A reader in the way puts that off to a later write or to the close, and nothing else.
  What a process left there that died, or closed with the reader still in the way, goes with the first write of the next one that opens
  the ledger. PostgreSQL keeps it until its vacuum and its own WAL have passed over it, which is its owner's business
  (docs/operating.md).
* No error of a driver leaves this package: its text may name a host, a role, or the values of a statement.
"""

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import Enum
from typing import Protocol, TypeVar, cast

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Dialect, Engine, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry, PoolResetState, QueuePool

from domain.errors import BadInput, Unreachable

_log = logging.getLogger("sakshi.ledger")
T = TypeVar("T")
BUSY_S = 30.0
READERS = 4
WRITE, READ = "BEGIN IMMEDIATE", "BEGIN"
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "recursive_triggers = ON",
    "trusted_schema = OFF",
    "secure_delete = ON",
)
_EMPTY_WAL = "PRAGMA wal_checkpoint(TRUNCATE)"
EMPTYING_MS = 100
EMPTYING_EVERY_S = 1.0
_TOOK_AWAY = "sakshi_took_away"


def took_away(connection: Connection) -> None:
    """Say that this transaction takes bytes away."""
    connection.info[_TOOK_AWAY] = True


class BareError(Exception):
    """An error of a server's driver that SQLAlchemy did not wrap, without its words."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__()
        self.sqlstate = sqlstate


DRIVER_ERRORS = (DBAPIError, PoolTimeout, BareError, OSError, TimeoutError)
"""All that a call into a database may raise."""


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


class Engines(Protocol):
    """How transactions reach a database. A body runs with a connection, and off the event loop's own code."""

    @property
    def embedded(self) -> bool:
        """A file of our own, which migrates itself."""
        ...

    @property
    def url(self) -> URL:
        """Where it is."""
        ...

    @property
    def dialect(self) -> Dialect:
        """Of the connections that write."""
        ...

    async def writing(self, body: "Callable[[Connection], T]") -> T:
        """Run a body that begins its own transaction on a connection that may write."""
        ...

    async def reading(self, body: "Callable[[Connection], T]") -> T:
        """Run a body in a transaction that sees one consistent state and writes nothing."""
        ...

    async def dispose(self) -> None:
        """Close every connection."""
        ...


class SqliteEngines:
    """A file: one thread that writes, and some that read."""

    embedded = True

    def __init__(self, url: URL) -> None:
        self.url = url
        self._writer = _sqlite(url, connections=1, begin=WRITE)
        self._reader = _sqlite(url, connections=READERS, begin=READ)
        self._writes = ThreadPoolExecutor(1, thread_name_prefix="ledger-writes")
        self._reads = ThreadPoolExecutor(READERS, thread_name_prefix="ledger-reads")
        self.dialect = self._writer.dialect
        self._in_wal = _wal_stands(url)
        self._tried = -EMPTYING_EVERY_S

    async def writing(self, body: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._writer.connect() as connection:
                value = body(connection)
                self._empty_wal(connection)
                return value

        return await asyncio.get_running_loop().run_in_executor(self._writes, run)

    async def reading(self, body: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._reader.connect() as connection, connection.begin():
                return body(connection)

        return await asyncio.get_running_loop().run_in_executor(self._reads, run)

    def _empty_wal(self, connection: Connection) -> None:
        """If it may hold what was taken away. The transaction is committed: nothing that goes wrong here is its failure."""
        self._in_wal = connection.info.pop(_TOOK_AWAY, False) or self._in_wal
        if not self._in_wal or time.monotonic() < self._tried + EMPTYING_EVERY_S:
            return
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        try:
            driver.execute(f"PRAGMA busy_timeout = {EMPTYING_MS}")
            self._in_wal = bool(driver.execute(_EMPTY_WAL).fetchone()[0])
        except sqlite3.Error:
            _log.warning("the WAL of the ledger cannot be emptied: what was taken away stands there until a later write, or the last close")
        finally:
            driver.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000:.0f}")
        self._tried = time.monotonic() if self._in_wal else -EMPTYING_EVERY_S

    def _last_try(self) -> None:
        """Whoever was in the way may be gone: another process that stays would not know that something is to be emptied."""
        if self._in_wal and self._tried >= 0:
            self._tried = -EMPTYING_EVERY_S
            with suppress(DBAPIError, PoolTimeout), self._writer.connect() as connection:
                self._empty_wal(connection)

    async def dispose(self) -> None:
        await asyncio.to_thread(self._writes.shutdown)
        await asyncio.to_thread(self._last_try)
        for threads, engine in ((self._writes, self._writer), (self._reads, self._reader)):
            await asyncio.to_thread(threads.shutdown)
            engine.dispose()


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
            return parsed.set(drivername="sqlite+pysqlite")
        case "postgresql" | "postgres":
            return parsed.set(drivername="postgresql+asyncpg", password=parsed.password if password is None else password)
        case _:
            raise BadInput("the ledger is kept in SQLite or PostgreSQL", hint="postgresql://ROLE@HOST:PORT/DATABASE or sqlite:///FILE")


def make_engines(url: URL) -> Engines:
    """Engines for a ledger. Connects to nothing yet."""
    if url.get_backend_name() == "sqlite":
        return SqliteEngines(url)
    from adapters.sql_postgres import make_postgres  # the one place that needs the driver; an embedded ledger never comes here

    return make_postgres(url)


def make_file(url: URL) -> None:
    """A SQLite ledger's file, readable by nobody else."""
    try:
        os.close(os.open(str(url.database), os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise Unreachable(
            f"the ledger's file cannot be opened: {error.strerror}", hint="check the folder and who may write there"
        ) from None


def _wal_stands(url: URL) -> bool:
    """Whether a ledger that is opened has a WAL, in which anybody may have left something."""
    try:
        return os.stat(f"{url.database}-wal").st_size > 0
    except OSError:
        return False


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


def _sqlite(url: URL, *, connections: int, begin: str) -> Engine:
    engine = create_engine(
        url,
        hide_parameters=True,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=BUSY_S,
        pool_reset_on_return=None,
        # Without a level of its own the driver begins no transactions, which would be deferred ones and could fail half-way.
        # A connection serves one thread at a time, not always the same one.
        connect_args={"timeout": BUSY_S, "isolation_level": None, "check_same_thread": False},
    )

    def connected(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for pragma in (*_PRAGMAS, *(() if begin == WRITE else ("query_only = ON",))):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def began(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    def returned(connection: DBAPIConnection, _: ConnectionPoolEntry, __: PoolResetState) -> None:
        if cast("sqlite3.Connection", connection).in_transaction:
            connection.rollback()

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", began)
    event.listen(engine.pool, "reset", returned)
    return engine
