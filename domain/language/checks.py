"""What is wrong with a contract whose every part is well-formed: errors that nothing accepts.

* `ROOTS` says which roots each place knows, `MEMBERS` what a root with fixed members has.
* Where a root is known only if something else stands there (`each`, `counts`, `result`), the contract decides it: what would
  never have a value is an error, not a surprise at run time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from domain.bodies import header_root
from domain.contract import Contract
from domain.errors import BadInput
from domain.fingerprint import MIN_TOKEN_BITS, token_length
from domain.language.calls import Request
from domain.language.file_checks import check_files
from domain.language.input_schema import check_schema, has_path, is_required
from domain.language.item_checks import check_items
from domain.language.lookup_checks import check_lookups
from domain.language.output_checks import check_outputs
from domain.language.parts import entry_lists, requests
from domain.language.patterns import pattern
from domain.language.sensitive_checks import check_sensitive
from domain.language.stages import Counts, Token
from domain.language.step_checks import check_steps
from domain.language.templates import compile_template
from domain.language.texts import Path, Text, fits, texts

_ASKED: Final = frozenset({"input", "files", "target"})
_GENERAL: Final = _ASKED | {"operation", "trace_id", "deadlines", "mark", "call", "steps"}
_ANSWER: Final = frozenset({"status", "headers", "body", "text"})
_CREATE: Final = _GENERAL | {"token", "token_sent_at", "callback"}
_JOB: Final = _GENERAL | {"job"}
_ENDED: Final = _JOB | {"observed"}
_COLLECT: Final = _ENDED | {"each"}


def _steps_at(place: str, roots: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What the steps below a place know: a page while one is asked for, the whole list once the last was read."""
    yield f"{place}.before.*.request", roots | {"page"}
    yield f"{place}.before.*.undo", roots
    yield f"{place}.before.*.save", roots | _ANSWER | {"items"}
    yield f"{place}.before", roots | _ANSWER | {"page"}


def _output_at(place: str) -> Iterator[tuple[str, frozenset[str]]]:
    """What one output knows; its element while it is fetched, not while it is decided which elements there are."""
    yield from _steps_at(place, _COLLECT)
    yield f"{place}.when", _ENDED
    yield f"{place}.each", _ENDED
    yield f"{place}.verify", _COLLECT | {"status", "headers"}
    yield f"{place}.from.*.request", _COLLECT | {"page"}
    yield f"{place}.from.*.answers", _COLLECT | _ANSWER | {"page"}
    yield f"{place}.from.*.pages", _COLLECT | _ANSWER | {"page"}


ROOTS: Final = (
    ("files.*.from", frozenset({"input", "target"})),
    ("effect", _ASKED),
    ("http.base", frozenset({"target"})),
    ("http.auth.region", frozenset({"target"})),
    ("http.hosts.*.region", frozenset({"target"})),
    ("http.auth", frozenset({"secret"})),
    ("http.hosts", frozenset({"secret"})),
    ("http", _ANSWER),
    ("errors", _GENERAL | _ANSWER),
    *_steps_at("create", _CREATE),
    ("create.request", _CREATE),
    ("create.token.from", frozenset({"steps"})),
    ("create.compare", _JOB | _ANSWER),
    ("create", _CREATE | _ANSWER),
    *_steps_at("observe", _JOB),
    ("observe.request", _JOB),
    ("observe.states", _JOB | _ANSWER | {"phase"}),
    ("observe", _JOB | _ANSWER),
    *_steps_at("cancel.force", _JOB),
    *_steps_at("cancel", _JOB),
    ("cancel.force.request", _JOB),
    ("cancel.request", _JOB),
    ("cancel", _JOB | _ANSWER),
    ("collect.items.submitted.count", _ENDED),
    ("collect.items", _ENDED | {"item"}),
    ("collect.expect", _ENDED | {"counts", "outputs", "result"}),
    *_output_at("collect.outputs.*"),
    *_output_at("collect"),
    ("collect", _COLLECT),
    ("reconcile.*.request", _CREATE | {"window", "page"}),
    ("reconcile", _CREATE | _ANSWER | {"window", "page", "item"}),
    ("webhook.signed", frozenset({"raw", "headers", "timestamp"})),
    ("webhook", _ANSWER | {"raw", "headers", "timestamp"}),
    ("record", _ANSWER),
)
"""The roots of each place; the first place that fits a path decides."""

