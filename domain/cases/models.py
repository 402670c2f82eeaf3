"""Cases: recorded exchanges with a provider, and what each must be read as; and stories, which are cases in a row.

* A case is read by the functions that production reads by (`domain/cases/running.py`); a story is played against a loopback double.
* An answer's texts may hold what only we know while it runs: `${mark}`, `${token}`, `${operation.id}`, `${window.from}`; `$${` writes `${`.
* A file of cases belongs to one contract and stands beside it: `NAME.cases.yaml` beside `NAME.yaml`.
"""

from typing import Annotated, Literal, get_args

from pydantic import Field, JsonValue, model_validator

from domain.language.grammar import ContractName, Flag, Label, Name, OneOrMore, Positive, Strict, Whole, Word, expected
from domain.standing import State

Headers = dict[str, Annotated[tuple[str, ...], OneOrMore()]]
JsonMap = dict[str, JsonValue]


class Ended(Strict):
    """The answer that ended the waiting: the root `observed`, its headers by their wire names."""

    call: Literal["create", "observe"] = "observe"
    status: Whole = 200
    headers: Headers = Field(default_factory=dict)
    body: JsonValue = None


class PageGiven(Strict):
    """Which page is asked for, and what led to it: a cursor, or an address. One of the numbers says the other."""

    next: JsonValue = None
    index: Whole | None = None
    number: Positive | None = None

    @model_validator(mode="after")
    def _fits(self) -> "PageGiven":
        if self.index is not None and self.number is not None and self.number != self.index + 1:
            raise expected("a number that is one more than index", ("number",))
        return self

    @property
    def root(self) -> JsonMap:
        """The root `page`."""
        later = 1 if self.next is not None else 0
        index = self.index if self.index is not None else later if self.number is None else self.number - 1
        return {"next": self.next, "index": index, "number": index + 1}


class Given(Strict):
    """What is known before the exchange. A part that a case names stands in place of the example's part of that name."""

    input: JsonValue = None
    target: dict[str, str] = Field(default_factory=dict)
    files: dict[Name, str] = Field(default_factory=dict)
    job: JsonMap = Field(default_factory=dict)
    steps: dict[Name, JsonMap] = Field(default_factory=dict)
    phase: Literal["fresh", "seen", "cancelling"] = "seen"
    observed: Ended | None = None
    page: PageGiven = Field(default_factory=PageGiven)
    each: JsonValue = None
    item: JsonValue = None

    def over(self, example: "Given") -> "Given":
        """The example with the parts of this one."""
        return example.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


class Sent(Strict):
    """What the request must be. `*` fits any value; what is not named may be anything."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] | None = None
    path: str | None = None
    url: str | None = None
    query: JsonMap | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    json_body: JsonValue = Field(default=None, alias="json")
    form: JsonMap | None = None
    text: str | None = None
    multipart: JsonMap | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Sent":
        if len(self.model_fields_set & {"json_body", "form", "text", "multipart"}) > 1:
            raise expected("at most one body: json, form, text, multipart")
        if self.path is not None and self.url is not None:
            raise expected("at most one of path and url")
        return self


class Reply(Strict):
    """An answer: status, headers by their wire names, and at most one body."""

    status: Annotated[Whole, Field(ge=100, le=599)]
    headers: Headers = Field(default_factory=dict)
    json_body: JsonValue = Field(default=None, alias="json")
    text: str | None = None
    base64: str | None = None

    @property
    def body(self) -> Literal["json", "text", "base64"] | None:
        """Which kind of body it has."""
        written = self.model_fields_set
        return "json" if "json_body" in written else "text" if self.text is not None else "base64" if self.base64 is not None else None

    @model_validator(mode="after")
    def _fits(self) -> "Reply":
        if len(self.model_fields_set & {"json_body", "text", "base64"}) > 1:
            raise expected("at most one body: json, text, base64")
        return self


class Seen(Strict):
    """What more may be said of a reading."""

    job: JsonMap | None = None
    saved: JsonMap | None = None
    counts: dict[str, Whole] | None = None
    verdict: str | None = None
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    items: Whole | dict[str, Whole] | None = None
    found: tuple[str | JsonMap, ...] | None = None
    next: JsonValue = None


class Case(Seen):
    """One exchange. `answer: lost` is one that never came; without `answer` nothing is asked (an inline output, an item)."""

    name: Label
    source: str = ""
    call: str
    given: Given = Field(default_factory=Given)
    sent: Sent | None = None
    answer: Annotated[Reply | None, Word("lost", None)] = None
    means: str

    @property
    def lost(self) -> bool:
        """Whether the answer is one that never came."""
        return "answer" in self.model_fields_set and self.answer is None


class Facts(Strict):
    """Facts of one stored output."""

    records: Whole | None = None
    bytes: Whole | None = None
    sha256: str | None = None


class Result(Facts):
    """Facts of the result: of the only output, or of outputs by name; counts of items by word."""

    outputs: dict[str, Facts] = Field(default_factory=dict)
    items: dict[str, Whole] = Field(default_factory=dict)
    outcome: Literal["whole", "partial", "none"] | None = None


class Story(Strict):
    """Cases in the order in which the requests must arrive, and where the operation is in the end."""

    name: Label
    exchanges: Annotated[tuple[str, ...], Field(min_length=1)]
    ends: str
    given: Given = Field(default_factory=Given)
    cancel_after: str | None = None
    force: Flag = False
    result: Result | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Story":
        if self.ends not in get_args(State):
            raise expected(f"a state, one of {', '.join(get_args(State))}", ("ends",))
        if self.cancel_after is not None and self.cancel_after not in self.exchanges:
            raise expected("one of the exchanges", ("cancel_after",))
        if self.force and self.cancel_after is None:
            raise expected("cancel_after, for a cancel that is forced", ("force",))
        return self


class Cases(Strict):
    """All cases and stories of one contract."""

    contract: ContractName
    about: str = ""
    example: Given = Field(default_factory=Given)
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]
    stories: tuple[Story, ...] = ()

    def named(self, name: str) -> Case:
        """The case of that name. Raises KeyError."""
        return {case.name: case for case in self.cases}[name]

    def given(self, case: Case, story: Story | None = None) -> Given:
        """All that is known before the exchange of a case."""
        return case.given.over(story.given.over(self.example) if story else self.example)
