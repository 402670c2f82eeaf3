"""`contracts list/show/check/schema`: the providers, as data."""

import json
from collections.abc import Container
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from commands.output import AsJson, ExitCode, stop, write_json, write_text
from domain.errors import SakshiError

if TYPE_CHECKING:
    from adapters.contract_files import ContractFolder
    from domain.contract import Contract
    from domain.errors import Finding

contracts = typer.Typer(no_args_is_help=True, help="The providers: contracts, one file per endpoint.")


def _folder() -> "ContractFolder":
    from adapters.contract_files import ContractFolder
    from adapters.settings import load_settings

    return ContractFolder(load_settings().contracts_dir)


@contracts.command("list")
def list_contracts(as_json: AsJson = False) -> None:
    """All contracts, in their newest versions."""
    from adapters.showing.providers import contracts_text

    folder = _folder()
    items: list[dict[str, object]] = []
    for name in folder.names():
        try:
            items.append(_line(folder.get(name)))
        except SakshiError as error:
            items.append({"contract": name, "broken": error.message})
    write_json({"schema": "sakshi.contracts/1", "items": items}) if as_json else write_text(contracts_text(items))


@contracts.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME[@VERSION]")],
    as_json: AsJson = False,
) -> None:
    """One contract. Its effect, its input's schema, its deadlines, what it takes knowingly."""
    from adapters.showing.providers import contract_text

    contract = _folder().get(name)
    document: object = json.loads(contract.canonical)
    shown = {"schema": "sakshi.contract/1", **_line(contract), "document": document}
    write_json(shown) if as_json else write_text(contract_text(shown))


@contracts.command()
def check(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help="Contracts. Unset: all in the folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """What is wrong with contract files and their cases, and what they leave unsafe.

    Exit code 2 if a file is wrong, a case does not mean what it says, or something is unsafe and not accepted. Advice alone is 0.
    """
    from adapters.contract_files import check_file, contracts_among
    from adapters.settings import load_settings
    from adapters.showing.providers import checked_text
    from domain.language.findings import ADVICE

    paths = contracts_among(files or sorted(load_settings().contracts_dir.glob("*.yaml")))
    today = datetime.now(UTC).date()
    checked = [check_file(path, today) for path in paths]
    findings = [_finding(finding, ADVICE) for one in checked for finding in one.findings]
    shown: dict[str, object] = {
        "schema": "sakshi.check/1",
        "files": [one.file for one in checked],
        "cases": sum(one.cases for one in checked),
        "stories": sum(one.stories for one in checked),
        "ok": all(finding["kind"] == "advice" for finding in findings),
        "findings": findings,
    }
    write_json(shown) if as_json else write_text(checked_text(shown))
    stop(ExitCode.DONE if shown["ok"] else ExitCode.BAD_INPUT)


@contracts.command()
def schema(as_json: AsJson = False) -> None:
    """The language as JSON Schema, for editors."""
    from adapters.contract_files import json_schema

    write_text(json.dumps(json_schema(), indent=None if as_json else 1, ensure_ascii=False))


def _line(contract: "Contract") -> dict[str, object]:
    return {
        "contract": contract.contract,
        "version": contract.version,
        "about": contract.about,
        "class": contract.effect.cls,
        "digest": contract.digest,
        "target": {name: {"kind": target.kind, "about": target.about} for name, target in contract.target.items()},
        "input": contract.input,
    }


def _finding(finding: "Finding", advice: Container[str]) -> dict[str, object]:
    from domain.language.findings import FINDINGS

    kind = "advice" if finding.code in advice else "unsafe" if finding.code in FINDINGS else "error"
    return {"kind": kind, **vars(finding)}
