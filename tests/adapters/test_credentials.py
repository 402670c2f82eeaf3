"""Where a credential may lie, where it may go, and that it shows up nowhere (docs/security.md S6)."""

import copy
import json
import pickle
import traceback
from pathlib import Path

import pytest

from adapters.addresses import parse_origin, parse_pattern
from adapters.credential_records import Secret
from adapters.credentials import Credentials
from domain.errors import CredentialError

PLANTED = "sk-planted-0123456789"
RECORD: dict[str, object] = {
    "value": PLANTED,
    "scheme": "bearer",
    "account": "acme/main",
    "origins": ["https://api.acme.example", "https://*.files.acme.example"],
    "tenants": ["blue"],
}
ORIGIN = parse_origin("https://api.acme.example")


def _env(record: object, name: str = "ACME") -> dict[str, str]:
    return {f"SAKSHI_CREDENTIAL_{name}": record if isinstance(record, str) else json.dumps(record)}


def test_a_credential_goes_where_its_own_record_says_for_the_tenants_it_lists() -> None:
    credentials = Credentials(_env(RECORD))
    assert credentials.account("acme") == "acme/main"
    for origin in ("https://api.acme.example", "https://eu.files.acme.example"):
        read = credentials.read("acme", origin=parse_origin(origin), tenant="blue")
        assert read.value is not None
        assert read.value.reveal() == PLANTED


@pytest.mark.parametrize(
    ("origin", "tenant"),
    [
        ("https://evil.example", "blue"),
        ("https://api.acme.example:8443", "blue"),
        ("http://api.acme.example", "blue"),
        ("https://files.acme.example", "blue"),
        ("https://api.acme.example", "red"),
    ],
)
def test_anywhere_else_and_for_anyone_else_it_is_refused(origin: str, tenant: str) -> None:
    with pytest.raises(CredentialError):
        Credentials(_env(RECORD)).read("acme", origin=parse_origin(origin), tenant=tenant)


def test_every_tenant_is_written_as_a_star() -> None:
    Credentials(_env({**RECORD, "tenants": "*"})).read("acme", origin=ORIGIN, tenant="anyone")


@pytest.mark.parametrize("name", ["", "ACME", "a-b", "../acme", "acme/../../etc/passwd", "a" * 65, "acme\n", "é"])
def test_a_name_that_is_none_leads_nowhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(CredentialError):
        Credentials({}, tmp_path).account(name)


