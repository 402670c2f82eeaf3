"""Processes that the tests start, none of which outlives them; and waiting for what such a process does."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

# The child puts itself on the leash and then becomes the command: nothing runs between fork and exec in a process with threads.
_LEASH = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def on_leash(command: Sequence[str | Path]) -> list[str]:
    """The command, to be started so that it ends with this process, however this one ends."""
    return [sys.executable, "-c", _LEASH, str(os.getpid()), *map(str, command)]


def leashed(
    command: Sequence[str | Path], *, environ: Mapping[str, str], stdout: int | IO[bytes], stderr: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a process that ends with this one, however this one ends."""
    return subprocess.Popen(
        on_leash(command),
        stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=dict(environ), start_new_session=True,
    )  # fmt: skip


def stop(process: subprocess.Popen[bytes], *, within: float) -> None:
    """SIGTERM, and SIGKILL if that is not enough."""
    process.terminate()
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def until(condition: Callable[[], bool], *, within: float) -> bool:
    """Whether a condition came to hold in time."""
    last = time.monotonic() + within
    while not condition():
        if time.monotonic() > last:
            return False
        time.sleep(0.05)
    return True
