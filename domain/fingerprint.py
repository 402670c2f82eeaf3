"""What was asked, as a commitment, and the names derived from it.

* `fingerprint` commits to *what* was asked, under the stream's salt: equal fingerprints mean the same effect asked of the
  same provider, and nothing can be guessed from one without the salt.
* A token (and a mark) belongs to one fingerprint and one generation for ever. It is derived, never drawn: every attempt of a
  generation, on any machine, after any crash, derives the same one.
* All hashing is over RFC 8785 canonical JSON, behind a domain-separating prefix.
"""

import hashlib
import hmac
import json
import re
import string
import uuid
from collections.abc import Mapping, Sequence

import rfc8785
from pydantic_core import SchemaValidator, ValidationError, core_schema

from domain.errors import BadInput

_FINGERPRINT = b"sakshi/fingerprint/v1\0"
_TOKEN = b"sakshi/token/v1\0"
_MARK = b"sakshi/mark/v1\0"
_COMMIT = b"sakshi/commit/v1\0"

MARK_LENGTH = 30
SALT_BYTES = 32
TOKEN_LENGTH = 40
MIN_TOKEN_BITS = 96
"""A token with fewer bits could meet another by chance; a contract that allows no more is refused."""

_BASE36 = string.digits + string.ascii_lowercase

# Of values without fractions, and with keys in whose order RFC 8785 and Python agree (all below the surrogates), the standard
# encoder writes exactly what RFC 8785 asks for, and it is written in C.
_PLAIN = SchemaValidator(
    core_schema.definitions_schema(
        _AGAIN := core_schema.definition_reference_schema("plain"),
        [
            core_schema.union_schema(
                [
                    core_schema.str_schema(strict=True),
                    core_schema.dict_schema(core_schema.str_schema(strict=True), _AGAIN, strict=True),
                    core_schema.bool_schema(strict=True),
                    core_schema.int_schema(strict=True, gt=-(2**53), lt=2**53),
                    core_schema.list_schema(_AGAIN, strict=True),
                    core_schema.none_schema(),
                ],
                mode="left_to_right",
                ref="plain",
            )
        ],
    )
)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False)
_HIGH = re.compile("[\ud800-\U0010ffff]")


def canonical(value: object) -> bytes:
    """RFC 8785 bytes of a JSON value.

    Raises BadInput for what canonical JSON cannot carry: integers of 2^53 and more, numbers that are not finite, lone
    surrogates, keys that are not text, values nested beyond all measure.
    """
    try:
        text = _ENCODER.encode(_PLAIN.validate_python(value))
    except (ValidationError, RecursionError):
        pass
    else:
        if text.isascii() or _HIGH.search(text) is None:
            return text.encode()
    try:
        return rfc8785.dumps(value)  # pyright: ignore[reportArgumentType]
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise BadInput(f"not representable as canonical JSON: {type(error).__name__}", hint="send large numbers as text") from None


def sha256_hex(data: bytes) -> str:
    """SHA-256 in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def fingerprint(
    salt: bytes,
    *,
    contract: str,
    version: int,
    contract_digest: str,
    target: Mapping[str, str],
    origin: str,
    credential: str,
    input: object,
    files: Mapping[str, object],
) -> str:
    """What was asked, under the stream's salt. Hexadecimal SHA-256."""
    what = {
        "contract": contract,
        "version": version,
        "contract_digest": contract_digest,
        "target": dict(target),
        "origin": origin,
        "credential": credential,
        "input": input,
        "files": dict(files),
    }
    return sha256_hex(_FINGERPRINT + salt + canonical(what))


def token_digest(salt: bytes, *, ledger_id: str, operation: str, generation: int, fingerprint: str) -> bytes:
    """The 32 bytes from which the token of one generation is shaped."""
    return hmac.digest(salt, _TOKEN + canonical([ledger_id, operation, generation, fingerprint]), "sha256")


def mark(salt: bytes, *, ledger_id: str, operation: str, generation: int, fingerprint: str) -> str:
    """Our reference for one generation, `[a-z0-9]{30}`, to plant where the provider shows it again."""
    digest = hmac.digest(salt, _MARK + canonical([ledger_id, operation, generation, fingerprint]), "sha256")
    return _spell(digest, _BASE36, MARK_LENGTH)


def shape(digest: bytes, *, format: str, min: int | None = None, max: int | None = None, charset: str | None = None) -> str:
    """A token in the provider's format: `uuid` (RFC 9562, version 4 bits), `hex`, or `text` over `charset`.

    `min` and `max` are lengths in characters. Raises BadInput if the format leaves fewer than MIN_TOKEN_BITS bits.
    """
    if format == "uuid":
        return str(uuid.UUID(bytes=digest[:16], version=4))
    alphabet = "0123456789abcdef" if format == "hex" else "".join(sorted(set(charset or _BASE36)))
    length = token_length(len(alphabet), min=min, max=max)
    return _spell(digest, alphabet, length)


def token_length(letters: int, *, min: int | None, max: int | None) -> int:
    """How many characters of an alphabet of `letters` a token takes: 40 if the provider allows it.

    Raises BadInput if `max` (or a one-letter alphabet) leaves fewer than MIN_TOKEN_BITS bits, or if `min` is above `max`.
    """
    length = TOKEN_LENGTH if max is None or max >= TOKEN_LENGTH else max
    length = length if min is None or min <= length else min
    if min is not None and max is not None and min > max:
        raise BadInput(f"a token cannot have at least {min} and at most {max} characters")
    if letters < 2 or letters**length < 2**MIN_TOKEN_BITS:
        raise BadInput(f"a token of {length} characters over {letters} letters could meet another by chance")
    return length


def _spell(digest: bytes, alphabet: str, length: int) -> str:
    # One HMAC gives 256 bits; a longer token is stretched by counter so that every character stays evenly drawn.
    blocks = b"".join(hmac.digest(digest, counter.to_bytes(4, "big"), "sha256") for counter in range(1 + length // 16))
    number = int.from_bytes(blocks, "big")
    letters: list[str] = []
    for _ in range(length):
        number, index = divmod(number, len(alphabet))
        letters.append(alphabet[index])
    return "".join(letters)


def commitment_payload(salt: bytes, value: object) -> bytes:
    """The bytes kept in `payloads` behind a commitment: 32 bytes of salt, then the canonical value."""
    if len(salt) != SALT_BYTES:
        raise BadInput("a commitment's salt has 32 bytes")
    return salt + canonical(value)


def committed_value(payload: bytes) -> bytes:
    """The canonical value in a `commitment_payload`."""
    return payload[SALT_BYTES:]


def commitment(payload: bytes) -> str:
    """The commitment to `commitment_payload`: what an entry may show of a guessable value."""
    return sha256_hex(_COMMIT + payload)


def requesters_of(principal: str, others: Sequence[str]) -> tuple[str, ...]:
    """Every person in the chain, each once, in order of first mention."""
    return tuple(dict.fromkeys([principal, *others]))
