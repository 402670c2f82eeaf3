import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.embedded import bind_simulator_credential, free_port, running
from adapters.processes import Process, identity_of, stop_leftover
from adapters.settings import ROOT, Settings
from adapters.stack_file import Component, Stack, locked, remember, remembered_stack, running_stack
from domain.errors import BadInput, Refused, Unreachable
from tests.installation import WITHIN

PORTS = {"temporal": 1, "ui": 2, "simulator": 3}
HOLDER = """
import sys, time
from pathlib import Path
from adapters.stack_file import Stack, locked, remember
home = Path(sys.argv[1])
with locked(home) as ours:
    remember(home, Stack(pid=1, ready=True, ports={"temporal": 1, "ui": 2, "simulator": 3}))
    print(ours, flush=True)
    sys.stdin.read()
"""
PARENT = """
import asyncio, os, sys
from pathlib import Path
from adapters.processes import Process
async def main():
    child = await Process.start(["sleep", "600"], log=Path(sys.argv[1]), environ=os.environ, cwd=Path.cwd())
    print(child.pid, flush=True)
    await child.wait()
asyncio.run(main())
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE", "SAKSHI_LEDGER_URL", "SAKSHI_RESULTS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-profile"))
    return Settings(home=tmp_path / "home")


def started(script: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


async def until(condition) -> None:
    async with asyncio.timeout(WITHIN):
        while not condition():  # noqa: ASYNC110 - other processes set no event of ours
            await asyncio.sleep(0.02)


def test_a_stack_is_found_while_its_process_lives_and_not_a_moment_longer(tmp_path: Path):
    holder = started(HOLDER, str(tmp_path))
    try:
        assert said(holder) == "True"
        found = running_stack(tmp_path)
        assert found is not None
        assert found.ui == "http://127.0.0.1:2"
    finally:
        ended(holder)
    assert running_stack(tmp_path) is None
    assert remembered_stack(tmp_path).ports == PORTS


def test_the_lock_is_held_once_and_free_again_afterwards(tmp_path: Path):
    holder = started(HOLDER, str(tmp_path))
    try:
        assert said(holder) == "True"
        with locked(tmp_path) as ours:
            assert not ours
    finally:
        ended(holder)
    with locked(tmp_path) as ours:
        assert ours


def test_looking_at_a_stack_does_not_take_its_lock(tmp_path: Path):
    remember(tmp_path, Stack(ready=True, ports=PORTS))
    (tmp_path / "stack.lock").touch()
    assert running_stack(tmp_path) is None
    with locked(tmp_path) as ours:
        assert ours


def test_a_file_that_is_no_stack_says_nothing(tmp_path: Path):
    assert remembered_stack(tmp_path) == Stack()
    (tmp_path / "stack.json").write_text("{broken")
    assert remembered_stack(tmp_path) == Stack()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start stops what was left")
async def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path):
    parent = started(PARENT, str(tmp_path / "log"))
    child = int(said(parent))
    assert identity_of(child) is not None
    ended(parent)
    await until(lambda: identity_of(child) is None)


async def test_what_a_killed_stack_left_is_stopped_and_a_stranger_with_its_number_is_not(tmp_path: Path):
    child = await Process.start(["sleep", "600"], log=tmp_path / "log", environ=os.environ, cwd=tmp_path)
    try:
        assert not await stop_leftover(child.pid, "another start")
        assert child.returncode is None
        assert await stop_leftover(child.pid, identity_of(child.pid) or "")
        assert await child.wait() == -signal.SIGKILL
        assert not await stop_leftover(child.pid, "gone")
    finally:
        await child.stop(within=1)


async def test_a_child_that_does_not_end_when_asked_is_killed(tmp_path: Path):
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
    child = await Process.start([sys.executable, "-c", stubborn], log=tmp_path / "log", environ=os.environ, cwd=tmp_path)
    assert await child.announced() == "ready\n"
    await child.stop(within=0.2)
    assert child.returncode == -signal.SIGKILL


async def test_a_child_that_ends_without_announcing_itself_is_noticed(tmp_path: Path):
    child = await Process.start(
        [sys.executable, "-c", "import sys; sys.exit('no')"], log=tmp_path / "log", environ=os.environ, cwd=tmp_path
    )
    with pytest.raises(EOFError):
        await child.announced()
    await child.stop(within=1)
    assert "no" in (tmp_path / "log").read_text()
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


async def test_a_log_that_has_grown_long_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adapters.processes.LOG_LIMIT", 10)
    (tmp_path / "x.log").write_text("x" * 11)
    child = await Process.start(["true"], log=tmp_path / "x.log", environ=os.environ, cwd=tmp_path)
    await child.wait()
    await child.stop(within=1)
    assert (tmp_path / "x.log.1").read_text() == "x" * 11


def test_a_port_is_one_that_nobody_is_given_who_asks_for_any_and_is_kept_while_nobody_has_it():
    port = free_port()
    assert 20_000 <= port < 32_768, "the kernel gives others away"
    assert free_port(port) == port
    assert free_port(port, taken=[port]) != port
    with socket.create_server(("127.0.0.1", port)):
        assert free_port(port) != port
    assert free_port(port) == port


def test_the_simulators_credential_is_drawn_once_and_follows_its_address(settings: Settings):
    bind_simulator_credential(settings, "http://127.0.0.1:1000")
    path = settings.secrets / "sim"
    first = json.loads(path.read_text())
    assert first["origins"] == ["http://127.0.0.1:1000"]
    assert path.stat().st_mode & 0o777 == 0o600
    bind_simulator_credential(settings, "http://127.0.0.1:2000")
    second = json.loads(path.read_text())
    assert second == first | {"origins": ["http://127.0.0.1:2000"]}


def test_a_credential_that_someone_put_there_is_left_alone(settings: Settings):
    settings.secrets.mkdir(parents=True)
    (settings.secrets / "sim").write_text("my own value")
    bind_simulator_credential(settings, "http://127.0.0.1:1000")
    assert (settings.secrets / "sim").read_text() == "my own value"


async def test_a_second_stack_says_where_the_first_one_is_and_touches_nothing(settings: Settings):
    home = settings.prepare_home()
    holder = started(HOLDER, str(home))
    try:
        assert said(holder) == "True"
        with pytest.raises(Refused, match="runs already") as refused:
            async with running(settings):
                pass
        assert "http://127.0.0.1:2" in refused.value.message
        assert running_stack(home) is not None
    finally:
        ended(holder)


async def test_no_stack_is_embedded_where_temporal_has_an_address(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
    with pytest.raises(BadInput, match="Temporal's address"):
        async with running(Settings(home=settings.home)):
            pass


async def test_a_part_that_does_not_come_up_stops_the_rest_and_names_its_log(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adapters.embedded.temporal_binary", lambda: "false")
    with pytest.raises(Unreachable, match="the temporal ended at once") as refused:
        async with running(settings):
            pass
    assert "logs/temporal.log" in refused.value.hint
    assert running_stack(settings.home) is None


async def test_a_leftover_that_the_file_names_is_stopped_by_the_next_start(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("adapters.embedded.temporal_binary", lambda: "false")
    child = await Process.start(["sleep", "600"], log=tmp_path / "log", environ=os.environ, cwd=tmp_path)
    remember(
        settings.prepare_home(), Stack(ports=PORTS, components={"worker": Component(pid=child.pid, identity=identity_of(child.pid) or "")})
    )
    heard: list[str] = []
    with pytest.raises(Unreachable):
        async with running(settings, heard.append):
            pass
    assert heard == ["stopped a worker that an earlier stack left behind"]
    assert await child.wait() == -signal.SIGKILL
    await child.stop(within=1)
