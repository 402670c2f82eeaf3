"""Sensitive values of answers: found by the contract's expressions, and hidden in whatever is recorded.

* What stands in their place is `sha256:` and a salted commitment: the values are guessable, so that their plain digest would give them
  away. An address that has a query stands without it instead, and the values in its query are hidden by themselves.
* The salt is one operation's, drawn with its first sensitive value and kept with the values that later calls need, in `payloads`. Where
  these bytes are erased, nobody can test a guess any more.
* Hidden is every free text of a piece of evidence, whatever its kind, in any form in which a value may stand in it: as it is,
  percent-encoded, with its blanks folded, with what is not printable replaced, or cut. What is closed (meanings, words of the contract,
  digests, names and keys of ours) is left, and so is the job's id: everyone has to know it.
* A value of fewer than four characters is hidden where it is the whole of a text: inside of one it would be found everywhere.
* Where the values of an answer could not be found (the expression passed its budget), all texts of that answer are hidden.
* Total: any bytes of a provider give something that can be recorded.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast, get_args
from urllib.parse import parse_qsl, quote, urlsplit

from pydantic import BaseModel, JsonValue

from domain.contract import Contract
from domain.evidence import Fact, bounded, recordable
from domain.exchange import Answer
from domain.expressions import Scope, evaluate
from domain.fingerprint import canonical, commitment, commitment_payload
from domain.functions import TooMuch
from domain.jsontext import number_text
from domain.reading import answer_scope

MAX_VALUES: Final = 256
MAX_VALUE: Final = 8_192
INSIDE_FROM: Final = 4
_QUERY_FROM: Final = 8
_ADDRESS: Final = re.compile(r"https?://[^\s?]+\?\S*", re.IGNORECASE)
_CUT: Final = "\N{HORIZONTAL ELLIPSIS}"
HIDDEN: Final = "[hidden]"
_CLOSED: Final = frozenset(
    {
        "actor", "kind", "meaning", "word", "step", "method", "fault", "no_answer", "digest", "ref", "commit", "sha256", "body_sha256",
        "key", "staging", "check", "stage",
    }
)  # fmt: skip
_JOBS: Final = frozenset({"job", "candidates"})

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Found:
    """The sensitive values of one answer, as texts. `whole`: they could all be found."""

    texts: tuple[str, ...] = ()
    whole: bool = True


def find(contract: Contract, answer: Answer, scope: Scope) -> Found:
    """What the contract's expressions find in an answer."""
    here = answer_scope(answer, scope)
    texts: dict[str, None] = {}
    whole = True
    for expression in contract.record.sensitive:
        try:
            for text in _leaves(evaluate(expression, here)):
                whole = whole and len(texts) < MAX_VALUES
                if len(texts) < MAX_VALUES:
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


