"""Names derived from what was asked: the same on every machine, another for every other question, in the provider's format."""

import hashlib
import hmac
import string
import uuid
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import BadInput
from domain.fingerprint import (
    MARK_LENGTH,
    MIN_TOKEN_BITS,
    SALT_BYTES,
    canonical,
    commitment,
    commitment_payload,
    committed_value,
    fingerprint,
    mark,
    requesters_of,
    sha256_hex,
    shape,
    token_digest,
    token_length,
)  # fmt: skip
from domain.language.stages import Token

SALT = bytes(range(SALT_BYTES))
QUIET = settings(deadline=None, max_examples=100)
ASKED: dict[str, Any] = {
    "contract": "sim.reports.create", "version": 1, "contract_digest": "a" * 64, "target": {"region": "eu"}, "origin": "https://api.example",
    "credential": "acme", "input": {"account": "a-1", "format": "csv"}, "files": {"rows": "b" * 64},
}  # fmt: skip
NAMED: dict[str, Any] = {"ledger_id": "5ac3" * 8, "operation": "reports-1", "generation": 1, "fingerprint": "f" * 64}
CHANGED_NAMES = [{"ledger_id": "5ac4" * 8}, {"operation": "reports-2"}, {"generation": 2}, {"fingerprint": "e" * 64}]


def test_canonical_json_sorts_keys_and_writes_numbers_one_way() -> None:
    assert canonical({"b": 1.0, "a": [True, None, "é"], "€": -0.0}) == '{"a":[true,null,"é"],"b":1,"€":0}'.encode()


@pytest.mark.parametrize("value", [2**53, -(2**53), float("nan"), float("inf"), "\ud800", {"\udfff": 1}, {1: 2}, [b"x"], {1, 2}, object()])
def test_what_canonical_json_cannot_carry_is_bad_input(value: object) -> None:
    with pytest.raises(BadInput, match="canonical JSON"):
        canonical(value)


def test_a_value_nested_beyond_all_measure_is_bad_input() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(BadInput, match="canonical JSON"):
        canonical(value)


def test_the_fingerprint_is_the_one_that_is_documented() -> None:
    expected = hashlib.sha256(b"sakshi/fingerprint/v1\0" + SALT + canonical(ASKED)).hexdigest()
    assert fingerprint(SALT, **ASKED) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"contract": "sim.reports.make"}, {"version": 2}, {"contract_digest": "c" * 64}, {"target": {"region": "us"}}, {"target": {}},
        {"origin": "https://api2.example"}, {"credential": "other"}, {"input": {"account": "a-2", "format": "csv"}}, {"input": None},
        {"files": {"rows": "d" * 64}}, {"files": {}},
    ],
)  # fmt: skip
def test_every_part_of_the_question_changes_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint(SALT, **(ASKED | change)) != fingerprint(SALT, **ASKED)


def test_the_fingerprint_does_not_depend_on_the_order_of_keys_and_does_on_the_salt() -> None:
    turned: dict[str, Any] = ASKED | {"input": {"format": "csv", "account": "a-1"}}
    assert fingerprint(SALT, **turned) == fingerprint(SALT, **ASKED)
    assert fingerprint(SALT[::-1], **ASKED) != fingerprint(SALT, **ASKED)


def test_the_token_is_the_one_that_is_documented() -> None:
    what = canonical([NAMED["ledger_id"], NAMED["operation"], NAMED["generation"], NAMED["fingerprint"]])
    assert token_digest(SALT, **NAMED) == hmac.new(SALT, b"sakshi/token/v1\0" + what, "sha256").digest()


@pytest.mark.parametrize("change", CHANGED_NAMES)
def test_another_ledger_operation_generation_or_question_has_another_token_and_mark(change: dict[str, Any]) -> None:
    assert token_digest(SALT, **(NAMED | change)) != token_digest(SALT, **NAMED)
    assert mark(SALT, **(NAMED | change)) != mark(SALT, **NAMED)


def test_token_and_mark_are_the_same_on_every_derivation_and_never_each_other() -> None:
    assert token_digest(SALT, **NAMED) == token_digest(bytes(SALT), **dict(reversed(NAMED.items())))
    assert mark(SALT, **NAMED) == mark(SALT, **NAMED)
    assert token_digest(SALT[::-1], **NAMED) != token_digest(SALT, **NAMED)
    assert mark(SALT, **NAMED) not in shape(token_digest(SALT, **NAMED), format="text")


def test_a_mark_can_be_planted_anywhere() -> None:
    made = mark(SALT, **NAMED)
    assert len(made) == MARK_LENGTH
    assert set(made) <= set(string.digits + string.ascii_lowercase)


@QUIET
@given(st.binary(min_size=32, max_size=32))
def test_a_uuid_token_is_a_version_4_uuid(digest: bytes) -> None:
    made = shape(digest, format="uuid")
    assert str(uuid.UUID(made)) == made
    assert (uuid.UUID(made).version, uuid.UUID(made).variant) == (4, uuid.RFC_4122)
    assert shape(digest, format="uuid") == made


