"""The tables of docs/lifecycle.md as named cases, written from the rule and not from the rows.

A case: what it says · the states it is about · what is given · the evidence (`E` stands for `exchange` and `late`) · where it leads.
"""

from typing import Any, NamedTuple

from domain.standing import FINAL, Attempt, Leftover, Verdict
from domain.tables import STATES
from tests.domain.growing import T0


class Case(NamedTuple):
    says: str
    states: str
    given: str
    key: str
    leads: str
    fields: dict[str, Any] = {}  # noqa: RUF012 (a tuple's default is never changed)


def verdict(word: Any) -> Verdict:
    return Verdict(verdict=word, at=T0, began=T0, call="observe", seq=4)


GIVEN: dict[str, dict[str, Any]] = {
    "another unproven": {"unproven": ((1, 9),)},
    "earlier unproven": {"generation": 2, "unproven": ((1, 9),)},
    "an intent open": {"open_attempt": Attempt(generation=1, attempt=9, seq=3, at=T0)},
    "an earlier intent open": {"generation": 2, "open_attempt": Attempt(generation=1, attempt=9, seq=3, at=T0)},
    "sent": {"first_intent_at": T0},
    "entries lost": {"unproven": ((1, 0),)},
    "wanted": {"cancel_wanted": True},
    "deadline over": {"deadlines": {"create": T0}},
    "job": {"job": {"id": "job-1"}},
    "unnamed": {"unnamed": True},
    "succeeded": {"verdict": verdict("succeeded")},
    "undecided": {"verdict": verdict("partial").model_copy(update={"undecided": True})},
    "failed": {"verdict": verdict("failed")},
    "cancelled": {"verdict": verdict("cancelled")},
    "none left": {"reconcile_left": 0},
    "one entry": {"reconcile_left": 1},
    "two entries": {"reconcile_left": 2},
    "invalid before": {"invalid_results": 1},
    "by force": {"cancel_forced": True},
    "left": {"leftovers": (Leftover(generation=1, step="upload"),)},
    "left before": {"generation": 2, "leftovers": (Leftover(generation=1, step="upload"),)},
}
FACTS: dict[str, dict[str, Any]] = {
    "token": {"token": True, "token_window_ms": 86_400_000},
    "window over": {"token": True, "token_window_ms": 200_000},
    "failed collected": {"collect_after": ("succeeded", "partial", "failed", "cancelled")},
    "only failed collected": {"collect_after": ("failed",)},
    "not final": {"terminal_is_final": False},
    "repeatable": {"cancel_repeatable": True},
    "force": {"cancel_force": True},
    "lookups": {"reconcile_entries": 1},
    "one time": {"one_time": True},
    "partial succeeded": {"partial": "succeeded"},
    "partial failed": {"partial": "failed"},
    "partial attention": {"partial": "attention"},
    "disagreement recorded": {"disagreement": "record"},
}
JOB = {"job": {"id": "job-1"}}
OTHER = {"job": {"id": "job-2"}}
PARTIAL = {"outcome": "partial"}
NONE = {"outcome": "none"}
ENDED_AGAIN = {"word": "ended"}
UNDECIDED = ENDED_AGAIN | {"undecided": True}
BEFORE = {"began": T0}
AFTER = {"began": T0.replace(second=30)}

UNKNOWN = "create_unknown reconciling"
CREATING = "create_pending " + UNKNOWN
POLLED = "accepted observing cancel_requested cancelling"
PARKED_READABLE = "result_timed_out cancellation_unconfirmed"
READABLE = f"{POLLED} result_collecting {PARKED_READABLE} result_unavailable"
WITH_JOB = f"{READABLE} result_validation_failed outcome_undecided"
ATTENTION = (
    "create_unknown contract_violation result_timed_out cancellation_unconfirmed result_unavailable result_validation_failed "
    "outcome_undecided"
)
EVERY = " ".join(STATES)
UNENDED = " ".join(state for state in STATES if state not in FINAL)
ENDED = " ".join(state for state in STATES if state in FINAL)
NOT_ASKED = " ".join(state for state in STATES if state != "cancel_requested")
BEFORE_CREATE = "proposed awaiting_approval approved create_pending"
AFTER_CREATE = " ".join(state for state in STATES if state not in FINAL and state not in BEFORE_CREATE.split())

