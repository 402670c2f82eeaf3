"""Calls as frozen models: a request and an ordered list of answers, and the small parts that several calls share.

The words of each call are closed. Which of the keys are built is not said here; `domain/language/checks.py` holds that one table.
"""

from datetime import timedelta
from typing import Annotated, Final, Generic, Literal, TypeVar

from pydantic import Discriminator, Field, JsonValue, Tag, model_validator

from domain.language.grammar import (
    Duration,
    ExpressionMap,
    Flag,
    FormTree,
    Lifetime,
    Matching,
    Name,
    NoExpressions,
    OneOrMore,
    OptionalTemplate,
    Positive,
    Strict,
    Template,
    TemplateMap,
    TemplateTree,
    TextMap,
    Whole,
    expected,
    parse_duration,
)

CommonWord = Literal["throttled", "unauthorized", "rejected", "unsure"]
StepWord = Literal["done"] | CommonWord
CreateWord = Literal["accepted", "accepted_unnamed", "completed", "failed", "exists", "in_flight", "mismatch"] | CommonWord
StateWord = (
    Literal["waiting", "running", "needs_input", "cancelling", "succeeded", "partial", "failed", "cancelled", "ended", "gone"] | CommonWord
)
CancelWord = Literal["acknowledged", "already_terminal", "not_yet", "refused"] | CommonWord
SourceWord = Literal["done", "not_ready", "gone"] | CommonWord
LookupWord = Literal["found", "absent"] | CommonWord
ItemWord = Literal["succeeded", "failed", "cancelled", "expired", "unprocessed"]
Verdict = Literal["succeeded", "partial", "failed", "cancelled"]
Checkable = Literal["content_type", "bytes", "sha256", "records", "schema"]

W = TypeVar("W", bound=str, covariant=True)

BODIES: Final = {"json": "json_body", "form": "form", "multipart": "multipart", "file": "file", "text": "text"}


class FilePart(Strict):
    """One part of a multipart body that is a file."""

    file: Name
    filename: OptionalTemplate = None


def _part_tag(value: object) -> str:
    return "text" if isinstance(value, str) else "file"


Part = Annotated[Annotated[FilePart, Tag("file")] | Annotated[Template, Tag("text")], Discriminator(_part_tag)]
"""One part of a multipart body: a file, or text with holes."""


