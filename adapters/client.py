"""What a person or program does with operations: start, look, wait, decide. The command line and the gateway are thin over this.

* Looking needs the ledger alone. Starting and deciding reach Temporal first, so that nothing is opened which cannot be started.
* Files that are handed in are in the result store, read back, before the operation is opened. Where an operation of that id or key is there
  already, they are only compared with its own.
* Opening comes before the workflow; an equal operation that is there already is the answer (`created: false`), and one whose
  workflow is missing is started. What has a taken id or key is told to its own tenant and principal alone.
* A decision is sent, then its recorded verdict is waited for. What has ended takes no more: that is refused here and kept as a note.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from ulid import ULID

from activities.ports import OpenedStream, Opening
from adapters.clocks import SystemClocks
from adapters.settings import Settings
from adapters.showing.status import settled, status_of_row
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.sql_projection import StreamRow
from domain.errors import BadInput, CredentialError, NotFound, Refused, Unreachable
from domain.evidence import Decision, Json, Linked, bounded
from domain.fingerprint import SALT_BYTES
from domain.messages import CancelRequest, Message, Resolution

if TYPE_CHECKING:
    from temporalio.client import Client

    from domain.opening import Asked

NO_PATHS: Mapping[str, Path] = MappingProxyType({})
VERDICT_WITHIN = timedelta(seconds=30)
_POLL_FIRST, _POLL_MOST = 0.05, 0.5


@dataclass(frozen=True, slots=True)
class Started:
    """What starting came to."""

    id: str
    created: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The recorded verdict on a decision; `accepted` is None while none is recorded."""

    id: str
    request_id: str
    accepted: bool | None
    why: str | None


