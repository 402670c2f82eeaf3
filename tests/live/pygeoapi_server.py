"""pygeoapi, installed from its own lock into an environment of its own, and run on a free port of loopback.

* The server's books are its own job database. They are read, never written.
* The server ends with the tests, also if these are killed.
"""

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from adapters.embedded import free_port
from tests.live.environment import HERE, STARTS, python_of
from tests.live.leash import leashed, stop, until

PROCESSES = {"echo": "Echo", "hello-world": "HelloWorld", "at-once": "at_once.AtOnce"}
Job = dict[str, Any]


@dataclass(frozen=True)
class Server:
    """A running server. `books` is its job database; a server without a job manager keeps none."""

    url: str
    books: Path

    def jobs(self) -> list[Job]:
        """Every job that the server has, as its own database says. What is only half written is not JSON, and is read again."""
        found: list[Job] = []

        def is_whole() -> bool:
            try:
                found[:] = json.loads(self.books.read_text() or "{}").get("_default", {}).values() if self.books.exists() else []
            except ValueError:
                return False
            return True

        assert until(is_whole, within=10)
        return found

    def get(self, path: str, **more: Any) -> httpx.Response:
        """What the server itself says to anyone."""
        return self.ask("GET", path, **more)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request to the server, not by way of Sakshi."""
        with httpx.Client(base_url=self.url, trust_env=False, timeout=30) as client:
            return client.request(method, path, **more)


@contextmanager
def serving(folder: Path, *, manager: bool = True) -> Generator[Server]:
    """The server while the block runs. Without a `manager` it keeps no jobs and executes at once: pygeoapi's own default."""
    folder.mkdir(exist_ok=True)
    process, server = _started(folder, manager=manager)
    try:
        yield server
    finally:
        stop(process, within=10)


def _started(folder: Path, *, manager: bool) -> tuple[subprocess.Popen[bytes], Server]:
    """A free port may be taken by another process before the server has it: then another one is tried."""
    for _ in range(STARTS):
        port = free_port()
        server = Server(f"http://127.0.0.1:{port}", folder / "jobs.json")
        (folder / "config.yml").write_text(json.dumps(_config(server, folder, port, manager=manager)))
        (folder / "openapi.yml").write_text(json.dumps({"openapi": "3.0.2", "info": {"title": "live", "version": "1"}, "paths": {}}))
        (folder / "out").mkdir(exist_ok=True)
        environ = {"PYGEOAPI_CONFIG": str(folder / "config.yml"), "PYGEOAPI_OPENAPI": str(folder / "openapi.yml"), "PYTHONPATH": str(HERE)}
        command = [
            python_of("pygeoapi"),
            "-m",
            "flask",
            "--app",
            "pygeoapi.flask_app",
            "run",
            "--port",
            str(port),
            "--no-reload",
            "--no-debugger",
        ]
        with (folder / "server.log").open("ab") as log:
            process = leashed(command, environ={**os.environ, **environ}, stdout=log, stderr=log)
        if until(lambda: process.poll() is not None or _answers(server), within=60) and process.poll() is None:  # noqa: B023 - called here
            return process, server
        stop(process, within=1)
    raise AssertionError(f"pygeoapi does not come up:\n{(folder / 'server.log').read_text()[-4000:]}")


def _config(server: Server, folder: Path, port: int, *, manager: bool) -> dict[str, Any]:
    nobody = {"name": "nobody", "url": server.url}
    keeps = {"manager": {"name": "TinyDB", "connection": str(server.books), "output_dir": str(folder / "out")}}
    return {
        "server": {
            "bind": {"host": "127.0.0.1", "port": port},
            "url": server.url,
            "mimetype": "application/json; charset=UTF-8",
            "encoding": "utf-8",
            "languages": ["en-US"],
            "limits": {"default_items": 100, "max_items": 1000},
            "map": {"url": server.url, "attribution": "none"},
            **(keeps if manager else {}),
        },
        "logging": {"level": "ERROR"},
        "metadata": {
            "identification": {"title": "live", "description": "live", "keywords": ["live"], "terms_of_service": "none", "url": server.url},
            "license": nobody,
            "provider": nobody,
            "contact": nobody,
        },
        "resources": {name: {"type": "process", "processor": {"name": plugin}} for name, plugin in PROCESSES.items()},
    }


def _answers(server: Server) -> bool:
    try:
        return server.get("/processes", params={"f": "json"}).status_code == 200
    except httpx.TransportError:
        return False
