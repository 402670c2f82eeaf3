"""The fold: from a stream's entries to the standing they lead to.

* `apply(standing, entry)` is the only place where a standing changes, and it changes by recorded entries alone: the same
  entries give the same standing on every machine, which is what rebuilding the projection compares.
* A note changes nothing that decides: it is only remembered as unread where it is a late answer of our own.
* A job id, once known, is not overwritten, and neither is the first verdict; generations only grow.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import cast

from domain.chain import Entry
from domain.errors import missing_words
from domain.evidence import (
    Callback,
    CancelAnswer,
    Clock,
    Closed,
    CreateExchange,
    Decision,
    Evidence,
    Intent,
    Late,
    Linked,
    Lookup,
    Missing,
    Observation,
    Opened,
    OwnerClaim,
    Policy,
    Ref,
    Regressed,
    ResultOutcome,
    StepOutcome,
)
from domain.facts import ContractFacts
from domain.lifecycle import STEPS
from domain.pruning import kept_apart
from domain.reading_folding import observed
from domain.standing import (
    FINAL,
    LOST_ATTEMPT,
    UNPROVEN_MEANINGS,
    Answered,
    Attempt,
    Flag,
    Standing,
    State,
    Verdict,
)
from domain.step_folding import committed, left_late, stepped


def opened_standing(opened: Opened) -> Standing:
    """The standing after entry 0."""
    facts = ContractFacts.model_validate(opened.facts)
    return Standing(opened=opened, facts=facts, state_since=opened.at, reconcile_left=facts.reconcile_entries)


def fold(entries: Sequence[Entry]) -> Standing:
    """The standing that a stream's entries lead to. Raises ValueError if entry 0 does not open the stream."""
    first = entries[0].evidence
    if not isinstance(first, Opened):
        raise ValueError("entry 0 does not open the stream")
    standing = opened_standing(first)
    for entry in entries[1:]:
        standing = apply(standing, entry)
    return standing


def apply(standing: Standing, entry: Entry) -> Standing:
    """The standing after one more entry."""
    evidence = entry.evidence
    change = _noted(standing, evidence, entry) if entry.role == "note" else _owned(standing, evidence, entry)
    if standing.facts.sensitive:
        change = {**change, **kept_apart(standing, evidence)}
    after = standing.model_copy(update=change)
    if after.attention != standing.attention:
        after = after.model_copy(update={"attention_since": evidence.at if after.attention else None})
    return after


def _owned(standing: Standing, evidence: Evidence, entry: Entry) -> Mapping[str, object]:
    change: dict[str, object] = {"epoch": entry.epoch, "turn": entry.turn, **_by_kind(standing, evidence, entry), **_held_back(evidence)}
    if entry.role == "move":
        change |= {"state": entry.to, "state_since": evidence.at, "next_at": change.get("next_at")}
        if STEPS.get(standing.state) != STEPS.get(cast("State", entry.to)):
            change["tries"] = 0
        change |= _entering(standing, str(entry.to), evidence, change)
        change |= {"missing": None} if standing.missing is not None else {}
    return change


def _held_back(evidence: Evidence) -> Mapping[str, object]:
    """Whatever the stage: that nothing was sent because a quota is used up is why it waits."""
    match evidence:
        case (
            Observation(word="quota", words=words)
            | CancelAnswer(word="quota", words=words)
            | Lookup(word="quota", words=words)
            | ResultOutcome(word="quota", words=words)
        ):
            return {"why": words.reason}
        case _:
            return {}


def _noted(standing: Standing, evidence: Evidence, entry: Entry) -> Mapping[str, object]:
    match evidence:
        case Late(of=None):
            return {"unread_late": (*standing.unread_late, entry.seq)}
        case Late():
            return {"unread_late": tuple(seq for seq in standing.unread_late if seq != evidence.of)}
        case Decision():
            answered = Answered(accepted=False, why=evidence.why or "it came too late to change anything", seq=entry.seq)
            return {"answered": standing.answered | {evidence.request_id: answered}, "refusals": standing.refusals + 1}
        case Linked(meaning="retried_by"):
            return {"retried_by": evidence.other}
        case StepOutcome(meaning="done"):
            return left_late(standing, evidence)
        case StepOutcome(meaning="leftover") if standing.state in {"approved", "create_pending"}:
            return {}  # whether to create again is for a human to say: only its owner gives up what a new generation waits for
        case StepOutcome(meaning="undone" | "undo_again" | "leftover"):
            # Of an operation at work it is a fact from beside the story: when what is sent next stays as it was.
            undone = stepped(standing, evidence, entry)
            return undone if standing.final else {name: undone[name] for name in ("leftovers", "flags") if name in undone}
        case _:
            return {}


