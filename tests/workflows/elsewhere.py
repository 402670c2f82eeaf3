"""A stranger's server, to which nothing of ours may ever go."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Elsewhere:
    """Where it listens, and every byte that came. A connection without a byte is heard too."""

    url: str = ""
    heard: list[bytes] = field(default_factory=list[bytes])

    async def listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Write down what comes and hang up."""
        self.heard.append(await reader.read(65536))
        writer.close()


@asynccontextmanager
async def elsewhere() -> AsyncGenerator[Elsewhere]:
    """Somebody listens while the block runs."""
    found = Elsewhere()
    server = await asyncio.start_server(found.listen, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield found