AUTHORITY = [
    Case("policy lets it run", "proposed", "", "policy.unattended", "approved"),
    Case("policy asks for a human", "proposed", "", "policy.needs_human", "awaiting_approval"),
    Case("policy says no", "proposed", "", "policy.no", "denied"),
    Case("a human approves", "awaiting_approval", "", "decision.approve", "approved"),
    Case("a human rejects", "awaiting_approval", "", "decision.reject", "rejected"),
    Case("rejected while an earlier attempt is unproven", "awaiting_approval", "earlier unproven", "decision.reject", "create_unknown"),
    Case("nobody approves in time", "awaiting_approval", "", "clock.approval", "expired"),
    Case("nobody approves, something unproven", "awaiting_approval", "earlier unproven", "clock.approval", "create_unknown"),
    Case("judged again and let run", "approved create_pending", "", "policy.unattended", "stay"),
    Case("judged again and covered by the approval", "approved create_pending", "", "policy.covered", "stay"),
    Case("the first intent is to create", "approved", "", "intent.create", "create_pending"),
    Case("the first intent is a step before", "approved", "", "intent.step", "create_pending"),
    Case("a request that cannot be made", "approved", "", "exchange.refused", "failed"),
    Case("a request that cannot be made, earlier unproven", "approved", "earlier unproven", "exchange.refused", "create_unknown"),
    Case("a later intent", "create_pending", "", "intent.create", "stay"),
    Case("a new round", "approved create_pending", "", "policy.needs_human", "awaiting_approval"),
    Case("a new round of a new generation", "create_pending", "earlier unproven", "policy.needs_human", "awaiting_approval"),
    Case("no new round while unproven", "approved create_pending", "another unproven", "policy.needs_human", "create_unknown"),
    Case("no new round while an intent is open", "create_pending", "an intent open", "policy.needs_human", "create_unknown"),
    Case("denied before anything was done", "approved create_pending reconciling", "", "policy.no", "denied"),
    Case("denied too late", "approved create_pending reconciling", "another unproven", "policy.no", "create_unknown"),
    Case("denied while an earlier generation is unproven", "create_pending", "earlier unproven", "policy.no", "create_unknown"),
    Case("approved and never created", "approved", "", "clock.create", "expired"),
    Case("the approval ran out", "approved", "", "clock.approval", "expired"),
    Case("expired while unproven", "approved", "earlier unproven", "clock.create", "create_unknown"),
    Case("the approval ran out while unproven", "approved", "earlier unproven", "clock.approval", "create_unknown"),
    Case("cancelled before anything was sent", "proposed awaiting_approval approved", "", "decision.cancel", "cancelled"),
    Case("a cancel while unproven", "proposed awaiting_approval approved", "earlier unproven", "decision.cancel", "create_unknown"),
]

