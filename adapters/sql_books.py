"""The ledger for those who look: finding, listing, verifying, rebuilding. Never part of what an operation does.

`LedgerBooks` reads through the same engines as the ledger that it is made of; `rebuild(repair=True)` alone writes, and only rows
that can be rebuilt from entries. Finding and listing load nothing of what verifying needs.
"""

import time
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, func, or_, select, tuple_

from adapters import sql_writing
from adapters.sql_ledger import SqlLedger, reading
from adapters.sql_projection import LAST, StreamRow, plain
from adapters.sql_tables import contracts, streams
from domain.messages import Known
from domain.standing import FINAL

if TYPE_CHECKING:
    from adapters.sql_verifying import Difference, Verification

AMBIGUOUS_SHOWN = 10
IDS_AT_ONCE = 500
_SEPARATOR = "/"


class LedgerBooks:
    """The read side of a ledger."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger
        self._engines = ledger.engines

    async def find(self, prefix: str, *, limit: int = AMBIGUOUS_SHOWN) -> list[str]:
        """Ids that begin with `prefix`, in order; only the one that equals it, if there is one."""
        start = plain(prefix) or ""

        def body(connection: Connection) -> list[str]:
            begins = (streams.c.stream >= start) & (streams.c.stream < start + LAST)
            found = connection.execute(select(streams.c.stream).where(begins).order_by(streams.c.stream).limit(limit)).scalars()
            ids = [str(one) for one in found]
            return [start] if start in ids else ids

        return await reading(self._engines, body)

    async def row(self, stream: str) -> StreamRow:
        """A stream's row. Raises UnknownStream."""
        return await reading(self._engines, lambda connection: sql_writing.seen(connection, stream))

    async def list(
        self,
        *,
        state: str | None = None,
        attention: bool | None = None,
        tenant: str | None = None,
        undone: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[list[StreamRow], str | None]:
        """Rows, those first that changed last, and where to go on (None: that was all). `after` is such a mark.

        `undone`: only those for which something is still to be done; of those that have ended, such as may have left something.
        """
        query = select(streams).order_by(streams.c.updated_at.desc(), streams.c.stream.desc()).limit(limit + 1)
        if state is not None:
            query = query.where(streams.c.state == plain(state))
        if attention is not None:
            waits = streams.c.attention_since
            query = query.where(waits.is_not(None) if attention else waits.is_(None))
        if undone:
            # No column says what an operation left. The projection is written without blanks, and without what is empty.
            query = query.where(or_(streams.c.state.not_in(FINAL), streams.c.standing.contains('"leftovers":[{', autoescape=True)))
        if tenant is not None:
            query = query.where(streams.c.tenant == plain(tenant))
        if after is not None:
            at, _, stream = after.partition(_SEPARATOR)
            query = query.where(tuple_(streams.c.updated_at, streams.c.stream) < tuple_(plain(at), plain(stream)))
        rows = await reading(self._engines, lambda connection: [StreamRow(*row) for row in connection.execute(query)])
        page = rows[:limit]
        return page, f"{page[-1].updated_at}{_SEPARATOR}{page[-1].stream}" if len(rows) > limit else None

    async def held(self, ids: Iterable[str]) -> set[str]:
        """Those of these ids that the ledger holds."""
        found: set[str] = set()
        for some in batched(sorted({one for one in ids if plain(one) == one}), IDS_AT_ONCE):
            query = select(streams.c.stream).where(streams.c.stream.in_(some))
            found |= set(await reading(self._engines, lambda connection, query=query: connection.execute(query).scalars().all()))
        return found

    async def used(self) -> set[str]:
        """The contracts of which there ever was an operation, by name."""
        return set(await reading(self._engines, lambda connection: connection.execute(select(contracts.c.name).distinct()).scalars().all()))

    async def verify(self, stream: str, known: Known | None = None) -> "Verification":
        """Whether a stream is what was written. Raises UnknownStream."""
        return await reading(self._engines, lambda connection: self._verify(connection, stream, known))

    async def verify_all(self) -> "AsyncIterator[Verification]":
        """Every stream in order of its id; those that are read together are of one moment."""
        after: str | None = None
        while True:
            page, after = await reading(self._engines, lambda connection, after=after: self._verify_next(connection, after))
            for one in page:
                yield one
            if after is None:
                return

    async def rebuild(self, stream: str, *, repair: bool = False) -> "list[Difference]":
        """Where the stored row is not what the entries lead to. Raises UnknownStream, Tampered."""
        from adapters import sql_verifying

        return await self._ledger.within(
            lambda connection: sql_verifying.rebuild(connection, self._ledger.ledger_id, stream, repair=repair)
        )

    async def ping(self) -> None:
        """Raises Unreachable."""
        await reading(self._engines, lambda connection: connection.execute(select(1)).scalar())

    async def clock_skew(self) -> timedelta:
        """How far the database's clock is ahead of ours, half the round trip given to each way. None of it for a file."""
        if self._engines.embedded:
            return timedelta(0)
        return await reading(self._engines, _skew)

    def _verify(self, connection: Connection, stream: str, known: Known | None) -> "Verification":
        from adapters import sql_verifying

        return sql_verifying.verify(connection, self._ledger.ledger_id, stream, known)

    def _verify_next(self, connection: Connection, after: str | None) -> "tuple[list[Verification], str | None]":
        from adapters import sql_verifying

        return sql_verifying.verify_next(connection, self._ledger.ledger_id, after)


def _skew(connection: Connection) -> timedelta:
    connection.execute(select(1))  # the connection is there before the clock is read
    before, began = datetime.now(UTC), time.monotonic()
    theirs: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return theirs - before - timedelta(seconds=(time.monotonic() - began) / 2)


def batched(ids: list[str], size: int) -> Iterator[list[str]]:
    """Pieces of at most `size`."""
    return (ids[start : start + size] for start in range(0, len(ids), size))
