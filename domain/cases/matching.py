"""Whether a request is what a case says was sent. `*` fits any value, at any depth; headers and query are read as a server reads them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email import policy
from email.parser import BytesParser
from typing import Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import JsonValue

from domain.cases.models import Sent
from domain.jsontext import NotReadable, equal, parse_answer

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request as it is sent or as it came."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The value of a header."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


def fits(wanted: JsonValue, value: JsonValue) -> bool:
    """Equal as JSON, where `*` is equal to anything."""
    match wanted, value:
        case str(), _ if wanted == ANY:
            return True
        case dict(), dict():
            return wanted.keys() == value.keys() and all(fits(one, value[name]) for name, one in wanted.items())
        case list(), list():
            return len(wanted) == len(value) and all(fits(one, other) for one, other in zip(wanted, value, strict=True))
        case _:
            return equal(wanted, value)


def differences(sent: Sent, request: Arrived) -> Iterator[tuple[str, str]]:
    """Each key of `sent` that the request does not fit, with what the request has there."""
    parts = urlsplit(request.url)
    if sent.method is not None and sent.method != request.method:
        yield "method", request.method
    if sent.path is not None and not _path_fits(sent.path, parts.path):
        yield "path", parts.path
    if sent.url is not None and not _path_fits(sent.url, request.url.partition("?")[0]):
        yield "url", request.url.partition("?")[0]
    if sent.query is not None:
        found = _several(parse_qsl(parts.query, keep_blank_values=True))
        if not fits(_texts(sent.query), found):
            yield "query", _shown(found)
    for name, wanted in sent.headers.items():
        value = request.header(name)
        if value is None or wanted not in (ANY, value):
            yield f"headers.{name}", "no such header" if value is None else value
    yield from _body(sent, request)


def _path_fits(wanted: str, path: str) -> bool:
    """Segment by segment, each decoded: how a name is encoded is no difference."""
    ours, theirs = wanted.split("/"), path.split("/")
    return len(ours) == len(theirs) and all(one == ANY or unquote(one) == unquote(other) for one, other in zip(ours, theirs, strict=True))


def _body(sent: Sent, request: Arrived) -> Iterator[tuple[str, str]]:
    written = sent.model_fields_set
    if "json_body" in written:
        body = _json(request.body)
        if not fits(sent.json_body, body):
            yield "json", _shown(body)
    if sent.form is not None:
        form = _several(parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True))
        if not fits(_several(_flat("", sent.form)), form):
            yield "form", _shown(form)
    if sent.text is not None and sent.text not in (ANY, request.body.decode("utf-8", "replace")):
        yield "text", _shown(request.body.decode("utf-8", "replace"))
    if sent.multipart is not None:
        fields = multipart_of(request)
        if not fits(sent.multipart, fields):
            yield "multipart", _shown(fields)


def multipart_of(request: Arrived) -> dict[str, JsonValue]:
    """The fields of a multipart body: text as text, a file as `{filename, text}`."""
    head = f"Content-Type: {request.header('content-type') or ''}\r\n\r\n".encode()
    message = BytesParser(policy=policy.HTTP).parsebytes(head + request.body)
    found: dict[str, JsonValue] = {}
    for part in message.iter_parts() if message.is_multipart() else ():
        content = cast("bytes", part.get_payload(decode=True) or b"").decode("utf-8", "replace")
        name = str(part.get_param("name", "", header="content-disposition"))
        filename = part.get_filename()
        found[name] = content if filename is None else {"filename": filename, "text": content}
    return found


def _json(body: bytes) -> JsonValue:
    try:
        return parse_answer(body.decode("utf-8"))
    except (NotReadable, UnicodeDecodeError):
        return None


def _several(pairs: list[tuple[str, str]]) -> dict[str, JsonValue]:
    """Values by name; a name that is repeated has a list."""
    found: dict[str, list[JsonValue]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _texts(values: Mapping[str, JsonValue]) -> JsonValue:
    return _several([(name, _text(one)) for name, value in values.items() for one in (value if isinstance(value, list) else [value])])


def _flat(name: str, value: JsonValue) -> list[tuple[str, str]]:
    """A form as it is written: maps as `a[b]`, lists as `a[]`."""
    match value:
        case dict():
            return [pair for inner, item in value.items() for pair in _flat(f"{name}[{inner}]" if name else inner, item)]
        case list():
            return [pair for item in value for pair in _flat(f"{name.removesuffix('[]')}[]", item)]
        case _:
            return [(name, _text(value))]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"
