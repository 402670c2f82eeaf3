"""Credentials: where they lie and where they may go.

* A credential is known by a name, `[a-z0-9_]{1,64}`. The name leads to one environment variable,
  `SAKSHI_CREDENTIAL_<NAME>`, or else to one file of the secrets folder, and to nothing else.
* What lies there is a record (`credential_records.py`). A credential is sent only where the contract *and* the record say so,
  and only for a tenant that the record lists.
* On the embedded stack a bare value is taken too. It is good for loopback origins and for nothing else.
* A secret is read when it is due and again whenever its source has changed, so that a rotated file counts at once: as long as
  it has not changed, the same object is given.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from adapters.addresses import Origin
from adapters.credential_records import MAX_RECORD, Credential, Scheme, Secret, parse_credential
from domain.errors import CredentialError

__all__ = ["Credential", "Credentials", "Scheme", "Secret"]

PREFIX = "SAKSHI_CREDENTIAL_"
_NAME = re.compile(r"[a-z0-9_]{1,64}")


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

    def check(self, name: str, kind: str) -> str:
        """What a record is good for, in words, if a contract may use it as `kind`. Raises `CredentialError`."""
        credential = self._load(name)
        scheme = {"headers": "header"}.get(kind, kind)
        if credential.scheme not in (None, scheme) or (credential.scheme is None and scheme in ("oauth2", "sigv4")):
            raise CredentialError(
                f"credential {name} is {credential.scheme or 'a bare value'}, and a contract uses it as {scheme}",
                hint="the record's `scheme` says how it is sent, and the contract's `http.auth` must say the same",
            )
        said = f"account {credential.account}"
        if credential.oauth is not None:
            said += f", gets tokens from {credential.oauth.token_address.origin} by {credential.oauth.grant}"
        if credential.keys is not None:
            said += f", signs with key {credential.keys.access_key_id[:4]}..." + (" of a session" if credential.keys.session_token else "")
        return said

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


def _absent(name: str) -> CredentialError:
    return CredentialError(
        f"credential {name} is not there", hint=f"set {PREFIX}{name.upper()} or put a file of that name in the secrets folder"
    )
