"""The kinds of evidence, each with a closed set of meanings.

* Evidence is a fact about something that happened: intent, decision, exchange, reading, result, clock. It never holds a
  secret or a whole sensitive payload: values stand as digests, salted commitments, or bounded printable text.
* Encoding is total. What comes from outside was made bounded and printable where it was read; `recordable` is the last gate,
  so that no answer of a provider can make itself unrecordable (RFC 8785 refuses integers of 2^53 and more, numbers that are
  not finite and lone surrogates; PostgreSQL's text refuses NUL).
* `at` is UTC with milliseconds, from the clock of whoever saw it. Several clocks write one stream: it is not monotonic.
* `key` of a piece of evidence, `kind.meaning`, is what the tables of `domain/lifecycle.py` are written in.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, TypeAdapter

from domain.errors import MissingFault

Json = JsonValue
MAX_TEXT = 1024
MAX_DEPTH = 64


def instant(moment: datetime) -> datetime:
    """`moment` in UTC, cut to milliseconds: the precision that the record keeps."""
    moment = moment.astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def instant_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


Count = Annotated[int, Field(ge=0, lt=2**53)]
"""A number that comes back from its entry as the number it was."""

Instant = Annotated[datetime, PlainSerializer(instant_text, return_type=str)]


def bounded(text: str, limit: int = MAX_TEXT) -> str:
    """`text` as printable text of at most `limit` characters; what had to be replaced or cut is marked."""
    clean = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def recordable(value: object) -> Json:
    """`value` as JSON that canonical JSON and both databases can carry. Total: what does not fit becomes text."""
    return _recordable(value, 0)


def _recordable(value: object, depth: int) -> Json:
    if type(value) is str and value.isascii() and "\0" not in value:
        return value  # almost everything is this
    match value:
        case None | bool():
            return value
        case int():
            return value if -(2**53) < value < 2**53 else (str(value) if value.bit_length() < 4096 else "integer out of range")
        case float():
            # Canonical JSON writes a whole number without a point: a large one would come back as an integer it refuses.
            return value if math.isfinite(value) and not (value.is_integer() and 2**53 <= abs(value) < 1e21) else str(value)
        case str():
            return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")
        case dict() | Mapping() | list() | tuple() if depth == MAX_DEPTH:
            return "nested too deeply"
        case dict() | Mapping():  # a dict is one; asked about by itself, that is known sooner
            named = cast("Mapping[object, object]", value).items()
            return {str(_recordable(str(name), depth)): _recordable(item, depth + 1) for name, item in named}
        case list() | tuple():
            return [_recordable(item, depth + 1) for item in cast("list[object]", value)]
        case datetime():
            return instant_text(value)
        case _:
            return bounded(str(value))


class Frozen(BaseModel):
    """A value that grows by fields with defaults and ignores fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Ref(Frozen):
    """Bytes kept in `payloads`, by SHA-256."""

    digest: str
    size: int


class Commitment(Frozen):
    """A guessable value: what commits to it, and where value and salt are kept until erased."""

    commit: str
    ref: str
    size: int


class Http(Frozen):
    """What is recorded of one exchange: no secret, no body. `body_kept`: the body is in the result store, under `object_key`."""

    method: str
    url: str
    began: Instant
    ended: Instant
    status: int | None = None
    no_answer: str | None = None
    sent: bool = True
    fault: str | None = None
    headers: dict[str, str] = {}
    body_sha256: str | None = None
    body_bytes: int = 0
    body_kept: bool = False


def object_key(tenant: str, stream: str, sha256: str) -> str:
    """Where in the result store an output of an operation is, a list of its items, or the kept body of an answer."""
    return f"{tenant}/{stream}/{sha256}"


class FileFacts(Frozen):
    """A big input, as it was stored before entry 0. `records` where its media says how they are counted."""

    sha256: str
    bytes: Count
    media: str
    records: Count | None = None


def file_key(tenant: str, sha256: str) -> str:
    """Where in the result store a tenant's file is. No operation has an `@` where this has one, so none shares the place."""
    return f"{tenant}/@files/{sha256}"


