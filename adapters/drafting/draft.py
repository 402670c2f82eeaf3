"""The draft: what was read out of an OpenAPI document, put together as a contract of version 0.

The meaning of an answer is a person's to say wherever the document's status or word alone would decide what is sent or believed next.
"""

import re
from dataclasses import dataclass
from typing import Final

from adapters.contract_files import BOUNDS
from adapters.drafting import reading
from adapters.drafting.asking import Asked, Requests, asked_by, literal, requests_of
from adapters.drafting.connecting import auth_of, base_of, credential_of
from adapters.drafting.openapi import Node, OpenApi, Operation
from adapters.drafting.schemas import expression, properties
from adapters.drafting.states import states_of, taken_for_state, wanted_status
from adapters.drafting.text import Said, Section, Tree, Written, hole, written
from adapters.strict_yaml import read_yaml
from domain.errors import BadContract, BadInput

_REFUSED: Final = ("400", "403", "404", "405", "413", "415")
_UNCLEAR: Final = {
    "409": "in_flight (ask again), exists (an earlier sending made it) or rejected (nothing was executed)",
    "422": "rejected (nothing was executed) or failed (it ran and failed)",
}
_CANCEL: Final = "already_terminal (read the status), not_yet (again later) or refused"
_NOT_THERE: Final = "not_ready (again later), gone or rejected"
_NEXT: Final = "what {more} of the next page is, as body.next or headers.x_next; or next_url or more instead; or take {kind} away"
_FIRST_LIST: Final = "the first list in the answer"
_FORMATS: Final = (
    ("jsonl", re.compile(r"(?i).*(ndjson|jsonl|json-?lines).*")),
    ("json", re.compile(r"(?i)[a-z]+/([a-z0-9.+-]*\+)?json(;.*)?")),
    ("csv", re.compile(r"(?i)text/csv(;.*)?")),
    ("text", re.compile(r"(?i)text/.*|.*json-seq.*")),
)
_HEAD: Final = (
    "A draft, read out of {source}. What stands there without a comment is what the document says; a comment says what it only suggests. "
    '"?" is for you to say, and `contracts check` names each. Compare the meaning of every answer with the provider\'s own pages.'
)
_PARTS: Final = ("method", "path", "query", "headers", "json", "form", "multipart", "file")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The operations that make one contract."""

    name: str
    create: Operation
    status: Operation
    cancel: Operation | None = None
    result: Operation | None = None
    listing: Operation | None = None

    @property
    def others(self) -> tuple[Operation, ...]:
        """All but the create."""
        return tuple(one for one in (self.status, self.cancel, self.result, self.listing) if one)


def draft(api: OpenApi, chosen: Chosen) -> Written:
    """The contract as YAML text. Raises BadInput if a contract could not hold it."""
    asked = asked_by(chosen.create)
    requests = requests_of(asked, chosen.status)
    target, base = base_of(chosen.create)
    job = _job(chosen, requests)
    files: dict[str, Tree] = {"files": asked.files} if asked.files else {}
    connection: dict[str, Tree] = {"http": {"base": base, "auth": auth_of(api, chosen.create, credential_of(chosen.name))}}
    found = written(
        [
            Section(_head(api, chosen, target), _said_above(api)),
            Section({"input": asked.input, **files}, _left_out(asked)),
            Section({"effect": _effect(chosen, requests)}),
            Section({**connection, **_errors(chosen.create)}, _elsewhere(chosen)),
            Section({"create": _create(chosen.create, requests, job)}),
            Section({"observe": _observe(chosen, requests)}, taken_for_state(chosen.status)),
            Section({"cancel": _cancel(chosen.cancel, requests)}),
            Section({"collect": _collect(chosen, requests)}),
            Section({"reconcile": _reconcile(chosen.listing, requests, job)}),
        ]
    )
    _check_size(found)
    return found


def _check_size(found: Written) -> None:
    """Nothing is handed out that could not be read again."""
    try:
        read_yaml(found.text.encode("utf-8"), "the draft", BOUNDS)
    except BadContract as error:
        raise BadInput(f"these operations make more than a contract can hold: {error.findings[0].expected}") from None


def _said_above(api: OpenApi) -> str:
    said = _HEAD.format(source=api.title or "an OpenAPI document")
    outside = list(api.outside)
    if outside:
        more = f" and {len(outside) - 5} more" if len(outside) > 5 else ""
        said += f"\nReferences that lead nowhere in the document, and what they mean is left open here: {', '.join(outside[:5])}{more}."
    return said


def _left_out(asked: Asked) -> str:
    if not asked.left_out:
        return ""
    more = f" and {len(asked.left_out) - 12} more" if len(asked.left_out) > 12 else ""
    return f"Optional in the document, and left out here: {', '.join(asked.left_out[:12])}{more}."


def _elsewhere(chosen: Chosen) -> str:
    """Operations that the document serves at another address than the create."""
    others = dict.fromkeys(one.id for one in chosen.others if one.server.get("url") != chosen.create.server.get("url"))
    return f"The document gives another server for {', '.join(others)}: list it under hosts, and name it as host there." if others else ""


def _head(api: OpenApi, chosen: Chosen, target: dict[str, Tree]) -> dict[str, Tree]:
    provider: dict[str, Tree] = {
        "name": chosen.name.split(".")[0],
        "api_version": Said(api.api_version, "the document's own version") if api.api_version else hole("as the provider writes it"),
        "sources": [hole("addresses of the provider's own pages")],
        "verified_on": hole("the day on which you compared this with them, as 2026-01-31"),
    }
    head: dict[str, Tree] = {
        "contract": chosen.name,
        "version": Said(0, "0 is a draft: it runs only where settings allow drafts"),
        "about": chosen.create.summary,
        "provider": provider,
    }
    return head | ({"target": target} if target else {})


def _effect(chosen: Chosen, requests: Requests) -> dict[str, Tree]:
    path = requests.creating(chosen.create)["path"]
    prefix = chosen.name.split(".")[0]
    return {
        "class": hole("read, external_write, money or destructive: the gravest that the input can bring about"),
        "resource": Said(f"{prefix}{path}", "what is touched: by the path alone")
        if isinstance(path, str)
        else hole("what is touched, as account/${input.NAME}"),
        "summary": Said(literal(chosen.create.summary), "what an approver reads: put in what matters of the input, as ${input.NAME}"),
        "cost": Said("unknown", "or {minor, currency}; unknown is never judged as free"),
        "after_cancel": hole("what stays when a job was cancelled"),
    }


def _errors(create: Operation) -> dict[str, Tree]:
    refused = [int(code) for code in _REFUSED if code in create.responses]
    answers: list[Tree] = []
    if "429" in create.responses:
        answers.append({"when": {"status": 429}, "is": Said("throttled", "by the status alone; claims that nothing was executed")})
    if "401" in create.responses:
        answers.append({"when": {"status": 401}, "is": Said("unauthorized", "by the status alone; claims that nothing was executed")})
    if refused:
        claim = "by the status alone; claims that nothing was executed, and never will be"
        answers.append({"when": {"status": refused if len(refused) > 1 else refused[0]}, "is": Said("rejected", claim)})
    found: dict[str, Tree] = {**reading.words_of_errors(create), **({"answers": answers} if answers else {})}
    return {"errors": found} if found else {}


def _job(chosen: Chosen, requests: Requests) -> Said:
    """Where the create's answer names the job; the caller may have named it in the path."""
    if requests.job is None:
        named = [name for name in re.findall(r"\{([^{}]+)\}", chosen.create.path) if name in requests.asked.sent]
        if named and chosen.create.method == "PUT":
            said = "the caller names the job: with ${token} in its place in the path the create can be repeated"
            return Said(expression("input", named[-1]), said)
    found = reading.job_id(chosen.create, requests.job)
    return found or hole("where the answer has the job's id, as body.id or last_segment(headers.location)")


