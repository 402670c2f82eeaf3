"""Every answer has one meaning, and none is taken for more than it says."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.answer_matching import observed_value
from domain.contract import Contract
from domain.evidence import MAX_TEXT
from domain.exchange import Answer
from domain.language.calls import Source
from domain.language.expressions import Scope
from domain.reading import Reading, job_id, read_cancel, read_collect, read_create, read_observe
from domain.recordable_headers import allowed_headers
from tests.domain.sample_contract import answer, sample

NOW = datetime(2026, 11, 30, tzinfo=UTC)
SCOPE = Scope(input={"name": "x"}, job={"id": "7"}, phase="seen", call_id="c1")
TOO_MUCH = "status" + " | [@, @]" * 40

CREATE = sample(
    create__answers=[
        {"when": {"status": 202}, "is": "accepted"},
        {"when": {"status": 200}, "is": "completed"},
        {"when": {"status": 204}, "is": "accepted_unnamed"},
        {"when": {"status": 208}, "is": "exists"},
        {"when": {"status": 409, "body.code": "busy"}, "is": "in_flight", "after": "5s"},
        {"when": {"status": 409}, "is": "mismatch"},
        {"when": {"status": 422}, "is": "failed", "reason": "body.why", "note": "ran"},
        {"when": {"status": 503, "body.code": "later"}, "is": "throttled"},
        {"when": {"body.code": "odd"}, "is": "rejected"},
        {"when": {"status": 418}, "is": "unsure"},
    ],
    create__token__replayed={"headers.idempotent_replayed": "true"},
    errors={
        "code": "body.code",
        "message": "body.message",
        "request_id": "headers.x_request_id",
        "answers": [
            {"when": {"status": 401}, "is": "unauthorized"},
            {"when": {"status": "4xx"}, "is": "rejected"},
            {"when": {"status": 429}, "is": "throttled"},
        ],
    },
)


def create(status: int, body: bytes = b"", contract: Contract = CREATE, **more: Any) -> Reading:
    return read_create(contract, answer(status, body, **more), SCOPE, NOW)


@pytest.mark.parametrize(
    ("status", "body", "meaning", "word"),
    [
        (202, b'{"id": "7"}', "accepted", "accepted"),
        (202, b'{"id": 7}', "accepted", "accepted"),
        (202, b"{}", "ambiguous", "accepted"),
        (202, b'{"id": ""}', "ambiguous", "accepted"),
        (202, b'{"id": true}', "ambiguous", "accepted"),
        (202, b'{"id": "a\\u0000"}', "ambiguous", "accepted"),
        (202, b'{"id"', "ambiguous", "accepted"),
        (200, b'{"x": 1}', "finished", "completed"),
        (200, b"<html>", "ambiguous", "completed"),
        (204, b"", "unnamed", "accepted_unnamed"),
        (208, b'{"id": "7"}', "accepted", "exists"),
        (208, b"{}", "ambiguous", "exists"),
        (409, b'{"code": "busy"}', "in_flight", "in_flight"),
        (409, b'{"code": "other"}', "violation", "mismatch"),
        (422, b'{"why": "no"}', "finished", "failed"),
        (503, b'{"code": "later"}', "not_executed", "throttled"),
        (503, b"<html>", "ambiguous", "default"),
        (500, b"{}", "ambiguous", "default"),
        (418, b"", "ambiguous", "unsure"),
        (206, b'{"code": "odd"}', "refused", "rejected"),
        (502, b'{"code": "odd"}', "ambiguous", "default"),
        (401, b"{}", "not_executed", "unauthorized"),
        (404, b"<html>", "refused", "rejected"),
        (302, b"", "ambiguous", "default"),
        (100, b"", "ambiguous", "default"),
    ],
)
def test_an_answer_to_the_create_has_one_meaning(status: int, body: bytes, meaning: str, word: str) -> None:
    reading = create(status, body)
    assert (reading.meaning, reading.word) == (meaning, word)


def test_what_finished_has_a_verdict_and_the_rest_has_none() -> None:
    assert create(200, b"{}").verdict == "succeeded"
    assert create(422, b"{}").verdict == "failed"
    assert create(202, b'{"id": "7"}').verdict is None
    assert create(200, b"{").verdict is None


def test_a_stored_server_error_is_stuck_and_anything_else_stored_is_what_it_says() -> None:
    stored = (("content-type", "application/json"), ("idempotent-replayed", "true"))
    assert create(500, b"{}", headers=stored).meaning == "stuck"
    assert create(503, b'{"code": "later"}', headers=stored).meaning == "stuck"
    assert create(202, b'{"id": "7"}', headers=stored).meaning == "accepted"


def test_no_answer_with_a_cut_body_finishes_anything() -> None:
    assert create(200, b'{"x": 1}', fault="cut").meaning == "ambiguous"
    assert create(422, b'{"x": 1}', fault="oversized").meaning == "ambiguous"
    assert create(429, b"", fault="cut").meaning == "refused"
    assert not create(202, fault="cut").readable


def test_the_job_has_what_the_contract_names_and_the_answer_gives() -> None:
    contract = sample(
        create__job={"id": ["body.id", "last_segment(headers.location)"], "url": "body.url", "big": "body.big", "odd": TOO_MUCH}
    )
    headers = (("content-type", "application/json"), ("location", "/jobs/a%20b"))
    body = b'{"id": 123456789012345678901234567890, "url": {"href": "/x"}, "big": "' + b"x" * 9000 + b'"}'
    assert create(202, body, contract).job == {"id": "123456789012345678901234567890", "url": {"href": "/x"}}
    assert create(202, b"{}", contract, headers=headers).job == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("abc", "abc"), (0, "0"), (-5, "-5"), ("x" * 512, "x" * 512), ("x" * 513, None), ("", None), (" ", None), ("a b", None), ("a\n",
        None),
        ("a\u202eb", None), ("a\ufffd", None), ("\ud800", None), (True, None), (1.5, None), (None, None), ([], None), ({}, None), ("jöb",
        "jöb"),
    ],
)  # fmt: skip
def test_a_job_id_is_visible_text(value: Any, expected: str | None) -> None:
    assert job_id(value) == expected


def test_what_is_not_ours_is_a_violation_and_what_cannot_be_told_is_undecided() -> None:
    contract = sample(create__same={"body.call": "${call.id}"}, errors={"answers": [{"when": {"status": 401}, "is": "unauthorized"}]})
    ours, other, silent = b'{"id": "7", "call": "c1"}', b'{"id": "7", "call": "c2"}', b'{"id": "7"}'
    assert create(202, ours, contract).meaning == "accepted"
    assert create(202, other, contract).meaning == "violation"
    assert create(202, other, contract).same_differs
    assert create(202, silent, contract).meaning == "ambiguous"
    assert create(401, silent, contract).meaning == "not_executed"
    assert create(500, other, contract).meaning == "ambiguous"


def test_an_evaluation_that_is_too_much_is_unreadable() -> None:
    contract = sample(create__answers=[{"when": {f"{TOO_MUCH} | to_string(@)": "x"}, "is": "completed"}])
    reading = create(200, b"{}", contract)
    assert (reading.meaning, reading.readable) == ("ambiguous", False)
    replayed = sample(create__token__replayed={TOO_MUCH: 1})
    assert create(500, b"{}", replayed).meaning == "ambiguous"


def test_the_providers_words_are_bounded_and_printable() -> None:
    body = b'{"code": 42, "message": "a\\n\\tb \\u202e ' + b"x" * 5000 + b'", "why": ["p", true]}'
    reading = create(422, body, headers=(("content-type", "application/json"), ("x-request-id", "r1")))
    assert reading.code == "42"
    assert reading.message is not None
    assert reading.message.startswith("a b \ufffd xxx")
    assert len(reading.message) == MAX_TEXT
    assert reading.reason == '["p", true]'
    assert reading.request_id == "r1"
    assert reading.note == "ran"


def test_a_refusals_words_are_not_looked_for_in_a_success() -> None:
    assert create(202, b'{"id": "7", "code": "fine", "message": "welcome"}').message is None


def test_the_hint_is_the_providers_but_never_sooner_than_the_entry_says() -> None:
    headers = (("content-type", "application/json"), ("retry-after", "2"))
    assert create(202, b'{"id": "7"}', headers=headers).delay_ms == 2_000
    assert create(409, b'{"code": "busy"}', headers=headers).delay_ms == 5_000
    assert create(409, b'{"code": "busy"}', headers=(*headers[:1], ("retry-after", "9"))).delay_ms == 9_000
    assert create(500).delay_ms is None


OBSERVE = sample(
    observe__states=[
        {"when": {"body.state": "queued"}, "is": "waiting"},
        {"when": {"body.state": "running"}, "is": "running"},
        {"when": {"body.state": "asking"}, "is": "needs_input"},
        {"when": {"body.state": "stopping"}, "is": "cancelling"},
        {"when": {"body.state": "done"}, "is": "succeeded"},
        {"when": {"body.state": "half"}, "is": "partial"},
        {"when": {"body.state": "failed"}, "is": "failed"},
        {"when": {"body.state": "stopped"}, "is": "cancelled"},
        {"when": {"status": 404, "phase": "fresh"}, "is": "waiting"},
        {"when": {"status": 404}, "is": "gone"},
        {"when": {"status": 400}, "is": "rejected"},
        {"when": {"status": 299}, "is": "succeeded"},
    ],
    observe__same={"body.id": ["${job.id}", None]},
    observe__progress={"completed": "body.completed", "total": "body.total"},
    observe__reason="body.why",
    observe__at="body.at",
    observe__poll={"hints": ["ms(body.poll_ms)"]},
    collect__partial="attention",
    errors={"answers": [{"when": {"status": 429}, "is": "throttled"}]},
)


def observe(status: int, body: bytes = b"", contract: Contract = OBSERVE, phase: str = "seen", **more: Any) -> Reading:
    return read_observe(contract, answer(status, body, **more), replace(SCOPE, phase=phase), NOW)


@pytest.mark.parametrize(
    ("status", "body", "phase", "meaning", "verdict", "shown"),
    [
        (200, b'{"state": "queued"}', "seen", "going", None, "queued"),
        (200, b'{"state": "running"}', "seen", "going", None, "running"),
        (200, b'{"state": "asking"}', "seen", "going", None, "asking"),
        (200, b'{"state": "stopping"}', "seen", "going", None, "stopping"),
        (200, b'{"state": "done"}', "seen", "terminal", "succeeded", "done"),
        (200, b'{"state": "half"}', "seen", "terminal", "partial", "half"),
        (200, b'{"state": "failed"}', "seen", "terminal", "failed", "failed"),
        (200, b'{"state": "stopped"}', "seen", "terminal", "cancelled", "stopped"),
        (200, b'{"state": "DONE"}', "seen", "held", None, "DONE"),
        (200, b'{"state": ""}', "seen", "held", None, "default"),
        (200, b'{"state": 7}', "seen", "held", None, "7"),
        (200, b"{}", "seen", "held", None, "default"),
        (200, b"null", "seen", "failed", None, "default"),
        (200, b"<html>", "seen", "failed", None, "default"),
        (500, b'{"state": "failed"}', "seen", "failed", None, "failed"),
        (502, b'{"state": "done"}', "seen", "failed", None, "done"),
        (404, b"", "fresh", "not_visible", None, "waiting"),
        (404, b"", "seen", "gone", None, "gone"),
        (400, b"", "seen", "refused", None, "rejected"),
        (429, b"", "seen", "failed", None, "throttled"),
        (200, b'{"state": "done", "id": "7"}', "seen", "terminal", "succeeded", "done"),
        (200, b'{"state": "done", "id": "8"}', "seen", "violation", None, "done"),
        (299, b"", "seen", "terminal", "succeeded", "succeeded"),
    ],
)
def test_a_status_answer_has_one_meaning(status: int, body: bytes, phase: str, meaning: str, verdict: str | None, shown: str) -> None:
    reading = observe(status, body, phase=phase)
    assert (reading.meaning, reading.verdict, reading.remote_state) == (meaning, verdict, shown)


def test_a_body_that_was_not_read_whole_ends_nothing() -> None:
    assert observe(299, b"{}", fault="cut").meaning == "failed"
    assert observe(200, b'{"state": "done"}', fault="cut").meaning == "failed"


def test_a_status_answer_tells_progress_time_reason_and_the_next_delay() -> None:
    body = b'{"state": "running", "completed": 3, "total": 10, "at": "2026-11-30T00:00:00Z", "why": "busy", "poll_ms": 1500}'
    reading = observe(200, body)
    assert reading.progress == {"completed": 3, "total": 10}
    assert (reading.at, reading.reason, reading.delay_ms) == ("2026-11-30T00:00:00Z", "busy", 1_500)


@pytest.mark.parametrize("value", [b'"3"', b"-1", b"true", b"1e400", b"9007199254740993", b"null", b"[]"])
def test_progress_that_is_no_number_is_no_progress(value: bytes) -> None:
    assert observe(200, b'{"state": "running", "completed": ' + value + b"}").progress is None


def test_a_missing_proof_of_identity_leaves_a_status_undecided() -> None:
    contract = sample(observe__same={"body.id": "${job.id}"})
    assert observe(200, b'{"state": "done"}', contract).meaning == "failed"
    assert observe(200, b'{"state": "done", "id": "7"}', contract).verdict == "succeeded"


def test_an_answer_that_is_no_2xx_shows_no_job_and_is_read_without_its_identity_unless_it_names_another() -> None:
    contract = sample(observe__same={"body.id": "${job.id}"}, observe__states=[{"when": {"status": 404}, "is": "gone"}])
    assert observe(404, b"{}", contract).meaning == "gone"
    assert observe(404, b'{"id": "8"}', contract).meaning == "violation"


def test_a_contract_whose_states_read_no_body_holds_any_readable_answer() -> None:
    contract = sample(observe__states=[{"when": {"status": 201}, "is": "failed"}])
    assert observe(200, b"hello", contract, headers=(("content-type", "text/plain"),)).meaning == "held"


def test_a_state_that_is_too_much_to_show_is_shown_by_its_word() -> None:
    contract = sample(observe__states=[{"when": {"status": 500}, "is": "failed"}, {"when": {f"body.x || {TOO_MUCH}": 1}, "is": "running"}])
    reading = observe(200, b"{}", contract)
    assert (reading.meaning, reading.readable, reading.remote_state) == ("failed", False, "default")
    progress = sample(observe__progress={"percent": TOO_MUCH})
    assert observe(200, b'{"state": "running"}', progress).progress is None


@pytest.mark.parametrize(
    ("compare", "state", "name", "meaning"),
    [
        ({"body.name": "${input.name}"}, "done", "x", "terminal"),
        ({"body.name": "${input.name}"}, "running", "x", "going"),
        ({"body.name": "${input.name}"}, "done", "y", "violation"),
        ({"body.name": "${input.name}"}, "new", "y", "violation"),
        ({"body.other": "${input.name}"}, "done", "x", "failed"),
        ({f"body.other || {TOO_MUCH}": "x"}, "done", "x", "failed"),
        (None, "done", "y", "terminal"),
    ],
)
def test_a_job_that_was_there_already_must_be_what_was_asked_for(compare: Any, state: str, name: str, meaning: str) -> None:
    contract = sample() if compare is None else sample(create__compare=compare)
    given_answer = answer(200, json.dumps({"state": state, "name": name}).encode())
    assert read_observe(contract, given_answer, SCOPE, NOW, compare=True).meaning == meaning


def test_a_contract_that_observes_nothing_reads_nothing() -> None:
    contract = sample(observe="none", cancel="none", create__answers=[{"is": "completed"}])
    assert read_observe(contract, answer(200, b"{}"), SCOPE, NOW).meaning == "failed"
    assert read_cancel(contract, answer(200, b"{}"), SCOPE, NOW).meaning == "refused"


def test_an_entry_without_when_matches_every_2xx_and_nothing_else() -> None:
    contract = sample(create__answers=[{"is": "completed"}])
    assert create(299, b"{}", contract).meaning == "finished"
    assert create(300, b"{}", contract).meaning == "ambiguous"


CANCEL = sample(
    cancel__answers=[
        {"when": {"status": 202}, "is": "acknowledged"},
        {"when": {"status": 409}, "is": "already_terminal"},
        {"when": {"status": 425}, "is": "not_yet"},
        {"when": {"status": 405}, "is": "refused"},
        {"when": {"status": 400}, "is": "rejected"},
        {"when": {"status": 429}, "is": "throttled"},
        {"when": {"status": 401}, "is": "unauthorized"},
        {"when": {"status": 500}, "is": "unsure"},
    ],
    cancel__same={"body.id": ["${job.id}", None]},
)


@pytest.mark.parametrize(
    ("status", "body", "meaning"),
    [
        (202, b'{"state": "cancelled"}', "taken"),
        (202, b'{"id": "8"}', "violation"),
        (409, b"", "read_again"),
        (425, b"", "again"),
        (405, b"", "refused"),
        (400, b"", "refused"),
        (429, b"", "again"),
        (401, b"", "again"),
        (500, b"", "unsure"),
        (200, b"", "unsure"),
        (503, b"", "unsure"),
    ],
)
def test_an_answer_to_the_cancel_has_one_meaning(status: int, body: bytes, meaning: str) -> None:
    assert read_cancel(CANCEL, answer(status, body), SCOPE, NOW).meaning == meaning


SOURCE = Source.model_validate(
    {
        "request": {"method": "GET", "path": "/x"},
        "answers": [
            {"when": {"status": 202}, "is": "not_ready"},
            {"when": {"status": 410}, "is": "gone"},
            {"when": {"status": 403}, "is": "rejected"},
            {"when": {"status": 206}, "is": "done"},
            {"when": {"status": 200, "body.state": "pending"}, "is": "not_ready"},
        ],
    }
)


@pytest.mark.parametrize(
    ("status", "body", "meaning", "fault"),
    [
        (200, b"", "done", None),
        (200, b'{"state": "pending"}', "again", None),
        (206, b"", "done", None),
        (202, b"", "again", None),
        (410, b"", "gone", None),
        (403, b"", "refused", None),
        (204, b"", "again", None),
        (500, b"", "again", None),
        (429, b"", "again", None),
        (200, b"x", "again", "cut"),
        (206, b"x", "again", "slow"),
    ],
)
def test_an_answer_of_collecting_has_one_meaning(status: int, body: bytes, meaning: str, fault: str | None) -> None:
    assert read_collect(sample(), SOURCE, answer(status, body, fault=fault), SCOPE, NOW).meaning == meaning


def test_what_ended_the_waiting_is_kept_as_observed() -> None:
    assert observed_value("observe", answer(200, b'{"a": 1}')) == {
        "call": "observe", "status": 200, "headers": {"content_type": "application/json"}, "body": {"a": 1},
    }  # fmt: skip


def test_only_headers_of_the_list_are_recorded_bounded_and_without_queries() -> None:
    headers = [
        ("Date", "d"), ("set-cookie", "secret"), ("authorization", "secret"), ("location", "https://x.example/a?sig=secret#f"),
        ("x-ratelimit-remaining", "5"), ("x-amzn-request-id", "r"), ("content-type", "a\x00" + "b" * 500), ("via", "a"), ("via", "b"),
        ("www-authenticate", "secret"), ("x-custom", "secret"),
    ]  # fmt: skip
    kept = allowed_headers(headers)
    assert "secret" not in str(kept)
    assert kept["location"] == "https://x.example/a"
    assert kept["via"] == "a, b"
    assert kept["content-type"].startswith("a\ufffdb")
    assert len(kept["content-type"]) == 256
    assert set(kept) == {"date", "location", "x-ratelimit-remaining", "x-amzn-request-id", "content-type", "via"}


def test_the_number_of_recorded_headers_is_bounded() -> None:
    assert len(allowed_headers([(f"ratelimit-{number}", "1") for number in range(100)])) == 32


answers = st.builds(
    Answer,
    st.integers(100, 599),
    st.lists(st.tuples(st.sampled_from(["content-type", "retry-after", "location", "x"]), st.text(max_size=20)), max_size=3).map(tuple)
    | st.just((("content-type", "application/json"),)),
    st.binary(max_size=200)
    | st.sampled_from([b'{"state": "done"}', b'{"state": ["done"]}', b'{"state": "done"', b'{"id": "\\ud800"}', b"\x00"]),
    st.sampled_from([None, None, "cut", "oversized", "encoding", "slow", "undecodable"]),
)


@given(answers)
def test_any_answer_is_read_and_none_is_guessed_to_be_a_success(given_answer: Answer) -> None:
    read_cancel(CANCEL, given_answer, SCOPE, NOW)
    collected = read_collect(sample(), SOURCE, given_answer, SCOPE, NOW)
    created = read_create(CREATE, given_answer, SCOPE, NOW)
    observed = read_observe(sample(), given_answer, SCOPE, NOW)
    assert observed.verdict != "succeeded" or (
        200 <= given_answer.status <= 299 and b'"done"' in given_answer.body and not given_answer.fault
    )
    assert created.verdict != "succeeded" or (given_answer.status == 200 and not given_answer.fault)
    assert created.meaning != "accepted" or created.job["id"]
    assert collected.meaning != "done" or (given_answer.status in (200, 206) and not given_answer.fault)
