"""Hints of when to come back: can they be read, and do they keep to the deadline of what they are about?"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import JsonValue

from adapters.probing.findings import Findings, Seen
from domain.evidence import bounded
from domain.language.expressions import Scope, evaluate
from domain.language.functions import TooMuch, instant_of
from domain.polling import parse_retry_after

_PAST: Final = timedelta(minutes=1)


def look_at_hints(findings: Findings, seen: Seen, hints: Iterable[str], answered: Scope, deadline: str, bound: timedelta) -> None:
    """Say of each hint that an answer gives whether it can be kept to."""
    now = datetime.now(UTC)
    for expression in hints:
        try:
            value = evaluate(expression, answered)
        except TooMuch:
            continue
        if value is not None:
            wrong = _wrong_hint(value, now, bound)
            says = f"{expression} says when to come back; {deadline} is {_shown(bound)}"
            did = f"{bounded(str(value), 60)}: {wrong or 'readable'}"
            findings.say("hints", "ok" if wrong is None else "differs", says=says, did=did, seen=[seen])


def _wrong_hint(value: JsonValue, now: datetime, bound: timedelta) -> str | None:
    """What is wrong with a hint; None if nothing is."""
    asked = parse_retry_after(value, now)
    if asked is None:
        return "negative, or not readable"
    if asked > bound:
        return f"asks to wait for {_shown(asked)}, longer than the deadline"
    moment = instant_of(value.strip() if isinstance(value, str) else value) if asked == timedelta() else None
    return f"a moment that has passed by {_shown(now - moment)}" if moment is not None and now - moment > _PAST else None


def _shown(span: timedelta) -> str:
    return str(span).split(".", maxsplit=1)[0]
