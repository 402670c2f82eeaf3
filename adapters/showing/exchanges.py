"""Every exchange with the provider as its metadata: what was sent where and when, what came back, how it was read. No body, no secret."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from domain.chain import Entry
from domain.evidence import Json

CALLS = {
    "exchange": "create", "late": "create", "reading": "status", "cancel_answer": "cancel", "lookup": "lookup", "step": "step",
    "result": "collect",
}  # fmt: skip
"""The call that each kind of evidence is the outcome of."""

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "apigw-requestid", "x-correlation-id", "correlation-id", "x-trace-id", "cf-ray")
NO_ANSWER = {
    "timeout": "no answer in time",
    "broken": "the connection broke before an answer",
    "header_overflow": "the answer's header was too large to read",
    "lost": "our worker was gone before it had recorded an answer",
}
READ_AS = {
    "accepted": "accepted",
    "ambiguous": "not known whether carried out",
    "stuck": "a stored error, repeated",
    "unnamed": "accepted, no job named",
    "finished": "carried out at once",
    "in_flight": "still worked on",
    "violation": "a contradiction",
    "refused": "refused",
    "not_executed": "not carried out",
    "not_sent": "never left us",
    "open": "no outcome yet",
    "going": "goes on",
    "not_visible": "not shown yet",
    "held": "a state we do not know",
    "terminal": "ended",
    "gone": "no longer there",
    "failed": "no usable answer",
    "taken": "acknowledged",
    "read_again": "has ended already",
    "unsure": "not known whether taken",
    "again": "not this time",
    "found": "found",
    "candidates": "may be ours",
    "none": "none shown",
    "absent": "proof that there is none",
    "done": "done",
    "undone": "undone",
    "undo_again": "not undone this time",
    "leftover": "given up, left as it is",
    "verified": "as promised",
    "empty": "nothing to fetch",
    "invalid": "not as promised",
}
"""How an answer was read, in words."""
Shown = dict[str, Json]


def exchanges_of(entries: Sequence[Entry]) -> list[Shown]:
    """All exchanges in order, numbered from 1; those included that were recorded as about to be sent and never answered for.

    Steps ahead of a reading, a cancel or a collecting stand before it, each with its last page.
    """
    intents: dict[tuple[Json, Json], Entry] = {}
    steps: dict[tuple[Json, ...], list[Entry]] = {}
    cancel: Entry | None = None
    shown: list[Shown] = []
    for entry in entries:
        for seen in cast("list[Shown]", entry.body.get("before") or []):
            if "http" in seen:
                shown.append(_shown(len(shown) + 1, "step", entry, None, meaning=seen.get("word", "default"), body=seen))
        if entry.cause == "intent.create":
            intents[_attempt(entry)] = entry
        elif entry.cause in {"intent.step", "intent.undo"}:
            steps.setdefault(_step(entry, entry.body["meaning"]), []).append(entry)
        elif entry.cause == "intent.cancel":
            cancel = entry
        elif entry.kind in CALLS and not entry.body.get("of") and _is_exchange(entry):
            intent = intents.pop(_attempt(entry), None) if CALLS[entry.kind] == "create" else None
            if entry.kind == "cancel_answer":
                intent, cancel = cancel, None
            if entry.kind == "step":
                left = steps.get(_step(entry, "undo" if entry.body["meaning"] in UNDOING else "step"))
                intent = left.pop() if left else None  # the newest: an older one died
            shown.append(_shown(len(shown) + 1, CALLS[entry.kind], entry, intent, meaning=entry.body.get("meaning")))
    asked = [*intents.values(), *(one for left in steps.values() for one in left), *([] if cancel is None else [cancel])]
    for intent in sorted(asked, key=lambda one: one.seq):  # it may be on its way at this moment
        shown.append(_shown(len(shown) + 1, str(intent.body["meaning"]), intent, intent, meaning="open"))
    return shown


def request_ids(shown: Iterable[Shown]) -> list[Json]:
    """The provider's own ids of requests, each once."""
    return list(dict.fromkeys(one["provider_request_id"] for one in shown if one["provider_request_id"]))