CREATE = [
    Case("taken", CREATING, "", "E.accepted", "accepted", JOB),
    Case("taken, and a cancel is wanted", CREATING, "wanted", "E.accepted", "cancel_requested", JOB),
    Case("taken again as the same job", WITH_JOB, "job", "E.accepted", "stay", JOB),
    Case("taken as another job", WITH_JOB + " contract_violation", "job", "E.accepted", "contract_violation", OTHER),
    Case("not known, sent again", "create_pending", "token, sent", "E.ambiguous", "stay"),
    Case("not known, no token", "create_pending", "sent", "E.ambiguous", "create_unknown"),
    Case("not known, window over", "create_pending", "window over, sent", "E.ambiguous", "create_unknown"),
    Case("not known, deadline over", "create_pending", "token, sent, deadline over", "E.ambiguous", "create_unknown"),
    Case("not known, a cancel wanted", "create_pending", "token, sent, wanted", "E.ambiguous", "create_unknown"),
    Case("not known, taken without an id", "create_pending", "token, sent, unnamed", "E.ambiguous", "create_unknown"),
    Case("not known changes nothing", f"{UNKNOWN} {WITH_JOB}", "job", "E.ambiguous", "stay"),
    Case("a stored 5xx", "create_pending", "token, sent", "E.stuck", "create_unknown"),
    Case("a stored 5xx changes nothing", f"{UNKNOWN} {WITH_JOB}", "", "E.stuck", "stay"),
    Case("taken without an id", "create_pending", "token, sent", "E.unnamed", "create_unknown"),
    Case("taken without an id changes nothing", f"{UNKNOWN} {WITH_JOB}", "", "E.unnamed", "stay"),
    Case("finished at once", CREATING, "", "E.finished", "result_collecting", {"verdict": "succeeded"}),
    Case("finished, not collected after", CREATING, "only failed collected", "E.finished", "result_collecting", {"verdict": "succeeded"}),
    Case("ran and failed", CREATING, "", "E.finished", "failed", {"verdict": "failed"}),
    Case("failed and leaves output", CREATING, "failed collected", "E.finished", "result_collecting", {"verdict": "failed"}),
    Case("finished as the same job", WITH_JOB, "job", "E.finished", "stay", {"verdict": "succeeded", **JOB}),
    Case("failed, no job named", WITH_JOB, "job", "E.finished", "stay", {"verdict": "failed"}),
    Case("finished as another job", WITH_JOB, "job", "E.finished", "contract_violation", {"verdict": "succeeded", **OTHER}),
    Case("being worked on, again later", "create_pending", "token, sent", "E.in_flight", "stay"),
    Case("being worked on, not replayable", "create_pending", "sent", "E.in_flight", "create_unknown"),
    Case("being worked on changes nothing", f"{UNKNOWN} {WITH_JOB}", "", "E.in_flight", "stay"),
    Case("our token with other content", f"{CREATING} {WITH_JOB}", "", "E.violation", "contract_violation"),
    Case("refused", "create_pending", "", "E.refused", "failed"),
    Case("refused, another unproven", "create_pending", "another unproven", "E.refused", "create_unknown"),
    Case("refused, an earlier one unproven", "create_pending", "earlier unproven", "E.refused", "create_unknown", {"generation": 2}),
    Case("refused, all proven", UNKNOWN, "", "E.refused", "failed"),
    Case("refused, all proven, a cancel wanted", UNKNOWN, "wanted", "E.refused", "cancelled"),
    Case("refused, another unproven, unknown", UNKNOWN, "another unproven", "E.refused", "stay"),
    Case("refused, a job known", WITH_JOB, "job", "E.refused", "stay"),
]
for _word in ("not_executed", "not_sent"):
    CREATE.extend(
        [
            Case(f"{_word}, again", "create_pending", "", f"E.{_word}", "stay"),
            Case(f"{_word}, again, another unproven", "create_pending", "another unproven", f"E.{_word}", "stay"),
            Case(f"{_word}, a cancel wanted", "create_pending", "wanted", f"E.{_word}", "cancelled"),
            Case(f"{_word}, a cancel wanted, unproven", "create_pending", "wanted, another unproven", f"E.{_word}", "create_unknown"),
            Case(f"{_word}, all proven", UNKNOWN, "", f"E.{_word}", "create_pending"),
            Case(f"{_word}, all proven, a cancel wanted", UNKNOWN, "wanted", f"E.{_word}", "cancelled"),
            Case(f"{_word}, all proven, deadline over", UNKNOWN, "deadline over", f"E.{_word}", "failed"),
            Case(f"{_word}, another unproven", f"{UNKNOWN} {WITH_JOB}", "another unproven", f"E.{_word}", "stay"),
        ]
    )
CREATE.extend(
    [
        Case("a step is done", "create_pending", "", "step.done", "stay"),
        Case("a step is to be done again", "create_pending", "", "step.again", "stay"),
        Case("a step is refused", "create_pending", "", "step.refused", "failed"),
        Case("a step is refused, earlier unproven", "create_pending", "earlier unproven", "step.refused", "create_unknown"),
        Case("a step breaks its contract", "create_pending", "", "step.violation", "contract_violation"),
        Case("a step is intended", "create_pending", "", "intent.step", "stay"),
        Case("a step that cannot be made", "approved", "", "step.refused", "failed"),
        Case("a step that cannot be made, earlier unproven", "approved", "earlier unproven", "step.refused", "create_unknown"),
        Case("an undo is intended", "approved create_pending", "left before", "intent.undo", "stay"),
        Case("an undo is taken", "approved create_pending", "left before", "step.undone", "stay"),
        Case("an undo is not taken yet", "approved create_pending", "left before", "step.undo_again", "stay"),
        Case("an undo is given up", "approved create_pending", "left before", "step.leftover", "awaiting_approval"),
        Case("the create deadline, all proven", "create_pending", "", "clock.create", "failed"),
        Case("the create deadline, unproven", "create_pending", "another unproven", "clock.create", "create_unknown"),
        Case("a cancel, all proven", "create_pending", "", "decision.cancel", "cancelled"),
        Case("a cancel while on the wire", "create_pending", "an intent open", "decision.cancel", "stay"),
        Case("a cancel while unproven", "create_pending", "another unproven", "decision.cancel", "create_unknown"),
    ]
)

