"""What is wrong with the lookups of a contract: which keys belong to which kind, and what makes a match exact."""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from domain.contract import Contract
from domain.language.calls import Lookup
from domain.language.expressions import compile_expression
from domain.language.matching import Match
from domain.language.page_checks import check_way
from domain.language.templates import compile_template
from domain.language.texts import Path

KEYS: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "get": (frozenset({"request", "answers", "job"}), frozenset({"same"})),
    "list": (frozenset({"request", "pages", "match", "strength", "job"}), frozenset({"proves_absence"})),
    "webhook": (frozenset({"match", "wait"}), frozenset({"job"})),
}
"""For each kind: the keys that must be there, and those that may."""

_COMMON: Final = frozenset({"by", "visible_within"})
OURS: Final = frozenset({"mark", "token", "steps"})
"""Roots whose values only we know: a match that every fitting item must answer with one of them is exact."""


def check_lookups(contract: Contract) -> Iterator[tuple[Path, str]]:
    """Every error of the lookups, as path and what was expected."""
    for index, lookup in enumerate(contract.reconcile):
        path: Path = ("reconcile", index)
        must, may = KEYS[lookup.by]
        written = lookup.model_fields_set - _COMMON
        for key in sorted(must - written):
            yield path, f"{key}, which by: {lookup.by} needs"
        for key in sorted(written - must - may):
            yield (*path, key), f"no {key} beside by: {lookup.by}"
        if lookup.by == "get":
            yield from _check_get(lookup, path)
        elif lookup.by == "list":
            yield from _check_list(lookup, path)
        elif contract.webhook is None:
            yield path, "a webhook, where a lookup waits for one"
        if lookup.by != "webhook" or lookup.job:
            yield from _check_job(contract, lookup, path)


def _check_get(lookup: Lookup, path: Path) -> Iterator[tuple[Path, str]]:
    if lookup.answers and not {answer.word for answer in lookup.answers} & {"found", "absent"}:
        yield (*path, "answers"), "an answer that is found or absent"


def _check_list(lookup: Lookup, path: Path) -> Iterator[tuple[Path, str]]:
    pages = lookup.pages
    if pages and not pages.items:
        yield (*path, "pages"), "items: where the list stands in a page"
    if pages:
        yield from (((*path, "pages"), said) for said in check_way(pages, needed=False))
    if lookup.strength == "exact" and lookup.match and not _is_exact(lookup.match):
        yield (*path, "strength"), f"heuristic, or a match that nothing fits without one of {', '.join(sorted(OURS))}"


def _check_job(contract: Contract, lookup: Lookup, path: Path) -> Iterator[tuple[Path, str]]:
    if "id" not in lookup.job:
        yield (*path, "job"), "an id among the names of the job"
    missing = sorted(set(contract.create.job) - set(lookup.job) - {"id"})
    if missing:
        yield (*path, "job"), f"{', '.join(missing)}, which create.job names too"


def _is_exact(match: Match) -> bool:
    """A key may hold ours too: `"contains(item.tags, mark)": true`."""
    asked = [wanted for key, wanted in match.items() if compile_expression(key).roots & OURS]
    return any(wanted is True or isinstance(wanted, str) for wanted in asked) or any(map(_is_ours, match.values()))


def _is_ours(wanted: JsonValue) -> bool:
    """Nothing equals this without knowing a value of ours: alternatives must all be such, and `not`, `min` and `max` never are."""
    match wanted:
        case str():
            return any(hole.roots & OURS for hole in compile_template(wanted).holes)
        case list():
            return bool(wanted) and all(_is_ours(one) for one in wanted)
        case _:
            return False
