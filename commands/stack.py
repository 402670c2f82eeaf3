"""`dev` and `demo`: the embedded stack in the foreground, and a tour on it."""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from commands.output import AsJson, ExitCode, note, perform, stop, write_json, write_text

if TYPE_CHECKING:
    from adapters.stack_file import Stack


def dev(as_json: AsJson = False) -> None:
    """The embedded stack in the foreground. Ctrl-C stops it cleanly, and what it keeps is there next time."""
    from adapters.embedded import running, until_told_to_stop
    from adapters.settings import load_settings

    settings = load_settings()

    async def work() -> None:
        async with running(settings, note) as (stack, held):
            if as_json:
                write_json(_where(stack) | {"home": str(settings.home)})
            else:
                write_text(_where_text(stack, str(settings.home)))
            await until_told_to_stop(held)
            note("stopping; what is kept stays")

    perform(work)


def demo() -> None:
    """The whole tour on an embedded stack; ends by itself.

    Success, a finished answer at once, a lost answer, a cancel, a wrong result, tampering found.
    """
    from adapters.client import sakshi
    from adapters.embedded import running
    from adapters.settings import load_settings
    from adapters.stack_file import running_stack
    from commands.tour import Tour

    settings = load_settings()

    async def work() -> bool:
        async with AsyncExitStack() as until:
            stack = running_stack(settings.home)
            if stack is None:
                write_text(f"starting the embedded stack under {settings.home}")
                stack, _ = await until.enter_async_context(running(settings, note))
            there = await until.enter_async_context(sakshi(settings))
            write_text(_where_text(stack, str(settings.home)))
            return await Tour(there, stack.simulator, write_text).walk()

    stop(ExitCode.DONE if perform(work) else ExitCode.ENDED_OTHERWISE)


def _where(stack: "Stack") -> dict[str, object]:
    return {"schema": "sakshi.stack/1", "temporal": stack.temporal, "ui": stack.ui, "simulator": stack.simulator, "pid": stack.pid}


def _where_text(stack: "Stack", home: str) -> str:
    lines = {
        "Temporal UI": stack.ui,
        "Temporal": stack.temporal,
        "simulator": f"{stack.simulator} (its books: {stack.simulator}/books)",
        "kept in": home,
    }
    return "\n".join(f"  {name:<12}{value}" for name, value in lines.items())
