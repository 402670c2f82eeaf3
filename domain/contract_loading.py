"""From a parsed file, or from the ledger's canonical copy, to a contract that every check has passed, or to findings.

* A finding names file, line, column, key and what was expected. Where a path has no place of its own (a key that is missing),
  the nearest place above it counts.
* The same function reads both sources, so a contract that loads from the folder loads from the ledger.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import cast

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from domain.contract import Contract
from domain.contract_checks import Problem, check_contract, not_built
from domain.contract_findings import safety_findings, unknown_accepts
from domain.contract_texts import Path
from domain.errors import BadContract, BadInput, Finding
from domain.fingerprint import canonical
from domain.jsontext import check_carriable

Positions = Mapping[Path, tuple[int, int]]

_WORDS = {
    "string_type": "text",
    "int_type": "an integer",
    "bool_type": "true or false",
    "float_type": "a number",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "tuple_type": "a list",
    "too_short": "at least one entry",
    "missing": "this key, which must be there",
}


def parse_contract(document: JsonValue, *, file: str, positions: Positions) -> Contract:
    """The contract of a parsed file. Raises BadContract with everything that was found."""
    try:
        check_carriable(document, "the file")
        contract = Contract.model_validate(document)
    except BadInput as error:
        raise BadContract([Finding(file, 1, 1, "", error.message)]) from None
    except ValidationError as error:
        raise BadContract(_findings(_translated(error, document), file, positions)) from None
    problems = [*not_built(document), *check_contract(contract), *unknown_accepts(contract)]
    if problems:
        raise BadContract(_findings(problems, file, positions))
    return contract.sealed(canonical(document))


def contract_from_canonical(data: bytes) -> Contract:
    """The contract that an operation was pinned to, from the ledger's bytes. Raises BadContract."""
    try:
        document = cast("JsonValue", json.loads(data))
    except ValueError:
        raise BadContract([Finding("<ledger>", 1, 1, "", "canonical JSON")]) from None
    return parse_contract(document, file="<ledger>", positions={})


def safety(contract: Contract, *, today: date, file: str, positions: Positions) -> list[Finding]:
    """The safety findings that the contract does not accept, at their places."""
    return _findings(safety_findings(contract, today=today), file, positions)


def _findings(problems: Iterable[Problem], file: str, positions: Positions) -> list[Finding]:
    found = {
        Finding(file, *_place(problem.path, positions), ".".join(map(str, problem.path)), problem.expected, problem.code)
        for problem in problems
    }
    return sorted(found, key=lambda finding: (finding.line, finding.column, finding.key, finding.expected))


def _place(path: Path, positions: Positions) -> tuple[int, int]:
    """Where the path stands; the file may have one value where the language has a list, so an index can be missing."""
    found, here = positions.get((), (1, 1)), ()
    for part in path:
        if (*here, part) in positions:
            here = (*here, part)
            found = positions[here]
        elif part != 0:
            break
    return found


def _translated(error: ValidationError, document: JsonValue) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        path = tuple(_known_parts(detail["loc"], document, detail["type"]))
        context = detail.get("ctx", {})
        match detail["type"]:
            case "unknown_keys":
                for key, hint in cast("dict[str, str]", context["hints"]).items():
                    yield Problem((*path, key), f"no such key{hint}; known here: {context['known']}", "unknown-key")
            case "expected":
                yield Problem((*path, *cast("Path", context["path"])), str(context["what"]))
            case _:
                yield Problem(path, _said(detail))


def _said(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        return f"one of {context['expected']}"
    said = _WORDS.get(detail["type"])
    return f"expected {said}" if said and detail["type"] != "missing" else said or detail["msg"]


def _known_parts(location: tuple[str | int, ...], document: JsonValue, kind: str) -> Iterator[str | int]:
    """The parts of pydantic's location that are parts of the file; names of union members and of validators are not."""
    node = document
    for index, part in enumerate(location):
        match node, part:
            case dict(), str() if part in node:
                node = node[part]
                yield part
            case list(), int() if part < len(node):
                node = node[part]
                yield part
            case _:
                if kind == "missing" and index == len(location) - 1:
                    yield part
