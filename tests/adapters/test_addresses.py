"""Attacks on addresses (docs/security.md S7) and what must still pass."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.addresses import (
    Address,
    AddressRules,
    Origin,
    is_public,
    parse_address,
    parse_origin,
    parse_pattern,
    resolve,
)
from domain.errors import AddressError

PLAIN = {
    "host in capitals": ("HTTPS://API.Acme.Example/v1", Address(Origin("https", "api.acme.example", 443), "/v1")),
    "default port written out": ("https://a.example:443/x", Address(Origin("https", "a.example", 443), "/x")),
    "another port": ("https://a.example:8443/x?y=1", Address(Origin("https", "a.example", 8443), "/x?y=1")),
    "no path": ("https://a.example", Address(Origin("https", "a.example", 443), "/")),
    "no path but a query": ("https://a.example?x=1", Address(Origin("https", "a.example", 443), "/?x=1")),
    "escapes are kept as they are": (
        "https://a.example/%2e%2e/%2F?q=%20'\"|",
        Address(Origin("https", "a.example", 443), "/%2e%2e/%2F?q=%20'\"|"),
    ),
    "international name": ("https://BÜCHER.example/", Address(Origin("https", "xn--bcher-kva.example", 443), "/")),
    "IPv6": ("http://[0:0::1]:8080/", Address(Origin("http", "::1", 8080), "/")),
    "IPv4": ("https://93.184.215.14/", Address(Origin("https", "93.184.215.14", 443), "/")),
    "an at sign in the path": ("https://a.example/@b", Address(Origin("https", "a.example", 443), "/@b")),
}

REFUSED = {
    "userinfo": "https://user:secret@a.example/",
    "userinfo that looks like a host": "https://api.acme.example@evil.example/",
    "empty userinfo": "https://@a.example/",
    "a backslash": "https://a.example\\@evil.example/",
    "a backslash in the path": "https://a.example/\\evil.example",
    "a fragment": "https://a.example/#x",
    "a fragment before a host": "https://evil.example#@a.example/",
    "a line break": "https://a.example/\r\nX: y",
    "a tab in the scheme": "ht\ttps://a.example/",
    "a leading space": " https://a.example/",
    "a NUL": "https://a.example/\0",
    "a delete character": "https://a.example/\x7f",
    "scheme-relative": "//a.example/",
    "relative": "/v1/reports",
    "no host": "https:///x",
    "one slash": "https:/a.example/",
    "three slashes": "https:///a.example/",
    "another scheme": "ftp://a.example/",
    "a file": "file:///etc/passwd",
    "long s that folds to s": "http\u017f://a.example/",
    "an escape in the host": "https://a%2eexample/",
    "a dot at the end": "https://a.example./",
    "two dots": "https://a..example/",
    "a port that is none": "https://a.example:99999/",
    "port zero": "https://a.example:0/",
    "port in other digits": "https://a.example:\u0664\u0664\u0663/",
    "an empty port": "https://a.example:/",
    "two ports": "https://a.example:1:2/",
    "decimal IPv4": "https://2130706433/",
    "hexadecimal IPv4": "https://0x7f000001/",
    "short IPv4": "https://127.1/",
    "octal IPv4": "https://0177.0.0.1/",
    "hexadecimal last part": "https://127.0.0.0x1/",
    "fullwidth digits that become a short IPv4": "https://\uff11\uff12\uff17.1/",
    "an IPv6 scope": "https://[fe80::1%25eth0]/",
    "brackets around a name": "https://[a.example]/",
    "an underscore": "https://a_b.example/",
    "a broken international label": "https://xn--a.example/",
    "a label that is too long": f"https://{'a' * 64}.example/",
    "not percent-encoded": "https://a.example/ü",
    "too long": "https://a.example/" + "x" * 9000,
    "nothing": "",
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_address_is_read_once_into_its_parts(name: str) -> None:
    text, address = PLAIN[name]
    assert parse_address(text) == address


@pytest.mark.parametrize("name", REFUSED)
def test_what_two_parsers_could_read_differently_is_refused(name: str) -> None:
    with pytest.raises(AddressError):
        parse_address(REFUSED[name])


@given(st.text(max_size=60), st.sampled_from(["", "https://", "https://a.example", "http://[", "https://a.example:"]))
def test_any_text_is_an_address_or_an_address_error(text: str, start: str) -> None:
    try:
        address = parse_address(start + text)
    except AddressError:
        return
    assert parse_address(address.url) == address


def test_fullwidth_digits_are_read_as_the_ipv4_address_that_they_mean() -> None:
    assert parse_address("https://\uff11\uff12\uff17.0.0\u30021/").origin.host == "127.0.0.1"


def test_an_error_does_not_repeat_the_address() -> None:
    with pytest.raises(AddressError) as refused:
        parse_address("https://user:hunter2hunter2@a.example/")
    assert "hunter2" not in str(refused.value) + refused.value.hint


def test_an_origin_has_no_path() -> None:
    assert str(parse_origin("https://A.example:443")) == "https://a.example"
    assert str(parse_origin("http://[::1]:8080")) == "http://[::1]:8080"
    with pytest.raises(AddressError):
        parse_origin("https://a.example/v1")


@pytest.mark.parametrize(
    ("pattern", "origin", "fits"),
    [
        ("https://a.example", "https://a.example:443", True),
        ("https://a.example", "http://a.example", False),
        ("https://a.example", "https://a.example:8443", False),
        ("https://*.x.example", "https://a.x.example", True),
        ("https://*.x.example", "https://a.b.x.example", True),
        ("https://*.x.example", "https://x.example", False),
        ("https://*.x.example", "https://evilx.example", False),
        ("https://*.x.example", "https://a.x.example.evil.example", False),
        ("https://*.x.example", "https://a.x.example:8443", False),
        ("https://*.x.example", "http://a.x.example", False),
    ],
)
def test_a_pattern_fits_the_hosts_below_it_and_no_others(pattern: str, origin: str, fits: bool) -> None:
    assert parse_pattern(pattern).fits(parse_origin(origin)) is fits


@pytest.mark.parametrize(
    "pattern", ["https://*", "https://*.example", "https://a.*.example", "https://*.1.2.3.4", "*.x.example", "https://*.*.x.example"]
)
def test_a_pattern_that_is_too_wide_or_malformed_is_refused(pattern: str) -> None:
    with pytest.raises(AddressError):
        parse_pattern(pattern)


NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:93.184.215.14",
    "::ffff:0:1.2.3.4",
    "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_an_address_that_is_not_ordinary_internet_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001::1"])
def test_an_ordinary_address_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


async def _resolve(origin: str, found: list[str], rules: AddressRules) -> tuple[str, ...]:
    async def resolver(_host: str, _port: int) -> list[str]:
        return found

    return await resolve(parse_origin(origin), rules, resolver)


async def test_one_private_address_among_public_ones_refuses_the_name() -> None:
    assert await _resolve("https://a.example", ["8.8.8.8", "2606:4700:4700::1111"], AddressRules()) == ("8.8.8.8", "2606:4700:4700::1111")
    with pytest.raises(AddressError):
        await _resolve("https://a.example", ["8.8.8.8", "10.0.0.1"], AddressRules())
    with pytest.raises(AddressError):
        await _resolve("https://a.example", ["8.8.8.8", "not an address"], AddressRules())
    with pytest.raises(OSError, match="no address"):
        await _resolve("https://a.example", [], AddressRules())


async def test_a_public_name_may_not_lead_to_loopback_even_on_the_embedded_stack() -> None:
    embedded = AddressRules(loopback=True)
    assert await _resolve("http://localhost:1", ["::1", "127.0.0.1"], embedded) == ("::1", "127.0.0.1")
    assert await _resolve("http://127.0.0.1:1", ["unused"], embedded) == ("127.0.0.1",)
    with pytest.raises(AddressError):
        await _resolve("https://rebound.example", ["127.0.0.1"], embedded)
    with pytest.raises(AddressError):
        await _resolve("http://localhost:1", ["10.0.0.1"], embedded)
    with pytest.raises(AddressError):
        await _resolve("https://127.0.0.1:1", [], AddressRules())


async def test_an_origin_that_the_operator_lists_may_be_private_and_only_that_origin() -> None:
    rules = AddressRules(listed=frozenset({parse_origin("http://jobs.internal:8080")}))
    rules.permit(parse_origin("http://jobs.internal:8080"))
    assert await _resolve("http://jobs.internal:8080", ["10.0.0.1"], rules) == ("10.0.0.1",)
    with pytest.raises(AddressError):
        rules.permit(parse_origin("http://jobs.internal:8081"))
    with pytest.raises(AddressError):
        await _resolve("https://jobs.internal:8080", ["10.0.0.1"], rules)


def test_http_is_for_loopback_on_the_embedded_stack_only() -> None:
    AddressRules(loopback=True).permit(parse_origin("http://127.0.0.1:8080"))
    for rules, origin in ((AddressRules(), "http://127.0.0.1:8080"), (AddressRules(loopback=True), "http://a.example")):
        with pytest.raises(AddressError):
            rules.permit(parse_origin(origin))
