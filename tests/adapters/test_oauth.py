"""Access tokens: fetched where the record says, one at a time, kept while they last, and shown nowhere."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import pytest

from adapters.addresses import AddressRules, parse_origin
from adapters.credentials import Credentials
from adapters.oauth import Tokens
from domain.errors import CredentialError, CredentialFault
from domain.exchange import Answer, AuthUse, NoAnswer, Request
from tests.adapters.loopback import OK, Server, answer, policy, provider, says, serve

USE = AuthUse("oauth2", "acme")
CLIENT_SECRET, TOKEN = "planted-client-secret-01", "planted-access-token-"
GIVEN = "planted-refresh-token-01"


def record(origin: str, token_origin: str, **more: object) -> str:
    given: dict[str, object] = {
        "scheme": "oauth2",
        "account": "acme",
        "origins": [origin],
        "token_origins": [token_origin],
        "tenants": ["blue"],
        "token_url": f"{token_origin}/oauth/token",
        "client_id": "client/1",
        "client_secret": CLIENT_SECRET,
        "scopes": ["jobs:read", "jobs:write"],
        "parameters": {"audience": "https://api.acme.example"},
    }
    return json.dumps({key: value for key, value in (given | more).items() if value is not None})


class Giver:
    """A token endpoint that gives token after token, each for `life` seconds."""

    def __init__(self, life: object = 3600, **more: object) -> None:
        self.life, self.more, self.given = life, more, 0
        self.gate: asyncio.Event | None = None

    async def __call__(self, _head: bytes, writer: asyncio.StreamWriter) -> bool:
        self.given += 1
        said = {"access_token": f"{TOKEN}{self.given}", "token_type": "Bearer", "expires_in": self.life, **self.more}
        if self.gate is not None:
            await self.gate.wait()
        writer.write(answer(json.dumps(said).encode()))
        return True


class Clock:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def standing(
    giver: Any, api: Any, *, env: Callable[[str, str], str] = record, **options: Any
) -> AsyncGenerator[tuple[Any, Server, Server]]:
    async with (
        serve(giver) as tokens,
        serve(api) as server,
        provider({"SAKSHI_CREDENTIAL_ACME": env(server.origin, tokens.origin)}, **options) as door,
    ):
        yield door, server, tokens


def tokens_in(server: Server) -> list[str]:
    lines = [line.decode() for head in server.heads for line in head.split(b"\r\n") if line.lower().startswith(b"authorization:")]
    return [line.removeprefix("Authorization: Bearer ") for line in lines]


async def get(door: Any, server: Server, **more: Any) -> Answer | NoAnswer:
    exchange = await door.exchange(Request("GET", f"{server.origin}/v1"), policy(server.origin, USE, **more))
    return exchange.outcome


async def test_a_token_is_asked_for_as_the_record_says_and_kept_while_it_lasts() -> None:
    clock, giver = Clock(), Giver(life=600)
    async with standing(giver, says(OK, keep=True), monotonic=clock) as (door, server, tokens):
        for moment in (0.0, 500.0, 41.0, 400.0):
            clock.now += moment
            assert isinstance(await get(door, server), Answer)
        assert tokens_in(server) == [f"{TOKEN}1", f"{TOKEN}1", f"{TOKEN}2", f"{TOKEN}2"]
        form = parse_qs(tokens.bodies[0].decode())
        assert form == {"grant_type": ["client_credentials"], "scope": ["jobs:read jobs:write"], "audience": ["https://api.acme.example"]}
        # RFC 6749 2.3.1: the name is form-encoded before it is joined.
        assert b"\r\nAuthorization: Basic Y2xpZW50JTJGMTpwbGFudGVkLWNsaWVudC1zZWNyZXQtMDE=\r\n" in tokens.heads[0]
        assert tokens.heads[0].startswith(b"POST /oauth/token HTTP/1.1\r\n")


async def test_a_client_may_name_itself_in_the_body() -> None:
    def env(origin: str, token_origin: str) -> str:
        return record(origin, token_origin, client_auth="body", scopes=None, parameters=None)

    async with standing(Giver(), says(OK), env=env) as (door, server, tokens):
        await get(door, server)
        assert parse_qs(tokens.bodies[0].decode()) == {
            "grant_type": ["client_credentials"],
            "client_id": ["client/1"],
            "client_secret": [CLIENT_SECRET],
        }
        assert b"authorization" not in tokens.heads[0].lower()


async def test_a_refresh_token_that_is_replaced_is_used_from_then_on() -> None:
    def env(origin: str, token_origin: str) -> str:
        return record(origin, token_origin, grant="refresh_token", refresh_token=GIVEN, client_secret=None)

    clock, giver = Clock(), Giver(life=10, refresh_token="planted-refresh-token-02")
    async with standing(giver, says(OK, keep=True), env=env, monotonic=clock) as (door, server, tokens):
        for _ in range(2):
            await get(door, server)
            clock.now += 60
        forms = [parse_qs(body.decode()) for body in tokens.bodies]
        assert [form["refresh_token"] for form in forms] == [[GIVEN], ["planted-refresh-token-02"]]
        assert [form["client_id"] for form in forms] == [["client/1"]] * 2


async def test_one_fetch_serves_all_that_wait_and_goes_on_when_they_give_up() -> None:
    giver = Giver()
    giver.gate = asyncio.Event()
    async with standing(giver, says(OK, keep=True)) as (door, server, tokens):
        impatient = await get(door, server, total_s=0.2)
        assert isinstance(impatient, NoAnswer)
        assert not impatient.sent
        waiting = [asyncio.create_task(get(door, server)) for _ in range(20)]
        await asyncio.sleep(0)
        giver.gate.set()
        assert all(isinstance(one, Answer) for one in await asyncio.gather(*waiting))
        assert giver.given == 1
        assert set(tokens_in(server)) == {f"{TOKEN}1"}
        assert len(tokens.heads) == 1


async def test_a_refused_token_is_fetched_anew_once() -> None:
    clock, refused = Clock(), {f"{TOKEN}1", f"{TOKEN}2"}

    async def api(head: bytes, writer: asyncio.StreamWriter) -> bool:
        token = head.split(b"Bearer ")[1].split(b"\r\n")[0].decode()
        writer.write(answer(b"no", status="401 Unauthorized") if token in refused else OK)
        return True

    async with standing(Giver(), api, monotonic=clock) as (door, server, _):
        refused.clear()
        await get(door, server)
        refused.update({f"{TOKEN}1", f"{TOKEN}2"})
        statuses: list[int] = []
        for _ in range(4):
            outcome = await get(door, server)
            assert isinstance(outcome, Answer)
            statuses.append(outcome.status)
        assert statuses == [401] * 4
        # The second was refused at its first use: it is kept for a minute, and only then is another asked for.
        assert tokens_in(server) == [f"{TOKEN}1", f"{TOKEN}1", *[f"{TOKEN}2"] * 3]
        clock.now += 61
        assert isinstance(await get(door, server), Answer)
        assert tokens_in(server)[-1] == f"{TOKEN}3"


FAILURES: dict[str, tuple[bytes, str]] = {
    "a client that is not known": (answer(b'{"error":"invalid_client"}', status="401 Unauthorized"), "invalid_client"),
    "an error that holds the secret": (answer(b'{"error":"%s"}' % CLIENT_SECRET.encode(), status="400 Bad Request"), "answered 400"),
    "a page": (answer(b"<html>", status="502 Bad Gateway"), "answered 502"),
    "a redirect": (answer(b"", "Location: https://elsewhere.example/", status="302 Found"), "answered 302"),
    "no token": (answer(b"{}"), "missing_token"),
    "not JSON": (answer(b"\xff\xfe"), "missing_token"),
    "a list": (answer(b"[]"), "gave nothing"),
    "deep": (answer(b"[" * 50_000), "gave nothing"),
    "another kind of token": (answer(b'{"access_token":"abc","token_type":"mac"}'), "gave nothing"),
    "a token with a line break": (answer(b'{"access_token":"a\\r\\nX: y","token_type":"bearer"}'), "gave nothing"),
    "an expiry without end": (answer(b'{"access_token":"abc","expires_in":1e999}'), "gave nothing"),
    "a cut answer": (b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"access_token":"abc"}', "gave nothing"),
    "too much": (answer(b'{"access_token":"abc","x":"' + b"y" * 70_000 + b'"}'), "gave nothing"),
    "nothing": (b"", "gave no answer: broken"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_without_a_token_nothing_is_sent_and_the_log_says_why(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    raw, why = FAILURES[name]
    async with standing(says(raw), says(OK), monotonic=Clock()) as (door, server, tokens):
        for _ in range(3):
            assert await get(door, server) == NoAnswer("credential", sent=False, fault="token")
        assert server.connections == 0
        assert len(tokens.heads) == 1  # the client is not locked out by asking again and again
    assert why in caplog.text
    assert tokens.origin in caplog.text
    for secret in (CLIENT_SECRET, TOKEN):
        assert secret not in caplog.text
        assert not any(secret in str(one.__dict__) for one in caplog.records)


async def test_a_failure_is_over_after_some_seconds_or_with_another_record() -> None:
    clock, giver = Clock(), Giver()

    async def fails_once(head: bytes, writer: asyncio.StreamWriter) -> bool:
        if len(tokens.heads) == 1:
            writer.write(answer(b'{"error":"temporarily_unavailable"}', status="503 Service Unavailable"))
            return True
        return await giver(head, writer)

    async with standing(fails_once, says(OK), monotonic=clock) as (door, server, tokens):
        assert await get(door, server) == NoAnswer("credential", sent=False, fault="token")
        clock.now += 6
        assert isinstance(await get(door, server), Answer)


async def test_a_changed_record_gets_a_token_of_its_own() -> None:
    async with serve(Giver()) as tokens, serve(says(OK, keep=True)) as server:
        env = {"SAKSHI_CREDENTIAL_ACME": record(server.origin, tokens.origin)}
        async with provider(env) as door:
            await get(door, server)
            env["SAKSHI_CREDENTIAL_ACME"] = record(server.origin, tokens.origin, client_id="client2")
            await get(door, server)
        assert tokens_in(server) == [f"{TOKEN}1", f"{TOKEN}2"]


async def test_an_answer_that_echoes_token_or_client_secret_is_masked() -> None:
    long = "eyJhbGciOiJSUzI1NiJ9." + "planted/0123456789+" * 200
    other = long[:-1] + "-"
    body = json.dumps({"said": long, "again": long.replace("/", "\\/"), "secret": CLIENT_SECRET, "other": other, "x": "%"}).encode()

    async def giver(_head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer(json.dumps({"access_token": long, "token_type": "bearer"}).encode()))
        return True

    async with standing(giver, says(answer(body, f"X-Request-Id: {CLIENT_SECRET}"))) as (door, server, _):
        outcome = await get(door, server)
    assert isinstance(outcome, Answer)
    shown = outcome.body.decode() + str(outcome.headers)
    assert len(outcome.body) == len(body)
    assert json.loads(outcome.body)["other"] == other  # one that only begins alike is somebody else's
    for secret in (long, long.replace("/", "\\\\/"), CLIENT_SECRET):
        assert secret not in shown


async def test_a_token_is_fetched_only_from_an_address_that_the_record_lists_and_the_rules_allow(caplog: pytest.LogCaptureFixture) -> None:
    async with serve(Giver()) as tokens, serve(says(OK)) as server:
        unlisted = record(server.origin, tokens.origin, token_origins=["https://login.acme.example"])
        unused = record(server.origin, "http://10.0.0.1")
        private = AddressRules(loopback=True, listed=frozenset({parse_origin("http://10.0.0.1:81")}))
        faults: tuple[tuple[str, CredentialFault], ...] = ((unlisted, "record"), (unused, "token"))
        for text, fault in faults:
            async with provider({"SAKSHI_CREDENTIAL_ACME": text}, rules=private) as door:
                assert await get(door, server) == NoAnswer("credential", sent=False, fault=fault)
        assert (tokens.connections, server.connections) == (0, 0)
    assert "may not ask for a token" in caplog.text
    assert "http://10.0.0.1 is not https" in caplog.text


BROKEN: dict[str, dict[str, object]] = {
    "no address": {"token_url": None},
    "no absolute address": {"token_url": "/token"},
    "no client": {"client_id": None},
    "no secret": {"client_secret": None},
    "an unknown grant": {"grant": "password"},
    "a refresh token without its grant": {"refresh_token": "x"},
    "a grant without its token": {"grant": "refresh_token"},
    "an unknown way": {"client_auth": "jwt"},
    "scopes as text": {"scopes": "a b"},
    "a scope with a blank": {"scopes": ["a b"]},
    "a parameter of the protocol": {"parameters": {"grant_type": "x"}},
    "parameters that are a list": {"parameters": ["x"]},
    "a parameter that is no text": {"parameters": {"a": 1}},
    "no token origins": {"token_origins": []},
    "a value": {"value": "x"},
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_record_that_says_too_little_or_too_much_is_refused(what: str) -> None:
    text = record("https://api.acme.example", "https://login.acme.example", **BROKEN[what])
    with pytest.raises(CredentialError) as refused:
        Credentials({"SAKSHI_CREDENTIAL_ACME": text}).account("acme")
    assert CLIENT_SECRET not in f"{refused.value} {refused.value.hint} {refused.value.__context__!r}"


async def test_a_bare_value_is_no_client_and_a_client_is_no_bearer() -> None:
    async with serve(says(OK)) as server, provider({"SAKSHI_CREDENTIAL_ACME": "bare-value"}) as door:
        assert await get(door, server) == NoAnswer("credential", sent=False, fault="scheme")
        assert (
            await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, AuthUse("sigv4", "acme")))
        ).outcome == NoAnswer("credential", sent=False, fault="scheme")
    async with serve(says(OK)) as server, provider({"SAKSHI_CREDENTIAL_ACME": record(server.origin, server.origin)}) as door:
        outcome = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, AuthUse("bearer", "acme")))
        assert outcome.outcome == NoAnswer("credential", sent=False, fault="scheme")
        door.check(f"{server.origin}/", policy(server.origin, USE))  # asks for no token
        assert server.connections == 0


async def test_tokens_without_an_expiry_last_an_hour_and_short_ones_half_their_life() -> None:
    clock = Clock()
    for life, used in ((None, 3600.0), (20, 10.0), (0, 3600.0), (True, 3600.0), (10**30, 30 * 86_400.0 - 60)):
        giver = Giver(life=life)
        async with standing(giver, says(OK, keep=True), monotonic=clock) as (door, server, _):
            await get(door, server)
            clock.now += used - 1
            await get(door, server)
            assert giver.given == 1
            clock.now += 2
            await get(door, server)
            assert giver.given == 2


async def test_a_fetch_that_nobody_waits_for_ends_with_the_process() -> None:
    async def never(_: object) -> Answer | NoAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    tokens = Tokens(never)
    text = record("https://api.acme.example", "https://login.acme.example")
    credential = Credentials({"SAKSHI_CREDENTIAL_ACME": text}).read("acme", origin=parse_origin("https://api.acme.example"), tenant="blue")
    with pytest.raises(CredentialError, match="in time"):
        await tokens.token(credential, within=0.01)
    await tokens.aclose()