class Sakshi:
    """One connection to an installation. Use `sakshi`."""

    def __init__(self, settings: Settings, ledger: SqlLedger, books: LedgerBooks) -> None:
        self.settings = settings
        self.ledger = ledger
        self.books = books
        self._clocks = SystemClocks()
        self._client: Client | None = None

    async def temporal(self) -> "Client":
        """Temporal, connected once. Raises Unreachable."""
        if self._client is None:
            from adapters.temporal import connect

            self._client = await connect(self.settings)
        return self._client

    # --- start ----------------------------------------------------------------------------------------------------------

    async def open_and_start(self, asked: "Asked", *, id: str | None = None, paths: Mapping[str, Path] = NO_PATHS) -> Started:
        """Open an operation and start its workflow, or find the equal one. Raises BadInput, Refused, Unreachable, Tampered.

        `paths` are files by the names that the contract gives them; `asked.files` are in the result store already.
        """
        from adapters.workflow_starts import start
        from domain.opening import check_asked, check_callers_id, check_file_name

        if id is not None:
            check_callers_id(id, "an id")
        check_asked(asked)
        for name in paths:
            check_file_name(asked.contract, name)
        if asked.contract.version == 0 and not self.settings.drafts:
            raise Refused(f"{asked.contract.contract} is a draft (version 0)", hint="set SAKSHI_DRAFTS=true to run drafts")
        client = await self.temporal()
        name = asked.contract.contract
        stream = id or f"{name}-{str(ULID()).lower()}"
        found = await self._take_and_open(asked, stream, paths, named=id is not None or asked.key is not None)
        if not found.record.standing.final:
            await start(client, self.ledger, found.record)
        return Started(found.record.stream, found.created)

    async def _take_and_open(self, asked: "Asked", stream: str, paths: Mapping[str, Path], *, named: bool) -> OpenedStream:
        if not asked.contract.files and not paths:
            return await self._open(asked, stream, named=named)
        from adapters.file_intake import taken_in
        from adapters.result_store import ObstoreResults

        store = ObstoreResults(self.settings.results)
        async with taken_in(
            store, asked.contract, tenant=asked.tenant, input=asked.input, target=asked.target, paths=paths, stored=asked.files
        ) as intake:
            return await self._open(replace(asked, files=intake.files), stream, named=named, keep=intake.keep)

    async def _open(self, asked: "Asked", stream: str, *, named: bool, keep: Callable[[], Awaitable[None]] | None = None) -> OpenedStream:
        """`named`: by whoever asks, so that there may be one of that name already. `keep` has the files stored that entry 0 names."""
        from domain.opening import Drawn, opening

        for attempt in range(2):
            salt = None
            if named:
                salt = await self.ledger.salt_for(stream=stream, tenant=asked.tenant, contract=asked.contract.contract, key=asked.key)
            drawn = Drawn(salt or secrets.token_bytes(SALT_BYTES), secrets.token_bytes(SALT_BYTES), secrets.token_hex(16))
            opened, payloads = opening(asked, drawn, at=self._clocks.now())
            if keep is not None and salt is None:
                await keep()
            try:
                return await self.ledger.open(Opening(stream, opened, asked.contract.canonical, payloads))
            except Refused:
                # Someone may have opened the same in between, under another salt: asked once more, under that one, it is equal.
                if salt is not None or attempt:
                    raise
        raise AssertionError

    async def continue_(self, stream: str) -> bool:
        """Start a new workflow for a stream that has none. False if it will wait, because the ledger lost entries.

        Raises Refused if nothing is left to be done, as the operation has ended, or its workflow runs; Unreachable.
        """
        from adapters.workflow_starts import start_again
        from domain.lifecycle import next_step

        record = await self.ledger.record(stream)
        if next_step(record.standing).name == "done":
            raise Refused(f"{stream} has ended: {record.standing.state}", hint=f"python starter.py status {stream}")
        return await start_again(await self.temporal(), self.ledger, record)

    def account(self, credential: str | None) -> str | None:
        """The account of a credential, where its record can be read from here."""
        if credential is None:
            return None
        from adapters.credentials import Credentials

        try:
            return Credentials(folder=self.settings.secrets, embedded=self.settings.embedded).account(credential)
        except CredentialError:
            return None

    async def link(self, old: str, new: str) -> None:
        """Note in the old operation's stream that another one repeats it."""
        note = Linked(at=self._clocks.now(), actor=f"human:{self.settings.local_user}", meaning="retried_by", other=new)
        await self.ledger.append(old, lambda standing: [] if standing.retried_by == new else [note], owner=None)

    # --- look -----------------------------------------------------------------------------------------------------------

    async def find(self, prefix: str) -> str:
        """The operation that this id, or unique prefix of one, means. Raises NotFound, BadInput."""
        found = await self.books.find(prefix)
        if not found:
            raise NotFound(f"no operation {prefix[:200]}", hint="python starter.py list shows what there is")
        if len(found) > 1:
            raise BadInput(f"{prefix} is the beginning of several operations: {', '.join(found[:5])}", hint="write more of it")
        return found[0]

    async def list(
        self,
        *,
        state: str | None = None,
        attention: bool | None = None,
        tenant: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> dict[str, Json]:
        """A page of operations, those first that changed last: `sakshi.list/1`."""
        rows, more = await self.books.list(state=state, attention=attention, tenant=tenant, limit=limit, after=after)
        return {"schema": "sakshi.list/1", "items": [self._status(row) | {"updated_at": row.updated_at} for row in rows], "next": more}

    async def status(self, stream: str) -> dict[str, Json]:
        """The status of an operation, from the ledger alone. Raises NotFound."""
        return self._status(await self.books.row(stream))

    def _status(self, row: StreamRow) -> dict[str, Json]:
        return status_of_row(row, at=self._clocks.now(), by=self.settings.local_user)

    async def changes(self, stream: str) -> AsyncGenerator[dict[str, Json]]:
        """The status now, and again whenever it changed, until waiting would end."""
        seq, delay = -1, _POLL_FIRST
        while True:
            row = await self.books.row(stream)
            if row.seq != seq:
                seq, delay = row.seq, _POLL_FIRST
                status = self._status(row)
                yield status
                if settled(status):
                    return
            await asyncio.sleep(delay)
            delay = min(delay * 1.5, _POLL_MOST)

    async def wait(self, streams: Sequence[str], *, timeout: timedelta | None = None) -> dict[str, dict[str, Json]]:
        """The status of each, once each is final, in attention or awaiting approval; or as they are when the time is up."""
        found: dict[str, dict[str, Json]] = {}

        async def follow(stream: str) -> None:
            async for status in self.changes(stream):
                found[stream] = status

        try:
            async with asyncio.timeout(None if timeout is None else timeout.total_seconds()):
                await asyncio.gather(*(follow(stream) for stream in streams))
        except TimeoutError:
            pass
        return {stream: found.get(stream) or await self.status(stream) for stream in streams}

    # --- decide ---------------------------------------------------------------------------------------------------------

    async def cancel(self, stream: str, *, by: str, reason: str, force: bool = False) -> Verdict:
        """Ask for a cancel. Raises Refused if the operation has ended."""
        request = CancelRequest(request_id=_request_id(), by=by, reason=reason, force=force)
        return await self._decide(stream, "cancel", request.request_id, request, by=by, reason=reason, verb="cancel")

    async def resolve(self, stream: str, resolution: Resolution) -> Verdict:
        """Choose for an operation in attention. Raises Refused if the operation has ended."""
        return await self._decide(
            stream, "resolve", resolution.request_id, resolution, by=resolution.by, reason=resolution.reason, verb=resolution.choice
        )

    async def _decide(
        self, stream: str, signal: Literal["cancel", "resolve"], request_id: str, payload: Message, *, by: str, reason: str, verb: str
    ) -> Verdict:
        record = await self.ledger.record(stream)
        why: str | None = None
        if record.standing.final:
            why = f"the operation has ended: {record.standing.state}"
        elif not await self._signal(stream, signal, payload):
            why = f"its workflow is not there; python starter.py run --continue {stream} starts another"
        if why is not None:
            await self._refuse(stream, request_id, verb, by, reason, why)
        return await self._verdict(stream, request_id)

    async def _signal(self, stream: str, signal: str, payload: Message) -> bool:
        """Send a signal; False if no workflow is open that could take it."""
        from temporalio.service import RPCError, RPCStatusCode

        from adapters.temporal import RPC_TIMEOUT

        client = await self.temporal()
        try:
            await client.get_workflow_handle(stream).signal(signal, payload, rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise Unreachable(f"Temporal did not take the {signal} ({error.status.name.lower()})") from None
        return True

    async def _refuse(self, stream: str, request_id: str, verb: str, by: str, reason: str, why: str) -> None:
        """Keep what was asked as a refused note, and refuse it."""
        note = Decision(
            at=self._clocks.now(), actor=f"human:{by}", meaning="refused", request_id=request_id, verb=verb, by=by,
            reason=bounded(reason), source="client", why=why,
        )  # fmt: skip
        await self.ledger.append(stream, lambda _: [note], owner=None)
        raise Refused(f"{verb} refused: {why}", hint=f"python starter.py status {stream}")

    async def _verdict(self, stream: str, request_id: str) -> Verdict:
        delay = _POLL_FIRST
        try:
            async with asyncio.timeout(VERDICT_WITHIN.total_seconds()):
                while True:
                    answered = (await self.books.row(stream)).standing.answered.get(request_id)
                    if answered is not None:
                        return Verdict(stream, request_id, answered.accepted, answered.why)
                    await asyncio.sleep(delay)
                    delay = min(delay * 1.5, _POLL_MOST)
        except TimeoutError:
            return Verdict(stream, request_id, None, "no worker has recorded it yet; it stays delivered")


@asynccontextmanager
async def sakshi(settings: Settings) -> AsyncGenerator[Sakshi]:
    """A connection to the installation that the settings describe. Raises Unreachable."""
    if settings.ledger_url is None:
        settings.prepare_home()
    ledger = await SqlLedger.connect(settings.ledger, settings.ledger_password())
    try:
        yield Sakshi(settings, ledger, LedgerBooks(ledger))
    finally:
        await ledger.aclose()


def _request_id() -> str:
    return str(ULID()).lower()