class Words(Frozen):
    """The provider's own words, bounded and printable; never trusted, only shown."""

    reason: str | None = None
    code: str | None = None
    message: str | None = None
    request_id: str | None = None


class RequestFacts(Frozen):
    """A frozen request: digest of the exact body bytes, and where the whole of it is kept."""

    method: str
    url: str
    body_sha256: str
    body_bytes: int
    ref: str


class StepSeen(Frozen):
    """What a step came to that ran ahead of a reading, a cancel or a collecting. It has no entry of its own."""

    step: str
    word: str = "default"
    pages: Count = 1
    http: Http | None = None
    words: Words = Words()


class Check(Frozen):
    """One check of a result. `verdict`: `ok`, `differs`, or `not_offered` (the provider gave nothing to check against)."""

    check: str
    verdict: Literal["ok", "differs", "not_offered"]
    expected: str | None = None
    found: str | None = None


class Output(Frozen):
    """One stored object of a result. `key` is its place in the result store, `name` ours, `size` in bytes."""

    name: str
    key: str
    sha256: str
    size: int
    media: str | None = None
    records: int | None = None
    checks: tuple[Check, ...] = ()


class Fact(Frozen):
    """What every piece of evidence has: when and by whom it was seen. `sensitive`: what was hidden in it and is needed later."""

    at: Instant
    actor: str
    sensitive: Ref | None = None

    @property
    def key(self) -> str:
        """`kind.meaning`."""
        fields = cast("dict[str, str]", self.__dict__)
        return f"{fields['kind']}.{fields['meaning']}"

    def body(self) -> dict[str, Json]:
        """The evidence's own fields for its entry: defaults are left out, `at`, `actor` and `kind` stand in the entry."""
        dumped = self.model_dump(mode="json", exclude={"at", "actor", "kind"}, exclude_defaults=True)
        dumped["meaning"] = cast("dict[str, str]", self.__dict__)["meaning"]
        return cast("dict[str, Json]", recordable(dumped))


class Opened(Fact):
    """Entry 0: what is asked, of whom, for whom."""

    kind: Literal["opened"] = "opened"
    meaning: Literal["opened"] = "opened"
    key_: str | None = None
    contract: str
    version: int
    contract_digest: str
    facts: dict[str, Json]
    target: dict[str, str] = {}
    origin: str
    credential: dict[str, str] = {}
    tenant: str
    principal: str
    requesters: tuple[str, ...]
    started_by: Literal["human", "agent"] = "human"
    reason: str | None = None
    trace_id: str
    fingerprint: str
    salt: Ref
    input: Commitment
    effect: dict[str, Json]
    retry_of: str | None = None
    files: dict[str, FileFacts] = {}


class OwnerClaim(Fact):
    """A Temporal run took the stream: epoch is the stored one plus one."""

    kind: Literal["owner"] = "owner"
    meaning: Literal["claimed"] = "claimed"
    run_id: str
    epoch: int


class Policy(Fact):
    """What policy said of the exact action. `covered`: a human is needed, and a live approval of this very action is there."""

    kind: Literal["policy"] = "policy"
    meaning: Literal["unattended", "needs_human", "covered", "no"]
    action: str = "execute"
    action_hash: str | None = None
    policies: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    bundle: str
    round: int = 0
    generation: int = 1
    expires_at: Instant | None = None
    why: str | None = None


DecisionMeaning = Literal[
    "approve", "reject", "cancel", "adopt", "look", "replay", "retry_create", "resume", "recollect",
    "accept_succeeded", "accept_failed", "abandon", "accept_ledger", "stop", "wake", "refused",
]  # fmt: skip


class Decision(Fact):
    """What a person said. A refused one has meaning `refused`, the verb that was asked for, and why not."""

    kind: Literal["decision"] = "decision"
    meaning: DecisionMeaning
    request_id: str
    verb: str
    by: str
    reason: str | None = None
    arguments: dict[str, Json] = {}
    authenticated: bool = False
    source: str = "signal"
    force: bool = False
    until: Instant | None = None
    action_hash: str | None = None
    policies: tuple[str, ...] = ()
    bundle: str | None = None
    why: str | None = None


