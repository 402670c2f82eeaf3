"""The folder of contracts: strict YAML files, one per contract and version.

* A file is strict YAML (`strict_yaml.py`), within bounds: 256 KiB, 10,000 nodes, 64 levels, aliases expanded. It is a regular file.
* `NAME.yaml` or `NAME@VERSION.yaml`, and the content says the same name. The newest version is the default.
* One broken file does not hide the others; it is named when it is asked for or checked.
"""

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from adapters.regular_files import first_bytes
from adapters.strict_yaml import Bounds, Parsed, read_yaml
from domain.cases.checking import check_cases
from domain.cases.models import Cases
from domain.contract import Contract
from domain.errors import BadContract, BadInput, Finding, NotFound
from domain.language.checks import Problem
from domain.language.loading import findings, found_in, holes_in, parse_contract, validated

MAX_BYTES: Final = 256 * 1024
MAX_NODES: Final = 10_000
MAX_DEPTH: Final = 64
BOUNDS: Final = Bounds("a contract", MAX_BYTES, MAX_NODES, MAX_DEPTH)

_FILE: Final = re.compile(r"([a-z][a-z0-9_.-]*?)(?:@([0-9]+))?\.yaml")


class ContractFolder:
    """The contracts of one folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Every contract, by name, whether it loads or not."""
        return sorted({name for name, _, _ in self._files()})

    def get(self, reference: str) -> Contract:
        """The contract `name`, in its newest version, or `name@version`. Raises NotFound, BadContract."""
        name, _, version = reference.partition("@")
        paths = [path for found, stated, path in self._files() if found == name and (not version or stated in (None, version))]
        loaded = [load(path) for path in paths]
        fitting = [contract for contract in loaded if not version or str(contract.version) == version]
        if not fitting:
            raise self._not_found(reference, name)
        return max(fitting, key=lambda contract: contract.version)

    def _files(self) -> Iterator[tuple[str, str | None, Path]]:
        for path in sorted(self._path.glob("*.yaml")):
            found = _FILE.fullmatch(path.name)
            if found and not is_cases(path):
                yield found[1], found[2], path

    def _not_found(self, reference: str, name: str) -> NotFound:
        if "/" in reference or reference.endswith(".yaml"):
            here = f"what is wanted is the name of a contract in {self._path}, not a file"
            return NotFound(f"no contract {reference}", hint=f"{here}; SAKSHI_CONTRACTS_DIR names another folder")
        near = difflib.get_close_matches(name, self.names(), 3, 0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(self.names()) or 'none'}"
        return NotFound(f"no contract {reference}", hint=hint)


def load(path: Path) -> Contract:
    """The contract of one file. Raises NotFound, BadContract."""
    return _contract(path, parse(path))


def _contract(path: Path, parsed: Parsed) -> Contract:
    if holes := holes_in(parsed.document, file=str(path), positions=parsed.positions):
        raise BadContract(holes)
    contract = parse_contract(parsed.document, file=str(path), positions=parsed.positions)
    found = _FILE.fullmatch(path.name)
    if found is None or found[1] != contract.contract or found[2] not in (None, str(contract.version)):
        line, column = parsed.positions.get(("contract",), (1, 1))
        said = f"the name and version of the file, {path.stem}" if found else f"a file by whose name it is found, {contract.contract}.yaml"
        raise BadContract([Finding(str(path), line, column, "contract", said)])
    return contract


def cases_beside(path: Path) -> Path:
    """Where the cases of a contract's file are: `NAME.cases.yaml` beside `NAME.yaml`."""
    return path.with_name(f"{path.stem}.cases.yaml")


def contracts_among(paths: Iterable[Path]) -> list[Path]:
    """The contracts of these files, each once: cases stand for the contract beside them."""
    return list(
        dict.fromkeys(path.with_name(f"{path.name.removesuffix('.cases.yaml')}.yaml") if is_cases(path) else path for path in paths)
    )


def is_cases(path: Path) -> bool:
    """Whether the file is one of cases, by its name."""
    return path.name.endswith(".cases.yaml")


def load_cases(path: Path) -> Cases:
    """The cases of one file. Raises NotFound, BadContract."""
    return _cases(path, parse(path))


def _cases(path: Path, parsed: Parsed) -> Cases:
    return validated(Cases, parsed.document, file=str(path), positions=parsed.positions)


@dataclass(frozen=True, slots=True)
class FileChecked:
    """What was found in one contract's file and in its cases, and how many of these were run."""

    file: str
    findings: list[Finding]
    cases: int = 0
    stories: int = 0


def check(path: Path, today: date) -> list[Finding]:
    """What is wrong with one file and its cases, what it leaves unsafe, and what may be left as it is."""
    return check_file(path, today).findings


def check_file(path: Path, today: date) -> FileChecked:
    """The same, with what was run. A file that can't be read is a finding of its own, and hides no other."""
    try:
        parsed = parse(path)
        contract, positions = _contract(path, parsed), parsed.positions
    except BadInput as error:
        return FileChecked(str(path), _unread(path, error))
    beside = cases_beside(path)
    if not os.path.lexists(beside):
        advice = [Problem((), f"cases beside it, in {beside.name}", "no-cases")]
        return FileChecked(str(path), found_in(contract, today, str(path), positions, advice))
    try:
        parsed = parse(beside)
        cases, placed = _cases(beside, parsed), parsed.positions
    except BadInput as error:
        return FileChecked(str(path), found_in(contract, today, str(path), positions) + _unread(beside, error))
    checked = check_cases(contract, cases)
    found = found_in(contract, today, str(path), positions, checked.unreached, checked.shown)
    return FileChecked(str(path), found + findings(checked.wrong, str(beside), placed), len(cases.cases), len(cases.stories))


def _unread(path: Path, error: BadInput) -> list[Finding]:
    """What is wrong with a file that is no contract, or no cases."""
    return list(error.findings) if isinstance(error, BadContract) else [Finding(str(path), 1, 1, "", error.message)]


def parse(path: Path) -> Parsed:
    """One file as JSON. Raises NotFound, BadContract."""
    return parse_yaml(content(path), str(path))


def content(path: Path) -> bytes:
    """What a file holds, as far as it is looked at. Raises NotFound."""
    try:
        return first_bytes(path, MAX_BYTES + 1)
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None


def parse_yaml(data: bytes, file: str) -> Parsed:
    """A contract's strict YAML as JSON. Raises BadContract."""
    return read_yaml(data, file, BOUNDS)


def json_schema() -> JsonSchemaValue:
    """The language as JSON Schema."""
    return {"$schema": GenerateJsonSchema.schema_dialect, **Contract.model_json_schema(schema_generator=_EditorSchema)}


class _EditorSchema(GenerateJsonSchema):
    """An optional key is left out, never null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])
