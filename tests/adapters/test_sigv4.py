"""Requests signed for AWS: as the published examples are, over exactly what is sent, and nowhere else."""

import hashlib
import json
from datetime import UTC, datetime

import pytest

from adapters.credential_records import Secret, SigningKeys
from adapters.sigv4 import Signature
from domain.errors import RenderError
from domain.exchange import Answer, AuthUse, NoAnswer, Request, StoredPart
from tests.adapters.loopback import OK, answer, policy, provider, says, serve

AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
EXAMPLE = SigningKeys("AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
SECRET, SESSION = "planted/secret+key=0123456789", "planted-session-token-0123456789=="
USE = AuthUse("sigv4", "aws", service="athena", region="eu-central-1")
EMPTY = hashlib.sha256(b"").hexdigest()

# AWS's published suite; what it sends has no header for the digest.
SUITE = {
    "get-vanilla": ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    "get-vanilla-query-order-key-case": (
        "GET",
        "/?Param2=value2&Param1=value1",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "post-vanilla": ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
}


@pytest.mark.parametrize("name", SUITE)
def test_a_signature_is_the_one_that_is_published_for_the_request(name: str) -> None:
    method, target, expected = SUITE[name]
    headers = [("Host", "example.amazonaws.com"), ("X-Amz-Date", "20150830T123600Z")]
    made = Signature(EXAMPLE, "service", "us-east-1", AT).authorization(
        method, f"https://example.amazonaws.com{target}", headers, "20150830T123600Z"
    )
    assert made == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={expected}"
    )


def test_the_published_request_to_s3_is_signed_over_the_digest_in_its_header() -> None:
    keys = SigningKeys("AKIAIOSFODNN7EXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))
    headers = [
        ("Host", "examplebucket.s3.amazonaws.com"),
        ("Range", "bytes=0-9"),
        ("x-amz-content-sha256", EMPTY),
        ("x-amz-date", "20130524T000000Z"),
    ]
    made = Signature(keys, "s3", "us-east-1", AT).authorization(
        "GET", "https://examplebucket.s3.amazonaws.com/test.txt", headers, "20130524T000000Z"
    )
    assert made.endswith("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")


@pytest.mark.parametrize(("one", "other"), [("/a%3Ab/c%40d", "/a:b/c@d"), ("/a~b", "/a%7Eb")])
def test_for_s3_a_path_is_signed_alike_however_much_of_it_is_encoded(one: str, other: str) -> None:
    signature = Signature(EXAMPLE, "s3", "us-east-1", AT)
    made = [
        signature.authorization("GET", f"https://b.s3.amazonaws.com{path}", [("Host", "b")], "20150830T123600Z") for path in (one, other)
    ]
    assert made[0] == made[1]


def test_whatever_a_proxy_may_change_is_not_signed_and_what_the_contract_claims_is_replaced() -> None:
    given = [
        ("Host", "athena.eu-central-1.amazonaws.com"),
        ("Content-Type", "application/x-amz-json-1.1"),
        ("X-Amz-Target", "AmazonAthena.StartQueryExecution"),
        ("X-Amz-Date", "19990101T000000Z"),
        ("Authorization", "mine"),
        ("Accept-Encoding", "gzip"),
        ("X-Trace-ID", "t"),
    ]
    made = Signature(EXAMPLE, "athena", "eu-central-1", AT).headers("POST", "https://athena.eu-central-1.amazonaws.com/", given, EMPTY)
    names = [name.lower() for name, _ in made]
    assert len(names) == len(set(names))
    found = dict(made)
    assert found["X-Amz-Date"] == "20150830T123600Z"
    assert "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-target, " in found["Authorization"]


def test_a_body_of_which_no_digest_is_known_is_not_signed() -> None:
    with pytest.raises(RenderError):
        Signature(EXAMPLE, "s3", "us-east-1", AT).headers("PUT", "https://b.s3.amazonaws.com/k", [], None)
    assert Request("PUT", "https://x.example/", parts=(StoredPart("k", 3, "ab" * 32),)).body_sha256 == "ab" * 32


def record(origin: str, **more: object) -> str:
    given = {"scheme": "sigv4", "account": "123456789012", "origins": [origin], "tenants": ["blue"]}
    return json.dumps(given | {"access_key_id": "AKIAPLANTED", "secret_access_key": SECRET, "session_token": SESSION} | more)


async def test_a_signed_request_holds_its_session_and_an_answer_that_echoes_it_is_masked() -> None:
    echo = json.dumps({"message": f"The canonical string was x-amz-security-token:{SESSION} and {SECRET}"}).encode()
    async with serve(says(answer(echo, status="403 Forbidden"))) as server:
        async with provider({"SAKSHI_CREDENTIAL_AWS": record(server.origin)}, now=lambda: AT) as door:
            request = Request("POST", f"{server.origin}/", (("X-Amz-Target", "A.B"),), b'{"a":1}')
            exchange = await door.exchange(request, policy(server.origin, USE))
        head = server.heads[0].decode()
    assert f"X-Amz-Security-Token: {SESSION}\r\n" in head
    assert f"X-Amz-Content-SHA256: {hashlib.sha256(request.body).hexdigest()}\r\n" in head
    assert "Credential=AKIAPLANTED/20150830/eu-central-1/athena/aws4_request, SignedHeaders=" in head
    assert isinstance(exchange.outcome, Answer)
    for secret in (SECRET, SESSION):
        assert secret not in exchange.outcome.body.decode()
        assert secret not in repr(exchange)
    assert exchange.request == request


async def test_each_sending_has_a_signature_of_its_own_moment() -> None:
    moments = iter(datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 28))
    async with serve(says(OK)) as server, provider({"SAKSHI_CREDENTIAL_AWS": record(server.origin)}, now=lambda: next(moments)) as door:
        for _ in range(2):
            await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, USE))
    stamps = {line for head in server.heads for line in head.split(b"\r\n") if line.lower().startswith(b"x-amz-date")}
    assert len(stamps) == 2


@pytest.mark.parametrize(
    "broken",
    [
        {"access_key_id": None},
        {"secret_access_key": "two\nlines"},
        {"session_token": ""},
        {"value": "x"},
        {"origins": ["https://elsewhere.example"]},
        {"scheme": "bearer", "value": "x", "access_key_id": "AKIA"},
    ],
)
async def test_keys_that_may_not_be_used_here_are_proof_that_nothing_was_sent(broken: dict[str, object]) -> None:
    async with serve(says(OK)) as server, provider({"SAKSHI_CREDENTIAL_AWS": record(server.origin, **broken)}) as door:
        exchange = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, USE))
    assert isinstance(exchange.outcome, NoAnswer)
    assert (exchange.outcome.word, exchange.outcome.sent) == ("credential", False)
    assert server.connections == 0
