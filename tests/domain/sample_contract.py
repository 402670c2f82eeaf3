"""A small contract that tests change key by key."""

import copy
from collections.abc import Callable
from typing import Any

from domain.contract import Contract
from domain.errors import BadContract
from domain.exchange import Answer
from domain.language.loading import parse_contract

SAMPLE: dict[str, Any] = {
    "contract": "sample.jobs.create",
    "version": 1,
    "provider": {"name": "sample", "api_version": "1", "sources": ["https://docs.sample.example"], "verified_on": "2026-11-30"},
    "input": {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "note": {"type": "string"}, "nested": {"type": "object"}},
    },
    "effect": {"class": "external_write", "resource": "job/${input.name}", "summary": "Make ${input.name}"},
    "http": {"base": "https://api.sample.example", "auth": {"bearer": "sample"}},
    "errors": {"code": "body.code", "message": "body.message", "request_id": "headers.x_request_id"},
    "create": {
        "request": {"method": "POST", "path": "/jobs", "headers": {"Idempotency-Key": "${token}"}, "json": "${input}"},
        "token": {"format": "uuid", "window": "1d"},
        "answers": [{"when": {"status": 202}, "is": "accepted"}, {"when": {"status": 429}, "is": "throttled"}],
        "job": {"id": "body.id"},
    },
    "observe": {
        "request": {"method": "GET", "path": "/jobs/${job.id}"},
        "states": [
            {"when": {"body.state": "running"}, "is": "running"},
            {"when": {"body.state": "done"}, "is": "succeeded"},
            {"when": {"body.state": "failed"}, "is": "failed"},
            {"when": {"body.state": "stopped"}, "is": "cancelled"},
        ],
    },
    "cancel": {
        "request": {"method": "DELETE", "path": "/jobs/${job.id}"},
        "answers": [{"when": {"status": "2xx"}, "is": "acknowledged"}],
    },
    "collect": {"from": {"request": {"method": "GET", "path": "/jobs/${job.id}/result"}}, "format": "json"},
    "reconcile": "none",
}

JSON_TYPE = (("content-type", "application/json"),)


def changed(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    """A change that sets a dotted path; `...` as the value deletes it."""

    def change(document: dict[str, Any]) -> None:
        *above, last = path.split(".")
        node: Any = document
        for part in above:
            node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
        key: Any = int(last) if isinstance(node, list) else last
        if value is ...:
            del node[key]
        else:
            node[key] = value

    return change


def document(**changes: object) -> dict[str, Any]:
    """The sample with changes; `__` in a name stands for a dot."""
    made = copy.deepcopy(SAMPLE)
    for name, value in changes.items():
        changed(name.replace("__", "."), value)(made)
    return made


def sample(**changes: object) -> Contract:
    """The sample contract with changes."""
    return parse_contract(document(**changes), file="sample.yaml", positions={})


def problems(**changes: object) -> list[tuple[str, str]]:
    """What is wrong with the changed sample: keys and what was expected."""
    try:
        sample(**changes)
    except BadContract as error:
        return [(finding.key, finding.expected) for finding in error.findings]
    return []


def answer(status: int, body: bytes = b"", headers: tuple[tuple[str, str], ...] = JSON_TYPE, **fault: Any) -> Answer:
    """An answer, of JSON unless it says otherwise."""
    return Answer(status, headers, body, **fault)
