"""Settling a create whose outcome is unknown: our own late answers first, then the contract's lookups in order.

* A late answer is the outcome of an attempt whose owner had been replaced when it came. It was kept as a note; the owner reads it
  here and lets it count as its create word.
* One exact match is adopted. A heuristic match, or several, are shown to a human.
* Absence is concluded only from a lookup begun after the newest `send_until`, plus the total HTTP timeout, plus what the
  contract needs to show a job, plus a minute of skew: until then "none" is only "not yet".
* A lookup looks at once, again until a job would have had time to show, and then when none would be proof. Where that lies past
  the deadline, or can never be proof, the next lookup is due instead.
* At the deadline one last look is made; if it settles nothing the clock is appended by this same activity.
* A list counts only if it was read to its end, within bounds of pages, items and time, and never twice over the same cursor. A page
  that is held back (a quota, a throttling) is waited for and asked again: begun anew, a list longer than the quota would never end.
* Nothing here can create anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, cast

from activities.case import Case, call_id
from activities.owning import append_as_owner, append_fact, late_of
from activities.ports import World
from activities.recording import read, recorded, unanswered
from activities.stepping import UNRENDERABLE
from activities.waiting import again, patience_of
from domain.contract import Contract
from domain.contradictions import DIFFERS, contradiction
from domain.errors import AddressError, RenderError
from domain.evidence import CreateExchange, Evidence, Http, Intent, Json, Late, Lookup, Words, instant, instant_text
from domain.exchange import Answer, NoAnswer, Request
from domain.language.calls import Lookup as LookupModel
from domain.language.expressions import Scope
from domain.lifecycle import next_step
from domain.lookups import MAX_CANDIDATES, MAX_ITEMS, Found, read_get, read_page
from domain.paging import Trail, next_page, page_root
from domain.rendering import render
from domain.standing import Standing, State

WINDOW_SLACK = timedelta(minutes=1)
SKEW = timedelta(minutes=1)

_LATER: Final[frozenset[State]] = frozenset({"proposed", "awaiting_approval", "approved"})
"""Before an attempt of a new generation there is nothing that a late answer of an older one could settle: it waits."""
_SHOWS_A_JOB: Final = frozenset({"accepted", "finished", "violation"})


async def read_late_notes(world: World, case: Case, *, turn: int) -> Case:
    """Let unread late answers count, the oldest first, until one moves the state."""
    state = case.standing.state
    if state in _LATER or case.standing.final:
        return case
    for seq in case.standing.unread_late:
        note = cast("Late", (await world.ledger.entries(case.record.stream, after=seq - 1, limit=1))[0].evidence)
        # While a create is due only a job counts: an older refusal says nothing about the attempt that is next.
        if state == "create_pending" and note.meaning not in _SHOWS_A_JOB:
            continue
        case = await _let_count(world, case, note, seq, turn=turn)
        if case.standing.state != state:
            break
    return case


async def _let_count(world: World, case: Case, note: Late, seq: int, *, turn: int) -> Case:
    answer = CreateExchange.model_validate(note.model_dump(exclude={"kind", "of"}))
    fact = late_of(answer, of=seq).model_copy(update={"at": instant(world.clocks.now()), "actor": world.identity})

    def decide(standing: Standing) -> Sequence[Evidence]:
        return [fact] if seq in standing.unread_late else []

    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))


async def look_up(world: World, case: Case, *, turn: int) -> Case:
    """One lookup by the contract's entry that is due, recorded with the move it allows."""
    index = case.standing.reconcile_entry
    lookup = case.contract.reconcile[index]
    began = instant(world.clocks.now())
    scope = _scope(case, index, began)
    case = await _intend(world, case, lookup, index, turn=turn)
    if case.standing.state != "reconciling" or case.standing.reconcile_entry != index:
        return case
    if lookup.by == "webhook":
        fact = _waited(world, case, lookup, index)
    else:
        seen = await (_ask(world, case, lookup, scope, read_get) if lookup.by == "get" else _list(world, case, lookup, scope))
        fact = _fact(world, case, lookup, index, seen, began)
    return case.at(await append_fact(world, case, fact, turn=turn))


