"""The simulator on a real socket, always on loopback: for a process of its own and for tests.

uvicorn's HTTP protocol does the parsing; its server object is not used, because that takes over signals and needs a fifth of
a second to stop. Ending closes every connection at once: what is being answered then is lost, as it would be outside.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from simulator.app import App, make_app
from simulator.asking import Pace
from simulator.books import Books
from simulator.provider import Settings

LOOPBACK = "127.0.0.1"


class Running(NamedTuple):
    """Where it listens (no slash at the end), its books, and the application behind (`app.gate.release()` ends holds)."""

    url: str
    books: Books
    app: App


class Protocol(H11Protocol):
    """Puts the transport where a lie can reach it: `scope["state"]["transport"]`."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


@asynccontextmanager
async def running(
    books: Books | None = None, *, port: int = 0, polls: int = 2, settings: Settings | None = None
) -> AsyncGenerator[Running]:
    """A simulator that listens until the block ends. Unless `settings` or the books say otherwise, a job takes `polls` readings."""
    if books is None:
        books = Books.kept_in(None, settings or replace(Settings(), pace=Pace(polls, 0.0)))
    app = make_app(books)
    config = Config(app, lifespan="off", log_config=None, access_log=False, timeout_keep_alive=75, date_header=False, server_header=False)
    config.load()
    connections = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Protocol(config=config, server_state=connections, app_state={}, _loop=loop), LOOPBACK, port, backlog=2048
    )
    try:
        yield Running(f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}", books, app)
    finally:
        app.gate.close()
        server.close()
        for connection in list(connections.connections):
            connection.transport.abort()
        await asyncio.gather(*connections.tasks, return_exceptions=True)
        await server.wait_closed()


async def serve(state: Path | None, port: int, settings: Settings, stop: asyncio.Event, announce: Callable[[str], None]) -> Books:
    """A simulator that listens until `stop`; `announce` is told its address. Returns the books."""
    books = Books.kept_in(state, settings)
    async with running(books, port=port) as open_door:
        announce(open_door.url)
        await stop.wait()
    if books.state is not None:
        books.state.close()
    return books
