"""A body that is too large to hold goes from the result store to the socket, whole and as it was stored, or not at all."""

import asyncio
import hashlib
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.http_upload import Files
from adapters.result_store import ObstoreResults
from domain.errors import NotFound, Unreachable
from domain.evidence import file_key
from domain.exchange import Answer, NoAnswer, Request, StoredPart
from tests.adapters.loopback import OK, Server, answer, outlasts, policy, provider, says, serve

DATA = bytes(range(256)) * 4_000
SHA = hashlib.sha256(DATA).hexdigest()
FILE = StoredPart(file_key("blue", SHA), len(DATA), SHA)
MIB = 1024 * 1024


@dataclass
class Shelf:
    """A store of one object, in pieces; `reads` counts the pieces that were taken."""

    pieces: list[bytes]
    says: int | None = None
    reads: int = 0
    failing: list[Exception] = field(default_factory=list[Exception])

    async def size(self, key: str) -> int | None:
        return self.says

    async def read(self, key: str) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            self.reads += 1
            yield piece
        for error in self.failing:
            raise error


def shelf(data: bytes = DATA, *, size: int | None = len(DATA), piece: int = 100_000, failing: Exception | None = None) -> Shelf:
    return Shelf([data[start : start + piece] for start in range(0, len(data), piece)], size, failing=[failing] if failing else [])


async def sent(files: Files | None, *parts: bytes | StoredPart, method: str = "POST") -> tuple[Answer | NoAnswer, Server]:
    async with serve(says(OK)) as server, provider(files=files) as door:
        exchange = await door.exchange(Request(method, f"{server.origin}/up", parts=parts), policy(server.origin))
        return exchange.outcome, server