class Veil:
    """Hides values. One that hides nothing is false."""

    def __init__(self, salt: bytes, texts: Iterable[str], *, job_id: str | None = None, blind: bool = False) -> None:
        self._salt = salt
        self._blind = blind
        self._whole: dict[str, str] = {}
        for text in texts:
            for form, shown in self._forms(text):
                if form != job_id:
                    self._whole.setdefault(form, shown)
        inside = sorted((form for form in self._whole if len(form) >= INSIDE_FROM), key=len, reverse=True)
        self._inside = re.compile("|".join(map(re.escape, inside))) if inside else None
        self._long = inside

    def __bool__(self) -> bool:
        return bool(self._whole) or self._blind

    def text(self, text: str) -> str:
        """The text without any value."""
        if self._blind:
            return HIDDEN
        if text in self._whole:
            return self._whole[text]
        if self._inside is not None:
            text = self._inside.sub(lambda found: self._whole[found.group()], text)
        return self._without_cut(text) if text.endswith(_CUT) else text

    def tree(self, value: JsonValue, *, numbers: bool = False) -> JsonValue:
        """The value with every text in it hidden, and every number that is one of the values: only counts stay numbers."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.tree(item, numbers=numbers) for item in value]
            case dict():
                return {name: self.tree(item, numbers=numbers) for name, item in value.items()}
            case int() | float() if numbers and not isinstance(value, bool):
                return self._whole.get(number_text(value), value)
            case _:
                return value

    def job(self, job: JsonValue) -> JsonValue:
        """What names a job: its id stands, and the names are the contract's."""
        if not isinstance(job, dict):
            return self.tree(job)
        return {name: item if name == "id" else self.tree(item, numbers=True) for name, item in job.items()}

    def model(self, model: M) -> M:
        """A piece of evidence, or a part of one, with its free texts hidden."""
        change: dict[str, object] = {}
        for name, info in type(model).model_fields.items():
            value = cast("object", getattr(model, name))
            if name not in _CLOSED and not _is_closed(info.annotation):
                hidden = self._value(name, value)
                if hidden is not value and hidden != value:
                    change[name] = hidden
        return model.model_copy(update=change) if change else model

    def _value(self, name: str, value: object) -> object:
        match value:
            case BaseModel():
                return self.model(value)
            case dict() if name in _JOBS:
                return self.job(cast("dict[str, JsonValue]", value))
            case tuple():
                return tuple(self._value(name, item) for item in cast("tuple[object, ...]", value))
            case list():
                return [self._value("", item) for item in cast("list[object]", value)]
            case dict():
                return {key: self._value("", item) for key, item in cast("dict[str, object]", value).items()}
            case str():
                return self.text(value)
            case _:
                return value  # an instant, a count, a size: no free text

    def _forms(self, text: str) -> Iterator[tuple[str, str]]:
        """How a value may stand in a text, and what is shown instead."""
        if _ADDRESS.fullmatch(text):
            shown = f"{text.partition('?')[0]}?..."
            # In parts too: an address is also split, rebuilt and shortened on its way into a text.
            for _, part in parse_qsl(urlsplit(text.replace("[", "%5B").replace("]", "%5D")).query, max_num_fields=100):
                if len(part) >= _QUERY_FROM:
                    yield from self._plain(part, self._commitment(part))
        else:
            shown = self._commitment(text)
        yield from self._plain(text, shown)

    def _plain(self, text: str, shown: str) -> Iterator[tuple[str, str]]:
        safe = text.encode("utf-8", "replace").decode("utf-8")
        folded = " ".join(text.split())
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        for form in (text, str(recordable(text)), folded, escaped, bounded(text, MAX_VALUE), bounded(folded, MAX_VALUE)):
            if form:
                yield form, shown
        for form in (quote(safe, safe=""), quote(safe)):
            yield form, shown

    def _commitment(self, text: str) -> str:
        return "sha256:" + commitment(commitment_payload(self._salt, recordable(text)))

    def _without_cut(self, text: str) -> str:
        """Without the beginning of a value that was cut off with the text."""
        kept = text[: -len(_CUT)]
        for form in self._long:
            for length in range(min(len(form), len(kept)), INSIDE_FROM - 1, -1):
                if kept.endswith(form[:length]):
                    return kept[:-length] + _CUT
        return text


def _is_closed(annotation: object) -> bool:
    """A field that takes one of a few words: nothing of a provider's stands in it."""
    arguments = [one for one in get_args(annotation) if one is not type(None)]
    return bool(arguments) and all(isinstance(one, str) or _is_closed(one) for one in arguments)


# --- what later calls need of them ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """The salt, and of jobs the values that were hidden in a record: by id and name, as recorded and as they are."""

    salt: bytes
    jobs: Mapping[str, Mapping[str, tuple[JsonValue, JsonValue]]] = field(default_factory=dict[str, dict[str, tuple[JsonValue, JsonValue]]])

    def to_bytes(self) -> bytes:
        """The payload."""
        jobs = {job: {name: json.dumps(pair) for name, pair in values.items()} for job, values in self.jobs.items()}
        return canonical({"salt": self.salt.hex(), "jobs": jobs})

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Page":
        """The reverse."""
        kept = json.loads(payload)
        jobs = {job: {name: tuple(json.loads(pair)) for name, pair in values.items()} for job, values in kept["jobs"].items()}
        return cls(bytes.fromhex(kept["salt"]), jobs)

    def texts(self) -> Iterator[str]:
        """All values that are kept here."""
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


def _jobs(fact: Fact) -> list[dict[str, JsonValue]]:
    one = cast("dict[str, JsonValue] | None", getattr(fact, "job", None))
    several = cast("tuple[dict[str, JsonValue], ...]", getattr(fact, "candidates", ()))
    return [*([] if one is None else [one]), *several]


def real_job(job: Mapping[str, JsonValue] | None, pages: Iterable[Page]) -> dict[str, JsonValue] | None:
    """The job as later calls need it: a value that stands hidden is the one that was hidden."""
    if job is None:
        return None
    known: dict[str, tuple[JsonValue, JsonValue]] = {}
    for page in pages:
        known |= page.jobs.get(str(job.get("id")), {})
    return {name: known[name][1] if name in known and known[name][0] == value else value for name, value in job.items()}
