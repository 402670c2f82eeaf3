"""The tables are total and closed, every row is reached and leads where the rule says, and nothing ends falsely."""

from datetime import timedelta
from typing import Any, cast, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docs.write_lifecycle import PAGE, page
from domain.errors import EvidenceError
from domain.evidence import FROM_OUTSIDE, Decision, Evidence
from domain.guards import GUARDS, replayable
from domain.lifecycle import (
    CHOICES,
    WHY,
    Move,
    Note,
    Outcome,
    Stay,
    StepName,
    advance,
    choices,
    clock_of,
    find_row,
    next_step,
    permits,
    undo_until,
    why_it_waits,
    why_of,
)  # fmt: skip
from domain.standing import FINAL, PARKED, Attempt, Flag, Leftover, State, Verdict
from domain.tables import STATES, TABLES, Row
from tests.domain.growing import KEYS, T0, at, said, standing
from tests.domain.lifecycle_cases import CASES, NOT_ALLOWED, Case, changes_of, verdict

QUIET = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def words_of(outcome: Outcome) -> str:
    match outcome:
        case Move(to=to):
            return to
        case Stay():
            return "stay"
        case Note(flagged=flagged):
            return "flagged" if flagged else "note"


def settings_of(case: Case, state: str) -> tuple[Any, Evidence]:
    facts, changes = changes_of(case.given)
    return standing(cast("State", state), facts, **changes), said(case.key, **case.fields)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.key}: {case.says}") for case in CASES])
def test_every_named_case_leads_where_the_rule_says(case: Case) -> None:
    led = {state: words_of(advance(*settings_of(case, state))) for state in case.states.split()}
    assert led == dict.fromkeys(case.states.split(), case.leads)


def test_no_row_is_shadowed_and_every_row_is_a_named_case() -> None:
    reached: set[tuple[Row, State]] = set()
    for case in CASES:
        for state in case.states.split():
            row = find_row(*settings_of(case, state))
            if row is not None:
                reached.add((row, cast("State", state)))
    rows = {(row, state) for table in TABLES.values() for row in table for state in row.states}
    assert rows - reached == set()


def test_no_row_stands_twice() -> None:
    rows = [(state, row.evidence, row.when) for table in TABLES.values() for row in table for state in row.states]
    assert len(rows) == len(set(rows))


def test_rows_use_only_known_evidence_states_and_guards() -> None:
    rows = [row for table in TABLES.values() for row in table]
    assert {row.evidence for row in rows} <= set(KEYS)
    assert {row.to for row in rows} <= {*STATES, "stay", "note", "verdict"}
    assert {guard.removeprefix("!") for row in rows for guard in row.when} == set(GUARDS)


@pytest.mark.parametrize(("says", "state", "given", "key"), NOT_ALLOWED, ids=[case[0] for case in NOT_ALLOWED])
def test_evidence_of_our_own_making_that_no_row_allows_is_an_error(says: str, state: State, given: str, key: str) -> None:
    facts, changes = changes_of(given)
    with pytest.raises(EvidenceError, match=state):
        advance(standing(state, facts, **changes), said(key, None, **({"force": True} if "forced" in says else {})))


@pytest.mark.parametrize("state", STATES)
def test_a_fact_from_outside_never_raises_and_our_own_bug_always_says_so(state: State) -> None:
    for key in KEYS:
        try:
            outcome = advance(standing(state), said(key))
        except EvidenceError:
            assert key.partition(".")[0] not in FROM_OUTSIDE
        else:
            assert isinstance(outcome, Move | Stay | Note)


@pytest.mark.parametrize("state", sorted(FINAL))
def test_nothing_leaves_a_final_state_and_nothing_is_sent_from_it(state: State) -> None:
    for key in KEYS:
        if key.startswith("intent."):
            with pytest.raises(EvidenceError):
                advance(standing(state), said(key))
        else:
            assert isinstance(advance(standing(state), said(key)), Note)


# --- random standings -------------------------------------------------------------------------------------------------------