@asynccontextmanager
async def reading(behaviour: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncGenerator[str]:
    """A server that reads a body as it likes. Gives its origin."""
    tasks = set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await behaviour(reader, writer)
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listening.wait_closed()


async def test_parts_arrive_in_order_with_their_length_and_not_in_chunks() -> None:
    outcome, server = await sent(shelf(), b"head ", FILE, b" between ", FILE, b" tail")
    assert isinstance(outcome, Answer)
    assert outcome.status == 200
    assert server.bodies == [b"head " + DATA + b" between " + DATA + b" tail"]
    head = server.heads[0].lower()
    assert f"content-length: {len(server.bodies[0])}".encode() in head
    assert b"transfer-encoding" not in head


async def test_the_result_store_is_where_a_stored_file_comes_from(tmp_path: Path) -> None:
    store = ObstoreResults(tmp_path)
    async with store.stage("x") as staged:
        await staged.write(DATA)
        await staged.seal()
    await store.publish("x", FILE.key)
    assert await store.size(FILE.key) == len(DATA)
    _, server = await sent(store, FILE)
    assert server.bodies == [DATA]


async def test_an_empty_file_is_an_empty_body() -> None:
    digest = hashlib.sha256(b"").hexdigest()
    outcome, server = await sent(shelf(b"", size=0), StoredPart(file_key("blue", digest), 0, digest))
    assert isinstance(outcome, Answer)
    assert server.bodies == [b""]
    assert b"content-length: 0" in server.heads[0].lower()


@pytest.mark.parametrize("files", [None, shelf(size=None), shelf(size=len(DATA) - 1)], ids=["no store", "erased", "another size"])
async def test_a_file_that_is_lost_is_found_before_a_byte_leaves(files: Files | None) -> None:
    outcome, server = await sent(files, b"head", FILE)
    assert outcome == NoAnswer("unsendable", sent=False)
    assert server.connections == 0


@pytest.mark.parametrize(
    "files",
    [
        lambda: shelf(b"\xff" + DATA[1:]),
        lambda: shelf(DATA[:-1] + b"\x01"),
        lambda: shelf(DATA + b"more"),
        lambda: shelf(DATA[:-1]),
        lambda: shelf(DATA[:200_000], failing=NotFound("gone")),
    ],
    ids=["another first byte", "another last byte", "longer", "shorter", "gone on the way"],
)
async def test_a_file_that_is_another_is_never_sent_whole(files: Callable[[], Shelf]) -> None:
    outcome, server = await sent(files(), b"head", FILE)
    assert outcome == NoAnswer("unsendable", sent=True)
    assert server.bodies == []  # the server waited for all that was announced, and saw the connection end


async def test_a_file_of_one_piece_that_is_another_is_held_back_altogether() -> None:
    files = shelf(b"\xff" + DATA[1:], piece=len(DATA))
    outcome, server = await sent(files, FILE)
    assert isinstance(outcome, NoAnswer)
    assert server.bodies == []


async def test_a_store_that_fails_on_the_way_leaves_it_open_what_the_provider_made_of_it() -> None:
    outcome, server = await sent(shelf(DATA[:200_000], failing=Unreachable("the store")), FILE)
    assert outcome == NoAnswer("broken", sent=True)
    assert server.bodies == []


async def test_a_store_that_does_not_answer_has_nothing_sent() -> None:
    class Down(Shelf):
        async def size(self, key: str) -> int | None:
            raise Unreachable("the store")

    outcome, server = await sent(Down([]), FILE)
    assert outcome == NoAnswer("unsendable", sent=False)
    assert server.connections == 0


async def test_an_answer_that_comes_before_the_body_is_taken_ends_the_reading_of_the_file() -> None:
    endless = Shelf([b"x" * MIB] * 400, 400 * MIB)
    part = StoredPart(FILE.key, 400 * MIB, "0" * 64)
    refusal = answer(b"too large", "Connection: close", status="413 Content Too Large")

    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        await writer.drain()

    async with reading(refusing) as origin, provider(files=endless) as door:
        exchange = await door.exchange(Request("POST", f"{origin}/up", parts=(part,)), policy(origin))
    # Whether the answer is still there to be read when the connection is reset is for the host's kernel to say.
    assert exchange.outcome == NoAnswer("broken", sent=True) or getattr(exchange.outcome, "status", 0) == 413
    assert endless.reads < 100


async def test_a_body_that_does_not_pass_in_the_total_time_ends_as_any_exchange_does() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await outlasts(await reader.readuntil(b"\r\n\r\n"), writer)

    endless = Shelf([b"x" * MIB] * 400, 400 * MIB)
    part = StoredPart(FILE.key, 400 * MIB, "0" * 64)
    async with reading(deaf) as origin, provider(files=endless) as door:
        exchange = await door.exchange(Request("POST", f"{origin}/up", parts=(part,)), policy(origin, write_s=1e9))
    assert exchange.outcome == NoAnswer("timeout", sent=True)
    assert endless.reads < 100


async def test_a_redirect_never_sends_a_body_again() -> None:
    async with serve(says(answer(b"", "Location: /elsewhere", status="307 Temporary Redirect"))) as server, provider(files=shelf()) as door:
        for method in ("POST", "GET"):
            await door.exchange(Request(method, f"{server.origin}/up", parts=(FILE,), redirects=1), policy(server.origin))
    assert [head.split()[0] for head in server.heads] == [b"POST", b"GET", b"GET"]
    assert server.bodies == [DATA, DATA, b""]


async def test_two_hundred_mebibytes_pass_and_are_never_held() -> None:
    piece, count = b"\x07" * MIB, 200
    whole = hashlib.sha256()
    for _ in range(count):
        whole.update(piece)
    part = StoredPart(FILE.key, count * MIB, whole.hexdigest())
    taken = [0]

    async def swallowing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        while taken[0] < count * MIB:
            taken[0] += len(await reader.read(MIB))
        writer.write(OK)
        await writer.drain()

    async with reading(swallowing) as origin, provider(files=Shelf([piece] * count, count * MIB)) as door:
        tracemalloc.start()
        try:
            exchange = await door.exchange(Request("POST", f"{origin}/up", parts=(part,)), policy(origin, total_s=900.0))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(exchange.outcome, Answer)
    assert taken == [count * MIB]
    assert peak < 20 * MIB
