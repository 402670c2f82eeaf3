"""One HTTP request and what came of it, as values that every layer shares.

* A `Request` is frozen: its bytes are stored before it is sent and are the same on every re-sending. It carries no
  authentication; that is added at the socket and kept nowhere.
* A body is bytes, or parts: bytes and stored files, which are named by place, size and SHA-256 and never held. What is sent of a
  stored file is what its digest says, or the request is not sent whole.
* An `Exchange` has an `Answer`, or a `NoAnswer` that stands in for one. `NoAnswer.sent` is False only where it is proven
  that no byte left.
* An `Answer` with a `fault` was not read whole: its body is what could be read, and nothing may be concluded from it.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, cast

from domain.errors import CredentialFault
from domain.fingerprint import sha256_hex

Fault = Literal["cut", "oversized", "encoding", "slow", "undecodable"]
"""Why a body is not whole: the connection broke, it passed the limit, its Content-Encoding is not one we offered or lied,
the total time ran out while reading it, or its bytes are not what the content type claims."""

NotSent = Literal[
    "refused_connection", "dns", "tls", "pool_timeout", "connect_timeout", "late", "address", "credential", "unsendable", "quota"
]  # fmt: skip
Lost = Literal["timeout", "broken", "header_overflow", "lost"]


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A stored file that is all or part of a body. `key` is its place in the result store."""

    key: str
    size: int
    sha256: str


Part = bytes | StoredPart


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, without authentication. `url` is absolute and already encoded; header names keep their spelling.

    The body is `body`, or all of `parts` in order; never both. `whole_sha256` is the digest of all parts, once they were read.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    redirects: int = 0
    parts: tuple[Part, ...] = ()
    whole_sha256: str | None = None

    @property
    def body_bytes(self) -> int:
        """How many bytes the body has."""
        return sum(part.size if isinstance(part, StoredPart) else len(part) for part in self.parts) if self.parts else len(self.body)

    @property
    def body_sha256(self) -> str | None:
        """SHA-256 of the whole body; None where only reading a stored file among other bytes would tell."""
        match self.parts:
            case ():
                return sha256_hex(self.body)
            case (StoredPart(sha256=sha256),):
                return sha256
            case _:
                return self.whole_sha256

    def to_json(self) -> dict[str, object]:
        """The form that is stored: bytes in base64. What has no parts is stored as it always was."""
        plain: dict[str, object] = {
            "method": self.method,
            "url": self.url,
            "headers": [list(pair) for pair in self.headers],
            "body": base64.b64encode(self.body).decode("ascii"),
            "redirects": self.redirects,
        }
        return plain | {"parts": [_stored(part) for part in self.parts], "sha256": self.whole_sha256} if self.parts else plain

    @classmethod
    def from_json(cls, value: dict[str, object]) -> "Request":
        """The reverse of `to_json`."""
        headers = value["headers"]
        assert isinstance(headers, list)
        redirects = value["redirects"]
        assert isinstance(redirects, int)
        sha256 = value.get("sha256")
        return cls(
            method=str(value["method"]),
            url=str(value["url"]),
            headers=tuple((str(name), str(text)) for name, text in headers),  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            body=base64.b64decode(str(value["body"])),
            redirects=redirects,
            parts=tuple(map(_part, cast("list[dict[str, object]]", value.get("parts", [])))),
            whole_sha256=None if sha256 is None else str(sha256),
        )


def _stored(part: Part) -> dict[str, object]:
    if isinstance(part, StoredPart):
        return {"key": part.key, "size": part.size, "sha256": part.sha256}
    return {"bytes": base64.b64encode(part).decode("ascii")}


def _part(value: dict[str, object]) -> Part:
    if "bytes" in value:
        return base64.b64decode(str(value["bytes"]))
    return StoredPart(str(value["key"]), int(str(value["size"])), str(value["sha256"]))


REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
"""Statuses of answers that send the caller to another address."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status line, headers (lower-case names, in order, repeated ones kept) and body as far as it was read."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    fault: Fault | None = None

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case name."""
        return next((value for known, value in self.headers if known == name), None)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No status line came. `sent` is False only if it is proven that no byte of the request left.

    `wait_ms`: the provider has said that it takes nothing for so long. `fault` and `origin`: what kept a credential from going where.
    """

    word: NotSent | Lost
    sent: bool
    wait_ms: int | None = None
    fault: CredentialFault | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with its answer, or what stood in for one. Instants are UTC."""

    request: Request
    began: datetime
    ended: datetime
    outcome: Answer | NoAnswer


@dataclass(frozen=True, slots=True)
class AuthUse:
    """How one origin is authenticated: which credential, and where it is put. It names secrets and holds none.

    `headers` and `query` use `templates`, pairs of a name and a text in which `${secret.NAME}` stands for the value of the
    credential of that name; all others use `credential`, and `sigv4` signs for `service` in `region`.
    """

    kind: Literal["none", "bearer", "basic", "headers", "query", "oauth2", "sigv4"] = "none"
    credential: str | None = None
    templates: tuple[tuple[str, str], ...] = ()
    service: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What one call may do and what it may cost. `redirects` caps what a request asks for.

    * `origins`: the only origins that may be called (`https://host`, `https://*.x.example` for every host below), each
      with its own authentication. An exact origin wins over a pattern, else the first that fits. An address with a path,
      such as a contract's base, stands for its origin.
    * `total_s` is wall clock from the first moment to the last byte, waiting for `parallel` and `per_second` included.
    * `max_bytes` bounds the body, before and after decoding.
    * `send_by`, an instant of the monotonic clock: no first byte leaves after it; the outcome is then `late`.
    * `spent` reads an answer: until when the provider takes nothing more of this credential, if it says so. Until then the outcome of
      any call that has a `spent` is `quota`, and nothing is sent.
    """

    origins: tuple[tuple[str, AuthUse], ...]
    tenant: str
    connect_s: float = 5.0
    read_s: float = 30.0
    write_s: float = 30.0
    total_s: float = 90.0
    max_bytes: int = 1024 * 1024
    redirects: int = 10
    parallel: int | None = None
    per_second: float | None = None
    send_by: float | None = None
    spent: Callable[[Answer, datetime], datetime | None] | None = None
