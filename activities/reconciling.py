"""Settling a create whose outcome is unknown: our own late answers first, then the contract's lookups in order.

* A late answer is the outcome of an attempt whose owner had been replaced when it came. It was kept as a note; the owner reads it
  here and lets it count as its create word.
* One exact match is adopted. A heuristic match, or several, are shown to a human.
* Absence is concluded only from a lookup begun after the newest `send_until`, plus the total HTTP timeout, plus what the
  contract needs to show a job, plus a minute of skew: until then "none" is only "not yet".
* Nothing here can create anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from activities.calling import http_facts, read
from activities.case import Case, call_id
from activities.owning import append_as_owner, append_fact, late_of
from activities.ports import World
from activities.waiting import next_instant
from domain import lookups as reading
from domain.calls import Lookup as LookupModel
from domain.contract import Contract
from domain.errors import AddressError, RenderError
from domain.evidence import Clock, CreateExchange, Evidence, Http, Intent, Json, Late, Lookup, Words, instant, instant_text
from domain.exchange import Answer, NoAnswer, Request
from domain.expressions import Scope
from domain.lifecycle import next_step
from domain.lookups import Found
from domain.rendering import render
from domain.standing import Standing

WINDOW_SLACK = timedelta(minutes=1)
SKEW = timedelta(minutes=1)


async def read_late_notes(world: World, case: Case, *, turn: int) -> Case:
    """Read the oldest unread late answer. One at a time: each may move the state."""
    unread = case.standing.unread_late
    if not unread:
        return case
    seq = unread[0]
    entry = (await world.ledger.entries(case.record.stream, after=seq - 1, limit=1))[0]
    note = cast("Late", entry.evidence)
    answer = CreateExchange.model_validate(note.model_dump(exclude={"kind", "of"}))
    fact = late_of(answer, of=seq).model_copy(update={"at": instant(world.clocks.now()), "actor": world.identity})

    def decide(standing: Standing) -> Sequence[Evidence]:
        return [fact] if seq in standing.unread_late else []

    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))


async def end_at_deadline(world: World, case: Case, *, turn: int) -> Case:
    """Append the lookup clock if its deadline has passed."""
    now = instant(world.clocks.now())

    def decide(standing: Standing) -> Sequence[Evidence]:
        deadline = standing.deadlines.get("lookup")
        if standing.state != "reconciling" or deadline is None or now < deadline:
            return []
        return [Clock(at=now, actor="clock", meaning="lookup", deadline=deadline)]

    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))


async def look_up(world: World, case: Case, *, turn: int) -> Case:
    """One lookup by the contract's entry that is due, recorded with the move it allows."""
    index = case.standing.reconcile_entry
    lookup = case.contract.reconcile[index]
    began = instant(world.clocks.now())
    scope = _scope(case, index)
    case = await _intend(world, case, lookup, index, turn=turn)
    if case.standing.state != "reconciling" or case.standing.reconcile_entry != index:
        return case
    if lookup.by == "webhook":
        fact = _waited(world, case, lookup, index)
    else:
        seen = await (_get if lookup.by == "get" else _list)(world, case, lookup, scope)
        fact = _fact(world, case, lookup, index, seen, began)
    return case.at(await append_fact(world, case.record.stream, fact, turn=turn))


@dataclass(frozen=True)
class Seen:
    """What looking came to: how the last answer read, and the jobs that a list showed."""

    found: Found
    http: Http | None = None
    candidates: tuple[dict[str, Json], ...] = ()


def _scope(case: Case, index: int) -> Scope:
    standing = case.standing
    first, last = standing.first_intent_at, standing.last_intent_at
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


async def _get(world: World, case: Case, lookup: LookupModel, scope: Scope) -> Seen:
    return await _ask(world, case, lookup, scope, reading.read_get)


async def _list(world: World, case: Case, lookup: LookupModel, scope: Scope) -> Seen:
    """Page by page. A page that fails decides nothing, whatever the pages before it showed."""
    pages = lookup.pages
    assert pages is not None
    gathered: dict[str, dict[str, Json]] = {}
    cursor, url, total = None, None, 0
    for index in range(pages.limit):
        here = replace(scope, page={"next": cursor, "index": index, "number": index + 1})
        seen = await _ask(world, case, lookup, here, reading.read_page, url=url)
        if seen.found.meaning != "page":
            return seen
        total += len(seen.found.items)
        items = seen.found.items
        for job in await read(lambda items=items, here=here: reading.candidates(lookup, items, here), Answer(200)):
            gathered.setdefault(str(job["id"]), job)
        if not seen.found.more:
            return replace(seen, candidates=tuple(gathered.values()))
        following = (seen.found.next, seen.found.next_url)
        if following == (cursor, url) and following != (None, None):
            return Seen(Found("failed", message="the list does not advance from page to page"), seen.http)
        deadline = case.standing.deadlines.get("lookup")
        if total > reading.MAX_ITEMS or (deadline is not None and world.clocks.now() >= deadline):
            break
        cursor, url = following
    return Seen(Found("failed", message="the list is longer than can be read"))


