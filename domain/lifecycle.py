"""The life of an operation: what evidence does to it, by the tables, and which step belongs to each state.

* `advance(standing, evidence)` is pure and total: a move, a stay or a note. It is the only thing that decides a state.
* Rows are tried in order; the first whose state, evidence and guards all fit decides.
* A pair that no row determines is a flagged note if it comes from outside, and an error if it is of our own making.
* Nothing leaves a final state. `denied`, `rejected`, `expired` and `cancelled` by policy, clock or human need `clean`: no
  unproven attempt of any generation and no job; otherwise the same evidence leads to `create_unknown`.
* What steps left behind is undone once an operation has ended without a commit: its state is final, its last step is `undo`.
* Progress, and what a provider answers to a cancel, never move anything to a final state: only a reading does.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, cast

from domain.contradictions import contradiction_text
from domain.errors import EvidenceError
from domain.evidence import FROM_OUTSIDE, Decision, Evidence
from domain.guards import GUARDS, verdict_of
from domain.needs import job_needs, made_anew
from domain.standing import FINAL, Flag, Standing, State
from domain.tables import TABLES, Row

StepName = Literal["judge", "inbox", "create", "reconcile", "observe", "cancel", "collect", "undo", "done"]


@dataclass(frozen=True, slots=True)
class Move:
    """Changes the state."""

    to: State


@dataclass(frozen=True, slots=True)
class Stay:
    """The owner's entry that does not change the state."""


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that changes neither the state nor what may be sent. `flagged`: the tables did not expect it here."""

    flagged: bool = False


Outcome = Move | Stay | Note


_INDEX: dict[tuple[str, str], tuple[Row, ...]] = {}
for _row in (row for rows in TABLES.values() for row in rows):
    for _state in _row.states:
        _INDEX[_state, _row.evidence] = (*_INDEX.get((_state, _row.evidence), ()), _row)


def _holds(guard: str, standing: Standing, evidence: Evidence) -> bool:
    if guard.startswith("!"):
        return not GUARDS[guard[1:]][1](standing, evidence)
    return GUARDS[guard][1](standing, evidence)


def find_row(standing: Standing, evidence: Evidence) -> Row | None:
    """The row that decides, or None where the tables say nothing."""
    rows = _INDEX.get((standing.state, evidence.key), ())
    return next((row for row in rows if all(_holds(guard, standing, evidence) for guard in row.when)), None)


def advance(standing: Standing, evidence: Evidence) -> Outcome:
    """What `evidence` does to an operation of that standing.

    Raises EvidenceError only for evidence of our own making that the tables do not allow: a bug, never data.
    """
    row = find_row(standing, evidence)
    if row is None:
        if evidence.kind in FROM_OUTSIDE or (standing.state in FINAL and evidence.kind != "intent"):
            return Note(flagged=True)
        raise EvidenceError(f"{evidence.key} is not possible in state {standing.state}")
    match row.to:
        case "stay":
            return Stay()
        case "note":
            return Note()
        case "verdict":
            return Move(cast("State", verdict_of(standing, evidence)))
        case state:
            return Move(cast("State", state))


def permits(standing: Standing, decision: Decision) -> bool:
    """Whether a human may choose this now. Pure look-ahead: records nothing."""
    return find_row(standing, decision) is not None


def cancels(standing: Standing, at: datetime) -> tuple[bool, ...]:
    """Which cancels a human may ask for now: plain (False), by force (True). Of what waits for a human, those that lead somewhere.

    A cancel of an unknown create is only remembered; it is taken, and is no offer.
    """
    offered: list[bool] = []
    for force in (False, True):
        probe = Decision.model_construct(at=at, actor="", meaning="cancel", request_id="", verb="cancel", by="", force=force)
        row = find_row(standing, probe)
        if row is not None and (standing.facts.cancel_force or not force) and not (standing.attention and row.to == "stay"):
            offered.append(force)
    return tuple(offered)


# --- the step that belongs to a state ---------------------------------------------------------------------------------

STEPS: dict[State, StepName] = {
    "proposed": "judge",
    "approved": "create",
    "create_pending": "create",
    "reconciling": "reconcile",
    "accepted": "observe",
    "observing": "observe",
    "cancelling": "observe",
    "cancel_requested": "cancel",
    "result_collecting": "collect",
}
CLOCKS: dict[State, str] = {
    "awaiting_approval": "approval",
    "approved": "create",
    "create_pending": "create",
    "reconciling": "lookup",
    "accepted": "result",
    "observing": "result",
    "cancel_requested": "cancel",
    "cancelling": "cancel",
    "result_collecting": "collect",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What is due next, and the deadline that bounds it (None: no clock runs)."""

    name: StepName
    until: datetime | None


def next_step(standing: Standing) -> Step:
    """The step that the tables name for this standing."""
    if standing.state in FINAL:
        return Step("undo", undo_until(standing)) if standing.undo_due else Step("done", None)
    if standing.state == "create_unknown" and standing.lookup_left:
        return Step("reconcile", None)
    clock = CLOCKS.get(standing.state)
    return Step(STEPS.get(standing.state, "inbox"), standing.deadlines.get(clock) if clock else None)


def undo_until(standing: Standing) -> datetime | None:
    """Until when what steps left is undone: of an operation that ended, as long again as its create had; else until its create ends."""
    if not standing.final:
        return standing.deadlines.get("create")
    return standing.state_since + timedelta(milliseconds=standing.facts.deadlines_ms.create)


def clock_of(standing: Standing) -> str | None:
    """The clock that runs in this state."""
    return CLOCKS.get(standing.state)