@QUIET
@given(st.binary(min_size=32, max_size=32), st.integers(24, 80), st.integers(0, 80))
def test_a_hex_token_keeps_to_its_length(digest: bytes, shortest: int, more: int) -> None:
    longest = shortest + more
    made = shape(digest, format="hex", min=shortest, max=longest)
    assert shortest <= len(made) <= longest
    assert set(made) <= set(string.hexdigits.lower())
    assert len(shape(digest, format="hex")) == 40


@QUIET
@given(st.binary(min_size=32, max_size=32), st.text(string.ascii_letters + string.digits + "-_", min_size=8))
def test_a_text_token_is_spelled_in_the_providers_letters(digest: bytes, charset: str) -> None:
    letters = set(charset)
    if len(letters) < 6:
        return
    made = shape(digest, format="text", charset=charset, max=64)
    assert set(made) <= letters
    assert made == shape(digest, format="text", charset=charset[::-1], max=64), "the order in which a charset is written is no matter"


def test_two_digests_make_two_tokens_in_every_format() -> None:
    next_one: dict[str, Any] = NAMED | {"generation": 2}
    one, other = token_digest(SALT, **NAMED), token_digest(SALT, **next_one)
    formats: list[dict[str, Any]] = [{"format": "uuid"}, {"format": "hex"}, {"format": "text", "max": 19}, {"format": "text", "min": 200}]
    for wanted in formats:
        assert shape(one, **wanted) != shape(other, **wanted)


def test_a_long_token_is_drawn_evenly_to_its_end() -> None:
    made = shape(token_digest(SALT, **NAMED), format="hex", min=2_000)
    assert len(made) == 2_000
    assert {made[-100:].count(letter) for letter in string.hexdigits.lower()} != {0}
    assert all(made[start : start + 100].count("0") < 40 for start in range(0, 2_000, 100))


@pytest.mark.parametrize(
    ("letters", "limits", "length"),
    [
        (16, (None, None), 40),
        (16, (None, 255), 40),
        (16, (None, 30), 30),
        (16, (50, None), 50),
        (16, (50, 60), 50),
        (36, (10, 36), 36),
        (2, (96, 96), 96),
    ],
)
def test_a_token_takes_forty_letters_where_the_provider_allows_it(letters: int, limits: tuple[int | None, int | None], length: int) -> None:
    assert token_length(letters, min=limits[0], max=limits[1]) == length


@pytest.mark.parametrize(("letters", "limits"), [(16, (None, 23)), (36, (None, 18)), (1, (None, None)), (0, (None, None)), (2, (None, 95))])
def test_a_token_that_could_meet_another_by_chance_is_refused(letters: int, limits: tuple[int | None, int | None]) -> None:
    with pytest.raises(BadInput, match="by chance"):
        token_length(letters, min=limits[0], max=limits[1])
    assert 16**24 >= 2**MIN_TOKEN_BITS > 16**23


def test_limits_that_nothing_can_meet_are_refused() -> None:
    with pytest.raises(BadInput, match="at least 50 and at most 45"):
        token_length(16, min=50, max=45)


def test_a_contract_s_token_has_the_shape_that_the_contract_asks_for() -> None:
    digest = token_digest(SALT, **NAMED)
    token = Token.model_validate({"format": "text", "min": 30, "max": 32, "charset": string.ascii_lowercase, "window": "1d"})
    assert token.shaped(digest) == shape(digest, format="text", min=30, max=32, charset=string.ascii_lowercase)
    assert len(token.shaped(digest)) == 32


def test_a_commitment_says_nothing_without_its_salt_and_everything_with_it() -> None:
    payload = commitment_payload(SALT, {"iban": "DE00"})
    assert payload == SALT + b'{"iban":"DE00"}'
    assert committed_value(payload) == b'{"iban":"DE00"}'
    assert commitment(payload) == hashlib.sha256(b"sakshi/commit/v1\0" + payload).hexdigest()
    assert commitment(commitment_payload(SALT[::-1], {"iban": "DE00"})) != commitment(payload)
    assert commitment(commitment_payload(SALT, {"iban": "DE01"})) != commitment(payload)
    assert commitment(payload) != sha256_hex(payload)


@pytest.mark.parametrize("salt", [b"", b"short", bytes(31), bytes(33)])
def test_a_salt_has_its_length(salt: bytes) -> None:
    with pytest.raises(BadInput, match="32 bytes"):
        commitment_payload(salt, 1)


def test_every_person_is_a_requester_once() -> None:
    assert requesters_of("asha", ["ben", "asha", "ben", "cleo"]) == ("asha", "ben", "cleo")


ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.integers(-(2**54), 2**54), st.floats(), st.text(),
        st.text(st.characters(categories=["Cs", "Cc", "Co"])),
        st.sampled_from([2**53 - 1, 2**53, 1e21, 1e-7, 5e-324, "\x7f\u2028", "a:1.5,"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner),
        st.dictionaries(st.text() | st.sampled_from(["\ud83d", "\U0001f600", "\ue000", "\uffff"]), inner, max_size=4),
        st.dictionaries(st.integers() | st.booleans() | st.none(), inner, max_size=2),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=500)
@given(ANYTHING)
def test_the_quick_encoder_writes_what_the_whole_rule_writes(value: Any) -> None:
    try:
        expected: bytes | None = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        expected = None
    if expected is None:
        with pytest.raises(BadInput, match="canonical JSON"):
            canonical(value)
    else:
        assert canonical(value) == expected
