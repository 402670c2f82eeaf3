"""Providers of one behaviour on loopback sockets, and one call to them."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from adapters.addresses import AddressRules
from adapters.credentials import Credentials
from adapters.http_provider import HttpProvider
from domain.exchange import Answer, AuthUse, CallPolicy, NoAnswer, Request

PLANTED = "sk-planted-0123456789"
RECORD = '{"value": "%s", "scheme": "bearer", "account": "a", "origins": ["%s"], "tenants": ["blue"]}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NO_AUTH = AuthUse()
EMBEDDED = AddressRules(loopback=True)


@dataclass
class Server:
    """A provider of one behaviour. `heads` are the requests it has seen, `connections` how often it was dialled."""

    origin: str = ""
    heads: list[bytes] = field(default_factory=list[bytes])
    bodies: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0


Behaviour = Callable[[bytes, asyncio.StreamWriter], Awaitable[bool | None]]
"""(head of a request, where to answer) -> True to keep the connection."""


async def _request(reader: asyncio.StreamReader, server: Server) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    server.bodies.append(await reader.readexactly(length))
    server.heads.append(head)
    return head


@asynccontextmanager
async def serve(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Server]:
    server, tasks = Server(), set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            while await behaviour(await _request(reader, server), writer):
                pass
        writer.close()
        with suppress(OSError, asyncio.CancelledError, ssl.SSLError):
            await writer.wait_closed()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    server.origin = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listening.wait_closed()


def says(raw: bytes, *, keep: bool = False) -> Behaviour:
    async def behaviour(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(raw)
        await writer.drain()
        return keep

    return behaviour


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def outlasts(_head: bytes, _writer: asyncio.StreamWriter) -> bool:
    """Never answers. All bounds of time pass, now that the request is there: no machine is too slow to have sent it before."""
    loop, passed = asyncio.get_running_loop(), 0.0
    clock = loop.time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", lambda: clock() + passed)
        while True:
            passed += 1000.0
            await asyncio.sleep(0)


async def hangs(_head: bytes, _writer: asyncio.StreamWriter) -> bool:
    await asyncio.Event().wait()
    return False


@asynccontextmanager
async def provider(env: Mapping[str, str] | None = None, rules: AddressRules = EMBEDDED, **options: Any) -> AsyncGenerator[HttpProvider]:
    made = HttpProvider(Credentials(env or {}, embedded=True), rules, **options)
    try:
        yield made
    finally:
        await made.aclose()


def policy(origin: str, use: AuthUse = NO_AUTH, **changes: Any) -> CallPolicy:
    return replace(CallPolicy(origins=((origin, use),), tenant="blue"), **changes)


async def call(behaviour: Behaviour, request: Request | None = None, **changes: Any) -> tuple[Answer | NoAnswer, Server]:
    """One exchange with a provider of this behaviour."""
    async with serve(behaviour) as server, provider() as door:
        asked = Request("GET", f"{server.origin}/v1/jobs") if request is None else replace(request, url=server.origin + request.url)
        exchange = await door.exchange(asked, policy(server.origin, **changes))
        assert exchange.request == asked
        return exchange.outcome, server