def outcome_words(one: Shown) -> str:
    """What an exchange came to, on one line of ours."""
    answer = cast("Shown | None", one["answer"])
    if answer is not None:
        fault = f", and its body was not whole ({answer['fault']})" if answer["fault"] else ""
        return f"HTTP {answer['status']}{fault}"
    if not one["sent"]:
        return "not sent"
    return NO_ANSWER.get(str(one["no_answer"]), "no answer")


def read_words(one: Shown) -> str:
    """How an exchange was read."""
    meaning = str(cast("Shown", one["read_as"])["meaning"])
    return READ_AS.get(meaning, meaning)


def _is_exchange(entry: Entry) -> bool:
    return "http" in entry.body or entry.body.get("recovered") == "lost"


UNDOING = ("undone", "undo_again", "leftover")
"""Of a step: what came of taking back what it left."""


def _step(entry: Entry, what: Json) -> tuple[Json, ...]:
    return (what, entry.body.get("generation", 1), entry.body.get("step"))


def _attempt(entry: Entry) -> tuple[Json, Json]:
    return (entry.body.get("generation", 1), entry.body.get("attempt", 1))


def _shown(number: int, call: str, entry: Entry, intent: Entry | None, *, meaning: Json, body: Mapping[str, Json] | None = None) -> Shown:
    body = entry.body if body is None else body
    http = cast("Shown", body.get("http") or {})
    words = cast("Shown", body.get("words") or {})
    asked = cast("Shown", (intent.body.get("request") if intent else None) or {})
    create = call == "create"
    return {
        "number": number,
        "entry": entry.seq,
        "call": call,
        "generation": body.get("generation", 1) if create else None,
        "attempt": body.get("attempt", 1) if create else None,
        "intent_entry": intent.seq if intent else None,
        "began": http.get("began") or (intent.at if intent else None),
        "ended": http.get("ended"),
        "milliseconds": _span(http),
        "method": http.get("method") or asked.get("method"),
        "url": http.get("url") or asked.get("url"),
        "request_body": {"sha256": asked["body_sha256"], "bytes": asked["body_bytes"]} if asked else None,
        "sent": http.get("sent", True),
        "answer": _answer(http) if http.get("status") is not None else None,
        "no_answer": http.get("no_answer") or (None if http.get("status") is not None else "lost"),
        "read_as": {"meaning": meaning, "word": body.get("word", "default"), "job": body.get("job"), "state": body.get("remote_state")},
        "provider_words": words,
        "provider_request_id": words.get("request_id") or _request_id(cast("Mapping[str, Json]", http.get("headers") or {})),
    }


def _answer(http: Shown) -> Shown:
    headers = cast("Mapping[str, Json]", http.get("headers") or {})
    return {
        "status": http["status"],
        "fault": http.get("fault"),
        "headers": dict(headers),
        "body": {
            "sha256": http.get("body_sha256"),
            "bytes": http.get("body_bytes", 0),
            "stated_type": headers.get("content-type"),
            "kept": http.get("body_kept", False),
        },
    }


def bodies_of(shown: Iterable[Shown]) -> Iterator[Shown]:
    """The descriptions of all bodies that were kept."""
    for one in shown:
        answer = cast("Shown | None", one["answer"])
        if answer is not None and cast("Shown", answer["body"])["kept"]:
            yield cast("Shown", answer["body"])


def _span(http: Shown) -> int | None:
    if "began" not in http or "ended" not in http:
        return None
    span = datetime.fromisoformat(str(http["ended"])) - datetime.fromisoformat(str(http["began"]))
    return round(span.total_seconds() * 1000)


def _request_id(headers: Mapping[str, Json]) -> Json:
    named = next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), None)
    return named or next((value for name, value in headers.items() if name.endswith(("-request-id", "-trace-id"))), None)
