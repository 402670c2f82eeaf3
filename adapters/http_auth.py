"""Authentication, put on a request at the last moment and kept nowhere.

The contract says which credential goes to an origin and where in the request it stands (`AuthUse`); the credential's own
record says of what scheme it is. Both must agree. Texts with `${secret.NAME}` are expanded in one pass: what a secret
contains is never expanded again. A token that has to be fetched first, and a signature over what is sent, are only prepared here:
`authenticate` does the one, and `http_request.py` the other.
"""

import asyncio
import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar, assert_never
from urllib.parse import quote

from adapters import oauth, sigv4
from adapters.addresses import Origin
from adapters.credential_records import Credential, Scheme, Secret
from adapters.credentials import Credentials
from adapters.masking import MASKED_FROM
from domain.errors import CredentialError
from domain.exchange import AuthUse

_HOLE = re.compile(r"\$\$\{|\$\{secret\.([a-z0-9_]{1,64})\}")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Applied:
    """What a request gains: headers, and what is appended to its query. `secrets` are all forms to be masked in answers.

    `client` is the credential whose token is still to be fetched, `token` the one that was; `signature` signs what is sent.
    """

    headers: tuple[tuple[str, Secret], ...] = ()
    query: Secret | None = None
    secrets: tuple[Secret, ...] = ()
    client: Credential | None = None
    token: oauth.Token | None = None
    signature: sigv4.Signature | None = None


NOTHING = Applied()


def names_of(use: AuthUse) -> tuple[str, ...]:
    """The credentials that a use needs, in order."""
    from_templates = (match.group(1) for _, text in use.templates for match in _HOLE.finditer(text) if match.group(1))
    own = () if use.credential is None or use.kind in ("headers", "query") else (use.credential,)
    return tuple(dict.fromkeys((*own, *from_templates)))


async def authenticate(
    use: AuthUse, credentials: Credentials, origin: Origin, tenant: str, *, tokens: oauth.Tokens, within: float, now: Callable[[], datetime]
) -> Applied:
    """`apply`, with the token that it needs: one that is there, or one that is fetched `within` seconds."""
    applied = apply(use, credentials, origin, tenant, now=now)
    if applied.signature is not None:
        await asyncio.to_thread(sigv4.loaded)
    if applied.client is None:
        return applied
    token = await tokens.token(applied.client, within=within)
    # It may have been long: the record counts as it is now.
    apply(use, credentials, origin, tenant, now=now)
    bearer = Secret(f"Bearer {token.value.reveal()}")
    return replace(applied, headers=(("Authorization", bearer),), secrets=oauth.secrets_of(token), token=token)


def apply(
    use: AuthUse, credentials: Credentials, origin: Origin, tenant: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Applied:
    """Read the credentials and make what is sent of them. `CredentialError` if any of them may not go there."""

    def read(name: str | None, scheme: Scheme) -> Credential:
        if name is None:
            raise CredentialError(f"no credential is named for {origin}")
        credential = credentials.read(name, origin=origin, tenant=tenant)
        if credential.scheme not in (None, scheme):
            raise CredentialError(f"credential {name} is for {credential.scheme}, and the contract uses it as {scheme}", fault="scheme")
        return credential

    match use.kind:
        case "none":
            return NOTHING
        case "bearer":
            token = _value(read(use.credential, "bearer"))
            return Applied((("Authorization", Secret(f"Bearer {token}")),), secrets=(Secret(token),))
        case "basic":
            return _basic(*_pair(read(use.credential, "basic")))
        case "headers":
            values = _values(use, lambda name: _value(read(name, "header")))
            headers = tuple((key, Secret(_expand(text, values))) for key, text in use.templates)
            return Applied(headers, secrets=tuple(map(Secret, values.values())))
        case "query":
            values = _values(use, lambda name: _value(read(name, "query")))
            query = "&".join(f"{quote(key, safe='')}={quote(_expand(text, values), safe='')}" for key, text in use.templates)
            return Applied(query=Secret(query), secrets=tuple(map(Secret, values.values())))
        case "oauth2":
            client = read(use.credential, "oauth2")
            _needed(client, client.oauth, "that says where tokens are given")
            return Applied(client=client)
        case "sigv4":
            signing = read(use.credential, "sigv4")
            keys = _needed(signing, signing.keys, "with keys to sign with")
            signature = sigv4.Signature(keys, use.service, use.region, now())
            return Applied(secrets=sigv4.secrets_of(keys), signature=signature)
        case _:
            assert_never(use.kind)


def _basic(pair: str, password: str) -> Applied:
    encoded = base64.b64encode(pair.encode()).decode("ascii")
    # Where the password is short or a mere filler, the user name is the key.
    key = password if len(password) >= MASKED_FROM else pair.partition(":")[0]
    return Applied((("Authorization", Secret(f"Basic {encoded}")),), secrets=(Secret(encoded), Secret(pair), Secret(key)))


def _values(use: AuthUse, value_of: Callable[[str], str]) -> dict[str, str]:
    return {name: value_of(name) for name in names_of(use)}


def _expand(text: str, values: dict[str, str]) -> str:
    if "${" in _HOLE.sub("", text):
        raise CredentialError("an authentication template has a hole that is not `${secret.NAME}`")
    return _HOLE.sub(lambda hole: values[hole.group(1)] if hole.group(1) else "${", text)


def _needed(credential: Credential, part: T | None, what: str) -> T:
    """What a bare value of the embedded stack lacks."""
    if part is None:
        raise CredentialError(f"credential {credential.name} is a single value, and one {what} is needed", fault="scheme")
    return part


def _value(credential: Credential) -> str:
    if credential.value is None:
        raise CredentialError(f"credential {credential.name} is a user name with a password, and a single value is needed", fault="scheme")
    return credential.value.reveal()


def _pair(credential: Credential) -> tuple[str, str]:
    if credential.username is None or credential.password is None:
        # A bare value of the embedded stack may be written as `user:password`.
        user, colon, password = _value(credential).partition(":")
        if not colon:
            raise CredentialError(f"credential {credential.name} is not a user name with a password", fault="scheme")
        return f"{user}:{password}", password
    password = credential.password.reveal()
    return f"{credential.username}:{password}", password