def _by_kind(standing: Standing, evidence: Evidence, entry: Entry) -> Mapping[str, object]:
    match evidence:
        case OwnerClaim():
            return {"owners": standing.owners | {evidence.run_id: evidence.epoch}}
        case Policy():
            return {"why": evidence.why} if evidence.why else {}
        case Decision():
            return _decided(standing, evidence, entry)
        case Intent():
            return _intended(standing, evidence, entry)
        case CreateExchange() | Late():
            return _closed(standing, evidence, entry)
        case Observation():
            return observed(standing, evidence, entry)
        case CancelAnswer():
            return _cancel_answered(standing, evidence)
        case Lookup():
            return _looked_up(standing, evidence, entry)
        case StepOutcome():
            return stepped(standing, evidence, entry)
        case ResultOutcome():
            return _collected(standing, evidence, entry)
        case Callback():
            known = {"job": evidence.job, "job_at": evidence.at, "leftovers": committed(standing, standing.generation)}
            return known if standing.job is None else {}
        case Clock():
            return _passed(standing, evidence, entry)
        case Missing():
            return _gone(standing, evidence, entry)
        case Regressed() if standing.job is None and standing.verdict is None:
            # The entries that the ledger no longer holds may have been attempts.
            lost = (standing.generation, LOST_ATTEMPT)
            return {"unproven": (*(one for one in standing.unproven if one != lost), lost)}
        case _:
            return {}


def _decided(standing: Standing, decision: Decision, entry: Entry) -> dict[str, object]:
    change: dict[str, object] = {
        "answered": standing.answered | {decision.request_id: Answered(accepted=True, why=None, seq=entry.seq)},
        "next_at": None,
    }
    deadlines = dict(standing.deadlines)
    match decision.meaning:
        case "cancel":
            change |= {"cancel_wanted": True, "cancel_forced": decision.force, "cancel_sent": False}
        case "adopt":
            change |= {"job": decision.arguments, "job_at": decision.at, "seen": False, "violation": None, "compare_due": False}
            if standing.job is not None and standing.job.get("id") != decision.arguments.get("id"):
                change |= {"verdict": None, "renewed": None, "cancel_acknowledged": False}
            change["leftovers"] = committed(standing, standing.generation)
            deadlines["result"] = decision.at + timedelta(milliseconds=standing.facts.deadlines_ms.result)
        case "look":
            change |= {"reconcile_left": standing.facts.reconcile_entries, "reconcile_entry": 0, "candidates": ()}
        case "replay":
            change |= {"cancel_wanted": False}
            deadlines["create"] = decision.at + timedelta(milliseconds=standing.facts.deadlines_ms.create)
        case "retry_create":
            change |= {"cancel_wanted": False, "unproven": _with_open(standing), "open_attempt": None} | _next_generation(standing)
            deadlines["create"] = decision.at + timedelta(milliseconds=standing.facts.deadlines_ms.create)
        case "resume":
            name = "cancel" if standing.state == "cancellation_unconfirmed" else "result"
            span = getattr(standing.facts.deadlines_ms, name)
            deadlines[name] = decision.until or decision.at + timedelta(milliseconds=span)
        case "recollect":
            # What an attempt that was given up for dead brought home late is still staged, and may be had only once.
            change |= {"invalid_results": 0}
        case _:
            pass
    return change | {"deadlines": deadlines}


def _with_open(standing: Standing) -> tuple[tuple[int, int], ...]:
    opened = standing.open_attempt
    return standing.unproven if opened is None else (*standing.unproven, (opened.generation, opened.attempt))


def _passed(standing: Standing, clock: Clock, entry: Entry) -> dict[str, object]:
    if entry.role != "move":
        return {}
    change: dict[str, object] = {"why": f"the {clock.meaning} deadline passed"}
    if clock.meaning == "lookup":
        change["reconcile_left"] = 0  # a human is asked; `look` gives all entries again
    if clock.meaning == "collect" and standing.ends_without_result:
        change["flags"] = (*standing.flags, Flag(word="leftovers", since=clock.at, why="they could not be had in time"))
    return change


