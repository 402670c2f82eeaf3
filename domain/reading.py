"""What an answer means: one of a closed set of meanings for each call. Total: any bytes give a reading, nothing raises.

* It means what the entry says that it matches (`answer_matching.py`), else the default of the call, which never claims anything.
* No answer with a body that could not be read ends anything: success, failure and completion need an answer that was read whole.
* A job that has `ended` came to what its counts say; where they don't say it, it is a partial one until its items were counted.
* The provider's words are bounded, printable, and never more than words.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, get_args

from pydantic import JsonValue

from domain.answer_matching import CLAIMS_NOTHING, DEFAULT, Judged, is_2xx, judge
from domain.contract import Contract
from domain.counts import Counted, outcome_of, read_counts
from domain.evidence import bounded
from domain.exchange import Answer
from domain.jsontext import number_text
from domain.language.calls import Source, Verdict
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.matching import Difference, Match, Sameness, difference, is_met, roots_of, sameness, tested
from domain.language.stages import Progress

Meaning = Literal[
    "accepted", "ambiguous", "stuck", "unnamed", "finished", "in_flight", "violation", "refused", "not_executed",
    "going", "not_visible", "held", "terminal", "gone", "failed",
    "taken", "read_again", "unsure", "again", "done",
]  # fmt: skip

MAX_STATE: Final = 64
MAX_JOB_ID: Final = 512
MAX_JOB_VALUE: Final = 8_192
ENDED: Final = "ended"
"""The state that leaves it to the counts."""

_CREATE: Final[dict[str, Meaning]] = {
    "accepted": "accepted",
    "exists": "accepted",
    "accepted_unnamed": "unnamed",
    "completed": "finished",
    "failed": "finished",
    "in_flight": "in_flight",
    "mismatch": "violation",
    "rejected": "refused",
    "throttled": "not_executed",
    "unauthorized": "not_executed",
    "unsure": "ambiguous",
}
_OBSERVE: Final[dict[str, Meaning]] = {
    "waiting": "going",
    "running": "going",
    "needs_input": "going",
    "cancelling": "going",
    "succeeded": "terminal",
    "partial": "terminal",
    "failed": "terminal",
    "cancelled": "terminal",
    "ended": "terminal",
    "gone": "gone",
    "rejected": "refused",
    "throttled": "failed",
    "unauthorized": "failed",
    "unsure": "failed",
}
_CANCEL: Final[dict[str, Meaning]] = {
    "acknowledged": "taken",
    "already_terminal": "read_again",
    "not_yet": "again",
    "throttled": "again",
    "unauthorized": "again",
    "refused": "refused",
    "rejected": "refused",
    "unsure": "unsure",
}
_COLLECT: Final[dict[str, Meaning]] = {
    "done": "done",
    "not_ready": "again",
    "throttled": "again",
    "unauthorized": "again",
    "unsure": "again",
    "rejected": "refused",
    "gone": "gone",
}
_VERDICTS: Final[dict[str, Verdict]] = {word: word for word in get_args(Verdict)}
_COUNTED: Final[dict[str, Verdict]] = {"whole": "succeeded", "partial": "partial", "none": "failed"}
_FINISHED: Final[dict[str, Verdict]] = {"completed": "succeeded", "failed": "failed"}
_REFUSALS: Final = CLAIMS_NOTHING | {"failed", "mismatch", "refused"}
"""Words whose answers are refusals even with a 2xx, so that `errors` says how they read."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one answer means, and what it showed."""

    meaning: Meaning
    word: str = DEFAULT
    verdict: Verdict | None = None
    remote_state: str = DEFAULT
    job: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    request_id: str | None = None
    note: str = ""
    progress: dict[str, int | float] | None = None
    counts: dict[str, int] | None = None
    counts_problem: str | None = None
    undecided: bool = False
    at: str | None = None
    delay_ms: int | None = None
    same_differs: bool = False
    differs: Difference | None = None
    readable: bool = True


