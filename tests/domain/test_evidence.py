"""Evidence is a closed set, comes back from its entry as it was, and nothing that a provider says can make it unrecordable."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.chain import first_prev, make_entry
from domain.evidence import (
    FROM_OUTSIDE,
    MAX_DEPTH,
    MAX_TEXT,
    Decision,
    Evidence,
    Observation,
    Words,
    bounded,
    instant,
    instant_text,
    object_key,
    parse_evidence,
    recordable,
)  # fmt: skip
from domain.fingerprint import canonical
from tests.domain.growing import KEYS, LEDGER, STREAM, T0, said

QUIET = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
TEXT = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=20) | st.sampled_from(["\ud800", "a\0b", "\udfff\ud800"])
HUGE = st.sampled_from([2**12_000, 2.0**53, -(2.0**60), 1e21, -0.0])
NUMBERS = st.integers() | st.integers(-(2**80), 2**80) | st.floats() | HUGE
JSONISH = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT | st.binary(max_size=4) | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(TEXT | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@QUIET
@given(JSONISH)
def test_whatever_is_said_is_recordable_and_comes_back_as_recorded(value: Any) -> None:
    written = canonical(recordable(value))
    assert b"\\u0000" not in written
    assert canonical(recordable(json.loads(written))) == written
    assert recordable(json.loads(written)) == json.loads(written)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (2**53 - 1, 2**53 - 1), (2**53, "9007199254740992"), (-(2**53), "-9007199254740992"),
        (math.inf, "inf"), (-math.inf, "-inf"), (2.0**53, "9007199254740992.0"), (1e21, 1e21), (1.5, 1.5), (True, True), (None, None),
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"), ("\ud800", "?"), ({1: (2, [3])}, {"1": [2, [3]]}),
        ({"a\0": 1}, {"a\N{REPLACEMENT CHARACTER}": 1}),
        (datetime(2026, 1, 2, 3, 4, 5, 678_999, UTC), "2026-01-02T03:04:05.678Z"), (b"\0", "b'\\x00'"), ({1}, "{1}"),
    ],
)  # fmt: skip
def test_what_canonical_json_or_a_database_refuses_becomes_text(value: Any, kept: Any) -> None:
    assert recordable(value) == kept
    assert type(recordable(value)) is type(kept)


def test_what_has_no_text_of_its_own_becomes_one() -> None:
    assert recordable(math.nan) == "nan"
    assert recordable(2**20_000) == "integer out of range"


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: (inner,)])
def test_a_value_nested_without_end_is_cut(wrap: Any) -> None:
    value: Any = 1
    for _ in range(100_000):
        value = wrap(value)
    kept = recordable(value)
    canonical(kept)
    depth = 0
    while not isinstance(kept, str):
        kept, depth = (kept[0] if isinstance(kept, list) else kept["a"]), depth + 1  # type: ignore[index,call-overload]
    assert (kept, depth) == ("nested too deeply", MAX_DEPTH)


def test_text_is_bounded_and_printable_and_says_so() -> None:
    assert bounded("as it is") == "as it is"
    assert bounded("a\nb\0c\u202ed") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}d"
    assert bounded("x" * MAX_TEXT) == "x" * MAX_TEXT
    assert bounded("x" * (MAX_TEXT + 1)) == "x" * (MAX_TEXT - 1) + "\N{HORIZONTAL ELLIPSIS}"


@QUIET
@given(TEXT, st.integers(1, 30))
def test_bounded_text_is_never_longer_and_always_printable(text: str, limit: int) -> None:
    assert len(bounded(text, limit)) <= limit
    assert bounded(text, limit).isprintable()


def test_an_instant_is_utc_with_milliseconds_and_never_rounded_up() -> None:
    there = datetime(2026, 11, 30, 12, 0, 0, 999_999, timezone(timedelta(hours=5, minutes=30)))
    assert instant_text(there) == "2026-11-30T06:30:00.999Z"
    assert instant(there) == datetime(2026, 11, 30, 6, 30, 0, 999_000, UTC)
    assert instant_text(T0) == "2026-11-30T12:00:00.000Z"


@pytest.mark.parametrize("key", KEYS)
def test_every_kind_comes_back_from_its_entry_as_it_was(key: str) -> None:
    evidence = said(key)
    entry = make_entry(
        evidence, ledger_id=LEDGER, stream=STREAM, seq=0, prev=first_prev(LEDGER, STREAM), role="stay", epoch=0, turn=0, from_=None, to=None
    )
    assert entry.evidence == evidence
    assert entry.cause == evidence.key == key
    assert "at" not in entry.body
    assert entry.body["meaning"] == key.partition(".")[2]


def test_the_union_is_closed_and_tells_what_comes_from_outside() -> None:
    kinds = {model.model_fields["kind"].default for model in get_args(Evidence)}
    assert " ".join(sorted(kinds)) == (
        "callback cancel_answer clock decision erased exchange intent late linked lookup missing opened owner policy pruned reading "
        "refusals regressed result step"
    )
    assert kinds >= FROM_OUTSIDE
    assert {*kinds} - FROM_OUTSIDE >= {"policy", "decision", "intent", "clock", "owner", "opened"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("opened", {"meaning": "opened"}),
        ("reading", {"meaning": "finished"}),
        ("rumour", {"meaning": "heard"}),
        ("intent", {"meaning": "pay"}),
    ],
)
def test_what_is_not_of_the_closed_set_is_refused(kind: str, body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse_evidence(at="2026-11-30T12:00:00Z", actor="worker:w-1", kind=kind, body=body)


def test_a_field_that_a_newer_writer_added_is_ignored() -> None:
    body: dict[str, Any] = {"meaning": "cancel", "request_id": "r-1", "verb": "cancel", "by": "asha", "mood": "calm"}
    decision = parse_evidence(at="2026-11-30T12:00:00Z", actor="human:asha", kind="decision", body=body)
    assert isinstance(decision, Decision)
    assert not hasattr(decision, "mood")


def test_a_kept_body_lies_under_its_tenant_its_stream_and_its_digest() -> None:
    assert object_key("acme", STREAM, "a" * 64) == f"acme/{STREAM}/{'a' * 64}"


def test_evidence_cannot_be_changed() -> None:
    evidence = said("policy.no")
    with pytest.raises(ValidationError):
        evidence.actor = "human:mallory"


@QUIET
@given(st.dictionaries(st.text(max_size=5), st.integers() | st.floats() | st.text(max_size=5), max_size=4), TEXT)
def test_no_answer_of_a_provider_makes_itself_unrecordable(progress: dict[str, Any], message: str) -> None:
    reading = Observation(
        at=T0, actor="worker:w-1", meaning="going", began=T0, progress=progress, words=Words(message=bounded(message)),
        remote_state=bounded(message),
    )  # fmt: skip
    entry = make_entry(
        reading, ledger_id=LEDGER, stream=STREAM, seq=0, prev=first_prev(LEDGER, STREAM), role="stay", epoch=0, turn=0, from_=None, to=None
    )
    assert isinstance(entry.evidence, Observation)
    assert entry.evidence.words == reading.words


@pytest.mark.parametrize("count", [-1, 2**53, 2**80])
def test_a_count_that_would_not_come_back_as_a_number_is_refused_before_it_is_recorded(count: int) -> None:
    with pytest.raises(ValidationError):
        said("reading.going", counts={"done": count})
