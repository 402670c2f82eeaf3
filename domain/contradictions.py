"""What is recorded where an answer is about something else than was asked: which field, what was due there and what was found.

* A value stands as text, bounded and printable, and apart from the sentence: so it is whole for whoever hides sensitive values.
* What is due there may come from values that no entry holds: the input, what a step saved, a token. Of those, and of what was
  found in their place, only a digest under the stream's salt is recorded: equal digests are equal values.
* Where nothing can be compared (a provider says by a word of its own that it is something else) the sentence stands alone.
"""

import hmac
from collections.abc import Mapping
from typing import Final, cast

from domain.evidence import Json, bounded, recordable
from domain.fingerprint import canonical
from domain.jsontext import number_text
from domain.language.matching import Difference

DIFFERS: Final = "the answer is about something else than was asked"
MISMATCH: Final = "the provider says that it knows this request as another one"
"""What is said where no field tells what it is."""

MAX_VALUE: Final = 200
MAX_EXPECTED: Final = 8
_LABEL: Final = b"sakshi/contradiction/v1\0"
_RECORDED: Final = frozenset({"job", "operation", "target", "files", "mark", "phase", "call", "deadlines", "trace_id", "page", "observed"})
"""Roots of templates whose values stand in entries anyway, are ours to tell, or are the provider's own words."""
_NAMES_A_JOB: Final = frozenset({"job", "token", "mark"})


def contradiction(who: str, difference: Difference | None, otherwise: str, *, salt: bytes, word: str = "") -> dict[str, Json]:
    """What `who` (the status, the answer to the cancel, ...) contradicted. `otherwise`: what it is, where no field tells."""
    said: dict[str, Json] = {"word": word} if word else {}
    if difference is None:
        return {"why": otherwise, **said}
    what = "names another job than the one asked for" if difference.roots & _NAMES_A_JOB else "shows something else than was asked for"
    shown = difference.roots <= _RECORDED
    expected = [_said(one, salt, shown=shown) for one in difference.expected[:MAX_EXPECTED]]
    found = _said(difference.found, salt, shown=shown)
    return {"why": f"{who} {what}", **said, "field": bounded(difference.field, MAX_VALUE), "expected": [*expected], "found": found}


def contradiction_text(violation: Mapping[str, Json]) -> str | None:
    """A recorded contradiction on one line; None if nothing is said of it."""
    why = violation.get("why")
    if why is None or "field" not in violation:
        return None if why is None else str(why)
    expected = " or ".join(map(str, cast("list[Json]", violation.get("expected") or [])))
    return f"{why}: {violation['field']} is {violation.get('found')}, where {expected} is due"


def _said(value: Json, salt: bytes, *, shown: bool) -> str:
    if value is not None and not shown:
        return f"salted digest {hmac.digest(salt, _LABEL + canonical(recordable(value)), 'sha256').hex()[:32]}"
    match recordable(value):
        case None:
            return "no value"
        case str() as text:
            return bounded(text, MAX_VALUE)
        case bool() as flag:
            return "true" if flag else "false"
        case int() | float() as number:
            return number_text(number)
        case list() as items:
            return f"a list of {len(items)}"
        case named:
            return f"an object of {len(named)}"