def _gone(standing: Standing, gone: Missing, entry: Entry) -> dict[str, object]:
    """Where the job has ended without a result, only what it left can't be had."""
    why = missing_words(gone.what, gone.fault)
    if entry.to in FINAL:
        return {"flags": (*standing.flags, Flag(word="leftovers", since=gone.at, why=f"they could not be had: {why}"))}
    return {"missing": why}


def _next_generation(standing: Standing) -> dict[str, object]:
    return {
        "generation": standing.generation + 1,
        "attempts": 0,
        "first_intent_at": None,
        "last_intent_at": None,
        "request": None,
        "steps": {},
        "reconcile_left": standing.facts.reconcile_entries,
        "reconcile_entry": 0,
        "candidates": (),
    }


def _intended(standing: Standing, intent: Intent, entry: Entry) -> dict[str, object]:
    match intent.meaning:
        case "create":
            attempt = Attempt(
                generation=intent.generation, attempt=intent.attempt, seq=entry.seq, at=intent.at, send_until=intent.send_until
            )
            newest = max(filter(None, (standing.newest_send_until, intent.send_until)), default=None)
            request = Ref(digest=intent.request.ref, size=intent.request.body_bytes) if intent.request else standing.request
            return {
                "attempts": standing.attempts + 1,
                "unproven": _with_open(standing),
                "open_attempt": attempt,
                "first_intent_at": standing.first_intent_at or intent.at,
                "last_intent_at": intent.at,
                "newest_send_until": newest,
                "request": request,
                "next_at": None,
            }
        case "cancel":
            return {"cancel_sent": True, "next_at": None}
        case "collect":
            return {"collect_attempts": standing.collect_attempts + 1, "staging": intent.staging, "next_at": None}
        case _:
            return {}


def _closed(standing: Standing, evidence: Closed, entry: Entry) -> dict[str, object]:
    """An attempt's outcome: it is proven or unproven from here on."""
    this = (evidence.generation, evidence.attempt)
    opened = standing.open_attempt
    meaning = str(entry.body["meaning"])
    unproven = tuple(one for one in standing.unproven if one != this)
    if meaning in UNPROVEN_MEANINGS:
        unproven = (*unproven, this)
    change: dict[str, object] = {
        "unproven": unproven,
        "open_attempt": None if opened and (opened.generation, opened.attempt) == this else opened,
        "next_at": evidence.next_at,
        "tries": standing.tries + 1,
        "why": evidence.words.message or evidence.words.reason or evidence.words.code or standing.why,
    }
    if isinstance(evidence, Late):
        change["unread_late"] = tuple(seq for seq in standing.unread_late if seq != evidence.of)
    if meaning == "unnamed":
        change["unnamed"] = True
    if meaning in {"accepted", "finished", "unnamed"}:
        change["leftovers"] = committed(standing, evidence.generation)
    if evidence.violation is not None:
        change["violation"] = evidence.violation
    elif meaning in {"accepted", "finished"} and evidence.job and standing.job is None:
        change |= {"job": evidence.job, "job_at": evidence.at}
        change["compare_due"] = standing.facts.compare and evidence.word == "exists"
    if entry.role == "move" and entry.to == "create_pending":
        change |= _next_generation(standing)  # proven late: as if a lookup had shown that nothing is there
    if meaning == "finished" and entry.role == "move" and standing.verdict is None:
        began = evidence.http.began if evidence.http else evidence.at
        change["verdict"] = Verdict(
            verdict=evidence.verdict or "succeeded", at=evidence.at, began=began, call="create", seq=entry.seq, observed=evidence.observed
        )
    return change


def _cancel_answered(standing: Standing, answer: CancelAnswer) -> dict[str, object]:
    change: dict[str, object] = {"next_at": answer.next_at, "tries": standing.tries + 1, "cancel_sent": False}
    match answer.meaning:
        case "taken":
            change |= {"cancel_acknowledged": True}
        case "refused":
            change |= {"cancel_wanted": False, "why": answer.words.message or answer.words.reason or "the cancel was refused"}
        case "violation":
            change |= {"violation": answer.violation}
        case _:
            pass
    return change


