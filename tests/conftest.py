"""A real PostgreSQL for the tests that ask for one: one server per test process, one database per test.

The server ends with the process that started it, however that ends: by the fixture's teardown, at exit (SIGTERM included), and
for the rest by a small process that waits for the end of its standard input and then stops the server.
"""

import secrets
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from hypothesis import HealthCheck, settings

from tests.postgresql import Server, postgresql

# The machine is shared: how long an example takes, or takes to draw, says nothing about the code.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


def pytest_configure() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would every command that a test starts and then stops by it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """A test process asks pytest-rerunfailures about each test on a socket, in two small writes: unasked, the kernel keeps the second
    back for forty milliseconds, which for all tests is five minutes."""
    told = getattr(getattr(session.config, "failures_db", None), "sock", None)
    if isinstance(told, socket.socket) and hasattr(session.config, "workerinput"):
        told.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@dataclass(frozen=True)
class Postgres:
    """The running server, as tests ask for it."""

    server: Server

    def url(self, database: str) -> str:
        return self.server.url(database)

    async def connect(self, database: str = "postgres") -> asyncpg.Connection:
        return await asyncpg.connect(host=self.server.socket, user="postgres", database=database)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with postgresql(Path(tempfile.mkdtemp(prefix="sakshi-pg-")), fsync=False) as server:
        yield Postgres(server)


@pytest.fixture
async def postgres_url(postgres: Postgres) -> AsyncIterator[str]:
    """An empty database of its own."""
    name = f"t{secrets.token_hex(8)}"
    admin = await postgres.connect()
    try:
        await admin.execute(f"CREATE DATABASE {name}")
        yield postgres.url(name)
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await admin.close()
