"""What an operation needs and has no more: how its standing remembers that, what is said, and what lets it go on."""

from typing import Any

import pytest

from domain.errors import MissingFault, missing_words
from domain.lifecycle import flags_of, next_step, why_of
from domain.needs import CONTRACT, INPUT, REQUEST, SALT, saved_by
from domain.standing import Flag, Leftover, Standing
from tests.domain.growing import T0, Stream, standing, told

ACCEPTED: tuple[str, dict[str, Any]] = ("exchange.accepted", {"job": {"id": "job-1"}})
MISSING: tuple[str, dict[str, Any]] = ("missing.needed", {"what": "what the step upload saved"})
CLEAN, POSSIBLE = standing("create_unknown"), standing("create_unknown", unproven=((1, 1),))
UNNAMED = standing("create_unknown", unnamed=True)
STEPPED: tuple[str, dict[str, Any]] = ("step.done", {"saved": {"digest": "c" * 64, "size": 40}})


def at_work(*more: Any, **facts: Any) -> Stream:
    return told("policy.unattended", "intent.create", ACCEPTED, *more, **facts)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("absent", "its input is no longer kept"),
        ("changed", "its input is not what was kept"),
        ("unreadable", "its input cannot be read by this version"),
    ],
)
def test_what_is_missing_is_said_with_why(fault: MissingFault, words: str) -> None:
    assert missing_words("its input", fault) == words
    stream = at_work(("missing.needed", {"what": "its input", "fault": fault}))
    assert (stream.standing.state, stream.standing.missing) == ("result_unavailable", words)


@pytest.mark.parametrize(
    ("parked", "gone", "todo"),
    [
        (CLEAN, INPUT, "abandon this and run it anew; nothing has been created"),
        (CLEAN, CONTRACT, "abandon this and run it anew; nothing has been created"),
        (CLEAN, saved_by("upload"), "create again, or abandon this; nothing has been created"),
        (CLEAN, REQUEST, "create again, or abandon this; nothing has been created"),
        (POSSIBLE, INPUT, "look at the provider whether it made a job, see to that yourself, and abandon this"),
        (POSSIBLE, saved_by("upload"), "look at the provider whether it made a job, see to that yourself, and abandon this"),
        (POSSIBLE, REQUEST, "look at the provider whether it made a job, and adopt that one, or abandon this"),
        (UNNAMED, SALT, "look at the provider whether it made a job, see to that yourself, and abandon this"),
        (standing("result_unavailable", job={"id": "job-1"}), INPUT, "see to the job job-1 at the provider yourself, and abandon this"),
    ],
)
def test_what_may_be_done_about_it_depends_on_what_is_gone_and_what_may_have_been_made(parked: Standing, gone: str, todo: str) -> None:
    why = why_of(parked.model_copy(update={"missing": missing_words(gone, "absent"), "why": "older words"}))
    missing = f"what it needs to go on cannot be had, and nothing is sent without it: {gone} is no longer kept"
    assert why == f"{missing}. Unless it can be had again, {todo}"


def test_where_a_new_generation_waits_for_a_human_it_is_said_what_could_not_be_taken_back() -> None:
    left = (Flag(word="other", since=T0, why="another"), Flag(word="leftovers", since=T0, why="the file stays"))
    why = why_of(standing("awaiting_approval", flags=left, why="come back later"))
    assert why is not None
    assert why.endswith("whether to create again is for a human to say: the file stays")
    assert why_of(standing("awaiting_approval", why="by policy p")) == "policy asks for a human's consent to this exact effect: by policy p"


def test_an_unknown_create_with_lookups_left_waits_for_a_human_as_soon_as_what_they_need_is_gone() -> None:
    stream = told("policy.unattended", "intent.create", "exchange.stuck", reconcile_entries=2)
    assert next_step(stream.standing).name == "reconcile"
    stream.hear("late.accepted", owned=False, generation=1, attempt=1)
    stream.hear(MISSING[0], **MISSING[1])
    assert (stream.standing.state, stream.standing.attention, next_step(stream.standing).name) == ("create_unknown", True, "inbox")
    assert stream.standing.attention_since is not None
    assert stream.standing.reconcile_left == 2
    stream.hear("decision.look", request_id="r-9")
    assert (stream.standing.state, stream.standing.missing) == ("reconciling", None)


def test_only_what_moves_it_on_forgets_what_is_missing() -> None:
    stream = at_work(MISSING)
    stream.hear("erased.erased", owned=False)
    stream.hear("reading.going")
    assert stream.standing.missing is not None
    stream.hear("decision.resume", request_id="r-1")
    assert (stream.standing.state, stream.standing.missing) == ("observing", None)
    stream.hear(MISSING[0], **MISSING[1])
    stream.hear("decision.abandon", request_id="r-2")
    assert (stream.standing.state, stream.standing.missing) == ("abandoned", None)


def test_where_the_job_ended_without_a_result_only_its_leftovers_are_missing() -> None:
    stream = at_work(("reading.terminal", {"verdict": "failed"}), MISSING, collect_after=("failed",))
    assert (stream.standing.state, stream.standing.missing) == ("failed", None)
    assert [flag.why for flag in stream.standing.flags] == ["they could not be had: what the step upload saved is no longer kept"]


def test_what_an_ended_operation_left_is_flagged_until_it_is_taken_back() -> None:
    stream = told("policy.unattended", "intent.step", STEPPED, undo=("upload",))
    stream.hear("decision.cancel", request_id="r-1")
    assert (stream.standing.state, stream.standing.flags) == ("cancelled", ())
    assert [flag.why for flag in flags_of(stream.standing)] == ["what the step upload left is still to be taken back"]
    stream.hear("step.undone", saved=STEPPED[1]["saved"])
    assert flags_of(stream.standing) == ()


def test_what_a_running_operation_may_yet_need_is_not_flagged() -> None:
    left: dict[str, Any] = {"leftovers": (Leftover(generation=1, step="upload"),)}
    assert flags_of(standing("create_pending", **left)) == ()
    assert flags_of(standing("cancelled", unproven=((1, 1),), **left)) == (), "a job may be at work with it"


def test_a_verdict_stays_beside_what_is_missing() -> None:
    stream = at_work(("reading.terminal", {"verdict": "succeeded"}), MISSING)
    assert stream.standing.state == "result_unavailable"
    assert stream.standing.verdict is not None
    assert stream.standing.verdict.verdict == "succeeded"
    stream.hear("decision.recollect", request_id="r-1")
    assert stream.standing.state == "result_collecting"
