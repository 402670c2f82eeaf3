"""The outside world, on one page. Activities speak to these Protocols and import no library that does I/O.

* `Ledger`: the append-only store of evidence. An append is durable when it returns.
* `Provider`: one HTTP exchange, or one streamed answer. Never retries; never raises for what a provider does.
* `ResultStore`: objects by key, visible only when whole and verified.
* `Gate`: judges the exact effect. Never raises: whatever goes wrong is `no`.
* `Runs`: which Temporal run of an operation is the current one; and waking it.
* `Clocks`: the two clocks, so that tests can hold them.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.authority import Judgement, Question
from domain.chain import Entry
from domain.evidence import Evidence, Opened
from domain.exchange import Answer, CallPolicy, Exchange, Fault, NoAnswer, Request
from domain.messages import Known
from domain.standing import Standing


@dataclass(frozen=True, slots=True)
class Owner:
    """Who appends moves and stays: a Temporal run, and the number of the step it is at."""

    run_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class Record:
    """A stream as it stands: its newest entry and the standing it leads to."""

    stream: str
    seq: int
    hash: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Opening:
    """All that opens a stream in one transaction. `contract` is the canonical contract, pinned by its digest."""

    stream: str
    evidence: Opened
    contract: bytes
    payloads: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """What opening came to: `created` is False if an equal operation was there already."""

    record: Record
    created: bool


Decide = Callable[[Standing], Sequence[Evidence]]
"""Called inside the transaction with the standing as it is then; returns what to append, in order. May be called again if
the transaction has to be repeated, so it has no effect of its own."""


class Ledger(Protocol):
    """The append-only store of evidence."""

    @property
    def ledger_id(self) -> str:
        """128 random bits made with the ledger, in hexadecimal."""
        ...

    async def open(self, opening: Opening) -> OpenedStream:
        """Reserve id and key, store the payloads, pin the contract and write entry 0, all or nothing.

        If the id, or the key for that tenant and contract, is taken: the existing stream if tenant, principal and
        fingerprint are equal (the fingerprint is computed anew under the existing stream's salt by the caller, see
        `salt_for`), else Refused, which tells nothing of the existing one. A contract name and version that an operation has
        used can't change its digest (Refused), version 0 excepted.
        """
        ...

    async def salt_for(self, *, stream: str, tenant: str, contract: str, key: str | None) -> bytes | None:
        """The salt of the stream that already has this id, or this key for that tenant and contract; None if there is none."""
        ...

    async def record(self, stream: str, *, known: Known | None = None) -> Record:
        """The stream as it stands. Raises UnknownStream; LedgerRegressed if the ledger does not hold `known`."""
        ...

    async def append(
        self, stream: str, decide: Decide, *, owner: Owner | None, known: Known | None = None, payloads: Sequence[bytes] = ()
    ) -> Record:
        """Append what `decide` returns, each with the move it allows, in one transaction with projection and payloads.

        With an owner, evidence advances the standing by the tables; a run that the stream has not seen claims it first.
        Raises StaleOwner (nothing written) if (epoch, turn) is lower than the stored pair and any of it is a move or stay.
        Without an owner everything is kept as a note. Raises LedgerRegressed if the ledger does not hold `known`.
        """
        ...

    async def claim(self, stream: str, owner: Owner) -> Record:
        """Take the stream for a run that Temporal says is the current one: epoch is the stored one plus one, turn 0."""
        ...

    async def put_payloads(self, stream: str, payloads: Sequence[bytes]) -> None:
        """Keep bytes under their SHA-256, ahead of the entry that will name them."""
        ...

    async def payload(self, digest: str) -> bytes:
        """Bytes kept under a SHA-256. Raises NotFound if they were erased, Tampered if they are not what was stored."""
        ...

    async def payloads(self, *digests: str) -> list[bytes]:
        """Several of them, read together."""
        ...

    async def contract(self, digest: str) -> bytes:
        """The canonical contract of that digest. Raises NotFound, Tampered."""
        ...

    async def entries(self, stream: str, *, after: int = -1, limit: int | None = None) -> list[Entry]:
        """Entries of a stream in order, from the one after `after`."""
        ...


class Provider(Protocol):
    """HTTP under the rules of one call's policy."""

    async def exchange(self, request: Request, policy: CallPolicy) -> Exchange:
        """Send once, read the whole answer within the policy's limits."""
        ...

    def stream(self, request: Request, policy: CallPolicy) -> "AbstractAsyncContextManager[StreamedAnswer]":
        """Send once, and read the body piece by piece."""
        ...


