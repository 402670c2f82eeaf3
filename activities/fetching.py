"""Fetching one object: from the answer that is known, or by one request whose answer streams into staging.

* Bytes are hashed, counted and checked on the way, never held whole. Only what an answer may have of them is kept for reading.
* An address that the contract does not list is never called. Neither that nor one that can't be made gets better by asking again, so
  it is a problem of the result and not a wait: the provider promised an address, and this is none.
* What is larger than the contract allows, or comes in an encoding that was not offered, is a problem too; what breaks off is a wait.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from activities.case import Case
from activities.ports import World, staged_below
from activities.recording import http_facts, recorded, unanswered
from activities.sealing import sealed
from activities.stepping import UNRENDERABLE
from domain.answer_matching import DEFAULT
from domain.bodies import headers_root
from domain.errors import AddressError, RenderError
from domain.evidence import Http, bounded
from domain.exchange import REDIRECTS, Answer, Exchange, NoAnswer, Request
from domain.language.calls import Output, Source
from domain.language.calls import Request as RequestModel
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.lifecycle import next_step
from domain.origins import origin_of
from domain.reading import Reading, read_collect
from domain.rendering import render
from domain.results.expectations import expectations, passing
from domain.results.inline import inline_bytes
from domain.results.measuring import Measured, Measurer

TOO_LARGE: Final = "the result is larger than the contract allows"
FINAL_FAULTS: Final = {"oversized": TOO_LARGE, "encoding": "the result's encoding is not one we offered"}
CHECKS: Final = "checks"
Rows = Literal["ok", "not_offered"] | None
"""What came of the counts of rows that pages say of themselves; None where none was asked for. One that differs is a problem."""


@dataclass(frozen=True)
class Fetched:
    """What came of fetching: a sealed staged object that was measured, or a reading that says why there is none.

    `problem`: it breaks what was promised; `why`: in our words, what a wait is about. `elsewhere`: the address was one that may not be
    called, so nothing was sent there; another reading may give another.
    """

    reading: Reading
    measured: Measured | None = None
    media: str | None = None
    http: Http | None = None
    cut: bool = False
    problem: str | None = None
    why: str | None = None
    elsewhere: bool = False
    page_rows: Rows = None


@dataclass(frozen=True)
class Errand:
    """What one object is fetched by: which source, what its templates know, where it is staged, how many bytes there is room for."""

    world: World
    case: Case
    output: Output
    source: Source
    scope: Scope
    staging: str
    room: int

    @property
    def request(self) -> RequestModel:
        """The request of a source that is fetched."""
        assert self.source.request is not None
        return self.source.request

    @property
    def until(self) -> datetime | None:
        """When collecting ends."""
        return next_step(self.case.standing).until

    async def note_checks(self, answer: Answer | None = None) -> None:
        """Before the object is sealed: keep what it is to be checked against, where only this attempt can see that."""
        if passing(self.output.verify):
            scope = self.scope if answer is None else replace(self.scope, status=answer.status, headers=headers_root(answer))
            async with self.world.results.stage(staged_below(self.staging, CHECKS)) as staged:
                await staged.write(json.dumps(expectations(self.output, scope).to_json()).encode())
                await staged.seal()


def problem(text: str, *, word: str = "done", elsewhere: bool = False) -> Fetched:
    """The result breaks what was promised of it."""
    return Fetched(Reading("done", word=word), problem=bounded(text), elsewhere=elsewhere)


def unaddressed(error: RenderError | AddressError) -> Fetched:
    """No request can be made of what the provider gave."""
    return problem(f"nothing was sent: {error.message}", word=UNRENDERABLE, elsewhere=isinstance(error, AddressError))


async def inline(errand: Errand) -> Fetched:
    """What the answer that is known holds."""
    try:
        value = first_value(errand.source.inline, errand.scope)
    except TooMuch:
        value = None
    if value is None:
        return problem("the answer holds no result where the contract says it is", word="inline")
    data = inline_bytes(value, errand.output.format)
    if len(data) > min(errand.case.contract.http.limits.response_bytes, errand.room):
        return problem(TOO_LARGE, word="inline")
    measurer = Measurer(errand.output.format)
    await errand.note_checks()
    async with errand.world.results.stage(errand.staging) as staged:
        measurer.feed(data)
        await staged.write(data)
        await staged.seal()
    return Fetched(Reading("done", word="inline"), measured=measurer.finish())


async def stream(errand: Errand) -> Fetched:
    """One request whose whole answer is the object."""
    try:
        request = await sealed(errand.world, render(errand.case.contract, errand.request, errand.scope, accept="*/*"))
    except (RenderError, AddressError) as error:
        return unaddressed(error)
    measurer = Measurer(errand.output.format)
    got = await download(errand, request, errand.scope, errand.staging, measurer, errand.room, sealing=errand.note_checks)
    return replace(got.fetched, measured=measurer.finish()) if got.sealed else got.fetched


@dataclass(frozen=True)
class Download:
    """One answer that streamed into staging. `answer` has no more of the body than an answer may have, and none of a larger one."""

    fetched: Fetched
    answer: Answer = field(default_factory=lambda: Answer(0))
    size: int = 0
    sealed: bool = False


async def download(
    errand: Errand,
    request: Request,
    scope: Scope,
    staging: str,
    measurer: Measurer | None,
    room: int,
    *,
    sealing: Callable[[Answer], Awaitable[None]] | None = None,
) -> Download:
    """Send, and stage the body of a good answer; it is sealed if the answer is what the contract calls done."""
    world, case = errand.world, errand.case
    limits, now, until = case.contract.http.limits, world.clocks.now(), errand.until
    total = max(case.contract.http.timeouts.total.total_seconds(), (until - now).total_seconds() if until else 0.0)
    async with world.provider.stream(request, case.policy(max_bytes=room, total_s=total)) as streamed:
        head = streamed.answer
        if isinstance(head, NoAnswer):
            now = world.clocks.now()
            return Download(_unanswered(head, http_facts(Exchange(request, streamed.began, now, head)), now))
        body, size, good = bytearray(), 0, 200 <= head.status < 300
        async with world.results.stage(staging) as staged:
            async for chunk in _bounded(streamed.chunks(), None if good else limits.response_bytes):
                size += len(chunk)
                if len(body) < limits.response_bytes:
                    body += chunk[: limits.response_bytes - len(body)]
                if good:
                    if measurer is not None:
                        measurer.feed(chunk)
                    await staged.write(chunk)
            answer = replace(head, body=await asyncio.to_thread(streamed.masked, bytes(body)), fault=streamed.fault)
            whole = answer if size <= limits.response_bytes else replace(answer, body=b"")
            reading = await asyncio.to_thread(read_collect, case.contract, errand.source, whole, scope, world.clocks.now())
            http = await _answer_facts(world, case, Exchange(request, streamed.began, world.clocks.now(), answer), size)
            fetched = _judged(Fetched(reading, media=head.header("content-type"), http=http), answer, good=good)
            if fetched.problem is not None or fetched.cut or answer.fault is not None or reading.meaning != "done":
                return Download(fetched, whole, size)
            if sealing is not None:
                await sealing(whole)
            await staged.seal(head.header("content-type"))
    return Download(fetched, whole, size, sealed=True)


def _unanswered(head: NoAnswer, http: Http, now: datetime) -> Fetched:
    if head.word == "address":
        # By the operator's rules, or by those of every executor (private and metadata addresses): asking again changes neither.
        refused = problem("nothing was sent: the address of the result is not one that may be called", word=head.word, elsewhere=True)
        return replace(refused, http=http)
    reading = Reading("again", word=head.word, reason=unanswered(head, now).reason, delay_ms=head.wait_ms)
    return Fetched(reading, http=http)


def _judged(fetched: Fetched, answer: Answer, *, good: bool) -> Fetched:
    if good and answer.fault in FINAL_FAULTS:
        return replace(fetched, problem=FINAL_FAULTS[answer.fault])
    if answer.fault is not None:
        return replace(fetched, cut=good)
    if answer.status in REDIRECTS and fetched.reading.word == DEFAULT:
        # A wait and no problem: a provider under maintenance sends everybody to another page for a while.
        return replace(fetched, why=_leads_elsewhere(answer), elsewhere=True)
    return fetched


def _leads_elsewhere(answer: Answer) -> str:
    """A redirect that was not followed: the contract allows none, or none to there."""
    location = answer.header("location") or ""
    try:
        where = str(origin_of(location))
    except AddressError:
        where = "another address"
    return bounded(f"the answer sends to {where}, where the contract lets no request go; nothing was sent there")


async def _answer_facts(world: World, case: Case, exchange: Exchange, size: int) -> Http:
    """What is recorded of the answer. Its body is one that may be kept only where it is no larger than an answer may be."""
    if size <= case.contract.http.limits.response_bytes:
        return await recorded(world, case, exchange)
    head = replace(exchange, outcome=replace(exchange.outcome, body=b"")) if isinstance(exchange.outcome, Answer) else exchange
    return (await recorded(world, case, head)).model_copy(update={"body_sha256": None, "body_bytes": size})


async def _bounded(chunks: AsyncIterator[bytes], limit: int | None) -> AsyncIterator[bytes]:
    taken = 0
    async for chunk in chunks:
        yield chunk
        taken += len(chunk)
        if limit is not None and taken >= limit:
            return
