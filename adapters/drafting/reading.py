"""What a contract asks for, looked for in the schemas and responses of operations. What is found is the document's; nothing is made up.

* A name is no proof: what was found by its name alone comes with a remark that says so.
* The words of states are read by what they commonly mean, which the draft says of each.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from adapters.drafting.openapi import Node, Operation, Parameter, as_node, as_nodes
from adapters.drafting.schemas import can_be_named, expression, is_text, kinds, leaves, properties
from adapters.drafting.text import Said

BY_NAME: Final = "by the name alone"
MAX_WORDS: Final = 60

_TOKEN: Final = re.compile(r"(x|amz|amzsdk)?(idempotency|repeatabilityrequest|clientrequest|request|client)(key|id|token)")
_NOT_TOKENS: Final = frozenset({"clientid", "xclientid", "clientkey", "xclientkey"})  # who asks, not what
_STATES: Final = ("status", "state", "phase")
_IN_STATES: Final = (*_STATES, "code", "name", "value")
_COMMON: Final = (
    ("waiting", "queued pending accepted created submitted scheduled starting initializing validating notstarted waiting new"),
    ("running", "running processing inprogress started active working finalizing executing"),
    ("needs_input", "paused inputrequired actionrequired suspended"),
    ("cancelling", "cancelling canceling stopping cancelrequested aborting"),
    ("succeeded", "succeeded success successful completed complete done finished ready"),
    ("failed", "failed failure error errored timedout executorerror systemerror crashed"),
    ("cancelled", "cancelled canceled aborted dismissed stopped killed"),
)
_MEANS: Final = {word: meaning for meaning, words in _COMMON for word in words.split()}
_PERCENT: Final = frozenset({"progress", "percent", "percentage", "percentcomplete", "progresspercent"})
_PAGING: Final = re.compile(r"(?i)page|cursor|offset|after|marker|skip|.*page_?token|.*continuation.*|start(ing_after|_?index)?")


@dataclass(frozen=True, slots=True)
class State:
    """Where the status answer shows the state, and its words (none: the document does not list them)."""

    key: str
    words: tuple[str | int | bool, ...]


def meaning_of(word: str | int | bool) -> str | None:
    """What a state of that name commonly means."""
    return _MEANS.get(re.sub(r"[^a-z]", "", word.lower())) if isinstance(word, str) else None


def job_id(create: Operation, called: str | None) -> Said | None:
    """Where the create's answer names the job. `called`: how the status operation calls it."""
    for code in create.good:
        found = _id_in(create.schema_of(code), called) or _location(create, code)
        if found:
            return found
    return None


def _id_in(schema: Node, called: str | None) -> Said | None:
    flat = [path for path, node in leaves(schema) if is_text(node)]
    wanted = [_bare(name) for name in (called, "id", "name") if name]
    best = [path for name in wanted for path in flat if _bare(path[-1]) == name] or [
        path for path in flat if _bare(path[-1]).endswith("id")
    ]
    return Said(expression("body", *best[0]), f"{BY_NAME}: the answer's {'.'.join(best[0])}") if best else None


def _location(create: Operation, code: str) -> Said | None:
    named = next((name for name in create.headers_of(code) if _bare(name) in ("location", "contentlocation", "operationlocation")), None)
    if named is None:
        return None
    return Said(
        f"last_segment(headers.{named.lower().replace('-', '_')})", f"the last part of {named}: is that the id by which status asks?"
    )


def state(status: Operation) -> State | None:
    """The state in the status answer: one whose words are listed before one whose words are not, a plain name before a longer one."""
    named = [(path, node) for path, node in leaves(status.shown) if _bare(path[-1]).endswith(_STATES)]
    found = [_shown_in(path, node) for path, node in named]
    listed = [(path, words) for path, node in found if (words := _words(node))]
    plain = [(path, words) for path, words in [*listed, *((path, ()) for path, _ in found)] if _bare(path[-1]) in _IN_STATES]
    best = next(iter([one for one in plain if one[1]] or listed or plain or [(path, ()) for path, _ in found]), None)
    return best and State(expression("body", *best[0]), best[1][:MAX_WORDS])


def _shown_in(path: tuple[str, ...], node: Node) -> tuple[tuple[str, ...], Node]:
    """The state itself; where that is an object, as `{"status": {"code": 30, "message": ...}}`, what in it is called like one."""
    within = {name: as_node(part) for name, part in properties(node).items()}
    named = [name for wanted in _IN_STATES for name in within if _bare(name) == wanted and is_text(within[name])]
    best = next(iter([name for name in named if _words(within[name])] or named), None)
    return (path, node) if best is None else ((*path, best), within[best])


def _words(node: Node) -> tuple[str | int | bool, ...]:
    """The listed words: of the schema itself, or of what it is put together from."""
    own = as_nodes(node.get("enum"))
    parts = [part for name in ("allOf", "oneOf", "anyOf") for part in as_nodes(node.get(name))]
    below = [word for part in parts for word in _words(as_node(part))]
    return tuple(dict.fromkeys([*(word for word in own if isinstance(word, str | int | bool)), *below]))


def words_of_errors(create: Operation) -> dict[str, Said]:
    """Where an error's answer has its code and its message."""
    status = next((code for code in create.responses if code.startswith(("4", "5")) or code == "default"), "")
    found: dict[str, Said] = {}
    for path, node in leaves(create.schema_of(status), depth=2):
        name = _bare(path[-1])
        kind = (
            "message" if name in ("message", "detail", "description", "msg") else "code" if name in ("code", "type", "errorcode") else None
        )
        if kind and kind not in found and is_text(node):
            found[kind] = Said(expression("body", *path), BY_NAME)
    return found


def is_token(name: str) -> bool:
    """Whether something is called like an idempotency key."""
    return _TOKEN.fullmatch(_bare(name)) is not None and _bare(name) not in _NOT_TOKENS


def token_parameter(create: Operation) -> Parameter | None:
    """A header, or a parameter of the query, that is called like an idempotency key."""
    named = [one for place in ("header", "query") for one in create.parameter(place) if is_token(one.name) and is_text(one.schema)]
    return next(iter(named), None)


def progress(status: Operation) -> Said | None:
    """A percentage that the status answer shows."""
    numbers = (path for path, node in leaves(status.shown) if kinds(node) & {"integer", "number"} and _bare(path[-1]) in _PERCENT)
    return next((Said(expression("body", *path), f"{BY_NAME}: is it 0 to 100?") for path in numbers), None)


def list_of(listing: Operation) -> tuple[str, Node] | None:
    """The expression of the list in a listing's answer, and the schema of its elements."""
    lists = [((), listing.shown), *leaves(listing.shown, depth=2)]
    return next(((expression("body", *path), as_node(node.get("items"))) for path, node in lists if "array" in kinds(node)), None)


def paging(listing: Operation) -> str | None:
    """The parameter that asks a listing for more."""
    return next((one.name for one in listing.parameter("query") if _PAGING.fullmatch(one.name)), None)


def id_asked_for(parameters: Iterable[Parameter]) -> str | None:
    """The one parameter that must be sent, if it is called like an id."""
    names = [one.name for one in parameters]
    return names[0] if len(names) == 1 and can_be_named(names[0]) and _bare(names[0]).endswith(("id", "name", "job")) else None


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