instants = st.sampled_from([at(0), at(30), at(60), at(90), at(3600)])
pairs = st.tuples(st.integers(1, 2), st.integers(1, 3))
jobs = st.sampled_from([None, {"id": "job-1"}, {"id": "job-2"}])
verdicts: st.SearchStrategy[Any] = st.sampled_from(["succeeded", "partial", "failed", "cancelled"])
FACTS = st.fixed_dictionaries(
    {
        "collect_after": st.sets(verdicts).map(tuple),
        "cancel_repeatable": st.booleans(), "cancel_force": st.booleans(), "terminal_is_final": st.booleans(),
        "partial": st.sampled_from([None, "succeeded", "failed", "attention"]), "disagreement": st.sampled_from(["attention", "record"]),
        "one_time": st.booleans(), "token_window_ms": st.sampled_from([None, 60_000, 86_400_000]), "reconcile_entries": st.integers(0, 2),
    }
)  # fmt: skip
STANDINGS = st.fixed_dictionaries(
    {
        "generation": st.integers(1, 2),
        "open_attempt": st.none() | pairs.map(lambda pair: Attempt(generation=pair[0], attempt=pair[1], seq=3, at=T0)),
        "unproven": st.sets(pairs, max_size=3).map(tuple),
        "first_intent_at": st.none() | instants, "unnamed": st.booleans(), "cancel_wanted": st.booleans(), "job": jobs,
        "verdict": st.none() | verdicts.map(lambda word: Verdict(verdict=word, at=at(60), began=at(30), call="observe", seq=4)),
        "leftovers": st.sampled_from([(), (Leftover(generation=1, step="upload"),), (Leftover(generation=2, step="upload"),)]),
        "reconcile_left": st.integers(0, 2), "unread_late": st.sampled_from([(), (5,)]), "invalid_results": st.integers(0, 2),
        "deadlines": st.dictionaries(st.sampled_from(["create", "result", "cancel", "collect", "approval", "lookup"]), instants),
    }
)  # fmt: skip
closings = st.fixed_dictionaries(
    {"job": jobs, "verdict": st.none() | verdicts, "generation": st.integers(1, 2), "attempt": st.integers(1, 3)}
)
SAYINGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "decision": st.fixed_dictionaries({"force": st.booleans(), "arguments": st.just({"id": "job-2"})}),
    "exchange": closings,
    "late": closings,
    "reading": st.fixed_dictionaries({"verdict": st.none() | verdicts, "began": instants}),
    "lookup": st.fixed_dictionaries({"job": jobs, "exhausted": st.booleans()}),
    "callback": st.fixed_dictionaries({"job": jobs}),
    "result": st.fixed_dictionaries(
        {"outcome": st.sampled_from([None, "whole", "partial"]), "disagrees": st.booleans(), "cut": st.booleans()}
    ),
}  # fmt: skip


@st.composite
def any_standing(draw: st.DrawFn, states: tuple[State, ...] = STATES) -> Any:
    return standing(draw(st.sampled_from(states)), draw(FACTS), **draw(STANDINGS))


@st.composite
def any_evidence(draw: st.DrawFn) -> Evidence:
    key = draw(st.sampled_from(KEYS))
    fields = draw(SAYINGS.get(key.partition(".")[0], st.just({})))
    return said(key, draw(instants), **fields)


@QUIET
@given(any_standing(), any_evidence())
def test_advance_is_total_for_every_standing(before: Any, evidence: Evidence) -> None:
    try:
        outcome = advance(before, evidence)
    except EvidenceError:
        assert evidence.kind not in FROM_OUTSIDE
        return
    assert isinstance(outcome, Move | Stay | Note)
    assert not (before.final and isinstance(outcome, Move | Stay))


@QUIET
@given(any_standing(), st.sampled_from([key for key in KEYS if key.partition(".")[0] in {"policy", "clock", "decision"}]), instants)
def test_policy_clock_and_human_end_it_only_while_nothing_can_have_been_done(before: Any, key: str, when: Any) -> None:
    try:
        outcome = advance(before, said(key, when))
    except EvidenceError:
        return
    if isinstance(outcome, Move) and outcome.to in {"denied", "rejected", "expired"}:
        assert before.clean or before.state == "proposed"
    if isinstance(outcome, Move) and outcome.to == "cancelled" and before.state != "result_collecting":
        assert before.clean


@QUIET
@given(any_standing(), any_evidence())
def test_succeeded_is_said_only_of_a_collected_result_or_by_a_human(before: Any, evidence: Evidence) -> None:
    try:
        outcome = advance(before, evidence)
    except EvidenceError:
        return
    if outcome == Move("succeeded"):
        collected = before.state == "result_collecting" and evidence.key in {"result.verified", "result.none", "result.empty"}
        assert collected or evidence.key == "decision.accept_succeeded"


@QUIET
@given(any_standing(), any_evidence())
def test_cancelled_is_said_only_where_the_provider_showed_it_or_nothing_was_executed(before: Any, evidence: Evidence) -> None:
    try:
        outcome = advance(before, evidence)
    except EvidenceError:
        return
    if outcome != Move("cancelled"):
        return
    match evidence.kind:
        case "reading" | "result" | "clock":
            shown = getattr(evidence, "verdict", None) or before.verdict.verdict
            assert shown == "cancelled"
        case "decision":
            assert before.clean
        case _:
            assert evidence.kind in {"exchange", "late", "lookup"}
            assert before.cancel_wanted
            assert not before.unnamed


