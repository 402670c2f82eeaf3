"""Hiding values in whatever is recorded.

* Hidden is every free text of a piece of evidence, whatever its kind, in any form in which a value may stand in it: as it is,
  percent-encoded, escaped as JSON does, as the name of an object, with its blanks folded, with what is not printable replaced, or cut.
  A value of eight characters or more is hidden in every other spelling too that `domain/spellings.py` finds: base64, hexadecimal, another
  letter case, with blanks added, behind any of the usual escapes.
  A name that was cut ends in a plain digest, which would tell what was cut off: it is replaced too. What is closed (meanings, words of
  the contract, digests, names and keys of ours) is left, and so is the job's id: everyone has to know it.
* A value of fewer than four characters is hidden where it is the whole of a text: inside of one it would be found everywhere.
* Total, and many long values cost little more than few short ones (`domain/sought.py`).
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar, cast, get_args
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from pydantic import BaseModel, JsonValue

from domain.evidence import bounded, recordable
from domain.fingerprint import commitment, commitment_payload
from domain.jsontext import number_text
from domain.results.pieces import safe_name
from domain.sensitive import MAX_VALUE
from domain.sought import Sought
from domain.spellings import LOOSE_FROM, Coded, coded_forms, loose_forms, views

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
        self._loose: dict[bytes, str] = {}
        self._coded: dict[bytes, tuple[Coded, str]] = {}
        open_forms = loose_forms(job_id or "")
        for text in texts:
            for value, shown in self._values(text):
                if value != job_id:
                    self._whole |= {form: shown for form in _forms(value) if form != job_id and form not in self._whole}
                    self._loose |= {form: shown for form in loose_forms(value) if form not in open_forms and form not in self._loose}
                    self._coded |= {form.letters: (form, shown) for form in coded_forms(value) if form.letters not in self._coded}
        self._inside = Sought(self._whole, INSIDE_FROM)
        self._inside_loose, self._inside_coded = Sought(self._loose, LOOSE_FROM), Sought(self._coded, LOOSE_FROM)

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

    def stands_in(self, body: bytes) -> bool:
        """Whether a value stands in the bytes of a body, in any spelling."""
        if self._inside.stands_in(body.decode("utf-8", "replace")):
            return True
        otherwise = views(body) if self._inside_loose else ()
        return any(self._inside_loose.stands_in(view.loose) or self._inside_coded.stands_in(view.coded) for view in otherwise)

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

    def _values(self, text: str) -> Iterator[tuple[str, str]]:
        """What is looked for of a value, and what is shown instead."""
        if _ADDRESS.fullmatch(text):
            shown = f"{text.partition('?')[0]}?..."
            # In parts too: an address is also split, rebuilt and shortened on its way into a text.
            for _, part in parse_qsl(urlsplit(text.replace("[", "%5B").replace("]", "%5D")).query, max_num_fields=100):
                if len(part) >= _QUERY_FROM:
                    yield part, self._commitment(part)
        else:
            shown = self._commitment(text)
        yield text, shown

    def _commitment(self, text: str) -> str:
        return "sha256:" + commitment(commitment_payload(self._salt, recordable(text)))

    def _without_values(self, text: str) -> str:
        """Without any value that stands in it whole."""
        found = [(at, at + len(form), self._whole[form]) for at, form in self._inside.finds(text)]
        kept: list[str] = []
        done = 0
        for start, end, shown in sorted((*found, *self._spelt_otherwise(text)), key=lambda one: (one[0], -one[1])):
            if start >= done:
                kept += [text[done:start], shown]
            done = max(done, end)
        return "".join((*kept, text[done:])) if kept else text

    def _spelt_otherwise(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where a value stands in another spelling."""
        if not self._inside_loose:
            return
        raw = text.encode("utf-8", "surrogatepass")
        for view in views(raw):
            for at, form in self._inside_loose.finds(view.loose):
                yield *_letters(raw, *view.place(at, at + len(form))), self._loose[form]
            for at, letters in self._inside_coded.finds(view.coded):
                coded, shown = self._coded[letters]
                yield *_letters(raw, *view.place_coded(coded, at)), shown

    def _without_tail(self, text: str) -> str:
        """Without the beginning of a value that was cut off with the text."""
        begun = [self._inside.cut(text)]
        if self._inside_loose:
            raw = text.encode("utf-8", "surrogatepass")
            for view in views(raw):
                for sought, read in ((self._inside_loose, view.loose), (self._inside_coded, view.coded)):
                    at = sought.cut(read)
                    begun.append(None if at is None else _letters(raw, *view.place(at, len(read)))[0])
        return text[: min((at for at in begun if at is not None), default=len(text))]

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


def _forms(text: str) -> Iterator[str]:
    """How a value may be written, by ourselves and by whoever is sent it."""
    safe = text.encode("utf-8", "replace").decode("utf-8")
    folded = " ".join(text.split())
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    ascii = json.dumps(text)[1:-1]
    for form in (text, str(recordable(text)), folded, escaped, bounded(text, MAX_VALUE), bounded(folded, MAX_VALUE)):
        if form:
            yield form
    yield from (ascii, _UNICODE.sub(lambda found: f"\\u{found.group()[2:].upper()}", ascii), safe_name(text))
    for form in (quote(safe, safe=""), quote(safe), quote_plus(safe)):
        yield form
        yield _PERCENT.sub(lambda found: found.group().lower(), form)


def _letters(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """A place in a text, by that in its bytes."""
    before = len(raw[:start].decode("utf-8", "surrogatepass"))
    return before, before + len(raw[start:end].decode("utf-8", "surrogatepass"))


def _is_closed(annotation: object) -> bool:
    """A field that takes one of a few words: nothing of a provider's stands in it."""
    arguments = [one for one in get_args(annotation) if one is not type(None)]
    return bool(arguments) and all(isinstance(one, str) or _is_closed(one) for one in arguments)
