"""Operations loaded from the ledger.

Contract and input never change, so both are kept in memory by digest, as are the values that steps saved; the record is read anew by
every activity. Whatever of it is gone, is not what was kept, or is in a form that this version does not know, is one kind of trouble,
`Unloadable`: nothing is sent without it, and `activities/stranding.py` brings it before a human.
"""

import json
from collections import OrderedDict
from typing import Generic, TypeVar, cast

from activities.case import Asked, Case
from activities.ports import Ledger, Record, World
from domain.contract import Contract
from domain.errors import BadContract, NotFound, Tampered, UnknownStream, Unloadable, fault_of
from domain.evidence import Json, Ref
from domain.exchange import Request
from domain.fingerprint import committed_value
from domain.language.loading import contract_from_canonical
from domain.messages import Known
from domain.needs import CONTRACT, HIDDEN, INPUT, REQUEST, SALT, saved_by
from domain.sensitive import HiddenValues
from domain.standing import Standing
from domain.steps import values_of

INPUT_BYTES_KEPT = 16 * 1024 * 1024
SAVED_BYTES_KEPT = 8 * 1024 * 1024
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


class Cases:
    """Loads operations from the ledger."""

    def __init__(self, world: World) -> None:
        self._ledger: Ledger = world.ledger
        self._contracts: Recent[str, Contract] = Recent(256)
        self._asked: Recent[str, Asked] = Recent(INPUT_BYTES_KEPT)
        self._saved: Recent[str, dict[str, Json]] = Recent(SAVED_BYTES_KEPT)

    async def load(self, stream: str, known: Known | None) -> Case:
        """The operation as it stands. Raises UnknownStream, LedgerRegressed, Unloadable."""
        try:
            record = await self._ledger.record(stream, known=known)
        except UnknownStream:
            raise UnknownStream(f"the ledger holds no operation {stream}", hint="is this the ledger it was started with?") from None
        asked = self._asked.get(stream) or await self._read(record)
        for digest in record.standing.sensitive:
            if digest not in asked.apart:
                asked.apart[digest] = HiddenValues.from_bytes(await needed(self._ledger, digest, HIDDEN))
        return Case(self._ledger.ledger_id, record, asked, await self._values(record.standing))

    async def _read(self, record: Record) -> Asked:
        opened = record.standing.opened
        contract = self._contracts.get(opened.contract_digest)
        if contract is None:
            contract = self._contracts.put(opened.contract_digest, await self._contract(opened.contract_digest))
        try:
            kept, salt = await self._ledger.payloads(opened.input.ref, opened.salt.digest)
        except (NotFound, Tampered):  # which of the two
            kept, salt = [await needed(self._ledger, *one) for one in ((opened.input.ref, INPUT), (opened.salt.digest, SALT))]
        asked = Asked(contract=contract, input=cast("Json", json.loads(committed_value(kept))), salt=salt)
        return self._asked.put(record.stream, asked, weight=ASKED_BYTES + len(kept))

    async def _contract(self, digest: str) -> Contract:
        try:
            return contract_from_canonical(await self._ledger.contract(digest))
        except (NotFound, Tampered, BadContract) as error:
            raise Unloadable(CONTRACT, fault_of(error), digest=digest) from None

    async def _values(self, standing: Standing) -> dict[str, dict[str, Json]]:
        """What the steps of the present generation saved. Raises Unloadable."""
        return {} if standing.final else {ref.digest: await self._kept(step, ref) for step, ref in standing.steps.items()}

    async def _kept(self, step: str, ref: Ref) -> dict[str, Json]:
        values = self._saved.get(ref.digest)
        if values is not None:
            return values
        kept = await needed(self._ledger, ref.digest, saved_by(step))
        return self._saved.put(ref.digest, values_of(kept), weight=ASKED_BYTES + len(kept))


async def needed(ledger: Ledger, digest: str, what: str) -> bytes:
    """Bytes that were kept because the operation needs them. Raises Unloadable."""
    try:
        return await ledger.payload(digest)
    except (NotFound, Tampered) as error:
        raise Unloadable(what, fault_of(error), digest=digest) from None


async def frozen_request(ledger: Ledger, digest: str) -> Request:
    """The request that an intent names, as it was stored. Raises Unloadable."""
    return Request.from_json(cast("dict[str, object]", json.loads(await needed(ledger, digest, REQUEST))))
