"""Credentials: where they lie, where they may go, and how they are kept from showing.

* A credential is known by a name, `[a-z0-9_]{1,64}`. The name leads to one environment variable,
  `SAKSHI_CREDENTIAL_<NAME>`, or else to one file of the secrets folder, and to nothing else.
* What lies there is a record (JSON or YAML): `value`, or `username` and `password`; `scheme` (bearer, basic, header,
  query); `account`; `origins` (exact, or `https://*.x.example`); `tenants` (a list, or `"*"`). A credential is sent only
  where the contract *and* the record say so, and only for a tenant that the record lists.
* On the embedded stack a bare value is taken too. It is good for loopback origins and for nothing else.
* A value loses one trailing newline and must be header-safe, checked when it is loaded: a line break in a header would
  put the secret into the HTTP library's error text.
* A secret is read when it is due and again whenever its source has changed, so that a rotated file counts at once.
* No error, text, comparison or copy of a `Secret` shows its value. Errors of the YAML reader quote what they read, and
  so are replaced by our own words.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn, cast

import yaml

from adapters.addresses import Origin, OriginPattern, parse_pattern
from domain.errors import AddressError, CredentialError

Scheme = Literal["bearer", "basic", "header", "query"]

PREFIX = "SAKSHI_CREDENTIAL_"
MAX_RECORD = 64 * 1024
_NAME = re.compile(r"[a-z0-9_]{1,64}")
_HEADER_SAFE = re.compile(r"[\x21-\x7e]{1,8192}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SCHEMES: dict[object, Scheme] = {"bearer": "bearer", "basic": "basic", "header": "header", "query": "query"}
_KEYS = frozenset({"value", "username", "password", "origins", "tenants", "account", "scheme"})


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

    def permit(self, origin: Origin, tenant: str) -> None:
        """Raise `CredentialError` unless the record lets the credential go to this origin for this tenant."""
        fits = origin.names_loopback if self.origins is None else any(pattern.fits(origin) for pattern in self.origins)
        if not fits:
            raise CredentialError(f"credential {self.name} may not go to {origin}", hint="the record's `origins` must list it")
        if self.tenants is not None and tenant not in self.tenants:
            raise CredentialError(f"credential {self.name} may not be used for this tenant", hint="the record's `tenants` must list it")


class Credentials:
    """Names to credentials, on the executor."""

    def __init__(self, environ: Mapping[str, str] | None = None, folder: Path | None = None, *, embedded: bool = False) -> None:
        self._environ = os.environ if environ is None else environ
        self._folder = folder
        self._embedded = embedded
        self._read: dict[str, tuple[object, Credential]] = {}

    def read(self, name: str, *, origin: Origin, tenant: str) -> Credential:
        """The credential, if it may go to this origin for this tenant. `CredentialError` otherwise."""
        credential = self._load(name)
        credential.permit(origin, tenant)
        return credential

    def account(self, name: str) -> str:
        """Whose account it is at the provider: a plain text that approvals cover. Raises `CredentialError`."""
        return self._load(name).account

    def _load(self, name: str) -> Credential:
        if not _NAME.fullmatch(name):
            raise CredentialError("a credential's name is not `[a-z0-9_]{1,64}`")
        text = self._environ.get(PREFIX + name.upper())
        stamp = text if text is not None else self._stamp(name)
        known = self._read.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        self._read.pop(name, None)
        credential = parse_credential(name, text if text is not None else self._text(name), embedded=self._embedded)
        self._read[name] = (stamp, credential)
        return credential

    def _path(self, name: str) -> Path:
        if self._folder is None:
            raise _absent(name)
        return self._folder / name

    def _stamp(self, name: str) -> tuple[int, ...]:
        """What changes when a file is rotated, by writing or by swapping (also behind a link)."""
        try:
            facts = self._path(name).stat()
        except OSError:
            raise _absent(name) from None
        return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)

    def _text(self, name: str) -> str:
        text = _content(self._path(name))
        if text is None:
            raise CredentialError(f"credential {name} cannot be read", hint="it must be a readable file of UTF-8 text")
        return text


def _content(path: Path) -> str | None:
    """None instead of an error: a decoding error holds the bytes that it failed on."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(MAX_RECORD + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


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
    if unknown := set(record) - _KEYS:
        raise CredentialError(f"credential {name} has {len(unknown)} key(s) that a record does not have", hint=f"keys are {sorted(_KEYS)}")
    scheme = _SCHEMES.get(record.get("scheme")) if isinstance(record.get("scheme"), str) else None
    if scheme is None:
        raise CredentialError(f"credential {name} needs `scheme`: bearer, basic, header or query")
    account = record.get("account")
    if not isinstance(account, str) or not account or len(account) > 200 or not account.isprintable():
        raise CredentialError(f"credential {name} needs `account`: a short text that names the account at the provider")
    pair = scheme == "basic"
    if pair != ("username" in record or "password" in record) or pair == ("value" in record):
        raise CredentialError(f"credential {name} needs `username` and `password` for basic, `value` for any other scheme")
    return Credential(
        name,
        account=account,
        origins=_origins(name, record.get("origins")),
        tenants=_tenants(name, record.get("tenants")),
        scheme=scheme,
        value=None if pair else _header_safe(name, "value", record.get("value")),
        username=_text(name, "username", record.get("username")) if pair else None,
        password=Secret(_text(name, "password", record.get("password"))) if pair else None,
    )


def _origins(name: str, value: object) -> tuple[OriginPattern, ...]:
    texts = _texts(value)
    if not texts:
        raise CredentialError(f"credential {name} needs `origins`: a list of at least one origin")
    try:
        return tuple(parse_pattern(text) for text in texts)
    except AddressError:
        raise CredentialError(f"credential {name} lists something in `origins` that is not an origin") from None


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


def _absent(name: str) -> CredentialError:
    return CredentialError(
        f"credential {name} is not there", hint=f"set {PREFIX}{name.upper()} or put a file of that name in the secrets folder"
    )
