"""One case, run: the request is rendered, and the answer read, by the functions that production uses. Total: what is wrong is said.

* `means` is the word of the entry that matched. Where production concludes something else from it, it is that: `violation` where
  `same` differs, `stuck` for a stored 5xx, `unsure` where nothing may be concluded (an accepted job without an id), `held`, `lost`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from pydantic import JsonValue

from domain.answer_matching import Judged, answer_scope, judge
from domain.cases.calls import Call
from domain.cases.matching import differences, fits
from domain.cases.models import Case, Given
from domain.cases.scope import NOW, Known, answer_of, arrived, scope_of
from domain.contract import Contract
from domain.errors import AddressError, BadInput, RenderError
from domain.evidence import bounded
from domain.exchange import Answer, Request
from domain.language.calls import Answer as Entry
from domain.language.calls import Pages, Source
from domain.language.calls import Request as RequestModel
from domain.language.checks import Problem
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.language.matching import is_met
from domain.lookups import read_get, read_page
from domain.paging import Following, following, next_page, page_root
from domain.reading import Reading, read_cancel, read_collect, read_create, read_observe
from domain.rendering import render
from domain.results.pieces import source_of
from domain.steps import read_step, undone

_NOT_EXECUTED: Final = frozenset({"throttled", "unauthorized"})
_AGAIN: Final = _NOT_EXECUTED | {"not_ready", "not_yet"}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a case came to. `scope` has the roots of the answer; `reached`: the entry that matched, and the source that was chosen."""

    means: str
    scope: Scope
    request: Request | None = None
    reached: tuple[Entry[str] | Source, ...] = ()
    seen: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    next_url: str | None = None
    why: str = ""


def run_case(contract: Contract, call: Call, case: Case, given: Given, known: Known | None = None) -> tuple[Ran | None, list[Problem]]:
    """What the case came to, and what is wrong with it; paths are below the case."""
    try:
        ran = _run(contract, call, case, scope_of(contract, given, known))
        problems = list(_problems(case, ran))
        if case.sent is not None and ran.request is not None:
            asked = arrived(contract, ran.request, given)
            for key, found in differences(case.sent, asked):
                problems.append(Problem(("sent", *key.split(".", 1)), f"what the contract sends: {found}", "case"))
    except Unfit as error:
        return None, [Problem(error.path, error.message, "case")]
    except (RenderError, AddressError) as error:
        return None, [Problem(("call",), f"a case in which the request can be made: {error.message}", "case")]
    except BadInput as error:
        return None, [Problem(("given",), error.message, "case")]
    return ran, problems


class Unfit(Exception):
    """The case does not say what its call needs."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path, self.message = path, message


def _run(contract: Contract, call: Call, case: Case, scope: Scope) -> Ran:
    if call.kind == "items":
        return _item(call, scope)
    if call.output and call.output.when is not None and not is_met(call.output.when, scope):
        return Ran("empty", scope)
    source = _source(call, scope) if call.output else None
    asked = source.request if source else call.request
    if asked is None:
        return _inline(source, scope)
    request = _asked(contract, asked, _pages(call, source), scope, accept="*/*" if source else "application/json")
    chosen = (source,) if source else ()
    if case.lost:
        return Ran("lost", scope, request, chosen)
    if case.answer is None:
        raise Unfit(("answer",), "an answer, or the word lost")
    try:
        answer = answer_of(case.answer, scope)
    except (RenderError, BadInput) as error:
        raise Unfit(("answer",), error.message) from None
    ran = _read(contract, call, source, answer, scope)
    return replace(ran, request=request, reached=(*chosen, *ran.reached))


def _pages(call: Call, source: Source | None) -> Pages | None:
    """How the pages of this call lead on."""
    return source.pages if source else call.step.pages if call.kind == "step" and call.step else call.lookup.pages if call.lookup else None


def _asked(contract: Contract, asked: RequestModel, pages: Pages | None, scope: Scope, *, accept: str) -> Request:
    """The request; of a page whose address the case gives, that address, relative to the first page's."""
    url = scope.page["next"] if isinstance(scope.page, dict) else None
    if pages is None or not pages.next_url or url is None:
        return render(contract, asked, scope, accept=accept)
    if not isinstance(url, str):
        raise Unfit(("given", "page", "next"), "the address of the page")
    here = {**cast("dict[str, JsonValue]", scope.page), "next": None}
    first = render(contract, asked, replace(scope, page=page_root(0)), accept=accept)
    return next_page(contract, asked, replace(scope, page=here), url, first.url, accept=accept)


