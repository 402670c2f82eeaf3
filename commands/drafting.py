"""`contracts new`: a first draft of a contract."""

from pathlib import Path
from typing import Annotated

import typer

from commands.output import note
from domain.errors import BadInput


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the contract: provider.thing.verb, as acme.reports.create.")],
    openapi: Annotated[Path, typer.Option("--openapi", metavar="FILE", help="The provider's OpenAPI 3 document, JSON or YAML.")],
    create: Annotated[str, typer.Option("--create", metavar="OPERATION", help="What starts a job: an operationId, or 'METHOD /path'.")],
    status: Annotated[str, typer.Option("--status", metavar="OPERATION", help="What reads the state of one job.")],
    cancel: Annotated[str | None, typer.Option("--cancel", metavar="OPERATION", help="What asks for a cancel.")] = None,
    result: Annotated[str | None, typer.Option("--result", metavar="OPERATION", help="What gives the result.")] = None,
    listing: Annotated[str | None, typer.Option("--list", metavar="OPERATION", help="What lists jobs, to look one up.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="NAME.yaml, or the folder for it; no file is replaced. Unset: stdout.")
    ] = None,
) -> None:
    """A first draft out of an OpenAPI document, with holes where a person has to say.

    A comment says of what it stands beside that the document only suggests it. "?" is what the document does not say: fill each, then
    run `contracts check`, which names those that are left. The draft is version 0: it runs only where settings allow drafts.
    """
    from adapters.drafting.draft import Chosen, draft
    from adapters.drafting.source import read_openapi

    _check_name(name)
    path = None if output is None else _place(output, name)
    api = read_openapi(openapi)
    others = (None if wanted is None else api.operation(wanted) for wanted in (cancel, result, listing))
    made = draft(api, Chosen(name, api.operation(create), api.operation(status), *others))
    if path is None:
        typer.echo(made.text, nl=False)
        return
    _write(path, made.text)
    note(f"{path}: {made.holes} holes to fill; `python starter.py contracts check {path}` names them")


def _check_name(name: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    from domain.language.grammar import ContractName

    try:
        TypeAdapter[str](ContractName).validate_python(name)
    except ValidationError:
        raise BadInput(
            f"{name[:100]!r} is no name of a contract", hint="lower-case words with dots between, as acme.reports.create"
        ) from None


def _place(output: Path, name: str) -> Path:
    path = output / f"{name}.yaml" if output.is_dir() else output
    if path.name not in (f"{name}.yaml", f"{name}@0.yaml"):
        raise BadInput(f"{path} is no file for {name}", hint=f"a contract is found by its file's name: {name}.yaml, or the folder for it")
    return path


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadInput(f"{path} is there already, and is not replaced") from None
    except OSError as error:
        raise BadInput(f"{path} can't be written: {error.strerror or type(error).__name__}") from None
