"""`contracts probe`: whether a contract is true of a real endpoint."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from commands.output import AsJson, ExitCode, note, perform, stop, write_json, write_text
from commands.starting import duration, paths_of, read_argument, target_of
from domain.errors import AddressError, BadInput, CredentialError, RenderError

if TYPE_CHECKING:
    from adapters.probing.consent import Consent
    from adapters.probing.naming import Asked
    from adapters.probing.probe import Report
    from adapters.result_store import ObstoreResults
    from adapters.settings import Settings
    from domain.contract import Contract


def probe(
    name: Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="A contract of the folder, or the path of a contract's file.")],
    input: Annotated[str, typer.Option("--input", help="JSON, the path of a JSON file, or - for stdin. A job that is short and cheap.")],
    target: Annotated[str | None, typer.Option("--target", help="A named set of target values from the settings.")] = None,
    file: Annotated[list[str] | None, typer.Option("--file", metavar="NAME=PATH", help="A big input. Repeatable.")] = None,
    other: Annotated[
        str | None, typer.Option("--other", help="Another input, for another body under the same token. Unset: one value is changed.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", help="How long it may take. Unset: the contract's deadlines, 30m at most.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Also write the report there, as JSON.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a real endpoint whether its contract is true. Jobs are made, and cancelled.

    What will be done is shown first. Exit code 0: nothing differs; 1: something does; 2: bad input; 3: refused.
    """
    from adapters.contract_files import content
    from adapters.settings import load_settings
    from adapters.showing.probing import probe_text

    settings = load_settings()
    path, contract = _contract(settings, name)
    text = content(path).decode("utf-8")
    seconds = None if timeout is None else duration(timeout).total_seconds()

    async def work() -> "Report | None":
        async with _asked(settings, contract, input, other, target, paths_of(file or [])) as (asked, store):
            return await _probed(settings, asked, store, path.name, text, seconds, yes=yes)

    with nullcontext() if report is None else _kept(report) as kept:
        found = perform(work)
        if found is None:
            note("nothing was sent")
            stop(ExitCode.REFUSED)
            return
        shown = found.to_json()
        if kept is not None:
            kept.write(json.dumps(shown, ensure_ascii=False, indent=1) + "\n")
    write_json(shown) if as_json else write_text(probe_text(shown))
    stop(ExitCode.DONE if found.reason is None else ExitCode.ENDED_OTHERWISE)


@contextmanager
def _kept(path: Path) -> Generator[IO[str]]:
    """A new file for the report, for its owner only: made before anything is sent, and gone again if nothing was written."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BadInput(f"{path} can't be written: {error.strerror}", hint="an existing file is not replaced") from None
    try:
        with open(handle, "w", encoding="utf-8") as file:
            yield file
    finally:
        if path.stat().st_size == 0:
            path.unlink()


def _contract(settings: "Settings", name: str) -> "tuple[Path, Contract]":
    """The contract and its file. Raises NotFound, BadContract."""
    from adapters.contract_files import ContractFolder, load

    if name.endswith(".yaml"):
        return Path(name), load(Path(name))
    contract = ContractFolder(settings.contracts_dir).get(name)
    versioned = settings.contracts_dir / f"{contract.contract}@{contract.version}.yaml"
    return versioned if versioned.exists() else settings.contracts_dir / f"{contract.contract}.yaml", contract


@asynccontextmanager
async def _asked(
    settings: "Settings", contract: "Contract", input: str, other: str | None, target: str | None, paths: dict[str, Path]
) -> "AsyncGenerator[tuple[Asked, ObstoreResults]]":
    """What is asked for, with its files in a folder that is gone afterwards. Raises BadInput, InputInvalid."""
    import tempfile

    from adapters.file_intake import taken_in
    from adapters.probing.naming import Asked, Names, another
    from adapters.result_store import ObstoreResults
    from domain.contract import validate_input
    from domain.jsontext import parse_input

    value, values = parse_input(read_argument(input)), target_of(settings, contract, target)
    contract.check_target(dict(values))
    validate_input(contract, value)
    with tempfile.TemporaryDirectory(prefix="sakshi-probe-") as folder:
        store = ObstoreResults(folder)
        async with taken_in(store, contract, tenant=settings.tenant, input=value, target=values, paths=paths, stored={}) as intake:
            await intake.keep()
            asked = Asked(contract, values, settings.tenant, settings.local_user, value, files=intake.files)
            if other is not None:
                changed = parse_input(read_argument(other))
                validate_input(contract, changed)
            else:
                changed = another(contract, value, Names(asked).scope(1, "create")) if contract.create.token else None
            yield replace(asked, other=changed), store


async def _probed(
    settings: "Settings", asked: "Asked", store: "ObstoreResults", name: str, text: str, seconds: float | None, *, yes: bool
) -> "Report | None":
    """Show, ask, and probe; None if the answer is no."""
    from adapters.addresses import AddressRules, parse_origin
    from adapters.cedar_gate import CedarGate
    from adapters.credentials import Credentials
    from adapters.http_provider import HttpProvider
    from adapters.probing.consent import consent_for, permitted
    from adapters.probing.probe import probe as probed
    from adapters.probing.probe import time_for
    from domain.call_policy import call_policy

    credentials = Credentials(folder=settings.secrets, embedded=settings.embedded)

    def account(name: str | None) -> str | None:
        return None if name is None else credentials.account(name)

    listed = frozenset(parse_origin(origin) for origin in settings.allowed_origins)
    provider = HttpProvider(credentials, AddressRules(listed=listed, loopback=settings.embedded), files=store)
    try:
        consent = consent_for(asked, account, time_for(asked.contract).total_seconds() if seconds is None else seconds)
        provider.check(asked.contract.base(dict(asked.target)), call_policy(asked.contract, dict(asked.target), asked.tenant))
        note(consent.text())
        gate = CedarGate(settings.policies_dir, settings.embedded, settings.local_user)
        consent = replace(consent, judged=permitted(gate, asked, consent, embedded=settings.embedded))
        if not yes and not await _agreed(consent):
            return None
        return await probed(asked, consent, provider, store, file=name, text=text, said=lambda what: note(f"... {what}"))
    except (AddressError, CredentialError, RenderError) as error:
        raise BadInput(error.message, hint=error.hint) from None
    finally:
        await provider.aclose()


async def _agreed(consent: "Consent") -> bool:
    """Whether a person says yes. Raises Refused, BadInput where this is nothing to be asked, or nobody is there."""
    import asyncio

    from adapters.probing.consent import agreed, refuse_grave

    refuse_grave(consent)
    if not sys.stdin.isatty():
        raise BadInput("nobody can be asked here", hint="--yes, if all that is shown above may be done")
    note("\ntype yes to do it:")
    return agreed(await asyncio.to_thread(sys.stdin.readline))
