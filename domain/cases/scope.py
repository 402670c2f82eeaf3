"""What a case knows: the roots of its call, the answer it gives, and the bytes of what it sends.

What only a running operation knows (mark, token, ids, times) is made up here, the same in every run; a story brings its own.
"""

import base64
import binascii
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import JsonValue

from domain.bodies import headers_root
from domain.cases.matching import Arrived
from domain.cases.models import Ended, Given, Headers, Reply
from domain.contract import Contract
from domain.errors import BadInput, RenderError
from domain.evidence import FileFacts, instant_text
from domain.exchange import Answer, Request, StoredPart
from domain.files import files_root, format_of, made_from
from domain.fingerprint import sha256_hex
from domain.language.expressions import Scope
from domain.language.templates import fill, fill_text, fill_tree
from domain.rendering import json_bytes
from domain.results.measuring import Measurer
from domain.steps import token_of

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
MARK: Final = "casemark00000000000000000000ab"
OPERATION: Final = "case-operation"
CALL_ID: Final = "case-operation.call"
_DIGEST: Final = b"cases".ljust(32, b"\0")
_TYPES: Final = {"json": "application/json", "text": "text/plain; charset=utf-8", "base64": "application/octet-stream"}


@dataclass(frozen=True, slots=True)
class Known:
    """What only a running operation knows."""

    mark: str = MARK
    token: str | None = None
    operation: str = OPERATION
    call_id: str = CALL_ID
    window: tuple[datetime, datetime] = (NOW - timedelta(minutes=1), NOW + timedelta(minutes=1))


def scope_of(contract: Contract, given: Given, known: Known | None = None) -> Scope:
    """All roots that a call may name. Raises BadInput for files that cannot be made, RenderError for a text that has no value."""
    token = contract.create.token
    known = known or Known()
    own = None
    if token:
        own = token_of(token.source, given.steps) if token.source else token.shaped(_DIGEST)
    first, last = (instant_text(moment) for moment in known.window)
    asked = Scope(input=given.input, target=dict(given.target))
    base = Scope(
        input=given.input,
        target=dict(given.target),
        files=files_root({name: _facts(contract, name, data) for name, data in contents(contract, given, asked).items()}),
        operation={"id": known.operation, "tenant": "cases", "principal": "cases", "reason": ""},
        trace_id="0" * 32,
        deadlines=contract.facts().deadlines_ms.root,
        mark=known.mark,
        token=known.token or own,
        token_sent_at=first,
        call_id=known.call_id,
        page=given.page.root,
        each=given.each,
        window={"from": first, "to": last},
        phase=given.phase,
        item=given.item,
    )
    knows: tuple[JsonValue, ...] = (dict(given.job), {name: dict(saved) for name, saved in given.steps.items()}, _observed(given.observed))
    job, steps, observed = (fill_tree(one, base) for one in knows)
    return replace(base, job=job or None, steps=steps, observed=observed)


def _observed(ended: Ended | None) -> JsonValue:
    return None if ended is None else {"call": ended.call, "status": ended.status, "headers": _root(ended.headers), "body": ended.body}


def contents(contract: Contract, given: Given, scope: Scope) -> dict[str, bytes]:
    """The files of an operation: given as text, or made of the input. Raises BadInput."""
    found = {name: text.encode() for name, text in given.files.items()}
    for name, file in contract.files.items():
        made = made_from(name, file, scope) if file.source and name not in found else None
        if made is not None:
            found[name] = made
    return found


def _facts(contract: Contract, name: str, data: bytes) -> FileFacts:
    media = contract.files[name].media if name in contract.files else "application/octet-stream"
    measurer = Measurer(format_of(media))
    measurer.feed(data)
    return FileFacts(sha256=sha256_hex(data), bytes=len(data), media=media, records=measurer.finish().records)


def answer_of(reply: Reply, scope: Scope) -> Answer:
    """An answer as the executor hands it on. Raises RenderError for a hole without a value, BadInput for what is no template."""
    written = [(name.lower(), fill_text(value, scope)) for name, values in reply.headers.items() for value in values]
    kind = reply.body
    if kind and not any(name == "content-type" for name, _ in written):
        written.append(("content-type", _TYPES[kind]))
    return Answer(reply.status, tuple(written), _bytes(reply, scope))


def _bytes(reply: Reply, scope: Scope) -> bytes:
    match reply.body:
        case "json":
            return json_bytes(_told(reply.json_body, scope))
        case "text":
            return fill_text(reply.text or "", scope).encode()
        case "base64":
            try:
                return base64.b64decode(reply.base64 or "", validate=True)
            except (binascii.Error, ValueError):
                raise BadInput("base64") from None
        case _:
            return b""


def _told(tree: JsonValue, scope: Scope) -> JsonValue:
    """A body with its holes filled. Nothing is left out of an answer: a hole without a value is a mistake of the case."""
    match tree:
        case str():
            value = fill(tree, scope)
            if value is None:
                raise RenderError(f"{tree} has no value in an answer")
            return value
        case list():
            return [_told(item, scope) for item in tree]
        case dict():
            return {name: _told(item, scope) for name, item in tree.items()}
        case _:
            return tree


def _root(headers: Headers) -> dict[str, JsonValue]:
    return headers_root(Answer(200, tuple((name, value) for name, values in headers.items() for value in values)))


def arrived(contract: Contract, request: Request, given: Given) -> Arrived:
    """A rendered request with the bytes of its files."""
    asked = Scope(input=given.input, target=dict(given.target))
    stored = {sha256_hex(data): data for data in contents(contract, given, asked).values()}
    parts = (stored.get(part.sha256, b"") if isinstance(part, StoredPart) else part for part in request.parts)
    return Arrived(request.method, request.url, request.headers, request.body or b"".join(parts))