class Intent(Fact):
    """What is about to be done; durable before any byte leaves. `send_until`: after this instant it is not sent."""

    kind: Literal["intent"] = "intent"
    meaning: Literal["create", "cancel", "collect", "lookup", "step", "undo"]
    generation: int = 1
    attempt: int = 1
    request: RequestFacts | None = None
    send_until: Instant | None = None
    staging: str | None = None
    entry: int | None = None
    step: str | None = None
    forced: bool = False


class Closed(Fact):
    """Common to what closes an attempt of a create."""

    generation: int = 1
    attempt: int = 1
    word: str = "default"
    verdict: Literal["succeeded", "partial", "failed", "cancelled"] | None = None
    job: dict[str, Json] | None = None
    http: Http | None = None
    words: Words = Words()
    next_at: Instant | None = None
    observed: Ref | None = None
    recovered: Literal["lost", "recovered"] | None = None
    violation: dict[str, Json] | None = None


CreateMeaning = Literal[
    "accepted", "ambiguous", "stuck", "unnamed", "finished", "in_flight", "violation", "refused", "not_executed", "not_sent"
]


class CreateExchange(Closed):
    """What one attempt to create came to."""

    kind: Literal["exchange"] = "exchange"
    meaning: CreateMeaning


class Late(Closed):
    """The outcome of an attempt whose owner had been replaced. As a note: kept; as a move (`of`): read by the owner."""

    kind: Literal["late"] = "late"
    meaning: CreateMeaning
    of: int | None = None


class Observation(Fact):
    """What a status read showed. `began` decides whether it can contradict what came before.

    `counts_problem`: why the counts that it held are none. `undecided`: an `ended` that no counts decide.
    """

    kind: Literal["reading"] = "reading"
    meaning: Literal["going", "not_visible", "held", "terminal", "gone", "refused", "failed", "violation"]
    word: str = "default"
    verdict: Literal["succeeded", "partial", "failed", "cancelled"] | None = None
    remote_state: str | None = None
    provider_at: str | None = None
    progress: dict[str, Json] | None = None
    counts: dict[str, Count] | None = None
    counts_problem: str | None = None
    undecided: bool = False
    began: Instant
    http: Http | None = None
    words: Words = Words()
    next_at: Instant | None = None
    observed: Ref | None = None
    woken: bool = False
    turn: int = 0
    violation: dict[str, Json] | None = None
    before: tuple[StepSeen, ...] = ()


class CancelAnswer(Fact):
    """What the provider said to a cancel. Never a confirmation: only a status read confirms."""

    kind: Literal["cancel_answer"] = "cancel_answer"
    meaning: Literal["taken", "read_again", "unsure", "again", "refused", "violation"]
    word: str = "default"
    http: Http | None = None
    words: Words = Words()
    next_at: Instant | None = None
    recovered: Literal["lost", "recovered"] | None = None
    violation: dict[str, Json] | None = None
    before: tuple[StepSeen, ...] = ()


class Lookup(Fact):
    """What a reconcile entry showed. `began` decides whether none is proof. `exhausted`: the next entry is due."""

    kind: Literal["lookup"] = "lookup"
    meaning: Literal["found", "candidates", "none", "absent", "failed", "violation"]
    entry: int = 0
    word: str = "default"
    began: Instant | None = None
    exhausted: bool = False
    job: dict[str, Json] | None = None
    candidates: tuple[dict[str, Json], ...] = ()
    http: Http | None = None
    words: Words = Words()
    next_at: Instant | None = None
    violation: dict[str, Json] | None = None


