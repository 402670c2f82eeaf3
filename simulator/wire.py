"""How an answer leaves: at once, or on the journey that a lie chose for it.

A dropped answer is a closed socket, so that a client meets what it would meet outside. The transport is put into the scope by
`serve.py`; under an in-process ASGI transport, which has none, a dropped answer is raised as `ConnectionResetError`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from email.utils import formatdate
from functools import lru_cache
from typing import cast

from starlette.types import Receive, Scope, Send

from simulator.answer import AT_ONCE, Answer

ENDLESS_PIECE = 64 * 1024
NO_BODY = (204, 304)


class Closing(Exception):
    """The simulator ends; nothing more is answered."""


class Gate:
    """Where calls wait. `release` lets go of all that are held now; `close` ends every wait for good."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self._held = asyncio.Event()
        self.holding = 0

    async def pause(self, seconds: float) -> None:
        """Waits so long."""
        await self._wait(self.closed, seconds)

    async def hold(self, seconds: float) -> None:
        """Waits until released, and no longer than this."""
        self.holding += 1
        try:
            await self._wait(self._held, seconds)
        finally:
            self.holding -= 1

    def release(self) -> int:
        """Lets go; says how many were held."""
        held, self._held = self._held, asyncio.Event()
        held.set()
        return self.holding

    def close(self) -> None:
        """Nothing waits any more."""
        self.closed.set()
        self.release()

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return
        if self.closed.is_set():
            raise Closing


class Wire:
    """The way back to one caller."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, gate: Gate) -> None:
        state = cast("dict[str, object]", scope.get("state") or {})
        self._transport = cast("asyncio.Transport | None", state.get("transport"))
        self._receive, self._send, self._gate = receive, send, gate

    async def deliver(self, answer: Answer) -> None:
        """Sends it, the way its delivery says."""
        how = answer.delivery
        if how.drop:
            await self.break_off()
        elif answer.status in NO_BODY:  # nothing can be lied about a body that there is not
            await self._start(answer)
            await self._send({"type": "http.response.body", "body": b""})
        elif how.header_pause:
            await self._headers_one_by_one(answer)
        else:
            await self._start(answer)
            if how is AT_ONCE and answer.stream is None:
                await self._send({"type": "http.response.body", "body": answer.body})
            elif await self._body(answer):
                await self._send({"type": "http.response.body", "body": b""})

    async def break_off(self) -> None:
        """Closes the connection without another byte, and waits until the server has noticed."""
        if self._transport is None:
            raise ConnectionResetError("the simulator dropped this connection")
        self._transport.abort()
        await self._gone()

    async def _start(self, answer: Answer) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in _headers(answer)]
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})

    async def _body(self, answer: Answer) -> bool:
        """Sends what there is; False if the connection broke on purpose or by the caller."""
        how = answer.delivery
        left = None if how.cut is None else int((answer.length or len(answer.body)) * how.cut)
        async for piece in self._pieces(answer):
            if self._transport is not None and self._transport.is_closing():
                await self._gone()
                return False
            sent = piece if left is None else piece[:left]
            await self._send({"type": "http.response.body", "body": sent, "more_body": True})
            left = None if left is None else left - len(sent)
            if left == 0:
                break
        if how.cut is None:
            return True
        if self._transport is None:
            raise ConnectionResetError("the simulator cut this answer")
        self._transport.close()
        await self._gone()
        return False

    async def _pieces(self, answer: Answer) -> AsyncIterator[bytes]:
        how = answer.delivery
        if how.endless:
            block = (answer.whole() or b" ") * (ENDLESS_PIECE // (len(answer.body) or 1) + 1)
            while not self._gate.closed.is_set():
                yield block
                await asyncio.sleep(0)  # a caller that reads as fast as we send must not starve the others
            return
        for piece in _split(answer):
            yield piece
            if how.body_pause:
                await self._gate.pause(how.body_pause)

    async def _headers_one_by_one(self, answer: Answer) -> None:
        lines = [f"HTTP/1.1 {answer.status} OK", *(f"{name}: {value}" for name, value in _headers(answer)), "connection: close"]
        if self._transport is None:
            await self._gate.pause(answer.delivery.header_pause * len(lines))
            await self._start(answer)
            await self._send({"type": "http.response.body", "body": answer.whole()})
            return
        for line in lines:
            if not self._transport.is_closing():
                self._transport.write(line.encode("latin-1", "replace") + b"\r\n")
                await self._gate.pause(answer.delivery.header_pause)
        if not self._transport.is_closing():
            self._transport.write(b"\r\n" + answer.whole())
            self._transport.close()
        await self._gone()

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _headers(answer: Answer) -> Iterator[tuple[str, str]]:
    yield from answer.headers
    yield "date", _date()
    if answer.status not in NO_BODY and not answer.delivery.endless:
        yield "content-length", str(answer.length if answer.length is not None else len(answer.body))


def _split(answer: Answer) -> Iterator[bytes]:
    if answer.stream is not None:
        yield from answer.stream()
        return
    step = max(1, -(-len(answer.body) // answer.delivery.pieces))
    for first in range(0, len(answer.body), step):
        yield answer.body[first : first + step]


def _date() -> str:
    return _date_of(int(time.time()))


@lru_cache(maxsize=1)
def _date_of(second: int) -> str:
    return formatdate(second, usegmt=True)