RECONCILE = [
    Case("a lookup begins", "create_unknown", "", "intent.lookup", "reconciling"),
    Case("the next lookup begins", "reconciling", "", "intent.lookup", "stay"),
    Case("found", UNKNOWN, "", "lookup.found", "accepted", JOB),
    Case("found, a cancel wanted", UNKNOWN, "wanted", "lookup.found", "cancel_requested", JOB),
    Case("candidates, an entry left", "reconciling", "two entries", "lookup.candidates", "stay"),
    Case("candidates, none left", "reconciling", "one entry", "lookup.candidates", "create_unknown"),
    Case("no match yet", "reconciling", "one entry", "lookup.none", "stay"),
    Case("no match, an entry left", "reconciling", "two entries", "lookup.none", "stay", {"exhausted": True}),
    Case("no match, none left", "reconciling", "one entry", "lookup.none", "create_unknown", {"exhausted": True}),
    Case("absent", "reconciling", "", "lookup.absent", "create_pending"),
    Case("absent, an earlier one unproven", "reconciling", "earlier unproven", "lookup.absent", "create_pending"),
    Case("absent, a cancel wanted", "reconciling", "wanted, another unproven", "lookup.absent", "cancelled"),
    Case("absent, wanted, earlier unproven", "reconciling", "wanted, earlier unproven", "lookup.absent", "create_unknown"),
    Case("absent, wanted, earlier intent open", "reconciling", "wanted, an earlier intent open", "lookup.absent", "create_unknown"),
    Case("absent, deadline over", "reconciling", "deadline over", "lookup.absent", "failed"),
    Case("absent, over, earlier unproven", "reconciling", "deadline over, earlier unproven", "lookup.absent", "create_unknown"),
    Case("never absent if unnamed, an entry left", "reconciling", "unnamed, one entry", "lookup.absent", "stay"),
    Case("never absent if unnamed, none left", "reconciling", "unnamed", "lookup.absent", "create_unknown"),
    Case("a lookup failed", "reconciling", "one entry", "lookup.failed", "stay"),
    Case("a lookup failed for good, none left", "reconciling", "one entry", "lookup.failed", "create_unknown", {"exhausted": True}),
    Case("a lookup breaks the contract", UNKNOWN, "", "lookup.violation", "contract_violation"),
    Case("looked long enough", "reconciling", "two entries", "clock.lookup", "create_unknown"),
    Case("called back under our key", UNKNOWN, "", "callback.accepted", "accepted", JOB),
    Case("called back, a cancel wanted", UNKNOWN, "wanted", "callback.accepted", "cancel_requested", JOB),
    Case("called back without a job", UNKNOWN, "", "callback.accepted", "flagged"),
    Case("a cancel is remembered", UNKNOWN, "", "decision.cancel", "stay"),
]

