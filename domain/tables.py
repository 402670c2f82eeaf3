"""The tables: which evidence moves which state where, row by row.

* Rows are tried in order; the first whose state, evidence and guards all fit decides.
* `to` is a state, `stay`, `note`, or `verdict`: the state that the terminal observation names.
* A guard with `!` before its name must not hold. What a guard means stands in `domain/guards.py`.
"""

from dataclasses import dataclass
from typing import get_args

from domain.standing import FINAL, OVERDUE, PARKED, State

STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the tables. `to` is a state, `stay`, `note`, or `verdict` (the state that the verdict names)."""

    states: tuple[State, ...]
    evidence: str
    to: str
    when: tuple[str, ...] = ()


_ANYWHERE: tuple[State, ...] = tuple(state for state in STATES if state not in FINAL)
_ENDED: tuple[State, ...] = tuple(state for state in STATES if state in FINAL)
_BEFORE_JOB: tuple[State, ...] = ("proposed", "awaiting_approval", "approved", "create_pending")
_NOT_CANCELLING: tuple[State, ...] = tuple(state for state in STATES if state != "cancel_requested")
_PENDING: tuple[State, ...] = ("create_pending",)
_DUE: tuple[State, ...] = ("approved", "create_pending")
_UNKNOWN: tuple[State, ...] = ("create_unknown", "reconciling")
_CREATING: tuple[State, ...] = _PENDING + _UNKNOWN
_JOB: tuple[State, ...] = (
    "accepted", "observing", "cancel_requested", "cancelling", "result_collecting", "result_timed_out", "cancellation_unconfirmed",
    "result_unavailable", "result_validation_failed", "outcome_undecided",
)  # fmt: skip
_POLLED: tuple[State, ...] = ("accepted", "observing", "cancel_requested", "cancelling")
_READABLE: tuple[State, ...] = (*_POLLED, "result_collecting", *OVERDUE, "result_unavailable")
_READABLE_LATER: tuple[State, ...] = tuple(state for state in _READABLE if state != "accepted")
_ATTENTION: tuple[State, ...] = tuple(state for state in STATES if state == "create_unknown" or state in PARKED)

AUTHORITY = (
    Row(("proposed",), "policy.unattended", "approved"),
    Row(("proposed",), "policy.needs_human", "awaiting_approval"),
    Row(("proposed",), "policy.no", "denied"),
    Row(("awaiting_approval",), "decision.approve", "approved"),
    Row(("awaiting_approval",), "decision.reject", "rejected", ("clean",)),
    Row(("awaiting_approval",), "decision.reject", "create_unknown"),
    Row(("awaiting_approval",), "clock.approval", "expired", ("clean",)),
    Row(("awaiting_approval",), "clock.approval", "create_unknown"),
    Row(("approved", "create_pending"), "policy.unattended", "stay"),
    Row(("approved", "create_pending"), "policy.covered", "stay"),
    Row(("approved",), "intent.create", "create_pending"),
    Row(("approved",), "intent.step", "create_pending"),
    Row(("create_pending",), "intent.create", "stay"),
    Row(("approved", "create_pending"), "policy.needs_human", "awaiting_approval", ("generation proven",)),
    Row(("approved", "create_pending"), "policy.needs_human", "create_unknown"),
    Row(("approved", "create_pending", "reconciling"), "policy.no", "denied", ("clean",)),
    Row(("approved", "create_pending", "reconciling"), "policy.no", "create_unknown"),
    Row(("approved",), "clock.create", "expired", ("clean",)),
    Row(("approved",), "clock.approval", "expired", ("clean",)),
    Row(("approved",), "clock.create", "create_unknown"),
    Row(("approved",), "clock.approval", "create_unknown"),
    Row(("proposed", "awaiting_approval", "approved"), "decision.cancel", "cancelled", ("clean",)),
    Row(("proposed", "awaiting_approval", "approved"), "decision.cancel", "create_unknown"),
)

# Written once for `exchange` and used for `late` too: our own late answer counts as its create word.
_CREATE_WORDS = (
    Row(_CREATING, "accepted", "cancel_requested", ("W",)),
    Row(_CREATING, "accepted", "accepted"),
    Row((*_JOB, "contract_violation"), "accepted", "contract_violation", ("other job",)),
    Row(_JOB, "accepted", "stay"),
    Row(_PENDING, "ambiguous", "stay", ("R",)),
    Row(_PENDING, "ambiguous", "create_unknown"),
    Row((*_UNKNOWN, *_JOB), "ambiguous", "stay"),
    Row(_PENDING, "stuck", "create_unknown"),
    Row((*_UNKNOWN, *_JOB), "stuck", "stay"),
    Row(_PENDING, "unnamed", "create_unknown"),
    Row((*_UNKNOWN, *_JOB), "unnamed", "stay"),
    Row(_CREATING, "finished", "result_collecting", ("collected after",)),
    Row(_CREATING, "finished", "failed", ("failed",)),
    Row(_CREATING, "finished", "result_collecting"),
    Row(_JOB, "finished", "contract_violation", ("other job",)),
    Row(_JOB, "finished", "stay"),
    Row(_PENDING, "in_flight", "stay", ("R",)),
    Row(_PENDING, "in_flight", "create_unknown"),
    Row((*_UNKNOWN, *_JOB), "in_flight", "stay"),
    Row((*_CREATING, *_JOB), "violation", "contract_violation"),
    Row(_PENDING, "refused", "failed", ("all proven",)),
    Row(_PENDING, "refused", "create_unknown"),
    Row(_UNKNOWN, "refused", "cancelled", ("all proven", "W")),
    Row(_UNKNOWN, "refused", "failed", ("all proven",)),
    Row((*_UNKNOWN, *_JOB), "refused", "stay"),
    Row(_PENDING, "PROVEN", "cancelled", ("W", "all proven")),
    Row(_PENDING, "PROVEN", "create_unknown", ("W",)),
    Row(_PENDING, "PROVEN", "stay"),
    Row(_UNKNOWN, "PROVEN", "cancelled", ("all proven", "W")),
    Row(_UNKNOWN, "PROVEN", "failed", ("all proven", "deadline over")),
    Row(_UNKNOWN, "PROVEN", "create_pending", ("all proven",)),
    Row((*_UNKNOWN, *_JOB), "PROVEN", "stay"),
)


def _spelled(kind: str) -> tuple[Row, ...]:
    rows: list[Row] = []
    for row in _CREATE_WORDS:
        words = ("not_executed", "not_sent") if row.evidence == "PROVEN" else (row.evidence,)
        rows.extend(Row(row.states, f"{kind}.{word}", row.to, row.when) for word in words)
    return tuple(rows)


CREATE = (
    *_spelled("exchange"),
    # A request that cannot be rendered is refused by ourselves, before there is an intent.
    Row(("approved",), "exchange.refused", "failed", ("all proven",)),
    Row(("approved",), "exchange.refused", "create_unknown"),
    Row(("approved",), "step.refused", "failed", ("all proven",)),
    Row(("approved",), "step.refused", "create_unknown"),
    Row(_PENDING, "step.done", "stay"),
    Row(_PENDING, "step.again", "stay"),
    Row(_PENDING, "step.refused", "failed", ("all proven",)),
    Row(_PENDING, "step.refused", "create_unknown"),
    Row(_PENDING, "step.violation", "contract_violation"),
    Row(_PENDING, "intent.step", "stay"),
    # A new generation starts once what an older one left is undone; where that can't be done, a human decides.
    Row(_DUE, "intent.undo", "stay", ("undo due",)),
    Row(_DUE, "step.undone", "stay"),
    Row(_DUE, "step.undo_again", "stay"),
    Row(_DUE, "step.leftover", "awaiting_approval"),
    Row(_PENDING, "clock.create", "failed", ("clean",)),
    Row(_PENDING, "clock.create", "create_unknown"),
    Row(_PENDING, "decision.cancel", "cancelled", ("clean",)),
    Row(_PENDING, "decision.cancel", "stay", ("attempt open",)),
    Row(_PENDING, "decision.cancel", "create_unknown"),
)

RECONCILE = (
    *_spelled("late"),
    Row(("create_unknown",), "intent.lookup", "reconciling"),
    Row(("reconciling",), "intent.lookup", "stay"),
    Row(_UNKNOWN, "lookup.found", "cancel_requested", ("W",)),
    Row(_UNKNOWN, "lookup.found", "accepted"),
    Row(("reconciling",), "lookup.candidates", "stay", ("entries left",)),
    Row(("reconciling",), "lookup.candidates", "create_unknown"),
    Row(("reconciling",), "lookup.none", "stay", ("entries left",)),
    Row(("reconciling",), "lookup.none", "create_unknown"),
    Row(("reconciling",), "lookup.absent", "stay", ("!absence provable", "entries left")),
    Row(("reconciling",), "lookup.absent", "create_unknown", ("!absence provable",)),
    Row(("reconciling",), "lookup.absent", "cancelled", ("W", "earlier proven")),
    Row(("reconciling",), "lookup.absent", "create_unknown", ("W",)),
    Row(("reconciling",), "lookup.absent", "failed", ("deadline over", "earlier proven")),
    Row(("reconciling",), "lookup.absent", "create_unknown", ("deadline over",)),
    Row(("reconciling",), "lookup.absent", "create_pending"),
    Row(("reconciling",), "lookup.failed", "stay", ("entries left",)),
    Row(("reconciling",), "lookup.failed", "create_unknown"),
    Row(_UNKNOWN, "lookup.violation", "contract_violation"),
    Row(("reconciling",), "clock.lookup", "create_unknown"),
    Row(_UNKNOWN, "callback.accepted", "cancel_requested", ("names a job", "W")),
    Row(_UNKNOWN, "callback.accepted", "accepted", ("names a job",)),
    Row(_UNKNOWN, "decision.cancel", "stay"),
)

OBSERVE = (
    Row(("result_collecting",), "reading.going", "contract_violation", ("contradicts",)),
    Row(("accepted",), "reading.going", "observing"),
    Row(_READABLE_LATER, "reading.going", "stay"),
    Row(("accepted",), "reading.held", "observing"),
    Row(_READABLE_LATER, "reading.held", "stay"),
    Row(_READABLE, "reading.not_visible", "stay"),
    Row(("result_collecting",), "reading.terminal", "contract_violation", ("contradicts",)),
    Row(("result_collecting", "result_unavailable"), "reading.terminal", "stay"),
    Row((*_POLLED, *OVERDUE), "reading.terminal", "result_collecting", ("collected after",)),
    Row((*_POLLED, *OVERDUE), "reading.terminal", "verdict", ("ends without result",)),
    Row((*_POLLED, *OVERDUE), "reading.terminal", "result_collecting"),
    Row((*_POLLED, "result_collecting"), "reading.gone", "result_unavailable"),
    Row((*OVERDUE, "result_unavailable"), "reading.gone", "stay"),
    Row(_READABLE, "reading.refused", "stay"),
    Row(_READABLE, "reading.failed", "stay"),
    Row(_READABLE, "reading.violation", "contract_violation"),
    Row(("accepted", "observing"), "clock.result", "result_timed_out"),
    Row(("cancel_requested", "cancelling", "result_collecting"), "clock.result", "stay"),
    Row(("cancel_requested", "cancelling"), "clock.cancel", "cancellation_unconfirmed"),
    Row(("result_collecting",), "clock.cancel", "stay"),
    Row(("accepted", "observing"), "decision.cancel", "cancel_requested"),
)

CANCEL = (
    Row(("cancel_requested",), "intent.cancel", "stay"),
    Row(("cancel_requested",), "cancel_answer.taken", "cancelling"),
    Row(("cancel_requested",), "cancel_answer.read_again", "cancelling"),
    Row(("cancel_requested",), "cancel_answer.unsure", "stay", ("repeatable", "!sent by force")),
    Row(("cancel_requested",), "cancel_answer.unsure", "cancelling"),
    Row(("cancel_requested",), "cancel_answer.again", "stay"),
    Row(("cancel_requested",), "cancel_answer.refused", "observing"),
    Row(("cancel_requested",), "cancel_answer.violation", "contract_violation"),
    Row(("cancelling", "cancellation_unconfirmed"), "decision.cancel", "cancel_requested", ("repeatable",)),
    Row(("cancelling", "cancellation_unconfirmed"), "decision.cancel", "cancel_requested", ("forced",)),
    Row(("result_timed_out",), "decision.cancel", "cancel_requested"),
)

_DONE = ("result.verified", "result.none", "result.empty")
COLLECT = (
    Row(("result_collecting",), "intent.collect", "stay"),
    Row(("result_collecting",), "intent.step", "stay"),
    *(
        row
        for key in _DONE
        for row in (
            Row(("result_collecting",), key, "verdict", ("leftover",)),
            Row(("result_collecting",), key, "outcome_undecided", ("disagrees",)),
            Row(("result_collecting",), key, "failed", ("none succeeded",)),
            Row(("result_collecting",), key, "failed", ("partial: failed",)),
            Row(("result_collecting",), key, "outcome_undecided", ("partial: attention",)),
            Row(("result_collecting",), key, "succeeded"),
        )
    ),
    Row(("result_collecting",), "result.invalid", "verdict", ("leftover", "once before")),
    Row(("result_collecting",), "result.invalid", "result_validation_failed", ("once before",)),
    Row(("result_collecting",), "result.invalid", "stay"),
    Row(("result_collecting",), "result.again", "verdict", ("leftover", "cut one-time")),
    Row(("result_collecting",), "result.again", "result_unavailable", ("cut one-time",)),
    Row(("result_collecting",), "result.again", "stay"),
    Row(("result_collecting",), "result.refused", "stay"),
    Row(("result_collecting",), "result.gone", "verdict", ("leftover",)),
    Row(("result_collecting",), "result.gone", "result_unavailable"),
    Row(("result_collecting",), "step.violation", "contract_violation"),
    Row(("result_collecting",), "step.done", "stay"),
    Row(("result_collecting",), "step.again", "stay"),
    Row(("result_collecting",), "step.refused", "stay"),
    Row(("result_collecting",), "clock.collect", "verdict", ("leftover",)),
    Row(("result_collecting",), "clock.collect", "result_unavailable"),
)

HUMAN = (
    Row(("create_unknown", "contract_violation"), "decision.adopt", "cancel_requested", ("W",)),
    Row(("create_unknown", "contract_violation"), "decision.adopt", "accepted"),
    Row(("create_unknown",), "decision.look", "reconciling", ("has lookups",)),
    Row(("create_unknown",), "decision.replay", "create_pending", ("window open", "!entries lost")),
    Row(("create_unknown",), "decision.retry_create", "create_pending", ("!unnamed",)),
    Row(("result_timed_out",), "decision.resume", "observing"),
    Row(("result_unavailable",), "decision.resume", "observing", ("!has verdict",)),
    Row(("cancellation_unconfirmed",), "decision.resume", "cancelling"),
    Row(("result_unavailable",), "decision.recollect", "result_collecting", ("has verdict",)),
    Row(("result_validation_failed", "outcome_undecided"), "decision.recollect", "result_collecting"),
    Row(("outcome_undecided",), "decision.accept_succeeded", "succeeded"),
    Row(("outcome_undecided",), "decision.accept_failed", "failed"),
    Row(_ATTENTION, "decision.abandon", "abandoned"),
    Row(_ANYWHERE, "decision.accept_ledger", "stay"),
    Row(_BEFORE_JOB, "regressed.accepted", "create_unknown"),
    Row(tuple(state for state in _ANYWHERE if state not in _BEFORE_JOB), "regressed.accepted", "stay"),
)

# What was kept for an operation and is needed to go on is gone: nothing can be sent, and a human is asked.
NEEDED = (
    Row((*_DUE, "reconciling"), "missing.needed", "create_unknown"),
    Row(("create_unknown",), "missing.needed", "stay"),
    Row(("result_collecting",), "missing.needed", "verdict", ("leftover",)),
    Row((*_POLLED, "result_collecting"), "missing.needed", "result_unavailable"),
)

_ANSWERS_TO_CANCEL = ("taken", "read_again", "unsure", "again", "refused", "violation")
BOOKS = (
    Row(_ANYWHERE, "owner.claimed", "stay"),
    *(Row(_NOT_CANCELLING, f"cancel_answer.{word}", "note") for word in _ANSWERS_TO_CANCEL),
    Row(STATES, "decision.refused", "note"),
    Row(STATES, "refusals.counted", "note"),
    Row(STATES, "linked.retried_by", "note"),
    Row(STATES, "linked.retry_of", "note"),
    Row(STATES, "erased.erased", "note"),
    Row(STATES, "pruned.pruned", "note"),
    # An operation that ended without a commit takes back what its steps left. The state stays what it is.
    Row(_ENDED, "intent.undo", "note", ("undo due",)),
    *(Row(_ENDED, f"step.{word}", "note") for word in ("undone", "undo_again", "leftover")),
)

GROUPS: dict[str, tuple[State, ...]] = {"with a job": _JOB, "readable": _READABLE, "in attention": _ATTENTION}
"""States that rows name together, by the word that docs/lifecycle.md has for them."""

TABLES: dict[str, tuple[Row, ...]] = {
    "Authority": AUTHORITY,
    "Create": CREATE,
    "Reconcile": RECONCILE,
    "Observe": OBSERVE,
    "Cancel": CANCEL,
    "Collect": COLLECT,
    "What is needed and gone": NEEDED,
    "What a human may choose": HUMAN,
    "Book-keeping": BOOKS,
}
