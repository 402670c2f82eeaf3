"""What is sent: the input that a create's parameters and body ask for, and the requests that are made of it.

* What must be sent is sent: from the input, as the job's id, as the one value that the document allows, or as a hole. What may be left
  out and is no part of the body is left out, and the draft says so.
* Text of the document in a template is literal: it makes no holes of the template.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from adapters.drafting import reading
from adapters.drafting.connecting import HEADER, VARIABLE
from adapters.drafting.openapi import Node, Operation, Parameter, as_node, as_nodes
from adapters.drafting.schemas import can_be_named, expression, has_alternatives, is_text, json_schema, kinds, properties, required, unnamed
from adapters.drafting.text import Said, Tree, hole, one_line
from domain.language.checks import OUR_HEADERS

CLOSED: Final = "ours: what is not named here can't be asked for"
TOGETHER: Final = "the document offers alternatives: their properties stand here together"
JOB: Final = "${job.id}"
_NOT_SET: Final = OUR_HEADERS | {"accept", "content-type", "user-agent"}  # OpenAPI has no parameters for these
_LITERAL: Final = re.compile(r"[A-Za-z0-9/._~!$&'()*+,;=:@%-]*")
_MEDIA: Final = re.compile(r"[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+")
_KINDS: Final = (
    ("json", re.compile(r"(?i)application/(.+\+)?json(;.*)?|\*/\*")),
    ("form", re.compile(r"(?i)application/x-www-form-urlencoded(;.*)?")),
    ("multipart", re.compile(r"(?i)multipart/form-data(;.*)?")),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a create asks for. `sent`: parameters that stand in the input; `body`: the key of the body and its value; `media`: how the
    document calls JSON, if not by its usual name."""

    sent: frozenset[str]
    input: dict[str, Tree]
    files: dict[str, Tree]
    body: dict[str, Tree]
    token_field: tuple[str, Node] | None
    left_out: tuple[str, ...]
    media: str | None = None


def asked_by(create: Operation) -> Asked:
    """What the parameters and the body of a create ask for."""
    inputs = [one for one in (*create.parameter("path"), *create.required("query")) if can_be_named(one.name) and _is_input(one)]
    kind, media, schema = _body(create.bodies)
    fields = properties(schema, writing=True) if kind != "file" else {}
    token = next(((name, as_node(part)) for name, part in fields.items() if reading.is_token(name) and is_text(as_node(part))), None)
    parts = {name: part for name, part in fields.items() if token is None or name != token[0]}
    files = {name: part for name, part in parts.items() if kind == "multipart" and _is_file(as_node(part))}
    plain = {name: part for name, part in parts.items() if name not in files}
    named: dict[str, Tree] = {one.name: json_schema(one.schema) for one in inputs}
    wanted = [one.name for one in inputs]
    if kind == "json" and not fields:
        return _of_unknown_body(create, (media, schema), named, wanted)
    named |= {name: json_schema(part) for name, part in plain.items()}
    wanted += sorted(required(schema) & plain.keys() - {*wanted}, key=list(plain).index)
    closed = Said(False, TOGETHER if has_alternatives(schema) else CLOSED)
    return Asked(
        frozenset(one.name for one in inputs),
        {"type": "object", **({"required": wanted} if wanted else {}), "additionalProperties": closed, "properties": named},
        {_file_name(name): _file(None) for name in files} if kind != "file" else {"content": _file(media)},
        _sent(kind, fields, token and token[0], {one.name for one in inputs}, files),
        token,
        (*_left_out(create), *(f"property {one_line(name, 60)}" for name in unnamed(schema))),
        _unusual(kind, media),
    )


def literal(text: str) -> str:
    """Text as a template that has no holes."""
    return text.replace("${", "$${")


def _unusual(kind: str | None, media: str) -> str | None:
    return media if kind == "json" and _MEDIA.fullmatch(media) and media.lower() != "application/json" else None