BROKEN: dict[str, object] = {
    "a bare value": PLANTED,
    "broken JSON": json.dumps(RECORD)[:-1],
    "YAML that quotes itself in errors": f"value: {PLANTED}\n  oops: [",
    "a date that is none": f"value: {PLANTED}\naccount: 2001-99-99",
    "no value": {key: value for key, value in RECORD.items() if key != "value"},
    "a number as value": {**RECORD, "value": 12345678},
    "a line break inside": {**RECORD, "value": f"{PLANTED}\nX-Other: y"},
    "two line breaks at the end": {**RECORD, "value": f"{PLANTED}\n\n"},
    "a space inside": {**RECORD, "value": f"Bearer {PLANTED}"},
    "not ASCII": {**RECORD, "value": f"{PLANTED}é"},
    "empty": {**RECORD, "value": ""},
    "an unknown key": {**RECORD, PLANTED: "x"},
    "no origins": {**RECORD, "origins": []},
    "origins that are none": {**RECORD, "origins": [f"https://{PLANTED}@a.example"]},
    "origins as one text": {**RECORD, "origins": "https://api.acme.example"},
    "no tenants": {**RECORD, "tenants": []},
    "tenants as one text": {**RECORD, "tenants": "blue"},
    "no account": {**RECORD, "account": ""},
    "no scheme": {key: value for key, value in RECORD.items() if key != "scheme"},
    "an unknown scheme": {**RECORD, "scheme": "digest"},
    "a scheme that is a list": {**RECORD, "scheme": ["bearer"]},
    "a value for basic": {**RECORD, "scheme": "basic"},
    "a password for bearer": {**RECORD, "username": "u", "password": PLANTED},
    "a colon in the user name": {
        **{k: v for k, v in RECORD.items() if k != "value"},
        "scheme": "basic",
        "username": "a:b",
        "password": PLANTED,
    },
    "a line break in the password": {
        **{k: v for k, v in RECORD.items() if k != "value"},
        "scheme": "basic",
        "username": "a",
        "password": f"{PLANTED}\rx",
    },
    "too long": {**RECORD, "account": "x" * 70_000},
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_malformed_record_is_an_error_that_does_not_hold_the_secret(what: str) -> None:
    with pytest.raises(CredentialError) as refused:
        Credentials(_env(BROKEN[what])).account("acme")
    shown = "".join(traceback.format_exception(refused.value)) + refused.value.hint + repr(refused.value.__context__)
    assert PLANTED not in shown
    assert "acme" in str(refused.value)


def test_a_record_is_yaml_too_and_loses_one_trailing_newline() -> None:
    text = f"value: |\n  {PLANTED}\nscheme: header\naccount: a\norigins: [https://api.acme.example]\ntenants: '*'\n"
    read = Credentials(_env(text)).read("acme", origin=ORIGIN, tenant="t")
    assert read.value is not None
    assert read.value.reveal() == PLANTED


def test_the_embedded_stack_takes_a_bare_value_for_loopback_only() -> None:
    credentials = Credentials(_env(f"{PLANTED}\n"), embedded=True)
    read = credentials.read("acme", origin=parse_origin("http://127.0.0.1:8080"), tenant="anyone")
    assert read.value is not None
    assert read.value.reveal() == PLANTED
    assert credentials.account("acme") == "acme"
    with pytest.raises(CredentialError):
        credentials.read("acme", origin=ORIGIN, tenant="anyone")


def test_a_rotated_file_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "acme"
    credentials = Credentials({}, tmp_path)
    with pytest.raises(CredentialError):
        credentials.account("acme")
    file.write_text(json.dumps(RECORD))
    first = credentials.read("acme", origin=ORIGIN, tenant="blue")
    assert credentials.read("acme", origin=ORIGIN, tenant="blue") is first
    swapped = tmp_path / "next"
    swapped.write_text(json.dumps({**RECORD, "value": "sk-rotated-0123456789"}))
    swapped.replace(file)
    second = credentials.read("acme", origin=ORIGIN, tenant="blue")
    assert second.value is not None
    assert second.value.reveal() == "sk-rotated-0123456789"
    file.unlink()
    with pytest.raises(CredentialError):
        credentials.account("acme")


def test_a_file_that_is_not_text_is_an_error_without_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "acme").write_bytes(PLANTED.encode() + b"\xff")
    (tmp_path / "folder").mkdir()
    for name in ("acme", "folder"):
        with pytest.raises(CredentialError) as refused:
            Credentials({}, tmp_path).account(name)
        assert refused.value.__context__ is None


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret(PLANTED)
    read = Credentials(_env(RECORD)).read("acme", origin=ORIGIN, tenant="blue")
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", repr([secret]), repr(read), str(read)):
        assert PLANTED not in shown
    for writes in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(TypeError):
            writes(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)