class StepOutcome(Fact):
    """What a step ahead of the create came to, or its undo: taken (`undone`), not taken yet, or given up (`leftover`).

    `saved`: the values for later calls, kept in `payloads` behind salt and never here; of an undo, those that name what it takes back.
    """

    kind: Literal["step"] = "step"
    meaning: Literal["done", "refused", "again", "violation", "undone", "undo_again", "leftover"]
    step: str
    generation: int = 1
    word: str = "default"
    pages: Count = 1
    saved: Ref | None = None
    http: Http | None = None
    words: Words = Words()
    next_at: Instant | None = None
    violation: dict[str, Json] | None = None


class ResultOutcome(Fact):
    """What collecting came to. `empty`: outputs that had nothing to be stored. `checks`: those over several outputs.

    `kept`: what was fine stays staged for the next attempt. `failed_items`: every item that did not succeed, as JSON Lines.
    """

    kind: Literal["result"] = "result"
    meaning: Literal["verified", "none", "empty", "invalid", "again", "refused", "gone"]
    word: str = "default"
    outcome: Literal["whole", "partial", "none"] | None = None
    outputs: tuple[Output, ...] = ()
    items: dict[str, Json] | None = None
    failed_items: Output | None = None
    disagrees: bool = False
    cut: bool = False
    empty: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    kept: bool = False
    problems: tuple[str, ...] = ()
    http: Http | None = None
    words: Words = Words()
    next_at: Instant | None = None
    before: tuple[StepSeen, ...] = ()


class Callback(Fact):
    """An authenticated delivery that names a job under our own key."""

    kind: Literal["callback"] = "callback"
    meaning: Literal["accepted"] = "accepted"
    job: dict[str, Json] | None = None
    delivery: str


class Clock(Fact):
    """A deadline passed. Each clock names itself."""

    kind: Literal["clock"] = "clock"
    meaning: Literal["approval", "create", "lookup", "result", "cancel", "collect"]
    deadline: Instant


class Regressed(Fact):
    """A human accepted a ledger that does not hold what Temporal knew of."""

    kind: Literal["regressed"] = "regressed"
    meaning: Literal["accepted"] = "accepted"
    known_seq: int
    known_hash: str
    by: str
    reason: str | None = None


class Refusals(Fact):
    """How many further decisions of this round were refused after the twentieth."""

    kind: Literal["refusals"] = "refusals"
    meaning: Literal["counted"] = "counted"
    count: int
    last_request_id: str


class Linked(Fact):
    """Another operation belongs with this one."""

    kind: Literal["linked"] = "linked"
    meaning: Literal["retried_by", "retry_of"]
    other: str


class Erased(Fact):
    """Payloads were erased, by whom and why."""

    kind: Literal["erased"] = "erased"
    meaning: Literal["erased"] = "erased"
    refs: tuple[str, ...]
    by: str
    reason: str | None = None


class Missing(Fact):
    """Something that was kept because an operation needs it cannot be had any more. `what` it is, in our words; `under` which digest."""

    kind: Literal["missing"] = "missing"
    meaning: Literal["needed"] = "needed"
    what: str
    fault: MissingFault = "absent"
    under: str | None = None


class Pruned(Fact):
    """What retention removed."""

    kind: Literal["pruned"] = "pruned"
    meaning: Literal["pruned"] = "pruned"
    refs: tuple[str, ...]


Evidence = (
    Opened | OwnerClaim | Policy | Decision | Intent | CreateExchange | Late | Observation | CancelAnswer | Lookup | StepOutcome
    | ResultOutcome | Callback | Clock | Regressed | Refusals | Linked | Erased | Pruned | Missing
)  # fmt: skip

_ADAPTER: TypeAdapter[Evidence] = TypeAdapter(Annotated[Evidence, Field(discriminator="kind")])

FROM_OUTSIDE = frozenset({"exchange", "late", "reading", "cancel_answer", "lookup", "step", "result", "callback"})
"""Kinds that report what a provider did. A pair that the tables do not determine is then a flagged note, never an error."""


def parse_evidence(*, at: str, actor: str, kind: str, body: Mapping[str, Json]) -> Evidence:
    """The evidence that an entry holds. Raises pydantic.ValidationError if it is not one of the closed set."""
    return _ADAPTER.validate_python({**body, "at": at, "actor": actor, "kind": kind})