@QUIET
@given(any_standing(), instants, st.dictionaries(st.sampled_from(["completed", "total", "percent"]), st.integers(0, 100), min_size=1))
def test_progress_never_moves_anything(before: Any, when: Any, progress: dict[str, int]) -> None:
    bare, rich = said("reading.going", when), said("reading.going", when, progress=progress, counts=progress)
    assert advance(before, bare) == advance(before, rich)


@QUIET
@given(any_standing())
def test_a_step_is_always_named_and_nothing_is_sent_while_a_human_is_needed(before: Any) -> None:
    step = next_step(before)
    assert step.name in get_args(StepName)
    assert (step.name in {"done", "undo"}) == before.final
    assert (step.name == "undo") == (before.final and bool(before.undo_due))
    if before.attention:
        assert step.name == "inbox"
        assert choices(before, T0), "a parked operation has a way out"
    else:
        assert choices(before, T0) == ()


@QUIET
@given(any_standing(), st.sampled_from(["adopt", "look", "resume", "cancel", "recollect", "abandon", "accept_failed"]))
def test_what_is_permitted_is_what_advance_does(before: Any, verb: str) -> None:
    decision = cast("Decision", said(f"decision.{verb}"))
    if permits(before, decision):
        assert isinstance(advance(before, decision), Move | Stay)
    elif not before.final:
        with pytest.raises(EvidenceError):
            advance(before, decision)


# --- steps, choices, words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "step", "clock"),
    [
        ("proposed", "judge", None), ("awaiting_approval", "inbox", "approval"), ("approved create_pending", "create", "create"),
        ("reconciling", "reconcile", "lookup"), ("accepted observing", "observe", "result"), ("cancelling", "observe", "cancel"),
        ("cancel_requested", "cancel", "cancel"), ("result_collecting", "collect", "collect"),
        ("create_unknown contract_violation result_timed_out cancellation_unconfirmed result_unavailable", "inbox", None),
        ("result_validation_failed outcome_undecided", "inbox", None),
        ("succeeded failed cancelled denied rejected expired abandoned", "done", None),
    ],
)  # fmt: skip
def test_each_state_has_its_step_and_its_clock(states: str, step: str, clock: str | None) -> None:
    deadlines = {name: at(second) for second, name in enumerate(("approval", "create", "lookup", "result", "cancel", "collect"))}
    for state in states.split():
        stands = standing(cast("State", state), deadlines=deadlines)
        assert (next_step(stands).name, next_step(stands).until) == (step, deadlines.get(clock or ""))
        assert clock_of(stands) == clock


@pytest.mark.parametrize("left", [{"reconcile_left": 1}, {"unread_late": (5,)}])
def test_an_unknown_create_is_looked_into_while_something_automatic_is_left(left: dict[str, Any]) -> None:
    stands = standing("create_unknown", **left)
    assert next_step(stands).name == "reconcile"
    assert not stands.attention


@pytest.mark.parametrize(
    ("state", "given", "offered"),
    [
        ("create_unknown", "sent", "adopt retry_create abandon"),
        ("create_unknown", "token, sent", "adopt replay retry_create abandon"),
        ("create_unknown", "lookups, none left, sent", "adopt look retry_create abandon"),
        ("create_unknown", "token, sent, unnamed", "adopt abandon"),
        ("contract_violation", "job", "adopt abandon"),
        ("result_timed_out", "job", "resume cancel abandon"),
        ("cancellation_unconfirmed", "job", "resume abandon"),
        ("cancellation_unconfirmed", "job, repeatable", "resume cancel abandon"),
        ("result_unavailable", "job", "resume abandon"),
        ("result_unavailable", "job, succeeded", "recollect abandon"),
        ("result_validation_failed", "job, succeeded", "recollect abandon"),
        ("outcome_undecided", "job, succeeded", "recollect accept_succeeded accept_failed abandon"),
        ("observing", "job", ""),
        ("awaiting_approval", "", ""),
    ],
)
def test_a_human_is_offered_what_leads_out_and_nothing_else(state: State, given: str, offered: str) -> None:
    facts, changes = changes_of(given)
    assert choices(standing(state, facts, **changes), T0) == tuple(offered.split())


