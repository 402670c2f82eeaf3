"""The five stages of a contract as frozen models: create, observe, cancel, collect, and the webhook beside them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from domain.fingerprint import shape
from domain.language.calls import CancelAnswer, CreateAnswer, Items, Output, Request, State, Step, Verdict
from domain.language.grammar import (
    Credential,
    Duration,
    ExpressionMap,
    Flag,
    Matching,
    Name,
    NoExpressions,
    OptionalTemplate,
    Positive,
    Strict,
    Word,
    expected,
)

UNSTATED_WINDOW: Final = timedelta(minutes=5)


class Token(Strict):
    """The idempotency token of one generation. A window of None is `unstated`."""

    format: Literal["uuid", "hex", "text"] = "uuid"
    min: Positive | None = None
    max: Positive | None = None
    charset: str | None = None
    window: Annotated[Duration | None, Word("unstated", None)]
    replayed: Matching = None
    source: NoExpressions = Field(default=(), alias="from")

    @property
    def lasts(self) -> timedelta:
        """The window that is counted with."""
        return UNSTATED_WINDOW if self.window is None else self.window

    def shaped(self, digest: bytes) -> str:
        """The token that a generation's digest gives, in the provider's format."""
        return shape(digest, format=self.format, min=self.min, max=self.max, charset=self.charset)


class Create(Strict):
    """The commit point."""

    before: tuple[Step, ...] = ()
    request: Request
    same: Matching = None
    token: Annotated[Token | None, Word("none", None)]
    answers: Annotated[tuple[CreateAnswer, ...], Field(min_length=1)]
    job: ExpressionMap = Field(default_factory=dict)
    compare: Matching = None

    @model_validator(mode="after")
    def _fits(self) -> "Create":
        if self.job and "id" not in self.job:
            raise expected("an id among the names of the job", ("job",))
        return self


class Counts(Strict):
    """What the provider counts."""

    total: NoExpressions = ()
    done: NoExpressions = ()
    succeeded: NoExpressions = ()
    failed: NoExpressions = ()
    cancelled: NoExpressions = ()
    expired: NoExpressions = ()
    unprocessed: NoExpressions = ()


class Progress(Strict):
    """What informs people and moves nothing."""

    completed: NoExpressions = ()
    total: NoExpressions = ()
    percent: NoExpressions = ()

    @model_validator(mode="after")
    def _fits(self) -> "Progress":
        if bool(self.percent) == bool(self.completed) or (self.total and not self.completed):
            raise expected("either percent, or completed with or without total")
        return self


class Poll(Strict):
    """How often the status is read."""

    first: Duration = timedelta(seconds=2)
    factor: Annotated[float, Field(ge=1, le=100, strict=True)] = 2
    cap: Duration = timedelta(seconds=60)
    floor: Duration = timedelta(seconds=1)
    hints: NoExpressions = ()

    @model_validator(mode="after")
    def _fits(self) -> "Poll":
        if self.floor > self.cap:
            raise expected("a floor that is not above cap", ("floor",))
        return self


class Observe(Strict):
    """How the status is read."""

    before: tuple[Step, ...] = ()
    request: Request
    same: Matching = None
    states: Annotated[tuple[State, ...], Field(min_length=1)]
    counts: Counts | None = None
    progress: Progress | None = None
    reason: NoExpressions = ()
    at: NoExpressions = ()
    appears_within: Duration = timedelta(seconds=60)
    terminal_is_final: Flag = True
    poll: Poll = Field(default_factory=Poll)


class Force(Strict):
    """The call that a human's `--force` sends."""

    before: tuple[Step, ...] = ()
    request: Request
    same: Matching = None
    answers: Annotated[tuple[CancelAnswer, ...], Field(min_length=1)]


class Cancel(Force):
    """How a cancel is asked for."""

    repeatable: Flag = False
    destroys_finished_jobs: Flag = False
    force: Force | None = None

    def call(self, *, forced: bool) -> Force:
        """The call that is sent: by force where a human said so and there is one."""
        return self.force if forced and self.force is not None else self


ONE_OUTPUT: Final = "output"
"""What an output that is written directly under `collect` is called: in `outputs.output.sha256`, in `items.read`, in the record."""


class Collect(Output):
    """The results: one output written directly, or several under `outputs`."""

    outputs: dict[Name, Output] = Field(default_factory=dict)
    after: tuple[Verdict, ...] = ("succeeded", "partial")
    items: Items | None = None
    partial: Literal["succeeded", "failed", "attention"] | None = None
    expect: Matching = None

    @model_validator(mode="after")
    def _fits(self) -> "Collect":
        if bool(self.source) == bool(self.outputs):
            raise expected("exactly one of from and outputs")
        return self

    @property
    def every(self) -> Mapping[str, Output]:
        """Each output by its name."""
        return self.outputs or {ONE_OUTPUT: self}


_SIGNED: Final = frozenset({"signature", "encoding", "signed", "timestamp", "tolerance", "secret", "jwks"})
WEBHOOK_KEYS: Final = {
    "standard_webhooks": frozenset({"secret", "tolerance"}),
    "hmac": _SIGNED,
    "ed25519": _SIGNED,
    "static_header": frozenset({"secret", "header"}),
    "basic": frozenset({"secret"}),
    "body_secret": frozenset({"secret", "value"}),
    "jwt": frozenset({"jwks", "issuer", "audience"}),
    "none": frozenset[str](),
}


class Webhook(Strict):
    """How deliveries of the provider are checked."""

    scheme: Literal["standard_webhooks", "hmac", "ed25519", "static_header", "basic", "body_secret", "jwt", "none"]
    secret: Credential | None = None
    jwks: str | None = None
    signature: NoExpressions = ()
    encoding: Literal["hex", "base64"] | None = None
    signed: OptionalTemplate = None
    timestamp: NoExpressions = ()
    tolerance: Duration = timedelta(minutes=5)
    header: str | None = None
    value: NoExpressions = ()
    issuer: str | None = None
    audience: str | None = None
    job_id: NoExpressions = ()
    event_id: NoExpressions = ()

    @model_validator(mode="after")
    def _fits(self) -> "Webhook":
        strange = self.model_fields_set - WEBHOOK_KEYS[self.scheme] - {"scheme", "job_id", "event_id"}
        if strange:
            raise expected(f"no {', '.join(sorted(strange))} under the scheme {self.scheme}")
        return self
