"""What a probe names: its tokens and marks, another input for the same token, and a job that there is not.

* A probe is no operation: its names are drawn anew each time, in the forms that the contract gives those of an operation.
* Another input differs in one value, fits the contract's schema, and asks at the same address for something else.
"""

import secrets
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, cast

from pydantic import JsonValue

from domain.contract import Contract, validate_input
from domain.errors import SakshiError
from domain.evidence import FileFacts, instant_text
from domain.exchange import Request
from domain.files import files_root
from domain.fingerprint import mark, sha256_hex, token_digest
from domain.language.expressions import Scope
from domain.rendering import render

Path = tuple[str | int, ...]
ENOUGH: Final = 8
"""Characters of an id that have to be others, so that nobody's job is met by chance."""


@dataclass(frozen=True)
class Asked:
    """What a probe asks for. `other`: another input, where there is one; `files` are stored already."""

    contract: Contract
    target: Mapping[str, str]
    tenant: str
    principal: str
    input: JsonValue
    other: JsonValue = None
    files: Mapping[str, FileFacts] = field(default_factory=dict[str, FileFacts])


class Names:
    """The names of one probe."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.id = f"probe-{secrets.token_hex(10)}"
        self._salt = secrets.token_bytes(32)
        self._trace_id = secrets.token_hex(16)

    def scope(self, generation: int, call: str) -> Scope:
        """All roots that a call knows before there is a job. The token is the one that is ours: a step may give another."""
        asked, token = self.asked, self.asked.contract.create.token
        of = {"ledger_id": "probe", "operation": self.id, "fingerprint": sha256_hex(self._salt)}
        return Scope(
            input=asked.input,
            target=cast("JsonValue", dict(asked.target)),
            files=files_root(asked.files),
            operation={"id": self.id, "tenant": asked.tenant, "principal": asked.principal, "reason": "contracts probe"},
            trace_id=self._trace_id,
            deadlines=asked.contract.facts().deadlines_ms.root,
            mark=mark(self._salt, generation=generation, **of),
            token=None if token is None or token.source else token.shaped(token_digest(self._salt, generation=generation, **of)),
            token_sent_at=instant_text(datetime.now(UTC)),
            call_id=f"{self.id}.{call}.{generation}",
            steps={},
        )


def another(contract: Contract, input: JsonValue, scope: Scope) -> JsonValue:
    """Another input for the same address; None if one value's change gives none. Numbers are changed before texts."""
    scope = replace(scope, steps=_stand_ins(contract))
    asked = _rendered(contract, input, scope)
    if asked is None or asked.parts:
        return None
    for path, value in _changes(input, tuple(_listed(contract.input))):
        changed = _with(input, path, value)
        try:
            validate_input(contract, changed)
        except SakshiError:
            continue
        request = _rendered(contract, changed, scope)
        if request is not None and request.url == asked.url and request.body != asked.body:
            return changed
    return None


def _stand_ins(contract: Contract) -> JsonValue:
    """Values in the place of those that steps will save: what is compared is two requests that differ in the input alone."""
    return {step.step: dict.fromkeys(step.save, "1") for step in contract.create.before}


def _listed(schema: JsonValue) -> Iterator[JsonValue]:
    """The words that the schema lists somewhere: where one of them stands, no other text may."""
    match schema:
        case {"enum": list(words)}:
            yield from (word for word in words if isinstance(word, str))
        case dict():
            for part in schema.values():
                yield from _listed(part)
        case list():
            for part in schema:
                yield from _listed(part)
        case _:
            return


def _rendered(contract: Contract, input: JsonValue, scope: Scope) -> Request | None:
    try:
        return render(contract, contract.create.request, replace(scope, input=input))
    except SakshiError:
        return None


def _changes(input: JsonValue, words: Sequence[JsonValue]) -> Iterator[tuple[Path, JsonValue]]:
    leaves = list(_leaves(input, ()))
    for path, value in leaves:
        if isinstance(value, int) and not isinstance(value, bool):
            # Rather less than more: what is made of it by a provider that honours no token is a job too.
            yield from ((path, value - 1), (path, value + 1)) if value > 1 else ((path, value + 1), (path, value - 1))
    for path, value in leaves:
        if isinstance(value, float):
            yield path, value / 2
    for path, value in leaves:
        if isinstance(value, str) and value in words:
            yield from ((path, word) for word in words if word != value)
        elif isinstance(value, str) and value:
            yield path, f"{value}-2"
            yield path, value[:-1] + ("2" if value[-1] != "2" else "3")
    for path, value in leaves:
        if isinstance(value, bool):
            yield path, not value


def _leaves(value: JsonValue, path: Path) -> Iterator[tuple[Path, JsonValue]]:
    match value:
        case dict():
            for name, item in value.items():
                yield from _leaves(item, (*path, name))
        case list():
            for index, item in enumerate(value):
                yield from _leaves(item, (*path, index))
        case _:
            yield path, value


def changes_of(input: JsonValue, other: JsonValue) -> tuple[str, ...]:
    """In which values another input differs, as a person reads them."""
    ours, theirs = dict(_leaves(input, ())), dict(_leaves(other, ()))
    paths = [path for path in {**ours, **theirs} if ours.get(path) != theirs.get(path)]
    return tuple(f"{'.'.join(map(str, path))}: {theirs.get(path, 'nothing')} instead of {ours.get(path, 'nothing')}" for path in paths[:20])


def _with(value: JsonValue, path: Path, leaf: JsonValue) -> JsonValue:
    match value, path:
        case dict(), (str(name), *rest):
            return value | {name: _with(value[name], tuple(rest), leaf)}
        case list(), (int(index), *rest):
            return [*value[:index], _with(value[index], tuple(rest), leaf), *value[index + 1 :]]
        case _:
            return leaf


def nobodys(job: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """A job that there is not, named like this one; None where its id is too short to tell, or a number: that may be somebody's."""
    known = job.get("id")
    if not isinstance(known, str) or known.isdigit():
        return None
    made, changed = list(known), 0
    for at in range(len(known) - 1, -1, -1):
        letter = _letter_like(known[at])
        if letter is not None and changed < ENOUGH:
            made[at], changed = letter, changed + 1
    if changed < ENOUGH or "".join(made) == known:
        return None
    unknown = "".join(made)
    named = {name: value.replace(known, unknown) if isinstance(value, str) else value for name, value in job.items()}
    return named if all(named[name] != value for name, value in job.items() if isinstance(value, str)) else None


def _letter_like(letter: str) -> str | None:
    for letters in (string.digits, "abcdef", "ABCDEF", string.ascii_lowercase, string.ascii_uppercase):
        if letter in letters:
            return secrets.choice(letters)
    return None
