"""Real processes, killed, frozen and cut off at named points: what is left is right, and nothing was made twice.

`scenes.py` plays, once for all tests of this file. Each test looks at what is left of one operation.
"""

import asyncio
import hashlib

import pytest

from tests.chaos.scenes import KILLED_AT, Left, Play, play

AFTER_THE_INTENT_AND_UNHEARD = {"after_intent", "after_sending", "after_answer"}
"""Where a killed worker leaves an intent whose outcome nobody else has heard of."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Play:
    return asyncio.run(play(tmp_path_factory.mktemp("drills")))


def is_whole(left: Left) -> None:
    assert left.broken is None
    assert len(left.jobs) <= 1
    if left.state == "succeeded":
        assert left.result is not None
        assert hashlib.sha256(left.result).hexdigest() in _shown_digests(left)


def _shown_digests(left: Left) -> set[str]:
    outputs = [entry.body["outputs"] for entry in left.entries if entry.cause == "result.verified"]
    return {output["sha256"] for found in outputs for output in found}  # pyright: ignore


# --- the five drills ----------------------------------------------------------------------------------------------------


def test_a_create_answer_that_is_dropped_after_acceptance_makes_one_job(played: Play):
    left = played["token-dropped"]
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 2)
    assert len({(call["token"], call["body_digest"]) for call in left.creates}) == 1
    is_whole(left)


def test_a_create_answer_that_is_dropped_without_a_token_is_not_guessed_about(played: Play):
    left = played["plain-dropped"]
    assert (left.state, left.attention, len(left.jobs), len(left.creates)) == ("create_unknown", True, 1, 1)
    is_whole(left)


@pytest.mark.parametrize("kind", ["token", "plain"])
def test_a_worker_killed_between_saving_the_job_id_and_the_first_poll_loses_nothing(played: Play, kind: str):
    left = played[f"{kind}-before_first_poll"]
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 1)
    assert left.told("exchange.accepted") == 1
    is_whole(left)


def test_a_terminal_result_during_a_cancel_is_kept_as_what_it_is(played: Play):
    left = played["racing"]
    assert (left.state, len(left.jobs), left.cancels) == ("succeeded", 1, 1)
    assert left.jobs[0]["state"] == "succeeded"
    assert left.story.index("intent.cancel") < left.story.index("reading.terminal")
    is_whole(left)


def test_the_same_terminal_news_twice_is_collected_once(played: Play):
    left = played["token-news"]
    assert (left.state, left.told("reading.terminal"), left.told("intent.collect")) == ("succeeded", 2, 1)
    assert left.jobs[0]["downloads"] == 1
    assert [entry.role for entry in left.entries if entry.cause == "reading.terminal"] == ["move", "note"]
    is_whole(left)


def test_a_restart_with_a_stale_owner_hears_the_answer_and_lets_it_move_nothing_itself(played: Play):
    left = played["plain-replaced_answer"]
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 1)
    assert [entry.role for entry in left.entries if entry.cause == "late.accepted"] == ["note", "move"]
    is_whole(left)


@pytest.mark.parametrize("kind", ["token", "plain"])
def test_an_intent_of_a_stale_owner_is_refused(played: Play, kind: str):
    left = played[f"{kind}-replaced_intent"]
    assert (left.state, len(left.jobs), len(left.creates), left.told("intent.create")) == ("succeeded", 1, 1, 1)
    assert left.told("owner.claimed") == 2
    is_whole(left)


# --- killed at each named point -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", KILLED_AT)
def test_with_a_token_a_kill_at_any_point_ends_with_exactly_one_job(played: Play, point: str):
    left = played[f"token-{point}"]
    assert (left.state, len(left.jobs)) == ("succeeded", 1)
    assert len({(call["token"], call["body_digest"]) for call in left.creates}) == 1
    is_whole(left)


@pytest.mark.parametrize("point", KILLED_AT)
def test_without_a_token_a_kill_never_makes_a_second_job_nor_a_guess(played: Play, point: str):
    left = played[f"plain-{point}"]
    unknown = point in AFTER_THE_INTENT_AND_UNHEARD
    assert (left.state, left.attention) == (("create_unknown", True) if unknown else ("succeeded", False))
    assert len(left.creates) == (0 if point == "after_intent" else 1)
    assert len(left.jobs) == len(left.creates)
    is_whole(left)


@pytest.mark.parametrize("kind", ["token", "plain"])
def test_an_answer_that_a_heartbeat_carried_is_recovered_and_not_asked_for_again(played: Play, kind: str):
    left = played[f"{kind}-after_heartbeat"]
    (answer,) = [entry for entry in left.entries if entry.cause == "exchange.accepted"]
    assert answer.body["recovered"] == "recovered"
    assert len(left.creates) == 1


# --- two live owners ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["token", "plain"])
def test_frozen_between_intent_and_send_it_is_too_late_and_nothing_leaves(played: Play, kind: str):
    left = played[f"{kind}-short"]
    (late,) = [entry.body["word"] for entry in left.entries if entry.cause == "exchange.not_sent"]
    assert late == "late"
    assert (left.state, len(left.jobs), len(left.creates), left.told("intent.create")) == ("succeeded", 1, 1, 2)
    is_whole(left)


def test_a_frozen_attempt_that_was_replaced_sends_nothing_when_it_wakes(played: Play):
    left = played["token-stale_intent"]
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 1)
    assert left.story[-1] == "exchange.not_sent"
    assert left.entries[-1].role == "note"
    is_whole(left)


def test_late_proof_that_nothing_was_sent_takes_an_unknown_create_up_again(played: Play):
    left = played["plain-stale_intent"]
    assert left.story.index("exchange.ambiguous") < left.story.index("exchange.not_sent")
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 1)
    is_whole(left)


def test_a_late_answer_of_a_replaced_attempt_settles_an_unknown_create(played: Play):
    left = played["plain-stale_answer"]
    assert left.story.index("exchange.ambiguous") < left.story.index("exchange.accepted")
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 1)
    is_whole(left)


def test_a_late_answer_that_says_what_is_known_changes_nothing(played: Play):
    left = played["token-stale_answer"]
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 2)
    assert left.entries[-1].cause == "exchange.accepted"
    is_whole(left)


def test_an_answer_that_comes_to_a_partitioned_worker_is_kept_and_told_when_the_partition_ends(played: Play):
    left = played["plain-partitioned"]
    assert left.story.index("exchange.ambiguous") < left.story.index("exchange.accepted")
    assert (left.state, len(left.jobs), len(left.creates)) == ("succeeded", 1, 1)
    is_whole(left)


def test_a_partitioned_worker_and_the_one_that_took_over_make_one_job_under_one_token(played: Play):
    left = played["token-partitioned"]
    assert left.told("exchange.in_flight") >= 1
    assert (left.state, len(left.jobs)) == ("succeeded", 1)
    is_whole(left)


def test_an_attempt_that_finds_the_intent_of_another_does_not_send_it(played: Play):
    left = played["plain-loaded"]
    assert (left.state, len(left.jobs), len(left.creates), left.told("intent.create")) == ("succeeded", 1, 1, 1)
    is_whole(left)


def test_a_cancel_that_another_attempt_is_sending_is_not_sent_again(played: Play):
    left = played["token-cancel"]
    assert (left.state, left.cancels, left.told("intent.cancel")) == ("cancelled", 1, 1)
    is_whole(left)
