"""`cancel` and `resolve`: what a person says. Recorded whether accepted or refused, and the verdict is waited for."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from commands.output import AsJson, ExitCode, OneId, perform, stop, write_json, write_text
from domain.errors import BadInput, Refused

if TYPE_CHECKING:
    from adapters.client import Verdict
    from domain.evidence import Json
    from domain.messages import Resolution

By = Annotated[str | None, typer.Option("--by", help="Who says it; policies/ says who may. Unset: you.")]
Reason = Annotated[str, typer.Option("--reason", help="Why. It is recorded.")]
Force = Annotated[bool, typer.Option("--force", help="Insist, where the contract has a call for it.")]


def cancel(id: OneId, reason: Reason, by: By = None, force: Force = False, as_json: AsJson = False) -> None:
    """Ask for a cancel. It is done when a status read confirms it, not before."""
    from adapters.client import sakshi
    from adapters.settings import load_settings

    settings = load_settings()
    _within(reason)
    who = person(by, settings.local_user)

    async def work() -> "Verdict":
        async with sakshi(settings) as there:
            return await there.cancel(await there.find(id), by=who, reason=reason, force=force)

    _said(perform(work), "cancel", who, as_json=as_json)


def resolve(
    id: OneId,
    choice: Annotated[list[str], typer.Argument(metavar="CHOICE...", help="What `status` offers, with its arguments.")],
    reason: Reason,
    by: By = None,
    until: Annotated[str | None, typer.Option("--until", help="With resume: the new deadline, RFC 3339 or a duration from now.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Choose for an operation that waits for a human."""
    from adapters.client import sakshi
    from adapters.settings import load_settings

    settings = load_settings()
    _within(reason)
    resolution = resolution_of(choice, by=person(by, settings.local_user), reason=reason, until=until, force=force)

    async def work() -> "Verdict":
        async with sakshi(settings) as there:
            return await there.resolve(await there.find(id), resolution)

    _said(perform(work), resolution.choice, resolution.by, as_json=as_json)


def resolution_of(words: list[str], *, by: str, reason: str, until: str | None, force: bool) -> "Resolution":
    """The message that the typed words mean. Raises BadInput."""
    from pydantic import ValidationError
    from ulid import ULID

    from domain.messages import Resolution

    match words:
        case ["accept", ("succeeded" | "failed") as outcome]:
            choice, rest = f"accept_{outcome}", list[str]()
        case [choice, *rest]:
            choice = choice.replace("-", "_")
        case _:
            raise BadInput("resolve needs a choice")
    arguments = _adopted(rest) if choice == "adopt" else {}
    if choice != "adopt" and rest:
        raise BadInput(f"{choice} takes no arguments", hint="python starter.py status ID shows the choices")
    if until is not None and choice != "resume":
        raise BadInput("--until belongs to resume")
    fields = {"request_id": str(ULID()).lower(), "by": by, "choice": choice, "reason": reason, "force": force, "arguments": arguments}
    try:
        return Resolution.model_validate(fields | ({} if until is None else {"until": _instant(until)}))
    except ValidationError:
        raise BadInput(f"no choice {choice[:40]}", hint="python starter.py status ID shows the choices") from None


def _adopted(words: list[str]) -> "dict[str, Json]":
    if not words or any("=" not in word for word in words[1:]):
        raise BadInput("adopt needs the job's id, and then NAME=VALUE for each further name", hint="a refusal names all that are needed")
    pairs = [word.partition("=") for word in words[1:]]
    return {"id": words[0], **{name: value for name, _, value in pairs}}


def _instant(text: str) -> datetime:
    from datetime import UTC

    from commands.starting import duration

    if text[-1:] in "smhd" and text[:1].isdigit():
        return datetime.now(UTC) + duration(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{text[:40]} is neither RFC 3339 nor a duration") from None
    if moment.tzinfo is None:
        raise BadInput(f"{text[:40]} has no zone", hint="write 2026-12-24T12:00:00Z")
    return moment


def person(given: str | None, local: str) -> str:
    """Who speaks. Raises BadInput."""
    from domain.messages import PERSON

    name = local if given is None else given
    if not re.fullmatch(PERSON, name):
        raise BadInput("--by is text of 1 to 128 characters without control characters")
    return name


def _within(reason: str) -> None:
    from domain.messages import MAX_REASON

    if len(reason) > MAX_REASON:
        raise BadInput(f"a reason has at most {MAX_REASON} characters")


def _said(verdict: "Verdict", verb: str, by: str, *, as_json: bool) -> None:
    if verdict.accepted is False:
        raise Refused(f"{verb} refused: {verdict.why}", hint=f"python starter.py status {verdict.id}")
    if as_json:
        write_json(
            {
                "schema": "sakshi.decision/1",
                "id": verdict.id,
                "request_id": verdict.request_id,
                "verb": verb,
                "accepted": verdict.accepted,
                "authenticated": False,
                "why": verdict.why,
            }
        )
    elif verdict.accepted:
        from adapters.showing.text import inert

        who = f"recorded as said by {inert(by)}; nobody checked who that is"
        write_text(f"{verb} accepted, and {who}. python starter.py watch {verdict.id}")
    else:
        write_text(f"{verb} delivered; {verdict.why}")
    stop(ExitCode.DONE if verdict.accepted else ExitCode.STOPPED_WAITING)
