"""The standing of an operation: all that a rule may ask, as the entries of its stream lead to it.

* `domain/folding.py` is the only place where a standing changes.
* An attempt is *unproven* while its intent has no outcome, or its outcome does not prove that nothing was executed.
* Clocks are absolute instants, started by the entry that enters the state they belong to.
* The first terminal observation is kept for ever. Progress informs people and decides nothing.
"""

from datetime import datetime, timedelta
from typing import Literal, cast

from pydantic import Field

from domain.evidence import Frozen, Instant, Json, Opened, Output, Ref
from domain.facts import ContractFacts

State = Literal[
    "proposed", "awaiting_approval", "approved", "create_pending", "create_unknown", "reconciling", "accepted", "observing",
    "cancel_requested", "cancelling", "result_collecting", "succeeded", "failed", "cancelled", "denied", "rejected", "expired",
    "abandoned", "contract_violation", "result_timed_out", "cancellation_unconfirmed", "result_unavailable",
    "result_validation_failed", "outcome_undecided",
]  # fmt: skip

FINAL: frozenset[State] = frozenset({"succeeded", "failed", "cancelled", "denied", "rejected", "expired", "abandoned"})
PARKED: frozenset[State] = frozenset(
    {
        "contract_violation",
        "result_timed_out",
        "cancellation_unconfirmed",
        "result_unavailable",
        "result_validation_failed",
        "outcome_undecided",
    }
)
"""Attention whatever else is so; `create_unknown` joins them when nothing automatic is left."""
OVERDUE: tuple[State, ...] = ("result_timed_out", "cancellation_unconfirmed")
"""Parked by a clock while the job may go on: a wake allows one reading."""

HELD_READS_BEFORE_FLAG = 10
UNPROVEN_MEANINGS = frozenset({"ambiguous", "stuck", "in_flight", "violation", "unnamed"})
MARGIN_MS = 60_000
"""Skew and slack kept from the end of a token's window, on top of the total HTTP timeout."""
LOST_ATTEMPT = 0
"""Attempts count from 1; this one stands for whatever a regressed ledger no longer shows."""


class Attempt(Frozen):
    """One attempt to create: its intent's entry, and until when it may be sent."""

    generation: int
    attempt: int
    seq: int
    at: Instant
    send_until: Instant | None = None


class Leftover(Frozen):
    """What a step of one generation left at the provider and can be undone; `steps`: what was saved up to it, to undo it with."""

    generation: int
    step: str
    steps: dict[str, Ref] = Field(default_factory=dict[str, Ref])

    @property
    def saved(self) -> Ref | None:
        """What the step itself saved."""
        return self.steps.get(self.step)


class Flag(Frozen):
    """Something a human should see while work goes on."""

    word: str
    since: Instant
    why: str


class Verdict(Frozen):
    """The first terminal observation; kept for ever. `call` is the call whose answer it was. `undecided`: the items decide."""

    verdict: Literal["succeeded", "partial", "failed", "cancelled"]
    at: Instant
    began: Instant
    call: Literal["create", "observe"]
    seq: int
    observed: Ref | None = None
    undecided: bool = False


class Renewed(Frozen):
    """A later reading of the same verdict, whose answer has newer addresses. It changes nothing of how the job ended."""

    began: Instant
    observed: Ref


class Answered(Frozen):
    """The recorded verdict on one request id."""

    accepted: bool
    why: str | None
    seq: int


def progress_text(progress: Json) -> str | None:
    """Progress as people read it: `146/500` or `29%`. It informs; it never decides."""
    match progress:
        case {"completed": completed, "total": total}:
            return f"{completed}/{total}"
        case {"percent": percent}:
            return f"{percent}%"
        case {"completed": completed}:
            return str(completed)
        case _:
            return None


_OUTCOMES = ("succeeded", "failed", "cancelled", "expired", "unprocessed", "missing", "unread", "double", "unknown")


def counts_text(counts: object) -> str | None:
    """Counts, or what was counted of items, as people read them: `498 succeeded, 2 failed of 500`. What there is none of is left out."""
    if not isinstance(counts, dict):
        return None
    counts = cast("dict[str, Json]", counts)
    parts = [f"{counts[word]} {word}" for word in _OUTCOMES if counts.get(word)]
    parts = parts or [f"{counts[word]} {word}" for word in ("succeeded", "done") if word in counts][:1]
    total = counts.get("submitted") if "submitted" in counts else counts.get("total")
    return " of ".join(filter(None, [", ".join(parts), None if total is None else str(total)])) or None