def flags_of(standing: Standing) -> tuple[Flag, ...]:
    """What a human should see: what was flagged, and what steps of an operation that has ended left and nobody has taken back yet.

    The latter is no entry of its own: it is so from the entry on that says what a step left, whoever dies after it.
    """
    if not standing.final:
        return standing.flags
    left = (
        Flag(word="leftovers", since=standing.state_since, why=f"what the step {one.step} left is still to be taken back")
        for one in standing.undo_due
    )
    return (*standing.flags, *left)


CHOICES: dict[str, str] = {
    "adopt": "take a job that you have found at the provider as this operation's",
    "look": "look the job up at the provider again",
    "replay": "send the same request with the same token once more",
    "retry_create": "create again under a new token; the earlier request may have made a job too",
    "resume": "go on reading the status, with a new deadline",
    "cancel": "ask the provider to cancel the job",
    "recollect": "fetch the result again",
    "accept_succeeded": "take the outcome as success",
    "accept_failed": "take the outcome as failure",
    "abandon": "give up; whatever the provider did is left as it is",
}
"""What a human may be offered, in words."""


def choices(standing: Standing, at: datetime) -> tuple[str, ...]:
    """What a human may choose now, in the order of CHOICES; empty where no human is needed.

    A choice leads out of the state: a cancel of an unknown create is only remembered, and is none.
    """
    if not standing.attention:
        return ()
    offered: list[str] = []
    for verb in CHOICES:
        probe = Decision.model_construct(at=at, actor="", meaning=verb, request_id="", verb=verb, by="")
        row = find_row(standing, probe)
        if row is not None and row.to != "stay":
            offered.append(verb)
    return tuple(offered)


WHY: dict[State, str] = {
    "create_unknown": "a request to create may have been carried out, and nothing shows whether it was",
    "contract_violation": "the provider contradicted its contract or itself",
    "result_timed_out": "the job did not end before the result deadline",
    "cancellation_unconfirmed": "the cancel was sent, and no reading confirmed it in time",
    "result_unavailable": "the result cannot be had, or the provider no longer knows the job",
    "result_validation_failed": "the result breaks what the contract or the provider promised of it",
    "outcome_undecided": "the result is verified, and whether it is success is for a human to say",
    "awaiting_approval": "policy asks for a human's consent to this exact effect",
}
"""Why an operation waits for a human, by state."""


_NO_JOB = "the provider no longer knows the job"
_GONE = "what it needs to go on cannot be had, and nothing is sent without it"
_NO_RESULT = "the job has ended, and the result cannot be had"
_LEFTOVERS = "what an earlier attempt left at the provider could not be taken back, and whether to create again is for a human to say"
_IN_PART = "the job was done in part only; what came is verified, and whether it is success is for a human to say"
_AT_ODDS = "what was said of the outcome does not agree; what came is verified, and whether it is success is for a human to say"


def why_it_waits(standing: Standing) -> str | None:
    """Why an operation that misses nothing waits for a human, in general; None if it does not."""
    if not (standing.attention or standing.state == "awaiting_approval"):
        return None
    match standing.state:
        case "result_unavailable":
            return _NO_JOB if standing.verdict is None else _NO_RESULT
        case "outcome_undecided" if standing.disagreements:
            return _AT_ODDS
        case "outcome_undecided" if standing.outcome == "partial":
            return _IN_PART
        case "awaiting_approval" if any(flag.word == "leftovers" for flag in standing.flags):
            return _LEFTOVERS
        case state:
            return WHY.get(state)


def _missing(standing: Standing, what: str) -> str:
    """What is missing, and what a human may do about it."""
    match standing.effect:
        case "none" if made_anew(what):
            todo = "create again, or abandon this; nothing has been created"
        case "none":
            todo = "abandon this and run it anew; nothing has been created"
        case "made" if standing.job_id is not None:
            todo = f"see to the job {standing.job_id} at the provider yourself, and abandon this"
        case _ if not job_needs(what):
            todo = "look at the provider whether it made a job, and adopt that one, or abandon this"
        case _:
            todo = "look at the provider whether it made a job, see to that yourself, and abandon this"
    return f"{what}. Unless it can be had again, {todo}"


UNSENT = "nothing was sent"
"""How the words of a call that never left begin."""

MOST_SAID = 3
"""Disagreements that are said beside the state; the record has them all."""


def why_of(standing: Standing) -> str | None:
    """Why it stands where it stands, in words: in general, and what is particular to this one."""
    if standing.missing is not None:
        return f"{_GONE}: {_missing(standing, standing.missing)}"
    particular = standing.problems[0] if standing.problems else standing.why
    if standing.state == "succeeded" and (particular or "").startswith(UNSENT):
        particular = None  # what held the result back is over
    if standing.state == "awaiting_approval":
        particular = next((flag.why for flag in reversed(standing.flags) if flag.word == "leftovers"), particular)
    if standing.state == "outcome_undecided":
        counted = [standing.counted] if standing.counted else []
        particular = "; ".join([*counted, *standing.disagreements[:MOST_SAID]]) or particular
    elif standing.state == "failed" and standing.outcome is not None and not standing.ends_without_result:
        particular = f"as the contract takes it: {standing.counted or 'the job was done in part only'}"
    elif standing.state == "failed" and particular is None:
        particular = standing.counted
    if standing.violation is not None:
        particular = contradiction_text(standing.violation) or particular
    if standing.state == "result_unavailable" and standing.verdict is None and not standing.seen and standing.job_id is not None:
        unseen = f"it was never seen; is the job's id ({standing.job_id}) the one that its address needs?"
        particular = f"{particular}; {unseen}" if particular else unseen
    return ": ".join(part for part in (why_it_waits(standing), particular) if part) or None
