"""Prefect, installed from its own lock into an environment of its own: a server on a free port of loopback, and who runs its flow.

* The server's books are its own database. They are read, never written.
* Both processes end with the tests, also if these are killed.
"""

import os
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from adapters.embedded import free_port
from tests.live.environment import HERE, STARTS, python_of
from tests.live.leash import leashed, stop, until


@dataclass(frozen=True)
class Run:
    """One flow run, as the server's own database has it."""

    id: str
    key: str | None
    name: str
    state: str


@dataclass(frozen=True)
class Prefect:
    """A running server, and the deployment that is served."""

    url: str
    books: Path
    deployment: str

    def runs(self) -> list[Run]:
        """Every flow run there is."""
        with closing(sqlite3.connect(f"file:{self.books}?mode=ro", uri=True, timeout=10)) as books:
            return [Run(*row) for row in books.execute("select id, idempotency_key, name, state_type from flow_run")]

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request to the server, not by way of Sakshi."""
        return _ask(self.url, method, path, **more)


@contextmanager
def serving(folder: Path) -> Generator[Prefect]:
    """Server and flow while the block runs."""
    folder.mkdir(exist_ok=True)
    server, url = _started(folder)
    runner = _runner(folder, url)
    try:
        yield Prefect(url, folder / "prefect.db", _deployment(folder, url))
    finally:
        stop(runner, within=10)
        stop(server, within=10)


def _started(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    for _ in range(STARTS):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [python_of("prefect"), "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
        process = _process(folder, command, {})
        if until(lambda: process.poll() is not None or _answers(url), within=90) and process.poll() is None:  # noqa: B023 - called here
            return process, url
        stop(process, within=1)
    raise AssertionError(f"Prefect does not come up:\n{_log(folder)}")


def _runner(folder: Path, url: str) -> subprocess.Popen[bytes]:
    asked = {"PREFECT_API_URL": f"{url}/api", "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    return _process(folder, [python_of("prefect"), HERE / "prefect_flow.py"], asked)


def _process(folder: Path, command: list[str | Path], more: dict[str, str]) -> subprocess.Popen[bytes]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "SAKSHI_", "TEMPORAL_"))}
    environ |= {
        "PREFECT_HOME": str(folder),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    with (folder / "log").open("ab") as log:
        return leashed(command, environ=environ | more, stdout=log, stderr=log)


def _deployment(folder: Path, url: str) -> str:
    found: list[str] = []

    def is_there() -> bool:
        answer = _ask(url, "GET", "/api/deployments/name/count/live")
        found[:] = [answer.json()["id"]] if answer.status_code == 200 else []
        return bool(found)

    assert until(is_there, within=60), _log(folder)
    return found[0]


def _answers(url: str) -> bool:
    try:
        return _ask(url, "GET", "/api/health").status_code == 200
    except httpx.TransportError:
        return False


def _ask(url: str, method: str, path: str, **more: Any) -> httpx.Response:
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        return client.request(method, path, **more)


def _log(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-4000:]
