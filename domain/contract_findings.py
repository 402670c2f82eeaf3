"""Safety findings: what a contract may leave unsafe, said aloud. They don't stop a contract from loading.

Each has a code; `accepts` takes one knowingly, with a reason. `today` is an argument: nothing here looks at a clock.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Final

from domain.calls import Output
from domain.contract import Contract
from domain.contract_checks import Problem
from domain.contract_texts import Path
from domain.grammar import parse_duration
from domain.templates import compile_template, texts_of

MAX_AGE: Final = timedelta(days=366)


def safety_findings(contract: Contract, *, today: date) -> tuple[Problem, ...]:
    """What is unsafe and not accepted."""
    accepted = {entry.finding for entry in contract.accepts}
    found = (Problem(path, said, code) for code, check in FINDINGS.items() for path, said in check(contract, today))
    return tuple(problem for problem in found if problem.code not in accepted)


def unknown_accepts(contract: Contract) -> Iterator[Problem]:
    """Entries of `accepts` that name no finding."""
    for index, entry in enumerate(contract.accepts):
        if entry.finding not in FINDINGS:
            yield Problem(("accepts", index, "finding"), f"one of {', '.join(FINDINGS)}")


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
    if contract.cancel and contract.observe and not {state.word for state in contract.observe.states} & {"cancelled", "gone"}:
        yield ("observe", "states"), "no state confirms a cancel: a cancelled operation would wait for a human"


def _unchecked(contract: Contract, _: date) -> Said:
    for path, output in _outputs(contract):
        if output.format == "binary" and not (output.verify and output.verify.model_fields_set - {"required"}):
            yield path, "a binary result that is compared with nothing"


def _may_expire(contract: Contract, _: date) -> Said:
    for path, output in _outputs(contract):
        stated = output.good_for
        if stated and not compile_template(stated).holes and parse_duration(stated) < contract.deadlines.collect:
            yield (*path, "good_for"), "the result can be fetched for a shorter time than the collect deadline"


def _wide_host(contract: Contract, _: date) -> Said:
    for host in contract.http.hosts:
        if "*" in host:
            yield ("http", "hosts", host), "anyone who can register below this host is trusted with requests"


def _unsigned(contract: Contract, _: date) -> Said:
    if contract.webhook and contract.webhook.scheme == "none":
        yield ("webhook", "scheme"), "deliveries that anyone can send"


def _understated(contract: Contract, _: date) -> Said:
    request = contract.create.request
    bodies = (request.json_body, request.form, request.text)
    whole = any(hole.plain_path == ("input",) for body in bodies for _, text in texts_of(body) for hole in compile_template(text).holes)
    if contract.effect.cls == "read" and whole:
        yield ("effect", "class"), "the whole input is passed on, so the class read is a hope"


def _stale(contract: Contract, today: date) -> Said:
    if today - contract.provider.verified_on > MAX_AGE:
        yield ("provider", "verified_on"), "verified more than a year ago"


def _outputs(contract: Contract) -> Iterator[tuple[Path, Output]]:
    if contract.collect and contract.collect.source:
        yield ("collect",), contract.collect
    for name, output in (contract.collect.outputs if contract.collect else {}).items():
        yield ("collect", "outputs", name), output


FINDINGS: Final[dict[str, Callable[[Contract, date], Said]]] = {
    "create-not-recoverable": _not_recoverable,
    "window-unstated": _window_unstated,
    "deadline-beyond-window": _beyond_window,
    "no-failure-state": _no_failure,
    "cancel-never-confirmed": _never_confirmed,
    "result-unchecked": _unchecked,
    "result-may-expire": _may_expire,
    "wide-host": _wide_host,
    "webhook-unsigned": _unsigned,
    "effect-understated": _understated,
    "stale": _stale,
}
