"""Credentials on the wire and nowhere else, and the pace of calls (docs/security.md S6)."""

import asyncio
import json
import logging
import time
from dataclasses import replace

import httpx
import pytest

from adapters.http_pace import Turnstile
from domain.errors import CredentialError, CredentialFault
from domain.exchange import Answer, AuthUse, CallPolicy, NoAnswer, Request
from tests.adapters.loopback import (
    NO_AUTH,
    OK,
    PLANTED,
    RECORD,
    answer,
    policy,
    provider,
    says,
    serve,
)

# --- authentication

USES: dict[str, tuple[AuthUse, bytes]] = {
    "bearer": (AuthUse("bearer", "acme"), f"\r\nAuthorization: Bearer {PLANTED}\r\n".encode()),
    "headers": (AuthUse("headers", templates=(("X-Key", "Key $${${secret.acme}"),)), f"\r\nX-Key: Key ${{{PLANTED}\r\n".encode()),
    "query": (AuthUse("query", templates=(("api key", "${secret.acme}"),)), f" /v1?a=1&api%20key={PLANTED} ".encode()),
    "basic": (AuthUse("basic", "pair"), b"\r\nAuthorization: Basic dTpzay1wbGFudGVkLTAxMjM0NTY3ODk=\r\n"),
}


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """As after a logging configuration that turns every logger on."""
    for name in ("", "httpx", "httpcore", "httpcore.connection", "httpcore.http11", "asyncio"):
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


@pytest.mark.parametrize("kind", USES)
async def test_a_credential_is_on_the_wire_and_nowhere_else(kind: str, everything_logged: pytest.LogCaptureFixture) -> None:
    use, expected = USES[kind]
    env = {"SAKSHI_CREDENTIAL_ACME": PLANTED, "SAKSHI_CREDENTIAL_PAIR": f"u:{PLANTED}"}

    async def echoes(head: bytes, writer: asyncio.StreamWriter) -> bool:
        target = head.split(b" ")[1].decode()
        writer.write(answer(head, f"Location: {target}", f"X-Echo: {PLANTED}"))
        return True

    async with serve(echoes) as server, provider(env) as door:
        request = Request("POST", f"{server.origin}/v1?a=1", (("authorization", "mine"),))
        exchange = await door.exchange(request, policy(server.origin, use))
        assert expected in server.heads[0]
        assert isinstance(exchange.outcome, Answer)
        assert len(exchange.outcome.body) == len(server.heads[0])
        assert exchange.request == request
        shown = repr(exchange) + exchange.outcome.body.decode() + str(exchange.request.to_json())
        assert PLANTED not in shown
        assert "dTpzay1wbGFudGVk" not in shown
        broken = await door.exchange(request, policy(server.origin, use, total_s=0.0))
        assert isinstance(broken.outcome, NoAnswer)
    assert PLANTED not in everything_logged.text
    assert not [record for record in everything_logged.records if record.name.startswith("http")]


REFUSED_USES: dict[str, tuple[AuthUse, CredentialFault]] = {
    "not there": (AuthUse("bearer", "missing"), "absent"),
    "none named": (AuthUse("bearer"), "record"),
    "not a record": (AuthUse("bearer", "broken"), "record"),
    "not for this origin": (AuthUse("bearer", "elsewhere"), "origin"),
    "not for this tenant": (AuthUse("bearer", "of_another"), "tenant"),
    "of another scheme": (AuthUse("headers", templates=(("X-Key", "${secret.bearer_only}"),)), "scheme"),
    "a hole that is none": (AuthUse("headers", templates=(("X-Key", "${secrets.acme}"),)), "record"),
    "not a pair": (AuthUse("basic", "acme"), "scheme"),
    "a bad name": (AuthUse("bearer", "../acme"), "record"),
}


@pytest.mark.parametrize("name", REFUSED_USES)
async def test_a_credential_that_may_not_go_there_is_proof_that_nothing_was_sent(name: str) -> None:
    async with serve(says(OK)) as server:
        env = {
            "SAKSHI_CREDENTIAL_ACME": PLANTED,
            "SAKSHI_CREDENTIAL_ELSEWHERE": RECORD % (PLANTED, "https://elsewhere.example"),
            "SAKSHI_CREDENTIAL_BEARER_ONLY": RECORD % (PLANTED, server.origin),
            "SAKSHI_CREDENTIAL_OF_ANOTHER": (RECORD % (PLANTED, server.origin)).replace('["blue"]', '["another"]'),
            "SAKSHI_CREDENTIAL_BROKEN": '{"scheme": "none"}',
        }
        use, fault = REFUSED_USES[name]
        async with provider(env) as door:
            rules = policy(server.origin, use)
            exchange = await door.exchange(Request("POST", f"{server.origin}/"), rules)
            where = server.origin if fault == "origin" else ""
            assert exchange.outcome == NoAnswer("credential", sent=False, fault=fault, origin=where)
            with pytest.raises(CredentialError):
                door.check(f"{server.origin}/", rules)
            door.check(f"{server.origin}/", policy(server.origin, AuthUse("bearer", "bearer_only")))
        assert server.connections == 0


