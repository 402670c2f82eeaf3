"""A provider echoes the credential it was sent, in a form that decoding turns back into the credential."""

import base64
import json
import time
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.credential_records import Secret
from adapters.masking import mask, mask_bytes

TOKEN = 'sk/live+7f3a9c=="&<b>'


def _coded(before: bytes, token: str, after: bytes = b"") -> str:
    return base64.b64encode(before + token.encode() + after).decode()


def _echoes(token: str) -> dict[str, str]:
    return {
        "plain": token,
        "json": json.dumps({"message": token}),
        "json with escaped slashes": json.dumps({"message": token}).replace("/", "\\/"),
        "json, every character escaped": '{"message": "' + "".join(f"\\u{ord(letter):04X}" for letter in token) + '"}',
        "json, as .NET writes it": json.dumps({"message": token}).replace("+", "\\u002B").replace("<", "\\u003C").replace("&", "\\u0026"),
        "json in json": json.dumps({"message": json.dumps({"sent": token}).replace("/", "\\/")}),
        "percent, partly": token.replace("/", "%2f").replace("+", "%2B"),
        "another letter case": token.upper(),
        "with blanks": " ".join(token),
        "broken off": f"{token[:9]}\n  {token[9:]}",
        "hexadecimal": token.encode().hex(),
        "hexadecimal, in capitals": token.encode().hex().upper(),
        "base64": _coded(b"", token),
        "base64 of Basic": f"Basic {_coded(b'user:', token)}",
        "base64 with something after it": _coded(b"", token, b": forbidden"),
        "base64 at the third place": _coded(b"ab", token, b"cd"),
        "base64url in JSON": json.dumps({"sent": _coded(b"", token).replace("+", "-").replace("/", "_")}),
        "base64 in JSON, escaped": json.dumps({"sent": _coded(b"", token)}).replace("+", "\\u002b").replace("/", "\\/"),
        "base64 in lines": base64.encodebytes(b"x" * 50 + token.encode()).decode(),
        "base64 in an address": quote(_coded(b"\xff", token), safe=""),
        "html": token.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&#34;").replace("/", "&#x2F;"),
    }


@pytest.mark.parametrize("form", _echoes(TOKEN))
def test_a_secret_is_masked_in_every_form_that_a_provider_may_write_it_in(form: str) -> None:
    body = _echoes(TOKEN)[form].encode()
    masked = mask_bytes((Secret(TOKEN),), body)
    assert len(masked) == len(body)
    assert masked.count(b"*") >= len(TOKEN)
    assert not any(part in masked for part in _telling(TOKEN))
    assert mask((Secret(TOKEN),), body.decode()) == masked.decode()


@given(token=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60), escaped=st.sets(st.integers(0, 59)))
def test_a_masked_body_never_decodes_to_the_secret(token: str, escaped: set[int]) -> None:
    text = "".join(f"\\u{ord(letter):04x}" if at in escaped else json.dumps(letter)[1:-1] for at, letter in enumerate(token))
    masked = mask_bytes((Secret(token),), f'{{"message": "no {text} here"}}'.encode())
    assert json.loads(masked)["message"] == f"no {'*' * len(text)} here"


def _telling(token: str) -> list[bytes]:
    """Parts of what a provider may write for a token."""
    parts = ["live", "LIVE", "7f3a9c", "7F3A9C", "7 f 3 a", "\\u0037", b"live".hex(), b"live".hex().upper()]
    coded = [_coded(b"\0" * lead, token)[4:-4] for lead in range(3)]
    return [part.encode() for part in (*parts, *(one[at : at + 4] for one in coded for at in range(len(one) - 4)))]


@given(before=st.binary(max_size=9), token=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40))
def test_what_base64_leaves_of_a_masked_secret_is_what_stood_beside_it(before: bytes, token: str) -> None:
    written = base64.b64encode(before + token.encode() + b"\0after").decode()
    masked = mask((Secret(token),), written)
    known = base64.b64decode(masked.replace("*", "A"))
    assert known[: max(0, len(before) - 2)] == before[:-2]
    assert known.endswith(b"after")
    assert set(masked[(8 * len(before)) // 6 : (8 * (len(before) + len(token)) + 5) // 6]) == {"*"}


BESIDE = ["C:\\{}", "caf\u00e9{}", "{}\\", "\\\\{}\\n", "\n{}\t", '"{}"', "{}\u00e9", "%{}", "&{};", "é{}é"]
AWKWARD = ["north1234", "e9abcdefg", "u00e9abcd", "secret1\\", "\\secret1", "\\\\\\\\secret", "41%41%41%4"]


@pytest.mark.parametrize("token", AWKWARD)
def test_what_is_masked_takes_no_half_of_an_escape_along(token: str) -> None:
    for said in (beside.format(token) for beside in BESIDE):
        for written in (json.dumps(said), json.dumps(said, ensure_ascii=False), json.dumps(json.dumps(said))):
            masked = mask((Secret(token),), written)
            assert len(masked) == len(written), written
            read = json.loads(masked)
            assert token not in read, written
            assert token not in unquote(read), written
            assert masked.count("*") >= len(token), written


@pytest.mark.parametrize("kept", [8, 12, len(TOKEN) - 1])
def test_a_body_that_was_cut_within_a_secret_does_not_tell_how_that_begins(kept: int) -> None:
    for written in (TOKEN[:kept], json.dumps(TOKEN)[1:][:kept], _coded(b"user:", TOKEN)[: kept + 8], TOKEN.encode().hex()[: 2 * kept]):
        assert mask((Secret(TOKEN),), f"the token {written}").endswith("*" * kept)
    assert mask((Secret(TOKEN),), f"the token {TOKEN[:7]}") == f"the token {TOKEN[:7]}"


def test_a_short_secret_is_left_for_it_stands_in_ordinary_words() -> None:
    said = "a secret that is short: short, c2hvcnQ=, 73686f7274"
    assert mask((Secret("short"), Secret("")), said) == said


def test_masking_a_large_body_with_five_secrets_is_quick() -> None:
    secrets = tuple(Secret(f"{number}sk-live-{number}" * 4) for number in range(5))
    row = {"id": 1, "name": "row of something & more", "path": "a\\b/c", "share": "100%25"}
    body = json.dumps([row] * 12_000).encode()
    began = time.process_time()
    assert mask_bytes(secrets, body) == body
    assert time.process_time() - began < 2


def test_masking_a_large_body_full_of_escapes_is_quick() -> None:
    body = b"\\u0061sk/live+7f3a9c\\/" * 50_000
    began = time.process_time()
    assert mask_bytes((Secret(TOKEN),), body) == body
    assert time.process_time() - began < 5
