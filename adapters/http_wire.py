"""Connections: to checked addresses only, kept per origin, each knowing whether a byte has left.

* A connection belongs to one origin. It resolves the name once, has every address checked (`addresses.resolve`), and
  connects to what was checked. TLS and the Host header keep the name. A kept connection asks no resolver again.
* `Journey` is the proof of *not sent*: `sent` turns true before the first byte of a request is handed to the socket, and
  at that very place a request that is too late is stopped.
* Nothing is sent twice: there are no retries, on a fresh connection or a kept one. A kept connection that its peer has
  closed meanwhile is noticed when it is taken; if it closes later than that, the answer is lost, not re-sent.
* No cookies, no environment, no proxies, no redirects, no logging. That is why an httpx *transport* stands here and no
  httpx client: the client logs addresses, and some addresses carry credentials.
"""

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

import anyio
import httpcore
import httpx

from adapters.addresses import Address, AddressRules, Origin, Resolver, resolve

KEEP_S = 4.0
"""How long an idle connection is kept: below the five seconds after which common servers hang up, so that we are first."""
KEEP_IDLE = 64
JOURNEY, ADDRESS = "sakshi.journey", "sakshi.address"

for _name in ("httpx", "httpcore", "httpcore.connection", "httpcore.http11"):
    # At DEBUG these write headers of answers and names of hosts. Ours is the only account of a call. The filter stays
    # when a logging configuration turns loggers on again.
    logging.getLogger(_name).disabled = True
    logging.getLogger(_name).addFilter(lambda _record: False)


class NameUnknown(Exception):
    """The name has no address. Nothing was sent."""


class TlsFailed(Exception):
    """TLS could not be set up. Nothing was sent."""


class TooLate(Exception):
    """The instant by which the first byte had to leave has passed. Nothing was sent."""


@dataclass(slots=True)
class Journey:
    """How far a request got."""

    send_by: float | None = None
    monotonic: Callable[[], float] = time.monotonic
    sent: bool = False
    phase: Literal["waiting", "connecting"] = "waiting"

    def leave(self) -> None:
        """Called before each write of a request."""
        if self.sent:
            return
        self.check_time()
        self.sent = True

    def is_late(self) -> bool:
        """Whether `send_by` has passed."""
        return self.send_by is not None and self.monotonic() >= self.send_by

    def check_time(self) -> None:
        """Raise `TooLate` past `send_by`."""
        if self.is_late():
            raise TooLate


class _Stream(httpcore.AsyncNetworkStream):
    """A socket that tells the journey of the request at hand before it writes."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, line: "_Line") -> None:
        self._inner = inner
        self._line = line

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._line.journey.leave()
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._line)
        except httpcore.ConnectError:
            raise TlsFailed from None
        except asyncio.CancelledError:
            # httpcore closes the socket after an error, and forgets it after a cancellation.
            with anyio.CancelScope(shield=True):
                await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:  # the type is httpcore's
        return self._inner.get_extra_info(info)


class _Line(httpcore.AsyncNetworkBackend):
    """What one connection dials with. It knows its origin and the journey of the request at hand."""

    def __init__(self, origin: Origin, rules: AddressRules, resolver: Resolver) -> None:
        self._origin = origin
        self._rules = rules
        self._resolver = resolver
        self._network = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())
        self.journey = Journey()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (5.0 if timeout is None else timeout)
        try:
            async with asyncio.timeout_at(deadline):
                found = await resolve(self._origin, self._rules, self._resolver)
        except TimeoutError:
            raise httpcore.ConnectTimeout from None
        except (OSError, UnicodeError):
            raise NameUnknown from None
        error: Exception = httpcore.ConnectTimeout()
        for index, address in enumerate(found):
            share = (deadline - loop.time()) / (len(found) - index)
            if share <= 0:
                break
            try:
                return _Stream(await self._network.connect_tcp(address, port, share, local_address, socket_options), self)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as refused:
                error = refused
        raise error from None


@dataclass(slots=True)
class _Kept:
    """A connection with its line."""

    line: _Line
    connection: httpcore.AsyncHTTPConnection


class _Body(httpx.AsyncByteStream):
    """The raw body. Closing it gives the connection back if the answer was read to its end, and ends it if not."""

    def __init__(self, wire: "PinnedTransport", origin: Origin, kept: _Kept, response: httpcore.Response) -> None:
        self._wire = wire
        self._origin = origin
        self._kept: _Kept | None = kept
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._response.stream
        assert hasattr(stream, "__aiter__")
        return stream.__aiter__()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue]

    async def aclose(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            await self._response.aclose()
            await self._wire.give_back(self._origin, kept)


class PinnedTransport(httpx.AsyncBaseTransport):
    """Sends a request that carries its `Address` and `Journey` as extensions. One per process."""

    def __init__(self, rules: AddressRules, resolver: Resolver, tls: ssl.SSLContext | None = None) -> None:
        self._rules = rules
        self._resolver = resolver
        self._tls = tls
        # Idle connections; the last used is taken first, so that the others can age.
        self._idle: dict[Origin, deque[_Kept]] = {}
        self._swept = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send once. Raises httpcore's errors, `AddressError`, and this module's own."""
        address: Address = request.extensions[ADDRESS]
        journey: Journey = request.extensions[JOURNEY]
        journey.phase = "connecting"
        origin = address.origin
        kept = await self._take(origin)
        kept.line.journey = journey
        wired = httpcore.Request(
            method=request.method.encode("ascii"),
            url=httpcore.URL(
                scheme=origin.scheme.encode(), host=origin.host.encode(), port=origin.port, target=request.extensions["target"]
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions={"timeout": request.extensions["timeout"]},
        )
        try:
            response = await kept.connection.handle_async_request(wired)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await kept.connection.aclose()
            raise
        return httpx.Response(response.status, headers=response.headers, stream=_Body(self, origin, kept, response))

    async def give_back(self, origin: Origin, kept: _Kept) -> None:
        """Shelve a connection that is fit for another request; end any other."""
        if not kept.connection.is_idle():
            await kept.connection.aclose()
            return
        idle = self._idle.setdefault(origin, deque())
        idle.append(kept)
        if len(idle) > KEEP_IDLE:
            await idle.popleft().connection.aclose()
        await self._sweep()

    async def aclose(self) -> None:
        """End all idle connections. Those in use end with their answers."""
        everything, self._idle = self._idle, {}
        for idle in everything.values():
            for kept in idle:
                await kept.connection.aclose()

    async def _take(self, origin: Origin) -> _Kept:
        idle = self._idle.get(origin)
        while idle:
            kept = idle.pop()
            if not kept.connection.has_expired():
                return kept
            await kept.connection.aclose()
        line = _Line(origin, self._rules, self._resolver)
        return _Kept(
            line,
            httpcore.AsyncHTTPConnection(
                origin=httpcore.Origin(origin.scheme.encode(), origin.host.encode(), origin.port),
                ssl_context=self._context() if origin.scheme == "https" else None,
                keepalive_expiry=KEEP_S,
                network_backend=line,
            ),
        )

    async def _sweep(self) -> None:
        """Once in a while, end what nobody took in time, and forget origins without connections."""
        now = time.monotonic()
        if now < self._swept + KEEP_S:
            return
        self._swept = now
        for origin, idle in list(self._idle.items()):
            while idle and idle[0].connection.has_expired():
                await idle.popleft().connection.aclose()
            if not idle and self._idle.get(origin) is idle:
                del self._idle[origin]

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpx.create_ssl_context(verify=True, trust_env=False)
        return self._tls
