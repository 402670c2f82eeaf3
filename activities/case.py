"""One operation as an activity sees it: its record, its contract as pinned, its input, and the names derived for it.

Contract and input never change, so both are kept in memory by digest; the record is read anew by every activity.
"""

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypedDict, TypeVar, cast

from activities.ports import Ledger, Record, World
from domain.connection import Auth
from domain.contract import Contract
from domain.contract_loading import contract_from_canonical
from domain.errors import UnknownStream
from domain.evidence import Json
from domain.exchange import AuthUse, CallPolicy, Request
from domain.expressions import Scope
from domain.fingerprint import committed_value, mark, token_digest
from domain.messages import Known
from domain.rendering import origins
from domain.standing import Standing

INPUT_BYTES_KEPT = 16 * 1024 * 1024
ASKED_BYTES = 1024
"""What an operation takes in memory besides its input, roughly."""

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The values used most recently, as many as together weigh no more than `size`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._weight = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, which counts as a use."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: K, value: V, *, weight: int = 1) -> V:
        """Keep a value, and drop those used longest ago until there is room."""
        self._weight += weight - self._values.pop(key, (value, 0))[1]
        self._values[key] = (value, weight)
        while self._weight > self._size and self._values:
            self._weight -= self._values.popitem(last=False)[1][1]
        return value


@dataclass(frozen=True)
class Asked:
    """What never changes of an operation; `names` keeps what was derived for a generation."""

    contract: Contract
    input: Json
    salt: bytes
    names: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])


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
        return Case(self.ledger_id, record, self.asked)

    def token(self, generation: int) -> str | None:
        """The idempotency token of a generation, or None if the contract has none."""
        token = self.contract.create.token
        if token is None or token.source:
            return None

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
        deadlines = standing.facts.deadlines_ms.model_dump()
        values: dict[str, object] = {
            "input": self.asked.input,
            "target": dict(opened.target),
            "files": {},
            "operation": {
                "id": self.record.stream,
                "tenant": opened.tenant,
                "principal": opened.principal,
                "reason": opened.reason or "",
            },
            "trace_id": opened.trace_id,
            "deadlines": {name: span / 1000 for name, span in deadlines.items()},
            "mark": self.mark(standing.generation),
            "call_id": call_id,
            "job": standing.job,
            "observed": observed,
            "phase": standing.phase,
            **roots,
        }
        return Scope(**values)  # pyright: ignore[reportArgumentType]

    def policy(self, *, max_bytes: int, send_by: float | None = None, total_s: float | None = None) -> CallPolicy:
        """The limits and the allowed origins of one call."""
        http, target = self.contract.http, cast("dict[str, Json]", self.standing.opened.target)
        return CallPolicy(
            origins=tuple((origin, auth_use(auth)) for origin, auth in origins(self.contract, target)),
            tenant=self.standing.opened.tenant,
            connect_s=http.timeouts.connect.total_seconds(),
            read_s=http.timeouts.read.total_seconds(),
            write_s=http.timeouts.write.total_seconds(),
            total_s=http.timeouts.total.total_seconds() if total_s is None else total_s,
            max_bytes=max_bytes,
            parallel=http.limits.parallel,
            per_second=http.limits.requests_per_second,
            send_by=send_by,
        )


def auth_use(auth: Auth) -> AuthUse:
    """A contract's authentication as the executor takes it."""
    kinds = {"none", "bearer", "basic", "headers", "query"}
    if auth.kind not in kinds:
        raise ValueError(f"authentication of kind {auth.kind} is not carried")
    return AuthUse(kind=auth.kind, credential=auth.credential, templates=auth.templates)  # pyright: ignore[reportArgumentType]


def call_id(stream: str, *parts: object) -> str:
    """An id of one request, the same on every re-sending."""
    return ".".join((stream, *map(str, parts)))


class Cases:
    """Loads operations from the ledger."""

    def __init__(self, world: World) -> None:
        self._ledger: Ledger = world.ledger
        self._contracts: Recent[str, Contract] = Recent(256)
        self._asked: Recent[str, Asked] = Recent(INPUT_BYTES_KEPT)

    async def load(self, stream: str, known: Known | None) -> Case:
        """The operation as it stands. Raises UnknownStream, LedgerRegressed."""
        try:
            record = await self._ledger.record(stream, known=known)
        except UnknownStream:
            raise UnknownStream(f"the ledger holds no operation {stream}", hint="is this the ledger it was started with?") from None
        asked = self._asked.get(stream) or await self._read(record)
        return Case(self._ledger.ledger_id, record, asked)

    async def _read(self, record: Record) -> Asked:
        opened = record.standing.opened
        contract = self._contracts.get(opened.contract_digest)
        if contract is None:
            canonical = await self._ledger.contract(opened.contract_digest)
            contract = self._contracts.put(opened.contract_digest, contract_from_canonical(canonical))
        kept, salt = await self._ledger.payloads(opened.input.ref, opened.salt.digest)
        asked = Asked(contract=contract, input=cast("Json", json.loads(committed_value(kept))), salt=salt)
        return self._asked.put(record.stream, asked, weight=ASKED_BYTES + len(kept))


async def frozen_request(ledger: Ledger, digest: str) -> Request:
    """The request that an intent names, as it was stored."""
    return Request.from_json(cast("dict[str, object]", json.loads(await ledger.payload(digest))))
