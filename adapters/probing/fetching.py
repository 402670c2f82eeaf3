"""Fetching one object of a result, measured while it passes: from the answer that is known, by one request, or page by page.

* Nothing is stored, and of an answer no more is held than an answer may have.
* How pages are joined, counted and led on is what an operation does; that they end is the contract's limit, and ours.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from adapters.probing.findings import Seen, plain
from adapters.probing.talking import Talk, Unsent
from domain.answer_matching import answer_scope
from domain.bodies import headers_root, media_type
from domain.exchange import Answer, NoAnswer
from domain.language.calls import Output, Pages, Source
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.paging import Following, Trail, following, page_root
from domain.reading import read_collect
from domain.results.expectations import Expectations, count_of, expectations
from domain.results.inline import inline_bytes, line
from domain.results.joining import Joiner
from domain.results.measuring import Measured, Measurer
from domain.results.pieces import Piece

PAGES: Final = 200


@dataclass(frozen=True, slots=True)
class Had:
    """One object that was measured, or what came instead. `again`: it may come yet; `cut`: the probe ended before
    the contract's deadline did.
    """

    seen: tuple[Seen, ...]
    measured: Measured | None = None
    media: str | None = None
    expected: Expectations | None = None
    why: str = ""
    again: bool = False
    delay_ms: int | None = None
    pages: str | None = None
    cut: bool = False


class Fetching:
    """The fetching of one probe's results."""

    def __init__(self, talk: Talk) -> None:
        self._talk, self._contract = talk, talk.contract

    async def had(self, piece: Piece, source: Source, scope: Scope) -> Had:
        """Fetch until it is there, or is known not to come."""
        end = asyncio.get_running_loop().time() + self._talk.span("collect").total_seconds()
        attempt = 0
        while True:
            attempt += 1
            if source.request is None:
                return self._inline(piece, source, scope)
            had = await (self._paged(piece, source, scope) if source.pages else self._whole(piece, source, scope))
            if not had.again or not await self._talk.pause(attempt, had.delay_ms, end=end):
                return replace(had, cut=had.again and end > self._talk.until)

    def _inline(self, piece: Piece, source: Source, scope: Scope) -> Had:
        try:
            value = first_value(source.inline, scope)
        except TooMuch:
            value = None
        seen = tuple(self._talk.findings.exchanges[-1:])
        if value is None:
            return Had(seen, why="the answer holds no result where the contract says it is")
        measurer = Measurer(piece.model.format)
        measurer.feed(inline_bytes(value, piece.model.format))
        return Had(seen, measurer.finish(), expected=expectations(piece.model, scope))

    async def _whole(self, piece: Piece, source: Source, scope: Scope) -> Had:
        assert source.request is not None
        request = await self._talk.made(source.request, scope, accept="*/*")
        if isinstance(request, Unsent):
            return Had((), why=f"nothing was sent: {request.why}")
        limit, measurer, body = self._contract.http.limits.response_bytes, Measurer(piece.model.format), bytearray()
        async with self._talk.fetch("collect", request, total_s=self.total_s()) as (seen, streamed):
            head = streamed.answer
            if isinstance(head, NoAnswer):
                return Had((seen,), why=f"no answer ({head.word})", again=head.word != "address", delay_ms=head.wait_ms)
            async for chunk in streamed.chunks():
                measurer.feed(chunk)
                body += chunk[: max(0, limit - len(body))]
                if measurer.size >= limit and not 200 <= head.status < 300:
                    break
            measured = await asyncio.to_thread(measurer.finish)
            answer = replace(head, body=streamed.masked(bytes(body)) if measured.size <= limit else b"", fault=streamed.fault)
        seen.body_bytes, seen.body_sha256, seen.fault = measured.size, measured.sha256, answer.fault
        had = self._read(source, answer, scope, seen)
        if had is not None:
            return had
        expected = expectations(piece.model, replace(scope, status=answer.status, headers=headers_root(answer)))
        return Had((seen,), measured, answer.header("content-type"), expected)

    def total_s(self) -> float:
        """Seconds that one transfer may take."""
        return max(1.0, min(self._talk.left, max(self._talk.span("collect").total_seconds(), 90.0)))

    def _read(self, source: Source, answer: Answer, scope: Scope, seen: Seen) -> Had | None:
        """What an answer means that is not the result; None if it is."""
        reading = read_collect(self._contract, source, answer, scope, at(seen))
        seen.word = reading.word
        if answer.fault in {"oversized", "encoding"}:
            return Had((seen,), why=f"the answer can't be taken ({answer.fault})")
        if answer.fault is not None:
            return Had((seen,), why=f"the answer is not whole ({answer.fault})", again=True, delay_ms=reading.delay_ms)
        if reading.meaning == "done":
            return None
        said = reading.message or reading.reason or ""
        why = f"{reading.word} ({answer.status}) {said}".strip()
        return Had((seen,), why=why, again=reading.meaning == "again", delay_ms=reading.delay_ms)

    # --- pages ----------------------------------------------------------------------------------------------------------

    async def _paged(self, piece: Piece, source: Source, scope: Scope) -> Had:
        assert source.request is not None
        assert source.pages is not None
        walk = _Walk(source.pages, piece.model, Joiner(piece.model.format), Measurer(piece.model.format))
        accept = "application/json" if source.pages.items else "*/*"
        for index in range(min(source.pages.limit, PAGES)):
            here = replace(scope, page=page_root(index, walk.leads), call_id=f"{scope.call_id}.{index}")
            url = walk.leads.next_url
            request = await (
                self._talk.made(source.request, here, accept=accept)
                if url is None
                else self._talk.next_page(source.request, here, url, walk.base, accept=accept)
            )
            if isinstance(request, Unsent):
                return walk.broken(f"nothing was sent: {request.why}")
            said = await self._talk.ask("collect, a page", request, "collect", here)
            walk.seen.append(said.seen)
            if isinstance(said.outcome, NoAnswer):
                return Had(tuple(walk.seen), why=f"no answer ({said.outcome.word})", again=True, delay_ms=said.outcome.wait_ms)
            had = self._read(source, said.outcome, here, said.seen)
            if had is not None:
                return replace(had, seen=tuple(walk.seen))
            problem = walk.take(said.outcome, here, request.url)
            if problem is not None:
                return walk.broken(problem)
            if not walk.leads.more:
                last = replace(here, status=said.outcome.status, headers=headers_root(said.outcome))
                media = "application/jsonl" if source.pages.items else walk.media
                return Had(tuple(walk.seen), walk.measurer.finish(), media, expectations(piece.model, last))
        return walk.broken("the pages go on after it")