def _of_unknown_body(create: Operation, body: tuple[str, Node], named: dict[str, Tree], wanted: list[str]) -> Asked:
    """A body whose properties the document does not list is one value of the input."""
    media, schema = body
    name = next(name for name in ("body", "content", "payload", *map("body_{}".format, range(100))) if name not in named)
    made: dict[str, Tree] = {
        "type": "object",
        "required": [*wanted, *([name] if create.body_required else [])],
        "additionalProperties": Said(False, CLOSED),
        "properties": {**named, name: json_schema(schema)},
    }
    return Asked(frozenset(wanted), made, {}, {"json": f"${{input.{name}}}"}, None, _left_out(create), _unusual("json", media))


def _sent(kind: str | None, fields: Node, token: str | None, parameters: set[str], files: Collection[str]) -> dict[str, Tree]:
    if kind is None:
        return {}
    if kind == "file":
        return {"file": "content"}
    if kind == "json" and not parameters and not token:
        return {"json": "${input}"}
    return {kind: {name: "${token}" if name == token else _part(kind, name, as_node(fields[name]), parameters, files) for name in fields}}


def _part(kind: str, name: str, schema: Node, parameters: set[str], files: Collection[str]) -> Tree:
    """One field of a body."""
    value = f"${{{expression('input', name)}}}"
    if name in files:
        several = "array" in kinds(schema)
        return {"file": Said(_file_name(name), "the document takes a list of files: this sends one") if several else _file_name(name)}
    if name in parameters:
        return Said(value, "the parameter of this name is taken for the same")
    if kind == "multipart" and kinds(schema) & {"object", "array"}:
        return Said(value, f"{name}: only text can be sent here, and the document does not say how it is written")
    return value


def _body(bodies: dict[str, Node]) -> tuple[str | None, str, Node]:
    """The kind of body that is sent, its media type, and its schema: JSON before a form before parts before bytes."""
    for kind, media in _KINDS:
        for name, schema in bodies.items():
            if media.fullmatch(name):
                return kind, name, schema
    first = next(iter(bodies.items()), None)
    return ("file", *first) if first else (None, "", {})


def _file(media: str | None) -> Tree:
    known = media and _MEDIA.fullmatch(media)
    return {"media": media if known else hole("the media type of this file, as text/csv"), "max_bytes": hole("the largest, as 100MiB")}


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name if not name[:1].isdigit() else f"_{name}")[:64]


def _is_file(schema: Node) -> bool:
    return _is_binary(schema) or ("array" in kinds(schema) and _is_binary(as_node(schema.get("items"))))


def _is_binary(schema: Node) -> bool:
    """A file: in 3.0 by its format, in 3.1 by its media type, unless it is text in some encoding."""
    media = schema.get("contentMediaType")
    return schema.get("format") == "binary" or (isinstance(media, str) and "contentEncoding" not in schema)


def _is_input(parameter: Parameter) -> bool:
    """A parameter whose value the document does not give, and that is no idempotency key."""
    return parameter.place == "path" or (_constant(parameter.schema) is None and not reading.is_token(parameter.name))


def _left_out(create: Operation) -> tuple[str, ...]:
    optional = [
        one for one in create.parameters if not one.required and not reading.is_token(one.name) and one.name.lower() not in _NOT_SET
    ]
    return tuple(f"{one.place} {one_line(one.name, 60)}" for one in optional)


