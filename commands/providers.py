"""`contracts list/show/check/schema`: the providers, as data."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from commands.output import AsJson, ExitCode, stop, write_json, write_text
from domain.errors import SakshiError

if TYPE_CHECKING:
    from adapters.contract_files import ContractFolder
    from domain.contract import Contract

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
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help="Unset: all in the contracts folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """What is wrong with contract files, or unsafe and not accepted."""
    from adapters.contract_files import check as check_file
    from adapters.settings import load_settings
    from domain.contract_findings import FINDINGS

    paths = files or sorted(path for path in load_settings().contracts_dir.glob("*.yaml") if not path.name.endswith(".cases.yaml"))
    today = datetime.now(UTC).date()
    findings = [finding for path in paths for finding in check_file(path, today)]
    broken = [finding for finding in findings if finding.code not in FINDINGS]
    if as_json:
        write_json(
            {
                "schema": "sakshi.check/1",
                "files": [str(path) for path in paths],
                "ok": not broken,
                "findings": [_finding(f) for f in findings],
            }
        )
    else:
        for finding in findings:
            write_text(f"{finding}" + (f" [{finding.code}]" if finding.code in FINDINGS else ""))
        verdict = "wrong" if broken else f"good, with {len(findings)} safety finding(s)" if findings else "good"
        write_text(f"{len(paths)} file(s): {verdict}")
    stop(ExitCode.BAD_INPUT if broken else ExitCode.DONE)


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


def _finding(finding: object) -> dict[str, object]:
    return {name: getattr(finding, name) for name in ("file", "line", "column", "key", "expected", "code")}