Reader = Callable[[Contract, LookupModel, Answer, Scope, datetime], Found]


async def _ask(world: World, case: Case, lookup: LookupModel, scope: Scope, how: Reader, *, url: str | None = None) -> Seen:
    assert lookup.request is not None
    try:
        request = _next_page(case, lookup, scope, url)
    except (RenderError, AddressError) as error:
        return Seen(Found("failed", word="unrenderable", message=error.message))
    exchange = await world.provider.exchange(request, case.policy(max_bytes=case.contract.http.limits.response_bytes))
    outcome = exchange.outcome
    if isinstance(outcome, NoAnswer):
        return Seen(Found("failed", word=outcome.word), http_facts(exchange))
    now = instant(world.clocks.now())
    found = await read(lambda: how(case.contract, lookup, outcome, scope, now), outcome)
    return Seen(found, http_facts(exchange))


def _next_page(case: Case, lookup: LookupModel, scope: Scope, url: str | None) -> Request:
    model = lookup.request
    assert model is not None
    if url is None:
        return render(case.contract, model, scope)
    # A provider's own address of the next page: data, never a template.
    literal = url.replace("${", "$${")
    return render(case.contract, model.model_copy(update={"path": None, "url": literal, "query": {}}), scope)


def _fact(world: World, case: Case, lookup: LookupModel, index: int, seen: Seen, began: datetime) -> Lookup:
    standing = case.standing
    now = instant(world.clocks.now())
    base: dict[str, object] = {
        "at": now,
        "actor": world.identity,
        "entry": index,
        "word": seen.found.word,
        "http": seen.http,
        "words": Words(reason=seen.found.reason, code=seen.found.code, message=seen.found.message, request_id=seen.found.request_id),
        "next_at": _again(case, now, seen.found.delay_ms),
    }
    proof_from = _proof_from(standing, index)
    conclusive = proof_from is not None and began >= proof_from
    match seen.found.meaning:
        case "violation":
            base |= {"meaning": "violation", "violation": {"why": "the lookup names another job than the one asked for"}}
        case "found":
            base |= {"meaning": "found", "job": seen.found.job}
        case "absent":
            base |= {"meaning": "absent", "exhausted": True} if conclusive else _not_yet(standing, index, now, proof_from)
        case "page" if len(seen.candidates) == 1 and lookup.strength == "exact":
            base |= {"meaning": "found", "job": seen.candidates[0]}
        case "page" if seen.candidates:
            base |= {"meaning": "candidates", "candidates": seen.candidates, "exhausted": True}
        case "page" if lookup.proves_absence:
            base |= {"meaning": "absent", "exhausted": True} if conclusive else _not_yet(standing, index, now, proof_from)
        case "page":
            visible = _visible_from(standing, index)
            base |= {"meaning": "none", "exhausted": True} if began >= visible else {"meaning": "none", "next_at": visible}
        case _:
            base |= {"meaning": "failed"}
    return Lookup.model_validate(base)


def _not_yet(standing: Standing, index: int, now: datetime, proof_from: datetime | None) -> dict[str, object]:
    """No match, too early to prove anything: once more when a job would have had time to show, then when it is proof."""
    visible = _visible_from(standing, index)
    return {"meaning": "none", "next_at": visible if now < visible else (proof_from or visible)}


def _proof_from(standing: Standing, index: int) -> datetime | None:
    """From when a lookup may prove absence: the last byte that could have left, its answer, its visibility, and skew are over."""
    if standing.newest_send_until is None:
        return None
    return _visible_from(standing, index) + timedelta(milliseconds=standing.facts.http_total_ms) + SKEW


def _visible_from(standing: Standing, index: int) -> datetime:
    visible = standing.facts.visible_within_ms
    since = standing.newest_send_until or standing.state_since
    return since + timedelta(milliseconds=visible[index] if index < len(visible) else 0)


def _waited(world: World, case: Case, lookup: LookupModel, index: int) -> Lookup:
    """A callback may still come: an entry that only waits, and proves nothing when the wait is over."""
    now = instant(world.clocks.now())
    since = case.standing.last_intent_at or case.standing.state_since
    until = since + (lookup.wait or timedelta())
    return Lookup(at=now, actor=world.identity, meaning="none", entry=index, word="webhook", exhausted=now >= until, next_at=until)


def _again(case: Case, now: datetime, hint_ms: int | None) -> datetime:
    standing = case.standing
    deadline = standing.deadlines.get("lookup")
    return next_instant(case.contract, stream=case.record.stream, now=now, hint_ms=hint_ms, tries=standing.tries, deadline=deadline)
