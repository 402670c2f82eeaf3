"""What an answer means: one of a closed set of meanings for each call. Total: any bytes give a reading, nothing raises.

* Entries are tried in order, then those of `errors`, then the default of the call. The default never claims anything.
* A `when` that does not mention `status` holds for 2xx alone. A body that could not be read matches no entry that mentions it,
  and no answer with such a body ends anything: success, failure and completion need an answer that was read whole.
* `same` is checked on what an entry matched. A value that differs is a violation; one that a 2xx lacks leaves the answer undecided,
  except where the entry's word claims nothing about the job (throttled, unauthorized, rejected, unsure).
* An evaluation that passes its budget makes the answer unreadable.
* A job that has `ended` came to what its counts say; where they don't say it, it is a partial one until its items were counted.
* The provider's words are bounded, printable, and never more than words.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, get_args

from pydantic import JsonValue

from domain.bodies import Decoded, decode, headers_root
from domain.contract import Contract
from domain.counts import Counted, outcome_of, read_counts
from domain.evidence import bounded
from domain.exchange import Answer
from domain.jsontext import number_text
from domain.language.calls import Answer as Entry
from domain.language.calls import CommonWord, Source, Verdict
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.grammar import milliseconds
from domain.language.matching import Match, Sameness, holds, is_met, roots_of, sameness, tested
from domain.language.stages import Progress
from domain.polling import hint

Meaning = Literal[
    "accepted", "ambiguous", "stuck", "unnamed", "finished", "in_flight", "violation", "refused", "not_executed",
    "going", "not_visible", "held", "terminal", "gone", "failed",
    "taken", "read_again", "unsure", "again", "done",
]  # fmt: skip

MAX_STATE: Final = 64
MAX_JOB_ID: Final = 512
MAX_JOB_VALUE: Final = 8_192
DEFAULT: Final = "default"
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
_CLAIMS_NOTHING: Final = frozenset(get_args(CommonWord))
_REFUSALS: Final = _CLAIMS_NOTHING | {"failed", "mismatch", "refused"}
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
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Judged:
    """The entry that matched (None: the default), and what it was matched against."""

    entry: Entry[str] | None
    same: Sameness
    scope: Scope
    decoded: Decoded
    readable: bool
    delay_ms: int | None

    @property
    def word(self) -> str:
        """The entry's word, or `default`."""
        return self.entry.word if self.entry else DEFAULT

    @property
    def decided(self) -> str | None:
        """The word, unless nothing may be concluded from it."""
        missing = self.same == "missing" and self.word not in _CLAIMS_NOTHING
        return None if self.entry is None or missing else self.entry.word


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
        case "going", _ if not _is_2xx(answer.status):
            meaning = "not_visible"
        case "terminal", _ if not judged.readable:
            meaning = "failed"
        case "failed", Judged(entry=None, readable=True) if _is_2xx(answer.status) and (
            judged.decoded.body is not None or not mentions_body
        ):
            meaning = "held"
        case _:
            pass
    if compare and meaning in {"going", "held", "terminal"}:
        meaning = _COMPARED.get(_compared(contract.create.compare, judged), meaning)
    reading = _reading(contract, judged, meaning, observe.reason, [state.when for state in observe.states])
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
    """What an answer of a collecting request means. `answer.body` may be left out where `needs_body` says so."""
    judged = judge(contract, answer, scope, now, source.answers, None)
    meaning = _meaning(judged, _COLLECT, "done" if answer.status == 200 else "again")
    return _reading(contract, judged, "again" if meaning == "done" and answer.fault else meaning, ())


def needs_body(source: Source) -> bool:
    """Whether a 2xx answer of this source must be read whole before it is known to be the result."""
    return any(entry.when and roots_of(entry.when) & {"body", "text"} for entry in source.answers)


def answer_scope(answer: Answer, scope: Scope, decoded: Decoded | None = None) -> Scope:
    """The scope with the roots of one answer."""
    found = decode(answer) if decoded is None else decoded
    return replace(scope, status=answer.status, headers=headers_root(answer), body=found.body, text=found.text)


def observed_value(call: Literal["create", "observe"], answer: Answer) -> dict[str, JsonValue]:
    """The root `observed`: the answer that ended the waiting."""
    return {"call": call, "status": answer.status, "headers": headers_root(answer), "body": decode(answer).body}


def judge(
    contract: Contract,
    answer: Answer,
    scope: Scope,
    now: datetime,
    entries: Sequence[Entry[str]],
    same: Match | None,
    hints: tuple[str, ...] = (),
) -> Judged:
    """The entry that an answer matches, and whether it is about what was asked. Never raises."""
    decoded = decode(answer)
    here = answer_scope(answer, scope, decoded)
    readable = decoded.fault is None
    entry: Entry[str] | None = None
    alike: Sameness = "same"
    try:
        entry = next((one for one in (*entries, *contract.errors.answers) if _matches(one, answer, here, readable)), None)
        alike = sameness(same, here) if entry and same else "same"
    except TooMuch:
        entry, readable = None, False
    if alike == "missing" and not _is_2xx(answer.status):
        alike = "same"  # a refusal, or a 404, shows no job: what it lacks says nothing of whose it is
    delay = hint((*contract.http.delay_hints, *hints), here, now)
    spans = [span for span in (delay, entry.after if entry else None) if span is not None]
    return Judged(entry, alike, here, decoded, readable, milliseconds(max(spans)) if spans else None)


def _matches(entry: Entry[str], answer: Answer, scope: Scope, readable: bool) -> bool:
    if entry.when is None:
        return _is_2xx(answer.status)
    roots = roots_of(entry.when)
    if ("status" not in roots and not _is_2xx(answer.status)) or (not readable and roots & {"body", "text"}):
        return False
    return holds(entry.when, scope)


def _meaning(judged: Judged, table: Mapping[str, Meaning], default: Meaning) -> Meaning:
    if judged.same == "differs":
        return "violation"
    return default if judged.decided is None else table.get(judged.decided, default)


def _reading(contract: Contract, judged: Judged, meaning: Meaning, reason: tuple[str, ...], shown: Iterable[Match | None] = ()) -> Reading:
    entry, errors = judged.entry, contract.errors
    refused = judged.word in _REFUSALS or not _is_2xx(judged.scope.status or 0)
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


def _is_2xx(status: int) -> bool:
    return 200 <= status <= 299
