"""Where a call may go and may be led, over real loopback sockets (docs/security.md S7); TLS."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from adapters.addresses import AddressRules, parse_origin
from domain.errors import AddressError
from domain.exchange import Answer, AuthUse, CallPolicy, NoAnswer, Request
from tests.adapters.loopback import (
    NO_AUTH,
    OK,
    PLANTED,
    Behaviour,
    answer,
    call,
    policy,
    provider,
    says,
    serve,
)

# --- addresses and redirects


async def test_an_origin_that_is_not_listed_is_not_called() -> None:
    async with serve(says(OK)) as server, provider() as door:
        for url in (
            "http://127.0.0.1:1/",
            f"{server.origin}/#x",
            server.origin.replace("http://", "http://user@"),
            "//127.0.0.1/",
            "nonsense",
        ):
            exchange = await door.exchange(Request("GET", url), policy(server.origin))
            assert exchange.outcome == NoAnswer("address", sent=False)
        with pytest.raises(AddressError, match="not an origin that the contract lists"):
            door.check("https://other.example/", policy(server.origin))
        assert server.connections == 0


async def test_outside_the_embedded_stack_loopback_and_http_are_refused() -> None:
    async with serve(says(OK)) as server, provider(rules=AddressRules()) as door:
        for origin in (server.origin, server.origin.replace("http:", "https:")):
            exchange = await door.exchange(Request("GET", f"{origin}/"), policy(origin))
            assert exchange.outcome == NoAnswer("address", sent=False)
        assert server.connections == 0
    async with serve(says(OK)) as server, provider(rules=AddressRules(listed=frozenset({parse_origin(server.origin)}))) as door:
        exchange = await door.exchange(Request("GET", f"{server.origin}/v1/x"), policy(f"{server.origin}/v1"))
        assert isinstance(exchange.outcome, Answer)


async def test_a_name_that_is_rebound_between_look_and_call_is_dialled_only_where_it_was_checked() -> None:
    asked = 0

    async def rebinding(_host: str, _port: int) -> list[str]:
        nonlocal asked
        asked += 1
        return ["127.0.0.1"] if asked == 1 else ["169.254.169.254"]

    async with serve(says(OK, keep=True)) as server:
        named = server.origin.replace("127.0.0.1", "localhost")
        async with provider(resolver=rebinding) as door:
            for _ in range(3):
                exchange = await door.exchange(Request("GET", f"{named}/"), policy(named))
                assert isinstance(exchange.outcome, Answer)
            assert asked == 1
            assert b"Host: localhost:" in server.heads[0]
        async with provider(resolver=rebinding) as door:
            exchange = await door.exchange(Request("GET", f"{named}/"), policy(named))
            assert exchange.outcome == NoAnswer("address", sent=False)
        assert server.connections == 1


async def test_the_next_checked_address_is_tried_when_one_does_not_answer() -> None:
    async def two(_host: str, _port: int) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]

    async with serve(says(OK)) as server, provider(resolver=two) as door:
        named = server.origin.replace("127.0.0.1", "localhost")
        exchange = await door.exchange(Request("GET", f"{named}/"), policy(named))
        assert isinstance(exchange.outcome, Answer)


def redirecting(location: str, *, status: str = "302 Found") -> Behaviour:
    async def behaviour(head: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(OK if b" /end" in head else answer(b"", f"Location: {location}", status=status))
        return True

    return behaviour


async def test_redirects_are_not_followed_unless_the_request_asks_and_it_is_a_get() -> None:
    for request in (Request("GET", "/"), Request("POST", "/", redirects=3), Request("HEAD", "/", redirects=3)):
        outcome, server = await call(redirecting("/end"), request)
        assert isinstance(outcome, Answer)
        assert outcome.status == 302
        assert len(server.heads) == 1
    outcome, server = await call(redirecting("/end#part"), Request("GET", "/", (("X-Job", "1"),), redirects=1))
    assert isinstance(outcome, Answer)
    assert outcome.status == 200
    assert server.heads[1].startswith(b"GET /end HTTP/1.1")
    assert b"X-Job: 1" in server.heads[1]


async def test_a_circle_of_redirects_ends_with_the_last_answer() -> None:
    outcome, server = await call(redirecting("/round"), Request("GET", "/", redirects=4))
    assert isinstance(outcome, Answer)
    assert outcome.status == 302
    assert len(server.heads) == 5


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/end",
        "https://evil.example/end",
        "//evil.example/end",
        "http://user@127.0.0.1/end",
        "file:///end",
        "http://[/end",
        "",
    ],
)
async def test_a_redirect_to_where_we_may_not_go_is_itself_the_answer(location: str) -> None:
    outcome, server = await call(redirecting(location), Request("GET", "/", redirects=3))
    assert isinstance(outcome, Answer)
    assert outcome.status == 302
    assert len(server.heads) == 1


async def test_a_redirect_to_another_origin_takes_no_credential_and_no_header_along() -> None:
    env = {"SAKSHI_CREDENTIAL_ACME": PLANTED}
    async with serve(says(OK)) as files, serve(redirecting(f"{files.origin}/end")) as api, provider(env) as door:
        rules = CallPolicy(origins=((api.origin, AuthUse("bearer", "acme")), (files.origin, NO_AUTH)), tenant="blue")
        request = Request("GET", f"{api.origin}/", (("X-Api-Key", "k"), ("Accept", "text/csv")), redirects=1)
        exchange = await door.exchange(request, rules)
        assert isinstance(exchange.outcome, Answer)
        assert exchange.outcome.status == 200
        assert PLANTED.encode() in api.heads[0]
        assert PLANTED.encode() not in files.heads[0]
        assert b"X-Api-Key" not in files.heads[0]
        assert b"Accept: text/csv" in files.heads[0]


async def test_a_second_hop_that_fails_is_not_proof_that_nothing_was_sent() -> None:
    async with serve(says(OK)) as gone:
        pass
    async with serve(redirecting(f"{gone.origin}/x")) as server, provider() as door:
        rules = CallPolicy(origins=((server.origin, NO_AUTH), (gone.origin, NO_AUTH)), tenant="blue")
        exchange = await door.exchange(Request("GET", f"{server.origin}/", redirects=1), rules)
    assert exchange.outcome == NoAnswer("refused_connection", sent=True)


# --- TLS


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(plain + made.public_bytes(serialization.Encoding.PEM))
    return path


async def test_tls_is_checked_against_the_name_though_the_address_was_dialled(certificate: Path) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    asked_for: list[str | None] = []
    serving.sni_callback = lambda _socket, name, _context: asked_for.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with serve(says(OK, keep=True), serving) as server, provider(tls=trusting) as door:
        named = server.origin.replace("127.0.0.1", "localhost")
        for _ in range(2):
            exchange = await door.exchange(Request("POST", f"{named}/", body=b"x"), policy(named))
            assert isinstance(exchange.outcome, Answer)
        assert asked_for == ["localhost"]
        wrong_name = await door.exchange(Request("POST", f"{server.origin}/"), policy(server.origin))
        assert wrong_name.outcome == NoAnswer("tls", sent=False)
        async with provider() as distrusting:
            untrusted = await distrusting.exchange(Request("POST", f"{named}/"), policy(named))
            assert untrusted.outcome == NoAnswer("tls", sent=False)
        assert len(server.heads) == 2


async def test_a_server_that_does_not_speak_tls_proves_that_nothing_was_sent() -> None:
    async with serve(says(OK)) as server, provider() as door:
        https = server.origin.replace("http:", "https:")
        for bounded in (policy(https, connect_s=0.1), policy(https, total_s=0.1)):
            exchange = await door.exchange(Request("POST", f"{https}/"), bounded)
            assert exchange.outcome == NoAnswer("connect_timeout", sent=False)
        assert server.heads == []