_V = {word: {"verdict": word} for word in ("succeeded", "partial", "failed", "cancelled")}
OBSERVE = [
    Case("goes on, first seen", "accepted", "", "reading.going", "observing"),
    Case("goes on", f"observing cancel_requested cancelling {PARKED_READABLE} result_unavailable", "", "reading.going", "stay"),
    Case("goes on, read before the end", "result_collecting", "succeeded", "reading.going", "stay", BEFORE),
    Case("goes on after the end", "result_collecting", "succeeded", "reading.going", "contract_violation", AFTER),
    Case("goes on after an end that is not final", "result_collecting", "succeeded, not final", "reading.going", "stay", AFTER),
    Case("not visible", READABLE, "", "reading.not_visible", "stay"),
    Case("unknown word, first seen", "accepted", "", "reading.held", "observing"),
    Case("unknown word", READABLE.removeprefix("accepted "), "", "reading.held", "stay"),
    Case("succeeded", f"{POLLED} {PARKED_READABLE}", "", "reading.terminal", "result_collecting", _V["succeeded"]),
    Case("partial", f"{POLLED} {PARKED_READABLE}", "", "reading.terminal", "result_collecting", _V["partial"]),
    Case("ended by counts", f"{POLLED} {PARKED_READABLE}", "", "reading.terminal", "result_collecting"),
    Case("failed", f"{POLLED} {PARKED_READABLE}", "", "reading.terminal", "failed", _V["failed"]),
    Case("cancelled", f"{POLLED} {PARKED_READABLE}", "", "reading.terminal", "cancelled", _V["cancelled"]),
    Case("failed with output", f"{POLLED} {PARKED_READABLE}", "failed collected", "reading.terminal", "result_collecting", _V["failed"]),
    Case("it has ended, once more", "result_collecting", "undecided", "reading.terminal", "stay", _V["failed"] | AFTER | ENDED_AGAIN),
    Case("it has ended, how is not said", "result_collecting", "succeeded", "reading.terminal", "stay", _V["partial"] | AFTER | UNDECIDED),
    Case("the same end again", "result_collecting", "succeeded", "reading.terminal", "stay", _V["succeeded"] | AFTER),
    Case("another end", "result_collecting", "succeeded", "reading.terminal", "contract_violation", _V["failed"] | AFTER),
    Case("another end, read before", "result_collecting", "succeeded", "reading.terminal", "stay", _V["failed"] | BEFORE),
    Case("another end, not final", "result_collecting", "succeeded, not final", "reading.terminal", "stay", _V["failed"] | AFTER),
    Case("an end is kept for recollect", "result_unavailable", "", "reading.terminal", "stay", _V["succeeded"]),
    Case("gone", f"{POLLED} result_collecting", "", "reading.gone", "result_unavailable"),
    Case("gone while parked", f"{PARKED_READABLE} result_unavailable", "", "reading.gone", "stay"),
    Case("a read refused", READABLE, "", "reading.refused", "stay"),
    Case("a read failed", READABLE, "", "reading.failed", "stay"),
    Case("another job is shown", READABLE, "", "reading.violation", "contract_violation"),
    Case("the result deadline", "accepted observing", "", "clock.result", "result_timed_out"),
    Case("the result deadline, elsewhere", "cancel_requested cancelling result_collecting", "", "clock.result", "stay"),
    Case("the cancel deadline", "cancel_requested cancelling", "", "clock.cancel", "cancellation_unconfirmed"),
    Case("the cancel deadline, collecting", "result_collecting", "", "clock.cancel", "stay"),
    Case("a cancel", "accepted observing", "", "decision.cancel", "cancel_requested"),
]

CANCEL = [
    Case("a cancel is intended", "cancel_requested", "", "intent.cancel", "stay"),
    Case("taken", "cancel_requested", "", "cancel_answer.taken", "cancelling"),
    Case("has ended already", "cancel_requested", "", "cancel_answer.read_again", "cancelling"),
    Case("not known, repeatable", "cancel_requested", "repeatable", "cancel_answer.unsure", "stay"),
    Case("not known, once only", "cancel_requested", "", "cancel_answer.unsure", "cancelling"),
    Case("not known, sent by force", "cancel_requested", "repeatable, force, by force", "cancel_answer.unsure", "cancelling"),
    Case("not known, no force call", "cancel_requested", "repeatable, by force", "cancel_answer.unsure", "stay"),
    Case("again later", "cancel_requested", "", "cancel_answer.again", "stay"),
    Case("refused", "cancel_requested", "", "cancel_answer.refused", "observing"),
    Case("breaks the contract", "cancel_requested", "", "cancel_answer.violation", "contract_violation"),
    Case("asked again, repeatable", "cancelling cancellation_unconfirmed", "repeatable", "decision.cancel", "cancel_requested"),
    Case("asked again with force", "cancelling cancellation_unconfirmed", "force", "decision.cancel", "cancel_requested", {"force": True}),
    Case("resolved by a cancel", "result_timed_out", "", "decision.cancel", "cancel_requested"),
    *(
        Case("elsewhere a note", NOT_ASKED, "", f"cancel_answer.{word}", "note")
        for word in ("taken", "read_again", "unsure", "again", "refused", "violation")
    ),
]

