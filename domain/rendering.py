"""From a contract and values to a request. `domain/effects.py` (what policy judges) and `domain/results/expectations.py` (what a result is
checked against) render by the same rules.

* One pass: what a hole gives is never expanded again.
* In a path each hole is one segment: percent-encoded, `/` too; empty, `.`, `..` (also after decoding) and control characters are
  errors. `keep_slashes(x)` keeps `/`. The path of the address is the expanded template, character for character.
* Header values are printable ASCII. A JSON body is its canonical bytes; where a value read from an answer is a larger integer than
  canonical JSON carries, sorted compact JSON.
* A file is named by its place in the result store, its size and its digest, as it was stored when the operation was opened.
* The address must belong to the base or to a host that the contract lists. Nothing here authenticates: that happens at the socket.
* Whatever has no value where one is due is a RenderError, and nothing was sent.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from pydantic import JsonValue

from domain.contract import Contract
from domain.errors import AddressError, BadInput, RenderError
from domain.evidence import FileFacts, file_key
from domain.exchange import Part, Request, StoredPart
from domain.fingerprint import canonical
from domain.language.calls import FilePart
from domain.language.calls import Request as RequestModel
from domain.language.connection import Auth
from domain.language.expressions import Scope
from domain.language.functions import KeepSlashes
from domain.language.templates import compile_template, fill, fill_text, fill_tree, hole_value, scalar_text
from domain.multipart import FileField, boundary_of, multipart
from domain.origins import check_address, origin_of

MAX_URL: Final = 8_192
MAX_HEADER: Final = 8_192
_SEGMENT: Final = "-._~!$&'()*+,;=:@"


def render(contract: Contract, request: RequestModel, scope: Scope, *, accept: str = "application/json") -> Request:
    """The request that is sent, without authentication. Raises RenderError, AddressError."""
    target = _mapping(scope.target)
    url = _url(contract, request, scope, target)
    if contract.auth_for(url, target) is None:
        raise AddressError(f"{origin_of(url)} is neither the base of {contract.contract} nor in its http.hosts")
    content_type, body = _body(request, scope)
    headers = {name: _header(name, text, scope) for name, text in request.headers.items()}
    sent = {name: value for name, value in headers.items() if value is not None}
    _add(sent, "Accept", accept)
    _add(sent, "Content-Type", content_type)
    _add(sent, contract.http.trace_header, scope.trace_id)
    whole, parts = (body, ()) if isinstance(body, bytes) else (b"", body)
    return Request(request.method, url, tuple(sent.items()), whole, request.redirects, parts)


def origin(contract: Contract, target: Mapping[str, JsonValue]) -> str:
    """The origin of the base for one target."""
    return str(origin_of(contract.base(target)))


def origins(contract: Contract, target: Mapping[str, JsonValue]) -> tuple[tuple[str, Auth], ...]:
    """Every origin (or pattern of origins) that may be called, with its authentication; the base first."""
    base, scope = origin(contract, target), Scope(target=dict(target))
    named = ((base, contract.http.auth), *((host, auth) for host, auth in contract.http.hosts.items() if host != base))
    return tuple((where, auth.at(scope)) for where, auth in named)


def _url(contract: Contract, request: RequestModel, scope: Scope, target: Mapping[str, JsonValue]) -> str:
    base = contract.base(target)
    root = base if request.host == "base" else request.host
    if request.path is not None:
        url = root + _path(request.path, scope)
    else:
        given = fill_text(request.url or "", scope)
        check_address(given)
        if given.startswith("//"):
            raise AddressError("an address that begins with //")
        url = urljoin(root + "/", given)
        if any(_is_dots(segment) for segment in urlsplit(url).path.split("/")):
            raise RenderError("an address with a segment . or ..")
    pairs = [pair for name, value in request.query.items() for pair in _pairs(name, _entry(value, scope))]
    if pairs:
        url += ("&" if urlsplit(url).query else "?") + _encoded(pairs)
    if len(url) > MAX_URL:
        raise RenderError(f"an address of more than {MAX_URL} characters")
    origin_of(url)
    return url


def _path(text: str, scope: Scope) -> str:
    parts = [part if isinstance(part, str) else _segment(hole_value(part, scope), part.text) for part in compile_template(text).parts]
    path = "".join(parts)
    if any(_is_dots(segment) for segment in path.split("/")):
        raise RenderError(f"{text} has a segment . or ..")
    return path


def _segment(value: JsonValue, what: str) -> str:
    """One hole of a path."""
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        raise RenderError(f"${{{what}}} must be text or a number, to stand in a path")
    text = value if isinstance(value, KeepSlashes) else scalar_text(value, what)
    segments = text.split("/") if isinstance(value, KeepSlashes) else [text]
    if any(not segment or _is_dots(segment) or _has_control(segment) for segment in segments):
        raise RenderError(f"${{{what}}} is empty, . or .., or has a control character, and can't stand in a path")
    return "/".join(_quoted(segment, safe=_SEGMENT) for segment in segments)


def _has_control(segment: str) -> bool:
    return any(sign < " " or sign == "\x7f" for sign in segment)


def _is_dots(segment: str) -> bool:
    """Whether a segment is `.` or `..`, or would hold one after decoding, however often that is done."""
    for _ in range(8):
        if {".", ".."} & set(segment.split("/")):
            return True
        decoded = unquote(segment)
        if decoded == segment:
            return False
        segment = decoded
    return True


def _body(request: RequestModel, scope: Scope) -> tuple[str | None, bytes | tuple[Part, ...]]:
    match request.body:
        case "json":
            tree = request.json_body
            value = fill(tree, scope) if isinstance(tree, str) else fill_tree(tree, scope)
            if value is None and tree is not None:
                raise RenderError("the whole body has no value")
            return "application/json", json_bytes(value)
        case "form":
            tree = request.form or {}
            value = fill(tree, scope) if isinstance(tree, str) else fill_tree(tree, scope)
            if not isinstance(value, dict):
                raise RenderError(f"{tree} is no map of fields, which a form is")
            pairs = [pair for name, item in value.items() for pair in _nested(name, item)]
            return "application/x-www-form-urlencoded", _encoded(pairs).encode("ascii")
        case "multipart":
            return _multipart(request.multipart or {}, scope)
        case "file":
            facts, stored = _stored(request.file or "", scope)
            return facts.media, (stored,)
        case "text":
            return request.content_type, _utf8(fill_text(request.text or "", scope))
        case _:
            return None, b""


def _multipart(fields: Mapping[str, str | FilePart], scope: Scope) -> tuple[str, bytes | tuple[Part, ...]]:
    if scope.mark is None or scope.call_id is None:
        raise RenderError("a multipart body needs a mark and the id of its call, to make the boundary of")
    boundary = boundary_of(scope.mark, scope.call_id)
    texts = {name: fill(field, scope) for name, field in fields.items() if isinstance(field, str)}
    left_out = {name for name, value in texts.items() if value is None}
    parts = multipart(
        [(name, scalar_text(value, f"multipart.{name}")) for name, value in texts.items() if name not in left_out],
        [_file_field(name, field, scope) for name, field in fields.items() if isinstance(field, FilePart)],
        boundary,
    )
    whole = parts[0] if len(parts) == 1 and isinstance(parts[0], bytes) else parts
    return f"multipart/form-data; boundary={boundary}", whole


def _file_field(name: str, field: FilePart, scope: Scope) -> FileField:
    facts, stored = _stored(field.file, scope)
    filename = None if field.filename is None else fill(field.filename, scope)
    # Without a filename a receiver takes the field for text.
    return FileField(name, field.file if filename is None else scalar_text(filename, f"multipart.{name}.filename"), facts.media, stored)


def _stored(name: str, scope: Scope) -> tuple[FileFacts, StoredPart]:
    """What is known of a file of the operation, and where it is."""
    facts, tenant = _mapping(scope.files).get(name), _mapping(scope.operation).get("tenant")
    if facts is None or not isinstance(tenant, str):
        raise RenderError(f"the operation has no file {name}")
    known = FileFacts.model_validate(facts)
    return known, StoredPart(file_key(tenant, known.sha256), known.bytes, known.sha256)


def json_bytes(value: JsonValue) -> bytes:
    """A JSON body: canonical, or where an integer is too large for that, compact with sorted keys and all digits."""
    try:
        return canonical(value)
    except BadInput:
        try:
            return _utf8(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
        except ValueError:
            raise RenderError("a body with a number that JSON does not have") from None


def _entry(value: JsonValue, scope: Scope) -> JsonValue:
    return fill(value, scope) if isinstance(value, str) else fill_tree(value, scope)


def _pairs(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """A query parameter; a list repeats it, no value leaves it out."""
    for item in value if isinstance(value, list) else [] if value is None else [value]:
        yield name, scalar_text(item, f"query.{name}")


def _nested(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """A form field: maps as `a[b]`, lists as `a[]`."""
    match value:
        case dict():
            for inner, item in value.items():
                yield from _nested(f"{name}[{inner}]", item)
        case list():
            for item in value:
                yield from _nested(f"{name}[]", item)
        case None:
            yield name, ""
        case _:
            yield name, scalar_text(value, f"form.{name}")


def _encoded(pairs: list[tuple[str, str]]) -> str:
    return "&".join(f"{_quoted(name, safe='[]')}={_quoted(value)}" for name, value in pairs)


def _quoted(text: str, safe: str = "") -> str:
    return quote(_utf8(text), safe=safe)


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise RenderError("text with a lone surrogate can't be sent") from None


def _header(name: str, text: str, scope: Scope) -> str | None:
    """A header's value; None, and the header is left out, where its whole value is one hole without a value."""
    value = fill(text, scope)
    return None if value is None else _sendable(name, scalar_text(value, text))


def _sendable(name: str, text: str) -> str:
    if not (text.isascii() and text.isprintable()) or text != text.strip() or len(text) > MAX_HEADER:
        raise RenderError(f"the header {name} must be printable ASCII without blanks around it")
    return text


def _add(headers: dict[str, str], name: str, value: str | None) -> None:
    """Add a header of ours, unless the contract has its own."""
    if value is not None and name.lower() not in {given.lower() for given in headers}:
        headers[name] = _sendable(name, value)


def _mapping(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
