"""The page that a provider's support reads first: what was asked of whom, what is known, what is not, and what we ask them.

Nothing on it needs another source to be understood, and nothing on it is a secret.
"""

import json
from collections.abc import Iterator, Sequence
from typing import cast

from adapters.showing.dossier import FAILED_ITEMS, MOST_ITEMS, Dossier
from adapters.showing.exchanges import Shown, bodies_of, outcome_words, read_words, request_ids
from adapters.showing.knowledge import known, unknown
from adapters.showing.markdown import bullets, code, numbered, plain, table
from adapters.showing.questions import happened, questions
from domain.evidence import instant_text
from domain.lifecycle import CHOICES, choices, flags_of, why_of

EXCHANGES_SHOWN = 60

VERIFY = """\
import hashlib, json

manifest = json.load(open("manifest.json"))
for name, file in manifest["files"].items():
    assert hashlib.sha256(open(name, "rb").read()).hexdigest() == file["sha256"], name
first = b"sakshi/stream/v1\\0" + manifest["ledger_id"].encode() + b"\\0" + manifest["operation"].encode()
prev = hashlib.sha256(first).hexdigest()
for line in open("chain.jsonl"):
    entry = json.loads(line)
    assert entry["prev"] == prev, entry["seq"]
    prev = hashlib.sha256(b"sakshi/entry/v1\\0" + bytes.fromhex(prev) + entry["raw"].encode()).hexdigest()
    assert entry["hash"] == prev, entry["seq"]
assert prev == manifest["head"]["hash"], "the end was cut"
print("whole")
"""


def readme(dossier: Dossier, faults: Sequence[str]) -> str:
    """The whole page."""
    opened = dossier.standing.opened
    title = code(opened.effect.get("summary") or opened.contract)
    parts = [
        f"# {title}",
        _head(dossier),
        *_warnings(dossier, faults),
        f"## What happened\n\n{happened(dossier)}{_why(dossier)}",
        f"## What we ask of you\n\n{numbered(questions(dossier))}",
        f"## How to find it\n\n{_identifiers(dossier)}",
        f"## What was asked\n\n{_asked(dossier)}",
        f"## Known\n\n{bullets(known(dossier))}",
        f"## Not known\n\n{bullets(unknown(dossier)) or 'Nothing that matters here.'}",
        *_candidates(dossier),
        *_choices(dossier),
        f"## Requests and answers\n\n{_exchanges(dossier)}",
        f"## Files\n\n{_files(dossier)}",
        f"## To check that this record is whole\n\nRun in this folder, with Python 3.9 or newer:\n\n```python\n{VERIFY}```\n\n{_HOW}",
    ]
    return "\n\n".join(parts) + "\n"


_HOW = (
    "Each entry's hash covers the hash before it and its own bytes (`raw`): a changed, dropped or inserted entry breaks the chain. "
    "That the last entries were not cut off shows only against a head that someone else kept."
)


def _head(dossier: Dossier) -> str:
    standing = dossier.standing
    rows = [
        ("operation", code(dossier.record.stream)),
        ("state", f"{code(standing.state)} since {instant_text(standing.state_since)}"),
        ("provider, API version", f"{code(dossier.contract.provider.name)}, {code(dossier.contract.provider.api_version)}"),
        ("written", f"{instant_text(dossier.made_at)} (all times are UTC)"),
    ]
    return f"{table(('', ''), rows)}\n\n{_WHO}"


_WHO = "*We* sent the requests that this page speaks of; *you* are the provider that they were sent to."


def _warnings(dossier: Dossier, faults: Sequence[str]) -> Iterator[str]:
    if dossier.fault is not None:
        yield f"**The record does not verify: {code(dossier.fault)}. Take nothing below as proven.**"
    if faults:
        yield f"**Not as recorded: {'; '.join(map(code, faults))}.**"


def _why(dossier: Dossier) -> str:
    standing = dossier.standing
    why = why_of(standing)
    flags = [f"Since {instant_text(flag.since)}: {code(flag.why)}." for flag in flags_of(standing)]
    return "".join(f"\n\n{line}" for line in [*([f"As recorded: {code(why)}."] if why else []), *flags])


def _identifiers(dossier: Dossier) -> str:
    opened = dossier.standing.opened
    lines = [f"Job id at your side: {code(dossier.job)}" if dossier.job else "Job id at your side: not known to us"]
    lines += [f"Your account: {code(opened.credential['account'])}"] if opened.credential.get("account") else []
    lines.append(f"Your address: {code(opened.origin)}")
    for one in dossier.sendings:
        token = f"idempotency token {code(one.token)}" if one.token else "no idempotency token"
        planted = f", our reference {code(one.mark)}" if one.mark else ""
        span = f"at {one.first}," if one.first == one.last else f"from {one.first} to {one.last}, each"
        when = f"prepared {span} sent within 5 s of that or not at all"
        lines.append(f"Create request, generation {one.generation}: {token}{planted}; {when}")
    bodies = dict.fromkeys(json.dumps(one["request_body"]) for one in dossier.of_call("create") if one["request_body"])
    for body in (cast("Shown", json.loads(one)) for one in bodies):
        lines.append(f"Body of the create request: {body['bytes']} bytes, SHA-256 {code(body['sha256'])}")
    header = dossier.contract.http.trace_header
    lines.append(f"Every request of ours carried the header {code(header)} with {code(opened.trace_id)}")
    ids = request_ids(dossier.exchanges)
    lines.append(f"Your request ids: {', '.join(map(code, ids[:20]))}" if ids else "Your request ids: no answer named one")
    if len(ids) > 20:
        lines[-1] += f" and {len(ids) - 20} more in `exchanges.json`"
    return bullets(lines)