def _create(create: Operation, requests: Requests, job: Said) -> dict[str, Tree]:
    request, token = _with_token(create, requests)
    answers: list[Tree] = [_accepted(create, code) for code in create.good or ("2xx",)]
    answers += [
        {"when": {"status": int(code)}, "is": hole(words + create.described(code))}
        for code, words in _UNCLEAR.items()
        if code in create.responses
    ]
    return {"request": request, "token": token, "answers": answers, "job": {"id": job}}


def _accepted(create: Operation, code: str) -> Tree:
    said = create.described(code)
    if len(create.good) != 1 and code in ("200", "2xx"):
        return {"when": {"status": wanted_status(code)}, "is": hole(f"accepted, or completed: the result is there at once{said}")}
    return {
        "when": {"status": wanted_status(code)},
        "is": Said("accepted", f"by the status alone; completed, if the result is in it{said}"),
    }


def _with_token(create: Operation, requests: Requests) -> tuple[dict[str, Tree], Tree]:
    """The request with its idempotency key, and what is known of that key."""
    request, named, field = requests.creating(create), reading.token_parameter(create), requests.asked.token_field
    if named is None and field is None:
        return request, Said("none", "the document names no idempotency key: a lost answer can then only be looked up")
    if named is None:
        return request, _token(*field) if field else None
    place = "headers" if named.place == "header" else "query"
    sent = request.get(place)
    others: dict[str, Tree] = dict(sent) if isinstance(sent, dict) else {}
    request |= {place: {**others, named.name: "${token}"}}
    return {part: request[part] for part in _PARTS if part in request}, _token(named.name, named.schema)