def _source(call: Call, scope: Scope) -> Source:
    """The first source that fits, as production chooses."""
    output = call.output
    assert output is not None
    found = source_of(output, scope)
    if found is None:
        raise Unfit(("given",), "an `observed` that one of the sources fits")
    return found


def _inline(source: Source | None, scope: Scope) -> Ran:
    value = _value(source.inline, scope) if source else None
    return Ran("unsure" if value is None else "done", scope, reached=(source,) if source else ())


def _item(call: Call, scope: Scope) -> Ran:
    entry = next((one for one in call.entries if one.when is None or is_met(one.when, scope)), None)
    key = _value(call.read.key, scope) if call.read else None
    return Ran(entry.word if entry else "unread", scope, reached=(entry,) if entry else (), seen={"key": key})


def _value(expressions: tuple[str, ...], scope: Scope) -> JsonValue:
    try:
        return first_value(expressions, scope)
    except TooMuch:
        return None


def _read(contract: Contract, call: Call, source: Source | None, answer: Answer, scope: Scope) -> Ran:
    here = answer_scope(answer, scope)
    match call.kind:
        case "create":
            judged = judge(contract, answer, scope, NOW, contract.create.answers, contract.create.same)
            return _ran(read_create(contract, answer, scope, NOW), judged)
        case "observe" if contract.observe:
            judged = judge(contract, answer, scope, NOW, contract.observe.states, contract.observe.same)
            return _ran(read_observe(contract, answer, scope, NOW), judged)
        case "cancel" if contract.cancel:
            forced = call.name == "cancel.force"
            asked = contract.cancel.force if forced and contract.cancel.force else contract.cancel
            judged = judge(contract, answer, scope, NOW, asked.answers, asked.same)
            return _ran(read_cancel(contract, answer, scope, NOW, forced=forced), judged)
        case "collect" if source:
            judged = judge(contract, answer, scope, NOW, source.answers, None)
            return _paged(_ran(read_collect(contract, source, answer, scope, NOW), judged), source, here)
        case "undo":
            return Ran("done" if undone(answer.status) else "unsure", here)
        case "step":
            return _step(contract, call, answer, scope)
        case _:
            return _lookup(contract, call, answer, scope, here)


def _ran(reading: Reading, judged: Judged) -> Ran:
    seen: dict[str, JsonValue] = {
        "job": dict(reading.job),
        "counts": cast("JsonValue", dict(getattr(reading, "counts", None) or {})),
        "verdict": reading.verdict,
        "reason": reading.reason,
        "code": reading.code,
        "message": reading.message,
    }
    return Ran(_means(reading), judged.scope, reached=_entry(judged), seen=seen, why=_why(judged, reading))


def _entry(judged: Judged) -> tuple[Entry[str], ...]:
    return (judged.entry,) if judged.entry else ()


def _why(judged: Judged, reading: Reading) -> str:
    """Why production concludes something else than the word of the entry that matched."""
    if judged.differs is not None and _means(reading) == "violation":
        due = " or ".join(_typed(one) for one in judged.differs.expected)
        return f": `same` wants {judged.differs.field} to be {due}, and it is {_typed(judged.differs.found)} (nothing is converted)"
    if judged.entry and judged.same == "missing" and judged.decided is None:
        return f": an entry that is {judged.word} matched, and what `same` looks at has no value (allow that with ~)"
    if judged.entry and _means(reading) == "unsure" and judged.word != "unsure":
        return f": an entry that is {judged.word} matched, and the answer " + ("has no job.id" if judged.readable else "can't be read")
    return "" if judged.entry or reading.readable else ": its body can't be read"


def _means(reading: Reading) -> str:
    match reading.meaning, reading.word:
        case "violation", word:
            return word if word == "mismatch" else "violation"
        case ("stuck" | "held") as meaning, _:
            return meaning
        case "done", _:
            return "done"
        case (("ambiguous" | "unsure"), _):
            return "unsure"
        case "failed", word:
            return word if word in _NOT_EXECUTED else "unsure"
        case "again", word:
            return word if word in _AGAIN else "unsure"
        case _:
            return reading.word


