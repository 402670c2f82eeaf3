"""Hiding values in whatever is recorded.

* Hidden is every free text of a piece of evidence, whatever its kind, in any form in which a value may stand in it: as it is,
  percent-encoded, escaped as JSON does, as the name of an object, with its blanks folded, with what is not printable replaced, or cut.
  A name that was cut ends in a plain digest, which would tell what was cut off: it is replaced too. What is closed (meanings, words of
  the contract, digests, names and keys of ours) is left, and so is the job's id: everyone has to know it.
* A value of fewer than four characters is hidden where it is the whole of a text: inside of one it would be found everywhere.
* Total, and without patterns made of values: values are looked up in order, so that many long ones cost little more than few short ones.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar, cast, get_args
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from pydantic import BaseModel, JsonValue

from domain.evidence import bounded, recordable
from domain.fingerprint import commitment, commitment_payload
from domain.jsontext import number_text
from domain.results.pieces import safe_name
from domain.sensitive import MAX_VALUE

INSIDE_FROM: Final = 4
_QUERY_FROM: Final = 8
_ADDRESS: Final = re.compile(r"https?://[^\s?]+\?\S*", re.IGNORECASE)
_CUT: Final = "\N{HORIZONTAL ELLIPSIS}"
_CUT_NAME: Final = re.compile(r"~[0-9a-f]{16}(?![0-9a-f])")
_PERCENT: Final = re.compile(r"%[0-9A-F]{2}")
_UNICODE: Final = re.compile(r"\\u[0-9a-f]{4}")
HIDDEN: Final = "[hidden]"
_CLOSED: Final = frozenset(
    {
        "actor", "kind", "meaning", "word", "step", "method", "fault", "no_answer", "digest", "ref", "commit", "sha256", "body_sha256",
        "key", "staging", "check", "stage",
    }
)  # fmt: skip
_JOBS: Final = frozenset({"job", "candidates"})

M = TypeVar("M", bound=BaseModel)


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
        self._inside = sorted(form for form in self._whole if len(form) >= INSIDE_FROM)
        self._heads = {form[:INSIDE_FROM] for form in self._inside}
        self._longest = max(map(len, self._inside), default=0)

    def __bool__(self) -> bool:
        return bool(self._whole) or self._blind

    def text(self, text: str) -> str:
        """The text without any value."""
        if self._blind:
            return HIDDEN
        if text in self._whole:
            return self._whole[text]
        hidden = self._without_values(text)
        if hidden.endswith(_CUT):
            hidden = self._without_tail(hidden[: -len(_CUT)]) + _CUT
        return self._without_cut_names(hidden, whole=hidden == text) if "~" in hidden else hidden

    def tree(self, value: JsonValue, *, numbers: bool = False) -> JsonValue:
        """The value with every text in it hidden, and every number that is one of the values: only counts stay numbers."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.tree(item, numbers=numbers) for item in value]
            case dict():
                return {self.text(name): self.tree(item, numbers=numbers) for name, item in value.items()}
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
        ascii = json.dumps(text)[1:-1]
        for form in (text, str(recordable(text)), folded, escaped, bounded(text, MAX_VALUE), bounded(folded, MAX_VALUE)):
            if form:
                yield form, shown
        for form in (ascii, _UNICODE.sub(lambda found: f"\\u{found.group()[2:].upper()}", ascii), safe_name(text)):
            yield form, shown
        for form in (quote(safe, safe=""), quote(safe), quote_plus(safe)):
            yield form, shown
            yield _PERCENT.sub(lambda found: found.group().lower(), form), shown

    def _commitment(self, text: str) -> str:
        return "sha256:" + commitment(commitment_payload(self._salt, recordable(text)))

    def _without_values(self, text: str) -> str:
        """Without any value that stands in it whole; of several that begin at one place, the longest is meant."""
        kept: list[str] = []
        done = at = 0
        while at <= len(text) - INSIDE_FROM:
            form = self._form_at(text, at) if text[at : at + INSIDE_FROM] in self._heads else None
            if form is None:
                at += 1
                continue
            kept += [text[done:at], self._whole[form]]
            at = done = at + len(form)
        return "".join((*kept, text[done:])) if kept else text

    def _form_at(self, text: str, at: int) -> str | None:
        """The longest form that the text goes on with. The greatest that is not greater than the text is it, or shares all that it can."""
        rest = text[at : at + self._longest]
        while index := bisect_right(self._inside, rest):
            form = self._inside[index - 1]
            if rest.startswith(form):
                return form
            shared = next(number for number, (one, other) in enumerate(zip(form, rest, strict=False)) if one != other)
            rest = rest[:shared]
        return None

    def _without_tail(self, text: str) -> str:
        """Without the beginning of a value that was cut off with the text."""
        for at in range(max(0, len(text) - self._longest), len(text) - INSIDE_FROM + 1):
            if text[at : at + INSIDE_FROM] in self._heads:
                tail = text[at:]
                index = bisect_left(self._inside, tail)
                if index < len(self._inside) and self._inside[index].startswith(tail):
                    return text[:at]
        return text

    def _without_cut_names(self, text: str, *, whole: bool) -> str:
        """Names that were cut: without the beginning of a value, and without a digest that what was hidden went into."""
        parts: list[str] = []
        done = 0
        for found in _CUT_NAME.finditer(text):
            before = text[done : found.start()]
            kept = self._without_tail(before)
            hidden = kept != before or not whole
            parts += [kept, f"~{self._commitment(found.group())[-16:]}" if hidden else found.group()]
            done = found.end()
        return "".join((*parts, text[done:]))


def _is_closed(annotation: object) -> bool:
    """A field that takes one of a few words: nothing of a provider's stands in it."""
    arguments = [one for one in get_args(annotation) if one is not type(None)]
    return bool(arguments) and all(isinstance(one, str) or _is_closed(one) for one in arguments)
