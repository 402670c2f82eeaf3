"""Looking the job up as reconcile would: is it there in time, and alone, and is nothing found where nothing was made?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from pydantic import JsonValue

from adapters.probing.findings import Findings, Mend, Seen, plain
from adapters.probing.jobs import Job
from adapters.probing.naming import Names
from adapters.probing.talking import STEP_TRIES, Talk, Unsent
from domain.errors import BadInput
from domain.evidence import instant_text
from domain.exchange import NoAnswer, Request
from domain.language.calls import Lookup
from domain.language.calls import Request as RequestModel
from domain.language.expressions import Scope
from domain.language.matching import roots_of
from domain.language.templates import compile_template, texts_of
from domain.lookups import MAX_CANDIDATES, MAX_ITEMS, Found, read_get, read_page
from domain.paging import Trail, page_root

SLACK: Final = timedelta(minutes=1)
LONGER: Final = 3
"""How many times `visible_within` is waited, to learn how long it does take."""
LEAST: Final = timedelta(seconds=1)
NEVER: Final = 99
"""A generation of which nothing is ever sent."""
_OURS: Final = frozenset({"mark", "token"})


@dataclass(frozen=True, slots=True)
class Shown:
    """What one look showed: the jobs by their id, or that nothing can be concluded."""

    seen: tuple[Seen, ...]
    jobs: Mapping[str, dict[str, JsonValue]] | None = None
    violation: bool = False
    delay_ms: int | None = None
    why: str = ""


class Looking:
    """The lookups of one probe."""

    def __init__(self, talk: Talk, names: Names, findings: Findings) -> None:
        self._talk, self._names, self._findings = talk, names, findings
        self._contract = talk.contract

    async def find(self, job: Job) -> list[Job]:
        """Look `job` up by every entry. One that has no name yet gets it here. Gives jobs that should not be there."""
        if not self._contract.reconcile:
            self._findings.say("lookup.finds", "not_offered", says="reconcile: none")
            self._findings.say("lookup.absent", "not_offered", says="reconcile: none")
            self._mark(job, None)
        further: list[Job] = []
        for index, lookup in enumerate(self._contract.reconcile):
            if lookup.by == "webhook":
                self._findings.say("lookup.finds", "not_tried", says=f"reconcile.{index} by webhook", did="no webhook is received here")
                continue
            further += await self._find(job, lookup, index)
            await self._absent(lookup, index)
        return further

    async def _find(self, job: Job, lookup: Lookup, index: int) -> list[Job]:
        within = lookup.visible_within
        says = f"reconcile.{index} by {lookup.by}, visible_within {within.total_seconds():g}s"
        attempt, missed = 0, timedelta()
        while True:
            attempt += 1
            shown = await self._look(lookup, index, self._scope(job))
            took = datetime.now(UTC) - job.last_sent
            found = dict(shown.jobs or {})
            if shown.violation:
                self._findings.say("lookup.finds", "differs", says=says, did="it shows another job than the one asked for", seen=shown.seen)
                return []
            if found and (job.id is None or job.id in found):
                when = "at once" if attempt == 1 else f"after {took.total_seconds():.3g}s"
                late = math.ceil(took.total_seconds() * 2) if missed > within else None
                return self._found(job, lookup, index, shown, found, says, when, late)
            missed = took
            if took > max(within * LONGER, LEAST) or not await self._talk.pause(attempt, shown.delay_ms):
                break
        if found and job.id is not None:
            did = f"it shows {', '.join(plain(one) for one in found)}, and not {plain(job.id)}"
        else:
            did = shown.why or f"nothing after {took.total_seconds():.3g}s"
        over = took > within
        verdict = "differs" if over else "not_tried"
        self._findings.say("lookup.finds", verdict, says=says, did=did, seen=shown.seen)
        if over and lookup.match is not None and "mark" in roots_of(lookup.match):
            self._findings.say("mark", "differs", says=f"reconcile.{index} matches it", did=did, seen=shown.seen)
        return []

    def _found(
        self, job: Job, lookup: Lookup, index: int, shown: Shown, found: dict[str, dict[str, JsonValue]], says: str, when: str,
        late: int | None,
    ) -> list[Job]:  # fmt: skip
        """`late`: seconds that would be enough, where it was found too late."""
        exact = lookup.by == "get" or lookup.strength == "exact"
        if job.id is None and (exact or len(found) == 1):
            job.names = next(iter(found.values()))
            job.scope = replace(job.scope, job=cast("JsonValue", job.names))
        if exact and len(found) > 1:
            did = f"one request made {len(found)} jobs: {', '.join(plain(one) for one in found)}"
            self._findings.say("lookup.finds", "differs", says=f"{says}, one job", did=did, seen=shown.seen)
            return [self._further(job, names) for one, names in found.items() if one != job.id]
        did = f"found {when}" + ("" if exact else f", among {len(found)}")
        mends = [] if late is None else [Mend("set", ("reconcile", index, "visible_within"), f"{late}s", f"the job was found {when}")]
        self._findings.say("lookup.finds", "ok" if late is None else "differs", says=says, did=did, seen=shown.seen, mends=mends)
        self._mark(job, (lookup, index, shown))
        return []

    async def others(self, job: Job) -> list[Job]:
        """What exact lookups show besides a job of which the name is known: one look, that nothing is left going."""
        further: dict[str, Job] = {}
        for index, lookup in enumerate(self._contract.reconcile):
            if lookup.by == "list" and lookup.strength == "exact":
                shown = await self._look(lookup, index, self._scope(job), call="once more")
                further.update((one, self._further(job, names)) for one, names in (shown.jobs or {}).items() if one != job.id)
        return list(further.values())

    def _further(self, job: Job, names: dict[str, JsonValue]) -> Job:
        scope = replace(job.scope, job=cast("JsonValue", names))
        return Job("made by the same request", scope, job.request, job.sent, job.last_sent, names)

    def _mark(self, job: Job, by: tuple[Lookup, int, Shown] | None) -> None:
        planted = "mark" in _roots(self._contract.create.request) or "mark" in {
            root for step in self._contract.create.before for root in _roots(step.request)
        }
        if not planted:
            self._findings.say("mark", "not_offered", says="the contract plants no mark")
        elif by is not None and by[0].match is not None and "mark" in roots_of(by[0].match):
            self._findings.say("mark", "ok", says=f"reconcile.{by[1]} matches it", did="the job was found by it", seen=by[2].seen)
        else:
            self._findings.say("mark", "not_offered", says="a mark is planted, and no entry of reconcile matches it")

    async def _absent(self, lookup: Lookup, index: int) -> None:
        """Under names that were never sent: nothing may be found. A lookup by guess, or by steps, has no such names."""
        roots = _roots(lookup.request) | (roots_of(lookup.match) if lookup.match else frozenset[str]())
        says = f"reconcile.{index}: " + ("absent" if lookup.by == "get" else "no match")
        if not roots & _OURS or "steps" in roots or (lookup.by == "list" and lookup.strength != "exact"):
            self._findings.say("lookup.absent", "not_offered", says=says, did="it looks for nothing that is ours alone")
            return
        shown = await self._look(
            lookup, index, replace(self._names.scope(NEVER, "lookup"), window=_window(None, None)), call="where nothing is"
        )
        claims = lookup.by == "list" or any(answer.word == "absent" for answer in lookup.answers)
        if shown.jobs:
            did = f"it shows {', '.join(plain(one) for one in shown.jobs)}"
            self._findings.say("lookup.absent", "differs", says=says, did=did, seen=shown.seen)
        elif shown.jobs is None and claims and not shown.violation:
            self._findings.say("lookup.absent", "differs", says=says, did=shown.why, seen=shown.seen)
        elif shown.violation:
            self._findings.say("lookup.absent", "differs", says=says, did="it shows another job", seen=shown.seen)
        else:
            self._findings.say("lookup.absent", "ok", says=says, did="nothing", seen=shown.seen)

    # --- one look -------------------------------------------------------------------------------------------------------

    def _scope(self, job: Job) -> Scope:
        return replace(job.scope, window=_window(job.sent, job.last_sent))

    async def _look(self, lookup: Lookup, index: int, scope: Scope, *, call: str = "") -> Shown:
        assert lookup.request is not None
        name = f"reconcile.{index} {call}".strip()
        scope = replace(scope, call_id=f"{self._names.id}.lookup.{index}")
        if lookup.by == "list":
            return await self._list(lookup, lookup.request, name, scope)
        request = await self._talk.made(lookup.request, scope)
        if isinstance(request, Unsent):
            return Shown((), why=request.why)
        found, seen = await self._ask(lookup, name, request, scope)
        if found is None:
            return Shown((seen,), why=f"no answer ({seen.no_answer})")
        jobs = {str(found.job["id"]): found.job} if found.meaning == "found" else {} if found.meaning == "absent" else None
        return Shown((seen,), jobs, found.meaning == "violation", found.delay_ms, f"{found.word} ({seen.status})")

    async def _list(self, lookup: Lookup, model: RequestModel, name: str, scope: Scope) -> Shown:
        jobs: dict[str, dict[str, JsonValue]] = {}
        seen: list[Seen] = []
        found, trail, items, base = Found("page"), Trail(), 0, ""
        for page in range(lookup.pages.limit if lookup.pages else 1):
            here = replace(scope, call_id=f"{scope.call_id}.{page}", page=page_root(page, found.leads))
            url = found.leads.next_url if page else None
            request = await (self._talk.made(model, here) if url is None else self._talk.next_page(model, here, url, base))
            if isinstance(request, Unsent):
                return Shown(tuple(seen), why=request.why)
            read, one = await self._ask(lookup, name, request, here)
            seen.append(one)
            if read is None or read.meaning != "page":
                why = f"no answer ({one.no_answer})" if read is None else f"{read.word} ({one.status})"
                return Shown(tuple(seen), delay_ms=None if read is None else read.delay_ms, why=why)
            found, base, items = read, request.url, items + read.size
            jobs.update((str(job["id"]), job) for job in read.jobs)
            if not read.leads.more:
                return Shown(tuple(seen), dict(list(jobs.items())[:MAX_CANDIDATES]))
            if trail.leads_back(read.leads):
                return Shown(tuple(seen), why="the list leads back to a page that was read")
            if items > MAX_ITEMS or self._talk.left <= 0:
                break
        return Shown(tuple(seen), why="the list is longer than can be read")

    async def _ask(self, lookup: Lookup, name: str, request: Request, scope: Scope) -> tuple[Found | None, Seen]:
        """One answer. A call that is throttled says nothing of what is there, so it is asked again, and with it no page before it."""
        how, tries = read_get if lookup.by == "get" else read_page, 0
        while True:
            said = await self._talk.ask(name, request, "create", scope)
            if isinstance(said.outcome, NoAnswer):
                return None, said.seen
            found, tries = how(self._contract, lookup, said.outcome, scope, said.now), tries + 1
            said.seen.word = found.word if lookup.by == "get" or found.word == "throttled" else found.meaning
            if found.word != "throttled" or tries == STEP_TRIES or not await self._talk.pause(tries, found.delay_ms):
                return found, said.seen


def _window(first: datetime | None, last: datetime | None) -> JsonValue:
    if first is None or last is None:
        return None
    return {"from": instant_text(first - SLACK), "to": instant_text(last + SLACK)}


def _roots(request: RequestModel | None) -> frozenset[str]:
    """Every root that a request's templates name."""
    if request is None:
        return frozenset()
    bodies = (
        request.json_body,
        request.form,
        request.text,
        {name: part for name, part in (request.multipart or {}).items() if isinstance(part, str)},
    )
    trees: Sequence[JsonValue] = [
        request.path,
        request.url,
        dict(request.query),
        dict(request.headers),
        *cast("tuple[JsonValue, ...]", bodies),
    ]
    found: set[str] = set()
    for tree in trees:
        for _, text in texts_of(tree):
            try:
                found.update(root for hole in compile_template(text).holes for root in hole.roots)
            except BadInput:
                continue
    return frozenset(found)