def _paged(ran: Ran, source: Source, scope: Scope) -> Ran:
    if source.pages is None or ran.means != "done":
        return ran
    try:
        leads = following(source.pages, scope)
    except TooMuch:
        leads = None
    items = _value(source.pages.items, scope)
    size = len(items) if isinstance(items, list) else None
    if leads is None:
        return replace(ran, means="unsure")
    return replace(ran, next_url=leads.next_url, seen={**ran.seen, "items": size, "next": _leads(leads)})


def _leads(leads: Following) -> JsonValue:
    """What leads on: a cursor, an address, or that there is more; no value at the end."""
    return (leads.next or leads.next_url or True) if leads.more else None


def _step(contract: Contract, call: Call, answer: Answer, scope: Scope) -> Ran:
    """A page that leads on reads as `done` too: the word is the contract's, that there is more says `next`."""
    step = call.step
    assert step is not None
    judged = judge(contract, answer, scope, NOW, step.answers, step.same)
    read = read_step(contract, step, answer, scope, NOW)
    match read.meaning:
        case "done" | "page":
            means = "done"
        case "refused":
            means = "rejected"
        case "again":
            means = read.word if read.word in _NOT_EXECUTED else "unsure"
        case violation:
            means = violation
    seen: dict[str, JsonValue] = {
        "saved": dict(read.saved),
        "items": len(read.items) if step.pages else None,
        "next": _leads(read.leads),
        "code": read.code,
        "message": read.message,
        "reason": read.reason,
    }
    why = f": {read.reason}" if means == "unsure" and read.reason else ""
    return Ran(means, judged.scope, reached=_entry(judged), seen=seen, next_url=read.leads.next_url, why=why)


def _lookup(contract: Contract, call: Call, answer: Answer, scope: Scope, here: Scope) -> Ran:
    lookup = call.lookup
    assert lookup is not None
    entry = judge(contract, answer, scope, NOW, lookup.answers, lookup.same).entry
    found = (read_get if lookup.by == "get" else read_page)(contract, lookup, answer, scope, NOW)
    jobs: list[JsonValue] = [dict(job) for job in ([found.job] if found.job else found.jobs)]
    match found.meaning:
        case "page":
            means = "found" if jobs else "none"
        case "failed":
            means = found.word if found.word in _NOT_EXECUTED | {"rejected"} else "unsure"
        case word:
            means = word
    leads = found.leads
    seen: dict[str, JsonValue] = {
        "found": jobs,
        "job": jobs[0] if jobs else {},
        "items": found.size,
        "next": _leads(leads),
        "reason": found.reason,
        "code": found.code,
        "message": found.message,
    }
    return Ran(means, here, reached=(entry,) if entry else (), seen=seen, next_url=leads.next_url)


def _problems(case: Case, ran: Ran) -> Iterator[Problem]:
    if ran.means != case.means:
        yield Problem(("means",), f"{ran.means}, which is what the contract reads this answer as{ran.why}", "case")
    for name in ("job", "saved", "counts", "verdict", "reason", "code", "message", "items", "next"):
        wanted = getattr(case, name)
        if name in case.model_fields_set and not _as_wanted(wanted, ran.seen.get(name)):
            seen = ran.seen.get(name)
            yield Problem((name,), f"{'nothing' if seen is None else repr(seen)}, which is what the contract reads", "case")
    if case.found is not None:
        jobs = cast("list[dict[str, JsonValue]]", ran.seen.get("found") or [])
        named: list[dict[str, JsonValue]] = [{"id": job} if isinstance(job, str) else job for job in case.found]
        if len(jobs) != len(named) or not all(_as_wanted(one, job) for one, job in zip(named, jobs, strict=True)):
            yield Problem(("found",), f"{jobs!r}, which is what the contract finds", "case")


def _typed(value: JsonValue) -> str:
    """As JSON has it, which tells a number from its text."""
    return bounded(json.dumps(value, ensure_ascii=False), 100)


def _as_wanted(wanted: JsonValue, found: JsonValue) -> bool:
    """Equal; of a map, all that is named."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(fits(value, found.get(name)) for name, value in wanted.items())
    return fits(wanted, found)
