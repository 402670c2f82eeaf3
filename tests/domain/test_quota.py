"""What an answer says about the calls that are left, whatever stands in it."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.exchange import Answer
from domain.language.connection import Quota
from domain.polling import LONGEST
from domain.quota import spent_until

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HEADERS = Quota.model_validate({"remaining": "headers.x_ratelimit_remaining", "reset": "headers.x_ratelimit_reset"})
BODY = Quota.model_validate({"remaining": "body.quota.left", "reset": ["body.quota.at", "headers.retry_after"]})


def said(remaining: str, reset: str) -> Answer:
    return Answer(200, (("x-ratelimit-remaining", remaining), ("x-ratelimit-reset", reset)))


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        (str(int(NOW.timestamp()) + 90), 90),
        ("Mon, 30 Nov 2026 12:01:00 GMT", 60),
        ("2026-11-30T12:00:10Z", 10),
        ("999999999", LONGEST.total_seconds()),
    ],
)
def test_nothing_left_holds_until_the_reset_however_it_is_written(reset: str, seconds: float) -> None:
    assert spent_until(HEADERS, said("0", reset), NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("remaining", "reset"),
    [
        ("1", "30"),
        ("0.5", "30"),
        ("0", "soon"),
        ("0", "-5"),
        ("0", "0"),
        ("0", "2026-11-30T11:00:00Z"),
        ("", "30"),
        ("none", "30"),
        ("\u0660", "30"),
    ],
)
def test_whatever_says_less_than_that_holds_nothing(remaining: str, reset: str) -> None:
    assert spent_until(HEADERS, said(remaining, reset), NOW) is None


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (b'{"quota":{"left":0,"at":20}}', 20),
        (b'{"quota":{"left":-1,"at":20}}', 20),
        (b'{"quota":{"left":"0","at":"20"}}', 20),
        (b'{"quota":{"left":0}}', 7),
        (b'{"quota":{"left":false,"at":20}}', None),
        (b'{"quota":{"left":[0],"at":20}}', None),
        (b'{"quota":{"left":null,"at":20}}', None),
        (b"<html>", None),
        (b"[" * 10_000, None),
    ],
)
def test_a_body_may_say_it_too(body: bytes, seconds: float | None) -> None:
    found = spent_until(BODY, Answer(429, (("retry-after", "7"),), body), NOW)
    assert found == (None if seconds is None else NOW + timedelta(seconds=seconds))


def test_an_expression_that_passes_its_budget_says_nothing() -> None:
    endless = Quota.model_validate({"remaining": "body[].[@[]][]", "reset": "body"})
    many = b"[" + b",".join([b"[1]"] * 100_000) + b"]"
    assert spent_until(endless, Answer(200, (), many), NOW) is None
