"""What a credential's own record says, read from JSON or YAML (or on the embedded stack from a bare value).

* Every scheme has `account`, `origins` (exact, or `https://*.x.example`) and `tenants` (a list, or `"*"`). Beside these:
  bearer, header, query: `value`; basic: `username`, `password`;
  oauth2: `token_url`, `client_id`, and by `grant`: `client_credentials` (default) or `refresh_token` with `refresh_token`; also
  `client_secret`, `client_auth` (basic or body), `scopes`, `parameters`, `token_origins`;
  sigv4: `access_key_id`, `secret_access_key`, `session_token`.
* Where a token is fetched is the record's business alone: its origin must stand in `origins` or in `token_origins`.
* A value loses one trailing newline and must be header-safe: a line break in a header would put the secret into the HTTP library's
  error text.
* No error, text, comparison or copy of a `Secret` shows its value. Errors of the YAML reader quote what they read, and so are
  replaced by our own words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, cast, get_args

import yaml

from adapters.addresses import Address, Origin, OriginPattern, parse_address, parse_pattern
from domain.errors import AddressError, CredentialError

Scheme = Literal["bearer", "basic", "header", "query", "oauth2", "sigv4"]
Grant = Literal["client_credentials", "refresh_token"]

MAX_RECORD = 64 * 1024
MOST_SHOWN, LONGEST_SHOWN = 5, 128
_HEADER_SAFE = re.compile(r"[\x21-\x7e]{1,8192}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_COMMON = frozenset({"origins", "tenants", "account", "scheme"})
_KEYS: dict[Scheme, frozenset[str]] = {
    "bearer": frozenset({"value"}),
    "basic": frozenset({"username", "password"}),
    "header": frozenset({"value"}),
    "query": frozenset({"value"}),
    "oauth2": frozenset(
        {
            "token_url",
            "token_origins",
            "grant",
            "client_id",
            "client_secret",
            "client_auth",
            "refresh_token",
            "scopes",
            "parameters",
        }
    ),
    "sigv4": frozenset({"access_key_id", "secret_access_key", "session_token"}),
}
_OF_THE_PROTOCOL = frozenset({"grant_type", "client_id", "client_secret", "refresh_token", "scope"})


class Secret:
    """A text that does not show itself. `reveal` is called where bytes are put on a socket, nowhere else."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(****)"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """How an access token is asked for. `in_body`: the client names itself in the body, not by Basic."""

    token_address: Address
    grant: Grant
    client_id: str
    client_secret: Secret | None = None
    refresh_token: Secret | None = None
    scopes: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    in_body: bool = False


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """What requests are signed with."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret | None = None


@dataclass(frozen=True, slots=True)
class Credential:
    """A record, read. `scheme` and `tenants` are None for a bare value of the embedded stack: any."""

    name: str
    account: str
    origins: tuple[OriginPattern, ...] | None
    tenants: frozenset[str] | None
    scheme: Scheme | None
    value: Secret | None = None
    username: str | None = None
    password: Secret | None = None
    oauth: OAuthClient | None = None
    keys: SigningKeys | None = None

    def permit(self, origin: Origin, tenant: str) -> None:
        """Raise `CredentialError` unless the record lets the credential go to this origin for this tenant."""
        self.permit_any(OriginPattern(origin, below=False))
        self.permit_tenant(tenant)

    def permit_any(self, where: OriginPattern) -> None:
        """Raise `CredentialError` unless the record lets the credential go to an origin that `where` means."""
        if self.origins is None:
            fits = not where.below and where.origin.names_loopback
            its = "it is a bare value, which is for loopback alone"
        else:
            fits = any(mine.meets(where) for mine in self.origins)
            its = f"its origins: {_few(list(map(str, self.origins)))}"
        if not fits:
            said, hint = f"credential {self.name} is not for {where} ({its})", "the record's `origins` must list it"
            raise CredentialError(said, hint=hint, fault="origin", origin=str(where))

    def permit_tenant(self, tenant: str) -> None:
        """Raise `CredentialError` unless the record lets the credential be used for this tenant."""
        if self.tenants is not None and tenant not in self.tenants:
            said = f"credential {self.name} is not for the tenant {tenant} (its tenants: {_few(sorted(self.tenants))})"
            raise CredentialError(said, hint="the record's `tenants` must list it", fault="tenant")


def parse_credential(name: str, text: str, *, embedded: bool) -> Credential:
    """A record, or on the embedded stack a bare value. `CredentialError` never holds what was read."""
    if len(text) > MAX_RECORD:
        raise CredentialError(f"credential {name} is longer than {MAX_RECORD} characters")
    record = _mapping(text)
    if record is not None:
        return _record(name, record)
    if not embedded:
        raise CredentialError(
            f"credential {name} is not a record",
            hint="outside the embedded stack it is JSON or YAML with value, scheme, account, origins and tenants",
        )
    return Credential(name, account=name, origins=None, tenants=None, scheme=None, value=_header_safe(name, "value", text))


def _mapping(text: str) -> dict[str, object] | None:
    try:
        parsed: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError):
        return None
    return cast("dict[str, object]", parsed) if isinstance(parsed, dict) else None


def _record(name: str, record: dict[str, object]) -> Credential:
    scheme = next((one for one in get_args(Scheme) if one == record.get("scheme")), None)
    known = _COMMON.union(*_KEYS.values()) if scheme is None else _COMMON | _KEYS[scheme]
    if unknown := set(record) - known:
        of = "a record" if scheme is None else f"a {scheme} record"
        raise CredentialError(f"credential {name} has {len(unknown)} key(s) that {of} does not have", hint=f"keys are {sorted(known)}")
    if scheme is None:
        raise CredentialError(f"credential {name} needs `scheme`: {', '.join(get_args(Scheme))}")
    account = record.get("account")
    if not isinstance(account, str) or not account or len(account) > 200 or not account.isprintable():
        raise CredentialError(f"credential {name} needs `account`: a short text that names the account at the provider")
    origins = _origins(name, "origins", record.get("origins"))
    pair, single = scheme == "basic", scheme in ("bearer", "header", "query")
    return Credential(
        name,
        account=account,
        origins=origins,
        tenants=_tenants(name, record.get("tenants")),
        scheme=scheme,
        value=_header_safe(name, "value", record.get("value")) if single else None,
        username=_text(name, "username", record.get("username")) if pair else None,
        password=Secret(_text(name, "password", record.get("password"))) if pair else None,
        oauth=_oauth(name, record, origins) if scheme == "oauth2" else None,
        keys=_signing_keys(name, record) if scheme == "sigv4" else None,
    )


def _oauth(name: str, record: dict[str, object], origins: tuple[OriginPattern, ...]) -> OAuthClient:
    grant = next((one for one in get_args(Grant) if one == record.get("grant", "client_credentials")), None)
    if grant is None:
        raise CredentialError(f"credential {name} needs `grant`: {' or '.join(get_args(Grant))}")
    way = record.get("client_auth", "basic")
    if way not in ("basic", "body"):
        raise CredentialError(f"credential {name} has `client_auth`: basic or body")
    if (grant == "refresh_token") != ("refresh_token" in record):
        raise CredentialError(f"credential {name} has `refresh_token` with the grant of that name, and only there")
    if grant == "client_credentials" and "client_secret" not in record:
        raise CredentialError(f"credential {name} needs `client_secret`: only a refresh token goes without one")
    return OAuthClient(
        token_address=_token_address(name, record, origins),
        grant=grant,
        client_id=_text(name, "client_id", record.get("client_id")),
        client_secret=Secret(_text(name, "client_secret", record["client_secret"])) if "client_secret" in record else None,
        refresh_token=Secret(_text(name, "refresh_token", record["refresh_token"])) if grant == "refresh_token" else None,
        scopes=_scopes(name, record.get("scopes", [])),
        parameters=_parameters(name, record.get("parameters", {})),
        in_body=way == "body",
    )


def _token_address(name: str, record: dict[str, object], origins: tuple[OriginPattern, ...]) -> Address:
    own = _origins(name, "token_origins", record["token_origins"]) if "token_origins" in record else ()
    try:
        address = parse_address(_text(name, "token_url", record.get("token_url")))
    except AddressError:
        raise CredentialError(f"credential {name} needs `token_url`: the address where tokens are given") from None
    if not any(pattern.fits(address.origin) for pattern in (*origins, *own)):
        raise CredentialError(
            f"credential {name} may not ask for a token at {address.origin}", hint="the record's `origins` or `token_origins` must list it"
        )
    return address


def _scopes(name: str, value: object) -> tuple[str, ...]:
    scopes = _texts(value)
    if not isinstance(value, list) or len(scopes) != len(cast("list[object]", value)) or not all(map(_HEADER_SAFE.fullmatch, scopes)):
        raise CredentialError(f"credential {name} has `scopes`: a list of words")
    return scopes


def _parameters(name: str, value: object) -> tuple[tuple[str, str], ...]:
    """What a provider wants beside the protocol's own, such as an audience."""
    given = cast("dict[object, object]", value) if isinstance(value, dict) else {None: None}
    pairs = tuple((key, text) for key, text in given.items() if isinstance(key, str) and isinstance(text, str))
    if len(pairs) != len(given) or any(key in _OF_THE_PROTOCOL for key, _ in pairs):
        raise CredentialError(f"credential {name} has `parameters`: names and texts, none of them {', '.join(sorted(_OF_THE_PROTOCOL))}")
    return pairs


