"""The starter: hands out operations, at most so many at once, and waits for each.

`python -m benchmarks.contest.starter KIND PROVIDER` reads orders as JSON lines, `{"operations", "in_flight", "polls"}`, and answers each
with one line: how long it took. Whoever ordered has read the processors' clocks by the time it sends another line, upon which
each operation proves, on one line again, that it succeeded, and what it left behind.
"""

import asyncio
import importlib
import json
import sys
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from typing import Protocol


@dataclass(frozen=True)
class Cost:
    """What one operation left behind: bytes of its result, and events and bytes of its history where there is one."""

    result: int
    events: int | None = None
    history: int | None = None


class Hand(Protocol):
    """A client of one kind."""

    async def once(self, polls: int) -> str:
        """Start one operation with so many polls and wait for its end; its id."""
        ...

    async def cost(self, id: str) -> Cost:
        """What it left behind. Raises AssertionError if it did not succeed."""
        ...


@dataclass(frozen=True)
class Order:
    """What is to be handed out."""

    operations: int
    in_flight: int
    polls: int


async def fulfil(hand: Hand, order: Order) -> tuple[float, list[str]]:
    """Hand out and wait; the seconds that it took, and the ids."""
    slots = asyncio.Semaphore(order.in_flight)

    async def one() -> str:
        async with slots:
            return await hand.once(order.polls)

    began = time.perf_counter()
    ids = await asyncio.gather(*(one() for _ in range(order.operations)))
    return time.perf_counter() - began, ids


async def heard() -> str:
    """The next line of stdin; empty once that is closed."""
    return await asyncio.to_thread(sys.stdin.readline)


async def serve(opened: AbstractAsyncContextManager[Hand]) -> None:
    """Answer orders, until stdin is closed."""
    async with opened as hand:
        print("ready", flush=True)
        while line := await heard():
            seconds, ids = await fulfil(hand, Order(**json.loads(line)))
            print(json.dumps(seconds), flush=True)
            await heard()
            print(json.dumps([asdict(await hand.cost(id)) for id in ids]), flush=True)


def main() -> None:
    """Each kind lives in a module of its own: not every environment has every library."""
    kind, *words = sys.argv[1:]
    hands = importlib.import_module(f"benchmarks.contest.{kind}_hand")
    asyncio.run(serve(hands.opened(*words)))


if __name__ == "__main__":
    main()
