"""The contract: one file that says how one asynchronous endpoint of one provider behaves, as a frozen model.

* `domain/language/loading.py` makes it from a file or from the ledger's copy and is the only way to get one: it also applies
  the checks that need the whole contract.
* The digest is SHA-256 of the canonical JSON of the file as parsed, before defaults; `canonical` are those bytes. An operation
  is pinned to them.
* A credential goes to an origin that the contract lists for it and to no other: `auth_for` is the one answer to that question.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Discriminator, Field, JsonValue, PrivateAttr, Tag, model_validator

from domain.errors import AddressError, BadInput, InputInvalid
from domain.facts import ContractFacts, DeadlinesMs
from domain.fingerprint import sha256_hex
from domain.jsontext import check_carriable
from domain.language.calls import PAGES_WITHIN, CommonAnswer, Lookup, Step
from domain.language.connection import Auth, Deadlines, Http
from domain.language.expressions import Scope
from domain.language.grammar import (
    ContractName,
    Day,
    Label,
    Minor,
    Name,
    NoExpressions,
    OptionalTemplate,
    Positive,
    Size,
    Strict,
    Template,
    TemplateMap,
    Whole,
    Word,
    expected,
    milliseconds,
)
from domain.language.input_schema import problems_of
from domain.language.patterns import pattern
from domain.language.stages import Cancel, Collect, Create, Observe, Webhook
from domain.language.templates import fill_text
from domain.origins import covers, origin_of, origin_pattern

TARGET_PATTERNS = {"label": r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "origin": r"https?://[^/?#\\]+"}


class Provider(Strict):
    """Where the facts come from."""

    name: Label
    api_version: str
    sources: Annotated[tuple[str, ...], Field(min_length=1)]
    verified_on: Day


class Target(Strict):
    """What differs between installations of one provider."""

    kind: Literal["label", "origin", "text"]
    about: str = ""
    pattern: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Target":
        if (self.kind == "text") != (self.pattern is not None):
            raise expected("a pattern for kind text, and only there")
        try:
            pattern(self.pattern or "")
        except BadInput as error:
            raise expected(error.message, ("pattern",)) from None
        return self


class File(Strict):
    """A big input that is stored by digest before approval."""

    media: str
    max_bytes: Size
    max_records: Positive | None = None
    source: NoExpressions = Field(default=(), alias="from")


class Money(Strict):
    """Whole minor units of a currency."""

    minor: Minor
    currency: Template


def _cost_tag(value: object) -> str:
    return "word" if isinstance(value, str) else "money"


Cost = Annotated[Annotated[Money, Tag("money")] | Annotated[Literal["unknown"], Tag("word")], Discriminator(_cost_tag)]


class Effect(Strict):
    """What policy judges and an approver sees."""

    cls: Literal["read", "external_write", "money", "destructive"] = Field(alias="class")
    resource: Template
    summary: Template
    recipient: OptionalTemplate = None
    amount: Money | None = None
    cost: Cost | None = None
    labelled: TemplateMap = Field(default_factory=dict, alias="fields")
    data_leaving: tuple[str, ...] = ()
    after_cancel: str = ""


class Errors(Strict):
    """How a refusal reads, and answers that are tried after each call's own."""

    code: NoExpressions = ()
    message: NoExpressions = ()
    request_id: NoExpressions = ()
    answers: tuple[CommonAnswer, ...] = ()


class Record(Strict):
    """What of the provider's answers is kept, and how."""

    bodies: Literal["digest", "keep"] = "digest"
    sensitive: NoExpressions = ()


class Accepted(Strict):
    """A safety finding that is taken knowingly."""

    finding: str
    because: Annotated[str, Field(min_length=1, max_length=1024)]


