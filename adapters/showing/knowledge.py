"""What is known of an operation and what is not, as sentences. Only what an entry shows is said to be known."""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from adapters.showing.dossier import Dossier
from adapters.showing.exchanges import UNDOING, Shown, outcome_words, read_words
from adapters.showing.markdown import code, plain
from adapters.showing.story import sentence
from domain.evidence import Json, instant_text
from domain.standing import State, counts_text

ATTEMPTS_SHOWN = 10
LOOKUPS_SHOWN = 3
ITEMS_SHOWN = 10
_CLOCKS: dict[State, tuple[str, str]] = {
    "result_timed_out": ("result", "the job to end"),
    "cancellation_unconfirmed": ("cancel", "the cancel to be confirmed"),
}
_CALLS = {"create": "create", "status": "observe", "cancel": "cancel", "collect": "collect"}


def known(dossier: Dossier) -> Iterator[str]:
    """What the record shows."""
    yield from _creates(dossier)
    for one in dossier.of_call("lookup")[-LOOKUPS_SHOWN:]:
        yield f"We looked for the job in exchange {one['number']}, {one['began']}: {outcome_words(one)}: {read_words(one)}.{_said(one)}"
    standing = dossier.standing
    if standing.job is not None:
        since = "" if standing.job_at is None else f" We know of it since {instant_text(standing.job_at)}."
        yield f"The job is {_job(standing.job)}.{since}"
    yield from _status(dossier)
    if standing.violation is not None:
        yield from _violation(dossier, standing.violation)
    yield from _cancel(dossier)
    yield from _result(dossier)
    if standing.state in _CLOCKS:
        clock, what = _CLOCKS[standing.state]
        deadline = standing.deadlines.get(clock)
        yield f"Our deadline for {what} was {instant_text(deadline) if deadline else 'not recorded'}."
    yield from _people(dossier)


def unknown(dossier: Dossier) -> Iterator[str]:
    """What the record does not show."""
    standing = dossier.standing
    open_attempts = [*standing.unproven]
    if standing.open_attempt is not None and (standing.open_attempt.generation, standing.open_attempt.attempt) not in open_attempts:
        open_attempts.append((standing.open_attempt.generation, standing.open_attempt.attempt))
    if standing.job is None:
        for generation, attempt in open_attempts:
            yield f"Whether the create request of attempt {attempt} (generation {generation}) was carried out, and which job it made."
        if standing.unnamed:
            yield "Which job the accepted request made: the answer named none."
    elif len(open_attempts) > 1:
        yield "Whether each of the create requests made a job of its own, or all led to the one above."
    if standing.job is not None and standing.verdict is None and standing.state != "contract_violation":
        yield "Whether the job still runs, and how it will end."
    if standing.violation is not None:
        yield "Which of the contradicting statements is true."
    if dossier.of_call("cancel") and standing.verdict is None:
        taken = "The cancel was acknowledged; whether" if standing.cancel_acknowledged else "Whether the cancel was taken, and whether"
        yield f"{taken} the job was ended by it."
    if standing.state == "result_validation_failed":
        yield "Which is right: the result that was delivered, or what was said of it."
    if standing.state == "result_unavailable" and standing.verdict is not None:
        yield "Whether the result still exists, and how it can be had."
    if standing.state == "outcome_undecided":
        yield "Whether the job as a whole, or which parts of it, succeeded."


def _creates(dossier: Dossier) -> Iterator[str]:
    creates = dossier.of_call("create")
    for one in creates[:ATTEMPTS_SHOWN]:
        where = f" to {code(one['url'])}" if one["url"] else ""
        yield (
            f"Create attempt {one['attempt']} (generation {one['generation']}), exchange {one['number']}: {one['began'] or 'time unknown'}"
            f"{where}: {outcome_words(one)}: {read_words(one)}.{_said(one)}"
        )
    if len(creates) > ATTEMPTS_SHOWN:
        yield f"{len(creates) - ATTEMPTS_SHOWN} more create attempts stand in `exchanges.json`."
    beside = [*dossier.of_call("step"), *dossier.of_call("undo")]
    undos = sum(one["call"] == "undo" or _meaning(one) in UNDOING for one in beside)
    if not creates and beside:
        taken_back = f" Requests to take back what these left: {undos}, there too." if undos else ""
        ahead = f"Requests ahead of it were: {len(beside) - undos}, in `exchanges.json`."
        yield f"No request to create was answered or left unanswered. {ahead}{taken_back}"
    elif not creates:
        yield "No request to create was answered or left unanswered: nothing of this operation reached the provider."