class Request(Strict):
    """What is sent. `json` may be null: whether there is a body is told by the keys that were written."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
    path: OptionalTemplate = None
    url: OptionalTemplate = None
    host: str = "base"
    query: TemplateMap = Field(default_factory=dict)
    headers: TextMap = Field(default_factory=dict)
    redirects: Annotated[Whole, Field(le=5)] = 0
    json_body: TemplateTree = Field(default=None, alias="json")
    form: FormTree = None
    multipart: dict[str, Part] | None = None
    file: Name | None = None
    text: OptionalTemplate = None
    content_type: str | None = None

    @property
    def body(self) -> str | None:
        """Which kind of body is sent: a key of `BODIES`."""
        return next((key for key, field in BODIES.items() if field in self.model_fields_set), None)

    @model_validator(mode="after")
    def _fits(self) -> "Request":
        if (self.path is None) == (self.url is None):
            raise expected("exactly one of path and url")
        if len([key for key, field in BODIES.items() if field in self.model_fields_set]) > 1:
            raise expected(f"at most one body: {', '.join(BODIES)}")
        if (self.text is None) != (self.content_type is None):
            raise expected("text and content_type together")
        if self.redirects and self.method != "GET":
            raise expected("redirects with GET only", ("redirects",))
        if self.path is not None and not self.path.startswith("/"):
            raise expected("a path that begins with /", ("path",))
        return self


class Answer(Strict, Generic[W]):
    """One entry of a list that is tried in order."""

    when: Matching = None
    word: W = Field(alias="is")
    reason: NoExpressions = ()
    note: str = ""
    after: Duration | None = None


class CommonAnswer(Answer[CommonWord]):
    """An answer of any call."""


class StepAnswer(Answer[StepWord]):
    """An answer of a step."""


class CreateAnswer(Answer[CreateWord]):
    """An answer of the create."""


class State(Answer[StateWord]):
    """An answer of the observe."""


class CancelAnswer(Answer[CancelWord]):
    """An answer of the cancel."""


class SourceAnswer(Answer[SourceWord]):
    """An answer of a collecting request."""


class LookupAnswer(Answer[LookupWord]):
    """An answer of a lookup."""


PAGES_WITHIN: Final = timedelta(minutes=10)
"""A list of pages that takes longer is not read to its end."""


class Pages(Strict):
    """How one page leads to the next."""

    next: NoExpressions = ()
    next_url: NoExpressions = ()
    count: NoExpressions = ()
    more: Matching = None
    items: NoExpressions = ()
    records: NoExpressions = ()
    limit: Positive = 10_000


class Step(Strict):
    """A call that runs ahead of another and saves values."""

    step: Name
    request: Request
    answers: Annotated[tuple[StepAnswer, ...], Field(min_length=1)]
    pages: Pages | None = None
    same: Matching = None
    save: ExpressionMap = Field(default_factory=dict)
    undo: Request | None = None


class Source(Strict):
    """Where an output comes from: a request, or an expression over what ended the waiting."""

    when: Matching = None
    inline: NoExpressions = ()
    request: Request | None = None
    pages: Pages | None = None
    answers: tuple[SourceAnswer, ...] = ()

    @model_validator(mode="after")
    def _one(self) -> "Source":
        if bool(self.inline) == (self.request is not None):
            raise expected("exactly one of inline and request")
        if self.inline and (self.pages or self.answers):
            raise expected("no pages and no answers beside inline")
        return self


class Verify(Strict):
    """What an output is checked against. A check without a value is recorded as not offered."""

    content_type: OptionalTemplate = None
    bytes: TemplateTree = None
    sha256: OptionalTemplate = None
    records: TemplateTree = None
    schema_: dict[str, JsonValue] | None = Field(default=None, alias="schema")
    required: tuple[Checkable, ...] = ()


class Output(Strict):
    """One stored result."""

    when: Matching = None
    each: NoExpressions = ()
    name: OptionalTemplate = None
    before: tuple[Step, ...] = ()
    source: Annotated[tuple[Source, ...], OneOrMore()] = Field(default=(), alias="from")
    format: Literal["binary", "json", "jsonl", "csv", "text"] = "binary"
    verify: Verify | None = None
    good_for: Lifetime = None
    refresh: Literal["none", "observe"] = "none"
    one_time: Flag = False


class Submitted(Strict):
    """What was submitted, to be added up with what came back."""

    file: Name | None = None
    count: NoExpressions = ()
    key: NoExpressions = ()


class ItemState(Answer[ItemWord]):
    """What one record says about one item."""


class ItemRead(Strict):
    """How the records of one output are read as items."""

    output: Name
    key: NoExpressions = ()
    states: Annotated[tuple[ItemState, ...], Field(min_length=1)]
    error: NoExpressions = ()


class Items(Strict):
    """Items within the results."""

    submitted: Submitted
    read: Annotated[tuple[ItemRead, ...], Field(min_length=1)]
    disagreement: Literal["attention", "record"] = "attention"


class Lookup(Strict):
    """One way of finding the job of a create whose outcome is unknown."""

    by: Literal["get", "list", "webhook"]
    request: Request | None = None
    answers: tuple[LookupAnswer, ...] = ()
    same: Matching = None
    pages: Pages | None = None
    match: Matching = None
    strength: Literal["exact", "heuristic"] | None = None
    proves_absence: Flag = False
    visible_within: Duration = Field(default_factory=lambda: parse_duration("30s"))
    wait: Duration | None = None
    job: ExpressionMap = Field(default_factory=dict)
