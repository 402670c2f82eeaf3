"""An answer as it comes in: its head at once, its body piece by piece, decoded and within bounds.

A body that is not whole has a `fault` and nothing may be concluded from it: `cut` (the connection broke, or gzip ended
early), `oversized` (past the limit, raw or decoded), `encoding` (not one we offered, or a lie), `slow` (no time left).
Never more than one piece is held here.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime
from typing import cast

import httpcore
import httpx

from adapters.credential_records import Secret
from adapters.http_body import Undecodable, decoder_for, raw_limit
from adapters.http_pace import Turnstile
from adapters.masking import Mask
from domain.bodies import header
from domain.exchange import Answer, CallPolicy, Fault, NoAnswer

_MASKED_IN_THREAD_FROM = 64 * 1024
_SLOW = (TimeoutError, httpcore.TimeoutException, httpx.TimeoutException)
_CUT = (httpcore.NetworkError, httpcore.ProtocolError, httpx.TransportError)


class Unanswered:
    """What stands in the place of a streamed answer where no status line came."""

    fault: Fault | None = None

    def __init__(self, answer: NoAnswer, began: datetime) -> None:
        self.answer = answer
        self.began = began

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Nothing."""
        return
        yield

    def masked(self, body: bytes) -> bytes:
        """Nothing was sent with the request that could be in it."""
        return body


class StreamedAnswer:
    """`answer` is status and headers (lower-case names, secrets masked), without a body. `chunks` is the body, once; `fault`
    is settled when it has ended. `url`: what was asked, redirects included."""

    def __init__(
        self,
        response: httpx.Response,
        secrets: tuple[Secret, ...],
        policy: CallPolicy,
        *,
        began: datetime,
        deadline: float,
        gate: Turnstile | None,
        url: str = "",
    ) -> None:
        self.url = url
        # A name is the provider's too, and some of those that are recorded begin as it likes.
        self._mask = Mask(secrets)
        headers = ((self._mask.header(name.lower()), self._mask.header(value)) for name, value in response.headers.raw)
        self.answer = Answer(response.status_code, tuple(headers))
        self.began = began
        self.fault: Fault | None = None
        self._chunks: AsyncGenerator[bytes] = self._read()
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._stream = response.stream
        self._pieces = cast("AsyncGenerator[bytes]", aiter(response.stream))  # httpx's streams are generators; it does not say so
        self._limit = policy.max_bytes
        self._raw_room = raw_limit(policy.max_bytes)
        self._deadline = deadline
        self._gate = gate

    def header(self, name: str) -> str:
        """All values of a header, joined; empty if there is none."""
        return header(self.answer, name)

    def chunks(self) -> AsyncGenerator[bytes]:
        """The decoded body. Ends early, without raising, where the body is not whole."""
        return self._chunks

    def masked(self, body: bytes) -> bytes:
        """Bytes of the body without the secrets that went with the request, in case the provider tells what it was sent."""
        return self._mask.body(body)

    async def whole(self) -> Answer:
        """Read to the end, or to the fault, and let go."""
        body = bytearray()
        try:
            async for piece in self._chunks:
                body += piece
        finally:
            await self.aclose()
        raw = bytes(body)
        masked = self.masked(raw) if len(raw) < _MASKED_IN_THREAD_FROM else await asyncio.to_thread(self.masked, raw)
        return replace(self.answer, body=masked, fault=self.fault)

    async def refuse_oversized(self) -> None:
        """Do not begin a body that announces more than the limit."""
        length = self.header("content-length")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._raw_room:
            await self._chunks.aclose()
            self.fault = "oversized"

    async def aclose(self) -> None:
        """Let go of the connection and of the turn. Safe to call twice."""
        try:
            await self._chunks.aclose()
            await self._pieces.aclose()
            await self._stream.aclose()
        finally:
            gate, self._gate = self._gate, None
            if gate is not None:
                gate.leave()

    async def _read(self) -> AsyncGenerator[bytes]:
        decoder = decoder_for(self.header("content-encoding"))
        if decoder is None:
            self.fault = "encoding"
            return
        room = self._limit
        try:
            while raw := await self._next():
                for piece in decoder.feed(raw):
                    if room > 0:
                        yield piece[:room]
                    room -= len(piece)
                    if room < 0:
                        self.fault = "oversized"
                        return
        except Undecodable:
            self.fault = "encoding"
        if self.fault is None and not decoder.complete:
            self.fault = "cut"

    async def _next(self) -> bytes:
        """The next raw bytes, never empty before the end. The raw limit, the deadline and a break set the fault and end it."""
        raw = b""
        try:
            while not raw and self.fault is None:
                async with asyncio.timeout_at(self._deadline):
                    raw = await anext(self._pieces)
        except StopAsyncIteration:
            return b""
        except _SLOW:
            self.fault = "slow"
            return b""
        except _CUT:
            self.fault = "cut"
            return b""
        self._raw_room -= len(raw)
        if self._raw_room < 0:
            self.fault = "oversized"
            return raw[: self._raw_room]
        return raw
