"""Access tokens (OAuth 2.0, RFC 6749): fetched by the record of a credential, kept in memory, shown nowhere.

* The protocol's words are oauthlib's. The request goes through the same door as every other, under the same rules of addresses, to
  the one address that the record names. No redirect is followed.
* One fetch of a credential at a time. It goes on when whoever waits for it gives up: the next one finds what it brought.
* A token is used until its expiry less a margin; one without an expiry for an hour. A changed record has its own token.
* A token that the provider refuses (401) is fetched anew once. Refused again at its first use it is kept for a minute, so that a
  provider that refuses all of them does not have its token endpoint flooded. What failed is not tried again for some seconds.
* A refresh token that comes with an access token replaces the record's in this process. If it is refused, the record's counts again.
* The library raises with what it read. Its words go nowhere; only an error's code does, if it is one of a closed shape.
"""

import asyncio
import importlib
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote_plus

from adapters.addresses import Address
from adapters.credential_records import Credential, OAuthClient, Secret
from domain.errors import CredentialError
from domain.exchange import Answer, NoAnswer

MARGIN_S = 60.0
WITHOUT_EXPIRY_S = 3600.0
LONGEST_S = 30 * 86_400.0
KEPT_REFUSED_S = 60.0
AFTER_FAILURE_S = 5.0
_CODE = re.compile(r"[a-z][a-z_]{0,63}")
_TELLING = 4
"""So many letters of a secret are a part of it; fewer are in every word."""
_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}")

for _name in ("oauthlib", "oauthlib.common", "oauthlib.oauth2"):
    # At DEBUG these write requests and tokens.
    logging.getLogger(_name).disabled = True
    logging.getLogger(_name).addFilter(lambda _record: False)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A form that is posted for a token. `basic` is the client's name and secret, where they do not stand in the form."""

    address: Address
    form: Secret
    basic: tuple[str, Secret] | None


Post = Callable[[TokenRequest], Awaitable[Answer | NoAnswer]]
"""Sends it once, and gives the answer as it came."""


@dataclass(slots=True)
class Token:
    """An access token. Instants are of the monotonic clock; `accepted`: a provider took it."""

    value: Secret
    credential: Credential
    got: float
    until: float
    accepted: bool = False