class Standing(Frozen):
    """See the module's docstring. Fields with `None` or empty mean: not yet.

    `sensitive`: payloads with values that were hidden and that later calls need; `apart`: all that is pruned once this is final.
    `missing`: what it needs and cannot be had any more, until something moves it on.
    """

    opened: Opened
    facts: ContractFacts
    state: State = "proposed"
    state_since: Instant
    attention_since: Instant | None = None
    flags: tuple[Flag, ...] = ()
    round: int = 0
    generation: int = 1
    attempts: int = 0
    open_attempt: Attempt | None = None
    unproven: tuple[tuple[int, int], ...] = ()
    first_intent_at: Instant | None = None
    last_intent_at: Instant | None = None
    newest_send_until: Instant | None = None
    request: Ref | None = None
    steps: dict[str, Ref] = Field(default_factory=dict[str, Ref])
    leftovers: tuple[Leftover, ...] = ()
    unnamed: bool = False
    cancel_wanted: bool = False
    cancel_forced: bool = False
    cancel_sent: bool = False
    cancel_acknowledged: bool = False
    job: dict[str, Json] | None = None
    job_at: Instant | None = None
    compare_due: bool = False
    seen: bool = False
    verdict: Verdict | None = None
    renewed: Renewed | None = None
    reconcile_left: int = 0
    reconcile_entry: int = 0
    unread_late: tuple[int, ...] = ()
    candidates: tuple[dict[str, Json], ...] = ()
    deadlines: dict[str, Instant] = Field(default_factory=dict[str, Instant])
    next_at: Instant | None = None
    tries: int = 0
    held_run: int = 0
    reads: int = 0
    last_reading_turn: int = -1
    collect_attempts: int = 0
    staging: str | None = None
    invalid_results: int = 0
    remote_read: str | None = None
    remote_state: str | None = None
    provider_at: str | None = None
    progress: dict[str, Json] | None = None
    counts: dict[str, int] | None = None
    counts_problem: str | None = None
    why: str | None = None
    outputs: tuple[Output, ...] = ()
    outcome: Literal["whole", "partial", "none"] | None = None
    items: dict[str, Json] | None = None
    failed_items: Output | None = None
    problems: tuple[str, ...] = ()
    violation: dict[str, Json] | None = None
    retried_by: str | None = None
    sensitive: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    missing: str | None = None
    owners: dict[str, int] = Field(default_factory=dict[str, int])
    epoch: int = 0
    turn: int = 0
    answered: dict[str, Answered] = Field(default_factory=dict[str, Answered])
    refusals: int = 0

    @property
    def final(self) -> bool:
        """Nothing leaves this state."""
        return self.state in FINAL

    @property
    def lookup_left(self) -> bool:
        """Something automatic may still settle an unknown create."""
        return self.missing is None and (self.reconcile_left > 0 or bool(self.unread_late))

    @property
    def attention(self) -> bool:
        """The operation waits for a human; nothing with an effect is sent meanwhile."""
        return self.state in PARKED or (self.state == "create_unknown" and not self.lookup_left)

    @property
    def clean(self) -> bool:
        """No attempt of any generation is unproven, and no job is known."""
        return not self.unproven and self.open_attempt is None and self.job is None and not self.unnamed

    @property
    def uncertain(self) -> bool:
        """An attempt of this generation is unproven."""
        return any(generation == self.generation for generation, _ in self.unproven)

    @property
    def undo_due(self) -> tuple[Leftover, ...]:
        """What is to be undone before anything else is sent, the newest first.

        Of generations that are over and made nothing: while an attempt of one is unproven, its job may be at work with what is left.
        """
        taken = {generation for generation, _ in self.unproven}
        if self.open_attempt is not None:
            taken.add(self.open_attempt.generation)
        over = [one for one in self.leftovers if self.final or one.generation < self.generation]
        return tuple(one for one in reversed(over) if one.generation not in taken)

    @property
    def absence_provable(self) -> bool:
        """That the provider shows nothing can prove that nothing was made.

        Not of what was taken without an id; nor where entries are lost, which may have been of generations with other tokens.
        """
        return not self.unnamed and not self.entries_lost

    @property
    def entries_lost(self) -> bool:
        """The ledger no longer holds all that was recorded of this operation, and a human has accepted that."""
        return any(attempt == LOST_ATTEMPT for _, attempt in self.unproven)

    @property
    def effect(self) -> Literal["none", "possible", "made"]:
        """Whether the provider has done something for us, as far as evidence goes."""
        if self.job is not None or self.unnamed or (self.verdict is not None and self.verdict.call == "create"):
            return "made"
        return "none" if self.clean else "possible"

    @property
    def ends_without_result(self) -> bool:
        """The job has ended, and what is left to collect changes nothing of how."""
        return self.verdict is not None and self.verdict.verdict in {"failed", "cancelled"}

    @property
    def counted(self) -> str | None:
        """What came of its items, in words: as counted in the results, else as the provider counts."""
        return counts_text(self.items) or counts_text(self.counts)

    @property
    def disagreements(self) -> tuple[str, ...]:
        """What does not agree in the outcome."""
        found = (self.items or {}).get("disagreements")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @property
    def job_id(self) -> str | None:
        """The provider's id of the job, as text."""
        found = (self.job or {}).get("id")
        return None if found is None else str(found)

    @property
    def phase(self) -> Literal["fresh", "seen", "cancelling"]:
        """What a contract may ask about the job when it reads an answer."""
        return "cancelling" if self.cancel_acknowledged else ("seen" if self.seen else "fresh")

    @property
    def token_until(self) -> datetime | None:
        """Until when the token protects, less the margin: counted from the earliest intent of the generation."""
        window = self.facts.token_window_ms
        if window is None or self.first_intent_at is None:
            return None
        return self.first_intent_at + timedelta(milliseconds=window - self.facts.http_total_ms - MARGIN_MS)
