"""`run`: start one operation, or find the one that is there."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from commands.output import AsJson, ExitCode, note, perform, refuse_beside, stop, write_json, write_text
from domain.errors import BadInput

if TYPE_CHECKING:
    from adapters.client import Sakshi, Started
    from adapters.settings import Settings
    from domain.contract import Contract
    from domain.evidence import Json
    from domain.opening import Asked


def run(
    contract: Annotated[str | None, typer.Argument(metavar="CONTRACT[@VERSION]", help="See `contracts list`.")] = None,
    input: Annotated[str | None, typer.Option("--input", help="JSON, the path of a JSON file, or - for stdin.")] = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", metavar="NAME=PATH", help="A big input, under the contract's name for it. Repeatable.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="A named set of target values from the settings.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Your own key: the same key means the same operation.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="An id of your own.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", help="For whom it is done. Unset: you.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Whose data and budget it is.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why. It is recorded, and policy sees it.")] = None,
    again: Annotated[str | None, typer.Option("--again", metavar="ID", help="Its input and files once more, as a new operation.")] = None,
    continue_: Annotated[
        str | None, typer.Option("--continue", metavar="ID", help="A new workflow for an operation that has none (`list --orphans`).")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is final or needs a human.")] = False,
    timeout: Annotated[str | None, typer.Option("--timeout", help="How long to wait: 30s, 5m, 2h.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start one operation. It goes on whatever happens to this command."""
    from adapters.client import sakshi
    from adapters.settings import load_settings
    from commands.surveying import continued

    limit = duration(timeout) if timeout else None
    if timeout and not wait:
        raise BadInput("--timeout belongs to --wait")
    if [contract, again, continue_].count(None) != 2:
        raise BadInput("name one of: a contract, --again ID, --continue ID", hint="python starter.py contracts list")
    if continue_ is not None:
        others = {"input": input, "target": target, "key": key, "id": id, "principal": principal, "tenant": tenant, "reason": reason}
        refuse_beside("--continue takes everything from the ledger", file=file or None, **others)
    paths = paths_of(file or [])
    settings = load_settings()

    async def work() -> int:
        async with sakshi(settings) as there:
            if continue_ is not None:
                return await _said(there, await continued(there, continue_), wait=wait, timeout=limit, as_json=as_json)
            if again is not None:
                refuse_beside(
                    "--again takes contract, input, files and target from the old operation", input=input, target=target, file=file or None
                )
                asked = await _again(there, again, key=key, principal=principal, reason=reason)
            else:
                asked = _asked(settings, there, str(contract), input, target, key, principal, tenant, reason)
            started = await there.open_and_start(asked, id=id, paths=paths)
            if asked.retry_of is not None:
                await there.link(asked.retry_of, started.id)
            return await _said(there, started, wait=wait, timeout=limit, as_json=as_json)

    stop(perform(work))


async def _said(there: "Sakshi", started: "Started", *, wait: bool, timeout: timedelta | None, as_json: bool) -> int:
    from adapters.showing.status import exit_code_of
    from adapters.showing.text import status_text

    if wait and not as_json:
        note(f"{started.id} {'started' if started.created else 'was there already'}; waiting (Ctrl-C stops the waiting only)")
    status = (await there.wait([started.id], timeout=timeout))[started.id] if wait else await there.status(started.id)
    if as_json:
        write_json(status | {"created": started.created})
    else:
        write_text(status_text(status, created=started.created))
    return exit_code_of(status) if wait else ExitCode.DONE


def _asked(
    settings: "Settings", there: "Sakshi", reference: str, text: str | None, target: str | None, key: str | None,
    principal: str | None, tenant: str | None, reason: str | None,
) -> "Asked":  # fmt: skip
    from adapters.contract_files import ContractFolder
    from domain.jsontext import parse_input
    from domain.opening import Asked

    contract = ContractFolder(settings.contracts_dir).get(reference)
    if text is None:
        raise BadInput("--input is missing", hint=f"python starter.py contracts show {contract.contract} shows what it takes")
    return Asked(
        contract=contract,
        input=parse_input(read_argument(text)),
        target=target_of(settings, contract, target),
        tenant=tenant or settings.tenant,
        principal=principal or settings.local_user,
        key=key,
        reason=reason,
        account=there.account(contract.http.auth.credential),
    )


async def _again(there: "Sakshi", prefix: str, *, key: str | None, principal: str | None, reason: str | None) -> "Asked":
    """The same input under the contract as it was pinned, for the same tenant; a new id, and so a new token."""
    from adapters.showing.status import effect_is_over
    from domain.errors import Refused
    from domain.fingerprint import committed_value
    from domain.language.loading import contract_from_canonical
    from domain.opening import Asked

    if not reason:
        raise BadInput("--again needs --reason")
    old = await there.find(prefix)
    record = await there.ledger.record(old)
    if not effect_is_over(record.standing):
        raise Refused(
            f"{old} is {record.standing.state} and its effect is still possible, so another run could double it",
            hint=f"python starter.py status {old}",
        )
    opened = record.standing.opened
    contract = contract_from_canonical(await there.ledger.contract(opened.contract_digest))
    kept = await there.ledger.payload(opened.input.ref)
    return Asked(
        contract=contract,
        input=cast("Json", json.loads(committed_value(kept))),
        target=opened.target,
        tenant=opened.tenant,
        principal=principal or opened.principal,
        key=key,
        reason=reason,
        account=opened.credential.get("account"),
        retry_of=old,
        others=opened.requesters,
        files=opened.files,
    )


def target_of(settings: "Settings", contract: "Contract", name: str | None) -> dict[str, str]:
    """The values that the contract asks for, out of the named set, or of the one named like the provider. Raises BadInput."""
    from adapters.stack_file import target_sets

    sets = target_sets(settings.home if settings.embedded else None, settings.targets)
    chosen = name or contract.provider.name
    if chosen == "sim" and contract.target and chosen not in sets and settings.embedded:
        raise BadInput("the target sim is there while the embedded stack runs", hint="start it: python starter.py dev")
    if name is None and (not contract.target or chosen not in sets):
        return {}
    if chosen not in sets:
        raise BadInput(f"no target {chosen}", hint=f"there are: {', '.join(sorted(sets)) or 'none'}; SAKSHI_TARGETS sets them")
    return {key: value for key, value in sets[chosen].items() if key in contract.target}


def read_argument(text: str) -> bytes:
    """What `--input` means: JSON itself, a file's content, or stdin. Raises BadInput."""
    from domain.jsontext import MAX_INPUT_BYTES

    if text == "-":
        return sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if text.lstrip()[:1] in {"{", "[", '"'}:
        return text.encode("utf-8", "surrogatepass")
    try:
        with Path(text).open("rb") as file:
            return file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise BadInput(f"the input file {text[:200]} can't be read: {why}", hint="--input takes JSON or the path of a JSON file") from None


def paths_of(given: list[str]) -> dict[str, Path]:
    """What `--file NAME=PATH` means. Raises BadInput."""
    paths: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise BadInput(f"--file {text[:200]} is not NAME=PATH", hint="NAME is what the contract calls the file")
        if name in paths:
            raise BadInput(f"--file gives {name[:100]} twice")
        paths[name] = Path(path)
    return paths


def duration(text: str) -> timedelta:
    """`30s`, `5m`, `2h`. Raises BadInput."""
    from domain.language.grammar import parse_duration

    try:
        return parse_duration(text)
    except ValueError:
        raise BadInput(f"{text[:40]} is not a duration", hint="250ms, 30s, 5m, 2h, 1d") from None
