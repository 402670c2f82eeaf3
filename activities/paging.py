"""Fetching an object that comes in pages.

* Each page is a sealed staged part, and behind it a cursor that says how many there are and what leads on: durable after each page, so
  that a later attempt asks for the next one and for none before it. When the last page is there, the parts are joined, in order, into
  the object; nothing is held whole.
* A page without a list where `items` says one is, one whose own count of rows is another than what it holds, one of another content
  type, and one that leads back to a page that was read, are problems: what is left out or doubled, no sum of good pages can mend.
* Pages end by the provider's word, by `limit`, by the room that the contract leaves a result, and by the collect deadline.
* A page's address may have been of short life: after a new status reading the walk begins again, unless only a cursor leads it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace
from typing import Final, cast

from activities.fetching import FINAL_FAULTS, TOO_LARGE, Download, Errand, Fetched, Rows, download, problem, unaddressed
from activities.ports import World, staged_below
from activities.recording import recorded, unanswered
from activities.sealing import sealed
from domain.answer_matching import answer_scope
from domain.bodies import media_type
from domain.errors import AddressError, RenderError
from domain.evidence import Json
from domain.exchange import Answer, NoAnswer, Request
from domain.language.calls import Pages
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.paging import Following, Trail, following, next_page, page_root
from domain.reading import Reading, read_collect
from domain.rendering import render
from domain.results.expectations import count_of
from domain.results.inline import line
from domain.results.joining import Joiner
from domain.results.measuring import Measurer

CURSOR: Final = "cursor"


@dataclass(frozen=True)
class Walk:
    """Pages that are staged, and what leads on from the last of them. `base`: its address. `rows`: what came of their own counts."""

    pages: int = 0
    size: int = 0
    next: Json = None
    next_url: str | None = None
    more: bool = True
    base: str | None = None
    media: str | None = None
    rows: Rows = None

    @property
    def leads(self) -> Following:
        """What leads on."""
        return Following(self.next, self.next_url, self.more)


@dataclass(frozen=True)
class Page:
    """One page that was had, its part sealed: how long that is, what leads on, and its rows as counted and as the page says."""

    url: str
    answer: Answer
    size: int
    leads: Following
    rows: int | None
    said: Json


async def pages(errand: Errand, *, afresh: bool) -> Fetched:
    """All pages, from the first that is not staged yet. `afresh`: addresses were renewed since."""
    how = errand.source.pages
    assert how is not None
    walk, trail = await _resumed(errand)
    if afresh and walk.next_url is not None:
        walk, trail = Walk(), Trail()
    last, answered = Fetched(Reading("done", word="staged")), None
    while walk.more:
        if (until := errand.until) is not None and errand.world.clocks.now() >= until:
            return Fetched(Reading("again", word="deadline"))
        if walk.pages >= how.limit:
            return problem(f"the result goes on after {how.limit} pages, which is the contract's limit")
        page = await _page(errand, how, walk)
        if isinstance(page, Fetched):
            if page.reading.meaning == "gone":
                # What led here leads here no more: whoever asks again begins anew.
                await errand.world.results.discard(staged_below(errand.staging, CURSOR))
            return page
        found, last = page
        answered = found.answer
        stepped = _stepped(how, walk, found)
        if isinstance(stepped, str):
            return replace(problem(stepped), http=last.http)
        if stepped.more and trail.leads_back(stepped.leads):
            return replace(problem(f"page {stepped.pages} leads back to a page that was read"), http=last.http)
        walk = stepped
        await _note(errand, walk, trail)
    return await _joined(errand, walk, last, answered)


def _stepped(how: Pages, walk: Walk, page: Page) -> Walk | str:
    """The walk with one more page, or why it can't go on."""
    number, media = walk.pages + 1, page.answer.header("content-type")
    if walk.media is not None and _kind(media) != _kind(walk.media):
        return f"page {number} came as {_kind(media)}, the first as {_kind(walk.media)}"
    rows = walk.rows
    if how.records:
        said = count_of(page.said)
        if page.said is None:
            rows = "not_offered"
        elif said is None or said != page.rows:
            found = "rows that can't be counted" if page.rows is None else page.rows
            return f"page {number} says that it has {'no number of' if said is None else said} rows, and has {found}"
        else:
            rows = rows or "ok"
    leads = page.leads
    return Walk(number, walk.size + page.size, leads.next, leads.next_url, leads.more, page.url, walk.media or media, rows)


def _kind(media: str | None) -> str:
    return "no content type" if media is None else media_type(media)[0]


async def _page(errand: Errand, how: Pages, walk: Walk) -> tuple[Page, Fetched] | Fetched:
    """One page, staged as the next part; or what came instead."""
    root = page_root(walk.pages, walk.leads)
    scope = replace(errand.scope, page=root, call_id=f"{errand.scope.call_id}.{walk.pages}")
    part, room = _part(errand, walk.pages + 1), errand.room - walk.size
    try:
        request = await sealed(errand.world, _request(errand, how, scope, walk))
    except (RenderError, AddressError) as error:
        return unaddressed(error)
    if how.items:
        return await _listed(errand, how, request, scope, part, room)
    measurer = Measurer(errand.output.format) if how.records else None
    got = await download(errand, request, scope, part, measurer, room)
    if not got.sealed:
        return got.fetched
    measured = measurer.finish() if measurer else None
    return _page_of(how, request, scope, got, None if measured is None else measured.records)


def _request(errand: Errand, how: Pages, scope: Scope, walk: Walk) -> Request:
    contract, accept = errand.case.contract, "application/json" if how.items else "*/*"
    if walk.next_url is not None and walk.base is not None:
        return next_page(contract, errand.request, scope, walk.next_url, walk.base, accept=accept)
    return render(contract, errand.request, scope, accept=accept)


