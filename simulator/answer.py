"""The values that pass between the door, the provider and the lies.

* A `Call` is one request, already routed: which kind of act it is and on what.
* An `Answer` is what goes back. `delivery` says how it travels; only lies change it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Kind = Literal["create", "observe", "cancel", "collect", "list", "read", "upload", "remove", "unknown"]
Endpoint = Literal["reports", "plain", "named", "unnamed", "counts", ""]
Part = Literal["job", "result", "reference", "pages", "rows", "parts", "part", ""]

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an answer travels: the honest way sends headers and body at once.

    `header_pause` and `body_pause` lie between two pieces; `cut` is the share of the body after which the connection breaks;
    `drop` breaks it before the first byte; `endless` sends the body over and over.
    """

    drop: bool = False
    header_pause: float = 0.0
    body_pause: float = 0.0
    pieces: int = 1
    cut: float | None = None
    endless: bool = False


AT_ONCE = Delivery()


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and body; `stream` stands in for a body of `length` bytes that is too large to hold."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    stream: Callable[[], Iterator[bytes]] | None = None
    length: int | None = None
    delivery: Delivery = AT_ONCE

    def whole(self) -> bytes:
        """The body in one piece, also of a stream."""
        return self.body if self.stream is None else b"".join(self.stream())

    def fields(self) -> dict[str, Json] | None:
        """The body as a JSON object, or None if it is not one."""
        if self.stream is not None or not self.body.startswith(b"{") or (("content-type", JSON) not in self.headers):
            return None
        return cast("dict[str, Json]", json.loads(self.body))


@dataclass(slots=True)
class Call:
    """One request. `job` is filled in by the provider where it is learned only while answering."""

    kind: Kind
    method: str
    path: str
    endpoint: Endpoint = ""
    name: str = ""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    part: Part = ""
    extra: str = ""
    account: str | None = None
    token: str | None = None
    reference: str | None = None
    job: str | None = None
    busy: bool = False

    @property
    def base(self) -> str:
        """The address that the caller used for us."""
        return f"http://{self.headers.get('host', 'simulator.invalid')}"


def dump(value: Json) -> bytes:
    """Compact JSON; text outside ASCII is escaped, so that NUL and lone surrogates can be sent."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def told(status: int, value: Json, *headers: tuple[str, str]) -> Answer:
    """An answer in JSON."""
    return Answer(status, (("content-type", JSON), *headers), dump(value))


def refusal(status: int, error: str, message: str, *headers: tuple[str, str]) -> Answer:
    """An answer that says no: a stable word and a sentence."""
    return told(status, {"error": error, "message": message}, *headers)
