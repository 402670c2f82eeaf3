"""`verify`, `doctor`, `ledger`: whether the record is what was written, and whether the installation works."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from commands.output import AsJson, ExitCode, perform, stop, write_json, write_text

if TYPE_CHECKING:
    from adapters.client import Sakshi
    from adapters.sql_verifying import Verification
    from domain.evidence import Json

ledger = typer.Typer(no_args_is_help=True, help="The ledger's tables.")


def verify(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One operation. Unset: every one.")] = None,
    against_temporal: Annotated[
        bool, typer.Option("--against-temporal", help="Also hold it against every head that Temporal remembers: finds a cut tail.")
    ] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Also rebuild the projection from the entries and compare.")] = False,
    as_json: AsJson = False,
) -> None:
    """Whether all that is kept is what was written.

    Every entry, payload, kept body and contract is read.
    """
    from adapters.client import sakshi
    from adapters.result_store import ObstoreResults
    from adapters.settings import load_settings
    from adapters.verifying import verified

    settings = load_settings()

    async def work() -> list["dict[str, Json]"]:
        async with sakshi(settings) as there:
            client = await there.temporal() if against_temporal else None
            results = ObstoreResults(settings.results)

            async def whole(chain: "Verification") -> "dict[str, Json]":
                return await verified(there.ledger, there.books, chain, results=results, client=client, rebuild=rebuild)

            if id is not None:
                return [await whole(await there.books.verify(await there.find(id)))]
            return [await whole(one) async for one in there.books.verify_all()]

    found = perform(work)
    ok = all(one["ok"] for one in found)
    if as_json:
        write_json({"schema": "sakshi.verify/1", "ok": ok, "against_temporal": against_temporal, "rebuilt": rebuild, "items": found})
    else:
        for one in found:
            write_text(_verified_text(one))
        write_text(f"{len(found)} operation(s): " + ("all as written" if ok else "NOT as written"))
    stop(ExitCode.DONE if ok else ExitCode.TAMPERED)


def _verified_text(one: "dict[str, Json]") -> str:
    if one["ok"]:
        seen = "" if one["witnesses"] is None else f", {one['witnesses']} heads in Temporal agree"
        erased = f", {one['erased']} payloads erased on the record" if one["erased"] else ""
        bodies = f", {one['bodies']} kept bodies" if one["bodies"] else ""
        return f"ok     {one['id']}  {one['entries']} entries{bodies}{seen}{erased}"
    faults = cast("list[dict[str, Json]]", one["faults"])
    return f"WRONG  {one['id']}  " + "; ".join(f"entry {fault['seq']}: {fault['what']}" for fault in faults)


def doctor(as_json: AsJson = False) -> None:
    """Whether the installation is in order, and what to do if not.

    Temporal, the ledger, the store, workers, policy, contracts and credentials are looked at.
    """
    from adapters.diagnosis import diagnose
    from adapters.settings import load_settings
    from adapters.showing.diagnosis import diagnosis_text

    settings = load_settings()
    findings = perform(lambda: diagnose(settings))
    ok = all(one.level != "wrong" for one in findings)
    if as_json:
        write_json({"schema": "sakshi.doctor/1", "ok": ok, "embedded": settings.embedded, "items": [one.shape() for one in findings]})
    else:
        write_text(diagnosis_text(findings))
    unreachable = any(one.level == "wrong" and one.what in {"temporal", "ledger"} for one in findings)
    stop(ExitCode.UNREACHABLE if unreachable else ExitCode.DONE if ok else ExitCode.ENDED_OTHERWISE)


@ledger.command()
def migrate(as_json: AsJson = False) -> None:
    """Make the ledger's tables, or bring them to this version. An embedded ledger does it by itself."""
    from adapters.settings import load_settings
    from adapters.sql_ledger import migrate as migrate_ledger

    settings = load_settings()
    if settings.ledger_url is None:
        settings.prepare_home()
    perform(lambda: migrate_ledger(settings.ledger, settings.ledger_password()))
    write_json({"schema": "sakshi.migrate/1", "ok": True}) if as_json else write_text("the ledger is at this version")


@ledger.command()
def rebuild(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One operation. Unset: every one.")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Write what the entries lead to.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare rows with what their entries lead to. With --repair, mend them."""
    from adapters.client import sakshi
    from adapters.settings import load_settings

    async def work() -> list[dict[str, object]]:
        async with sakshi(load_settings()) as there:
            streams = [await there.find(id)] if id is not None else [one.stream async for one in there.books.verify_all()]
            return [item for stream in streams for item in await _differences(there, stream, repair=repair)]

    found = perform(work)
    if as_json:
        write_json({"schema": "sakshi.rebuild/1", "ok": not found, "repaired": repair, "items": found})
    else:
        for one in found:
            write_text(f"{one['id']}  {one['column']}: stored {one['stored']}, rebuilt {one['rebuilt']}")
        write_text(f"{len(found)} difference(s)" + (", repaired" if repair and found else ""))
    stop(ExitCode.DONE if not found or repair else ExitCode.TAMPERED)


async def _differences(there: "Sakshi", stream: str, *, repair: bool) -> list[dict[str, object]]:
    return [
        {"id": stream, "column": one.column, "stored": one.stored, "rebuilt": one.rebuilt}
        for one in await there.books.rebuild(stream, repair=repair)
    ]
