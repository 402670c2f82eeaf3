"""What is wrong with a contract whose every part is well-formed: errors that nothing accepts.

* `ROOTS` says which roots each place knows, `MEMBERS` what a root with fixed members has.
* `NOT_BUILT` is the whole list of what the language has and this edition of the code does not carry: a contract that uses one
  of these is refused with those words, so that nothing is silently left undone. A key is lifted by deleting its line.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from domain.calls import Request, Step
from domain.contract import Contract
from domain.contract_texts import Path, Text, fits, texts
from domain.errors import BadInput
from domain.fingerprint import MIN_TOKEN_BITS, token_length
from domain.input_schema import check_schema, has_path, is_required
from domain.lookup_checks import check_lookups
from domain.patterns import pattern
from domain.stages import Token
from domain.templates import compile_template

NOT_BUILT_WORDS: Final = "legal, not built yet"


class NotBuilt(NamedTuple):
    """A path of the file that is refused: whatever stands there, or only if it is (or is not) one word."""

    pattern: str
    when: Literal["any", "is", "is not"] = "any"
    word: str = ""


NOT_BUILT: Final = (
    NotBuilt("files"),
    NotBuilt("http.auth.oauth2"),
    NotBuilt("http.auth.sigv4"),
    NotBuilt("http.hosts.*.oauth2"),
    NotBuilt("http.hosts.*.sigv4"),
    NotBuilt("http.quota"),
    NotBuilt("create.before"),
    NotBuilt("create.token.from"),
    NotBuilt("observe.before"),
    NotBuilt("observe.counts"),
    NotBuilt("observe.states.*.is", "is", "ended"),
    NotBuilt("cancel.before"),
    NotBuilt("cancel.force"),
    NotBuilt("*.request.multipart"),
    NotBuilt("*.request.file"),
    NotBuilt("collect.from.request.multipart"),
    NotBuilt("collect.from.request.file"),
    NotBuilt("collect.from.*.request.multipart"),
    NotBuilt("collect.from.*.request.file"),
    NotBuilt("collect.from.pages"),
    NotBuilt("collect.from.*.pages"),
    NotBuilt("collect.before"),
    NotBuilt("collect.each"),
    NotBuilt("collect.outputs"),
    NotBuilt("collect.items"),
    NotBuilt("record.sensitive"),
)

_ASKED: Final = frozenset({"input", "files", "target"})
_GENERAL: Final = _ASKED | {"operation", "trace_id", "deadlines", "mark", "call", "steps"}
_ANSWER: Final = frozenset({"status", "headers", "body", "text"})
_CREATE: Final = _GENERAL | {"token", "token_sent_at", "callback"}
_JOB: Final = _GENERAL | {"job"}
_COLLECT: Final = _JOB | {"observed", "each", "page"}

ROOTS: Final = (
    ("files.*.from", _ASKED),
    ("effect", _ASKED),
    ("http.base", frozenset({"target"})),
    ("http.auth", frozenset({"secret"})),
    ("http.hosts", frozenset({"secret"})),
    ("http", _ANSWER),
    ("errors", _GENERAL | _ANSWER),
    ("create.before.*.request", _CREATE | {"page"}),
    ("create.before.*.undo", _CREATE),
    ("create.before", _CREATE | _ANSWER | {"items", "page"}),
    ("create.request", _CREATE),
    ("create.compare", _JOB | _ANSWER),
    ("create", _CREATE | _ANSWER),
    ("observe.before.*.request", _JOB | {"page"}),
    ("observe.before", _JOB | _ANSWER | {"items", "page"}),
    ("observe.request", _JOB),
    ("observe.states", _JOB | _ANSWER | {"phase"}),
    ("observe", _JOB | _ANSWER),
    ("cancel.**.request", _JOB | {"page"}),
    ("cancel", _JOB | _ANSWER | {"items", "page"}),
    ("collect.items", _COLLECT | {"item"}),
    ("collect.expect", _COLLECT | {"counts", "outputs", "result"}),
    ("collect.verify", _COLLECT | {"status", "headers"}),
    ("collect.outputs.*.verify", _COLLECT | {"status", "headers"}),
    ("collect.**.answers", _COLLECT | _ANSWER),
    ("collect.**.pages", _COLLECT | _ANSWER),
    ("collect.**.save", _COLLECT | _ANSWER | {"items"}),
    ("collect.**.same", _COLLECT | _ANSWER),
    ("collect", _COLLECT),
    ("reconcile.*.request", _CREATE | {"window", "page"}),
    ("reconcile", _CREATE | _ANSWER | {"window", "page", "item"}),
    ("webhook.signed", frozenset({"raw", "headers", "timestamp"})),
    ("webhook", _ANSWER | {"raw", "headers", "timestamp"}),
    ("record", _COLLECT | _ANSWER),
)

MEMBERS: Final = {
    "operation": frozenset({"id", "tenant", "principal", "reason"}),
    "deadlines": frozenset({"create", "result", "cancel", "collect", "approval"}),
    "call": frozenset({"id"}),
    "callback": frozenset({"url"}),
    "observed": frozenset({"call", "status", "headers", "body"}),
    "page": frozenset({"next", "index", "number"}),
    "window": frozenset({"from", "to"}),
}

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
_HEADER: Final = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_PATH_TEXT: Final = pattern(r"[A-Za-z0-9/._~!$&'()*+,;=:@%-]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at one path of the file."""

    path: Path
    expected: str
    code: str = "invalid"


