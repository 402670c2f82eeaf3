"""Delays come from the provider or from backoff, and stay between the floor and the deadline."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.language.expressions import Scope
from domain.language.stages import Poll
from domain.polling import LONGEST, backoff, hint, next_delay, parse_retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLL = Poll.model_validate({"first": "2s", "factor": 2, "cap": "60s", "floor": "1s"})


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3), (" 3 ", 3), ("1.5", 1.5), ("0", 0), (3, 3), (1.5, 1.5), (0, 0), (0.0, 0),
        (1767225610, 10), ("1767225610", 10), (1767225600.5, 0.5), (1767225000, 0),
        ("Thu, 01 Jan 2026 00:00:10 GMT", 10), ("Thursday, 01-Jan-26 00:00:10 GMT", 10), ("Thu Jan  1 00:00:10 2026", 10),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0), ("2026-01-01T00:00:10Z", 10), ("2026-01-01T01:00:10+01:00", 10),
        ("999999999", LONGEST.total_seconds()), (99_999_999_999, LONGEST.total_seconds()), ("Fri, 01 Jan 2100 00:00:00 GMT",
        LONGEST.total_seconds()),
    ],
)  # fmt: skip
def test_every_form_of_a_hint_is_read(value: Any, seconds: float) -> None:
    assert parse_retry_after(value, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", ["-3", -3, -0.5, "soon", "", "1e3", "3s", "٣", True, None, [], {}, float("inf"), float("nan"), 10**400])
def test_a_hint_that_is_negative_or_unreadable_is_none(value: Any) -> None:
    assert parse_retry_after(value, NOW) is None


def test_the_first_readable_hint_counts() -> None:
    scope = Scope(headers={"retry_after": "soon", "x": "5"}, body={"ms": 1500})
    assert hint(("headers.retry_after", "headers.x", "ms(body.ms)"), scope, NOW) == timedelta(seconds=5)
    assert hint(("headers.none",), scope, NOW) is None
    assert hint(("[@, @]" + " | [@, @]" * 40, "ms(body.ms)"), scope, NOW) == timedelta(seconds=1.5)


def test_backoff_grows_to_the_cap_and_is_the_same_for_the_same_attempt() -> None:
    delays = [backoff(POLL, attempt, "op-1").total_seconds() for attempt in range(1, 12)]
    assert 1.6 < delays[0] <= 2
    assert 3.2 < delays[1] <= 4
    assert all(48 < delay <= 60 for delay in delays[5:])
    assert delays == [backoff(POLL, attempt, "op-1").total_seconds() for attempt in range(1, 12)]
    assert delays != [backoff(POLL, attempt, "op-2").total_seconds() for attempt in range(1, 12)]


def test_a_factor_of_one_does_not_grow() -> None:
    flat = Poll.model_validate({"first": "3s", "factor": 1})
    assert all(2.4 < backoff(flat, attempt, "x").total_seconds() <= 3 for attempt in (0, 1, 10, 10**6))


def test_the_hint_goes_before_backoff_and_within_floor_and_deadline() -> None:
    def delay(seconds: float | None, left: float = 100) -> float:
        found = None if seconds is None else timedelta(seconds=seconds)
        return next_delay(POLL, hint=found, attempt=1, seed="x", now=NOW, deadline=NOW + timedelta(seconds=left)).total_seconds()

    assert delay(7) == 7
    assert delay(0) == 1
    assert delay(500) == 100
    assert delay(None, 0.5) == 0.5
    assert delay(None, -5) == 0
    assert 1.6 < delay(None) <= 2


@given(
    st.none() | st.timedeltas(timedelta(0), timedelta(days=40)),
    st.integers(0, 10**9),
    st.text(max_size=10),
    st.timedeltas(timedelta(days=-1), timedelta(days=40)),
    st.floats(1, 100, allow_nan=False),
    st.integers(1, 10**6),
)
def test_a_delay_is_never_below_the_floor_nor_past_the_deadline(
    asked: timedelta | None, attempt: int, seed: str, left: timedelta, factor: float, first: int
) -> None:
    poll = Poll.model_validate({"first": f"{first}ms", "factor": factor, "cap": "1d", "floor": "1s"})
    delay = next_delay(poll, hint=asked, attempt=attempt, seed=seed, now=NOW, deadline=NOW + left)
    assert timedelta(0) <= delay <= max(left, timedelta(0))
    assert delay >= min(poll.floor, max(left, timedelta(0)))


@given(st.text() | st.floats() | st.integers())
def test_no_hint_raises_or_is_negative(value: Any) -> None:
    found = parse_retry_after(value, NOW)
    assert found is None or timedelta(0) <= found <= LONGEST
