"""`list --orphans` and `run --continue`: operations whose workflow is not there, and giving them one."""

from typing import TYPE_CHECKING, cast

from commands.output import note, perform, write_json, write_text
from domain.errors import NotFound, Refused

if TYPE_CHECKING:
    from adapters.client import Sakshi, Started
    from domain.evidence import Json


def list_orphans(*, tenant: str | None, as_json: bool) -> None:
    """Operations that only one of ledger and Temporal knows."""
    from datetime import UTC, datetime

    from adapters.client import sakshi
    from adapters.orphans import survey
    from adapters.settings import load_settings
    from adapters.showing.status import command
    from adapters.showing.waiting import orphans_of, orphans_text

    settings = load_settings()

    async def work() -> "dict[str, Json]":
        async with sakshi(settings) as there:
            found = await survey(await there.temporal(), there.ledger, there.books, tenant=tenant)
            items: list[dict[str, Json]] = []
            for one in found.orphans:
                again = command("run", "--continue", one.row.stream)
                told = {"orphan": {"since": one.since, "why": one.why}, "next": [again], "updated_at": one.row.updated_at}
                items.append(await there.status(one.row.stream) | cast("dict[str, Json]", told))
            return orphans_of(items, found.strangers, found.behind, by=settings.local_user)

    found = perform(work)
    write_json(found) if as_json else write_text(orphans_text(found, datetime.now(UTC)))


async def continued(there: "Sakshi", prefix: str) -> "Started":
    """Start a new workflow for an operation that has none. Raises NotFound, Refused, Unreachable."""
    from adapters.client import Started
    from adapters.temporal import described

    try:
        stream = await there.find(prefix)
    except NotFound:
        if await described(await there.temporal(), prefix) is None:
            raise
        raise Refused(
            f"Temporal has a workflow of {prefix}, and this ledger does not hold it: nothing is started",
            hint="python starter.py list --orphans says what to do",
        ) from None
    if not await there.continue_(stream):
        note(f"{stream}: Temporal remembers entries that the ledger lacks. It is started, sends nothing, and waits for a human:")
        note("python starter.py list --orphans says what to do")
    return Started(stream, created=False)
