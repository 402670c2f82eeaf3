"""One HTTP request and what came of it, as values that every layer shares.

* A `Request` is frozen: its bytes are stored before it is sent and are the same on every re-sending. It carries no
  authentication; that is added at the socket and kept nowhere.
* An `Exchange` has an `Answer`, or a `NoAnswer` that stands in for one. `NoAnswer.sent` is False only where it is proven
  that no byte left.
* An `Answer` with a `fault` was not read whole: its body is what could be read, and nothing may be concluded from it.
"""

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Fault = Literal["cut", "oversized", "encoding", "slow", "undecodable"]
"""Why a body is not whole: the connection broke, it passed the limit, its Content-Encoding is not one we offered or lied,
the total time ran out while reading it, or its bytes are not what the content type claims."""

NotSent = Literal["refused_connection", "dns", "tls", "pool_timeout", "connect_timeout", "late", "address", "credential", "unsendable"]
Lost = Literal["timeout", "broken", "header_overflow", "lost"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, without authentication. `url` is absolute and already encoded; header names keep their spelling."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    redirects: int = 0

    def to_json(self) -> dict[str, object]:
        """The form that is stored: body in base64."""
        return {
            "method": self.method,
            "url": self.url,
            "headers": [list(pair) for pair in self.headers],
            "body": base64.b64encode(self.body).decode("ascii"),
            "redirects": self.redirects,
        }

    @classmethod
    def from_json(cls, value: dict[str, object]) -> "Request":
        """The reverse of `to_json`."""
        headers = value["headers"]
        assert isinstance(headers, list)
        redirects = value["redirects"]
        assert isinstance(redirects, int)
        return cls(
            method=str(value["method"]),
            url=str(value["url"]),
            headers=tuple((str(name), str(text)) for name, text in headers),  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            body=base64.b64decode(str(value["body"])),
            redirects=redirects,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """Status line, headers (lower-case names, in order, repeated ones kept) and body as far as it was read."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No status line came. `sent` is False only if it is proven that no byte of the request left."""

    word: NotSent | Lost
    sent: bool


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

    `bearer` and `basic` use `credential`; `headers` and `query` use `templates`, pairs of a name and a text in which
    `${secret.NAME}` stands for the value of the credential of that name.
    """

    kind: Literal["none", "bearer", "basic", "headers", "query"] = "none"
    credential: str | None = None
    templates: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What one call may do and what it may cost. `redirects` caps what a request asks for.

    * `origins`: the only origins that may be called (`https://host`, `https://*.x.example` for every host below), each
      with its own authentication. An exact origin wins over a pattern, else the first that fits. An address with a path,
      such as a contract's base, stands for its origin.
    * `total_s` is wall clock from the first moment to the last byte, waiting for `parallel` and `per_second` included.
    * `max_bytes` bounds the body, before and after decoding.
    * `send_by`, an instant of the monotonic clock: no first byte leaves after it; the outcome is then `late`.
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
