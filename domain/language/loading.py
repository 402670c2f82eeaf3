"""From a parsed file, or from the ledger's canonical copy, to a contract, or to findings.

* A finding names file, line, column, key and what was expected. Where a path has no place of its own (a key that is missing),
  the nearest place above it counts.
* Both sources are read by the same models; a file has to pass the checks of whole contracts too.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import TypeVar, cast

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from domain.contract import Contract
from domain.errors import BadContract, BadInput, Finding
from domain.fingerprint import canonical
from domain.jsontext import check_carriable
from domain.language.checks import Problem, check_contract
from domain.language.findings import accepted_in_vain, gone_for_cancelled, remedy, safety_findings, unknown_accepts
from domain.language.grammar import Strict, did_you_mean
from domain.language.holes import holes
from domain.language.texts import Path

M = TypeVar("M", bound=Strict)

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
    contract = validated(Contract, document, file=file, positions=positions)
    problems = [*check_contract(contract), *unknown_accepts(contract)]
    if problems:
        raise BadContract(findings(problems, file, positions))
    return contract.sealed(canonical(document))


def validated(model: type[M], document: JsonValue, *, file: str, positions: Positions) -> M:
    """A parsed file as a model of closed keys. Raises BadContract with everything that was found."""
    try:
        check_carriable(document, "the file")
        return model.model_validate(document)
    except BadInput as error:
        raise BadContract(findings([Problem(_uncarriable(document), error.message)], file, positions)) from None
    except ValidationError as error:
        raise BadContract(findings(_translated(error, document), file, positions)) from None


def _uncarriable(node: JsonValue) -> Path:
    """Where the innermost value stands that canonical JSON cannot carry."""
    match node:
        case dict():
            within: list[tuple[str | int, JsonValue]] = list(node.items())
        case list():
            within = list(enumerate(node))
        case _:
            return ()
    for part, value in within:
        try:
            check_carriable(value)
        except BadInput:
            return (part, *_uncarriable(value))
    return ()


def holes_in(document: JsonValue, *, file: str, positions: Positions) -> list[Finding]:
    """The holes of a file and, if it has any, what else is wrong with it apart from them. What hangs on a hole is not known yet."""
    found = findings(holes(document), file, positions)
    if not found:
        return []
    try:
        validated(Contract, document, file=file, positions=positions)
        return found
    except BadContract as error:
        apart = [one for one in error.findings if not any(_touch(one.key, hole.key) for hole in found)]
        return sorted([*found, *apart], key=lambda finding: (finding.line, finding.column))


def _touch(key: str, other: str) -> bool:
    """Whether one is at, above or below the other."""
    return not key or not other or f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def contract_from_canonical(data: bytes) -> Contract:
    """The contract that an operation was pinned to, from the ledger's bytes. Raises BadContract.

    It passed the checks of its day when it was pinned; what is checked since then is for contracts that are new.
    """
    try:
        document = cast("JsonValue", json.loads(data))
    except ValueError:
        raise BadContract([Finding("<ledger>", 1, 1, "", "canonical JSON")]) from None
    return validated(Contract, document, file="<ledger>", positions={}).sealed(canonical(document))


def found_in(
    contract: Contract,
    today: date,
    file: str,
    positions: Positions,
    more: Iterable[Problem] = (),
    shown: Collection[Path] = (),
) -> list[Finding]:
    """The safety findings that the contract does not accept, and advice, at their places."""
    unsafe = safety_findings(contract, today=today, shown=shown)
    advice = (*accepted_in_vain(contract, today=today, shown=shown), *gone_for_cancelled(contract), *more)
    return findings((*unsafe, *advice), file, positions)


def findings(problems: Iterable[Problem], file: str, positions: Positions) -> list[Finding]:
    """Problems at their places, in the order of the file."""
    found = {
        Finding(file, *_place(one.path, positions), ".".join(map(str, one.path)), one.expected, one.code, one.remedy or remedy(one.code))
        for one in problems
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
    words: dict[Path, list[str]] = {}
    for detail in error.errors(include_url=False):
        path = tuple(_known_parts(detail["loc"], document, detail["type"]))
        context = detail.get("ctx", {})
        match detail["type"]:
            case "unknown_keys":
                for key, hint in cast("dict[str, str]", context["hints"]).items():
                    yield Problem((*path, key), f"no such key{hint}; {context['known']}", "unknown-key")
            case "expected":
                yield Problem((*path, *cast("Path", context["path"])), str(context["what"]))
            case "literal_error":
                words.setdefault(path, []).append(str(context["expected"]))
            case _:
                yield Problem(path, _said(detail))
    yield from (Problem(path, _one_of(lists, _at(document, path))) for path, lists in words.items())


def _one_of(lists: Iterable[str], given: JsonValue) -> str:
    """Several lists of words for one value (a call's own, and those of every call) are one list."""
    known = list(dict.fromkeys(word for words in lists for word in re.split(", | or ", words)))
    near = did_you_mean(given, [word.strip("'") for word in known]) if isinstance(given, str) else ""
    return f"one of {', '.join(known)}{near}"


def _at(node: JsonValue, path: Path) -> JsonValue:
    """The value at a path that the file has."""
    for part in path:
        node = cast("Mapping[str | int, JsonValue]", node)[part]
    return node


def _said(detail: ErrorDetails) -> str:
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