def not_built(document: JsonValue) -> Iterator[Problem]:
    """What the file uses of the language that is not carried yet."""
    for path, value in _nodes(document, ()):
        for entry in NOT_BUILT:
            if len(path) == entry.pattern.count(".") + 1 and fits(entry.pattern, path) and _applies(entry, value):
                yield Problem(path, NOT_BUILT_WORDS, "not-built")


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
    for path, request in _requests(contract):
        yield from _check_request(contract, path, request)


def _applies(entry: NotBuilt, value: JsonValue) -> bool:
    return entry.when == "any" or (value == entry.word) is (entry.when == "is")


def _nodes(node: JsonValue, path: Path) -> Iterator[tuple[Path, JsonValue]]:
    if path:
        yield path, node
    if isinstance(node, dict):
        for name, item in node.items():
            yield from _nodes(item, (*path, name))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _nodes(item, (*path, index))


def _check_input(contract: Contract) -> Iterator[Problem]:
    schemas: list[tuple[Path, dict[str, JsonValue] | None]] = [(("input",), contract.input)]
    if contract.collect and contract.collect.verify:
        schemas.append((("collect", "verify", "schema"), contract.collect.verify.schema_))
    for path, schema in schemas:
        try:
            check_schema(schema or {})
        except BadInput as error:
            yield Problem(path, error.message)


def _check_text(contract: Contract, text: Text) -> Iterator[Problem]:
    known = next((roots for place, roots in ROOTS if fits(place, text.path)), frozenset[str]())
    for path in sorted(text.expression.paths):
        root, member = path[0], path[1] if len(path) > 1 else None
        if root not in known:
            yield Problem(text.path, f"{root} is not known here; known are {', '.join(sorted(known))}")
            continue
        wanted = _members(contract, root)
        if wanted is not None and member is not None and member not in wanted:
            yield Problem(text.path, f"{root} has no {member}; it has {', '.join(sorted(wanted)) or 'nothing'}")
        if root == "input" and not has_path(contract.input, path[1:]):
            yield Problem(text.path, f"the input schema has no {'.'.join(path)}")
    yield from _check_fallback(contract, text)


