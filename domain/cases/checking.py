"""What the cases of a contract come to: each means what it says, every entry is reached, every story can be told.

* A case that does not hold is an error at its place in the file of cases. An entry that none reaches is advice at its place in the
  contract. An address that an answer gives and that may not be called is an error of the case that gives it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from domain.cases.calls import Call, calls_of, places_of
from domain.cases.models import Case, Cases, Given
from domain.cases.running import Ran, run_case
from domain.contract import Contract, validate_input
from domain.errors import AddressError, BadInput, InputInvalid, RenderError
from domain.language.calls import Request
from domain.language.checks import Problem
from domain.language.expressions import Scope
from domain.language.templates import compile_template
from domain.language.texts import Path
from domain.rendering import render


@dataclass(frozen=True, slots=True)
class Checked:
    """`wrong` has paths in the file of cases, `unreached` in the contract; `shown`: addresses whose place a case shows."""

    wrong: tuple[Problem, ...]
    unreached: tuple[Problem, ...]
    shown: frozenset[Path]


def check_cases(contract: Contract, cases: Cases) -> Checked:
    """Run every case, and look whether the stories can be told."""
    calls = calls_of(contract)
    wrong = [*_asked(contract, cases), *_names(cases), *_stories(contract, cases, calls)]
    reached: set[int] = set()
    shown: set[Path] = set()
    for index, case in enumerate(cases.cases):
        at: Path = ("cases", index)
        call = calls.get(case.call)
        if call is None:
            wrong.append(Problem((*at, "call"), f"a call of this contract, one of {', '.join(calls)}", "case"))
            continue
        ran, problems = run_case(contract, call, case, cases.given(case))
        wrong += [replace(problem, path=(*at, *problem.path)) for problem in problems]
        if ran is not None:
            reached.update(map(id, ran.reached))  # an entry is itself: two of a contract may be alike
            shown.update(_shown(call, ran))
            wrong += [replace(problem, path=(*at, *problem.path)) for problem in _leads(contract, call, ran)]
    unreached = [
        Problem(place.path, "a case that is read by this entry", "entry-without-case")
        for place in places_of(contract)
        if id(place.entry) not in reached
    ]
    return Checked(tuple(wrong), tuple(unreached), frozenset(shown))


def _asked(contract: Contract, cases: Cases) -> Iterator[Problem]:
    """What is asked in the example, and wherever it is changed, is what the contract takes."""
    if cases.contract != contract.contract:
        yield Problem(("contract",), f"{contract.contract}, the contract beside which these cases stand", "case")
    givens: list[tuple[Path, Given]] = [(("example",), cases.example)]
    givens += [(("stories", index, "given"), story.given.over(cases.example)) for index, story in enumerate(cases.stories)]
    for path, given in givens:
        try:
            validate_input(contract, given.input)
            contract.check_target(dict(given.target))
        except InputInvalid as error:
            yield Problem((*path, "input"), f"an input that the contract takes: {'; '.join(error.problems)}", "case")
        except (BadInput, AddressError) as error:
            yield Problem(path, error.message, "case")


def _names(cases: Cases) -> Iterator[Problem]:
    for kind, named in (("cases", [case.name for case in cases.cases]), ("stories", [story.name for story in cases.stories])):
        taken: set[str] = set()
        for index, name in enumerate(named):
            if name in taken:
                yield Problem((kind, index, "name"), "a name that no other has", "case")
            taken.add(name)


def _stories(contract: Contract, cases: Cases, calls: dict[str, Call]) -> Iterator[Problem]:
    named = {case.name: case for case in cases.cases}
    for index, story in enumerate(cases.stories):
        at: Path = ("stories", index)
        for position, name in enumerate(story.exchanges):
            case = named.get(name)
            if case is None:
                yield Problem((*at, "exchanges", position), "the name of a case", "case")
            elif case.call not in calls or not _asks(case, calls[case.call]):
                yield Problem((*at, "exchanges", position), "a case that has an answer, or is lost", "case")
        if story.cancel_after is not None and contract.cancel is None:
            yield Problem((*at, "cancel_after"), "no cancel, which this contract has none of", "case")
        if story.force and (contract.cancel is None or contract.cancel.force is None):
            yield Problem((*at, "force"), "a cancel that has force", "case")


def _asks(case: Case, call: Call) -> bool:
    return call.kind != "items" and (case.answer is not None or case.lost)


def _shown(call: Call, ran: Ran) -> Iterator[Path]:
    """The addresses that this case rendered."""
    if ran.request is None:
        return
    if call.output:
        shown = (index for index, source in enumerate(call.output.source) if any(source is one for one in ran.reached))
        yield from ((*call.path, "from", index, "request", "url") for index in shown)
    else:
        yield (*call.path, "request", "url") if call.kind != "undo" else (*call.path, "url")


def _leads(contract: Contract, call: Call, ran: Ran) -> Iterator[Problem]:
    """Addresses that this answer gives, and that may not be called."""
    scope = _after(call, ran)
    if scope is None:
        return
    gave = {"job"} if call.kind in ("create", "get") else {"observed"}
    for path, request in _addresses(contract):
        roots = frozenset[str]().union(*(hole.roots for hole in compile_template(request.url or "").holes))
        if not roots & gave or roots - gave - {"input", "target"}:
            continue
        try:
            render(contract, Request(method="GET", url=request.url), scope)
        except AddressError as error:
            said = f"an address that {'.'.join(map(str, path))} may call: {error.message}"
            yield Problem(("answer",), said, "case", "list its origin under http.hosts, with none for presigned addresses")
        except RenderError:
            continue


def _after(call: Call, ran: Ran) -> Scope | None:
    """What is known once this answer was read; None if it gives nothing that later calls use."""
    scope = ran.scope
    if call.kind in ("create", "get") and ran.means in ("accepted", "exists", "found"):
        return replace(scope, job=ran.seen.get("job"))
    if call.kind == "observe" and ran.means in ("succeeded", "partial", "ended"):
        return replace(scope, observed={"call": "observe", "status": scope.status, "headers": scope.headers, "body": scope.body})
    return None


def _addresses(contract: Contract) -> Iterator[tuple[Path, Request]]:
    for call in calls_of(contract).values():
        if call.request is not None and call.request.url is not None:
            yield call.path, call.request
        for index, source in enumerate(call.output.source if call.output else ()):
            if source.request is not None and source.request.url is not None and not (call.output and call.output.each):
                yield (*call.path, "from", index), source.request
