"""The door to providers, over real loopback sockets: what is sent, and every phase in which it can break."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from activities.ports import Provider
from adapters.credentials import Credentials
from adapters.http_provider import HttpProvider
from domain.exchange import Answer, NoAnswer, Request
from tests.adapters.loopback import (
    OK,
    Behaviour,
    answer,
    call,
    hangs,
    outlasts,
    policy,
    provider,
    says,
    serve,
)

# --- what is sent, and what comes back


async def test_the_frozen_request_is_sent_as_it_stands_and_once() -> None:
    request = Request("POST", "/v1/a%2Fb/%2e?x='\"&y=|", (("Idempotency-Key", '"k1"'), ("content-type", "application/json")), b'{"a":1}')
    outcome, server = await call(says(answer(b"ok", "X-Twice: 1", "X-Twice: 2")), request)
    assert outcome == Answer(200, (("content-length", "2"), ("x-twice", "1"), ("x-twice", "2")), b"ok")
    assert server.bodies == [b'{"a":1}']
    head = server.heads[0].decode()
    assert head.startswith("POST /v1/a%2Fb/%2e?x='\"&y=| HTTP/1.1\r\n")
    assert f"Host: {server.origin.removeprefix('http://')}\r\n" in head
    assert 'Idempotency-Key: "k1"\r\n' in head
    assert "Accept-Encoding: gzip, identity\r\n" in head
    assert "authorization" not in head.lower()
    assert "cookie" not in head.lower()


async def test_cookies_are_not_kept_and_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with serve(says(answer(b"ok", "Set-Cookie: session=1"), keep=True)) as server, provider() as door:
        for _ in range(2):
            exchange = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin))
            assert isinstance(exchange.outcome, Answer)
            assert exchange.began <= exchange.ended
        assert b"cookie" not in server.heads[1].lower()


async def test_calls_share_a_connection_and_a_closed_one_is_replaced() -> None:
    all_there = asyncio.Event()

    async def together(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        if len(server.heads) == 5 + 3:
            all_there.set()
        if len(server.heads) > 5:
            await all_there.wait()
        writer.write(OK)
        return True

    async with serve(together) as server, provider() as door:
        for _ in range(5):
            await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin))
        assert server.connections == 1
        await asyncio.gather(*(door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin)) for _ in range(3)))
        assert server.connections == 3


async def test_a_request_that_cannot_be_is_refused_before_anything_is_sent() -> None:
    async with serve(says(OK)) as server, provider() as door:
        for request in (
            Request("GET", "/", (("X-A", "a\r\nX-B: b"),)),
            Request("GET", "/", (("X-A", "é"),)),
            Request("GET", "/", (("X A", "a"),)),
            Request("GET", "/", (("Host", "evil.example"),)),
            Request("POST", "/", (("Transfer-Encoding", "chunked"),), b"x"),
            Request("GET / HTTP/1.1\r\nX:", "/"),
        ):
            exchange = await door.exchange(replace(request, url=server.origin + "/"), policy(server.origin))
            assert exchange.outcome == NoAnswer("unsendable", sent=False)
        assert server.connections == 0


# --- proof of not-sent, and its absence


async def test_a_refused_connection_proves_that_nothing_was_sent() -> None:
    async with serve(says(OK)) as server, provider() as door:
        origin = server.origin
    exchange = await door.exchange(Request("POST", f"{origin}/"), policy(origin))
    assert exchange.outcome == NoAnswer("refused_connection", sent=False)


async def test_a_name_without_an_address_proves_that_nothing_was_sent() -> None:
    async def unknown(_host: str, _port: int) -> list[str]:
        raise OSError("Name or service not known")

    async with provider(resolver=unknown) as door:
        exchange = await door.exchange(Request("POST", "https://a.example/"), policy("https://a.example"))
    assert exchange.outcome == NoAnswer("dns", sent=False)


async def test_a_resolver_that_hangs_is_a_connect_timeout() -> None:
    async def hanging(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with provider(resolver=hanging) as door:
        for bounded in (policy("https://a.example", connect_s=0.05), policy("https://a.example", total_s=0.05)):
            exchange = await door.exchange(Request("POST", "https://a.example/"), bounded)
            assert exchange.outcome == NoAnswer("connect_timeout", sent=False)


async def _drops(_head: bytes, _writer: asyncio.StreamWriter) -> bool:
    return False


async def _resets(_head: bytes, writer: asyncio.StreamWriter) -> bool:
    writer.transport.abort()
    return False


FOR_EVER = 1e9
LOST: dict[str, tuple[Behaviour, NoAnswer, dict[str, Any]]] = {
    "dropped after the request": (_drops, NoAnswer("broken", sent=True), {}),
    "reset after the request": (_resets, NoAnswer("broken", sent=True), {}),
    "dropped in the status line": (says(b"HTTP/1."), NoAnswer("broken", sent=True), {}),
    "dropped in the headers": (says(b"HTTP/1.1 200 OK\r\nContent-Le"), NoAnswer("broken", sent=True), {}),
    "another protocol, unasked": (says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), NoAnswer("broken", sent=True), {}),
    "not HTTP": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), NoAnswer("broken", sent=True), {}),
    "silent past the read timeout": (outlasts, NoAnswer("timeout", sent=True), {"total_s": FOR_EVER}),
    "silent past the total": (outlasts, NoAnswer("timeout", sent=True), {"read_s": FOR_EVER}),
    "headers without end": (says(b"HTTP/1.1 200 OK\r\nX-Big: " + b"x" * 300_000), NoAnswer("header_overflow", sent=True), {}),
    "two lengths": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk"), NoAnswer("broken", sent=True), {}),
}


@pytest.mark.parametrize("name", LOST)
async def test_after_the_first_byte_no_failure_proves_that_nothing_was_sent(name: str) -> None:
    behaviour, expected, bounds = LOST[name]
    outcome, server = await call(behaviour, Request("POST", "/", body=b"{}"), **bounds)
    assert outcome == expected
    assert len(server.heads) == 1


async def test_a_peer_that_hangs_up_before_it_has_read_the_request_leaves_it_unproven() -> None:
    accepted: list[asyncio.StreamWriter] = []

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        writer.transport.abort()

    listening = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening, provider() as door:
        exchange = await door.exchange(Request("POST", f"{origin}/", body=b"x" * 5_000_000), policy(origin))
    assert isinstance(exchange.outcome, NoAnswer)
    assert exchange.outcome.sent
    assert len(accepted) == 1


async def test_a_kept_connection_that_dies_under_a_request_is_not_tried_again() -> None:
    requests = 0

    async def once_then_drop(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        nonlocal requests
        requests += 1
        if requests == 1:
            writer.write(OK)
        return requests == 1

    async with serve(once_then_drop) as server, provider() as door:
        first = await door.exchange(Request("POST", f"{server.origin}/"), policy(server.origin))
        second = await door.exchange(Request("POST", f"{server.origin}/"), policy(server.origin))
    assert isinstance(first.outcome, Answer)
    assert second.outcome == NoAnswer("broken", sent=True)
    assert (requests, server.connections) == (2, 1)


async def test_no_first_byte_leaves_after_send_by_on_a_new_connection_or_a_kept_one() -> None:
    async def slow(_host: str, _port: int) -> list[str]:
        await asyncio.sleep(send_by - time.monotonic() + 0.01)
        return ["127.0.0.1"]

    async with serve(says(OK, keep=True)) as server, provider(resolver=slow) as door:
        named = server.origin.replace("127.0.0.1", "localhost")
        send_by = time.monotonic() + 0.02
        late = await door.exchange(Request("POST", f"{named}/"), policy(named, send_by=send_by))
        assert late.outcome == NoAnswer("late", sent=False)
        send_by = time.monotonic()
        in_time = await door.exchange(Request("POST", f"{named}/"), policy(named, send_by=time.monotonic() + 60))
        assert isinstance(in_time.outcome, Answer)
        past = await door.exchange(Request("POST", f"{named}/"), policy(named, send_by=time.monotonic() - 1))
        assert past.outcome == NoAnswer("late", sent=False)
        assert len(server.heads) == 1


async def test_another_transport_proves_nothing_by_running_out_of_time() -> None:
    async def never(_request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        return httpx.Response(200)

    async def refused(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no")

    for handler, expected in ((never, NoAnswer("timeout", sent=True)), (refused, NoAnswer("refused_connection", sent=False))):
        async with provider(transport=httpx.MockTransport(handler)) as door:
            exchange = await door.exchange(Request("POST", "https://a.example/"), policy("https://a.example", total_s=0.05))
        assert exchange.outcome == expected


async def test_a_cancelled_call_leaves_no_connection_behind_and_gives_its_turn_back() -> None:
    arrived = asyncio.Event()

    async def hangs_once(head: bytes, writer: asyncio.StreamWriter) -> bool:
        if b"/hang" in head:
            arrived.set()
            await hangs(head, writer)
        writer.write(OK)
        return True

    async with serve(hangs_once) as server, provider() as door:
        rules = policy(server.origin, parallel=1)
        hanging = asyncio.create_task(door.exchange(Request("GET", f"{server.origin}/hang"), rules))
        await arrived.wait()
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        exchange = await door.exchange(Request("GET", f"{server.origin}/"), rules)
        assert isinstance(exchange.outcome, Answer)
        assert server.connections == 2


def test_it_fills_the_port_that_activities_speak_to() -> None:
    port: Provider = HttpProvider(Credentials({}))
    assert port is not None