def test_every_state_that_waits_for_a_human_says_why_and_every_offer_has_its_words() -> None:
    assert {*PARKED, "create_unknown", "awaiting_approval"} == set(WHY)
    verbs = {row.evidence.removeprefix("decision.") for row in TABLES["What a human may choose"] if row.evidence.startswith("decision.")}
    assert verbs - {"accept_ledger"} | {"cancel"} == set(CHOICES), "a regressed ledger is the workflow's own attention"


def test_why_an_operation_waits_is_said_of_one_that_waits_and_of_no_other() -> None:
    assert why_it_waits(standing("result_timed_out")) == WHY["result_timed_out"]
    assert why_it_waits(standing("awaiting_approval")) == WHY["awaiting_approval"]
    left = Flag(word="leftovers", since=T0, why="what the step upload left could not be undone")
    assert str(why_it_waits(standing("awaiting_approval", flags=(left,)))).startswith("what an earlier attempt left at the provider")
    assert why_it_waits(standing("create_unknown")) == WHY["create_unknown"]
    assert why_it_waits(standing("create_unknown", reconcile_left=1)) is None, "a lookup may still settle it"
    assert why_it_waits(standing("observing")) is None
    assert why_it_waits(standing("result_unavailable")) == "the provider no longer knows the job"
    assert why_it_waits(standing("result_unavailable", verdict=verdict("succeeded"))) == "the job has ended, and the result cannot be had"
    assert why_it_waits(standing("outcome_undecided")) == WHY["outcome_undecided"]
    assert str(why_it_waits(standing("outcome_undecided", outcome="partial"))).startswith("the job was done in part only")


@pytest.mark.parametrize(
    ("state", "given", "step"),
    [
        ("cancelled", "left", "undo"), ("failed", "left", "undo"), ("denied", "left, another unproven", "done"),
        ("abandoned", "left, an intent open", "done"), ("succeeded", "left", "undo"), ("observing", "left before", "observe"),
    ],
)  # fmt: skip
def test_what_steps_left_is_undone_at_the_end_unless_a_job_may_be_at_work_with_it(state: State, given: str, step: str) -> None:
    facts, changes = changes_of(given)
    assert next_step(standing(state, facts, **changes)).name == step


def test_undo_has_as_long_again_as_the_create_had_and_before_a_create_until_its_deadline() -> None:
    facts = {"deadlines_ms": {"create": 30_000}}
    ended = standing("cancelled", facts, state_since=at(10), leftovers=(Leftover(generation=1, step="upload"),))
    assert next_step(ended).until == undo_until(ended) == at(40)
    assert undo_until(standing("create_pending", facts, deadlines={"create": at(7)})) == at(7)


def test_why_it_stands_where_it_stands_is_told_in_general_and_in_particular() -> None:
    assert (
        why_of(standing("result_validation_failed", problems=("sha256: differs",))) == f"{WHY['result_validation_failed']}: sha256: differs"
    )
    assert why_of(standing("contract_violation", violation={"why": "another job"})) == f"{WHY['contract_violation']}: another job"
    assert why_of(standing("contract_violation", violation={"word": "x"}, why="seen")) == f"{WHY['contract_violation']}: seen"
    assert why_of(standing("observing", why="come back later")) == "come back later"


def test_of_a_job_that_was_never_seen_it_is_asked_whether_its_id_is_right() -> None:
    unseen = "it was never seen; is the job's id (21) the one that its address needs?"
    lost = "the provider no longer knows the job"
    assert why_of(standing("result_unavailable", job={"id": "21"}, why="no such order")) == f"{lost}: no such order; {unseen}"
    assert why_of(standing("result_unavailable", job={"id": "21"})) == f"{lost}: {unseen}"
    assert why_of(standing("result_unavailable", job={"id": "21"}, seen=True)) == lost
    assert why_of(standing("result_unavailable", seen=False)) == lost
    ended = standing("result_unavailable", job={"id": "21"}, verdict=verdict("succeeded"))
    assert why_of(ended) == "the job has ended, and the result cannot be had"


def test_nothing_is_said_of_why_where_nothing_is_known() -> None:
    assert why_of(standing("observing")) is None


def test_the_page_on_the_lifecycle_says_what_the_code_does() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: .venv/bin/python -m docs.write_lifecycle"


def test_a_token_protects_until_its_window_less_one_request_and_a_minute() -> None:
    stands = standing("create_pending", {"token_window_ms": 600_000, "http_total_ms": 90_000}, first_intent_at=T0)
    assert stands.token_until == T0 + timedelta(seconds=600 - 90 - 60)
    assert replayable(stands, at(449.999))
    assert not replayable(stands, at(450))
    assert standing("create_pending", {"token_window_ms": 600_000}).token_until is None
    assert standing("create_pending", first_intent_at=T0).token_until is None
