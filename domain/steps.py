"""Reading the answers of a step: a call that runs ahead of another and saves values. Total, like every reading.

* `done` is the contract's word alone. A page that cannot be judged, or does not say how to go on, decides nothing: *again*.
* What is saved is read from the last page. Ahead of the create all of it or nothing: a create that was rendered without one of its values
  would ask for something else, so a value that is missing leaves the step undone. A reading may be offered less: there it has no value.
* What is saved is what will be read back: `1.0` is kept as `1`, and must not be sent as `1.0` by whoever has not read it back yet.
* `items` is the list over all pages.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, cast

from pydantic import JsonValue

from domain.answer_matching import Judged, judge
from domain.contract import Contract
from domain.errors import RenderError
from domain.exchange import Answer
from domain.fingerprint import canonical, committed_value
from domain.language.calls import Step
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.matching import Difference
from domain.paging import Following, following
from domain.reading import words_of
from domain.rendering import json_bytes

MAX_SAVED: Final = 64 * 1024
"""Bytes of JSON that the values of one step ahead of the create may take: they are kept."""
MAX_ITEMS: Final = 1024 * 1024
"""Bytes of JSON that the items of all pages may take, and the values of a step that is not kept."""

_KEPT: Final = b"sakshi/step/v1\0"
_GONE: Final = frozenset({404, 410})
Meaning = Literal["done", "page", "again", "refused", "violation"]
_STEP: Final[dict[str, Meaning]] = {"done": "done", "rejected": "refused"}


@dataclass(frozen=True, slots=True)
class StepRead:
    """What one answer to a step means. `page`: done so far, and `leads` to the next. `items`, of `size` bytes, are of all pages so far."""

    meaning: Meaning
    word: str = "default"
    saved: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    items: tuple[JsonValue, ...] = ()
    size: int = 0
    leads: Following = field(default_factory=Following)
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    request_id: str | None = None
    delay_ms: int | None = None
    differs: Difference | None = None


def read_step(contract: Contract, step: Step, answer: Answer, scope: Scope, now: datetime, *, before: StepRead | None = None) -> StepRead:
    """What an answer to a step means. `scope.page` says which page of a paged one it is, `before` what the pages up to it showed."""
    judged = judge(contract, answer, scope, now, step.answers, step.same)
    if judged.same == "differs":
        return _said(contract, judged, "violation")
    meaning = _STEP.get(judged.decided or "", "again")
    if meaning != "done":
        return _said(contract, judged, meaning)
    if not judged.readable:
        return _said(contract, judged, "again", "the answer could not be read whole")
    try:
        return _done(contract, step, judged, before or StepRead("page"))
    except TooMuch:
        return _said(contract, judged, "again", "the answer is more than can be read")


def _done(contract: Contract, step: Step, judged: Judged, before: StepRead) -> StepRead:
    scope, read = judged.scope, before
    if step.pages is not None:
        on, here = following(step.pages, scope), first_value(step.pages.items, scope)
        if on is None or not (isinstance(here, list) or not step.pages.items):
            return _said(contract, judged, "again", "the page does not show its items, or how to go on")
        listed = here if isinstance(here, list) else []
        size = before.size + len(json.dumps(listed))
        if size > MAX_ITEMS:
            return _said(contract, judged, "again", f"the items of all pages take more than {MAX_ITEMS} bytes")
        read = replace(before, items=(*before.items, *listed), size=size)
        if on.more:
            return replace(_said(contract, judged, "page"), items=read.items, size=size, leads=on)
        scope = replace(scope, items=list(read.items) if step.pages.items else None)
    saved, missing = _saved(step, scope, whole=step in contract.create.before)
    if missing is not None:
        return _said(contract, judged, "again", missing)
    return replace(_said(contract, judged, "done"), saved=saved, items=read.items, size=read.size)


def _saved(step: Step, scope: Scope, *, whole: bool) -> tuple[dict[str, JsonValue], str | None]:
    """The values to save, and why they can't be. Raises TooMuch."""
    saved = {name: first_value(expressions, scope) for name, expressions in step.save.items()}
    missing = sorted(name for name, value in saved.items() if value is None)
    if missing and whole:
        return {}, f"the answer has no value for {', '.join(missing)}"
    found: dict[str, JsonValue] = {name: value for name, value in saved.items() if value is not None}
    try:
        kept = json_bytes(cast("JsonValue", found))
    except RenderError:
        return {}, "a value that cannot be kept"
    room = MAX_SAVED if whole else MAX_ITEMS
    if len(kept) > room:
        return {}, f"the values take more than {room} bytes"
    return cast("dict[str, JsonValue]", json.loads(kept)), None


def _said(contract: Contract, judged: Judged, meaning: Meaning, why: str | None = None) -> StepRead:
    errors = contract.errors
    refused = meaning in ("again", "refused")
    return StepRead(
        meaning,
        word=judged.word,
        reason=why or words_of(judged.entry.reason if judged.entry else (), judged.scope),
        code=words_of(errors.code, judged.scope) if refused else None,
        message=words_of(errors.message, judged.scope) if refused else None,
        request_id=words_of(errors.request_id, judged.scope),
        delay_ms=judged.delay_ms,
        differs=judged.differs,
    )


def kept_values(salt: bytes, operation: str, generation: int, step: str, saved: Mapping[str, JsonValue]) -> bytes:
    """The values of a step as they are kept: 32 bytes from the stream's salt, so that their digest tells nothing, and JSON."""
    return hmac.digest(salt, _KEPT + canonical([operation, generation, step]), "sha256") + json_bytes(dict(saved))


def values_of(kept: bytes) -> dict[str, JsonValue]:
    """The values in `kept_values`."""
    return cast("dict[str, JsonValue]", json.loads(committed_value(kept)))


def undone(status: int) -> bool:
    """Whether an answer to an undo of this status means that it was taken: what is not there any more is taken back."""
    return 200 <= status < 300 or status in _GONE


def token_of(expressions: tuple[str, ...], steps: Mapping[str, JsonValue]) -> str | None:
    """The value of an earlier step that makes the create harmless to repeat; None if there is none that can be sent."""
    try:
        value = first_value(expressions, Scope(steps=dict(steps)))
    except TooMuch:
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return text if isinstance(text, str) and text else None