@dataclass(frozen=True, slots=True)
class Requests:
    """How operations are called: what of their parameters is known, and which one is the job's id."""

    asked: Asked
    job: str | None
    """How the status operation calls the job's id: a variable of its path, or a parameter of its query."""

    def creating(self, create: Operation) -> dict[str, Tree]:
        """The create's request, without a token."""
        request = self._parts(create, self._path(create, None), None)
        if self.asked.media:
            headers = request.get("headers")
            request["headers"] = {**(headers if isinstance(headers, dict) else {}), "Content-Type": self.asked.media}
        return request | self.asked.body

    def asking(self, operation: Operation) -> dict[str, Tree]:
        """A request about one job."""
        unknown = [name for name in VARIABLE.findall(operation.path) if name not in self.asked.sent]
        here = self.job if self.job in unknown else unknown[0] if len(unknown) == 1 else None
        in_query = None if unknown else reading.id_asked_for(_strange(self.asked, operation))
        return self._parts(operation, self._path(operation, here), in_query) | _other_body(operation)

    def listing(self, operation: Operation) -> dict[str, Tree]:
        """A request that is about no job in particular."""
        return self._parts(operation, self._path(operation, None), None) | _other_body(operation)

    def _path(self, operation: Operation, job: str | None) -> Tree:
        pieces = VARIABLE.split(operation.path)
        strange = [name for name in pieces[1::2] if name != job and name not in self.asked.sent]
        legible = operation.path.startswith("/") and all(_LITERAL.fullmatch(part) and not part.endswith("$") for part in pieces[::2])
        if strange or not legible:
            what = f", where {' and '.join(strange)} has to be said" if strange else ", which is no plain path"
            return hole(f"the document: {one_line(operation.path)}{what}")
        filled = [f"${{{'job.id' if name == job else expression('input', name)}}}" for name in pieces[1::2]]
        path = "".join(part for pair in zip(map(literal, pieces[::2]), [*filled, ""], strict=True) for part in pair)
        renamed = job is not None and self.job is not None and job != self.job
        return Said(path, f"{one_line(str(job), 60)} is taken for the job's id") if renamed else path

    def _parts(self, operation: Operation, path: Tree, job: str | None) -> dict[str, Tree]:
        query: dict[str, Tree] = {
            one.name: Said(JOB, reading.BY_NAME) if one.name == job else self._value(one)
            for one in operation.required("query")
            if can_be_named(one.name)
        }
        headers: dict[str, Tree] = {
            one.name: _given(one, "header")
            for one in operation.required("header")
            if HEADER.fullmatch(one.name) and one.name.lower() not in _NOT_SET
        }
        return {
            "method": operation.method,
            "path": path,
            **({"query": query} if query else {}),
            **({"headers": headers} if headers else {}),
        }

    def _value(self, parameter: Parameter) -> Tree:
        if parameter.name in self.asked.sent:
            return f"${{{expression('input', parameter.name)}}}"
        return _given(parameter, "parameter")


def requests_of(asked: Asked, status: Operation) -> Requests:
    """How jobs are called: by the last variable of the status operation's path that the input does not know, or in its query."""
    unknown = [name for name in VARIABLE.findall(status.path) if name not in asked.sent]
    return Requests(asked, unknown[-1] if unknown else reading.id_asked_for(_strange(asked, status)))


def _strange(asked: Asked, operation: Operation) -> list[Parameter]:
    """Parameters of the query whose values nothing gives."""
    return [one for one in operation.required("query") if one.name not in asked.sent and _constant(one.schema) is None]


def _other_body(operation: Operation) -> dict[str, Tree]:
    """The body of another operation than the create, if it must have one: nothing tells which of it is what."""
    kind, _, schema = _body(operation.bodies)
    names = sorted(required(schema))
    if kind is None or not (operation.body_required or names):
        return {}
    said = f"with {', '.join(names[:12])}" if names else f"with {_some(properties(schema))}" if properties(schema) else "of its own"
    return {"json" if kind == "file" else kind: hole(f"the document asks for a body {said}")}


def _some(names: Iterable[str]) -> str:
    return ", ".join([*names][:12])


def _constant(schema: Node) -> Said | None:
    """The value that a parameter must have, where the document allows just one."""
    words = as_nodes(schema.get("enum"))
    return _said(words[0] if len(words) == 1 else schema.get("const"), "the only value that the document allows")


def _given(parameter: Parameter, what: str) -> Said:
    """The value of a parameter that must be sent and is not of the input."""
    known = _constant(parameter.schema) or _said(parameter.schema.get("default"), "the document's default")
    if known:
        return Said(known.value, f"{parameter.name}: {known.remark}")
    return hole(f"{parameter.name}: the document requires this {what}: a text, or ${{input.NAME}}")


def _said(value: JsonValue, remark: str) -> Said | None:
    match value:
        case bool():
            return Said("true" if value else "false", remark)
        case str() | int() if value != "" and len(str(value)) <= 200 and str(value).isprintable():
            return Said(literal(str(value)), remark)
        case _:
            return None
