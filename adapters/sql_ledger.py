"""The ledger on SQLite or PostgreSQL: the port `Ledger`, and how its transactions are run.

* One call is one transaction, which it may share with others (`sql_batching.py`). What it returns is durable.
* A transaction that lost a race, a deadlock or a lock is done again, a bounded number of times.
* A COMMIT whose outcome is not known is settled by looking up the hash of the entry it wrote, before anything is done again:
  an entry is never doubled, and what was written is never reported as lost.
* A database that does not answer is `Unreachable`, in our words: no text of a driver leaves here.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import Connection, select

from activities.ports import Decide, OpenedStream, Opening, Owner, Record
from adapters import sql_reading, sql_writing
from adapters.sql_batching import Apart, GroupCommit
from adapters.sql_dialects import DRIVER_ERRORS, Engines, Trouble, ledger_url, make_engines, trouble_of, unreachable
from adapters.sql_growing import LostRace, Written
from adapters.sql_schema import check, migrate, migrate_parsed, version
from adapters.sql_tables import ledger
from domain.chain import Entry
from domain.evidence import Erased
from domain.messages import Known

__all__ = ["SqlLedger", "migrate"]

T = TypeVar("T")
TRIES = 6
FIRST_PAUSE_S = 0.02
HOPELESS = frozenset({Trouble.REFUSED, Trouble.BROKEN})


class SqlLedger:
    """The append-only store of evidence."""

    def __init__(self, engines: Engines, ledger_id: str) -> None:
        self.engines = engines
        self._ledger_id = ledger_id
        self._group = GroupCommit(engines)

    @classmethod
    async def connect(cls, url: str, password: str | None = None) -> "SqlLedger":
        """Open a ledger. An embedded one is made, and brought up to date; another must have been migrated.

        Raises Unreachable; BadInput if the address, or the version of the tables, is not one that we can use.
        """
        parsed = ledger_url(url, password)
        engines = make_engines(parsed)
        try:
            if engines.embedded:
                await migrate_parsed(parsed)
            check(await reading(engines, version))
            ledger_id = await reading(engines, lambda connection: connection.execute(select(ledger.c.ledger_id)).scalar_one())
        except BaseException:
            await engines.dispose()
            raise
        return cls(engines, ledger_id)

    async def aclose(self) -> None:
        """Close all connections, after what is under way."""
        await self._group.idle()
        await self.engines.dispose()

    @property
    def ledger_id(self) -> str:
        return self._ledger_id

    async def open(self, opening: Opening) -> OpenedStream:
        return await self._write(lambda connection: sql_writing.open_stream(connection, self._ledger_id, opening))

    async def salt_for(self, *, stream: str, tenant: str, contract: str, key: str | None) -> bytes | None:
        def salt(connection: Connection) -> bytes | None:
            return sql_reading.salt_for(connection, stream=stream, tenant=tenant, contract=contract, key=key)

        return await reading(self.engines, salt)

    async def record(self, stream: str, *, known: Known | None = None) -> Record:
        def body(connection: Connection) -> Record:
            row = sql_writing.seen(connection, stream)
            sql_writing.witness(connection, row, known)
            return sql_writing.record_of(row)

        return await reading(self.engines, body)

    async def append(
        self, stream: str, decide: Decide, *, owner: Owner | None, known: Known | None = None, payloads: Sequence[bytes] = ()
    ) -> Record:
        def body(connection: Connection) -> Written[Record]:
            return sql_writing.append(connection, self._ledger_id, stream, decide, owner=owner, known=known, payloads=payloads)

        return await self._write(body)

    async def claim(self, stream: str, owner: Owner) -> Record:
        at = datetime.now(UTC)
        return await self._write(lambda connection: sql_writing.claim(connection, self._ledger_id, stream, owner, at=at))

    async def put_payloads(self, stream: str, payloads: Sequence[bytes]) -> None:
        def body(connection: Connection) -> Written[None]:
            sql_writing.seen(connection, stream)
            sql_writing.keep_payloads(connection, stream, payloads)
            return Written(None, stream)

        await self._write(body)

    async def erase(self, stream: str, erased: Erased) -> Record:
        """Take away payloads of one stream, for ever, and record it. Erasing again what is erased records it again."""
        return await self._write(lambda connection: sql_writing.erase(connection, self._ledger_id, stream, erased))

    async def payload(self, digest: str) -> bytes:
        return await reading(self.engines, lambda connection: sql_reading.payload(connection, digest))

    async def payloads(self, *digests: str) -> list[bytes]:
        return await reading(self.engines, lambda connection: [sql_reading.payload(connection, digest) for digest in digests])

    async def contract(self, digest: str) -> bytes:
        return await reading(self.engines, lambda connection: sql_reading.contract(connection, digest))

    async def entries(self, stream: str, *, after: int = -1, limit: int | None = None) -> list[Entry]:
        return await reading(self.engines, lambda connection: sql_reading.entries_of(connection, stream, after=after, limit=limit))

    async def within(self, body: Callable[[Connection], T]) -> T:
        """Run a transaction of its own that writes no entry and may be done twice."""
        return await self._write_alone(lambda connection: Written(body(connection), ""), [])

    async def _write(self, body: Callable[[Connection], Written[T]]) -> T:
        """Run a body until what it wrote is committed, it is refused, or the database does not answer."""
        try:
            return await self._group.run(body)
        except Apart as apart:
            unsettled: list[Written[T]] = [] if apart.written is None else [apart.written]
        return await self._write_alone(body, unsettled)

    async def _write_alone(self, body: Callable[[Connection], Written[T]], unsettled: list[Written[T]]) -> T:
        """The same in transactions of its own. `unsettled`: what may have been committed already."""

        def transaction(connection: Connection) -> T:
            with connection.begin():
                for written in unsettled:
                    if sql_writing.was_committed(connection, written):
                        return written.value
                written = body(connection)
                unsettled.append(written)
            return written.value

        trouble = Trouble.CONFLICT
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(FIRST_PAUSE_S * 2**attempt)
            try:
                return await self.engines.writing(transaction)
            except LostRace:
                trouble = Trouble.CONFLICT
            except DRIVER_ERRORS as error:
                trouble = trouble_of(error)
                if trouble in HOPELESS and not unsettled:
                    break
        raise unreachable(trouble)


async def reading(engines: Engines, body: Callable[[Connection], T]) -> T:
    """Run a transaction that only reads, on one consistent state of the ledger."""
    trouble = Trouble.CONFLICT
    for attempt in range(TRIES // 2):
        if attempt:
            await asyncio.sleep(FIRST_PAUSE_S * 2**attempt)
        try:
            return await engines.reading(body)
        except DRIVER_ERRORS as error:
            trouble = trouble_of(error)
            if trouble in HOPELESS:
                break
    raise unreachable(trouble)