def _signing_keys(name: str, record: dict[str, object]) -> SigningKeys:
    session = record.get("session_token")
    return SigningKeys(
        access_key_id=_header_safe(name, "access_key_id", record.get("access_key_id")).reveal(),
        secret_access_key=_header_safe(name, "secret_access_key", record.get("secret_access_key")),
        session_token=None if session is None else _header_safe(name, "session_token", session),
    )


def _origins(name: str, key: str, value: object) -> tuple[OriginPattern, ...]:
    texts = _texts(value)
    if not texts:
        raise CredentialError(f"credential {name} needs `{key}`: a list of at least one origin")
    try:
        return tuple(parse_pattern(text) for text in texts)
    except AddressError:
        raise CredentialError(f"credential {name} lists something in `{key}` that is not an origin") from None


def _tenants(name: str, value: object) -> frozenset[str] | None:
    if value == "*":
        return None
    texts = _texts(value)
    if not texts:
        raise CredentialError(f'credential {name} needs `tenants`: a list of at least one tenant, or "*"')
    return frozenset(texts)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    entries = cast("list[object]", value)
    texts = tuple(entry for entry in entries if isinstance(entry, str))
    return texts if len(texts) == len(entries) else ()


def _few(words: Sequence[str]) -> str:
    shown = [word if len(word) <= LONGEST_SHOWN else f"{word[:LONGEST_SHOWN]}..." for word in words[:MOST_SHOWN]]
    return ", ".join(shown) + (f" and {len(words) - MOST_SHOWN} more" if len(words) > MOST_SHOWN else "")


def _text(name: str, key: str, value: object) -> str:
    text = _without_newline(value) if isinstance(value, str) else ""
    if not text or len(text) > 8192 or _CONTROL.search(text) or (key == "username" and ":" in text):
        raise CredentialError(f"credential {name} needs `{key}`: text without control characters (and no colon in a user name)")
    return text


def _header_safe(name: str, key: str, value: object) -> Secret:
    text = _without_newline(value) if isinstance(value, str) else ""
    if not _HEADER_SAFE.fullmatch(text):
        raise CredentialError(
            f"credential {name} is not header-safe", hint=f"`{key}` must be text of visible ASCII, without spaces and line breaks"
        )
    return Secret(text)


def _without_newline(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
