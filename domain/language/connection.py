"""Where a contract's requests go, with which credential, and within which bounds.

A credential is named here and is known nowhere else; `${secret.NAME}` is a hole of `auth` alone.
"""

from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from domain.errors import AddressError
from domain.language.expressions import Scope
from domain.language.grammar import (
    CREDENTIAL,
    Credential,
    Duration,
    NoExpressions,
    OptionalTemplate,
    OptionalTexts,
    Positive,
    Size,
    Strict,
    Template,
    Word,
    expected,
)
from domain.language.patterns import pattern
from domain.language.templates import compile_template, fill_text
from domain.origins import origin_pattern

AuthKind = Literal["none", "bearer", "basic", "headers", "query", "oauth2", "sigv4"]
KINDS: tuple[AuthKind, ...] = ("bearer", "basic", "headers", "query", "oauth2", "sigv4")


class Auth(Strict):
    """How requests to one origin are authenticated. All keys empty: not at all."""

    forms: ClassVar[str] = (
        'none, {bearer: NAME}, {basic: NAME}, {headers: {X-Key: "${secret.NAME}"}}, {query: {key: "${secret.NAME}"}}, {oauth2: NAME} '
        "or {sigv4: NAME, service: S, region: R}, where NAME is a credential's"
    )

    bearer: Credential | None = None
    basic: Credential | None = None
    headers: OptionalTexts = None
    query: OptionalTexts = None
    oauth2: Credential | None = None
    sigv4: Credential | None = None
    service: str | None = None
    region: OptionalTemplate = None

    @property
    def kind(self) -> AuthKind:
        """Which of the ways it is."""
        for kind in KINDS:
            if getattr(self, kind) is not None:
                return kind
        return "none"

    @property
    def templates(self) -> tuple[tuple[str, str], ...]:
        """Names and texts with `${secret.NAME}` holes, of the kinds `headers` and `query`."""
        return tuple((self.headers or self.query or {}).items())

    def at(self, scope: Scope) -> "Auth":
        """This authentication for one target: a region may be one of its values. Raises RenderError."""
        return self if self.region is None else self.model_copy(update={"region": fill_text(self.region, scope)})

    @property
    def credential(self) -> str | None:
        """The name of the credential, or None where nothing is sent."""
        named = self.bearer or self.basic or self.oauth2 or self.sigv4
        return named or next((name for _, text in self.templates for name in _secrets(text)), None)

    @model_validator(mode="after")
    def _fits(self) -> "Auth":
        if len(set(KINDS) & self.model_fields_set) > 1:
            raise expected(f"one of {', '.join(KINDS)}, or the word none")
        if not (self.sigv4 is None) == (self.service is None) == (self.region is None):
            raise expected("sigv4, service and region together")
        named = {name for _, text in self.templates for name in _secrets(text)}
        if self.kind in ("headers", "query") and (len(named) != 1 or not pattern(CREDENTIAL).matches(min(named))):
            raise expected("${secret.NAME} of exactly one credential, its name of lower-case letters, digits and _")
        return self


def _secrets(text: str) -> list[str]:
    """The credentials that a template names."""
    paths: list[tuple[str, ...]] = [hole.plain_path or () for hole in compile_template(text).holes]
    if any(len(path) != 2 or path[0] != "secret" for path in paths):
        raise expected("holes of the form ${secret.NAME}")
    return [path[-1] for path in paths]


AuthOrNone = Annotated[Auth, Word("none", {})]


class Limits(Strict):
    """Bounds per credential and host."""

    requests_per_second: Annotated[float, Field(gt=0, strict=True)] | None = None
    parallel: Positive | None = None
    response_bytes: Size = 2**20
    result_bytes: Size = 2**30


class Quota(Strict):
    """What the provider says is left, and until when."""

    remaining: NoExpressions
    reset: NoExpressions


class Timeouts(Strict):
    """Of one request; `total` is wall clock."""

    connect: Duration = timedelta(seconds=5)
    read: Duration = timedelta(seconds=30)
    write: Duration = timedelta(seconds=30)
    total: Duration = timedelta(seconds=90)


class Http(Strict):
    """Where requests go, and how long they may take."""

    base: Template
    auth: AuthOrNone
    hosts: dict[str, AuthOrNone] = Field(default_factory=dict)
    delay_hints: NoExpressions = ("headers.retry_after",)
    limits: Limits = Field(default_factory=Limits)
    quota: Quota | None = None
    timeouts: Timeouts = Field(default_factory=Timeouts)
    trace_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] = "X-Trace-ID"

    @model_validator(mode="after")
    def _fits(self) -> "Http":
        for host in self.hosts:
            try:
                origin_pattern(host)
            except AddressError as error:
                raise expected(f"an origin such as https://files.x.example, not {error.message}", ("hosts", host)) from None
        return self


class Deadlines(Strict):
    """How long each stage may take."""

    create: Duration = timedelta(minutes=10)
    result: Duration = timedelta(hours=1)
    cancel: Duration = timedelta(minutes=5)
    collect: Duration = timedelta(minutes=10)
    approval: Duration = timedelta(hours=24)