def _token(name: str, schema: Node) -> Tree:
    """A key of that name: whether a second sending is harmless, and for how long, is for the provider's pages to say."""
    longest = schema.get("maxLength")
    short = isinstance(longest, int) and longest < 36
    window = f"how long {name} makes a second sending harmless, as 24h; or unstated. If it is only a trace: token none"
    return {"format": hole(f"hex or text, with max: {longest}") if short else "uuid", "window": hole(window)}


def _observe(chosen: Chosen, requests: Requests) -> dict[str, Tree]:
    progress = reading.progress(chosen.status)
    return {
        "request": requests.asking(chosen.status),
        "states": states_of(chosen.status, cancels=chosen.cancel is not None),
        **({"progress": {"percent": progress}} if progress else {}),
    }


def _cancel(cancel: Operation | None, requests: Requests) -> Tree:
    if cancel is None:
        return Said("none", "no operation was named for it (--cancel)")
    taken = Said("acknowledged", "by the status alone; only a state of observe confirms a cancel")
    answers: list[Tree] = [{"when": {"status": wanted_status(code)}, "is": taken} for code in cancel.good or ("2xx",)]
    answers += [
        {"when": {"status": int(code)}, "is": hole(_CANCEL + cancel.described(code))} for code in ("404", "409") if code in cancel.responses
    ]
    removes = Said(True, "a DELETE may remove a finished job: say false if it never does")
    destroys: dict[str, Tree] = {"destroys_finished_jobs": removes} if cancel.method == "DELETE" else {}
    return {"request": requests.asking(cancel), "answers": answers, **destroys}


def _collect(chosen: Chosen, requests: Requests) -> Tree:
    result = chosen.result
    if result is None:
        return hole("none, or {from: {inline: observed.body.NAME}, format: json}, or a request (--result)")
    if (result.method, result.path) == (chosen.status.method, chosen.status.path):
        return {"from": {"inline": hole("where the status answer has the result, as observed.body.result")}, "format": _format(result)}
    answers: list[Tree] = [
        {"when": {"status": int(code)}, "is": hole(_NOT_THERE + result.described(code))}
        for code in ("202", "404", "409", "410", "425")
        if code in result.responses
    ]
    request, format, pages = requests.asking(result), _format(result), dict[str, Tree]()
    if more := reading.paging(result):
        # Without it the first page would be taken for the whole result.
        request, pages = _for_a_page(request, more), {"next": hole(_NEXT.format(more=more, kind="pages"))}
        if format.value == "json":
            found = reading.list_of(result)
            pages = {"items": Said(found[0], _FIRST_LIST) if found else hole("the list in a page, as body.rows"), **pages}
            format = Said("jsonl", "one line for each item of the pages")
    source: dict[str, Tree] = {"request": request, **({"pages": pages} if pages else {}), **({"answers": answers} if answers else {})}
    return {"from": source, "format": format}


def _for_a_page(request: dict[str, Tree], more: str) -> dict[str, Tree]:
    """A request that hands on what the page before said; of the first page it is left out."""
    query = request.get("query")
    asking = request | {"query": {**(query if isinstance(query, dict) else {}), more: Said("${page.next}", reading.BY_NAME)}}
    return {part: asking[part] for part in _PARTS if part in asking}


def _format(result: Operation) -> Said:
    media = next((name for code in result.good for name in result.media_of(code)), "")
    known = next((kind for kind, fits in _FORMATS if fits.fullmatch(media)), None)
    if known:
        return Said(known, f"by the media type {media}")
    return Said("binary", f"{media}; say under verify what can be checked") if media else hole("json, jsonl, csv, text or binary")


def _reconcile(listing: Operation | None, requests: Requests, job: Said) -> Tree:
    if listing is None:
        return hole("none, or how a job is found whose create was not answered (--list)")
    found, more = reading.list_of(listing), reading.paging(listing)
    pages: dict[str, Tree] = {
        "items": Said(found[0], _FIRST_LIST) if found else hole("the list of jobs, as body.items"),
        **({"next": hole(_NEXT.format(more=more, kind="it"))} if more else {}),
    }
    return [
        {
            "by": "list",
            "request": _for_a_page(requests.listing(listing), more) if more else requests.listing(listing),
            "pages": pages,
            "match": hole("what of an item shows that it is ours, as {item.metadata.ref: '${mark}'}"),
            "job": {"id": _id_of_item(found[1] if found else {}, job)},
            "strength": hole("exact (only ours can match), or heuristic (a human chooses)"),
        }
    ]


def _id_of_item(item: Node, job: Said) -> Said:
    """An item's id, where it is called as in the create's answer."""
    last = re.fullmatch(r"body\.(?:.*\.)?([A-Za-z0-9_]+)", str(job.value))
    same = last is not None and last[1] in properties(item)
    return Said(f"item.{last[1]}", "called as in the create's answer") if last and same else hole("as item.id")
