"""Where the embedded stack is: what `.sakshi/stack.json` says, believed only while the stack's lock is held.

* The lock lives as long as the process that holds it, however that process ends: a file left behind by a killed stack can
  never be taken for a running one.
* Ports are remembered, so that a stack that starts again is found where it was.
"""

import fcntl
import json
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

FILE = "stack.json"
LOCK = "stack.lock"


class Component(BaseModel):
    """One process of the stack. `identity` tells it from a later process with the same number."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    pid: int
    identity: str


class Stack(BaseModel):
    """A running stack, as other commands find it."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    schema_: Literal["sakshi.stack/1"] = "sakshi.stack/1"
    pid: int = 0
    ready: bool = False
    ports: dict[str, int] = {}
    components: dict[str, Component] = {}

    @property
    def temporal(self) -> str:
        """Temporal's address."""
        return f"127.0.0.1:{self.ports['temporal']}"

    @property
    def ui(self) -> str:
        """The Temporal UI's address."""
        return f"http://127.0.0.1:{self.ports['ui']}"

    @property
    def simulator(self) -> str:
        """The simulator's address."""
        return f"http://127.0.0.1:{self.ports['simulator']}"


def remembered_stack(home: Path) -> Stack:
    """What the file says, running or not. An absent or unreadable file says nothing."""
    try:
        return Stack.model_validate_json((home / FILE).read_bytes())
    except (OSError, ValidationError):
        return Stack()


def running_stack(home: Path) -> Stack | None:
    """The stack that runs under `home`, or None."""
    if not _held(home):
        return None
    stack = remembered_stack(home)
    return stack if stack.ready else None


def target_sets(home: Path | None, operators: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The operator's sets, and `sim`, the simulator, while an embedded stack runs under `home`."""
    stack = None if home is None else running_stack(home)
    return ({} if stack is None else {"sim": {"server": stack.simulator}}) | dict(operators)


def remember(home: Path, stack: Stack) -> None:
    """Write the file, whole or not at all."""
    partial = home / f"{FILE}.{os.getpid()}"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(stack.model_dump(mode="json"), indent=1) + "\n")
    partial.replace(home / FILE)


@contextmanager
def locked(home: Path) -> Generator[bool]:
    """Hold the stack's lock while the block runs; False if another process holds it."""
    descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield _taken(descriptor)
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    # A command that only looks holds the lock for an instant: try more than once before believing that a stack has it.
    for _ in range(10):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _held(home: Path) -> bool:
    try:
        descriptor = os.open(home / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        # Shared, so that two commands that look at the same time don't take each other for the stack.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
