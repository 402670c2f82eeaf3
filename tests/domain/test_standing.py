"""A standing is what a stream's entries lead to, and nothing else: what is known once is kept, what is open is counted."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain.chain import first_prev, make_entry
from domain.errors import EvidenceError
from domain.folding import fold
from domain.lifecycle import advance, clock_of, next_step
from domain.standing import FINAL, LOST_ATTEMPT, UNPROVEN_MEANINGS, progress_text
from domain.tables import STATES, TABLES
from tests.domain.growing import KEYS, LEDGER, STREAM, T0, Stream, at, said, standing, told

JOB = {"job": {"id": "job-1"}}
ASKED: tuple[Any, ...] = ("policy.unattended", "policy.unattended", "intent.create")
LOST: tuple[Any, ...] = (*ASKED, "exchange.ambiguous")
TAKEN: tuple[Any, ...] = (*ASKED, ("exchange.accepted", JOB))
SUCCEEDED: Any = ("reading.terminal", {"verdict": "succeeded", "began": at(3)})
FAILED: Any = ("reading.terminal", {"verdict": "failed", "began": at(3)})


def resolved(verb: str, number: int, **fields: Any) -> tuple[str, dict[str, Any]]:
    return f"decision.{verb}", {"request_id": f"r-{number}", **fields}


# --- what is known is kept -----------------------------------------------------------------------------------------------


def test_a_stream_that_nothing_opened_has_no_standing() -> None:
    entry = make_entry(
        said("policy.no"), ledger_id=LEDGER, stream=STREAM, seq=0, prev=first_prev(LEDGER, STREAM), role="move", epoch=0, turn=0,
        from_=None, to="denied",
    )  # fmt: skip
    with pytest.raises(ValueError, match="does not open"):
        fold([entry])


def test_a_success_is_proposed_approved_taken_seen_collected_and_done() -> None:
    stream = told(*TAKEN, "reading.going", SUCCEEDED, "intent.collect", ("result.verified", {"outcome": "whole"}))
    assert [entry.to for entry in stream.entries] == [
        "proposed", "approved", "approved", "create_pending", "accepted", "observing", "result_collecting", "result_collecting",
        "succeeded",
    ]  # fmt: skip
    after = stream.standing
    assert (after.final, after.clean, after.effect, after.outcome, after.reads) == (True, False, "made", "whole", 2)
    assert after.verdict is not None
    assert (after.verdict.verdict, after.verdict.call, after.verdict.seq) == ("succeeded", "observe", 6)


def test_the_first_verdict_and_the_job_are_never_replaced() -> None:
    stream = told(*TAKEN, SUCCEEDED, ("reading.terminal", {"verdict": "failed", "began": at(1)}), ("late.accepted", JOB))
    assert stream.standing.state == "result_collecting"
    assert stream.standing.verdict is not None
    assert stream.standing.verdict.verdict == "succeeded"
    stream.hear("late.accepted", at(9), job={"id": "job-2"})
    assert stream.standing.state == "contract_violation"
    assert stream.standing.job == {"id": "job-1"}
    assert stream.standing.violation == {"why": "a late answer to the create names another job than the one known"}


def test_a_later_contradiction_is_said_as_one() -> None:
    stream = told(*TAKEN, SUCCEEDED, ("reading.going", {"began": at(7)}))
    assert stream.standing.state == "contract_violation"
    assert stream.standing.violation == {"why": "a later reading contradicts the first terminal observation"}


def test_a_reading_begun_in_the_millisecond_of_the_verdict_contradicts_nothing() -> None:
    stream = told(*TAKEN, SUCCEEDED, ("reading.going", {"began": at(5)}))
    assert stream.standing.state == "result_collecting"


@pytest.mark.parametrize(
    "key", ["exchange.violation", "late.violation", "lookup.violation", "reading.violation", "cancel_answer.violation", "step.violation"]
)
def test_a_violation_keeps_its_own_words(key: str) -> None:
    states = {"lookup": "reconciling", "cancel_answer": "cancel_requested", "reading": "observing"}
    before = standing(states.get(key.partition(".")[0], "create_pending"))  # type: ignore[arg-type]
    stream = Stream()
    stream.standing = before
    stream.hear(key, violation={"why": "another job"})
    assert (stream.standing.state, stream.standing.violation) == ("contract_violation", {"why": "another job"})


def test_a_finished_answer_that_stays_makes_no_verdict() -> None:
    stream = told(*TAKEN, ("late.finished", {"verdict": "succeeded", **JOB}))
    assert (stream.standing.state, stream.standing.verdict) == ("accepted", None)


def test_an_answer_that_is_finished_at_once_is_the_verdict_of_the_create() -> None:
    http = {"method": "POST", "url": "https://api.example/v1", "began": at(2), "ended": at(3)}
    stream = told(*ASKED, ("exchange.finished", {"verdict": "succeeded", "http": http}))
    verdict = stream.standing.verdict
    assert verdict is not None
    assert (verdict.verdict, verdict.call, verdict.began, stream.standing.effect) == ("succeeded", "create", at(2), "made")
    assert told(*ASKED, ("exchange.finished", {"verdict": "succeeded"})).standing.verdict is not None


def test_a_verdict_shown_while_the_result_is_unavailable_is_kept_for_recollect() -> None:
    stream = told(*TAKEN, "reading.gone", SUCCEEDED)
    assert stream.standing.state == "result_unavailable"
    stream.hear("decision.recollect", at(9))
    assert (stream.standing.state, stream.standing.deadlines["collect"]) == ("result_collecting", at(609))


# --- attempts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("meaning", sorted(UNPROVEN_MEANINGS))
def test_an_attempt_without_proof_stays_unproven(meaning: str) -> None:
    stream = told(
        *ASKED, (f"exchange.{meaning}", {"violation": {"why": "x"}} if meaning == "violation" else {}), token_window_ms=86_400_000
    )
    assert (stream.standing.unproven, stream.standing.open_attempt) == (((1, 1),), None)
    assert (stream.standing.clean, stream.standing.effect) == (False, "made" if meaning == "unnamed" else "possible")


@pytest.mark.parametrize("meaning", ["refused", "not_executed", "not_sent"])
def test_an_attempt_that_was_not_executed_is_proven(meaning: str) -> None:
    stream = told(*ASKED, f"exchange.{meaning}")
    assert (stream.standing.unproven, stream.standing.clean, stream.standing.effect) == ((), True, "none")


def test_an_intent_without_outcome_is_unproven_when_the_next_one_opens() -> None:
    stream = told(*ASKED, ("intent.create", {"attempt": 2}), token_window_ms=86_400_000)
    assert stream.standing.unproven == ((1, 1),)
    assert stream.standing.open_attempt is not None
    assert (stream.standing.open_attempt.attempt, stream.standing.first_intent_at) == (2, at(3))


def test_the_newest_instant_at_which_anything_may_be_sent_is_kept() -> None:
    first, second = ("intent.create", {"send_until": at(8)}), ("intent.create", {"attempt": 2, "send_until": at(7)})
    stream = told("policy.unattended", first, "exchange.not_sent", second)
    assert stream.standing.newest_send_until == at(8)


def test_a_later_attempt_without_request_facts_keeps_the_frozen_request() -> None:
    facts = {"method": "POST", "url": "https://api.example/v1", "body_sha256": "0" * 64, "body_bytes": 9, "ref": "9" * 64}
    stream = told("policy.unattended", ("intent.create", {"request": facts}), "exchange.not_sent", ("intent.create", {"attempt": 2}))
    assert stream.standing.request is not None
    assert stream.standing.request.digest == "9" * 64


def test_an_answer_to_an_older_attempt_leaves_the_newer_open() -> None:
    stream = told(*ASKED, "exchange.not_sent", ("intent.create", {"attempt": 2}), ("late.refused", {"attempt": 1}))
    assert stream.standing.state == "create_unknown"
    assert stream.standing.open_attempt is not None


def test_proof_that_arrives_late_starts_the_next_generation() -> None:
    stream = told(*ASKED, "exchange.ambiguous", "late.not_executed")
    after = stream.standing
    assert (after.state, after.generation, after.attempts, after.unproven, after.request) == ("create_pending", 2, 0, (), None)
    assert after.deadlines["create"] == at(601), "the deadline of the first generation is kept"


def test_absence_proves_its_own_generation_and_no_earlier_one() -> None:
    retried = told(
        *ASKED, "exchange.ambiguous", resolved("retry_create", 1), ("intent.create", {"generation": 2}),
        ("exchange.ambiguous", {"generation": 2}), "intent.lookup", "clock.lookup", reconcile_entries=1,
    )  # fmt: skip
    assert retried.standing.unproven == ((1, 1), (2, 1))
    retried.hear("decision.look", at(20), request_id="r-2")
    retried.hear("lookup.absent", at(21))
    assert (retried.standing.state, retried.standing.generation, retried.standing.unproven) == ("create_pending", 3, ((1, 1),))


def test_a_wanted_cancel_ends_in_cancelled_only_if_no_earlier_generation_is_unproven() -> None:
    stream = Stream()
    stream.standing = standing(
        "reconciling", generation=2, unproven=((1, 1), (2, 1)), cancel_wanted=True, reconcile_left=1,
        open_attempt=None, deadlines={"create": at(999)},
    )  # fmt: skip
    stream.hear("lookup.absent")
    assert (stream.standing.state, stream.standing.unproven, stream.standing.attention) == ("create_unknown", ((1, 1),), True)


def test_absence_with_a_wanted_cancel_is_cancelled_and_clean() -> None:
    stream = told(*ASKED, "decision.cancel", "exchange.ambiguous", "intent.lookup", "lookup.absent", reconcile_entries=1)
    assert (stream.standing.state, stream.standing.clean, stream.standing.generation) == ("cancelled", True, 1)


def test_what_was_taken_without_an_id_is_never_absent() -> None:
    stream = told(*ASKED, "exchange.unnamed", "intent.lookup", "lookup.absent", reconcile_entries=1)
    assert (stream.standing.state, stream.standing.unproven, stream.standing.effect) == ("reconciling", ((1, 1),), "made")


def test_a_retry_leaves_the_open_attempt_behind_as_unproven() -> None:
    stream = told(*ASKED, "regressed.accepted", resolved("retry_create", 1))
    assert stream.standing.unproven == ((1, LOST_ATTEMPT), (1, 1))
    assert (stream.standing.open_attempt, stream.standing.generation, stream.standing.state) == (None, 2, "create_pending")


def test_a_ledger_that_lost_entries_never_says_that_nothing_was_done() -> None:
    stream = told("regressed.accepted", reconcile_entries=1)
    assert not stream.standing.attention, "a lookup may still settle it"
    stream = told("regressed.accepted", "intent.lookup", "clock.lookup", reconcile_entries=1)
    assert (stream.standing.state, stream.standing.effect, stream.standing.attention) == ("create_unknown", "possible", True)
    stream.hear("decision.look", at(5))
    stream.hear("lookup.absent", at(6), exhausted=True)
    assert (stream.standing.state, stream.standing.unproven) == ("create_unknown", ((1, LOST_ATTEMPT),)), "they may have had other tokens"


def test_a_ledger_that_lost_entries_of_an_unknown_create_proves_nothing_either() -> None:
    stream = told(*ASKED, "exchange.ambiguous", "intent.lookup", "regressed.accepted", "regressed.accepted", reconcile_entries=1)
    assert (stream.standing.state, stream.standing.unproven) == ("reconciling", ((1, 1), (1, LOST_ATTEMPT)))
    assert not stream.standing.absence_provable
    assert told(*TAKEN, "regressed.accepted").standing.unproven == ()


def test_a_lost_attempt_that_turns_out_unsent_gives_the_create_its_deadline() -> None:
    stream = told("regressed.accepted", ("exchange.not_sent", {"generation": 1, "attempt": LOST_ATTEMPT}))
    assert (stream.standing.state, stream.standing.clean) == ("create_pending", True)
    span = timedelta(milliseconds=stream.standing.facts.deadlines_ms.create)
    assert stream.standing.deadlines["create"] == at(2) + span, "nothing was approved, so no clock ran before"


def test_an_attempt_is_uncertain_only_within_its_own_generation() -> None:
    stream = told(*LOST, token_window_ms=86_400_000)
    assert stream.standing.uncertain
    stream = told(*LOST, "decision.retry_create")
    assert (stream.standing.generation, stream.standing.uncertain, stream.standing.effect) == (2, False, "possible")


# --- late notes --------------------------------------------------------------------------------------------------------------


def test_a_late_answer_is_kept_as_a_note_and_read_once() -> None:
    stream = told(*ASKED, ("exchange.ambiguous", {"word": "lost"}))
    assert stream.standing.attention
    since = stream.standing.attention_since
    stream.hear("late.accepted", at(9), owned=False, **JOB)
    after = stream.standing
    assert (after.unread_late, after.state, after.job, after.attention, after.attention_since) == (
        (5,),
        "create_unknown",
        None,
        False,
        None,
    )
    assert since == at(4)
    stream.hear("late.accepted", at(10), of=5, job=JOB["job"])
    assert (stream.standing.unread_late, stream.standing.state, stream.standing.job) == ((), "accepted", JOB["job"])


def test_a_late_answer_that_is_read_where_no_table_knows_it_is_read_all_the_same() -> None:
    stream = told(*ASKED, ("exchange.violation", {"violation": {"why": "x"}}))
    stream.hear("late.ambiguous", at(9), owned=False)
    stream.hear("late.ambiguous", at(10), of=5)
    assert (stream.standing.state, stream.standing.unread_late) == ("contract_violation", ())


def test_a_note_changes_neither_owner_nor_state() -> None:
    stream = told(*TAKEN)
    before = stream.standing
    stream.hear("reading.terminal", at(9), owned=False, verdict="failed")
    assert stream.standing == before


# --- lookups -----------------------------------------------------------------------------------------------------------------


def test_each_exhausted_entry_is_used_up_and_then_a_human_is_asked() -> None:
    stream = told(*ASKED, "exchange.ambiguous", "intent.lookup", reconcile_entries=2)
    stream.hear("lookup.none", at(9))
    stream.hear("lookup.candidates", at(10), candidates=[{"id": "job-7"}])
    assert (stream.standing.reconcile_left, stream.standing.reconcile_entry, next_step(stream.standing).name) == (1, 1, "reconcile")
    stream.hear("lookup.none", at(11), exhausted=True)
    assert (stream.standing.state, stream.standing.attention, stream.standing.candidates) == ("create_unknown", True, ({"id": "job-7"},))
    stream.hear("decision.look", at(12))
    assert (stream.standing.state, stream.standing.reconcile_left, stream.standing.candidates) == ("reconciling", 2, ())


def test_the_clock_of_looking_ends_all_looking() -> None:
    stream = told(*ASKED, "exchange.ambiguous", "intent.lookup", "lookup.failed", "clock.lookup", reconcile_entries=2)
    assert (stream.standing.state, stream.standing.attention, next_step(stream.standing).name) == ("create_unknown", True, "inbox")


@pytest.mark.parametrize("key", ["lookup.found", "callback.accepted"])
def test_a_found_job_is_the_operations_own(key: str) -> None:
    stream = told(*ASKED, "exchange.ambiguous", "intent.lookup", (key, JOB), reconcile_entries=1)
    assert (stream.standing.state, stream.standing.job, stream.standing.deadlines["result"]) == ("accepted", JOB["job"], at(3606))


def test_a_job_that_an_earlier_sending_made_is_compared_at_its_first_reading() -> None:
    there = ("exchange.accepted", {"word": "exists", **JOB})
    assert told(*ASKED, there, compare=True).standing.compare_due
    assert not told(*ASKED, there).standing.compare_due
    assert not told(*TAKEN, compare=True).standing.compare_due
    assert not told(*ASKED, there, "reading.going", compare=True).standing.compare_due


# --- decisions -----------------------------------------------------------------------------------------------------------------


def test_a_decision_is_answered_once_under_its_request_id() -> None:
    stream = told(*TAKEN, resolved("cancel", 1), ("decision.refused", {"request_id": "r-2", "why": "already asked"}))
    answered = stream.standing.answered
    assert (answered["r-1"].accepted, answered["r-2"].accepted, answered["r-2"].why) == (True, False, "already asked")
    assert stream.standing.refusals == 1


def test_a_decision_kept_as_a_note_was_not_accepted() -> None:
    stream = told("policy.no", resolved("abandon", 3))
    assert (stream.standing.state, stream.standing.answered["r-3"].accepted) == ("denied", False)
    assert stream.standing.answered["r-3"].why == "it came too late to change anything"


def test_a_cancel_on_the_wire_is_remembered_and_meets_the_job() -> None:
    stream = told(*ASKED, "decision.cancel")
    assert (stream.standing.state, stream.standing.cancel_wanted) == ("create_pending", True)
    stream.hear("exchange.accepted", at(9), job=JOB["job"])
    assert (stream.standing.state, stream.standing.deadlines["cancel"], stream.standing.deadlines["result"]) == (
        "cancel_requested", at(309), at(3609),
    )  # fmt: skip


def test_a_cancel_is_sent_acknowledged_and_confirmed_by_a_reading_alone() -> None:
    stream = told(*TAKEN, ("reading.going", {}), "decision.cancel")
    assert stream.standing.phase == "seen"
    stream.hear("intent.cancel", at(9))
    assert stream.standing.cancel_sent
    stream.hear("cancel_answer.taken", at(10))
    assert (stream.standing.state, stream.standing.phase, stream.standing.cancel_sent) == ("cancelling", "cancelling", False)
    stream.hear("reading.terminal", at(11), verdict="cancelled")
    assert stream.standing.state == "cancelled"


def test_a_refused_cancel_is_no_longer_wanted_and_says_why() -> None:
    for words, why in ({"message": "too late"}, "too late"), ({}, "the cancel was refused"):
        stream = told(*TAKEN, "decision.cancel", ("cancel_answer.refused", {"words": words}))
        assert (stream.standing.state, stream.standing.cancel_wanted, stream.standing.why) == ("observing", False, why)
        assert stream.standing.phase == "fresh"


def test_an_unsure_cancel_is_not_acknowledged() -> None:
    stream = told(*TAKEN, "decision.cancel", "cancel_answer.unsure")
    assert (stream.standing.state, stream.standing.cancel_acknowledged) == ("cancelling", False)


def test_a_replay_drops_the_wanted_cancel_and_has_its_own_deadline() -> None:
    stream = told(*ASKED, "decision.cancel", "exchange.ambiguous", resolved("replay", 2), token_window_ms=86_400_000)
    assert (stream.standing.state, stream.standing.cancel_wanted, stream.standing.deadlines["create"]) == ("create_pending", False, at(606))
    assert (stream.standing.generation, stream.standing.unproven) == (1, ((1, 1),))


def test_resuming_sets_the_deadline_that_it_is_given_or_a_whole_one() -> None:
    stream = told(*TAKEN, "clock.result", ("decision.resume", {"until": at(77)}))
    assert (stream.standing.state, stream.standing.deadlines["result"]) == ("observing", at(77))
    unconfirmed = told(*TAKEN, "decision.cancel", "cancel_answer.taken", "clock.cancel", resolved("resume", 2))
    assert (unconfirmed.standing.state, unconfirmed.standing.deadlines["cancel"]) == ("cancelling", at(308))


def test_adopting_another_job_forgets_what_was_known_of_the_one_before() -> None:
    stream = told(*TAKEN, SUCCEEDED, ("late.accepted", {"job": {"id": "job-2"}}), ("decision.adopt", {"arguments": {"id": "job-2"}}))
    after = stream.standing
    assert (after.state, after.job, after.verdict, after.violation, after.deadlines["result"]) == (
        "accepted", {"id": "job-2"}, None, None, at(3607),
    )  # fmt: skip
    same = told(*TAKEN, SUCCEEDED, ("late.accepted", {"job": {"id": "job-2"}}), ("decision.adopt", {"arguments": {"id": "job-1"}}))
    assert same.standing.verdict is not None


def test_a_human_who_takes_an_outcome_ends_it() -> None:
    stream = told(*TAKEN, SUCCEEDED, ("result.verified", {"outcome": "partial"}), "decision.accept_failed")
    assert (stream.standing.state, stream.standing.outcome) == ("failed", "partial")


def test_an_approval_round_is_counted_and_its_refusals_begin_anew() -> None:
    stream = told("policy.needs_human", ("decision.refused", {"request_id": "r-1"}), resolved("approve", 2))
    assert (stream.standing.round, stream.standing.refusals, stream.standing.state) == (1, 1, "approved")
    stream.hear("policy.needs_human", at(9), why="the amount changed")
    assert (stream.standing.round, stream.standing.refusals, stream.standing.why) == (2, 0, "the amount changed")
    assert stream.standing.deadlines["approval"] == at(9) + timedelta(days=1)


# --- reading, flags --------------------------------------------------------------------------------------------------------------


def test_ten_unknown_words_in_a_row_are_flagged_and_a_known_one_clears_the_flag() -> None:
    stream = told(*TAKEN)
    for second in range(10):
        assert stream.standing.flags == ()
        stream.hear("reading.held", at(10 + second), remote_state="simmering")
    assert [(flag.word, flag.since) for flag in stream.standing.flags] == [("unknown_state", at(19))]
    assert "simmering" in stream.standing.flags[0].why
    stream.hear("reading.held", at(20), remote_state="simmering")
    assert len(stream.standing.flags) == 1
    stream.hear("reading.failed", at(21))
    assert (len(stream.standing.flags), stream.standing.held_run) == (1, 0)
    stream.hear("reading.going", at(22))
    assert stream.standing.flags == ()


@pytest.mark.parametrize(
    ("words", "why"), [({"reason": "upload the form"}, "upload the form"), ({}, "the job waits for input at the provider")]
)
def test_a_job_that_waits_for_input_is_flagged(words: dict[str, str], why: str) -> None:
    stream = told(*TAKEN, ("reading.going", {"word": "needs_input", "words": words}))
    assert [(flag.word, flag.why) for flag in stream.standing.flags] == [("needs_input", why)]


def test_a_refused_read_is_flagged() -> None:
    stream = told(*TAKEN, ("reading.refused", {"words": {"message": "forbidden"}}), "reading.refused")
    assert [(flag.word, flag.why) for flag in stream.standing.flags] == [("read_rejected", "forbidden")]


def test_a_job_that_has_not_appeared_in_time_is_flagged_unless_it_was_seen() -> None:
    stream = told(*TAKEN)
    stream.hear("reading.not_visible", at(64))
    assert stream.standing.flags == ()
    stream.hear("reading.not_visible", at(64.1))
    assert [flag.word for flag in stream.standing.flags] == ["not_visible"]
    stream.hear("reading.going", at(65))
    stream.hear("reading.not_visible", at(200))
    assert stream.standing.flags == ()


def test_a_woken_read_starts_the_backoff_anew_and_a_failed_one_does_not_hide_what_was_seen() -> None:
    seen = ("reading.going", {"remote_state": "running", "progress": {"completed": 3}, "counts": {"done": 3}, "provider_at": "noon"})
    stream = told(*TAKEN, seen, "reading.failed", "reading.failed", ("reading.going", {"woken": True, "turn": 7}))
    after = stream.standing
    assert (after.tries, after.last_reading_turn, after.seen, after.phase) == (0, 7, True, "seen")
    assert (after.progress, after.counts, after.provider_at) == ({"completed": 3}, {"done": 3}, "noon")


# --- collecting ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said_", "why"),
    [
        (("result.gone", {}), "the provider no longer has it"),
        (("result.gone", {"problems": ["410"]}), "410"),
        (("clock.collect", {}), "they could not be had in time"),
        (("result.again", {"cut": True}), "the provider no longer has it"),
    ],
)
def test_leftovers_that_cannot_be_had_are_flagged_and_the_end_stays_the_providers(said_: Any, why: str) -> None:
    stream = told(*TAKEN, FAILED, said_, collect_after=("failed",), one_time=True)
    assert stream.standing.state == "failed"
    assert [(flag.word, flag.why) for flag in stream.standing.flags] == [("leftovers", why)]


def test_leftovers_that_are_had_raise_no_flag() -> None:
    stream = told(*TAKEN, FAILED, ("result.invalid", {"problems": ["size"]}), "result.empty", collect_after=("failed",))
    assert (stream.standing.state, stream.standing.flags) == ("failed", ())


def test_an_invalid_result_s_outputs_are_told_by_its_entry_and_offered_by_no_standing() -> None:
    output = {"name": "output", "key": f"t1/reports-1/{'a' * 64}", "sha256": "a" * 64, "size": 3}
    stream = told(
        *TAKEN, SUCCEEDED, ("intent.collect", {"staging": "s-1"}), ("result.invalid", {"outputs": (output,), "problems": ["size"]})
    )
    assert stream.standing.outputs == ()
    assert stream.standing.problems == ("size",)


def test_an_invalid_result_is_fetched_again_once_and_recollecting_gives_another_chance() -> None:
    stream = told(*TAKEN, SUCCEEDED, ("intent.collect", {"staging": "s-1"}), "result.invalid", "result.invalid")
    assert (stream.standing.state, stream.standing.invalid_results) == ("result_validation_failed", 2)
    stream.hear("decision.recollect", at(20))
    assert (stream.standing.state, stream.standing.invalid_results, stream.standing.staging) == ("result_collecting", 0, None)


def test_what_was_right_of_several_outputs_stays_staged_for_the_next_attempt() -> None:
    stream = told(*TAKEN, SUCCEEDED, ("intent.collect", {"staging": "s-1"}), ("result.invalid", {"kept": True}))
    assert (stream.standing.state, stream.standing.staging) == ("result_collecting", "s-1")


def test_a_later_reading_of_the_same_end_gives_newer_addresses_and_changes_nothing_else() -> None:
    newer: dict[str, Any] = {"observed": {"digest": "b" * 64, "size": 3}, "began": at(30)}
    stream = told(*TAKEN, SUCCEEDED)
    verdict = stream.standing.verdict
    stream.hear("reading.terminal", at(31), verdict="succeeded", **newer)
    assert stream.standing.verdict == verdict
    assert stream.standing.renewed is not None
    assert (stream.standing.renewed.began, stream.standing.renewed.observed.digest) == (at(30), "b" * 64)
    other = told(*TAKEN, SUCCEEDED, terminal_is_final=False)
    other.hear("reading.terminal", at(31), verdict="failed", **newer)
    assert (other.standing.state, other.standing.renewed) == ("result_collecting", None)


def test_a_result_that_is_refused_is_flagged_once() -> None:
    stream = told(*TAKEN, SUCCEEDED, "result.refused", ("result.refused", {"words": {"message": "no"}}))
    assert [(flag.word, flag.why) for flag in stream.standing.flags] == [("read_rejected", "the provider refuses to give the result")]


def test_a_step_before_is_repeated_with_growing_delays() -> None:
    stream = told("policy.unattended", "intent.step", ("step.again", {"next_at": at(30)}), ("step.again", {"next_at": at(60)}))
    assert (stream.standing.state, stream.standing.tries, stream.standing.next_at) == ("create_pending", 2, at(60))


# --- books ---------------------------------------------------------------------------------------------------------------------


def test_owners_are_remembered_with_their_epochs() -> None:
    stream = told(("owner.claimed", {"run_id": "run-1", "epoch": 1}), ("owner.claimed", {"run_id": "run-2", "epoch": 2}))
    assert stream.standing.owners == {"run-1": 1, "run-2": 2}


def test_links_both_ways_are_notes() -> None:
    stream = told("policy.no", ("linked.retried_by", {"other": "reports-2"}), "linked.retry_of", "erased.erased", "pruned.pruned")
    assert (stream.standing.state, stream.standing.retried_by) == ("denied", "reports-2")


def test_a_clock_that_passes_beside_the_story_explains_nothing() -> None:
    stream = told(*TAKEN, "decision.cancel", "clock.result")
    assert (stream.standing.state, stream.standing.why) == ("cancel_requested", None)


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ({"completed": 146, "total": 500}, "146/500"), ({"percent": 29}, "29%"), ({"completed": 3}, "3"),
        ({"completed": 1, "percent": 9}, "9%"), ({"total": 5}, None), ({}, None), (None, None),
    ],
)  # fmt: skip
def test_progress_is_read_as_people_read_it(progress: Any, text: str | None) -> None:
    assert progress_text(progress) == text


def test_a_job_is_named_by_its_id_as_text() -> None:
    assert standing("accepted", job={"id": 7}).job_id == "7"
    assert standing("accepted", job={"href": "/jobs/7"}).job_id is None
    assert standing("create_unknown").job_id is None


# --- any stream ------------------------------------------------------------------------------------------------------------------

FACTS = st.fixed_dictionaries(
    {
        "collect_after": st.sampled_from([("succeeded", "partial"), ("succeeded", "partial", "failed", "cancelled"), ()]),
        "cancel_repeatable": st.booleans(), "one_time": st.booleans(), "terminal_is_final": st.booleans(),
        "token_window_ms": st.sampled_from([None, 86_400_000]), "reconcile_entries": st.integers(0, 2),
        "partial": st.sampled_from([None, "succeeded", "failed"]),
    }
)  # fmt: skip
EARLY_ENDS = {"policy.no", "decision.cancel", "decision.reject", "decision.abandon", "clock.create", "clock.approval", "exchange.refused"}
ROWS = [row for rows in TABLES.values() for row in rows if row.to not in {"note", "contract_violation"}]
LIKELY = {state: sorted({row.evidence for row in ROWS if state in row.states} - EARLY_ENDS) or list(KEYS) for state in STATES}


class AnyStream(RuleBasedStateMachine):
    """Random evidence, in any order, to one stream. A reference keeps its own books of attempts."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = Stream()
        self.clock = 0
        self.attempts: dict[tuple[int, int], bool] = {}
        self.before = self.stream.standing
        self.adopted = False

    @initialize(facts=FACTS, start=st.sampled_from([(), ASKED, LOST, TAKEN]))
    def open(self, facts: dict[str, Any], start: tuple[Any, ...]) -> None:
        self.stream = told(*start, **facts)
        self.before, self.clock = self.stream.standing, len(start)
        self.attempts = {(1, 1): start is TAKEN} if start else {}

    @rule(data=st.data())
    def tell_what_fits(self, data: st.DataObject) -> None:
        self.tell(data.draw(st.sampled_from(LIKELY[self.stream.standing.state])), data, owned=True)

    @rule(key=st.sampled_from(KEYS), data=st.data(), owned=st.booleans())
    def tell_anything(self, key: str, data: st.DataObject, owned: bool) -> None:
        if key not in EARLY_ENDS or len(self.stream.entries) > 8:
            self.tell(key, data, owned=owned)

    def tell(self, key: str, data: st.DataObject, *, owned: bool) -> None:
        self.clock += data.draw(st.sampled_from([1, 30, 700, 4000]))
        fields = self.fields_of(key, data)
        evidence = said(key, at(self.clock), **fields)
        self.before, self.adopted = self.stream.standing, key == "decision.adopt" and owned
        try:
            advance(self.before, evidence)
        except EvidenceError:
            if owned:
                return
        self.stream.tell(evidence, owned=owned)
        self.book(key, fields)

    def fields_of(self, key: str, data: st.DataObject) -> dict[str, Any]:
        kind, _, meaning = key.partition(".")
        now = self.stream.standing
        job = {"id": data.draw(st.sampled_from(["job-1", "job-1", "job-2"]))}
        attempt = data.draw(st.sampled_from(sorted(self.attempts) or [(1, 1)]))
        match kind:
            case "intent" if meaning == "create":
                return {"generation": now.generation, "attempt": now.attempts + 1}
            case "exchange" | "late":
                named = {"job": job} if meaning in {"accepted", "finished"} else {}
                verdict = {"verdict": data.draw(st.sampled_from(["succeeded", "failed"]))} if meaning == "finished" else {}
                return {"generation": attempt[0], "attempt": attempt[1], **named, **verdict}
            case "reading":
                began = at(self.clock - data.draw(st.sampled_from([0, 1, 5000])))
                return {"began": began, "verdict": data.draw(st.sampled_from(["succeeded", "partial", "failed", "cancelled"]))}
            case "lookup":
                return {"job": job, "exhausted": data.draw(st.booleans())}
            case "callback":
                return {"job": job}
            case "decision":
                return {"request_id": f"r-{self.clock}", "arguments": job, "force": data.draw(st.booleans())}
            case _:
                return {}

    def book(self, key: str, fields: dict[str, Any]) -> None:
        entry, before = self.stream.entries[-1], self.before
        if entry.role == "note":
            return
        kind, _, meaning = key.partition(".")
        attempt = (fields.get("generation", 0), fields.get("attempt", 0))
        match kind, meaning:
            case "intent", "create":
                self.attempts[attempt] = False
            case "exchange" | "late", _:
                self.attempts[attempt] = meaning not in UNPROVEN_MEANINGS
            case "lookup", "absent" if before.absence_provable:
                self.attempts |= {one: True for one in self.attempts if one[0] == before.generation}
            case "regressed", _ if before.job is None and before.verdict is None:
                self.attempts[before.generation, LOST_ATTEMPT] = False
            case _:
                pass

    @invariant()
    def the_fold_of_the_entries_is_the_standing(self) -> None:
        assert fold(self.stream.entries) == self.stream.standing

    @invariant()
    def attempts_are_unproven_until_proven(self) -> None:
        now = self.stream.standing
        opened = () if now.open_attempt is None else ((now.open_attempt.generation, now.open_attempt.attempt),)
        assert sorted((*now.unproven, *opened)) == sorted(one for one, proven in self.attempts.items() if not proven)

    @invariant()
    def what_is_known_is_kept(self) -> None:
        before, now = self.before, self.stream.standing
        if not self.adopted:
            assert before.job in (None, now.job)
            assert before.verdict in (None, now.verdict)
        assert now.generation >= before.generation
        assert now.round >= before.round
        assert before.state not in FINAL or now.state == before.state
        assert before.answered.items() <= now.answered.items()

    @invariant()
    def every_state_has_its_step_and_the_clock_that_bounds_it(self) -> None:
        now = self.stream.standing
        step, clock = next_step(now), clock_of(now)
        assert (step.name == "done") == now.final
        assert clock is None or clock in now.deadlines
        assert (now.attention_since is not None) == now.attention

    @invariant()
    def a_job_that_is_read_is_known(self) -> None:
        now = self.stream.standing
        if now.state in {"accepted", "observing", "cancel_requested", "cancelling"}:
            assert now.job is not None

    @invariant()
    def an_ended_stream_that_says_nothing_was_done_has_nothing_open(self) -> None:
        now = self.stream.standing
        if now.state in {"denied", "rejected", "expired"}:
            assert now.clean


AnyStream.TestCase.settings = settings(
    deadline=None, max_examples=50, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
TestAnyStream = AnyStream.TestCase


@given(st.lists(st.sampled_from(KEYS), max_size=12))
@settings(deadline=None, max_examples=50)
def test_notes_alone_never_move_a_stream(keys: list[str]) -> None:
    stream = Stream()
    for key in keys:
        stream.hear(key, owned=False)
    after = stream.standing
    assert (after.state, after.clean, after.epoch, after.turn, after.deadlines) == ("proposed", True, 0, 0, {})
    assert after.opened.at == T0
