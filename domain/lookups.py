"""Looking for the job of a create whose outcome is unknown: what one answer of a lookup shows. Total, like every reading.

* `get` asks for one job by a name that is ours: `found` and `absent` are the contract's words, everything else decides nothing.
* `list` shows candidates, page by page: an item that the match fits, with the values that name its job.
* A match is adopted only if it is the only one and `exact` (the contract's match contains our mark, token or a step's value).
* None is absence only where the contract says that it proves it, and only from a lookup begun late enough: that rule needs
  clocks and stands in the activity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from pydantic import JsonValue

from domain.calls import Lookup
from domain.contract import Contract
from domain.exchange import Answer
from domain.expressions import Scope, first_value
from domain.functions import TooMuch
from domain.matching import holds
from domain.reading import Judged, job_id, job_of, judge, words_of

MAX_ITEMS: Final = 100_000
MAX_CANDIDATES: Final = 20
_GET: Final[dict[str, Literal["found", "absent"]]] = {"found": "found", "absent": "absent"}


@dataclass(frozen=True, slots=True)
class Found:
    """What one answer showed. `items` are the elements of one page; `next`: how the next page is asked for, if there is one."""

    meaning: Literal["found", "absent", "page", "failed", "violation"]
    word: str = "default"
    job: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    items: tuple[JsonValue, ...] = ()
    next: JsonValue = None
    next_url: str | None = None
    more: bool = False
    reason: str | None = None
    message: str | None = None
    request_id: str | None = None
    code: str | None = None
    delay_ms: int | None = None


def read_get(contract: Contract, lookup: Lookup, answer: Answer, scope: Scope, now: datetime) -> Found:
    """What an answer to `by: get` shows."""
    judged = judge(contract, answer, scope, now, lookup.answers, lookup.same)
    if judged.same == "differs":
        return _said(contract, judged, "violation")
    meaning = _GET.get(judged.decided or "")
    if meaning is None:
        return _said(contract, judged, "failed")
    if meaning == "absent":
        return _said(contract, judged, "absent")
    job = job_of(lookup.job, judged)
    return replace(_said(contract, judged, "found" if "id" in job else "failed"), job=job)


def read_page(contract: Contract, lookup: Lookup, answer: Answer, scope: Scope, now: datetime) -> Found:
    """What one page of `by: list` shows."""
    judged = judge(contract, answer, scope, now, lookup.answers, lookup.same)
    if judged.same == "differs":
        return _said(contract, judged, "violation")
    pages = lookup.pages
    readable = 200 <= answer.status < 300 and judged.readable and judged.decided not in {"throttled", "unauthorized", "rejected", "unsure"}
    if pages is None or not readable:
        return _said(contract, judged, "failed")
    try:
        items = first_value(pages.items, judged.scope)
        if not isinstance(items, list):
            return _said(contract, judged, "failed")
        following = first_value(pages.next, judged.scope) if pages.next else None
        url = first_value(pages.next_url, judged.scope) if pages.next_url else None
        more = holds(pages.more, judged.scope) if pages.more is not None else True
    except TooMuch:
        return _said(contract, judged, "failed")
    paged = bool(pages.next) or bool(pages.next_url)
    goes_on = more and (following is not None or url is not None if paged else pages.more is not None)
    found = _said(contract, judged, "page")
    return replace(found, items=tuple(items), next=following, next_url=url if isinstance(url, str) else None, more=goes_on)


def candidates(lookup: Lookup, items: Sequence[JsonValue], scope: Scope) -> list[dict[str, JsonValue]]:
    """The jobs that the match fits, each once, as far as they can be named."""
    found: dict[str, dict[str, JsonValue]] = {}
    for item in items:
        here = replace(scope, item=item)
        try:
            if lookup.match is None or not holds(lookup.match, here):
                continue
            job = {name: value for name in lookup.job for value in [first_value(lookup.job[name], here)] if value is not None}
        except TooMuch:
            continue
        named = job_named(job)
        if named is not None:
            found.setdefault(str(named["id"]), named)
    return list(found.values())[:MAX_CANDIDATES]


def job_named(job: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The job, if its id keeps the rules of an id."""
    named = job_id(job.get("id"))
    return None if named is None else {**job, "id": named}


def _said(contract: Contract, judged: Judged, meaning: Literal["found", "absent", "page", "failed", "violation"]) -> Found:
    errors = contract.errors
    return Found(
        meaning,
        word=judged.word,
        reason=words_of(judged.entry.reason if judged.entry else (), judged.scope),
        code=words_of(errors.code, judged.scope),
        message=words_of(errors.message, judged.scope),
        request_id=words_of(errors.request_id, judged.scope),
        delay_ms=judged.delay_ms,
    )