COLLECT = [
    Case("collecting is intended", "result_collecting", "", "intent.collect", "stay"),
    Case("a step is intended", "result_collecting", "", "intent.step", "stay"),
]
for _key in ("result.verified", "result.none", "result.empty"):
    COLLECT.extend(
        [
            Case("had", "result_collecting", "succeeded", _key, "succeeded"),
            Case("partial, taken as success", "result_collecting", "partial succeeded", _key, "succeeded", PARTIAL),
            Case("partial, taken as failure", "result_collecting", "partial failed", _key, "failed", PARTIAL),
            Case("partial, left to a human", "result_collecting", "partial attention", _key, "outcome_undecided", PARTIAL),
            Case("partial, and nothing is said", "result_collecting", "", _key, "outcome_undecided", PARTIAL),
            Case("no item succeeded", "result_collecting", "partial succeeded", _key, "failed", NONE),
            Case("no item succeeded, and counts disagree", "result_collecting", "", _key, "outcome_undecided", NONE | {"disagrees": True}),
            Case("counts disagree", "result_collecting", "", _key, "outcome_undecided", {"disagrees": True}),
            Case("counts disagree, recorded", "result_collecting", "disagreement recorded", _key, "succeeded", {"disagrees": True}),
            Case("output of a failure", "result_collecting", "failed", _key, "failed"),
            Case("output of a cancelled job", "result_collecting", "cancelled", _key, "cancelled", PARTIAL | {"disagrees": True}),
        ]
    )
COLLECT.extend(
    [
        Case("invalid, fetched again", "result_collecting", "succeeded", "result.invalid", "stay"),
        Case("invalid twice", "result_collecting", "succeeded, invalid before", "result.invalid", "result_validation_failed"),
        Case("invalid, one time", "result_collecting", "one time", "result.invalid", "result_validation_failed"),
        Case("leftovers invalid twice", "result_collecting", "failed, invalid before", "result.invalid", "failed"),
        Case("again", "result_collecting", "succeeded", "result.again", "stay"),
        Case("cut", "result_collecting", "succeeded", "result.again", "stay", {"cut": True}),
        Case("cut, one time", "result_collecting", "one time", "result.again", "result_unavailable", {"cut": True}),
        Case("leftovers cut, one time", "result_collecting", "cancelled, one time", "result.again", "cancelled", {"cut": True}),
        Case("refused", "result_collecting", "succeeded", "result.refused", "stay"),
        Case("gone", "result_collecting", "succeeded", "result.gone", "result_unavailable"),
        Case("leftovers gone", "result_collecting", "failed", "result.gone", "failed"),
        Case("a step shows another job", "result_collecting", "", "step.violation", "contract_violation"),
        Case("a step is done", "result_collecting", "", "step.done", "stay"),
        Case("a step is to be done again", "result_collecting", "", "step.again", "stay"),
        Case("a step is refused", "result_collecting", "", "step.refused", "stay"),
        Case("the collect deadline", "result_collecting", "succeeded", "clock.collect", "result_unavailable"),
        Case("the collect deadline of leftovers", "result_collecting", "failed", "clock.collect", "failed"),
    ]
)

HUMAN = [
    Case("adopt", "create_unknown contract_violation", "", "decision.adopt", "accepted", {"arguments": {"id": "job-1"}}),
    Case("adopt, cancel wanted", "create_unknown contract_violation", "wanted", "decision.adopt", "cancel_requested"),
    Case("look", "create_unknown", "lookups", "decision.look", "reconciling"),
    Case("replay", "create_unknown", "token, sent", "decision.replay", "create_pending"),
    Case("retry", "create_unknown", "another unproven", "decision.retry_create", "create_pending"),
    Case("resume", "result_timed_out result_unavailable", "", "decision.resume", "observing"),
    Case("resume waiting for a cancel", "cancellation_unconfirmed", "", "decision.resume", "cancelling"),
    Case("recollect", "result_unavailable", "succeeded", "decision.recollect", "result_collecting"),
    Case("recollect what was had", "result_validation_failed outcome_undecided", "", "decision.recollect", "result_collecting"),
    Case("take it as success", "outcome_undecided", "", "decision.accept_succeeded", "succeeded"),
    Case("take it as failure", "outcome_undecided", "", "decision.accept_failed", "failed"),
    Case("give up", ATTENTION, "", "decision.abandon", "abandoned"),
    Case(
        "the ledger lost entries before a job",
        BEFORE_CREATE,
        "",
        "regressed.accepted",
        "create_unknown",
    ),
    Case("a shorter ledger is taken", UNENDED, "", "decision.accept_ledger", "stay"),
    Case("the ledger lost entries later", AFTER_CREATE, "", "regressed.accepted", "stay"),
]

