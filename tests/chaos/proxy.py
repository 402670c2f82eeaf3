"""A passage for connections that can be shut, as by a partition.

While it is shut the server's side sees its connections go, so that it hands nothing more to whom it can't reach; the other side hears
nothing at all. When it opens, the silent connections end and new ones pass.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Carries bytes both ways while it is open."""

    def __init__(self, to: str) -> None:
        host, _, port = to.rpartition(":")
        self._to = (host, int(port))
        self._open = asyncio.Event()
        self._open.set()
        self._servers: set[asyncio.StreamWriter] = set()
        self.address = ""

    def shut(self) -> None:
        """Nothing passes any more."""
        self._open.clear()
        for server in self._servers:
            server.transport.abort()

    def open(self) -> None:
        """New connections pass."""
        self._open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end. One that comes while the passage is shut, or is cut by it, ends when it opens."""
        try:
            if self._open.is_set():
                await self._both_ways(reader, writer)
            await self._open.wait()
        finally:
            writer.close()

    async def _both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._to)
        self._servers.add(there_writer)
        ways = [asyncio.create_task(one) for one in (self._way(reader, there_writer), self._way(there_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._servers.discard(there_writer)
            there_writer.close()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65536):
                if not self._open.is_set():
                    return
                writer.write(chunk)
                await writer.drain()


@asynccontextmanager
async def proxy(to: str) -> AsyncGenerator[Proxy]:
    """A passage while the block runs."""
    made, carried = Proxy(to), set[asyncio.Task[None]]()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        carried.add(task)
        with suppress(OSError, asyncio.CancelledError):
            await made.carry(reader, writer)

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    made.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in carried:
            task.cancel()
        await asyncio.gather(*carried, return_exceptions=True)
