"""Steps: calls that run ahead of another call and save values for it.

* A step is inert: it is repeated freely, and what it leaves is harmless. So it is sent again after a lost answer, and after a crash
  between its answer and its entry; what the lost sending left is then known to nobody and stays where it is.
* The steps ahead of a reading, a cancel or a collecting are done anew each time and have no entries of their own: what they saw
  stands in the entry of the call they were for. The first that is not `done` stops the stage, which has then learned nothing.
* A step's pages are read to the end, within bounds of pages, bytes and time, and never twice over the same cursor. One that is held
  back (a quota, a throttling) is waited for, and none before it asked for again.
* Saved values are payloads, never parts of an entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from activities.case import Case
from activities.ports import World
from activities.recording import read, recorded, unanswered
from activities.sealing import sealed
from activities.waiting import patience_of
from domain.contradictions import DIFFERS, contradiction
from domain.errors import AddressError, RenderError
from domain.evidence import Http, Json, StepSeen, Words, instant
from domain.exchange import NoAnswer, Request
from domain.language.calls import Step
from domain.language.expressions import Scope
from domain.paging import Following, Trail, next_page, page_root
from domain.rendering import render
from domain.steps import StepRead, read_step

Meaning = Literal["done", "again", "refused", "violation"]
UNRENDERABLE = "unrenderable"
TOO_LONG = "the pages are more than can be read"
LEADS_BACK = "the pages lead back to one that was read"


@dataclass(frozen=True)
class StepDone:
    """What one step came to. `saved` is there only where it is done, `violation` only where it is one."""

    step: str
    meaning: Meaning
    word: str = "default"
    saved: dict[str, Json] = field(default_factory=dict[str, Json])
    http: Http | None = None
    words: Words = field(default_factory=Words)
    delay_ms: int | None = None
    pages: int = 1
    violation: dict[str, Json] = field(default_factory=dict[str, Json])

    @property
    def seen(self) -> StepSeen:
        """What is recorded of it in the entry of another call."""
        return StepSeen(step=self.step, word=self.word, pages=self.pages, http=self.http, words=self.words)


@dataclass(frozen=True)
class Before:
    """What the steps ahead of a call came to. `stopped`: the first that was not done; the call is then not sent."""

    scope: Scope
    seen: tuple[StepSeen, ...] = ()
    stopped: StepDone | None = None

    @property
    def word(self) -> str:
        """The word of the stage's own entry, where a step stopped it."""
        return "" if self.stopped is None else f"step {self.stopped.step}: {self.stopped.word}"


async def run_before(world: World, case: Case, steps: Sequence[Step], scope: Scope) -> Before:
    """The steps ahead of a call, in order, each seeing what the earlier saved. `scope` is the call's own, with its call id."""
    seen: list[StepSeen] = []
    for step in steps:
        done = await run_step(world, case, step, step_scope(scope, step))
        seen.append(done.seen)
        if done.meaning != "done":
            return Before(scope, tuple(seen), done)
        scope = knowing(scope, step, done.saved)
    return Before(scope, tuple(seen))


def step_scope(scope: Scope, step: Step) -> Scope:
    """The scope of a step, from the scope of the call that it is for."""
    return replace(scope, call_id=f"{scope.call_id}.{step.step}")


def knowing(scope: Scope, step: Step, saved: dict[str, Json]) -> Scope:
    """The scope with what a step saved."""
    known = scope.steps if isinstance(scope.steps, dict) else {}
    return replace(scope, steps={**known, step.step: saved})


def first_request(case: Case, step: Step, scope: Scope) -> Request:
    """The request of a step, or of its first page. Raises RenderError, AddressError."""
    return render(case.contract, step.request, replace(scope, page=page_root(0)) if step.pages else scope)


async def run_step(world: World, case: Case, step: Step, scope: Scope, *, first: Request | None = None) -> StepDone:
    """Send one step's request, with its pages, and read it. `first`: its first request, where that was recorded before."""
    limit, patience = step.pages.limit if step.pages else 1, patience_of(case, world.clocks)
    asked, trail, page = first, Trail(), _Page(StepRead("page"))
    for index in range(limit):
        try:
            request = asked or await sealed(world, _rendered(case, step, scope, page, index))
        except (RenderError, AddressError) as error:
            return StepDone(step.step, "refused", UNRENDERABLE, words=Words(message=error.message), pages=index + 1)
        asked = None
        here, before = _at_page(step, scope, index, page.read.leads), page
        page = await _ask(world, case, step, here, request, before)
        while index and await patience.waits(world.clocks, page.read.word, page.read.delay_ms):
            page = await _ask(world, case, step, here, request, before)
        if page.read.meaning != "page":
            return _done(case, step, page, index + 1)
        if trail.leads_back(page.read.leads):
            return _done(case, step, page, index + 1, LEADS_BACK)
        if world.clocks.monotonic() > patience.until:
            break
    return _done(case, step, page, limit, TOO_LONG)


@dataclass(frozen=True)
class _Page:
    """How the newest page read, what was seen of it, and its address, which the next may be relative to."""

    read: StepRead
    http: Http | None = None
    url: str | None = None


def _at_page(step: Step, scope: Scope, index: int, before: Following) -> Scope:
    if not step.pages:
        return scope
    return replace(scope, call_id=scope.call_id if index == 0 else f"{scope.call_id}.{index}", page=page_root(index, before))


def _rendered(case: Case, step: Step, scope: Scope, page: _Page, index: int) -> Request:
    here, url = _at_page(step, scope, index, page.read.leads), page.read.leads.next_url
    if url is None or page.url is None:
        return render(case.contract, step.request, here)
    return next_page(case.contract, step.request, here, url, page.url)


async def _ask(world: World, case: Case, step: Step, scope: Scope, request: Request, before: _Page) -> _Page:
    exchange = await world.provider.exchange(request, case.policy(max_bytes=case.contract.http.limits.response_bytes))
    http, outcome = await recorded(world, case, exchange), exchange.outcome
    if isinstance(outcome, NoAnswer):
        why = unanswered(outcome, world.clocks.now()).reason
        return _Page(StepRead("again", word=outcome.word, reason=why, delay_ms=outcome.wait_ms), http, request.url)
    now = instant(world.clocks.now())
    found = await read(lambda: read_step(case.contract, step, outcome, scope, now, before=before.read), outcome)
    return _Page(found, http, request.url)


def _done(case: Case, step: Step, page: _Page, pages: int, stuck: str | None = None) -> StepDone:
    found = page.read
    words = Words(reason=stuck or found.reason, code=found.code, message=found.message, request_id=found.request_id)
    meaning = "again" if found.meaning == "page" else found.meaning
    violation = contradiction(f"step {step.step}: the answer", found.differs, f"step {step.step}: {DIFFERS}", salt=case.asked.salt)
    return StepDone(
        step.step, meaning, found.word, found.saved, page.http, words, found.delay_ms, pages, violation if meaning == "violation" else {}
    )