def read_create(contract: Contract, answer: Answer, scope: Scope, now: datetime) -> Reading:
    """What an answer to the create means."""
    create = contract.create
    judged = judge(contract, answer, scope, now, create.answers, create.same)
    reading = _reading(contract, judged, _meaning(judged, _CREATE, "ambiguous"), ())
    verdict = _FINISHED.get(judged.word) if reading.meaning == "finished" else None
    reading = replace(reading, job=job_of(create.job, judged.scope), verdict=verdict)
    if answer.status >= 500 and reading.meaning != "violation" and create.token and _replayed(create.token.replayed, judged):
        return replace(reading, meaning="stuck", verdict=None)
    nameless = reading.meaning == "accepted" and "id" not in reading.job
    unread = reading.meaning == "finished" and not judged.readable
    return replace(reading, meaning="ambiguous", verdict=None) if nameless or unread else reading


def read_observe(contract: Contract, answer: Answer, scope: Scope, now: datetime, *, compare: bool = False) -> Reading:
    """What a status answer means. `scope.phase` says what is known so far.

    `compare`: the job was named by `exists`, and this is its first reading: it must be what was asked for.
    """
    observe = contract.observe
    if observe is None:
        return Reading("failed", readable=False)
    judged = judge(contract, answer, scope, now, observe.states, observe.same, observe.poll.hints)
    meaning = _meaning(judged, _OBSERVE, "failed")
    mentions_body = any("body" in roots_of(state.when) for state in observe.states if state.when)
    match meaning, judged:
        case "going", _ if not is_2xx(answer.status):
            meaning = "not_visible"
        case "terminal", _ if not judged.readable:
            meaning = "failed"
        case "failed", Judged(entry=None, readable=True) if is_2xx(answer.status) and (
            judged.decoded.body is not None or not mentions_body
        ):
            meaning = "held"
        case _:
            pass
    if compare and meaning in {"going", "held", "terminal"}:
        meaning = _COMPARED.get(_compared(contract.create.compare, judged), meaning)
    reading = _reading(contract, judged, meaning, observe.reason, [state.when for state in observe.states])
    if meaning == "violation" and reading.differs is None:
        reading = replace(reading, differs=difference(contract.create.compare or {}, judged.scope))
    counted = read_counts(observe.counts, judged.scope) if meaning in {"going", "held", "terminal"} else Counted()
    return replace(
        reading,
        verdict=_verdict(judged.word, counted.counts) if meaning == "terminal" else None,
        undecided=meaning == "terminal" and judged.word == ENDED and outcome_of(counted.counts) is None,
        counts=counted.counts or None,
        counts_problem=counted.problem,
        progress=_progress(observe.progress, judged.scope) if observe.progress else _counted(counted.counts),
        at=words_of(observe.at, judged.scope),
    )


def _verdict(word: str, counts: Mapping[str, int]) -> Verdict:
    """What the word says; of `ended` what the counts say, and where they say nothing, that more is to be known."""
    if word != ENDED:
        return _VERDICTS[word]
    return _COUNTED[outcome_of(counts) or "partial"]


def read_cancel(contract: Contract, answer: Answer, scope: Scope, now: datetime, *, forced: bool = False) -> Reading:
    """What an answer to the cancel, or to the forced one, means. Only a state of observe confirms a cancel."""
    cancel = contract.cancel.force if contract.cancel is not None and forced else contract.cancel
    if cancel is None:
        return Reading("refused")
    judged = judge(contract, answer, scope, now, cancel.answers, cancel.same)
    return _reading(contract, judged, _meaning(judged, _CANCEL, "unsure"), ())


def read_collect(contract: Contract, source: Source, answer: Answer, scope: Scope, now: datetime) -> Reading:
    """What an answer of a collecting request means."""
    judged = judge(contract, answer, scope, now, source.answers, None)
    meaning = _meaning(judged, _COLLECT, "done" if answer.status == 200 else "again")
    return _reading(contract, judged, "again" if meaning == "done" and answer.fault else meaning, ())