def _asked(dossier: Dossier) -> str:
    opened, contract = dossier.standing.opened, dossier.contract
    effect = opened.effect
    request = contract.create.request
    rows = [
        ("effect", code(effect.get("summary") or "not described")),
        ("resource", code(effect.get("resource") or "not named")),
        *((f"field {code(name)}", code(value)) for name, value in cast("Shown", effect.get("fields") or {}).items()),
        ("class", code(effect.get("class"))),
        *((("cost", code(plain(effect["cost"]))),) if effect.get("cost") else ()),
        *((("amount", code(plain(effect["amount"]))),) if effect.get("amount") else ()),
        *((("recipient", code(plain(effect["recipient"]))),) if effect.get("recipient") else ()),
        ("as", f"{code(request.method)} {code(request.path or request.url or '')} at {code(opened.origin)}"),
        ("by contract", f"{code(opened.contract)} version {opened.version}, SHA-256 {code(opened.contract_digest)}"),
        ("read against", ", ".join(map(code, contract.provider.sources)) or "no source"),
        (
            "on behalf of",
            f"{code(opened.principal)} of {code(opened.tenant)}" + (f", because {code(opened.reason)}" if opened.reason else ""),
        ),
        ("asked at", instant_text(opened.at)),
    ]
    return table(("", ""), rows)


def _candidates(dossier: Dossier) -> Iterator[str]:
    found = dossier.standing.candidates
    if found:
        lines = [code(json.dumps(one, sort_keys=True)) for one in found]
        yield f"## Jobs that may be this one\n\nFound at your side by looking, none of them for certain:\n\n{bullets(lines)}"


def _choices(dossier: Dossier) -> Iterator[str]:
    offered = choices(dossier.standing, dossier.made_at)
    if offered:
        lines = [f"{CHOICES[choice]} (`{choice.replace('accept_', 'accept ')}`)" for choice in offered]
        wait = "Until somebody here chooses, we send nothing that has an effect. We can:"
        yield f"## What your answer lets us do\n\n{wait}\n\n{bullets(lines)}"


def _exchanges(dossier: Dossier) -> str:
    if not dossier.exchanges:
        return "None: nothing was sent."
    shown = _shown(dossier.exchanges)
    header = ("no.", "call", "began", "ms", "request", "outcome", "read as", "your request id", "answer's SHA-256")
    note = f"\n\n{len(dossier.exchanges) - len(shown)} more are in `exchanges.json`." if len(shown) < len(dossier.exchanges) else ""
    return table(header, [_line(one) for one in shown]) + note


def _shown(exchanges: list[Shown]) -> list[Shown]:
    """All; of very many, those that are no status read, and the first and last of those."""
    if len(exchanges) <= EXCHANGES_SHOWN:
        return exchanges
    reads = [one for one in exchanges if one["call"] == "status"]
    kept = {cast("int", one["number"]) for one in [*reads[:5], *reads[-5:]]}
    return [one for one in exchanges if one["call"] != "status" or one["number"] in kept][-EXCHANGES_SHOWN:]


def _line(one: Shown) -> list[str]:
    answer = cast("Shown | None", one["answer"])
    body = cast("Shown", answer["body"]) if answer else {}
    attempt = f" {one['generation']}.{one['attempt']}" if one["attempt"] else ""
    return [
        str(one["number"]),
        f"{one['call']}{attempt}",
        str(one["began"] or ""),
        "" if one["milliseconds"] is None else str(one["milliseconds"]),
        f"{code(one['method'])} {code(one['url'])}" if one["url"] else "",
        outcome_words(one),
        read_words(one),
        code(one["provider_request_id"]) if one["provider_request_id"] else "",
        code(str(body["sha256"])[:16]) if body.get("sha256") else "",
    ]


def _list_of_items(dossier: Dossier) -> Iterator[str]:
    listed = dossier.standing.failed_items
    if listed is not None and listed.size <= MOST_ITEMS:
        yield f"`{FAILED_ITEMS}`: the {listed.records} items that did not succeed, one a line, with your words on each"
    elif listed is not None:
        yield f"not here: the list of {listed.records} items that did not succeed, of {listed.size} bytes"


def _files(dossier: Dossier) -> str:
    kept = {str(body["sha256"]) for body in bodies_of(dossier.exchanges) if body.get("file")}
    bodies = "not here: the contract keeps digests of answers, not their bodies"
    if kept:
        where = "`exchanges.json` says which answer each is, and what type it stated"
        bodies = f"{len(kept)} raw bodies of answers, each named by its SHA-256. {where}"
    lines = [
        "`timeline.md`: everything that happened, in order",
        "`exchanges.json`: each request and answer: times, addresses without their query, status, some headers, digests, your words",
        "`chain.jsonl`: the record itself, also of what was decided at our side, each entry with its hash",
        f"`bodies/`: {bodies}",
        *_list_of_items(dossier),
        "`manifest.json`: the SHA-256 of each file",
    ]
    return bullets(lines)
