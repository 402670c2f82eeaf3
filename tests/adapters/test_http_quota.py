"""A quota that is used up: nothing is sent before its reset, of this credential to this host, and whoever asks is told how long."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from domain.exchange import Answer, AuthUse, NoAnswer, Request
from domain.language.connection import Quota
from domain.quota import spent_until
from tests.adapters.loopback import OK, Behaviour, answer, policy, provider, serve

QUOTA = Quota.model_validate({"remaining": "headers.x_ratelimit_remaining", "reset": "headers.x_ratelimit_reset"})
SPENT = partial(spent_until, QUOTA)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def spends(*resets: str) -> Behaviour:
    left = list(resets)

    async def behaviour(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer(b"ok", "X-RateLimit-Remaining: 0", f"X-RateLimit-Reset: {left.pop(0)}") if left else OK)
        return True

    return behaviour


async def test_nothing_is_sent_before_the_reset_and_then_it_is() -> None:
    clock = Clock()
    async with serve(spends("30")) as server, provider(now=clock) as door:
        request, rules = Request("POST", f"{server.origin}/"), policy(server.origin, spent=SPENT)
        assert isinstance((await door.exchange(request, rules)).outcome, Answer)
        clock.now += timedelta(seconds=10)
        assert (await door.exchange(request, rules)).outcome == NoAnswer("quota", sent=False, wait_ms=20_000)
        async with door.stream(request, rules) as streamed:
            assert streamed.answer == NoAnswer("quota", sent=False, wait_ms=20_000)
        assert len(server.heads) == 1
        clock.now += timedelta(seconds=20)
        assert isinstance((await door.exchange(request, rules)).outcome, Answer)


async def test_a_streamed_answer_says_it_too() -> None:
    async with serve(spends("30")) as server, provider(now=Clock()) as door:
        request, rules = Request("GET", f"{server.origin}/"), policy(server.origin, spent=SPENT)
        async with door.stream(request, rules) as streamed:
            assert b"".join([piece async for piece in streamed.chunks()]) == b"ok"
        assert (await door.exchange(request, rules)).outcome == NoAnswer("quota", sent=False, wait_ms=30_000)


async def test_a_quota_is_of_one_credential_and_host_and_of_contracts_that_name_it() -> None:
    env = {f"SAKSHI_CREDENTIAL_{name}": f"planted-{name}-0123456789" for name in ("A", "B")}
    async with serve(spends("30")) as server, serve(spends()) as other, provider(env, now=Clock()) as door:
        first = policy(server.origin, AuthUse("bearer", "a"), spent=SPENT)
        request = Request("GET", f"{server.origin}/")
        await door.exchange(request, first)
        assert isinstance((await door.exchange(request, first)).outcome, NoAnswer)
        elsewhere = await door.exchange(Request("GET", f"{other.origin}/"), policy(other.origin, AuthUse("bearer", "a"), spent=SPENT))
        someone = await door.exchange(request, policy(server.origin, AuthUse("bearer", "b"), spent=SPENT))
        unnamed = await door.exchange(request, replace(first, spent=None))
        assert all(isinstance(one.outcome, Answer) for one in (elsewhere, someone, unnamed))


async def test_a_reset_far_away_is_believed_for_an_hour_at_a_time() -> None:
    clock = Clock()
    async with serve(spends("864000", "864000")) as server, provider(now=clock) as door:
        request, rules = Request("GET", f"{server.origin}/"), policy(server.origin, spent=SPENT)
        await door.exchange(request, rules)
        assert (await door.exchange(request, rules)).outcome == NoAnswer("quota", sent=False, wait_ms=3_600_000)
        clock.now += timedelta(hours=1)
        assert isinstance((await door.exchange(request, rules)).outcome, Answer)
        assert (await door.exchange(request, rules)).outcome == NoAnswer("quota", sent=False, wait_ms=3_600_000)
        assert len(server.heads) == 2
