"""A body of `multipart/form-data` (RFC 7578), as parts: the framing as bytes, each file as what is stored.

* Text fields come first, in the order of their names, then the files in the order of theirs: the canonical copy of a contract, which
  an operation is pinned to, has no other order, and providers that mind one want the file last.
* Names stand as they are in UTF-8, a quotation mark as `%22`, as browsers write them; a control character is an error. No header is
  folded.
* The boundary is a digest of the generation's mark and the call's id: the same on every re-sending, and not to be foretold by whoever
  made a file. A text that has it is refused.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from domain.errors import RenderError
from domain.exchange import Part, StoredPart
from domain.fingerprint import canonical, sha256_hex

MAX_FILENAME: Final = 255
_BOUNDARY: Final = b"sakshi/boundary/v1\0"


@dataclass(frozen=True, slots=True)
class FileField:
    """A field that is a stored file."""

    name: str
    filename: str
    media: str
    stored: StoredPart


def boundary_of(mark: str, call_id: str) -> str:
    """The boundary of one call."""
    return f"sakshi-{sha256_hex(_BOUNDARY + canonical([mark, call_id]))[:40]}"


def multipart(texts: Iterable[tuple[str, str]], files: Iterable[FileField], boundary: str) -> tuple[Part, ...]:
    """The body, adjoining bytes joined. Raises RenderError."""
    parts: list[Part] = []
    for name, text in sorted(texts):
        if boundary in text:
            raise RenderError(f"multipart.{name} has the boundary in it")
        parts.append(_utf8(f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{text}\r\n'))
    for field in sorted(files, key=lambda field: field.name):
        if len(field.filename) > MAX_FILENAME:
            raise RenderError(f"the filename of multipart.{field.name} has more than {MAX_FILENAME} characters")
        names = f'name="{_quoted(field.name)}"; filename="{_quoted(field.filename)}"'
        head = f"--{boundary}\r\nContent-Disposition: form-data; {names}\r\nContent-Type: {field.media}\r\n\r\n"
        parts += [_utf8(head), field.stored, b"\r\n"]
    return _joined([*parts, _utf8(f"--{boundary}--\r\n")])


def _quoted(text: str) -> str:
    if any(sign < " " or sign == "\x7f" for sign in text):
        raise RenderError("a name in a multipart body has a control character")
    return text.replace('"', "%22")


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise RenderError("text with a lone surrogate can't be sent") from None


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    joined: list[Part] = []
    for part in parts:
        if joined and isinstance(part, bytes) and isinstance(joined[-1], bytes):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)