@dataclass
class _Walk:
    """Pages as far as they were read, and what leads on from the last."""

    how: Pages
    output: Output
    joiner: Joiner
    measurer: Measurer
    leads: Following = field(default_factory=Following)
    trail: Trail = field(default_factory=Trail)
    seen: list[Seen] = field(default_factory=list[Seen])
    media: str | None = None
    base: str = ""

    def broken(self, why: str) -> Had:
        """Why the pages are no result."""
        said = f"page {len(self.seen)}: {why}"
        return Had(tuple(self.seen), why=said, pages=said)

    def take(self, answer: Answer, scope: Scope, url: str) -> str | None:
        """Take one page in; what is wrong with it, if something is."""
        problem = _problem(self.how, self.output, answer, scope, self.joiner, self.measurer)
        if problem is not None:
            return problem
        media = answer.header("content-type")
        if self.media is not None and media_type(media or "")[0] != media_type(self.media)[0]:
            return f"it came as {plain(media)}, the first as {plain(self.media)}"
        leads = _leads(self.how, answer, scope)
        if leads is None:
            return "what leads on from it can't be read"
        if leads.more and self.trail.leads_back(leads):
            return "it leads back to a page that was read"
        self.leads, self.media, self.base = leads, self.media or media, url
        return None


def _problem(how: Pages, output: Output, answer: Answer, scope: Scope, joiner: Joiner, measurer: Measurer) -> str | None:
    """Take one page in; what is wrong with it, if something is."""
    here = answer_scope(answer, scope)
    try:
        items = first_value(how.items, here) if how.items else None
        said = first_value(how.records, here) if how.records else None
    except TooMuch:
        return "it is more than can be read"
    if how.items:
        if not isinstance(items, list):
            return "it holds no list where the contract says it is"
        for item in items:
            measurer.feed(line(item))
        rows: int | None = len(items)
    else:
        joiner.begin()
        measurer.feed(joiner.feed(answer.body) + joiner.end())
        own = Measurer(output.format)
        own.feed(answer.body)
        rows = own.finish().records
    if joiner.problem is not None:
        return joiner.problem
    if said is not None and count_of(said) != rows:
        return f"it says that it has {plain(said)} rows, and has {rows}"
    return None


def _leads(how: Pages, answer: Answer, scope: Scope) -> Following | None:
    try:
        return following(how, answer_scope(answer, scope))
    except TooMuch:
        return None


def at(seen: Seen) -> datetime:
    """When an answer had come."""
    return datetime.fromisoformat(seen.began) + timedelta(milliseconds=seen.took_ms)
