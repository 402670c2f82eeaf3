"""When to try again: what the provider asked for, else capped exponential backoff. Never below the floor, never past the deadline.

* A number below 1,000,000,000 is a count of seconds, from there on Unix time; text is a number, an HTTP date (all three forms)
  or RFC 3339. Negative or unreadable: no hint. A moment that has passed asks for no delay.
* Jitter is drawn from the operation's id and the attempt, so that a restarted worker computes the same schedule, and a crowd of
  operations doesn't come back at once.
* Time is an argument: nothing here looks at a clock.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from domain.language.expressions import Scope, evaluate
from domain.language.functions import UNIX_FROM, TooMuch, instant_of
from domain.language.patterns import pattern
from domain.language.stages import Poll

LONGEST: Final = timedelta(days=30)
"""No provider is believed to mean more; a longer hint is cut to this before the deadline cuts it further."""

_SECONDS: Final = pattern(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_JITTER: Final = 0.2
_ZERO: Final = timedelta()


def parse_retry_after(value: JsonValue, now: datetime) -> timedelta | None:
    """How long a hint asks to wait, at least zero; None if it is negative or unreadable."""
    match value:
        case bool():
            return None
        case int() | float() if value < UNIX_FROM:
            return _span(value) if value >= 0 else None
        case str() if _SECONDS.matches(value.strip()) and float(value.strip()) < UNIX_FROM:
            return _span(float(value.strip()))
        case str():
            moment = instant_of(value.strip())
        case _:
            moment = instant_of(value)
    return None if moment is None else min(max(moment - now, _ZERO), LONGEST)


def hint(expressions: tuple[str, ...], scope: Scope, now: datetime) -> timedelta | None:
    """The first of the expressions that gives a readable delay."""
    for expression in expressions:
        try:
            found = parse_retry_after(evaluate(expression, scope), now)
        except TooMuch:
            continue
        if found is not None:
            return found
    return None


def backoff(poll: Poll, attempt: int, seed: str) -> timedelta:
    """The delay before attempt `attempt` + 1 (the first attempt is 1): `first`, growing by `factor`, up to `cap`, less jitter."""
    first, cap = poll.first.total_seconds(), poll.cap.total_seconds()
    grown = first * poll.factor ** min(max(attempt - 1, 0), 128) if poll.factor > 1 else first
    return timedelta(seconds=min(grown, cap) * (1 - _JITTER * _draw(seed, attempt)))


def next_delay(poll: Poll, *, hint: timedelta | None, attempt: int, seed: str, now: datetime, deadline: datetime) -> timedelta:
    """The delay before the next try: the hint, else backoff; never below the floor, and never past the deadline."""
    wanted = backoff(poll, attempt, seed) if hint is None else hint
    return max(min(max(wanted, poll.floor), deadline - now), _ZERO)


def _span(seconds: float) -> timedelta:
    return min(timedelta(seconds=seconds), LONGEST)


def _draw(seed: str, attempt: int) -> float:
    """A number in [0, 1) that belongs to the seed and the attempt."""
    digest = hashlib.sha256(f"sakshi/jitter/v1\0{seed}\0{attempt}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
