"""Child processes that never outlive their parent.

* On Linux the kernel kills a child with the parent that started it (PR_SET_PDEATHSIG), also when the parent was killed.
* Elsewhere, a start that finds what a killed parent left stops it; start time and number together tell it from a stranger.
* A child has a session of its own: Ctrl-C in a terminal reaches the parent alone, which stops its children in order.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LOG_LIMIT = 5 * 1024 * 1024
_PR_SET_PDEATHSIG = 1


def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


# Loaded ahead: between fork and exec nothing may be loaded.
_LIBC = _libc()


class Process:
    """One child. What it writes goes to its log; a first line on its stdout announces that it is ready."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._copying: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: Sequence[str], *, log: Path, environ: Mapping[str, str], cwd: Path) -> "Process":
        """Start a child."""
        _rotate(log)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=descriptor,
                env=dict(environ),
                cwd=cwd,
                start_new_session=True,
                preexec_fn=_with_parent(),
            )
        finally:
            os.close(descriptor)
        return cls(process, log)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code once it has ended."""
        return self._process.returncode

    async def announced(self) -> str:
        """The first line of its stdout. Raises EOFError if it ends without one."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            raise EOFError
        self.follow()
        return line.decode("utf-8", "replace")

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        self.follow()
        return await self._process.wait()

    async def stop(self, *, within: float) -> None:
        """SIGTERM, and SIGKILL if that is not enough."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            self.follow()
            try:
                async with asyncio.timeout(within):
                    await self._process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
        if self._copying is not None:
            await self._copying

    def follow(self) -> None:
        """Copy its stdout to its log from here on."""
        # A pipe that nobody reads fills and stops the child.
        if self._copying is None:
            self._copying = asyncio.create_task(self._copy_stdout())

    async def _copy_stdout(self) -> None:
        assert self._process.stdout is not None
        with self._log.open("ab") as log:
            while chunk := await self._process.stdout.read(65536):
                log.write(chunk)


def _with_parent() -> Callable[[], None]:
    libc, parent = _LIBC, os.getpid()

    def bind() -> None:
        os.umask(0o077)  # what a child writes is its owner's alone
        if libc is None:
            return
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the kernel was told
            os._exit(1)

    return bind


def identity_of(pid: int) -> str | None:
    """What tells a process from a later one with the same number: when it started. None if there is no such process."""
    try:
        if sys.platform == "linux":
            facts = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
            return None if facts[0] == "Z" else facts[19]  # a zombie has ended
        found = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except (OSError, IndexError):
        return None
    return found.stdout.strip() or None


async def stop_leftover(pid: int, identity: str) -> bool:
    """Kill the process with this number if it is still the one that was meant."""
    if not identity or identity_of(pid) != identity:
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    for _ in range(100):
        if identity_of(pid) != identity:
            break
        await asyncio.sleep(0.05)
    return True


def _rotate(log: Path) -> None:
    with contextlib.suppress(OSError):
        if log.stat().st_size > LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))
