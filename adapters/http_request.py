"""The object that goes to the socket: the frozen request, what the transport needs, and authentication.

The target is sent exactly as the `Address` holds it. Framing headers and Host are ours alone; a request that brings one
is refused rather than sent otherwise than it was frozen. Header values are printable ASCII, looked at here once more:
behind this point a bad one would be quoted, secret and all, in an error of the HTTP library.
"""

import re
from typing import NoReturn
from urllib.parse import quote, unquote

import httpx

from adapters.addresses import Address
from adapters.http_auth import Applied
from adapters.http_upload import Upload
from adapters.http_wire import ADDRESS, JOURNEY, Journey
from domain.errors import RenderError
from domain.exchange import CallPolicy, Request

OFFERED = "gzip, identity"
DEFAULTS = (("User-Agent", "sakshi/1"), ("Accept", "*/*"), ("Accept-Encoding", OFFERED))
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect", "cookie"}
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_METHOD = re.compile(r"[A-Z]{1,20}")


def wired(
    request: Request, address: Address, applied: Applied, policy: CallPolicy, journey: Journey, upload: Upload | None = None
) -> httpx.Request:
    """The request as it is sent, its body from `upload` where it has parts. `RenderError` if it is none."""
    if not _METHOD.fullmatch(request.method) or request.method == "CONNECT":
        _refuse("the method is not one that can be sent")
    target = address.target if applied.query is None else _with_query(address.target, applied.query.reveal())
    headers = _headers(request, address, applied)
    if applied.signature is not None:
        headers = applied.signature.headers(request.method, f"{address.origin}{target}", headers, request.body_sha256)
    if upload is not None:
        # The library doesn't know how long a stream is, and would send it in chunks.
        headers.append(("Content-Length", str(request.body_bytes)))
    return httpx.Request(
        request.method,
        f"{address.origin}{target}",
        headers=headers,
        content=None if upload else request.body or None,
        stream=upload,
        extensions={
            "timeout": {"connect": policy.connect_s, "read": policy.read_s, "write": policy.write_s, "pool": policy.total_s},
            "target": target.encode("ascii"),
            ADDRESS: address,
            JOURNEY: journey,
        },
    )


def _with_query(target: str, auth: str) -> str:
    """The target with authentication last in its query and, as in headers, alone of its name: an address that a provider gave may hold
    what it was sent, of which only a mask is left."""
    names = {pair.partition("=")[0] for pair in auth.split("&")}
    path, _, query = target.partition("?")
    kept = [pair for pair in query.split("&") if pair and quote(unquote(pair.partition("=")[0]), safe="") not in names]
    return f"{path}?{'&'.join([*kept, auth])}"


def _headers(request: Request, address: Address, applied: Applied) -> list[tuple[str, str]]:
    """The request's own as they are written, defaults where it has none, authentication last and alone of its name."""
    auth = [(name, value.reveal()) for name, value in applied.headers]
    replaced = {name.lower() for name, _ in auth}
    headers = [pair for pair in request.headers if pair[0].lower() not in replaced and _is_offered(*pair)]
    present = replaced | {name.lower() for name, _ in headers}
    headers += [pair for pair in DEFAULTS if pair[0].lower() not in present]
    headers += auth
    for name, value in headers:
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            _refuse("a header's name is malformed, or is one that only the transport may set")
        if not _VALUE.fullmatch(value):
            _refuse(f"the value of header {name} is not printable ASCII")
    return [("Host", address.origin.authority), *headers]


def _is_offered(name: str, value: str) -> bool:
    """False for an Accept-Encoding that asks for what we can't decode; the default then stands in its place."""
    return name.lower() != "accept-encoding" or {word.strip().lower() for word in value.split(",")} <= {"gzip", "identity"}


def _refuse(why: str) -> NoReturn:
    raise RenderError(f"{why}; nothing was sent")
