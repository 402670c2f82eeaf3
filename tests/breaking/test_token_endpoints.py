"""A token endpoint that sends back what it was sent, and answers of hosts that others' quotas must not be held by."""

import json
import logging
from functools import partial

import pytest

from domain.exchange import Answer, AuthUse, NoAnswer, Request
from domain.language.connection import Quota
from domain.quota import spent_until
from tests.adapters.loopback import OK, answer, policy, provider, says, serve
from tests.adapters.test_oauth import get, record, standing

SECRET = "correct_horse_battery_staple"
QUOTA = Quota.model_validate({"remaining": "headers.x_ratelimit_remaining", "reset": "headers.x_ratelimit_reset"})


def env(origin: str, token_origin: str) -> str:
    return record(origin, token_origin, client_secret=SECRET, grant="refresh_token", refresh_token="planted_refresh_token")


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (SECRET, False),
        (f"no_{SECRET}", False),
        ("correct_horse", False),
        ("planted_refresh_token", False),
        ("refresh_token", False),
        ("invalid_grant", True),
        ("or", True),
    ],
)
async def test_an_error_code_that_is_a_secret_or_a_part_of_one_is_not_shown(
    code: str, shown: bool, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = json.dumps({"error": code, "error_description": SECRET}).encode()
    caplog.set_level(logging.DEBUG)
    async with standing(says(answer(refusal, status="400 Bad Request")), says(OK), env=env) as (door, server, _tokens):
        refused = await get(door, server)
        assert isinstance(refused, NoAnswer)
        assert (refused.word, refused.sent) == ("credential", False)
    said = "\n".join(one.getMessage() for one in caplog.records if one.name == "sakshi.http")
    assert SECRET not in said
    assert (f"answered 400: {code}" in said) is shown


@pytest.mark.parametrize("code", ["correcthorsebattery", "horse", "batterystaple_"])
async def test_an_error_code_that_is_a_secret_in_small_letters_is_not_shown(code: str, caplog: pytest.LogCaptureFixture) -> None:
    def env(origin: str, token_origin: str) -> str:
        return record(origin, token_origin, client_secret="CorrectHorseBattery", parameters={"audience": "BatteryStaple"})

    refusal = answer(json.dumps({"error": code}).encode(), status="400 Bad Request")
    async with standing(says(refusal), says(OK), env=env) as (door, server, _tokens):
        assert isinstance(await get(door, server), NoAnswer)
    assert "answered 400: no code that can be read" in caplog.text


async def test_what_another_host_says_of_its_quota_to_which_a_redirect_led_holds_no_call_to_this_one() -> None:
    spent = answer(b"ok", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 30")
    async with serve(says(spent)) as other:
        led = answer(b"", f"Location: {other.origin}/result", status="302 Found")
        async with serve(says(led)) as server, provider() as door:
            origins = tuple((one.origin, AuthUse("none")) for one in (server, other))
            rules = policy(server.origin, origins=origins, spent=partial(spent_until, QUOTA), redirects=1)
            first = await door.exchange(Request("GET", f"{server.origin}/", redirects=1), rules)
            assert isinstance(first.outcome, Answer)
            assert first.outcome.body == b"ok"
            again = (await door.exchange(Request("GET", f"{server.origin}/"), rules)).outcome
            assert isinstance(again, Answer)
            assert again.status == 302
            held = (await door.exchange(Request("GET", f"{other.origin}/"), rules)).outcome
            assert isinstance(held, NoAnswer)
            assert held.word == "quota"