class Contract(Strict):
    """One version of one contract."""

    contract: ContractName
    version: Whole
    about: str = ""
    language: Literal[1] = 1
    provider: Provider
    target: dict[Name, Target] = Field(default_factory=dict)
    input: dict[str, JsonValue]
    files: dict[Name, File] = Field(default_factory=dict)
    effect: Effect
    http: Http
    deadlines: Deadlines = Field(default_factory=Deadlines)
    errors: Errors = Field(default_factory=Errors)
    create: Create
    observe: Annotated[Observe | None, Word("none", None)]
    cancel: Annotated[Cancel | None, Word("none", None)]
    collect: Annotated[Collect | None, Word("none", None)]
    reconcile: Annotated[tuple[Lookup, ...], Word("none", [])]
    webhook: Webhook | None = None
    record: Record = Field(default_factory=Record)
    accepts: tuple[Accepted, ...] = ()

    _canonical: bytes = PrivateAttr(default=b"")
    _digest: str = PrivateAttr(default="")

    @property
    def canonical(self) -> bytes:
        """The file as parsed, before defaults, as RFC 8785 bytes."""
        return self._canonical

    @property
    def digest(self) -> str:
        """SHA-256 of `canonical`, hexadecimal."""
        return self._digest

    def sealed(self, canonical: bytes) -> "Contract":
        """This contract with the bytes it was made from."""
        self._canonical, self._digest = canonical, sha256_hex(canonical)
        return self

    @property
    def job_names(self) -> tuple[str, ...]:
        """The values that name a job: `id`, and whatever else `create.job` (or, without one, a lookup) gives."""
        lookups = [name for lookup in self.reconcile for name in lookup.job]
        return tuple(dict.fromkeys(["id", *(self.create.job or lookups)]))

    def base(self, target: Mapping[str, JsonValue]) -> str:
        """The base address for one target, without a slash at its end. Raises RenderError, AddressError."""
        base = fill_text(self.http.base, Scope(target=dict(target))).rstrip("/")
        origin_of(base)
        if "?" in base:
            raise AddressError("a base address with a query")
        return base

    def auth_for(self, url: str, target: Mapping[str, JsonValue]) -> Auth | None:
        """How a request to `url` is authenticated; None if the contract allows no request there. Raises AddressError."""
        origin = origin_of(url)
        if origin == origin_of(self.base(target)):
            return self.http.auth
        if str(origin) in self.http.hosts:
            return self.http.hosts[str(origin)]
        return next((auth for host, auth in self.http.hosts.items() if covers(origin_pattern(host), origin)), None)

    def check_target(self, target: Mapping[str, JsonValue]) -> None:
        """Raise BadInput unless the target has exactly the values that the contract asks for, each of its kind."""
        if target.keys() != self.target.keys():
            wanted = ", ".join(self.target) or "nothing"
            raise BadInput(f"{self.contract} needs a target with {wanted}", hint="name one with --target")
        for name, kind in self.target.items():
            value = target[name]
            if not isinstance(value, str) or not pattern(kind.pattern or TARGET_PATTERNS[kind.kind]).matches(value):
                raise BadInput(f"target.{name} of {self.contract} must be a {kind.kind}{f': {kind.about}' if kind.about else ''}")
            if kind.kind == "origin":
                origin_pattern(value)

    def _before_ms(self) -> dict[str, int]:
        """What steps add to the longest that one attempt of an activity may take. A cancel may read the status first."""
        total = milliseconds(self.http.timeouts.total)

        def spent(steps: Sequence[Step]) -> int:
            return sum(total + (milliseconds(PAGES_WITHIN) if step.pages else 0) for step in steps)

        undo = total * len([step for step in self.create.before if step.undo])
        observe = spent(self.observe.before) if self.observe else 0
        calls = [call for call in (self.cancel, self.cancel and self.cancel.force) if call]
        cancel = max((spent(call.before) for call in calls), default=0)
        found = {"create": spent(self.create.before) + undo, "undo": undo, "observe": observe, "cancel": observe + cancel}
        return {name: span for name, span in found.items() if span}

    def facts(self) -> ContractFacts:
        """What the rules of an operation's life need to know."""
        observe, cancel, collect, token = self.observe, self.cancel, self.collect, self.create.token
        return ContractFacts(
            collect_after=collect.after if collect else (),
            collect_none=collect is None,
            observe_none=observe is None,
            cancel_none=cancel is None,
            cancel_repeatable=cancel is not None and cancel.repeatable,
            cancel_force=cancel is not None and cancel.force is not None,
            destroys_finished_jobs=cancel is not None and cancel.destroys_finished_jobs,
            terminal_is_final=observe is None or observe.terminal_is_final,
            partial=collect.partial if collect else None,
            disagreement=collect.items.disagreement if collect and collect.items else "attention",
            one_time=collect is not None and (collect.one_time or any(output.one_time for output in collect.outputs.values())),
            token=token is not None,
            token_window_ms=None if token is None else milliseconds(token.lasts),
            http_total_ms=milliseconds(self.http.timeouts.total),
            reconcile_entries=len(self.reconcile),
            appears_within_ms=0 if observe is None else milliseconds(observe.appears_within),
            deadlines_ms=DeadlinesMs(**{name: milliseconds(getattr(self.deadlines, name)) for name in Deadlines.model_fields}),
            compare=self.create.compare is not None,
            sensitive=bool(self.record.sensitive),
            visible_within_ms=tuple(milliseconds(lookup.visible_within) for lookup in self.reconcile),
            undo=tuple(step.step for step in self.create.before if step.undo),
            before_ms=self._before_ms(),
        )


def validate_input(contract: Contract, value: JsonValue) -> None:
    """Raise InputInvalid with JSON paths if the input breaks the contract's schema, BadInput if it can't be carried at all."""
    check_carriable(value)
    problems = problems_of(contract.input, value)
    if problems:
        raise InputInvalid(problems, hint=f"python starter.py contracts show {contract.contract} shows what it takes")