class Tokens:
    """The tokens of a process, by credential."""

    def __init__(self, post: Post, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._post = post
        self._monotonic = monotonic
        self._kept: dict[str, Token] = {}
        self._failed: dict[str, tuple[Credential, float, CredentialError]] = {}
        self._fetching: dict[str, tuple[Credential, asyncio.Task[Token | CredentialError]]] = {}
        self._refresh: dict[str, tuple[Credential, Secret]] = {}

    async def token(self, credential: Credential, *, within: float) -> Token:
        """A token that may be used now. Raises CredentialError; after `within` seconds too, while the fetch goes on."""
        name, now = credential.name, self._monotonic()
        kept = self._kept.get(name)
        if kept is not None and kept.credential is credential and now < kept.until:
            return kept
        failed = self._failed.get(name)
        if failed is not None and failed[0] is credential and now < failed[1] + AFTER_FAILURE_S:
            raise CredentialError(failed[2].message, hint=failed[2].hint, fault="token")
        try:
            async with asyncio.timeout(within):
                got = await asyncio.shield(self._fetch(credential))
        except TimeoutError:
            raise CredentialError(f"no token for credential {name} in time", fault="token") from None
        if isinstance(got, CredentialError):
            raise CredentialError(got.message, hint=got.hint, fault="token")
        return got

    def seen(self, token: Token, status: int) -> None:
        """What a provider answered to a call with this token."""
        if status != 401:
            token.accepted = True
        elif self._kept.get(token.credential.name) is token:
            token.until = self._monotonic() if token.accepted else min(token.until, token.got + KEPT_REFUSED_S)

    async def aclose(self) -> None:
        """End fetches that nobody waits for any more."""
        tasks = [task for _, task in self._fetching.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _fetch(self, credential: Credential) -> "asyncio.Task[Token | CredentialError]":
        under_way = self._fetching.get(credential.name)
        if under_way is not None and under_way[0] is credential and not under_way[1].done():
            return under_way[1]
        task = asyncio.create_task(self._fetched(credential))
        self._fetching[credential.name] = (credential, task)
        return task

    async def _fetched(self, credential: Credential) -> Token | CredentialError:
        """The outcome as a value: nobody may be there to hear an exception."""
        name = credential.name
        try:
            token = await self._ask(credential)
        except CredentialError as error:
            self._refresh.pop(name, None)
            self._failed[name] = (credential, self._monotonic(), error)
            return error
        self._failed.pop(name, None)
        self._kept[name] = token
        return token

    async def _ask(self, credential: Credential) -> Token:
        client = credential.oauth
        assert client is not None
        where = f"the token endpoint {client.token_address.origin} of credential {credential.name}"
        rotated = self._refresh.get(credential.name)
        refresh = rotated[1] if rotated is not None and rotated[0] is credential else client.refresh_token
        began = self._monotonic()
        outcome = await self._post(await asyncio.to_thread(_request, client, refresh))  # the first time loads the library
        if isinstance(outcome, NoAnswer):
            raise CredentialError(f"{where} gave no answer: {outcome.word}")
        given = _given(outcome)
        value, code = given.get("access_token"), given.get("error")
        if code is not None or not 200 <= outcome.status <= 299:
            said = code if isinstance(code, str) and _is_code(code, client, refresh) else "no code that can be read"
            raise CredentialError(f"{where} answered {outcome.status}: {said}", hint="the record's client, secret, grant and scopes")
        if not isinstance(value, str) or not _TOKEN.fullmatch(value) or not _is_bearer(given):
            raise CredentialError(f"{where} gave nothing that can be sent as a bearer token")
        fresh = given.get("refresh_token")
        if refresh is not None and isinstance(fresh, str) and 0 < len(fresh) <= 8192:
            self._refresh[credential.name] = (credential, Secret(fresh))
        return Token(Secret(value), credential, began, began + _lasts(given))


def secrets_of(token: Token) -> tuple[Secret, ...]:
    """All that must not show in an answer to a call with this token."""
    client = token.credential.oauth
    assert client is not None
    return tuple(one for one in (token.value, client.client_secret, client.refresh_token) if one is not None)


def _request(client: OAuthClient, refresh: Secret | None) -> TokenRequest:
    library = cast("Any", importlib.import_module("oauthlib.oauth2"))
    extra: dict[str, str] = dict(client.parameters)
    secret = client.client_secret
    alone = client.in_body or secret is None
    if alone and secret is not None:
        extra["client_secret"] = secret.reveal()
    scope = list(client.scopes) or None
    if refresh is None:
        form = library.BackendApplicationClient(client.client_id).prepare_request_body(scope=scope, include_client_id=alone, **extra)
    else:
        extra |= {"client_id": client.client_id} if alone else {}
        form = library.Client(client.client_id).prepare_refresh_body(
            refresh_token=refresh.reveal(), scope=scope, include_client_id=alone, **extra
        )
    # RFC 6749, 2.3.1: name and secret are form-encoded before they are joined.
    basic = None if alone or secret is None else (quote_plus(client.client_id), Secret(quote_plus(secret.reveal())))
    return TokenRequest(client.token_address, Secret(str(form)), basic)


def _given(answer: Answer) -> dict[str, object]:
    """What the answer holds, by the library; an error as `{"error": code}`. Whatever it raises, its words hold what was read."""
    if answer.fault is not None:
        return {}
    library = cast("Any", importlib.import_module("oauthlib.oauth2"))
    try:
        return dict(library.Client("").parse_request_body_response(answer.body.decode("utf-8", "replace")))
    except Exception as raised:  # noqa: BLE001  its kinds are open, and Warning is one of them
        code = getattr(raised, "error", None)
        return {"error": code} if isinstance(code, str) else {}


def _is_code(code: str, client: OAuthClient, refresh: Secret | None) -> bool:
    """Whether it can be shown: a secret may be of the same shape, and whoever was sent one may send it, or a part of it, back."""
    secrets = [secret.reveal() for secret in (client.client_secret, refresh) if secret is not None]
    sent = [text.lower() for text in (*secrets, *(text for _, text in client.parameters))]  # a code is in small letters
    return bool(_CODE.fullmatch(code)) and not any(secret in code or (len(code) >= _TELLING and code in secret) for secret in sent)


def _is_bearer(given: dict[str, object]) -> bool:
    kind = given.get("token_type", "bearer")
    return isinstance(kind, str) and kind.lower() == "bearer"


def _lasts(given: dict[str, object]) -> float:
    """How long it is used: until its expiry less a margin, and less for one that lives no longer than two of these."""
    life = given.get("expires_in")
    if isinstance(life, bool) or not isinstance(life, int) or life <= 0:
        return WITHOUT_EXPIRY_S
    seconds = float(min(life, int(LONGEST_S)))
    return max(seconds - MARGIN_S, seconds / 2)
