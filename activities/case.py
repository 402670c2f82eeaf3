"""One operation as an activity sees it: its record, its contract as pinned, its input, and the names derived for it.

What never changes stands in `Asked`, and is shared by all activities of a process; a `Case` is one moment of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict, cast

from activities.ports import Record
from domain.call_policy import call_policy
from domain.contract import Contract
from domain.errors import NotFound
from domain.evidence import Json, Ref
from domain.exchange import CallPolicy
from domain.files import files_root
from domain.fingerprint import mark, token_digest
from domain.language.expressions import Scope
from domain.sensitive import Found, HiddenValues, real_job
from domain.standing import Standing
from domain.steps import token_of

TEXTS_KEPT = 1024
CHARACTERS_KEPT = 256 * 1024
"""Of the values that are remembered of one operation, so that hiding them costs a worker little, whatever a provider sends."""


@dataclass
class Hidden:
    """What is known to be sensitive of one operation, as far as this process has seen it.

    `read`: what was found in answers that are kept, by their digests: however many answers come after, names and words are made of these.
    `blind`: the values of the newest answer could not all be found.
    """

    texts: dict[str, None] = field(default_factory=dict[str, None])
    read: dict[str, Found] = field(default_factory=dict[str, Found])
    salt: bytes = b""
    blind: bool = False

    def remember(self, found: Found) -> None:
        """What was found in one answer; of many, the newest."""
        for text in found.texts:
            self.texts.pop(text, None)
            self.texts[text] = None
        held = sum(map(len, self.texts))
        while len(self.texts) > TEXTS_KEPT or held > CHARACTERS_KEPT:
            oldest = next(iter(self.texts))
            held -= len(oldest)
            del self.texts[oldest]
        self.blind = self.blind or not found.whole


@dataclass(frozen=True)
class Asked:
    """What never changes of an operation; `names` keeps what was derived for a generation.

    `apart` are the values that were hidden and that later calls need, by the digest of their payload.
    """

    contract: Contract
    input: Json
    salt: bytes
    names: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    apart: dict[str, HiddenValues] = field(default_factory=dict[str, HiddenValues])
    hidden: Hidden = field(default_factory=Hidden)


class DerivedFrom(TypedDict):
    """What a token and a mark belong to."""

    ledger_id: str
    operation: str
    generation: int
    fingerprint: str


@dataclass(frozen=True)
class Case:
    """One operation at one moment."""

    ledger_id: str
    record: Record
    asked: Asked
    saved: Mapping[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])

    @property
    def standing(self) -> Standing:
        """The standing of the record."""
        return self.record.standing

    @property
    def contract(self) -> Contract:
        """The contract that the operation was pinned to."""
        return self.asked.contract

    def at(self, record: Record) -> "Case":
        """The same operation at a later moment."""
        return replace(self, record=record)

    def knowing(self, digest: str, values: dict[str, Json]) -> "Case":
        """The same operation, and what a step saved that is kept under `digest`."""
        return replace(self, saved={**self.saved, digest: values})

    def values(self, steps: Mapping[str, Ref]) -> dict[str, Json]:
        """What those steps saved, by step: the root `steps`. Raises NotFound: a request is never rendered without what it needs."""
        unknown = [step for step, ref in steps.items() if ref.digest not in self.saved]
        if unknown:
            raise NotFound(f"what the step {unknown[0]} saved is not there")
        return {step: self.saved[ref.digest] for step, ref in steps.items()}

    def token(self, generation: int) -> str | None:
        """The idempotency token of a generation, or None if the contract has none; a step's, for the present one alone."""
        token = self.contract.create.token
        if token is None:
            return None
        if token.source:
            known = generation == self.standing.generation and not self.standing.final
            return token_of(token.source, self.values(self.standing.steps)) if known else None

        def derive() -> str:
            return token.shaped(token_digest(self.asked.salt, **self._derived_from(generation)))

        return self._named("token", generation, derive)

    def mark(self, generation: int) -> str:
        """Our reference of a generation, to be planted at the provider."""
        return self._named("mark", generation, lambda: mark(self.asked.salt, **self._derived_from(generation)))

    def _named(self, kind: str, generation: int, derive: Callable[[], str]) -> str:
        names = self.asked.names
        if (kind, generation) not in names:
            names[kind, generation] = derive()
        return names[kind, generation]

    def _derived_from(self, generation: int) -> "DerivedFrom":
        return DerivedFrom(
            ledger_id=self.ledger_id,
            operation=self.record.stream,
            generation=generation,
            fingerprint=self.standing.opened.fingerprint,
        )

    def scope(self, *, call_id: str, observed: Json = None, **roots: Json) -> Scope:
        """The roots that a template or an expression may use for this operation."""
        opened, standing = self.standing.opened, self.standing
        values: dict[str, object] = {
            "input": self.asked.input,
            "target": dict(opened.target),
            "files": files_root(opened.files),
            "operation": {
                "id": self.record.stream,
                "tenant": opened.tenant,
                "principal": opened.principal,
                "reason": opened.reason or "",
            },
            "trace_id": opened.trace_id,
            "deadlines": standing.facts.deadlines_ms.root,
            "mark": self.mark(standing.generation),
            "call_id": call_id,
            "steps": {} if standing.final else self.values(standing.steps),
            "job": self._job(),
            "observed": observed,
            "phase": standing.phase,
            **roots,
        }
        return Scope(**values)  # pyright: ignore[reportArgumentType]

    def _job(self) -> dict[str, Json] | None:
        """The job with the values that its record hides. Raises NotFound: no request is rendered with what stands in their place."""
        if any(digest not in self.asked.apart for digest in self.standing.sensitive):
            raise NotFound("what was hidden in the record of the job is not there")
        return real_job(self.standing.job, self.asked.apart.values())

    def policy(self, *, max_bytes: int, send_by: float | None = None, total_s: float | None = None) -> CallPolicy:
        """The limits and the allowed origins of one call."""
        opened = self.standing.opened
        target = cast("dict[str, Json]", opened.target)
        return call_policy(self.contract, target, opened.tenant, max_bytes=max_bytes, send_by=send_by, total_s=total_s)


def call_id(stream: str, *parts: object) -> str:
    """An id of one request, the same on every re-sending."""
    return ".".join((stream, *map(str, parts)))