@dataclass(frozen=True)
class Seen:
    """What looking came to: how the last answer read, and the jobs that a list showed."""

    found: Found
    http: Http | None = None
    asked: str | None = None
    candidates: tuple[dict[str, Json], ...] = ()


def _scope(case: Case, index: int, now: datetime) -> Scope:
    standing = case.standing
    first, last = standing.first_intent_at, standing.last_intent_at
    if standing.entries_lost:  # nobody knows any more when it was sent
        first, last = standing.opened.at, now
    window: Json = None
    if first is not None and last is not None:
        window = {"from": instant_text(first - WINDOW_SLACK), "to": instant_text(last + WINDOW_SLACK)}
    return case.scope(
        call_id=call_id(case.record.stream, "lookup", standing.generation, index),
        token=case.token(standing.generation),
        window=window,
    )


async def _intend(world: World, case: Case, lookup: LookupModel, index: int, *, turn: int) -> Case:
    intent = Intent(
        at=instant(world.clocks.now()), actor=world.identity, meaning="lookup", generation=case.standing.generation, entry=index,
        step=lookup.by,
    )  # fmt: skip

    def decide(standing: Standing) -> Sequence[Evidence]:
        return [intent] if next_step(standing).name == "reconcile" and standing.reconcile_entry == index else []

    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))


@dataclass
class Walk:
    """A list as far as it was read."""

    jobs: dict[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])
    items: int = 0
    trail: Trail = field(default_factory=Trail)

    def take(self, page: Found) -> str | None:
        """Add a page; why it cannot go on after it, if it cannot."""
        self.items += page.size
        for job in page.jobs:
            if len(self.jobs) < MAX_CANDIDATES:
                self.jobs.setdefault(str(job["id"]), job)
        if self.items > MAX_ITEMS:
            return TOO_LONG
        return "the list leads back to a page that was read" if self.trail.leads_back(page.leads) else None


TOO_LONG = "the list is longer than can be read"


async def _list(world: World, case: Case, lookup: LookupModel, scope: Scope) -> Seen:
    """Page by page. A page that fails decides nothing, whatever the pages before it showed."""
    assert lookup.pages is not None
    walk, patience = Walk(), patience_of(case, world.clocks)
    page, asked = Found("page"), None
    for index in range(lookup.pages.limit):
        here = replace(scope, call_id=f"{scope.call_id}.{index}", page=page_root(index, page.leads))
        seen = await _ask(world, case, lookup, here, read_page, url=page.leads.next_url, base=asked)
        while index and await patience.waits(world.clocks, seen.found.word, seen.found.delay_ms):
            seen = await _ask(world, case, lookup, here, read_page, url=page.leads.next_url, base=asked)
        if seen.found.meaning != "page":
            return seen
        page, asked = seen.found, seen.asked
        stuck = walk.take(page)
        if not page.leads.more:
            return replace(seen, candidates=tuple(walk.jobs.values()))
        if stuck or world.clocks.monotonic() > patience.until:
            return replace(seen, found=Found("failed", message=stuck or TOO_LONG))
    return Seen(Found("failed", message=TOO_LONG))


Reader = Callable[[Contract, LookupModel, Answer, Scope, datetime], Found]


async def _ask(
    world: World, case: Case, lookup: LookupModel, scope: Scope, how: Reader, *, url: str | None = None, base: str | None = None
) -> Seen:
    try:
        request = _rendered(case, lookup, scope, url, base)
    except (RenderError, AddressError) as error:
        return Seen(Found("failed", word=UNRENDERABLE, message=error.message))
    exchange = await world.provider.exchange(request, case.policy(max_bytes=case.contract.http.limits.response_bytes))
    outcome = exchange.outcome
    if isinstance(outcome, NoAnswer):
        said = unanswered(outcome, world.clocks.now())
        return Seen(Found("failed", word=outcome.word, reason=said.reason, delay_ms=outcome.wait_ms), await recorded(world, case, exchange))
    now = instant(world.clocks.now())
    found = await read(lambda: how(case.contract, lookup, outcome, scope, now), outcome)
    return Seen(found, await recorded(world, case, exchange), request.url)


