"""What an answer says about how many more calls its provider takes, and from when on again.

* Total: whatever stands in an answer gives an instant or none. Only a remainder of nothing, together with a readable reset, does.
* A reset is written like a delay: seconds, Unix time, an HTTP date or RFC 3339. No provider is believed to mean more than
  `polling.LONGEST`; whoever waits waits no longer than the deadline at hand, and asks again.
"""

from datetime import datetime, timedelta

from pydantic import JsonValue

from domain.answer_matching import answer_scope
from domain.exchange import Answer
from domain.language.connection import Quota
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.patterns import pattern
from domain.polling import hint

_NUMBER = pattern(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")


def spent_until(quota: Quota, answer: Answer, now: datetime) -> datetime | None:
    """From when on calls are taken again; None if some are left, or the answer does not say."""
    scope = answer_scope(answer, Scope())
    try:
        left = first_value(quota.remaining, scope)
    except TooMuch:
        return None
    wait = hint(quota.reset, scope, now) if _nothing(left) else None
    return None if wait is None or wait <= timedelta() else now + wait


def _nothing(left: JsonValue) -> bool:
    match left:
        case bool():
            return False
        case int() | float():
            return left <= 0
        case str() if _NUMBER.matches(left.strip()):
            return float(left.strip()) <= 0
        case _:
            return False
