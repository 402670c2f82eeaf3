"""Looking for the job of a create whose outcome is unknown: what one answer of a lookup shows. Total, like every reading.

* `get` asks for one job by a name that is ours: `found` and `absent` are the contract's words, everything else decides nothing.
* `list` shows items, page by page: those that the match fits are candidates, named by all that the contract says of a job.
* An item that cannot be judged, or fits and cannot be named, may be ours: its page decides nothing, and is never "no match".
* An answer that was not read whole shows nothing. How pages lead on is the provider's word; that they end is the caller's care.
* Whether one match is adopted, and whether none is absence, needs clocks and stands in the activity.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from pydantic import JsonValue

from domain.answer_matching import Judged, judge
from domain.contract import Contract
from domain.exchange import Answer
from domain.language.calls import Lookup
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.matching import Difference, Match, holds
from domain.paging import Following, following
from domain.reading import job_of, words_of

MAX_ITEMS: Final = 100_000
MAX_CANDIDATES: Final = 20
Meaning = Literal["found", "absent", "page", "failed", "violation"]
_GET: Final[dict[str, Meaning]] = {"found": "found", "absent": "absent"}


@dataclass(frozen=True, slots=True)
class Found:
    """What one answer showed. `jobs`: what fits on one page of `size` items; `leads`: to which page next."""

    meaning: Meaning
    word: str = "default"
    job: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    jobs: tuple[dict[str, JsonValue], ...] = ()
    size: int = 0
    leads: Following = field(default_factory=Following)
    reason: str | None = None
    message: str | None = None
    request_id: str | None = None
    code: str | None = None
    delay_ms: int | None = None
    differs: Difference | None = None


def read_get(contract: Contract, lookup: Lookup, answer: Answer, scope: Scope, now: datetime) -> Found:
    """What an answer to `by: get` shows."""
    judged = judge(contract, answer, scope, now, lookup.answers, lookup.same)
    if judged.same == "differs":
        return _said(contract, judged, "violation")
    meaning = _GET.get(judged.decided or "", "failed") if judged.readable else "failed"
    job = job_of(lookup.job, judged.scope) if meaning == "found" else {}
    if meaning == "found" and "id" not in job:
        meaning = "failed"
    return replace(_said(contract, judged, meaning), job=job)


def read_page(contract: Contract, lookup: Lookup, answer: Answer, scope: Scope, now: datetime) -> Found:
    """What one page of `by: list` shows. `scope.page.index` says which."""
    judged = judge(contract, answer, scope, now, lookup.answers, None)
    refused = judged.entry is not None or not 200 <= answer.status < 300 or not judged.readable
    if refused or lookup.pages is None or lookup.match is None:
        return _said(contract, judged, "failed")
    try:
        items = first_value(lookup.pages.items, judged.scope)
        fitting = _fitting(lookup, lookup.match, items, judged.scope) if isinstance(items, list) else None
        leads = following(lookup.pages, judged.scope)
    except TooMuch:
        return _said(contract, judged, "failed")
    if fitting is None or leads is None or not isinstance(items, list):
        return _said(contract, judged, "failed")
    return replace(_said(contract, judged, "page"), jobs=fitting, size=len(items), leads=leads)


def _fitting(lookup: Lookup, match: Match, items: Iterable[JsonValue], scope: Scope) -> tuple[dict[str, JsonValue], ...] | None:
    """The jobs that the match fits, each once; None if one of them cannot be named. Raises TooMuch."""
    found: dict[str, dict[str, JsonValue]] = {}
    for item in items:
        here = replace(scope, item=item)
        if not holds(match, here):
            continue
        job = job_of(lookup.job, here)
        if "id" not in job:
            return None
        found.setdefault(str(job["id"]), job)
    return tuple(found.values())[:MAX_CANDIDATES]


def _said(contract: Contract, judged: Judged, meaning: Meaning) -> Found:
    errors = contract.errors
    return Found(
        meaning,
        word=judged.word,
        reason=words_of(judged.entry.reason if judged.entry else (), judged.scope),
        code=words_of(errors.code, judged.scope),
        message=words_of(errors.message, judged.scope),
        request_id=words_of(errors.request_id, judged.scope),
        delay_ms=judged.delay_ms,
        differs=judged.differs,
    )