MEMBERS: Final = {
    "operation": frozenset({"id", "tenant", "principal", "reason"}),
    "deadlines": frozenset({"create", "result", "cancel", "collect", "approval"}),
    "call": frozenset({"id"}),
    "callback": frozenset({"url"}),
    "observed": frozenset({"call", "status", "headers", "body"}),
    "page": frozenset({"next", "index", "number"}),
    "window": frozenset({"from", "to"}),
    "counts": frozenset(Counts.model_fields),
}

FACTS: Final = {
    "files": frozenset({"records", "bytes", "sha256", "media"}),
    "outputs": frozenset({"bytes", "records", "sha256"}),
}
"""What each member of a root has."""

OUR_HEADERS: Final = frozenset(
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "accept-encoding",
        "te",
        "upgrade",
    ]
)
WEBHOOK_ALONE: Final = "a request that reads the state: a job that a webhook alone would end is legal, not built yet"
_HEADERS: Final = (("headers",), ("observed", "headers"))
_HEADER: Final = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_PATH_TEXT: Final = pattern(r"[A-Za-z0-9/._~!$&'()*+,;=:@%-]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at one path of the file."""

    path: Path
    expected: str
    code: str = "invalid"
    remedy: str = ""


def check_contract(contract: Contract) -> Iterator[Problem]:
    """Every error of a whole contract."""
    found = tuple(texts(contract))
    yield from _check_input(contract)
    for text in found:
        yield from _check_text(contract, text)
    yield from _check_token(contract, found)
    yield from _check_order(contract)
    yield from _check_stages(contract)
    yield from (Problem(path, wanted) for path, wanted in check_lookups(contract))
    yield from (Problem(path, wanted) for path, wanted in check_items(contract))
    yield from (Problem(path, wanted) for path, wanted in check_steps(contract, found))
    yield from (Problem(path, wanted) for path, wanted in check_files(contract))
    yield from (Problem(path, wanted) for path, wanted in check_sensitive(contract))
    yield from (Problem(path, wanted) for path, wanted in check_outputs(contract))
    for path, request in requests(contract):
        yield from _check_request(contract, path, request)


def _check_input(contract: Contract) -> Iterator[Problem]:
    try:
        check_schema(contract.input)
    except BadInput as error:
        yield Problem(("input",), error.message)


def _check_text(contract: Contract, text: Text) -> Iterator[Problem]:
    known = _known(contract, text.path)
    for path in sorted(text.expression.paths):
        root, member = path[0], path[1] if len(path) > 1 else None
        if root not in known:
            yield Problem(text.path, f"{root} is not known here; known are {', '.join(sorted(known))}")
            continue
        wanted = _members(contract, root)
        if wanted is not None and member is not None and member not in wanted:
            yield Problem(text.path, f"{root} has no {member}; it has {', '.join(sorted(wanted)) or 'nothing'}")
        elif root in FACTS and len(path) > 2 and path[2] not in FACTS[root]:
            yield Problem(text.path, f"{root}.{member} has no {path[2]}; it has {', '.join(sorted(FACTS[root]))}")
        if root == "input" and not has_path(contract.input, path[1:]):
            yield Problem(text.path, f"the input schema has no {'.'.join(path)}")
        if strange := _strange_header(path):
            here, name = strange
            yield Problem(text.path, f"{here}.{header_root(name)}, not {name}: header names are lower case with _")
    yield from _check_fallback(contract, text)


def _strange_header(path: tuple[str, ...]) -> tuple[str, str] | None:
    """A header that no answer has under this name, and where it would be."""
    here = next((root for root in _HEADERS if path[: len(root)] == root and len(path) > len(root)), None)
    return None if here is None or header_root(name := path[len(here)]) == name else (".".join(here), name)


def _known(contract: Contract, path: Path) -> frozenset[str]:
    """The roots of a place, without those that would never have a value in this contract."""
    known = next((roots for place, roots in ROOTS if fits(place, path)), frozenset[str]())
    collect = contract.collect
    if collect is None:
        return known
    output = collect.outputs.get(str(path[2]), collect) if path[:2] == ("collect", "outputs") else collect
    never = {
        "each": not output.each,
        "result": len(collect.every) != 1 or any(one.each for one in collect.every.values()),
    }
    return known - {root for root, absent in never.items() if absent}


def _check_fallback(contract: Contract, text: Text) -> Iterator[Problem]:
    """Inside longer text an optional input would stop the request: the contract says what stands there instead."""
    path = text.expression.plain_path
    if text.template is None or text.template.one_hole or path is None or path[0] != "input":
        return
    if has_path(contract.input, path[1:]) and not is_required(contract.input, path[1:]):
        yield Problem(text.path, f"a fallback for the optional ${{{text.expression.text}}}, as in ${{{text.expression.text} || 'none'}}")


def _members(contract: Contract, root: str) -> Iterable[str] | None:
    """What a root has, or None where that is not fixed."""
    match root:
        case "target":
            return contract.target.keys()
        case "files":
            return contract.files.keys()
        case "outputs":
            return contract.collect.every.keys() if contract.collect else ()
        case "job":
            ways = [job for job in (contract.create.job, *(lookup.job for lookup in contract.reconcile)) if job]
            return [name for name in contract.job_names if ways and all(name in job for job in ways)]
        case _:
            return MEMBERS.get(root)


def _check_token(contract: Contract, found: tuple[Text, ...]) -> Iterator[Problem]:
    token = contract.create.token
    used = [text for text in found if "token" in text.expression.roots and text.path[0] in ("create", "reconcile")]
    if token is None:
        yield from (Problem(text.path, "no ${token} where create.token is none") for text in used)
    elif not token.source and not any(text.path[:2] in _TOKEN_STANDS_IN for text in used):
        yield Problem(("create", "token"), "${token} somewhere in the request of create, or token: none")
    if token is not None and not token.source:
        yield from _check_shape(token)


_TOKEN_STANDS_IN: Final = (("create", "request"), ("create", "job"), ("create", "before"))
_LETTERS: Final = {"hex": 16, "text": 36}


def _check_shape(token: Token) -> Iterator[Problem]:
    if token.format == "uuid":
        if token.min or token.max or token.charset:
            yield Problem(("create", "token"), "no min, max or charset beside format uuid")
        return
    letters = len(set(token.charset)) if token.charset else _LETTERS[token.format]
    try:
        token_length(letters, min=token.min, max=token.max)
    except (BadInput, ValueError):
        yield Problem(("create", "token"), f"letters and length enough for {MIN_TOKEN_BITS} bits")


def _check_order(contract: Contract) -> Iterator[Problem]:
    """An entry after one without `when`, or after an equal one, is never reached."""
    for path, entries in entry_lists(contract):
        earlier: list[object] = []
        for index, entry in enumerate(entries):
            if None in earlier or entry.when in earlier:
                yield Problem((*path, index), "an entry that can be reached; an earlier one takes all that this could")
            earlier.append(entry.when)


def _check_stages(contract: Contract) -> Iterator[Problem]:
    words = {answer.word for answer in contract.create.answers}
    named = bool(words & {"accepted", "exists"})
    if named and not contract.create.job:
        yield Problem(("create",), "a job with an id, for an answer that is accepted")
    if contract.observe is None and words & {"accepted", "exists", "accepted_unnamed"}:
        needs = WEBHOOK_ALONE if contract.webhook else "observe: none needs a webhook where the create can be accepted"
        yield Problem(("observe",), needs, "not-built" if contract.webhook else "invalid")
    ends = {state.word for state in contract.observe.states} if contract.observe else set[str]()
    if ends & {"partial", "ended"} and contract.collect and contract.collect.partial is None:
        yield Problem(("collect",), "partial, because a state of observe can be partial")


def _check_request(contract: Contract, path: Path, request: Request) -> Iterator[Problem]:
    for name in request.headers:
        if not _HEADER.matches(name) or name.lower() in OUR_HEADERS:
            yield Problem((*path, "headers", name), "a header name that is not ours to set (credentials go under http.auth)")
    if request.host != "base" and request.host not in contract.http.hosts:
        yield Problem((*path, "host"), "base, or an origin that stands in http.hosts")
    if request.path is not None and not all(_PATH_TEXT.matches(part) for part in _literals(request.path)):
        yield Problem((*path, "path"), "a path without query, fragment, blanks or characters that need encoding")


def _literals(text: str) -> Iterator[str]:
    yield from (part for part in compile_template(text).parts if isinstance(part, str))
