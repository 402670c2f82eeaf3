"""A provider echoes the credential it was sent, in a form that decoding turns back into the credential."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.credential_records import Secret
from adapters.http_auth import mask, mask_bytes

TOKEN = 'sk/live+7f3a9c=="&<b>'


def _echoes(token: str) -> dict[str, str]:
    return {
        "plain": token,
        "json": json.dumps({"message": token}),
        "json with escaped slashes": json.dumps({"message": token}).replace("/", "\\/"),
        "json, every character escaped": '{"message": "' + "".join(f"\\u{ord(letter):04X}" for letter in token) + '"}',
        "json, as .NET writes it": json.dumps({"message": token}).replace("+", "\\u002B").replace("<", "\\u003C").replace("&", "\\u0026"),
        "json in json": json.dumps({"message": json.dumps({"sent": token}).replace("/", "\\/")}),
        "percent, partly": token.replace("/", "%2f").replace("+", "%2B"),
        "html": token.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&#34;").replace("/", "&#x2F;"),
    }


@pytest.mark.parametrize("form", _echoes(TOKEN))
def test_a_secret_is_masked_in_every_form_that_a_provider_may_write_it_in(form: str) -> None:
    body = _echoes(TOKEN)[form].encode()
    masked = mask_bytes((Secret(TOKEN),), body)
    assert len(masked) == len(body)
    assert not any(part in masked for part in (b"live", b"7f3a9c", b"\\u0037"))
    assert "7f3a9c" not in mask((Secret(TOKEN),), body.decode())


@given(token=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60), escaped=st.sets(st.integers(0, 59)))
def test_a_masked_body_never_decodes_to_the_secret(token: str, escaped: set[int]) -> None:
    text = "".join(f"\\u{ord(letter):04x}" if at in escaped else json.dumps(letter)[1:-1] for at, letter in enumerate(token))
    masked = mask_bytes((Secret(token),), f'{{"message": "no {text} here"}}'.encode())
    assert json.loads(masked)["message"] == f"no {'*' * len(text)} here"


def test_masking_a_large_body_full_of_escapes_is_quick() -> None:
    body = b"\\u0061sk/live+7f3a9c\\/" * 50_000
    began = time.process_time()
    assert mask_bytes((Secret(TOKEN),), body) == body
    assert time.process_time() - began < 5
