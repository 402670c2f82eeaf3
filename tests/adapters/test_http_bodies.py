"""Bodies that are whole, and every way in which one is not, over real loopback sockets."""

import asyncio
import gzip
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from adapters.http_answer import StreamedAnswer
from domain.exchange import Answer, NoAnswer, Request
from tests.adapters.loopback import (
    OK,
    answer,
    call,
    outlasts,
    policy,
    provider,
    says,
    serve,
)


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    framed = b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + end


def zipped(raw: bytes, encoding: str = "gzip") -> bytes:
    return answer(raw, f"Content-Encoding: {encoding}")


HELLO = gzip.compress(b"hello")
BODIES: dict[str, tuple[bytes, bytes, str | None]] = {
    "whole": (OK, b"ok", None),
    "after early hints": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3 + OK, b"ok", None),
    "chunked": (chunked(b"ab", b"cd"), b"abcd", None),
    "until the end of the connection": (b"HTTP/1.1 200 OK\r\n\r\nok", b"ok", None),
    "exactly the limit": (answer(b"x" * 1000), b"x" * 1000, None),
    "one past the limit": (answer(b"x" * 1001), b"x" * 1000, "oversized"),
    "far past the limit": (answer(b"x" * 1_000_000), b"x" * 1000, "oversized"),
    "chunked past the limit": (chunked(*[b"x" * 100] * 20), b"x" * 1000, "oversized"),
    "shorter than its length": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", b"ok", "cut"),
    "chunks without an end": (chunked(b"ab", end=b""), b"ab", "cut"),
    "a chunk that is cut": (chunked(b"ab", end=b"5\r\nx"), b"abx", "cut"),
    "a chunk without a size": (chunked(b"ab", end=b"zz\r\n"), b"ab", "cut"),
    "gzip": (zipped(HELLO), b"hello", None),
    "gzip in two members": (zipped(HELLO + HELLO), b"hellohello", None),
    "gzip with padding": (zipped(HELLO + b"\0\0"), b"hello", None),
    "gzip followed by something else": (zipped(HELLO + b"xyz"), b"hello", "encoding"),
    "gzip with data behind its padding": (zipped(HELLO + b"\0" + HELLO), b"hello", "encoding"),
    "gzip that ends early": (zipped(HELLO[:-4]), b"hello", "cut"),
    "gzip with a wrong checksum": (zipped(HELLO[:-8] + b"\0" * 8), b"", "encoding"),
    "gzip that is none": (zipped(b"hello"), b"", "encoding"),
    "gzip of nothing at all": (zipped(b""), b"", None),
    "a bomb": (zipped(gzip.compress(b"\0" * 50_000_000)), b"\0" * 1000, "oversized"),
    "members without content": (zipped(gzip.compress(b"") * 1000), b"", "oversized"),
    "identity by name": (answer(b"ok", "Content-Encoding: identity"), b"ok", None),
    "brotli": (answer(b"ok", "Content-Encoding: br"), b"", "encoding"),
    "gzip twice": (zipped(gzip.compress(HELLO), "gzip, gzip"), b"", "encoding"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", None),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_is_whole_or_has_a_fault(name: str) -> None:
    raw, body, fault = BODIES[name]
    outcome, _ = await call(says(raw), max_bytes=1000)
    assert isinstance(outcome, Answer)
    assert (outcome.body, outcome.fault) == (body, fault)


def told(begun: asyncio.Event) -> Callable[[Answer, datetime], None]:
    """Sets the event once the head of an answer, and what came with it, is there: who is asked about the quota then is not asked before."""
    return lambda _answer, _now: begun.set()


@pytest.mark.parametrize("unbounded", [{"read_s": 1e9}, {"total_s": 1e9}])
async def test_a_body_that_stalls_is_slow(unbounded: dict[str, Any]) -> None:
    begun = asyncio.Event()

    async def stalls(head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
        await begun.wait()
        return await outlasts(head, writer)

    outcome, _ = await call(stalls, spent=told(begun), **unbounded)
    assert outcome == Answer(200, (("content-length", "9"),), b"ok", "slow")


async def test_a_body_that_trickles_for_ever_is_ended_by_the_total() -> None:
    begun = asyncio.Event()

    async def trickles(head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        await begun.wait()
        passing = asyncio.create_task(outlasts(head, writer))
        try:
            while True:
                writer.write(b"1\r\nx\r\n")
                await writer.drain()
                await asyncio.sleep(0)
        finally:
            passing.cancel()

    outcome, _ = await call(trickles, spent=told(begun), read_s=1e9)
    assert isinstance(outcome, Answer)
    assert outcome.fault == "slow"
    assert set(outcome.body) == {ord("x")}


async def test_an_endless_body_is_streamed_up_to_the_limit_in_small_pieces() -> None:
    async def endless(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    sizes: list[int] = []
    async with (
        serve(endless) as server,
        provider() as door,
        door.stream(Request("GET", f"{server.origin}/"), policy(server.origin, max_bytes=5_000_000)) as streamed,
    ):
        assert isinstance(streamed, StreamedAnswer)
        async for piece in streamed.chunks():
            sizes.append(len(piece))
        assert streamed.fault == "oversized"
    assert sum(sizes) == 5_000_000
    assert max(sizes) <= 65536


async def test_a_stream_gives_back_its_connection_when_it_was_read_and_ends_it_when_not() -> None:
    async with serve(says(answer(b"x" * 100_000), keep=True)) as server, provider() as door:
        request, rules = Request("GET", f"{server.origin}/"), policy(server.origin)
        for _ in range(2):
            async with door.stream(request, rules) as streamed:
                assert isinstance(streamed, StreamedAnswer)
                assert streamed.answer.status == 200
                assert b"".join([piece async for piece in streamed.chunks()]) == b"x" * 100_000
                assert streamed.fault is None
        assert server.connections == 1
        async with door.stream(request, rules) as streamed:
            assert isinstance(streamed, StreamedAnswer)
            await anext(streamed.chunks())
        async with door.stream(request, rules) as streamed:
            pass
        await door.exchange(request, rules)
        assert server.connections == 3


async def test_a_stream_that_announces_too_much_is_not_begun() -> None:
    async with serve(says(answer(b"x" * 100_000))) as server, provider() as door:
        async with door.stream(Request("GET", f"{server.origin}/"), policy(server.origin, max_bytes=10)) as streamed:
            assert isinstance(streamed, StreamedAnswer)
            assert [piece async for piece in streamed.chunks()] == []
            assert streamed.fault == "oversized"
        async with door.stream(Request("GET", "https://elsewhere.example/"), policy(server.origin)) as refused:
            assert refused.answer == NoAnswer("address", sent=False)
            assert [piece async for piece in refused.chunks()] == []
            assert refused.fault is None