async def test_a_record_of_user_and_password_is_sent_as_basic_and_as_nothing_else() -> None:
    async with serve(says(OK, keep=True)) as server:
        record = {"username": "u", "password": PLANTED, "scheme": "basic", "account": "a", "origins": [server.origin], "tenants": "*"}
        async with provider({"SAKSHI_CREDENTIAL_PAIR": json.dumps(record)}) as door:
            await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, AuthUse("basic", "pair")))
            assert USES["basic"][1] in server.heads[0]
            for use in (AuthUse("bearer", "pair"), AuthUse("query", templates=(("k", "${secret.pair}"),))):
                refused = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, use))
                assert refused.outcome == NoAnswer("credential", sent=False, fault="scheme")


async def test_what_a_secret_contains_is_not_expanded() -> None:
    env = {"SAKSHI_CREDENTIAL_ACME": "${secret.other}", "SAKSHI_CREDENTIAL_OTHER": PLANTED}
    async with serve(says(OK)) as server, provider(env) as door:
        use = AuthUse("headers", templates=(("X-Key", "${secret.acme}"),))
        await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, use))
        assert b"X-Key: ${secret.other}\r\n" in server.heads[0]


async def test_an_exact_origin_wins_over_a_pattern_whatever_the_order() -> None:
    seen: list[str | None] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200)

    record = RECORD % (PLANTED, "https://*.x.example")
    origins = (("https://*.x.example", AuthUse("bearer", "acme")), ("https://files.x.example", NO_AUTH))
    async with provider({"SAKSHI_CREDENTIAL_ACME": record}, transport=httpx.MockTransport(handler)) as door:
        for host in ("files.x.example", "api.x.example"):
            await door.exchange(Request("GET", f"https://{host}/"), CallPolicy(origins=origins, tenant="blue"))
    assert seen == [None, f"Bearer {PLANTED}"]


# --- pace


async def test_no_more_calls_than_allowed_run_at_once_and_all_get_their_turn() -> None:
    now = most = 0
    two = asyncio.Event()

    async def counts(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 2:
            two.set()
        await two.wait()
        await asyncio.sleep(0.005)
        now -= 1
        writer.write(OK)
        return True

    async with serve(counts) as server, provider() as door:
        rules = policy(server.origin, parallel=2)
        exchanges = await asyncio.gather(*(door.exchange(Request("GET", f"{server.origin}/"), rules) for _ in range(10)))
    assert most == 2
    assert all(isinstance(exchange.outcome, Answer) for exchange in exchanges)


async def test_waiting_for_a_turn_is_not_sending_and_a_turn_that_was_given_up_is_not_lost() -> None:
    arrived, release = asyncio.Event(), asyncio.Event()

    async def waits(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        arrived.set()
        await release.wait()
        writer.write(OK)
        return True

    async with serve(waits) as server, provider() as door:
        rules, request = policy(server.origin, parallel=1), Request("POST", f"{server.origin}/")
        first = asyncio.create_task(door.exchange(request, rules))
        await arrived.wait()
        impatient = await door.exchange(request, replace(rules, total_s=0.02))
        assert impatient.outcome == NoAnswer("pool_timeout", sent=False)
        late = await door.exchange(request, replace(rules, send_by=time.monotonic() + 0.02))
        assert late.outcome == NoAnswer("late", sent=False)
        cancelled = asyncio.create_task(door.exchange(request, rules))
        last = asyncio.create_task(door.exchange(request, rules))
        await asyncio.sleep(0)
        cancelled.cancel()
        release.set()
        assert isinstance((await first).outcome, Answer)
        assert isinstance((await last).outcome, Answer)
        assert len(server.heads) == 2


async def test_calls_are_spaced_to_the_rate_per_credential_and_host() -> None:
    times: list[float] = []

    async def notes(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        times.append(time.monotonic())
        writer.write(OK)
        return True

    async with serve(notes) as server, provider() as door:
        rules = policy(server.origin, per_second=50.0)
        began = time.monotonic()  # not the first arrival: that one may be late for reasons of its own
        await asyncio.gather(*(door.exchange(Request("GET", f"{server.origin}/"), rules) for _ in range(5)))
    assert times[-1] - began >= 4 / 50 - 0.015


async def test_a_call_that_runs_out_of_time_while_it_is_spaced_has_sent_nothing_and_keeps_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    clock, skipped = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + skipped)  # the spacing outlasts the slowest machine, and nobody waits for it
    async with serve(says(OK, keep=True)) as server, provider() as door:
        rules, request = policy(server.origin, parallel=1, per_second=0.001), Request("GET", f"{server.origin}/")
        await door.exchange(request, rules)
        for _ in range(3):
            spaced = await door.exchange(request, replace(rules, total_s=0.01))
            assert spaced.outcome == NoAnswer("pool_timeout", sent=False)
        skipped = 1000.0
        assert isinstance((await door.exchange(request, rules)).outcome, Answer)
        assert len(server.heads) == 2
        assert (await door.exchange(request, replace(rules, total_s=0.01))).outcome == NoAnswer("pool_timeout", sent=False)


async def test_whoever_gives_up_while_it_is_spaced_pushes_nobody_back() -> None:
    loop, gate = asyncio.get_running_loop(), Turnstile()
    await gate.enter(None, 10.0)
    began = loop.time()
    hasty = [asyncio.create_task(gate.enter(None, 10.0)) for _ in range(1000)]
    patient = asyncio.create_task(gate.enter(None, 10.0))
    await asyncio.sleep(0)
    for task in hasty:
        task.cancel()
    async with asyncio.timeout(50):  # with the instants of those who left it would be its turn after 100 s
        await patient
    assert loop.time() - began >= 0.08
