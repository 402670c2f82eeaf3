"""`wait`, `status`, `watch`, `list`, `evidence`, `result`: look at operations. Nothing here changes anything."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from commands.output import AsJson, ExitCode, OneId, perform, stop, write_json, write_text

if TYPE_CHECKING:
    from adapters.settings import Settings
    from domain.evidence import Json, Output
    from domain.standing import Standing


def status(id: OneId, as_json: AsJson = False) -> None:
    """How an operation stands, from the ledger alone."""
    from adapters.settings import load_settings
    from adapters.showing.status import status_of_row
    from adapters.sqlite_glance import glance

    settings = load_settings()
    row = glance(settings, id)
    found = perform(lambda: _asked(settings, id)) if row is None else status_of_row(row, at=datetime.now(UTC), by=settings.local_user)
    if as_json:
        return write_json(found)
    from adapters.showing.text import status_text

    write_text(status_text(found))


async def _asked(settings: "Settings", id: str) -> "dict[str, Json]":
    from adapters.client import sakshi

    async with sakshi(settings) as there:
        return await there.status(await there.find(id))


def wait(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, or unique beginnings of them.")],
    timeout: Annotated[str | None, typer.Option("--timeout", help="How long to wait: 30s, 5m, 2h.")] = None,
    as_json: AsJson = False,
) -> None:
    """Wait until each operation is final or needs a human.

    It needs one when it is in attention or awaits approval.
    """
    from adapters.client import sakshi
    from adapters.settings import load_settings
    from adapters.showing.status import exit_code_of
    from adapters.showing.text import status_text
    from commands.starting import duration

    limit: timedelta | None = duration(timeout) if timeout else None

    async def work() -> "list[dict[str, Json]]":
        async with sakshi(load_settings()) as there:
            streams = [await there.find(one) for one in ids]
            found = await there.wait(streams, timeout=limit)
            return [found[stream] for stream in streams]

    statuses = perform(work)
    for one in statuses:
        write_json(one) if as_json else write_text(status_text(one))
    stop(gravest([exit_code_of(one) for one in statuses]))


_GRAVITY = (ExitCode.STOPPED_WAITING, ExitCode.NEEDS_HUMAN, ExitCode.ENDED_OTHERWISE, ExitCode.PARTIAL, ExitCode.DONE)


def gravest(codes: Sequence[int]) -> int:
    """Of several operations' codes, the one that asks most of whoever waited."""
    return next(int(code) for code in _GRAVITY if code in codes)


def watch(id: OneId, as_json: AsJson = False) -> None:
    """Follow an operation until it is final or needs a human."""
    from adapters.client import sakshi
    from adapters.settings import load_settings
    from adapters.showing.live import Follower
    from adapters.showing.status import exit_code_of

    async def work() -> int:
        last: dict[str, Json] = {}
        async with sakshi(load_settings()) as there:
            stream = await there.find(id)
            if as_json:
                async for last in there.changes(stream):
                    write_json(last)
            else:
                with Follower() as follower:
                    async for last in there.changes(stream):
                        follower.show(last)
        return exit_code_of(last)

    stop(perform(work))


def list_operations(
    state: Annotated[str | None, typer.Option("--state", help="Only those in this state.")] = None,
    attention: Annotated[bool, typer.Option("--attention", help="Only those that wait for a human.")] = False,
    orphans: Annotated[bool, typer.Option("--orphans", help="Only those whose workflow is not there, and what the ledger lacks.")] = False,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only those of this tenant.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")] = 50,
    after: Annotated[str | None, typer.Option("--after", help="Go on where an earlier list said `next`.")] = None,
    as_json: AsJson = False,
) -> None:
    """List operations, the newest change first."""
    from adapters.client import sakshi
    from adapters.settings import load_settings
    from adapters.showing.text import list_text
    from adapters.showing.waiting import attention_text
    from commands.surveying import list_orphans
    from domain.errors import BadInput
    from domain.standing import State

    if orphans:
        if attention or state is not None or after is not None:
            raise BadInput("--orphans lists all of them, and goes with --tenant only")
        return list_orphans(tenant=tenant, as_json=as_json)
    states = get_args(State)
    if state is not None and state not in states:
        raise BadInput(f"no state {state[:40]}", hint=f"states: {', '.join(states)}")

    async def work() -> "dict[str, Json]":
        async with sakshi(load_settings()) as there:
            return await there.list(state=state, attention=attention or None, tenant=tenant, limit=limit, after=after)

    found = perform(work)
    if as_json:
        return write_json(found)
    write_text(attention_text(found, datetime.now(UTC)) if attention else list_text(found))


def evidence(
    id: OneId,
    every: Annotated[bool, typer.Option("--all", help="Unchanged readings too, each by itself.")] = False,
    as_json: AsJson = False,
) -> None:
    """What was asked, allowed, sent, observed and done: the entries."""
    from adapters.client import sakshi
    from adapters.settings import load_settings
    from adapters.showing.entries import evidence_of
    from adapters.showing.text import evidence_text

    async def work() -> "dict[str, Json]":
        async with sakshi(load_settings()) as there:
            stream = await there.find(id)
            return evidence_of(stream, await there.ledger.entries(stream), fold=not every)

    found = perform(work)
    write_json(found) if as_json else write_text(evidence_text(found))


def _list_of(standing: "Standing") -> "tuple[Output, ...]":
    """The list of the items that did not succeed; nothing where all did."""
    from domain.errors import Refused

    if standing.items is None:
        raise Refused("the contract reads no items of this result")
    return () if standing.failed_items is None else (standing.failed_items,)


def result(
    id: OneId,
    output: Annotated[str | None, typer.Option("--output", metavar="DIR", help="Write it there; - writes to stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    failed_items: Annotated[
        bool, typer.Option("--failed-items", help="Every item that did not succeed, as JSON Lines on stdout, or with --output there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The verified result. With --output its bytes, verified again on the way out."""
    from adapters.client import sakshi
    from adapters.result_output import write_out
    from adapters.result_store import ObstoreResults
    from adapters.settings import load_settings
    from adapters.showing.text import result_text
    from domain.errors import BadInput, Refused

    if failed_items and output is None:
        output = "-"
    if output == "-" and as_json:
        raise BadInput("--output - and --json both want stdout")
    settings = load_settings()

    async def work() -> "dict[str, Json]":
        async with sakshi(settings) as there:
            stream = await there.find(id)
            found = await there.status(stream)
            shown = cast("Mapping[str, Json] | None", found["result"])
            if shown is None:
                raise Refused(f"{stream} is {found['state']} and has no verified result", hint=f"python starter.py status {stream}")
            if output is not None and not (failed_items and found["items"] and not shown["failed_items"]):
                standing = (await there.ledger.record(stream)).standing
                outputs = standing.outputs if not failed_items else _list_of(standing)
                await write_out(ObstoreResults(settings.results), outputs, "-" if output == "-" else Path(output), force=force)
            named = {name: found[name] for name in ("id", "state", "outcome")}
            return {"schema": "sakshi.result/1", **named, **shown, "written": None if output == "-" else output}

    found = perform(work)
    if as_json:
        write_json(found)
    elif output != "-":
        write_text(result_text(found))
