"""Safety findings: what a contract may leave unsafe, said aloud. They don't stop a contract from loading, but `contracts check` fails.

* Each has a code and a remedy; `accepts` takes one knowingly, with a reason. `today` is an argument: nothing here looks at a clock.
* Advice is what may be left as it is: `ADVICE` are its codes.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import date, timedelta
from typing import Final

from domain.contract import Contract
from domain.language.calls import Output, Pages, Request, State
from domain.language.checks import Problem
from domain.language.expressions import Scope
from domain.language.grammar import parse_duration
from domain.language.matching import holds, is_range
from domain.language.parts import entry_lists, paged
from domain.language.templates import compile_template, texts_of
from domain.language.texts import Path, fits, texts

MAX_AGE: Final = timedelta(days=366)

ADVICE: Final = {
    "no-cases": "write NAME.cases.yaml beside it: recorded answers, and the word each must be read as",
    "entry-without-case": "add a case that this entry reads, or take the entry away",
    "cancel-confirmed-by-gone": "say what a cancelled job shows (a 404 under phase cancelling, say), or name the phase in the entry",
    "accepted-in-vain": "take the entry of `accepts` away: what it accepts is not there",
}


def safety_findings(contract: Contract, *, today: date, shown: Collection[Path] = ()) -> tuple[Problem, ...]:
    """What is unsafe and not accepted. `shown`: addresses of which a case shows where they lead."""
    accepted = {entry.finding for entry in contract.accepts}
    return tuple(problem for problem in _unsafe(contract, today, shown) if problem.code not in accepted)


def accepted_in_vain(contract: Contract, *, today: date, shown: Collection[Path] = ()) -> Iterator[Problem]:
    """Entries of `accepts` that accept nothing."""
    found = {problem.code for problem in _unsafe(contract, today, shown)}
    for index, entry in enumerate(contract.accepts):
        if entry.finding not in found:
            yield Problem(("accepts", index, "finding"), f"nothing here is {entry.finding}", "accepted-in-vain")


def gone_for_cancelled(contract: Contract) -> Iterator[Problem]:
    """Where after a cancel a job can only be gone, and no entry says that this is meant."""
    gone = _after_cancel(contract, "gone")
    meant = _after_cancel(contract, "cancelled") or any("phase" in (state.when or {}) for _, state in gone)
    if contract.cancel and gone and not meant:
        said = "after a cancel a job is at best gone, which does not say cancelled: a human would be asked each time"
        yield Problem(gone[0][0], said, "cancel-confirmed-by-gone")


def unknown_accepts(contract: Contract) -> Iterator[Problem]:
    """Entries of `accepts` that name no finding."""
    for index, entry in enumerate(contract.accepts):
        if entry.finding not in FINDINGS:
            yield Problem(("accepts", index, "finding"), f"one of {', '.join(FINDINGS)}")


def remedy(code: str) -> str:
    """What to do about a finding; empty where what was expected says it all."""
    return REMEDIES.get(code, ADVICE.get(code, ""))


def _unsafe(contract: Contract, today: date, shown: Collection[Path]) -> Iterator[Problem]:
    for code, check in FINDINGS.items():
        yield from (Problem(path, said, code) for path, said in check(contract, today) if code != "host-unlisted" or path not in shown)


Said = Iterator[tuple[Path, str]]


def _not_recoverable(contract: Contract, _: date) -> Said:
    if contract.create.token is None and not contract.reconcile and contract.effect.cls != "read":
        yield ("create", "token"), "a lost answer can be neither replayed nor looked up: the operation will wait for a human"


def _window_unstated(contract: Contract, _: date) -> Said:
    if contract.create.token and contract.create.token.window is None:
        yield ("create", "token", "window"), "the provider does not say how long its token holds: 5m are counted with"


def _beyond_window(contract: Contract, _: date) -> Said:
    token = contract.create.token
    if token and contract.deadlines.create > token.lasts:
        yield ("deadlines", "create"), "the create deadline is longer than the token's window"


def _no_failure(contract: Contract, _: date) -> Said:
    if contract.observe and not {state.word for state in contract.observe.states} & {"failed", "ended"}:
        yield ("observe", "states"), "no state is read as failed: a failed job would wait for the result deadline"


def _never_confirmed(contract: Contract, _: date) -> Said:
    if contract.cancel and contract.observe and not _after_cancel(contract, "cancelled") and not _after_cancel(contract, "gone"):
        yield ("observe", "states"), "no state confirms a cancel: a cancelled operation would wait for a human"


def _after_cancel(contract: Contract, word: str) -> list[tuple[Path, State]]:
    """The states of that word that an answer can have once a cancel was acknowledged."""
    states = enumerate(contract.observe.states if contract.observe else ())
    return [(("observe", "states", index), state) for index, state in states if state.word == word and _cancelling(state)]


def _cancelling(state: State) -> bool:
    wanted = {key: value for key, value in (state.when or {}).items() if key == "phase"}
    return holds(wanted, Scope(phase="cancelling"))


def _unchecked(contract: Contract, _: date) -> Said:
    for path, output in _outputs(contract):
        if output.format == "binary" and not (output.verify and output.verify.model_fields_set - {"required"}):
            yield path, "a binary result that is compared with nothing"


def _may_expire(contract: Contract, _: date) -> Said:
    for path, output in _outputs(contract):
        stated = output.good_for if output.refresh == "none" else None
        if stated and not compile_template(stated).holes and parse_duration(stated) < contract.deadlines.collect:
            yield (*path, "good_for"), "the result can be fetched for a shorter time than the collect deadline"


def _unlisted_host(contract: Contract, _: date) -> Said:
    """An address that an answer gives may lead anywhere; where no host is listed, all but the base is refused at run time."""
    if contract.http.hosts:
        return
    for text in texts(contract):
        leads = text.path[-1] == "url" and text.template is not None and text.template.parts[0] is text.expression
        if leads and text.expression.roots & _FROM_ANSWERS:
            yield text.path, "an address that an answer gives, while http.hosts lists nothing: only one below the base can be called"


_FROM_ANSWERS: Final = frozenset({"job", "observed", "steps", "each", "page"})


def _wide_host(contract: Contract, _: date) -> Said:
    for host in contract.http.hosts:
        if "*" in host:
            yield ("http", "hosts", host), "anyone who can register below this host is trusted with requests"


def _unsigned(contract: Contract, _: date) -> Said:
    if contract.webhook and contract.webhook.scheme == "none":
        yield ("webhook", "scheme"), "deliveries that anyone can send"


def _understated(contract: Contract, _: date) -> Said:
    bodies = {"json", "form", "text", "multipart"}
    sent = (text for text in texts(contract) if text.path[0] == "create" and bodies & set(map(str, text.path)) and "request" in text.path)
    made = any(text.path[0] == "files" and text.expression.plain_path == ("input",) for text in texts(contract))
    if contract.effect.cls == "read" and (made or any(text.expression.plain_path == ("input",) for text in sent)):
        yield ("effect", "class"), "the whole input is passed on, so the class read is a hope"


def _unstated_money(contract: Contract, _: date) -> Said:
    effect = contract.effect
    if effect.cls == "money":
        named = (("recipient", effect.recipient), ("amount", effect.amount))
        yield from ((("effect", key), f"class money without {key}: policy denies it") for key, value in named if value is None)


def _stale(contract: Contract, today: date) -> Said:
    if today - contract.provider.verified_on > MAX_AGE:
        yield ("provider", "verified_on"), "verified more than a year ago"


def _mark_unsent(contract: Contract, _: date) -> Said:
    """A job that was made without the mark is never found by it: every absence would be proof, and the next create a second job."""
    marked = [text.path for text in texts(contract) if "mark" in text.expression.roots]
    looked_for = [path for path in marked if path[0] == "reconcile"]
    if looked_for and not any(fits(place, path) for path in marked for place in _MAKES):
        yield looked_for[0], "a job is looked for by ${mark}, which no request of create sends"


_MAKES: Final = ("create.request", "create.before.*.request")


def _page_unasked(contract: Contract, _: date) -> Said:
    """Without it each page is the first one again: a list that leads back to itself, or a result that never ends."""
    for path, part in paged(contract):
        wanted = _tells_the_page(part.pages)
        if part.request and wanted and not _asks(part.request, wanted):
            asked = " or ".join(f"${{page.{name}}}" for name in wanted)
            yield (*path, "pages"), f"pages lead on, and the request never says which one it asks for: no {asked} in it"


def _tells_the_page(pages: Pages | None) -> tuple[str, ...]:
    """What of `page` a request has to hold; nothing where there is one page, or an answer gives the whole address of the next."""
    if pages is None or pages.next_url:
        return ()
    if pages.next:
        return ("next",)
    return ("number", "index") if pages.count or pages.more else ()


def _asks(request: Request, wanted: tuple[str, ...]) -> bool:
    asked = {path[:2] for text in texts(request) for path in text.expression.paths if path[0] == "page"}
    return bool(asked & {("page",), *(("page", name) for name in wanted)})


def _status_as_text(contract: Contract, _: date) -> Said:
    """Nothing is converted: an entry for the text "202" reads no answer, and one for anything but "202" reads all of them."""
    for path, entries in entry_lists(contract):
        for index, entry in enumerate(entries):
            wanted = (entry.when or {}).get("status")
            if any(not is_range(text) and not compile_template(text).holes for _, text in texts_of(wanted)):
                yield (*path, index, "when", "status"), "a status is a number, and no text equals one"


def _outputs(contract: Contract) -> Iterator[tuple[Path, Output]]:
    if contract.collect:
        for name, output in contract.collect.every.items():
            yield ("collect", "outputs", name) if contract.collect.outputs else ("collect",), output


FINDINGS: Final[dict[str, Callable[[Contract, date], Said]]] = {
    "create-not-recoverable": _not_recoverable,
    "window-unstated": _window_unstated,
    "deadline-beyond-window": _beyond_window,
    "mark-unsent": _mark_unsent,
    "page-unasked": _page_unasked,
    "status-as-text": _status_as_text,
    "no-failure-state": _no_failure,
    "cancel-never-confirmed": _never_confirmed,
    "result-unchecked": _unchecked,
    "result-may-expire": _may_expire,
    "host-unlisted": _unlisted_host,
    "wide-host": _wide_host,
    "webhook-unsigned": _unsigned,
    "effect-understated": _understated,
    "money-unstated": _unstated_money,
    "stale": _stale,
}

REMEDIES: Final = {
    "create-not-recoverable": "give create.token if the provider knows one, or a way to look the job up under reconcile; else accept it",
    "window-unstated": "ask the provider, or write the window that was measured; else accept it",
    "deadline-beyond-window": "shorten deadlines.create to the window: what is sent later may be carried out twice",
    "mark-unsent": "send ${mark} with the create, in a field that the lookup sees again; else look for something that it does send",
    "page-unasked": 'hand the cursor on, as query: {cursor: "${page.next}"}; or next_url where an answer gives the whole address',
    "status-as-text": "write the number, as 202, or a range, as 2xx or 400..499",
    "no-failure-state": "add a state that is failed; where the provider has none, accept it and choose deadlines.result",
    "cancel-never-confirmed": "add the state that a cancelled job shows, or what a 404 under phase cancelling means; else cancel: none",
    "result-unchecked": "say what it can be compared with under verify (content_type, bytes, sha256), or name its format",
    "result-may-expire": "shorten deadlines.collect, or refresh: observe where a new status reading gives a new address",
    "host-unlisted": "list the hosts under http.hosts (none for presigned addresses), or show by a case that it is below the base",
    "wide-host": "list the hosts by name; a pattern only below a name that the provider alone can register under",
    "webhook-unsigned": "use the scheme by which the provider signs; where it has none, accept it: a delivery is only a hint to look",
    "effect-understated": "take the class of the gravest thing that the input can ask for, or pass on only what the schema names",
    "money-unstated": "give effect.recipient and effect.amount: what class money moves is judged by both",
    "stale": "read the provider's pages again, correct what changed, and set verified_on",
}
"""What to do about each."""
