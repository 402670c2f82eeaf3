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
import stat
from collections.abc import Mapping
from pathlib import Path

from adapters.addresses import Origin
from adapters.credential_records import MAX_RECORD, Credential, parse_credential
from adapters.regular_files import first_bytes
from domain.errors import CredentialError

PREFIX = "SAKSHI_CREDENTIAL_"
_NAME = re.compile(r"[a-z0-9_]{1,64}")
_FOR_OTHERS = stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP


class Credentials:
    """Names to credentials, on the executor."""

    def __init__(self, environ: Mapping[str, str] | None = None, folder: Path | None = None, *, embedded: bool = False) -> None:
        self._environ = os.environ if environ is None else environ
        self._folder = folder
        self._embedded = embedded
        self._read: dict[str, tuple[object, Credential]] = {}

    def read(self, name: str, *, origin: Origin, tenant: str) -> Credential:
        """The credential, if it may go to this origin for this tenant. `CredentialError` otherwise."""
        credential = self.record(name)
        credential.permit(origin, tenant)
        return credential

    def account(self, name: str) -> str:
        """Whose account it is at the provider: a plain text that approvals cover. Raises `CredentialError`."""
        return self.record(name).account

    def check(self, name: str, kind: str) -> str:
        """What a record is good for, in words, if a contract may use it as `kind`. Raises `CredentialError`."""
        credential = self.record(name)
        scheme = {"headers": "header"}.get(kind, kind)
        bare = credential.value.reveal() if credential.scheme is None and credential.value is not None else None
        if credential.scheme not in (None, scheme) or (bare is not None and scheme in ("oauth2", "sigv4")):
            raise CredentialError(
                f"credential {name} is {credential.scheme or 'a bare value'}, and a contract uses it as {scheme}",
                hint="the record's `scheme` says how it is sent, and the contract's `http.auth` must say the same",
                fault="scheme",
            )
        if bare is not None and scheme == "basic" and ":" not in bare:
            raise CredentialError(f"credential {name} is a bare value, and for basic that is user:password", fault="scheme")
        said = f"account {credential.account}"
        if credential.oauth is not None:
            said += f", gets tokens from {credential.oauth.token_address.origin} by {credential.oauth.grant}"
        if credential.keys is not None:
            said += f", signs with key {credential.keys.access_key_id[:4]}..." + (" of a session" if credential.keys.session_token else "")
        return said

    def exposed(self, name: str) -> Path | None:
        """The file that it is read from, if by its mode others than its owner may read or change it."""
        if self._folder is None or PREFIX + name.upper() in self._environ:
            return None
        try:
            return self._folder / name if (self._folder / name).stat().st_mode & _FOR_OTHERS else None
        except OSError:
            return None

    def record(self, name: str) -> Credential:
        """What lies there now, for whoever only looks. Raises `CredentialError`."""
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
            raise _absent(name, None)
        return self._folder / name

    def _stamp(self, name: str) -> tuple[int, ...]:
        """What changes when a file is rotated, by writing or by swapping (also behind a link)."""
        try:
            facts = self._path(name).stat()
        except OSError:
            raise _absent(name, self._folder) from None
        return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)

    def _text(self, name: str) -> str:
        text = _content(self._path(name))
        if text is None:
            raise CredentialError(f"credential {name} cannot be read", hint="it must be a readable regular file of UTF-8 text")
        return text


def _content(path: Path) -> str | None:
    """None instead of an error: a decoding error holds the bytes that it failed on."""
    try:
        return first_bytes(path, MAX_RECORD + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _absent(name: str, folder: Path | None) -> CredentialError:
    file = "" if folder is None else f" or write its record to {folder / name}"
    return CredentialError(
        f"credential {name} is not there",
        hint=f"set {PREFIX}{name.upper()}{file}; docs/settings.md says what a record holds",
        fault="absent",
    )