def _page_of(how: Pages, request: Request, scope: Scope, got: Download, rows: int | None) -> tuple[Page, Fetched] | Fetched:
    """What a page says of itself and of the next one."""
    here = answer_scope(got.answer, scope)
    try:
        leads = following(how, here)
        said = first_value(how.records, here) if how.records else None
    except TooMuch:
        leads, said = None, None
    if leads is None:
        return replace(problem(f"what leads on from page {_number(scope)} can't be read"), http=got.fetched.http)
    return Page(request.url, got.answer, got.size, leads, rows, said), got.fetched


async def _listed(errand: Errand, how: Pages, request: Request, scope: Scope, part: str, room: int) -> tuple[Page, Fetched] | Fetched:
    """A page whose list is kept as lines; it is read whole, so it is no larger than an answer may be."""
    world, case = errand.world, errand.case
    exchange = await world.provider.exchange(request, case.policy(max_bytes=case.contract.http.limits.response_bytes))
    http, answer = await recorded(world, case, exchange), exchange.outcome
    if isinstance(answer, NoAnswer):
        refused = unaddressed(AddressError("the address of a page is not one that may be called")) if answer.word == "address" else None
        why = unanswered(answer, world.clocks.now()).reason
        return replace(refused or Fetched(Reading("again", word=answer.word, reason=why, delay_ms=answer.wait_ms)), http=http)
    reading = await asyncio.to_thread(read_collect, case.contract, errand.source, answer, scope, world.clocks.now())
    fetched = Fetched(reading, media=answer.header("content-type"), http=http)
    if answer.fault in FINAL_FAULTS and 200 <= answer.status < 300:
        return replace(fetched, problem=f"page {_number(scope)}: {FINAL_FAULTS[answer.fault]}")
    if reading.meaning != "done":
        return replace(fetched, cut=answer.fault is not None and 200 <= answer.status < 300)
    lines = await asyncio.to_thread(_lines, how, answer, scope)
    if lines is None:
        return replace(fetched, problem=f"page {_number(scope)} holds no list where the contract says it is")
    data = b"".join(lines)
    if len(data) > room:
        return replace(fetched, problem=TOO_LARGE)
    async with world.results.stage(part) as staged:
        await staged.write(data)
        await staged.seal()
    return _page_of(how, request, scope, Download(fetched, answer, len(data), sealed=True), len(lines))


def _number(scope: Scope) -> object:
    return scope.page["number"] if isinstance(scope.page, dict) else None


def _lines(how: Pages, answer: Answer, scope: Scope) -> list[bytes] | None:
    try:
        items = first_value(how.items, answer_scope(answer, scope))
    except TooMuch:
        return None
    return [line(item) for item in items] if isinstance(items, list) else None


async def _joined(errand: Errand, walk: Walk, last: Fetched, answered: Answer | None) -> Fetched:
    """The parts as one object, measured on the way. Parts and cursor stay until the object is sealed."""
    world, format = errand.world, errand.output.format
    joiner, measurer = Joiner(format), Measurer(format)
    async with world.results.stage(errand.staging) as staged:
        async for piece in _pieces(errand, joiner, walk.pages):
            measurer.feed(piece)
            await staged.write(piece)
            await asyncio.sleep(0)
        if joiner.problem is not None:
            return replace(problem(joiner.problem), http=last.http)
        await errand.note_checks(answered)
        await staged.seal(walk.media)
    await world.results.discard(_parts(errand))
    return replace(last, measured=measurer.finish(), media=walk.media, page_rows=walk.rows)


async def _pieces(errand: Errand, joiner: Joiner, pages: int) -> AsyncIterator[bytes]:
    for number in range(1, pages + 1):
        joiner.begin()
        async for chunk in errand.world.results.read_staged(_part(errand, number)):
            if piece := joiner.feed(chunk):
                yield piece
        if piece := joiner.end():
            yield piece


# --- what is durable --------------------------------------------------------------------------------------------------


def _parts(errand: Errand) -> str:
    return staged_below(errand.staging, "pages")


def _part(errand: Errand, number: int) -> str:
    """A hundred to a folder: what a folder costs grows with what is in it."""
    return staged_below(_parts(errand), f"{number // 100:04d}/{number:06d}")


async def _note(errand: Errand, walk: Walk, trail: Trail) -> None:
    data = json.dumps({**asdict(walk), "source": errand.output.source.index(errand.source), "trail": trail.kept}).encode()
    async with errand.world.results.stage(staged_below(errand.staging, CURSOR)) as staged:
        await staged.write(data)
        await staged.seal()


async def _resumed(errand: Errand) -> tuple[Walk, Trail]:
    """How far an earlier attempt got with the same source, and by what way."""
    kept = await kept_json(errand.world, staged_below(errand.staging, CURSOR))
    if kept is None or kept.pop("source") != errand.output.source.index(errand.source):
        return Walk(), Trail()
    trail = Trail.resumed(str(kept.pop("trail", "")))
    return Walk(**kept), trail  # pyright: ignore[reportArgumentType]  # the shape that _note wrote


async def page_rows(world: World, staging: str) -> Rows:
    """What came of the pages' own counts, of an object that was joined."""
    kept = await kept_json(world, staged_below(staging, CURSOR))
    return None if kept is None else cast("Rows", kept["rows"])


async def kept_json(world: World, staging: str) -> dict[str, Json] | None:
    """A small object of ours that was staged, or None."""
    if await world.results.staged_size(staging) is None:
        return None
    return cast("dict[str, Json]", json.loads(b"".join([chunk async for chunk in world.results.read_staged(staging)])))
