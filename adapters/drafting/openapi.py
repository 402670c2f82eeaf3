"""An OpenAPI 3 document, as far as a contract asks for it: operations by their id, with references followed.

* The document is data from a stranger: of bounded size; references lead into the document alone, what leads back to itself is cut, and
  no more than `MAX_NODES` values of one part are looked at, the near ones before the far ones. What was cut is open, never guessed.
* Only the parts that are asked for are looked at; a document may be wrong elsewhere.

Source: OpenAPI Specification 3.0.4 and 3.1.1, https://spec.openapis.org/oas/
"""

import difflib
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import unquote

from pydantic import JsonValue

from adapters.drafting.text import one_line
from domain.errors import BadInput

MAX_NODES: Final = 20_000
MAX_REFERENCES: Final = 24
MAX_LISTED: Final = 60
"""So many parameters and responses of an operation are looked at."""

METHODS: Final = ("get", "put", "post", "delete", "patch", "head")
Node = dict[str, JsonValue]
_GOOD: Final = re.compile(r"2([0-9]{2}|XX|xx)")
_JSON: Final = re.compile(r"(?i)[a-z0-9.+-]+/([a-z0-9.+-]*\+)?json(;.*)?|\*/\*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation. `place`: path, query or header."""

    name: str
    place: str
    required: bool
    schema: Node


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation with its references followed. `bodies`: schemas of the request's body by media type."""

    id: str
    method: str
    path: str
    summary: str
    server: Node
    servers: int
    security: tuple[tuple[str, ...], ...] | None
    """The ways of authentication, each as the schemes that it takes together; None: the document says nothing of it."""
    parameters: tuple[Parameter, ...]
    body_required: bool
    bodies: dict[str, Node]
    responses: dict[str, Node] = field(default_factory=dict[str, Node])

    def parameter(self, place: str) -> tuple[Parameter, ...]:
        """The parameters of one place."""
        return tuple(one for one in self.parameters if one.place == place)

    def required(self, place: str) -> tuple[Parameter, ...]:
        """Those that must be sent."""
        return tuple(one for one in self.parameter(place) if one.required)

    def schema_of(self, status: str) -> Node:
        """The JSON schema of a response, empty if there is none."""
        content = as_node(self.responses.get(status, {}).get("content"))
        return next((as_node(as_node(media).get("schema")) for name, media in content.items() if _JSON.fullmatch(name)), Node())

    def media_of(self, status: str) -> tuple[str, ...]:
        """The media types of a response."""
        return tuple(as_node(self.responses.get(status, {}).get("content")))

    def headers_of(self, status: str) -> tuple[str, ...]:
        """The headers that a response names."""
        return tuple(as_node(self.responses.get(status, {}).get("headers")))

    def described(self, status: str) -> str:
        """What the document says of a response, as the end of a remark."""
        said = one_line(str(self.responses.get(status, {}).get("description") or ""), 120)
        return f"; the document: {said}" if said else ""

    @property
    def good(self) -> tuple[str, ...]:
        """The statuses of success, as they stand in the document."""
        return tuple(status for status in self.responses if _GOOD.fullmatch(status))

    @property
    def shown(self) -> Node:
        """The JSON schema of the first success that has one."""
        return next((found for status in (*self.good, "default") if (found := self.schema_of(status))), Node())


class OpenApi:
    """A document. Raises BadInput, with what and where, if it is none."""

    def __init__(self, document: JsonValue, name: str) -> None:
        self.name = name
        self.document = as_node(document)
        self.outside: dict[str, None] = {}
        """References that could not be followed."""
        version = self.document.get("openapi")
        if "swagger" in self.document:
            raise BadInput(f"{name} is a document of Swagger 2", hint="convert it to OpenAPI 3 first")
        if not isinstance(version, str) or not version.startswith("3."):
            raise BadInput(f"{name} is no OpenAPI 3 document", hint="its key `openapi` has to be a text such as 3.1.0")

    def operation(self, wanted: str) -> Operation:
        """By operationId, or as `METHOD /path`. Raises BadInput, which names what is near."""
        known = list(self._operations())
        for method, path, found, shared in known:
            if wanted == found.get("operationId") or wanted in (f"{method.upper()} {path}", f"{method} {path}"):
                return self._read(method, path, found, shared)
        names = sorted({one_line(_id(method, path, found), 80) for method, path, found, _ in known})
        inside = [name for name in names if wanted.lower() in name.lower()]
        near = list(dict.fromkeys([*difflib.get_close_matches(wanted, names, 3, 0.5), *inside])) or names
        said = f"it has {', '.join(near[:12])}{' ...' if len(near) > 12 else ''}" if names else "it has none at all"
        raise BadInput(f"{self.name} has no operation {one_line(wanted, 80)}", hint=said)

    @property
    def title(self) -> str:
        """What the document is called."""
        return one_line(str(as_node(self.document.get("info")).get("title") or ""), 120)

    @property
    def api_version(self) -> str:
        """The version that the document gives of the API."""
        return one_line(str(as_node(self.document.get("info")).get("version") or ""), 80)

    def schemes(self) -> dict[str, Node]:
        """The security schemes that the document has."""
        found = as_node(as_node(self.document.get("components")).get("securitySchemes"))
        return {name: as_node(self.resolved(scheme)) for name, scheme in list(found.items())[:MAX_LISTED]}

    def resolved(self, node: JsonValue) -> JsonValue:
        """The node with its references followed; what leads back to itself, or is too much, becomes open."""
        found: list[JsonValue] = []
        work: deque[tuple[JsonValue, tuple[str, ...], Callable[[JsonValue], None]]] = deque([(node, (), found.append)])
        looked_at = 0
        while work:
            given, seen, put = work.popleft()
            raw, seen = self._followed(given, seen)
            looked_at += 1
            match raw:
                case dict():
                    made: Node = {}
                    put(made)
                    if looked_at + len(work) + len(raw) <= MAX_NODES:
                        work.extend((item, seen, partial(made.__setitem__, name)) for name, item in raw.items())
                case list():
                    listed: list[JsonValue] = []
                    put(listed)
                    if looked_at + len(work) + len(raw) <= MAX_NODES:
                        work.extend((item, seen, listed.append) for item in raw)
                case _:
                    put(raw)
        return found[0]

    def _followed(self, node: JsonValue, seen: tuple[str, ...]) -> tuple[JsonValue, tuple[str, ...]]:
        while isinstance(node, dict) and isinstance(ref := node.get("$ref"), str):
            if ref in seen or len(seen) >= MAX_REFERENCES:
                return {}, seen
            node, seen = self._at(ref), (*seen, ref)
        return node, seen

    def _at(self, ref: str) -> JsonValue:
        found: JsonValue = self.document
        for part in unquote(ref).removeprefix("#/").split("/") if ref.startswith("#/") else ("",):
            name = part.replace("~1", "/").replace("~0", "~")
            match found:
                case dict() if name in found:
                    found = found[name]
                case list() if re.fullmatch("[0-9]{1,6}", name) and int(name) < len(found):
                    found = found[int(name)]
                case _:
                    self.outside[one_line(ref, 100)] = None
                    return {}
        return found

    def _operations(self) -> Iterator[tuple[str, str, Node, Node]]:
        for path, item in as_node(self.document.get("paths")).items():
            shared = as_node(self._followed(item, ())[0])
            for method in METHODS:
                if method in shared:
                    yield method, path, as_node(shared[method]), shared

    def _read(self, method: str, path: str, found: Node, shared: Node) -> Operation:
        listed = [*as_nodes(shared.get("parameters")), *as_nodes(found.get("parameters"))]
        parameters = {(one.name, one.place): one for one in map(self._parameter, listed[:MAX_LISTED]) if one}
        body = as_node(self.resolved(found.get("requestBody")))
        responses = list(as_node(found.get("responses")).items())[:MAX_LISTED]
        servers = as_nodes(found.get("servers")) or as_nodes(shared.get("servers")) or as_nodes(self.document.get("servers"))
        summary = found.get("summary") or found.get("description") or found.get("operationId") or f"{method} {path}"
        return Operation(
            id=_id(method, path, found),
            method=method.upper(),
            path=path,
            summary=one_line(str(summary), 200),
            server=as_node(servers[0]) if servers else {},
            servers=len(servers),
            security=_ways(found.get("security", self.document.get("security"))),
            parameters=tuple(parameters.values()),
            body_required=is_true(body.get("required")),
            bodies={media: as_node(as_node(content).get("schema")) for media, content in as_node(body.get("content")).items()},
            responses={status: as_node(self.resolved(one)) for status, one in responses},
        )

    def _parameter(self, node: JsonValue) -> Parameter | None:
        found = as_node(self.resolved(node))
        name, place = found.get("name"), found.get("in")
        if not isinstance(name, str) or not isinstance(place, str) or place not in ("path", "query", "header"):
            return None
        return Parameter(name, place, place == "path" or is_true(found.get("required")), as_node(found.get("schema")))


def is_true(value: JsonValue) -> bool:
    """Whether a flag is set; documents write it as Python does, too."""
    return value is True or value in ("True", "TRUE")


def as_node(value: JsonValue) -> Node:
    """The value if it is a map, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_nodes(value: JsonValue) -> list[JsonValue]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _id(method: str, path: str, operation: Node) -> str:
    return str(operation.get("operationId") or f"{method.upper()} {path}")


def _ways(security: JsonValue) -> tuple[tuple[str, ...], ...] | None:
    return None if security is None else tuple(tuple(as_node(one)) for one in as_nodes(security)[:MAX_LISTED])
