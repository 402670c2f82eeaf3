"""Times are read in every form that providers use, and nothing else is a time."""

from datetime import UTC, datetime
from typing import Any

import pytest

from domain.language.functions import http_date, instant_of, rfc3339

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-01-01T00:00:00Z", "2026-01-01t01:00:00+01:00", "2026-01-01 00:00:00z", "2025-12-31T19:00:00-0500", "2025-12-31T23:59:60Z"],
)
def test_rfc3339_is_read(text: str) -> None:
    assert rfc3339(text) == NEW_YEAR


def test_fractions_beyond_microseconds_are_cut() -> None:
    assert rfc3339("2026-01-01T00:00:00.123456789Z") == NEW_YEAR.replace(microsecond=123456)


@pytest.mark.parametrize(
    "text",
    ["2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "x" * 100, "\uff12026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"],
)
def test_other_text_is_no_rfc3339_time(text: str) -> None:
    assert rfc3339(text) is None


@pytest.mark.parametrize("text", ["Thu, 01 Jan 2026 00:00:00 GMT", "Thursday, 01-Jan-26 00:00:00 GMT", "Thu Jan  1 00:00:00 2026"])
def test_the_three_forms_of_http_dates_are_read(text: str) -> None:
    assert http_date(text) == NEW_YEAR


@pytest.mark.parametrize("text", ["", "soon", "Thu, 99 Jan 2026 00:00:00 GMT", "é", "x" * 100])
def test_other_text_is_no_http_date(text: str) -> None:
    assert http_date(text) is None


@pytest.mark.parametrize("value", [1767225600, 1767225600.0, "1767225600", "2026-01-01T00:00:00Z", "Thu, 01 Jan 2026 00:00:00 GMT"])
def test_a_moment_is_read_from_numbers_and_text(value: Any) -> None:
    assert instant_of(value) == NEW_YEAR


@pytest.mark.parametrize("value", [True, None, [], {}, 5, -1, 10**30, float("inf"), "12", "x"])
def test_what_is_no_moment_is_none(value: Any) -> None:
    assert instant_of(value) is None
