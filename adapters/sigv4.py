"""AWS Signature Version 4, by botocore, over exactly what is sent.

* Signed are the host, the content type, the headers that are AWS's own and the digest of the body; whatever a proxy may change on the
  way is not. The digest stands in a header of its own, so that a body of stored files is never read for it.
* A signature is made when a request goes to the socket, counts for minutes and is stored nowhere: a later attempt makes its own.
* S3 reads a path as it is encoded once; all other services encode it twice. That is the library's, by the service's name.
* The library is large and is loaded when the first request is to be signed. At DEBUG it writes what it signs, session token included.
"""

import importlib
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote, unquote_to_bytes

from adapters.credential_records import Secret, SigningKeys
from domain.errors import RenderError

_SIGNED = frozenset({"host", "content-type", "content-md5"})
_OURS = frozenset({"x-amz-date", "x-amz-security-token", "x-amz-content-sha256", "authorization", "date"})

for _name in ("botocore", "botocore.auth"):
    logging.getLogger(_name).disabled = True
    logging.getLogger(_name).addFilter(lambda _record: False)


@dataclass(frozen=True, slots=True)
class Signature:
    """Who signs, for which service, at which moment."""

    keys: SigningKeys
    service: str
    region: str
    at: datetime

    def headers(self, method: str, url: str, given: list[tuple[str, str]], body_sha256: str | None) -> list[tuple[str, str]]:
        """The headers of a signed request: those given, and those that sign them. `RenderError` if the body has no digest."""
        if body_sha256 is None:
            raise RenderError("the digest of the body is not known; nothing was signed or sent")
        kept = [pair for pair in given if pair[0].lower() not in _OURS]
        stamp = self.at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        own = [("X-Amz-Date", stamp), ("X-Amz-Content-SHA256", body_sha256)]
        if self.keys.session_token is not None:
            own.append(("X-Amz-Security-Token", self.keys.session_token.reveal()))
        signed = [(name, value) for name, value in (*kept, *own) if name.lower() in _SIGNED or name.lower().startswith("x-amz-")]
        return [*kept, *own, ("Authorization", self.authorization(method, url, signed, stamp))]

    def authorization(self, method: str, url: str, signed: list[tuple[str, str]], stamp: str) -> str:
        """The header that signs these headers, and the body by its digest among them."""
        library = loaded()
        signer = library.signer(self.service)(library.credentials(self.keys), self.service, self.region)
        request = library.request(method, _encoded(url, path_too=self.service == "s3"))
        for name, value in signed:
            request.headers.add_header(name, value)
        request.context["timestamp"] = stamp
        text = signer.string_to_sign(request, signer.canonical_request(request))
        names = signer.signed_headers(signer.headers_to_sign(request))
        signature = signer.signature(text, request)
        return f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={names}, Signature={signature}"


def secrets_of(keys: SigningKeys) -> tuple[Secret, ...]:
    """All that must not show in an answer to a signed request."""
    return tuple(one for one in (keys.secret_access_key, keys.session_token) if one is not None)


def _encoded(url: str, *, path_too: bool) -> str:
    """The address as it is read at the other end, whoever wrote it: each name and value of its query with every byte but the unreserved
    ones percent-encoded, once; and so the path, `/` left, as S3 reads it."""
    base, mark, query = url.partition("?")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, _, value in pairs)
    scheme, _, rest = base.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}{slash}{_quoted(path, safe='/') if path_too else path}{mark}{query}"


def _quoted(text: str, safe: str = "") -> str:
    return quote(unquote_to_bytes(text), safe=f"{safe}-_.~")


@dataclass(frozen=True, slots=True)
class Library:
    """What is used of botocore, which brings no types."""

    auth: Any
    awsrequest: Any
    keys: Any

    def signer(self, service: str) -> Any:
        """The kind of signer that a service needs."""
        return self.auth.S3SigV4Auth if service == "s3" else self.auth.SigV4Auth

    def credentials(self, keys: SigningKeys) -> Any:
        """The library's own holder of keys."""
        session = None if keys.session_token is None else keys.session_token.reveal()
        return self.keys.Credentials(keys.access_key_id, keys.secret_access_key.reveal(), session)

    def request(self, method: str, url: str) -> Any:
        """The library's own request, without headers."""
        return self.awsrequest.AWSRequest(method=method, url=url)


@lru_cache(maxsize=1)
def loaded() -> Library:
    """The library. The first time takes a while."""
    names = ("botocore.auth", "botocore.awsrequest", "botocore.credentials")
    return Library(*(cast("Any", importlib.import_module(name)) for name in names))