def _check_fallback(contract: Contract, text: Text) -> Iterator[Problem]:
    """Inside longer text an optional input would stop the request: the contract says what stands there instead."""
    path = text.expression.plain_path
    if text.template is None or text.template.one_hole or path is None or path[0] != "input":
        return
    if not is_required(contract.input, path[1:]):
        yield Problem(text.path, f"a fallback for the optional ${{{text.expression.text}}}, as in ${{{text.expression.text} || 'none'}}")


def _members(contract: Contract, root: str) -> Iterable[str] | None:
    """What a root has, or None where that is not fixed."""
    match root:
        case "target":
            return contract.target.keys()
        case "files":
            return contract.files.keys()
        case "job":
            ways = [job for job in (contract.create.job, *(lookup.job for lookup in contract.reconcile)) if job]
            return [name for name in contract.job_names if ways and all(name in job for job in ways)]
        case "steps":
            return {step.step for step in _steps(contract)}
        case _:
            return MEMBERS.get(root)


def _steps(contract: Contract) -> Iterator[Step]:
    collect = contract.collect
    outputs = (collect, *collect.outputs.values()) if collect else ()
    for stage in (contract.create, contract.observe, contract.cancel, *outputs):
        yield from stage.before if stage else ()


def _check_token(contract: Contract, found: tuple[Text, ...]) -> Iterator[Problem]:
    token = contract.create.token
    used = [text for text in found if "token" in text.expression.roots and text.path[0] in ("create", "reconcile")]
    if token is None:
        yield from (Problem(text.path, "no ${token} where create.token is none") for text in used)
    elif not token.source and not any(text.path[:2] in _TOKEN_STANDS_IN for text in used):
        yield Problem(("create", "token"), "${token} somewhere in the request of create, or token: none")
    if token is not None:
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
    lists: list[tuple[Path, Iterable[object]]] = [
        (("create", "answers"), contract.create.answers),
        (("errors", "answers"), contract.errors.answers),
    ]
    if contract.observe:
        lists.append((("observe", "states"), contract.observe.states))
    if contract.cancel:
        lists.append((("cancel", "answers"), contract.cancel.answers))
    if contract.collect:
        lists.append((("collect", "from"), contract.collect.source))
        lists.extend((("collect", "from", index, "answers"), source.answers) for index, source in enumerate(contract.collect.source))
    lists.extend((("reconcile", index, "answers"), lookup.answers) for index, lookup in enumerate(contract.reconcile))
    for path, entries in lists:
        earlier: list[object] = []
        for index, entry in enumerate(entries):
            when = getattr(entry, "when", None)
            if None in earlier or when in earlier:
                yield Problem((*path, index), "an entry that can be reached; an earlier one takes all that this could")
            earlier.append(when)


def _check_stages(contract: Contract) -> Iterator[Problem]:
    words = {answer.word for answer in contract.create.answers}
    named = bool(words & {"accepted", "exists"})
    if named and not contract.create.job:
        yield Problem(("create",), "a job with an id, for an answer that is accepted")
    if contract.observe is None and words & {"accepted", "exists", "accepted_unnamed"}:
        needs = NOT_BUILT_WORDS if contract.webhook else "observe: none needs a webhook where the create can be accepted"
        yield Problem(("observe",), needs, "not-built" if contract.webhook else "invalid")
    ends = {state.word for state in contract.observe.states} if contract.observe else set[str]()
    if ends & {"partial", "ended"} and contract.collect and contract.collect.partial is None:
        yield Problem(("collect",), "partial, because a state of observe can be partial")


def _requests(contract: Contract) -> Iterator[tuple[Path, Request]]:
    yield ("create", "request"), contract.create.request
    if contract.observe:
        yield ("observe", "request"), contract.observe.request
    if contract.cancel:
        yield ("cancel", "request"), contract.cancel.request
    for index, source in enumerate(contract.collect.source if contract.collect else ()):
        if source.request:
            yield ("collect", "from", index, "request"), source.request
    for index, lookup in enumerate(contract.reconcile):
        if lookup.request:
            yield ("reconcile", index, "request"), lookup.request


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