SCHEMES: dict[str, tuple[dict[str, object], str, str]] = {
    "bearer": (RECORD, "bearer", "account acme/main"),
    "header": ({**RECORD, "scheme": "header"}, "headers", "account acme/main"),
    "oauth2": (
        {
            **{key: value for key, value in RECORD.items() if key != "value"},
            "scheme": "oauth2",
            "token_url": "https://api.acme.example/token",
            "client_id": "c",
            "client_secret": PLANTED,
        },
        "oauth2",
        "account acme/main, gets tokens from https://api.acme.example by client_credentials",
    ),
    "sigv4": (
        {
            **{key: value for key, value in RECORD.items() if key != "value"},
            "scheme": "sigv4",
            "access_key_id": "AKIAPLANTED",
            "secret_access_key": PLANTED,
            "session_token": PLANTED,
        },
        "sigv4",
        "account acme/main, signs with key AKIA... of a session",
    ),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_record_is_good_for_is_said_without_its_secret(scheme: str) -> None:
    record, kind, words = SCHEMES[scheme]
    credentials = Credentials(_env(record))
    assert credentials.check("acme", kind) == words
    for other in {"bearer", "headers", "oauth2", "sigv4"} - {kind}:
        with pytest.raises(CredentialError, match="a contract uses it as"):
            credentials.check("acme", other)
    assert PLANTED not in repr(credentials.read("acme", origin=ORIGIN, tenant="blue"))


def test_a_bare_value_is_neither_a_client_nor_a_pair_of_keys() -> None:
    credentials = Credentials(_env("bare-value"), embedded=True)
    assert credentials.check("acme", "bearer") == "account acme"
    for kind in ("oauth2", "sigv4"):
        with pytest.raises(CredentialError, match="a bare value"):
            credentials.check("acme", kind)


def test_a_refusal_says_for_what_a_record_is_and_holds_no_secret() -> None:
    credentials = Credentials(_env(RECORD))
    with pytest.raises(CredentialError) as refused:
        credentials.read("acme", origin=parse_origin("http://127.0.0.1:8177"), tenant="blue")
    its = "its origins: https://api.acme.example, https://*.files.acme.example"
    assert refused.value.message == f"credential acme is not for http://127.0.0.1:8177 ({its})"
    assert (refused.value.fault, refused.value.origin) == ("origin", "http://127.0.0.1:8177")
    with pytest.raises(CredentialError) as refused:
        credentials.read("acme", origin=ORIGIN, tenant="red")
    assert refused.value.message == "credential acme is not for the tenant red (its tenants: blue)"
    assert refused.value.fault == "tenant"


def test_what_a_record_lists_is_told_within_bounds() -> None:
    many = {**RECORD, "tenants": ["x" * 5_000, *(f"t{number}" for number in range(900))]}
    with pytest.raises(CredentialError) as refused:
        Credentials(_env(many)).read("acme", origin=ORIGIN, tenant="red")
    assert len(refused.value.message) < 1_000
    assert refused.value.message.endswith(" and 896 more)")


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("https://a.example", "https://a.example", True),
        ("https://a.example", "https://b.example", False),
        ("https://*.x.example", "https://a.x.example", True),
        ("https://*.x.example", "https://x.example", False),
        ("https://*.x.example", "https://*.x.example", True),
        ("https://*.x.example", "https://*.eu.x.example", True),
        ("https://*.x.example", "https://*.y.example", False),
        ("https://*.x.example", "https://*.x.example:8443", False),
    ],
)
def test_two_patterns_meet_where_an_origin_is_of_both(one: str, other: str, meet: bool) -> None:
    assert parse_pattern(one).meets(parse_pattern(other)) is meet
    assert parse_pattern(other).meets(parse_pattern(one)) is meet
    assert (str(parse_pattern(one)), str(parse_pattern(other))) == (one, other)


def test_what_is_not_there_is_looked_for_in_the_folder_that_was_given(tmp_path: Path) -> None:
    with pytest.raises(CredentialError) as refused:
        Credentials({}, tmp_path / "odd" / ".." / "secrets").account("acme")
    assert f"write its record to {tmp_path}/odd/../secrets/acme" in refused.value.hint
    assert refused.value.fault == "absent"
    with pytest.raises(CredentialError) as refused:
        Credentials({}).account("acme")
    assert refused.value.hint == "set SAKSHI_CREDENTIAL_ACME; docs/settings.md says what a record holds"


@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o400, False), (0o640, False), (0o644, True), (0o602, True), (0o620, True)])
def test_a_file_that_others_may_read_or_change_is_told(tmp_path: Path, mode: int, told: bool) -> None:
    file = tmp_path / "acme"
    file.write_text(json.dumps(RECORD))
    file.chmod(mode)
    assert Credentials({}, tmp_path).exposed("acme") == (file if told else None)
    assert Credentials(_env(RECORD), tmp_path).exposed("acme") is None
    assert Credentials({}, tmp_path).exposed("another") is None


def test_a_bare_value_for_basic_is_a_pair() -> None:
    assert Credentials(_env("user:password"), embedded=True).check("acme", "basic") == "account acme"
    with pytest.raises(CredentialError, match="user:password"):
        Credentials(_env(PLANTED), embedded=True).check("acme", "basic")
