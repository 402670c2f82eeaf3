"""`escalate`: what happened, in a folder and a zip, for the support of a provider or anyone else who was not there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from commands.output import AsJson, ExitCode, OneId, note, perform, stop, write_json, write_text

if TYPE_CHECKING:
    from adapters.escalation import Escalated


def escalate(
    id: OneId,
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="The folder to make; DIR.zip stands beside it.")],
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write what a provider's support needs to see what happened.

    Summary, timeline, exchanges, the record with its hashes: in a folder, and as a zip beside it.
    """
    from datetime import UTC, datetime

    from adapters.client import sakshi
    from adapters.escalation import dossier_of
    from adapters.escalation import escalate as write_escalation
    from adapters.result_store import ObstoreResults
    from adapters.settings import load_settings

    settings = load_settings()

    async def work() -> "tuple[str, Escalated]":
        async with sakshi(settings) as there:
            stream = await there.find(id)
            dossier = await dossier_of(there.ledger, there.books, stream, datetime.now(UTC))
            return stream, await write_escalation(dossier, ObstoreResults(settings.results), output, force=force)

    stream, written = perform(work)
    for fault in written.faults:
        note(f"not as recorded: {fault}")
    if as_json:
        write_json(
            {
                "schema": "sakshi.escalated/1",
                "id": stream,
                "folder": str(written.folder),
                "zip": str(written.zip),
                "files": [*written.files],
                "faults": [*written.faults],
            }
        )
    else:
        write_text(f"{written.folder / 'README.md'} is the page to read first; {written.zip} is the same folder to send")
    stop(ExitCode.TAMPERED if written.faults else ExitCode.DONE)