def _status(dossier: Dossier) -> Iterator[str]:
    standing, reads = dossier.standing, dossier.of_call("status")
    usable = [one for one in reads if _meaning(one) not in {"failed", "refused"}]
    shown = [one for one in usable if _meaning(one) not in {"gone", "not_visible"}]
    if reads:
        failed = len(reads) - len(usable)
        yield f"The status was read {_times(len(reads))}" + (f", {_times(failed)} without a usable answer." if failed else ".")
    for what, some in (("that showed the job", shown), ("with a usable answer", usable)):
        if some and not (some is usable and shown[-1:] == usable[-1:]):
            last = some[-1]
            state = cast("Shown", last["read_as"])["state"]
            named = f", which named the state {code(state)}" if state and last in shown else ""
            where = f"The last status read {what} is exchange {last['number']}, {last['ended']}"
            yield f"{where}: {outcome_words(last)}{named}: {read_words(last)}.{_said(last)}"
    if standing.progress:
        yield f"Progress last shown: {code(json.dumps(standing.progress, sort_keys=True))}."
    if standing.verdict is not None:
        by = "the answer to the create" if standing.verdict.call == "create" else "a status read"
        end = f"{code(standing.verdict.verdict)}, by {by}, {instant_text(standing.verdict.at)}"
        yield f"The first end of the job that was shown, in our words: {end}."


def _violation(dossier: Dossier, violation: dict[str, Json]) -> Iterator[str]:
    yield f"The contradiction: {code(violation.get('why', 'not described'))}."
    for name, value in sorted(violation.items()):
        if name not in {"why", "word"} and value not in (None, ""):
            yield f"Of the contradiction, {code(name)}: {code(plain(value))}."
    seen = next((entry for entry in reversed(dossier.entries) if entry.to == "contract_violation"), None)
    one = next((one for one in reversed(dossier.exchanges) if seen is not None and one["entry"] == seen.seq), None)
    if seen is None or one is None:
        return
    said = {"job": seen.body.get("job"), "state": seen.body.get("remote_state"), "end": seen.body.get("verdict")}
    named = "; ".join(f"{name} {code(plain(value))}" for name, value in said.items() if value)
    where = f"It showed in exchange {one['number']}, {one['ended']} (a {one['call']} call): {outcome_words(one)}"
    yield f"{where}; {named}." if named else f"{where}."
    rule = cast("Shown", json.loads(dossier.contract.canonical).get(_CALLS.get(str(one["call"]), ""), None) or {}).get("same")
    if rule:
        yield f"What every answer of that call has to show, by the contract: {code(json.dumps(rule, sort_keys=True))}."


def _people(dossier: Dossier) -> Iterator[str]:
    for entry in dossier.entries:
        if entry.kind == "decision" and entry.cause != "decision.refused":
            because = f", because {code(entry.body['reason'])}" if entry.body.get("reason") else ""
            yield f"At our side, {entry.at}: {sentence(entry.cause).removesuffix('.')} ({code(entry.body.get('by'))}{because})."


def _meaning(one: Shown) -> str:
    return str(cast("Shown", one["read_as"])["meaning"])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _cancel(dossier: Dossier) -> Iterator[str]:
    for one in dossier.of_call("cancel"):
        yield f"The cancel was sent in exchange {one['number']}, {one['began']}: {outcome_words(one)}: {read_words(one)}.{_said(one)}"


def _result(dossier: Dossier) -> Iterator[str]:
    standing = dossier.standing
    for one in dossier.of_call("collect")[-3:]:
        yield f"The result was asked for in exchange {one['number']}, {one['began']}: {outcome_words(one)}: {read_words(one)}.{_said(one)}"
    for problem in standing.problems:
        yield f"Of the result: {code(problem)}."
    for output in _delivered(dossier):
        media = output.get("media") or "not stated"
        yield f"What was delivered: {output['size']} bytes, SHA-256 {code(output['sha256'])}, type {code(media)}."
    if standing.counts:
        yield f"Counts last shown: {code(json.dumps(standing.counts, sort_keys=True))}."
    if standing.counts_problem:
        yield f"Of the counts at the end of the job: {code(standing.counts_problem)}."
    yield from _items(standing.items or {})


def _items(items: Mapping[str, Json]) -> Iterator[str]:
    """What came of each item, in numbers; what does not agree; and the first items to look up."""
    if (counted := counts_text(items)) is not None:
        yield f"Items, as counted in what was delivered: {code(counted)}."
    for disagreement in cast("list[Json]", items.get("disagreements") or []):
        yield f"What does not agree: {code(disagreement)}."
    for one in cast("list[Shown]", items.get("failed_items") or [])[:ITEMS_SHOWN]:
        named = code(one["key"]) if one["key"] else f"record {one['record']} of {code(one['output'])}"
        says = f", with your words {code(one['error'])}" if one["error"] else ""
        yield f"An item that is {one['outcome']}: {named}{says}."


def _delivered(dossier: Dossier) -> list[Shown]:
    """The newest result that came, verified or not: one that is not is told of by its entry alone."""
    came = (entry.body.get("outputs") for entry in reversed(dossier.entries) if entry.kind == "result")
    return cast("list[Shown]", next(filter(None, came), None) or [])


def _job(job: dict[str, Json]) -> str:
    others = {name: value for name, value in job.items() if name != "id"}
    return code(job.get("id", "without id")) + (f", with {code(json.dumps(others, sort_keys=True))}" if others else "")


def _said(one: Shown) -> str:
    words = cast("Shown", one["provider_words"])
    parts = [f"{name} {code(words[name])}" for name in ("code", "message", "reason") if words.get(name)]
    return f" Its words: {', '.join(parts)}." if parts and one["answer"] is not None else ""