def _meaning(judged: Judged, table: Mapping[str, Meaning], default: Meaning) -> Meaning:
    if judged.same == "differs":
        return "violation"
    return default if judged.decided is None else table.get(judged.decided, default)


def _reading(contract: Contract, judged: Judged, meaning: Meaning, reason: tuple[str, ...], shown: Iterable[Match | None] = ()) -> Reading:
    entry, errors = judged.entry, contract.errors
    refused = judged.word in _REFUSALS or not is_2xx(judged.scope.status or 0)
    return Reading(
        meaning,
        word=judged.word,
        remote_state=_remote_state(judged, shown),
        reason=words_of((entry.reason if entry else ()) or reason, judged.scope),
        code=words_of(errors.code, judged.scope) if refused else None,
        message=words_of(errors.message, judged.scope) if refused else None,
        request_id=words_of(errors.request_id, judged.scope),
        note=entry.note if entry else "",
        delay_ms=judged.delay_ms,
        same_differs=judged.same == "differs",
        differs=judged.differs,
        readable=judged.readable,
    )


def _remote_state(judged: Judged, shown: Iterable[Match | None]) -> str:
    """What the matched entry looked at in the body; where none matched, what the entries would have looked at; else the word."""
    looked = [judged.entry.when] if judged.entry else shown
    try:
        found = next((value for when in looked if when for value in [tested(when, judged.scope)] if value is not None), None)
    except TooMuch:
        found = None
    return judged.word if found is None or found == "" else bounded(_plain(found), MAX_STATE)


_COMPARED: Final[dict[Sameness, Meaning]] = {"differs": "violation", "missing": "failed"}


def _compared(match: Match | None, judged: Judged) -> Sameness:
    try:
        return sameness(match, judged.scope) if match else "same"
    except TooMuch:
        return "missing"


def _replayed(match: Match | None, judged: Judged) -> bool:
    return match is not None and is_met(match, judged.scope)


def job_of(names: Mapping[str, tuple[str, ...]], scope: Scope) -> dict[str, JsonValue]:
    """The values that name the job. An id that breaks the rules is no id."""
    found: dict[str, JsonValue] = {}
    for name, expressions in names.items():
        try:
            value = first_value(expressions, scope)
        except TooMuch:
            continue
        kept = job_id(value) if name == "id" else value
        if kept is not None and len(json.dumps(kept)) <= MAX_JOB_VALUE:
            found[name] = kept
    return found


def job_id(value: JsonValue) -> str | None:
    """A job's id as text of 1 to 512 visible characters, or None. A character that was lost in reading makes it no id."""
    match value:
        case bool():
            return None
        case int():
            text = number_text(value)
        case str():
            text = value
        case _:
            return None
    visible = text.isprintable() and not any(letter.isspace() or letter == "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if 1 <= len(text) <= MAX_JOB_ID and visible else None


def _counted(counts: Mapping[str, int]) -> dict[str, int | float] | None:
    """Progress where the contract names none: what is done, by the counts."""
    named = {"completed": counts.get("done"), "total": counts.get("total")}
    return {name: number for name, number in named.items() if number is not None} if named["completed"] is not None else None


def _progress(progress: Progress, scope: Scope) -> dict[str, int | float] | None:
    found: dict[str, int | float] = {}
    for name, expressions in (("completed", progress.completed), ("total", progress.total), ("percent", progress.percent)):
        value = _safe_value(expressions, scope)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53:
            found[name] = value
    return found or None


def words_of(expressions: tuple[str, ...], scope: Scope) -> str | None:
    """The provider's words that the expressions give, bounded and printable."""
    value = _safe_value(expressions, scope)
    return None if value is None else bounded(" ".join(_plain(value)[:4_096].split()))


def _safe_value(expressions: tuple[str, ...], scope: Scope) -> JsonValue:
    try:
        return first_value(expressions, scope)
    except TooMuch:
        return None


def _plain(value: JsonValue) -> str:
    match value:
        case str():
            return value
        case bool() | None | list() | dict():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return number_text(value)
