"""Masking leaves alone what holds no secret, finds secrets of odd shapes, and costs the same for each byte whatever the bytes are."""

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from adapters.credential_records import Secret
from adapters.masking import MASKED_FROM, Mask, mask, mask_bytes
from domain.exchange import Answer as Answered
from domain.exchange import AuthUse, Request
from domain.sensitive import hidden_saved
from domain.sought import Sought
from domain.veil import Veil
from tests.adapters.loopback import answer, policy, provider, says, serve

TOKEN = "sk-live-7f3a9c0123456789"
UNSEEN = "\u2603Qz-" * 3
"""Of no letters that the bodies below are made of."""
TEXTS = st.text(st.characters(exclude_characters="\u2603Qq-"))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
NAMES = st.text('abc\\"%&;u0 \n', max_size=9)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20)


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_json_that_holds_no_secret_stays_as_it_came(value: object, ascii: bool, indent: int | None) -> None:
    body = json.dumps(value, ensure_ascii=ascii, indent=indent).encode("utf-8", "surrogatepass")
    assert mask_bytes((Secret(UNSEEN),), body) == body


@given(st.binary(max_size=300).filter(lambda body: b"\xe2" not in body))
@example(b"\\\\\\\\%25%25&amp;&#0;\\u0000\\ud83d\\x5c")
@example(bytes(range(256)))
def test_bytes_that_hold_no_secret_stay_as_they_came(body: bytes) -> None:
    assert mask_bytes((Secret(UNSEEN),), body) == body


@given(
    value=JSON,
    token=st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"{}[],:0123456789"), min_size=8, max_size=30),
    depth=st.integers(0, 2),
    ascii=st.booleans(),
)  # fmt: skip
@example(value="", token="password", depth=0, ascii=True)
@example(value={"a": 1}, token="truefalsenull", depth=1, ascii=True)
@example(value="", token="(.*)+?$^|", depth=0, ascii=True)
@example(value="", token="\\\\\\\\\\\\\\\\", depth=2, ascii=True)
def test_json_that_holds_a_secret_stays_json_of_the_same_length_and_beside_the_secret_says_the_same(
    value: object, token: str, depth: int, ascii: bool
) -> None:
    said = token
    for _ in range(depth):
        said = json.dumps({"said": said})
    body = json.dumps([value, said, "and more"], ensure_ascii=ascii).encode("utf-8", "surrogatepass")
    masked = mask_bytes((Secret(token),), body)
    assert len(masked) == len(body)
    beside, shown, more = json.loads(masked)
    assert token not in shown
    assert more == "and more"
    alone = json.dumps([value], ensure_ascii=ascii).encode("utf-8", "surrogatepass")
    if mask_bytes((Secret(token),), alone) == alone:
        assert beside == value


@given(st.lists(st.text("ab-", min_size=1, max_size=5), min_size=1, max_size=6))
def test_secrets_that_begin_with_each_other_are_all_masked(tails: list[str]) -> None:
    secrets = ["sk-live-" + tail for tail in tails]
    body = "; ".join(secrets)
    masked = mask(tuple(map(Secret, secrets)), body)
    assert masked == "; ".join("*" * len(secret) for secret in secrets)


