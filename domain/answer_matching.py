"""Which entry of a contract an answer matches, and whether the answer is about what was asked. Total: nothing raises.

* Entries are tried in order, then those of `errors`.
* A `when` that does not mention `status` holds for 2xx alone. A body that could not be read matches no entry that mentions it.
* `same` is checked on what an entry matched. A value that differs is a violation; one that a 2xx lacks leaves the answer undecided,
  except where the entry's word claims nothing about the job (throttled, unauthorized, rejected, unsure).
* An evaluation that passes its budget makes the answer unreadable.
* What an entry's keys come to is read once of an answer, however many entries ask for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, get_args

from pydantic import JsonValue

from domain.bodies import Decoded, decode, headers_root
from domain.contract import Contract
from domain.exchange import Answer
from domain.language.calls import Answer as Entry
from domain.language.calls import CommonWord
from domain.language.expressions import Scope
from domain.language.functions import TooMuch
from domain.language.grammar import milliseconds
from domain.language.matching import Difference, Match, Sameness, difference, holds, roots_of, sameness
from domain.polling import hint

DEFAULT: Final = "default"
CLAIMS_NOTHING: Final = frozenset(get_args(CommonWord))
"""Words that say nothing about the job."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The entry that matched (None: the default), and what it was matched against."""

    entry: Entry[str] | None
    same: Sameness
    scope: Scope
    decoded: Decoded
    readable: bool
    delay_ms: int | None
    about: Match | None = None

    @property
    def differs(self) -> Difference | None:
        """Where it is about something else than was asked."""
        return difference(self.about, self.scope) if self.about and self.same == "differs" else None

    @property
    def word(self) -> str:
        """The entry's word, or `default`."""
        return self.entry.word if self.entry else DEFAULT

    @property
    def decided(self) -> str | None:
        """The word, unless nothing may be concluded from it."""
        missing = self.same == "missing" and self.word not in CLAIMS_NOTHING
        return None if self.entry is None or missing else self.entry.word


def answer_scope(answer: Answer, scope: Scope, decoded: Decoded | None = None) -> Scope:
    """The scope with the roots of one answer."""
    found = decode(answer) if decoded is None else decoded
    return replace(scope, status=answer.status, headers=headers_root(answer), body=found.body, text=found.text)


def observed_value(call: Literal["create", "observe"], answer: Answer) -> dict[str, JsonValue]:
    """The root `observed`: the answer that ended the waiting."""
    return {"call": call, "status": answer.status, "headers": headers_root(answer), "body": decode(answer).body}


def judge(
    contract: Contract,
    answer: Answer,
    scope: Scope,
    now: datetime,
    entries: Sequence[Entry[str]],
    same: Match | None,
    hints: tuple[str, ...] = (),
) -> Judged:
    """The entry that an answer matches, and whether it is about what was asked. Never raises."""
    decoded = decode(answer)
    here = answer_scope(answer, scope, decoded)
    readable = decoded.fault is None
    entry: Entry[str] | None = None
    alike: Sameness = "same"
    read: dict[str, JsonValue] = {}
    try:
        entry = next((one for one in (*entries, *contract.errors.answers) if _matches(one, here, readable, read)), None)
        alike = sameness(same, here) if entry and same else "same"
    except TooMuch:
        entry, readable = None, False
    if alike == "missing" and not is_2xx(answer.status):
        alike = "same"  # a refusal, or a 404, shows no job: what it lacks says nothing of whose it is
    delay = hint((*contract.http.delay_hints, *hints), here, now)
    spans = [span for span in (delay, entry.after if entry else None) if span is not None]
    return Judged(entry, alike, here, decoded, readable, milliseconds(max(spans)) if spans else None, same)


def _matches(entry: Entry[str], scope: Scope, readable: bool, read: dict[str, JsonValue]) -> bool:
    welcome = is_2xx(scope.status or 0)
    if entry.when is None:
        return welcome
    if not (welcome and readable):
        roots = roots_of(entry.when)
        if ("status" not in roots and not welcome) or (not readable and roots & {"body", "text"}):
            return False
    return holds(entry.when, scope, read)


def is_2xx(status: int) -> bool:
    """Whether the provider says that it did what was asked."""
    return 200 <= status <= 299
