"""What is known of an operation and what is not, as sentences. Only what an entry shows is said to be known."""

import json
from collections.abc import Iterator
from typing import cast

from adapters.showing.dossier import Dossier
from adapters.showing.exchanges import Shown, outcome_words
from adapters.showing.markdown import code
from domain.evidence import Json, instant_text

ATTEMPTS_SHOWN = 10
_READ_AS = {
    "accepted": "accepted",
    "ambiguous": "whether it was carried out is not known",
    "stuck": "a stored error, repeated for this token; whether a job was made is not known",
    "unnamed": "carried out, and no job was named",
    "finished": "carried out and finished at once",
    "in_flight": "said to be still worked on",
    "violation": "contradicts what was asked or what is known",
    "refused": "refused",
    "not_executed": "not carried out, by the provider's own word",
    "not_sent": "it never left us",
    "open": "no outcome is recorded yet: it may be under way",
}


def known(dossier: Dossier) -> Iterator[str]:
    """What the record shows."""
    yield from _creates(dossier)
    standing = dossier.standing
    if standing.job is not None:
        since = "" if standing.job_at is None else f" We know of it since {instant_text(standing.job_at)}."
        yield f"The job is {_job(standing.job)}.{since}"
    yield from _status(dossier)
    if standing.violation is not None:
        yield from _violation(dossier, standing.violation)
    yield from _cancel(dossier)
    yield from _result(dossier)


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
        meaning = str(cast("Shown", one["read_as"])["meaning"])
        where = f" to {code(one['url'])}" if one["url"] else ""
        yield (
            f"Create attempt {one['attempt']} (generation {one['generation']}), exchange {one['number']}: {one['began'] or 'time unknown'}"
            f"{where}: {outcome_words(one)}: {_READ_AS.get(meaning, meaning)}.{_said(one)}"
        )
    if len(creates) > ATTEMPTS_SHOWN:
        yield f"{len(creates) - ATTEMPTS_SHOWN} more create attempts stand in `exchanges.json`."
    if not creates:
        yield "No request to create was answered or left unanswered: nothing of this operation reached the provider."


def _status(dossier: Dossier) -> Iterator[str]:
    standing, reads = dossier.standing, dossier.of_call("status")
    decided = [one for one in reads if cast("Shown", one["read_as"])["meaning"] not in {"failed", "refused"}]
    if reads:
        failed = len(reads) - len(decided)
        yield f"The status was read {len(reads)} times" + (f", {failed} of them without a usable answer." if failed else ".")
    if decided:
        last = decided[-1]
        state = f" It named the state {code(standing.remote_state)}." if standing.remote_state else ""
        when = f" The provider dates it {code(standing.provider_at)}." if standing.provider_at else ""
        yield f"The last usable status read is exchange {last['number']}, {last['ended']}: {outcome_words(last)}.{state}{when}{_said(last)}"
    if standing.progress:
        yield f"Progress last shown: {code(json.dumps(standing.progress, sort_keys=True))}."
    if standing.verdict is not None:
        by = "the answer to the create" if standing.verdict.call == "create" else "a status read"
        yield f"The first end of the job that was shown: {code(standing.verdict.verdict)}, by {by}, {instant_text(standing.verdict.at)}."


def _violation(dossier: Dossier, violation: dict[str, Json]) -> Iterator[str]:
    yield f"The contradiction: {code(violation.get('why', 'not described'))}."
    for name, value in sorted(violation.items()):
        if name not in {"why", "word"} and value not in (None, ""):
            shown = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            yield f"Of the contradiction, {code(name)}: {code(shown)}."
    seen = next((entry for entry in reversed(dossier.entries) if entry.to == "contract_violation"), None)
    one = next((one for one in dossier.exchanges if seen is not None and one["entry"] == seen.seq), None)
    if seen is None or one is None:
        return
    said = {"job": seen.body.get("job"), "state": seen.body.get("remote_state"), "end": seen.body.get("verdict")}
    named = "; ".join(f"{name} {code(_plain(value))}" for name, value in said.items() if value)
    where = f"It showed in exchange {one['number']}, {one['ended']} (a {one['call']} call): {outcome_words(one)}"
    yield f"{where}; {named}." if named else f"{where}."


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _cancel(dossier: Dossier) -> Iterator[str]:
    for one in dossier.of_call("cancel"):
        yield f"The cancel was sent in exchange {one['number']}, {one['began']}: {outcome_words(one)}.{_said(one)}"


def _result(dossier: Dossier) -> Iterator[str]:
    standing = dossier.standing
    for one in dossier.of_call("collect")[-3:]:
        yield f"The result was asked for in exchange {one['number']}, {one['began']}: {outcome_words(one)}.{_said(one)}"
    for problem in standing.problems:
        yield f"Of the result: {code(problem)}."
    for output in standing.outputs:
        yield f"What was delivered: {output.size} bytes, SHA-256 {code(output.sha256)}, type {code(output.media or 'not stated')}."
    if standing.counts:
        yield f"Counts last shown: {code(json.dumps(standing.counts, sort_keys=True))}."


def _job(job: dict[str, Json]) -> str:
    others = {name: value for name, value in job.items() if name != "id"}
    return code(job.get("id", "without id")) + (f", with {code(json.dumps(others, sort_keys=True))}" if others else "")


def _said(one: Shown) -> str:
    words = cast("Shown", one["provider_words"])
    parts = [f"{name} {code(words[name])}" for name in ("code", "message", "reason") if words.get(name)]
    ours = one["answer"] is None
    return f" {'Noted' if ours else 'The provider said'}: {', '.join(parts)}." if parts else ""