@pytest.mark.parametrize("secret", ["my pass1", "a b c d e", "A  b  C  1"])
def test_a_secret_that_is_long_enough_only_with_its_blanks_is_masked_with_them(secret: str) -> None:
    for written in (secret, secret.upper(), json.dumps(secret)[1:-1], quote(secret), secret.replace(" ", "+"), secret.encode().hex()):
        assert mask((Secret(secret),), f"no {written}!") == f"no {'*' * len(written)}!"
    encoded = base64.b64encode(secret.encode()).decode()
    assert "*" * (8 * len(secret) // 6) in mask((Secret(secret),), f"no {encoded}!")
    joined = secret.replace(" ", "")
    assert mask((Secret(secret),), f"no {joined}!") == f"no {joined}!"


def test_a_secret_beyond_ascii_is_masked_in_the_bytes_of_either_encoding() -> None:
    secret = "p\u00e4ssw\u00f6rter"
    escaped = (quote(secret, encoding="latin-1").encode(), b"p\\xe4ssw\\xf6rter", b"p\\u00e4ssw\\u00f6rter")
    for written in (secret.encode(), secret.encode("latin-1"), *escaped):
        assert mask_bytes((Secret(secret),), b"no " + written + b"!") == b"no " + b"*" * len(written) + b"!"


async def test_a_secret_beyond_ascii_is_masked_in_a_header_in_either_encoding() -> None:
    secret = "p\u00e4ssw\u00f6rter-1"
    token = Mask((Secret(secret),))
    for raw in (secret.encode(), secret.encode("latin-1")):
        assert "ssw" not in token.header(b"no " + raw)
    said = answer(b"{}", "X-Said: no SECRET").replace(b"SECRET", secret.encode())
    async with serve(says(said)) as server:
        record = {"scheme": "basic", "account": "a", "origins": [server.origin], "tenants": "*", "username": "ada", "password": secret}
        async with provider({"SAKSHI_CREDENTIAL_PAIR": json.dumps(record)}) as door:
            exchange = await door.exchange(Request("GET", f"{server.origin}/"), policy(server.origin, AuthUse("basic", "pair")))
    assert isinstance(exchange.outcome, Answered)
    assert ("x-said", "no " + "*" * len(secret.encode())) in exchange.outcome.headers


def test_where_a_secret_stands_as_a_number_the_answer_is_none_rather_than_another_number() -> None:
    masked = mask_bytes((Secret("1234567890"),), b'{"id": 1234567890, "n": 1}')
    assert masked == b'{"id": **********, "n": 1}'


GROWING: dict[str, tuple[str, bytes]] = {
    "nothing but a secret of backslashes": ("\\" * 8, b"\\"),
    "backslashes": (TOKEN, b"\\"),
    "secrets between backslashes": (TOKEN, b"\\" * 999 + TOKEN.encode()),
    "percents": (TOKEN, b"%25"),
    "ampersands": (TOKEN, b"&amp;amp;"),
    "an entity without end": (TOKEN, b"&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    "zeros": (TOKEN, b"&#0000000000000000000000000000"),
    "base64": (TOKEN, b"QUJDREVG"),
    "beginnings of a long secret": ("a" * 4095 + "b" + "a" * 4095, b"a"),
    "blanks": (TOKEN, b" \0"),
    "secrets": (TOKEN, TOKEN.encode()),
    "secrets in percents": (TOKEN, quote(TOKEN).replace("-", "%2d").encode()),
}


@pytest.mark.parametrize("kind", GROWING)
def test_eight_times_the_bytes_cost_no_more_than_some_twenty_times_the_time(kind: str) -> None:
    secret, piece = GROWING[kind]
    ready = Mask((Secret(secret),))

    def cost(size: int) -> float:
        body = (piece * (size // len(piece) + 1))[:size]
        began = time.process_time()
        ready.body(body)
        return time.process_time() - began

    small = min(cost(32 * 1024) for _ in range(3))
    assert cost(256 * 1024) < 20 * small + 0.2


def test_values_that_differ_at_their_ends_alone_are_looked_for_as_quickly_as_others() -> None:
    values = ["a" * number + "!" for number in range(380, 636)]
    sought, veil = Sought(values, 4), Veil(b"s" * 32, values)
    began = time.process_time()
    assert list(sought.finds("a" * 640)) == []
    assert list(sought.finds("a" * 640 + "!")) == [(5, values[-1])]
    assert veil.text("a" * 640) == "a" * 640
    assert time.process_time() - began < 1


def test_the_shortest_of_many_that_go_on_with_each_other_is_found_too() -> None:
    sought = Sought(["a" * number for number in range(4, 500)], 4)
    began = time.process_time()
    assert list(sought.finds(("aaaa" + "b") * 400)) == [(5 * number, "aaaa") for number in range(400)]
    assert list(sought.finds("aaab")) == []
    assert time.process_time() - began < 1


def test_what_is_ready_to_be_looked_for_shows_itself_nowhere() -> None:
    assert TOKEN not in repr(Mask((Secret(TOKEN),)))
    assert MASKED_FROM == 8


SAVED = {
    "as it is": "ada@example.org",
    "within another": "/for/ada@example.org/",
    "in capitals": "ADA@EXAMPLE.ORG",
    "in an address": "/for/ada%40example.org",
    "in hexadecimal": b"ada@example.org".hex(),
    "in base64": base64.b64encode(b"x:ada@example.org").decode(),
}


@pytest.mark.parametrize("way", SAVED)
def test_a_value_that_a_step_saved_in_another_spelling_is_known_to_whoever_comes_later(way: str) -> None:
    values: JsonValue = {"upload": {"where": ["x", SAVED[way]], "count": 3}}
    assert hidden_saved(["ada@example.org", "ada@example.com", "cat"], values) == ("ada@example.org",)


def test_a_short_value_is_known_only_where_it_stands_as_it_is() -> None:
    assert hidden_saved(["cat", "cat "], {"a": "CAT", "b": "concatenate"}) == ("cat",)
    assert hidden_saved(["dog"], {"a": "DOG"}) == ()
