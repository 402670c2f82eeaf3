"""Reading lookups: what fits, what may be ours, and that nothing which was not read is ever taken for absence."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.contract import Contract
from domain.exchange import Answer
from domain.language.expressions import Scope
from domain.lookups import MAX_CANDIDATES, Found, read_get, read_page
from tests.domain.sample_contract import JSON_TYPE, answer, sample

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MARK = "m" * 30
SCOPE = Scope(input={"name": "a"}, mark=MARK, token="t-1", page={"next": None, "index": 0, "number": 1})
GET: dict[str, Any] = {
    "by": "get",
    "request": {"method": "GET", "path": "/jobs/${token}"},
    "answers": [
        {"when": {"status": 200}, "is": "found"},
        {"when": {"status": 404, "body.code": "none"}, "is": "absent", "reason": "body.why"},
        {"when": {"status": 503}, "is": "throttled", "after": "30s"},
    ],
    "same": {"body.token": ["${token}", None]},
    "job": {"id": "body.id"},
}
LIST: dict[str, Any] = {
    "by": "list",
    "request": {"method": "GET", "path": "/jobs", "query": {"cursor": "${page.next}"}},
    "pages": {"items": "body.items"},
    "match": {"item.mark": "${mark}"},
    "strength": "exact",
    "job": {"id": "item.id"},
}
OURS: dict[str, Any] = {"mark": MARK, "id": "j-1"}


def contract(lookup: dict[str, Any], **changes: Any) -> Contract:
    return sample(reconcile=[lookup], **changes)


def get(status: int, value: Any, **fault: Any) -> Found:
    made = contract(GET)
    return read_get(made, made.reconcile[0], answer(status, json.dumps(value).encode(), **fault), SCOPE, NOW)


def page(value: Any, scope: Scope = SCOPE, status: int = 200, pages: dict[str, Any] | None = None, **lookup: Any) -> Found:
    made = contract({**LIST, **lookup, "pages": {"items": "body.items", **(pages or {})}})
    return read_page(made, made.reconcile[0], answer(status, json.dumps(value).encode()), scope, NOW)


# --- by get ------------------------------------------------------------------------------------------------------------------


def test_a_job_under_our_name_is_found() -> None:
    assert get(200, {"id": 7}) == Found("found", word="found", job={"id": "7"})


def test_a_found_job_without_an_id_that_can_be_used_decides_nothing() -> None:
    assert get(200, {"id": "two words"}).meaning == "failed"


def test_absent_is_the_contracts_word_alone() -> None:
    found = get(404, {"code": "none", "why": "never seen"})
    assert (found.meaning, found.reason, found.code) == ("absent", "never seen", "none")
    assert get(404, {"code": "no route"}).meaning == "failed"


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("fault", ["cut", "oversized", "encoding", "slow"])
def test_an_answer_that_was_not_read_whole_neither_finds_nor_misses(status: int, fault: Any) -> None:
    made = contract({**GET, "answers": [{"when": {"status": 200}, "is": "found"}, {"when": {"status": 404}, "is": "absent"}]})
    said = answer(status, b'{"id": "j-1"}', fault=fault)
    assert read_get(made, made.reconcile[0], said, SCOPE, NOW).meaning == "failed"


def test_a_busy_provider_decides_nothing_and_says_when_to_come_back() -> None:
    found = get(503, {"message": "later"})
    assert (found.meaning, found.word, found.message, found.delay_ms) == ("failed", "throttled", "later", 30_000)


def test_another_job_under_our_name_is_a_violation() -> None:
    assert get(200, {"id": "j-1", "token": "t-2"}).meaning == "violation"


def test_an_answer_that_does_not_say_whose_it_is_is_undecided_unless_that_is_allowed() -> None:
    strict = contract({**GET, "same": {"body.token": "${token}"}})
    assert read_get(strict, strict.reconcile[0], answer(200, b'{"id": "j-1"}'), SCOPE, NOW).meaning == "failed"


# --- by list ------------------------------------------------------------------------------------------------------------------


def test_what_fits_is_named_once_and_everything_else_is_counted() -> None:
    found = page({"items": [OURS, {"mark": "other", "id": "j-2"}, OURS, 7, None, "text", []]})
    assert (found.meaning, found.jobs, found.size, found.leads.more) == ("page", ({"id": "j-1"},), 7, False)


def test_a_page_without_a_match_is_a_page_all_the_same() -> None:
    assert page({"items": []}) == Found("page")


def test_a_match_whose_value_of_ours_is_not_known_fits_nothing() -> None:
    assert page({"items": [{"mark": None}, {}, OURS]}, Scope(page={"index": 0})).jobs == ()


@pytest.mark.parametrize("item", [{"mark": MARK}, {"mark": MARK, "id": ""}, {"mark": MARK, "id": True}, {"mark": MARK, "id": "a b"}])
def test_an_item_that_fits_and_cannot_be_named_may_be_ours_and_is_never_no_match(item: Any) -> None:
    assert page({"items": [item]}).meaning == "failed"


def test_an_item_that_cannot_be_judged_may_be_ours() -> None:
    costly = "length(map(&[@, @, @, @, @, @, @, @, @, @, @, @], item.many))"
    many: Any = {"many": [[1] * 5] * 4_000}
    assert page({"items": [many, OURS]}, match={costly: 0, "item.mark": "${mark}"}).meaning == "failed"


@pytest.mark.parametrize("value", [{}, {"items": None}, {"items": {"0": OURS}}, {"items": "none"}, [], None, 7])
def test_a_page_without_a_list_decides_nothing(value: Any) -> None:
    assert page(value).meaning == "failed"


@pytest.mark.parametrize("status", [199, 302, 400, 404, 429, 500, 503])
def test_a_page_that_was_refused_decides_nothing(status: int) -> None:
    assert page({"items": []}, status=status).meaning == "failed"


def test_a_refusal_with_a_2xx_decides_nothing() -> None:
    made = contract(LIST, errors__answers=[{"when": {"status": 200, "body.error": {"not": None}}, "is": "throttled"}])
    said = answer(200, b'{"error": "busy", "items": [], "message": "later"}')
    found = read_page(made, made.reconcile[0], said, SCOPE, NOW)
    assert (found.meaning, found.word, found.message) == ("failed", "throttled", "later")


def test_a_page_that_was_not_read_whole_decides_nothing() -> None:
    made = contract(LIST)
    for said in (answer(200, b'{"items": []', fault="cut"), answer(200, b"<html>"), Answer(200, JSON_TYPE, b'{"items": ["\xff"]}')):
        assert read_page(made, made.reconcile[0], said, SCOPE, NOW).meaning == "failed"


def test_more_matches_than_a_human_can_choose_from_are_cut() -> None:
    found = page({"items": [{"mark": MARK, "id": f"j-{number}"} for number in range(50)]})
    assert (len(found.jobs), found.size) == (MAX_CANDIDATES, 50)


def test_a_lookup_without_pages_or_match_decides_nothing() -> None:
    made = contract(LIST)
    for missing in ({"pages": None}, {"match": None}):
        bare = made.reconcile[0].model_copy(update=missing)
        assert read_page(made, bare, answer(200, b'{"items": []}'), SCOPE, NOW).meaning == "failed"


# --- how pages lead on --------------------------------------------------------------------------------------------------------


def following(value: dict[str, Any], pages: dict[str, Any], index: int = 0) -> tuple[Any, str | None, bool] | None:
    found = page({"items": [], **value}, Scope(mark=MARK, page={"index": index}), pages=pages)
    return None if found.meaning == "failed" else (found.leads.next, found.leads.next_url, found.leads.more)


NEXT, URL, COUNT = {"next": "body.next"}, {"next_url": "body.next"}, {"count": "body.pages"}
MORE: dict[str, Any] = {"more": {"body.more": True}}


@pytest.mark.parametrize(
    ("pages", "value", "leads"),
    [
        ({}, {}, (None, None, False)),
        (NEXT, {"next": "c-2"}, ("c-2", None, True)),
        (NEXT, {"next": 50}, (50, None, True)),
        (NEXT, {}, (None, None, False)),
        (NEXT, {"next": ""}, (None, None, False)),
        (URL, {"next": ""}, (None, None, False)),
        (NEXT | MORE, {"next": "c-2", "more": False}, ("c-2", None, False)),
        (NEXT | MORE, {"next": "c-2", "more": True}, ("c-2", None, True)),
        (URL, {"next": "/jobs?page=2"}, (None, "/jobs?page=2", True)),
        (URL, {}, (None, None, False)),
        (URL, {"next": 7}, None),
        (MORE, {"more": True}, (None, None, True)),
        (MORE, {}, (None, None, False)),
        (COUNT, {"pages": 3}, (None, None, True)),
        (COUNT, {"pages": 1}, (None, None, False)),
        (COUNT, {}, (None, None, False)),
        (COUNT, {"pages": True}, None),
        (COUNT, {"pages": "3"}, None),
        (COUNT | MORE, {"pages": 3, "more": False}, (None, None, False)),
    ],
)
def test_pages_lead_on_as_the_contract_says(pages: dict[str, Any], value: dict[str, Any], leads: Any) -> None:
    assert following(value, pages) == leads


def test_counted_pages_end_with_the_last_one() -> None:
    assert [following({"pages": 3}, COUNT, index) for index in range(3)] == [(None, None, True), (None, None, True), (None, None, False)]


def test_a_page_that_nobody_numbered_is_the_first() -> None:
    assert page({"items": [], "pages": 2}, Scope(mark=MARK), pages=COUNT).leads.more


# --- total ---------------------------------------------------------------------------------------------------------------------

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["items", "next", "mark", "id", "code", "token"]), inner),
    max_leaves=12,
)
BODIES = st.binary(max_size=200) | ANY_JSON.map(lambda value: json.dumps(value).encode("utf-8", "replace"))
HEADERS = st.lists(st.tuples(st.sampled_from(["content-type", "retry-after", "x-request-id"]), st.text(max_size=20)), max_size=3).map(tuple)
FAULTS = st.sampled_from([None, "cut", "oversized", "encoding", "slow", "undecodable"])
GETTING = contract(GET)
LISTING = contract({**LIST, "pages": {"items": "body.items", "next": "body.next"}})
NUMBERS = st.integers(min_value=100, max_value=599)


@settings(deadline=None)
@given(status=NUMBERS | st.sampled_from([200, 404]), headers=HEADERS | st.just(JSON_TYPE), body=BODIES, fault=FAULTS)
def test_any_answer_to_a_get_reads_as_something(status: int, headers: Any, body: bytes, fault: Any) -> None:
    found = read_get(GETTING, GETTING.reconcile[0], Answer(status, headers, body, fault), SCOPE, NOW)
    if found.meaning == "found":
        assert status == 200
        assert isinstance(found.job["id"], str)
    if found.meaning in {"found", "absent"}:
        assert fault is None


@settings(deadline=None)
@given(status=NUMBERS | st.just(200), headers=HEADERS | st.just(JSON_TYPE), body=BODIES, fault=FAULTS)
def test_any_page_reads_as_something(status: int, headers: Any, body: bytes, fault: Any) -> None:
    found = read_page(LISTING, LISTING.reconcile[0], Answer(status, headers, body, fault), SCOPE, NOW)
    assert found.meaning in {"page", "failed"}
    if found.meaning == "page":
        assert 200 <= status < 300
        assert fault is None
        assert len(found.jobs) <= found.size
    assert all(isinstance(job["id"], str) for job in found.jobs)
