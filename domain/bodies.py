"""The body of an answer, read as far as its content type says what it is. Total: any bytes give a `Decoded`.

* JSON is what claims to be JSON, or claims nothing and is. It is UTF-8, with or without a byte order mark.
* Of an event stream the data of the last event counts, if it is JSON.
* A body that claims JSON and is not, or is too deep or too large, has a fault: it matches no entry that mentions it.
* Everything else has `text`: its first 64 KiB.
"""

from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from domain.exchange import Answer, Fault
from domain.jsontext import NotReadable, parse_answer

MAX_TEXT: Final = 64 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_UTF8: Final = frozenset({"", "utf-8", "utf8", "us-ascii", "ascii"})


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body as JSON or as text. With a fault it has neither."""

    body: JsonValue = None
    text: str | None = None
    fault: Fault | None = None


def decode(answer: Answer) -> Decoded:
    """What the body says."""
    if answer.fault is not None:
        return Decoded(fault=answer.fault)
    if not answer.body:
        return Decoded()
    media, charset = media_type(header(answer, "content-type"))
    if charset not in _UTF8:
        return Decoded(fault="undecodable")
    data = answer.body.removeprefix(_BOM)
    if media == "text/event-stream":
        return _last_event(data)
    if is_json(media):
        return _json(data)
    if not media and data.lstrip()[:1] in (b"{", b"["):
        guessed = _json(data)
        return guessed if guessed.fault is None else _text(data)
    return _text(data)


def header(answer: Answer, name: str) -> str:
    """The values of a header, joined with `, `; empty if it is not there."""
    return ", ".join(value for key, value in answer.headers if key == name)


def header_root(name: str) -> str:
    """A header's name as expressions name it."""
    return name.lower().replace("-", "_")


def headers_root(answer: Answer) -> dict[str, JsonValue]:
    """Headers as expressions name them: lower case, `_` for `-`, repeated ones joined."""
    found: dict[str, str] = {}
    for name, value in answer.headers:
        key = header_root(name)
        found[key] = f"{found[key]}, {value}" if key in found else value
    return dict(found)


def media_type(value: str) -> tuple[str, str]:
    """The media type and the charset of a content type, in lower case; empty where there is none."""
    media, _, parameters = value.partition(";")
    pairs = (part.strip().partition("=") for part in parameters.lower().split(";"))
    charset = next((found.strip().strip('"') for name, _, found in pairs if name.strip() == "charset"), "")
    return media.strip().lower(), charset


def is_json(media: str) -> bool:
    """Whether the media type claims JSON; AWS has names of its own for it."""
    return media in ("application/json", "text/json") or media.endswith("+json") or media.startswith("application/x-amz-json-")


def _json(data: bytes) -> Decoded:
    try:
        return Decoded(body=parse_answer(data.decode("utf-8")))
    except (UnicodeDecodeError, NotReadable):
        return Decoded(fault="undecodable")


def _text(data: bytes) -> Decoded:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Decoded(fault="undecodable")
    return Decoded(text=text[:MAX_TEXT])


def _last_event(data: bytes) -> Decoded:
    """The data lines of the last event, joined. It counts without a blank line after it as well: servers leave that out."""
    decoded = _text(data)
    if decoded.text is None:
        return decoded
    text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    events = [event for event in text.split("\n\n") if any(line.startswith("data:") for line in event.split("\n"))]
    if not events:
        return Decoded()
    lines = [line.removeprefix("data:").removeprefix(" ") for line in events[-1].split("\n") if line.startswith("data:")]
    return _json("\n".join(lines).encode("utf-8"))