def _looked_up(standing: Standing, lookup: Lookup, entry: Entry) -> dict[str, object]:
    change: dict[str, object] = {"next_at": lookup.next_at, "tries": standing.tries + 1}
    if lookup.exhausted or lookup.meaning == "candidates":
        change |= {"reconcile_left": max(0, standing.reconcile_left - 1), "reconcile_entry": standing.reconcile_entry + 1, "tries": 0}
    match lookup.meaning:
        case "found" if standing.job is None:
            change |= {"job": lookup.job, "job_at": lookup.at, "leftovers": committed(standing, standing.generation)}
        case "candidates":
            change |= {"candidates": (*standing.candidates, *lookup.candidates)}
        case "absent" if standing.absence_provable:
            change |= _absent(standing, entry)
        case "violation":
            change |= {"violation": lookup.violation}
        case _:
            pass
    return change


def _absent(standing: Standing, entry: Entry) -> dict[str, object]:
    """Nothing was made of this generation. What earlier ones came to is not shown by that."""
    opened = standing.open_attempt
    change: dict[str, object] = {
        "unproven": tuple(one for one in standing.unproven if one[0] != standing.generation),
        "open_attempt": None if opened and opened.generation == standing.generation else opened,
    }
    if entry.to == "create_pending":
        return change | _next_generation(standing)
    return change | ({"reconcile_left": 0} if entry.to == "create_unknown" else {})


def _collected(standing: Standing, result: ResultOutcome, entry: Entry) -> dict[str, object]:
    change: dict[str, object] = {"next_at": result.next_at, "tries": standing.tries + 1, "problems": result.problems}
    match result.meaning:
        case "verified" | "none" | "empty":
            change |= {"outputs": result.outputs, "outcome": result.outcome, "items": result.items, "failed_items": result.failed_items}
        case "invalid":
            # Its outputs were never published: the entry tells of them, the standing offers none.
            change |= {"invalid_results": standing.invalid_results + 1, "staging": standing.staging if result.kept else None}
        case _:
            pass
    had = result.meaning in {"verified", "none", "empty"}
    if not had and entry.role == "move" and standing.ends_without_result:
        why = result.problems[0] if result.problems else "the provider no longer has it"
        change["flags"] = (*standing.flags, Flag(word="leftovers", since=result.at, why=why))
    if result.meaning == "refused" and not any(flag.word == "read_rejected" for flag in standing.flags):
        why = result.words.message or "the provider refuses to give the result"
        change["flags"] = (*standing.flags, Flag(word="read_rejected", since=result.at, why=why))
    return change


_CONTRADICTION = {
    "exchange": "an answer to the create names another job than the one known",
    "late": "a late answer to the create names another job than the one known",
    "reading": "a later reading contradicts the first terminal observation",
}
CLOCK_STARTED_BY: dict[str, str] = {
    "awaiting_approval": "approval",
    "approved": "create",
    "reconciling": "lookup",
    "cancel_requested": "cancel",
    "result_collecting": "collect",
}


def _entering(standing: Standing, to: str, evidence: Evidence, change: Mapping[str, object]) -> dict[str, object]:
    """Clocks started, and rounds counted, by entering a state."""
    raw = change.get("deadlines", standing.deadlines)
    deadlines: dict[str, datetime] = dict(raw) if isinstance(raw, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
    spans = standing.facts.deadlines_ms
    entered: dict[str, object] = {}
    clock = CLOCK_STARTED_BY.get(to)
    if clock is not None:
        span = spans.create if clock == "lookup" else getattr(spans, clock)
        deadlines[clock] = evidence.at + timedelta(milliseconds=span)
    if to == "awaiting_approval":
        entered |= {"round": standing.round + 1, "refusals": 0}
    if to == "create_pending" and "create" not in deadlines:
        deadlines["create"] = evidence.at + timedelta(milliseconds=spans.create)
    if to == "contract_violation" and change.get("violation") in (None, standing.violation):
        entered["violation"] = {"why": _CONTRADICTION.get(evidence.kind, "the provider contradicted itself")}
    if to in {"accepted", "cancel_requested"} and "result" not in deadlines:
        deadlines["result"] = evidence.at + timedelta(milliseconds=spans.result)
    return entered | {"deadlines": deadlines}