class StreamedAnswer(Protocol):
    """An answer whose body is still to be read. Where no status line came, `answer` is what stood in for it."""

    @property
    def answer(self) -> Answer | NoAnswer:
        """Status and headers, with an empty body; or what stood in for an answer."""
        ...

    @property
    def began(self) -> datetime:
        """When the request was begun."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The decoded body, bounded by the policy. Ends early, without raising, where the body is not whole."""
        ...

    def masked(self, body: bytes) -> bytes:
        """Bytes of the body as they may be read and recorded: without the secrets that went with the request."""
        ...

    @property
    def fault(self) -> Fault | None:
        """Why the body is not whole; known after the last chunk."""
        ...


class Staged(Protocol):
    """An object being written. It becomes visible only by `publish`; leaving the context otherwise discards it."""

    async def write(self, chunk: bytes) -> None:
        """Add bytes."""
        ...

    async def seal(self, media: str | None = None) -> None:
        """No more bytes: durable under the staging key, with the media type that it came as; still not visible."""
        ...


BELOW = ".parts"


def staged_below(staging: str, name: str) -> str:
    """The staging key of something that belongs to another staged object, and is forgotten with it."""
    return f"{staging}{BELOW}/{name}"


class ResultStore(Protocol):
    """Objects by key. What is staged is durable and invisible; what is published was verified."""

    def stage(self, staging: str) -> "AbstractAsyncContextManager[Staged]":
        """Begin writing an object of this staging key. Sealing replaces one that is there; nothing else here touches it."""
        ...

    async def staged_size(self, staging: str) -> int | None:
        """Size of a sealed staged object, or None."""
        ...

    async def staged_media(self, staging: str) -> str | None:
        """The media type that a sealed staged object came as, if it was said."""
        ...

    def read_staged(self, staging: str) -> AsyncIterator[bytes]:
        """The bytes of a sealed staged object."""
        ...

    async def publish(self, staging: str, key: str) -> None:
        """Make a sealed staged object visible under `key` (tenant/operation/sha256); it stays staged too. Safe to repeat."""
        ...

    async def discard(self, staging: str) -> None:
        """Forget a staged object, and whatever is staged below it (`staged_below`). Safe to repeat."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """The bytes of a published object. Raises NotFound."""
        ...


class Gate(Protocol):
    """Policy."""

    def judge(self, question: Question) -> Judgement:
        """May this be executed: unattended, after a human's approval, or not at all."""
        ...

    def judge_decision(self, question: Question, verb: str, person: str) -> Judgement:
        """May this person `approve`, `cancel`, `resolve`, `view` or `probe` here. `unattended` means yes, anything else no."""
        ...


class Runs(Protocol):
    """Temporal, as far as an activity needs it."""

    async def current_run(self, stream: str) -> str | None:
        """Run id of the current run of that operation's workflow, or None if there is none."""
        ...

    async def wake(self, stream: str, source: str) -> None:
        """Signal `wake`. Silent if there is no workflow."""
        ...


class Clocks(Protocol):
    """Wall clock and monotonic clock."""

    def now(self) -> datetime:
        """UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


@dataclass(frozen=True)
class World:
    """Everything an activity may touch. `identity` is the actor that this worker writes as: `worker:<name>`."""

    ledger: Ledger
    provider: Provider
    results: ResultStore
    gate: Gate
    runs: Runs
    clocks: Clocks
    identity: str
    embedded: bool = True
