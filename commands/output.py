"""How a command speaks: JSON or text on stdout, errors on stderr, and the exit code.

* With `--json` stdout holds the JSON and nothing else; an error is an object there too, and always text on stderr. It may be a terminal:
  what is not printable is escaped.
* The exit code of an error is its class's own. Ctrl-C stops the waiting, never the operation.
"""

import json
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum
from typing import Annotated, TypeVar

import typer

from domain.errors import BadInput, SakshiError
from domain.printable import printable_json

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")]
OneId = Annotated[str, typer.Argument(metavar="ID", help="An operation's id, or a unique beginning of it.")]


class ExitCode(IntEnum):
    """What a command exits with."""

    DONE = 0
    ENDED_OTHERWISE = 1
    BAD_INPUT = 2
    REFUSED = 3
    UNREACHABLE = 4
    TAMPERED = 5
    PARTIAL = 6
    NEEDS_HUMAN = 7
    STOPPED_WAITING = 8


def write_json(value: Mapping[str, object]) -> None:
    """One JSON object, on one line."""
    sys.stdout.write(printable_json(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)) + "\n")
    sys.stdout.flush()


def write_text(text: str) -> None:
    """Text for a person."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Something beside the answer: on stderr, so that it is never taken for it."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def stop(code: ExitCode | int) -> None:
    """End the command with this code, unless it is done."""
    if code:
        raise typer.Exit(int(code))


def perform(work: Callable[[], Awaitable[T]]) -> T:
    """Run a command's work to its end. SIGTERM ends it like Ctrl-C: in order."""
    import asyncio

    async def main() -> T:
        task = asyncio.ensure_future(work())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await task

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def error_shape(error: SakshiError) -> dict[str, object]:
    """`sakshi.error/1`."""
    shape: dict[str, object] = {
        "schema": "sakshi.error/1",
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
    }
    problems = getattr(error, "problems", None)
    findings = getattr(error, "findings", None)
    if problems:
        shape["problems"] = list(problems)
    if findings:
        shape["findings"] = [vars(finding) for finding in findings]
    return shape


def fail(error: SakshiError, *, as_json: bool) -> int:
    """Say what went wrong, and with which code to exit."""
    if as_json:
        write_json(error_shape(error))
    note(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
    return error.exit_code


def refuse_beside(because: str, **others: object) -> None:
    """Raises BadInput if any of the options is given."""
    given = [f"--{name}" for name, value in others.items() if value is not None]
    if given:
        raise BadInput(f"{because}, so {' and '.join(given)} can't be given")


class Usage(BadInput):
    """What was typed is no command of ours."""

    code = "usage"