NEEDED = [
    Case("what the create needs is gone", "approved create_pending", "", "missing.needed", "create_unknown"),
    Case("what a lookup needs is gone", "reconciling", "", "missing.needed", "create_unknown"),
    Case("what the next lookup needs is gone", "create_unknown", "", "missing.needed", "stay"),
    Case("what the job is read with is gone", POLLED + " result_collecting", "", "missing.needed", "result_unavailable"),
    Case("what the result is fetched with is gone", "result_collecting", "succeeded", "missing.needed", "result_unavailable"),
    Case("what leftovers are fetched with is gone", "result_collecting", "failed", "missing.needed", "failed"),
    Case("and of a cancelled job", "result_collecting", "cancelled", "missing.needed", "cancelled"),
]

BOOKS = [
    Case("a run takes the stream", UNENDED, "", "owner.claimed", "stay"),
    *(
        Case("a fact beside the story", EVERY, "", key, "note")
        for key in ("decision.refused", "refusals.counted", "linked.retried_by", "linked.retry_of", "erased.erased", "pruned.pruned")
    ),
    Case("an undo is intended", ENDED, "left", "intent.undo", "note"),
    Case("an undo is taken", ENDED, "left", "step.undone", "note"),
    Case("an undo is not taken yet", ENDED, "left", "step.undo_again", "note"),
    Case("an undo is given up", ENDED, "left", "step.leftover", "note"),
]

NOT_ALLOWED = [
    ("a replay after the window", "create_unknown", "window over, sent", "decision.replay"),
    ("a replay of what was taken without an id", "create_unknown", "token, sent, unnamed", "decision.replay"),
    ("a replay where the ledger lost entries", "create_unknown", "token, sent, entries lost", "decision.replay"),
    ("a look where nothing can be looked up", "create_unknown", "", "decision.look"),
    ("a retry of what was taken without an id", "create_unknown", "unnamed", "decision.retry_create"),
    ("a resume where the end is known", "result_unavailable", "succeeded", "decision.resume"),
    ("a recollect where no end is known", "result_unavailable", "", "decision.recollect"),
    ("a second cancel that is not repeatable", "cancelling", "", "decision.cancel"),
    ("a forced cancel without a force call", "cancelling", "", "decision.cancel"),
    ("a cancel while the result is collected", "result_collecting", "", "decision.cancel"),
    ("a cancel of what has parked as broken", "contract_violation", "", "decision.cancel"),
    ("an approval of what waits for none", "observing", "", "decision.approve"),
    ("a create where a job is known", "observing", "", "intent.create"),
    ("a create where the outcome is not known", "create_unknown", "", "intent.create"),
    ("a cancel request without a decision", "observing", "", "intent.cancel"),
    ("a clock that does not run", "observing", "", "clock.approval"),
    ("an undo where nothing was left", "succeeded", "", "intent.undo"),
    ("an undo of what a job may be at work with", "create_pending", "left before, another unproven", "intent.undo"),
    ("an undo in the middle of the present generation", "create_pending", "left", "intent.undo"),
    ("a second opening", "proposed", "", "opened.opened"),
]


def spelled(cases: list[Case]) -> list[Case]:
    """With `E` as each of the two kinds."""
    return [
        case._replace(key=case.key.replace("E.", f"{kind}.", 1))
        for case in cases
        for kind in (("exchange", "late") if case.key.startswith("E.") else ("",))
    ]


CASES = spelled([*AUTHORITY, *CREATE, *RECONCILE, *OBSERVE, *CANCEL, *COLLECT, *HUMAN, *NEEDED, *BOOKS])


def changes_of(given: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts, changes of the standing) of what is given."""
    facts: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    for word in filter(None, given.split(", ")):
        facts |= FACTS.get(word, {})
        changes |= GIVEN.get(word, {})
        assert word in FACTS or word in GIVEN, word
    return facts, changes
