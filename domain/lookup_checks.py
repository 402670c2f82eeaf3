"""What is wrong with the lookups of a contract: which keys belong to which kind, and what makes a match exact."""

from collections.abc import Iterator
from typing import Final

from domain.calls import Lookup
from domain.contract import Contract
from domain.contract_texts import Path
from domain.matching import roots_of

KEYS: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "get": (frozenset({"request", "answers", "job"}), frozenset({"same"})),
    "list": (frozenset({"request", "pages", "match", "strength", "job"}), frozenset({"answers", "same", "proves_absence"})),
    "webhook": (frozenset({"match", "wait"}), frozenset({"job"})),
}
"""For each kind: the keys that must be there, and those that may."""

_COMMON: Final = frozenset({"by", "visible_within"})
OURS: Final = frozenset({"mark", "token", "steps"})
"""Roots whose values only we know: a match that contains one of them is exact."""


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
        yield from _check_parts(contract, lookup, path)


def _check_parts(contract: Contract, lookup: Lookup, path: Path) -> Iterator[tuple[Path, str]]:
    if lookup.by == "get" and not {answer.word for answer in lookup.answers} & {"found", "absent"}:
        yield (*path, "answers"), "an answer that is found or absent"
    if lookup.by == "list" and lookup.pages and not lookup.pages.items:
        yield (*path, "pages"), "items: where the list stands in a page"
    if lookup.by == "list" and lookup.strength == "exact" and lookup.match and not roots_of(lookup.match) & OURS:
        yield (*path, "strength"), f"heuristic, or a match with one of {', '.join(sorted(OURS))}"
    if lookup.by != "webhook" and "id" not in lookup.job:
        yield (*path, "job"), "an id among the names of the job"
    missing = sorted(set(contract.create.job) - set(lookup.job)) if lookup.by != "webhook" else []
    used = [name for name in missing if name != "id"]
    if used:
        yield (*path, "job"), f"{', '.join(used)}, which create.job names too"
    if lookup.by == "webhook" and contract.webhook is None:
        yield path, "a webhook, where a lookup waits for one"
