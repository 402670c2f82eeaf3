"""Addresses that a provider wrote, and what is added to them: a signature over what the other end reads, a key that stands there once."""

import asyncio
import hashlib
from datetime import UTC, datetime

import pytest

from adapters.credential_records import Secret, SigningKeys
from adapters.sigv4 import Signature
from domain.exchange import Answer, AuthUse, Request
from tests.adapters.loopback import answer, policy, provider, serve

KEYS = SigningKeys("AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def signed(service: str, target: str) -> str:
    signature = Signature(KEYS, service, "us-east-1", AT)
    headers = signature.headers("GET", f"https://h.example{target}", [("Host", "h.example")], hashlib.sha256(b"").hexdigest())
    return dict(headers)["Authorization"].rpartition("Signature=")[2]


@pytest.mark.parametrize("service", ["athena", "s3"])
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("/a?x=%2f", "/a?x=%2F"),
        ("/a?token=abc==", "/a?token=abc%3D%3D"),
        ("/a?x=%7E", "/a?x=~"),
        ("/a?x", "/a?x="),
        ("/a?&&x=1", "/a?x=1"),
        ("/a?x=a:b/c", "/a?x=a%3Ab%2Fc"),
        ("/a?b=2&a=%31", "/a?a=1&b=2"),
    ],
)
def test_one_query_has_one_signature_however_it_is_written(service: str, written: str, read: str) -> None:
    assert signed(service, written) == signed(service, read)
    assert signed(service, written) != signed(service, "/a?x=other")


async def test_an_address_that_tells_the_key_it_was_asked_with_is_asked_with_the_key_once() -> None:
    use = AuthUse("query", "acme", (("api_key", "${secret.acme}"),))
    record = "planted-key-0123456789"

    async def echoes(head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer(b"ok", f"Link: <{head.split()[1].decode()}&page=2>"))
        return True

    async with serve(echoes) as server, provider({"SAKSHI_CREDENTIAL_ACME": record}) as door:
        rules = policy(server.origin, use)
        first = (await door.exchange(Request("GET", f"{server.origin}/jobs?page=1"), rules)).outcome
        assert isinstance(first, Answer)
        link = dict(first.headers)["link"]
        assert record not in link
        await door.exchange(Request("GET", f"{server.origin}{link[1:-1].replace('page=1&', '')}"), rules)
        await door.exchange(Request("GET", f"{server.origin}/jobs?api%5Fkey=mine&x=%20&a=b%2Bc"), rules)
        assert [head.split()[1].decode() for head in server.heads] == [
            f"/jobs?page=1&api_key={record}",
            f"/jobs?page=2&api_key={record}",
            f"/jobs?x=%20&a=b%2Bc&api_key={record}",
        ]
