"""Every workflow input, output and signal payload. Messages grow: new fields have defaults, unknown ones are ignored.

* A workflow knows an operation by id and by the newest entry it has been told of (`Known`), nothing else. State, contract,
  input and deadlines are read from the ledger by whoever needs them.
* A step's arguments are hints: what may be done is decided from the ledger, inside the activity.
* Signals arrive as raw text: what does not decode must be recorded as refused, not dropped.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from domain.evidence import Instant, instant

MAX_SIGNAL_BYTES = 16 * 1024
MAX_REASON = 1024
PERSON = r"[^\x00-\x1f\x7f]{1,128}"
"""How a person is named, wherever one is."""
CALLERS_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
"""An id, key or tenant that a caller gives."""

OPERATION_WORKFLOW = "SakshiOperation"
QUEUE_LEDGER = "sakshi-ledger"
QUEUE_EFFECTS = "sakshi-effects"
QUEUE_READS = "sakshi-reads"
"""Of lookups. Other readings were on it once, and a running installation may still have some there: its name stays."""


class Message(BaseModel):
    """Frozen, and tolerant of fields that a newer writer added."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Known(Message):
    """The newest entry that someone outside the ledger remembers: a witness."""

    seq: int
    hash: str


class OperationInput(Message):
    """The only input of an operation's workflow, also at continue-as-new.

    `woken`: a wake had come to the run before and was not looked into yet. `fresh`: the stream had its first entry only, so that
    the proposal is to be judged; judging reads the head anyway.
    """

    id: str
    known: Known | None = None
    woken: bool = False
    fresh: bool = False


class Card(Message):
    """What the workflow shows of an operation: in the query, in the Temporal UI and in its search attributes."""

    contract: str = ""
    tenant: str = ""
    summary: str = ""
    job: str | None = None
    why: str | None = None
    remote_state: str | None = None
    progress: str | None = None
    counts: str | None = None
    effect: str | None = None
    choices: tuple[str, ...] = ()


class Head(Message):
    """The newest entry of a stream, and what it leads to.

    `until`: the deadline that bounds the step. `wake_reads`: parked, and a wake allows one reading.
    """

    state: str
    seq: int
    hash: str
    step: Literal["judge", "inbox", "create", "reconcile", "observe", "cancel", "collect", "undo", "done"]
    until: Instant | None = None
    http_total_ms: int = 90_000
    attention: bool = False
    wake_reads: bool = False
    card: Card = Card()

    @property
    def final(self) -> bool:
        """Nothing more will be done."""
        return self.step == "done"

    @property
    def known(self) -> Known:
        """This head as a witness for the next step."""
        return Known(seq=self.seq, hash=self.hash)


class StepInput(Message):
    """Argument of every activity that does a step. Identity is (stream, turn, known); the rest are hints.

    `at` is the workflow's clock when it scheduled the step. `wake`: a signal said that something may have changed.
    """

    id: str
    turn: int
    known: Known | None = None
    wake: bool = False
    at: Instant | None = None


class Received(Message):
    """One signal as it arrived. `body` is its undecoded JSON text, cut at MAX_SIGNAL_BYTES (`size` is the whole)."""

    kind: str
    body: str = ""
    size: int = 0
    native: str | None = None
    event: int = 0


class JudgeDecisionInput(Message):
    """Argument of `judge_decision`: one received message, to be verified, judged and recorded.

    `unlisted`: how many refusals before it were only counted. `regressed`: the ledger does not hold this.
    """

    id: str
    turn: int
    known: Known | None = None
    received: Received
    unlisted: int = 0
    regressed: Known | None = None
    at: Instant | None = None


class JudgedDecision(Message):
    """What became of a message. Not `listed`: refused, and only counted. `waits`: not judged yet."""

    head: Head
    accepted: bool
    why: str | None = None
    listed: bool = True
    waits: bool = False


class ClockInput(Message):
    """Argument of `record_clock`: a deadline that passed while nothing ran."""

    id: str
    turn: int
    known: Known | None = None
    clock: Literal["approval"]
    at: Instant | None = None


RequestId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$")]
Person = Annotated[str, StringConstraints(pattern=f"^{PERSON}$")]
Reason = Annotated[str, StringConstraints(max_length=MAX_REASON)]
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Instants up to here can be reckoned with: spans and margins are added to them."""


def _reckonable(moment: datetime) -> datetime:
    """A message that was decoded must be recordable: a moment of no zone, or that is none in UTC, would never be."""
    if moment.tzinfo is None:
        raise ValueError("an instant has a zone")
    if moment.replace(tzinfo=UTC) > LATEST - timedelta(days=1):
        raise ValueError("an instant lies before the year 9000")
    try:
        return instant(moment)
    except OverflowError:
        raise ValueError("no instant") from None


Until = Annotated[Instant, AfterValidator(_reckonable)]


class CancelRequest(Message):
    """Payload of the signal `cancel`."""

    request_id: RequestId
    by: Person
    reason: Reason = ""
    force: bool = False


class ApprovalDecision(Message):
    """Payload of the signal `decide`: consent, or refusal, for the action with exactly this hash."""

    request_id: RequestId
    by: Person
    decision: Literal["approve", "reject"]
    action_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    reason: Reason = ""


class Resolution(Message):
    """Payload of the signal `resolve`: what a human chose for an operation in attention."""

    request_id: RequestId
    by: Person
    choice: Literal[
        "adopt", "look", "replay", "retry_create", "resume", "cancel", "recollect",
        "accept_succeeded", "accept_failed", "abandon", "accept_ledger",
    ]  # fmt: skip
    reason: Reason = ""
    arguments: dict[str, JsonValue] = {}
    until: Until | None = None
    force: bool = False


class WakeHint(Message):
    """Payload of the signal `wake`: something may have changed at the provider. Never evidence."""

    request_id: Annotated[str, Field(max_length=128)] = ""
    source: Annotated[str, Field(max_length=128)] = ""