def _rendered(case: Case, lookup: LookupModel, scope: Scope, url: str | None, base: str | None) -> Request:
    assert lookup.request is not None
    if url is None or base is None:
        return render(case.contract, lookup.request, scope)
    return next_page(case.contract, lookup.request, scope, url, base)


def _fact(world: World, case: Case, lookup: LookupModel, index: int, seen: Seen, began: datetime) -> Lookup:
    now, found = instant(world.clocks.now()), seen.found
    base: dict[str, object] = {
        "at": now,
        "actor": world.identity,
        "entry": index,
        "began": began,
        "word": found.word,
        "http": seen.http,
        "words": Words(reason=found.reason, code=found.code, message=found.message, request_id=found.request_id),
    }
    match found.meaning:
        case "violation":
            said = contradiction("the lookup", found.differs, DIFFERS, salt=case.asked.salt)
            base |= {"meaning": "violation", "violation": said}
        case "found":
            base |= {"meaning": "found", "job": found.job}
        case "page" if len(seen.candidates) == 1 and lookup.strength == "exact":
            base |= {"meaning": "found", "job": seen.candidates[0]}
        case "page" if seen.candidates:
            base |= {"meaning": "candidates", "candidates": seen.candidates, "exhausted": True}
        case "absent":
            base |= _nothing(case, index, began, now, proves=True)
        case "page":
            base |= _nothing(case, index, began, now, proves=lookup.proves_absence)
        case "failed":
            base |= {"meaning": "failed", "next_at": again(case, "lookup", now, found.delay_ms)}
    return Lookup.model_validate(base)


def _nothing(case: Case, index: int, began: datetime, now: datetime, *, proves: bool) -> dict[str, object]:
    """No match: proof, the end of this lookup, or too early to say either."""
    standing = case.standing
    visible, deadline = _visible_from(standing, index), standing.deadlines.get("lookup")
    proof = _proof_from(standing, visible) if proves else None
    if proof is not None and began >= proof:
        return {"meaning": "absent", "exhausted": True}
    if began < visible:
        return {"meaning": "none", "next_at": min(again(case, "lookup", now, None), visible)}
    if proof is None or (deadline is not None and proof > deadline):
        return {"meaning": "none", "exhausted": True}
    return {"meaning": "none", "next_at": proof}


def _proof_from(standing: Standing, visible: datetime) -> datetime | None:
    """From when a lookup may prove absence: the last byte that could have left, its answer, its visibility, and skew are over."""
    if not standing.absence_provable or standing.newest_send_until is None:
        return None
    return visible + timedelta(milliseconds=standing.facts.http_total_ms) + SKEW


def _visible_from(standing: Standing, index: int) -> datetime:
    """From when a job, made by the newest attempt, is seen by this lookup."""
    since = standing.newest_send_until or standing.state_since
    return since + timedelta(milliseconds=standing.facts.visible_within_ms[index])


def _waited(world: World, case: Case, lookup: LookupModel, index: int) -> Lookup:
    """A callback may still come: an entry that only waits, and proves nothing when the wait is over."""
    now, standing = instant(world.clocks.now()), case.standing
    until = (standing.last_intent_at or standing.state_since) + (lookup.wait or timedelta())
    over = now >= until
    deadline = standing.deadlines.get("lookup", until)
    return Lookup(
        at=now, actor=world.identity, meaning="none", entry=index, word="webhook", exhausted=over,
        next_at=None if over else min(until, deadline),
    )  # fmt: skip
