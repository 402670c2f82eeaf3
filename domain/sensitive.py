"""Sensitive values of answers: found by the contract's expressions, to be hidden in whatever is recorded (`domain/veil.py`).

* What stands in their place is `sha256:` and a salted commitment: the values are guessable, so that their plain digest would give them
  away. An address that has a query stands without it instead, and the values in its query are hidden by themselves.
* The salt is one operation's, drawn with its first sensitive value and kept with the values that later calls need, in `payloads`. Where
  these bytes are erased, nobody can test a guess any more.
* Where the values of an answer could not be found (the expression passed its budget), all texts of that answer are hidden.
* Total: any bytes of a provider give something that can be recorded, and cost no more than what an answer may have of values.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic import JsonValue

from domain.answer_matching import answer_scope
from domain.contract import Contract
from domain.evidence import Fact
from domain.exchange import Answer
from domain.fingerprint import canonical
from domain.jsontext import number_text
from domain.language.expressions import Scope, evaluate
from domain.language.functions import TooMuch
from domain.spellings import spelt_in, views

MAX_VALUES: Final = 256
MAX_VALUE: Final = 8_192
MAX_CHARACTERS: Final = 128 * 1024
"""Of all values of one answer. Whoever has more to hide has all texts of that answer hidden."""


@dataclass(frozen=True, slots=True)
class Found:
    """The sensitive values of one answer, as texts. `whole`: they could all be found."""

    texts: tuple[str, ...] = ()
    whole: bool = True


def find(contract: Contract, answer: Answer, scope: Scope) -> Found:
    """What the contract's expressions find in an answer."""
    here = answer_scope(answer, scope)
    texts: dict[str, None] = {}
    whole, room = True, MAX_CHARACTERS
    for expression in contract.record.sensitive:
        try:
            for text in _leaves(evaluate(expression, here)):
                if text in texts:
                    continue
                room -= len(text)
                whole = whole and len(texts) < MAX_VALUES and room >= 0
                if whole:
                    texts[text] = None
        except TooMuch:
            whole = False
    return Found(tuple(texts), whole)


def _leaves(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            if value.strip():
                yield value[:MAX_VALUE]
        case None | bool():
            return
        case int() | float():
            yield number_text(value)
        case list():
            for item in value:
                yield from _leaves(item)
        case _:
            for item in value.values():
                yield from _leaves(item)


# --- what later calls need of them ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HiddenValues:
    """The salt, and of jobs the values that were hidden in a record: by id and name, as recorded and as they are.

    `saved`: what is sensitive in the values that a step saved. They are kept elsewhere, and what is sent with them is to be hidden still.
    """

    salt: bytes
    jobs: Mapping[str, Mapping[str, tuple[JsonValue, JsonValue]]] = field(default_factory=dict[str, dict[str, tuple[JsonValue, JsonValue]]])
    saved: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """The payload."""
        jobs = {job: {name: json.dumps(pair) for name, pair in values.items()} for job, values in self.jobs.items()}
        saved: dict[str, JsonValue] = {"saved": json.dumps(self.saved)} if self.saved else {}
        return canonical({"salt": self.salt.hex(), "jobs": jobs, **saved})

    @classmethod
    def from_bytes(cls, payload: bytes) -> "HiddenValues":
        """The reverse."""
        kept = json.loads(payload)
        jobs = {job: {name: tuple(json.loads(pair)) for name, pair in values.items()} for job, values in kept["jobs"].items()}
        return cls(bytes.fromhex(kept["salt"]), jobs, tuple(json.loads(kept.get("saved", "[]"))))

    def texts(self) -> Iterator[str]:
        """All values that are kept here."""
        yield from self.saved
        for values in self.jobs.values():
            for _, real in values.values():
                yield from _leaves(real)


def hidden_jobs(before: Fact, after: Fact) -> dict[str, dict[str, tuple[JsonValue, JsonValue]]]:
    """What was hidden in the jobs that a piece of evidence names."""
    found: dict[str, dict[str, tuple[JsonValue, JsonValue]]] = {}
    for real, shown in zip(_jobs(before), _jobs(after), strict=True):
        values = {name: (shown[name], value) for name, value in real.items() if shown.get(name) != value}
        if values:
            found[str(real.get("id"))] = values
    return found


def hidden_saved(texts: Iterable[str], values: JsonValue) -> tuple[str, ...]:
    """Those of the texts that stand in what a step saved, in any spelling: what is sent with it tells them in that one."""
    leaves = set(_leaves(values))
    readings = [view for leaf in leaves for view in views(leaf.encode("utf-8", "surrogatepass"))]
    return tuple(
        text
        for text in dict.fromkeys(texts)
        if any(text in leaf for leaf in leaves) or any(spelt_in(text, reading) for reading in readings)
    )


def _jobs(fact: Fact) -> list[dict[str, JsonValue]]:
    one = cast("dict[str, JsonValue] | None", getattr(fact, "job", None))
    several = cast("tuple[dict[str, JsonValue], ...]", getattr(fact, "candidates", ()))
    return [*([] if one is None else [one]), *several]


def real_job(job: Mapping[str, JsonValue] | None, hidden: Iterable[HiddenValues]) -> dict[str, JsonValue] | None:
    """The job as later calls need it: a value that stands hidden is the one that was hidden."""
    if job is None:
        return None
    known: dict[str, tuple[JsonValue, JsonValue]] = {}
    for values in hidden:
        known |= values.jobs.get(str(job.get("id")), {})
    return {name: known[name][1] if name in known and known[name][0] == value else value for name, value in job.items()}
