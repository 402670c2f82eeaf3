"""Sending one request of a probe, and what of it is kept as evidence.

* Requests are rendered, sent and read by what production uses, under the same policy of origins, credentials and limits.
* Nothing is sent after the probe's own end, and none sooner than the provider's hint or the contract's floor says.
* Each answer is looked at for what holds of any: where it sends the caller, and when it says to come back.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from urllib.parse import urljoin

from pydantic import JsonValue

from activities.ports import Provider, ResultStore, StreamedAnswer
from adapters.addresses import as_ip
from adapters.probing.findings import Findings, Mend, Seen
from adapters.probing.hints import look_at_hints
from domain.answer_matching import answer_scope
from domain.call_policy import call_policy
from domain.contract import Contract
from domain.errors import AddressError, NotFound, RenderError
from domain.evidence import instant_text
from domain.exchange import REDIRECTS, Answer, Exchange, NoAnswer, Request, StoredPart
from domain.fingerprint import sha256_hex
from domain.language.calls import Request as RequestModel
from domain.language.calls import Step
from domain.language.expressions import Scope
from domain.language.stages import Poll
from domain.language.templates import fill_text
from domain.origins import Origin, origin_of, shown_url
from domain.paging import Trail, next_page, page_root
from domain.polling import next_delay
from domain.rendering import render
from domain.sensitive import find
from domain.steps import StepRead, read_step

Stage = Literal["create", "result", "cancel", "collect"]
STEP_TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class Said:
    """One request and what came of it. `now` is when it had come."""

    seen: Seen
    outcome: Answer | NoAnswer
    now: datetime


@dataclass(frozen=True, slots=True)
class Unsent:
    """Why a request could not be made."""

    why: str
    elsewhere: bool = False


class Talk:
    """The conversation of one probe with one endpoint. `until` is its end, on the event loop's clock."""

    def __init__(
        self, contract: Contract, target: dict[str, JsonValue], tenant: str, provider: Provider, files: ResultStore, findings: Findings,
        until: float,
    ) -> None:  # fmt: skip
        self.contract, self.target, self.findings, self.until = contract, target, findings, until
        self._policy = call_policy(contract, target, tenant)
        self._provider, self._files = provider, files
        self.hidden: dict[str, None] = {}
        self.blind = False
        self.poll = contract.observe.poll if contract.observe else Poll()

    @property
    def left(self) -> float:
        """Seconds until the probe ends."""
        return self.until - asyncio.get_running_loop().time()

    def span(self, stage: Stage) -> timedelta:
        """How long the contract gives a stage."""
        found: timedelta = getattr(self.contract.deadlines, stage)
        return found

    # --- time -----------------------------------------------------------------------------------------------------------

    async def pause(self, attempt: int, delay_ms: int | None, *, end: float | None = None) -> bool:
        """Wait as an operation would; False, at once, where that would last longer than there is time."""
        now = datetime.now(UTC)
        asked = None if delay_ms is None else timedelta(milliseconds=delay_ms)
        delay = next_delay(self.poll, hint=asked, attempt=attempt, seed="probe", now=now, deadline=now + timedelta(days=31))
        last = self.until if end is None else min(self.until, end)
        if asyncio.get_running_loop().time() + delay.total_seconds() > last:
            return False
        await asyncio.sleep(delay.total_seconds())
        return True

    # --- requests -------------------------------------------------------------------------------------------------------

    async def made(self, model: RequestModel, scope: Scope, *, accept: str = "application/json") -> Request | Unsent:
        """A request, or why there is none. An address of a host that is not listed is found out here."""
        try:
            return await self._sealed(render(self.contract, model, scope, accept=accept))
        except AddressError as error:
            self._address_differs(_given(model, scope), error.message)
            return Unsent(error.message, elsewhere=True)
        except RenderError as error:
            return Unsent(error.message)

    async def _sealed(self, request: Request) -> Request:
        """With the digest of the whole body, where stored files are part of it: some ways of signing need it."""
        if not request.parts:
            return request
        whole = hashlib.sha256()
        for part in request.parts:
            if not isinstance(part, StoredPart):
                whole.update(part)
                continue
            try:
                async for chunk in self._files.read(part.key):
                    whole.update(chunk)
            except NotFound as error:
                raise RenderError(error.message) from None
        return replace(request, whole_sha256=whole.hexdigest())

    async def ask(self, call: str, request: Request, stage: Stage, scope: Scope) -> Said:
        """Send once, and read the whole answer. While a quota is used up nothing is sent: that is waited for, as an operation would."""
        held = 0
        while True:
            exchange = await self._provider.exchange(request, self._policy)
            kept = exchange.outcome.wait_ms if isinstance(exchange.outcome, NoAnswer) and exchange.outcome.word == "quota" else None
            held += 1
            if kept is None or not await self.pause(held, kept):
                return self._said(call, exchange, stage, scope)

    @asynccontextmanager
    async def fetch(self, call: str, request: Request, *, total_s: float) -> AsyncGenerator[tuple[Seen, StreamedAnswer]]:
        """Send once, and hand out the body piece by piece, as large as a result may be."""
        limits = self.contract.http.limits
        policy = replace(self._policy, max_bytes=limits.result_bytes, total_s=total_s)
        async with self._provider.stream(request, policy) as streamed:
            seen = self._noted(call, Exchange(request, streamed.began, datetime.now(UTC), streamed.answer))
            if isinstance(streamed.answer, Answer):
                self._look(seen, request, streamed.answer, "collect", Scope())
            yield seen, streamed

    def _said(self, call: str, exchange: Exchange, stage: Stage, scope: Scope) -> Said:
        seen = self._noted(call, exchange)
        if isinstance(exchange.outcome, Answer):
            if self.contract.record.sensitive:
                found = find(self.contract, exchange.outcome, scope)
                self.hidden.update(dict.fromkeys(found.texts))
                self.blind = self.blind or not found.whole
            self._look(seen, exchange.request, exchange.outcome, stage, scope)
        elif exchange.outcome.word == "address":
            self._address_differs(exchange.request.url, "the rules of addresses forbid it", seen)
        return Said(seen, exchange.outcome, exchange.ended)

    def _noted(self, call: str, exchange: Exchange) -> Seen:
        outcome = exchange.outcome
        seen = Seen(
            n=len(self.findings.exchanges) + 1,
            call=call,
            method=exchange.request.method,
            url=shown_url(exchange.request.url),
            began=instant_text(exchange.began),
            took_ms=max(0, round((exchange.ended - exchange.began).total_seconds() * 1000)),
        )
        if isinstance(outcome, Answer):
            seen.status, seen.fault = outcome.status, outcome.fault
            seen.body_sha256, seen.body_bytes = sha256_hex(outcome.body), len(outcome.body)
        else:
            seen.no_answer = outcome.word
        self.findings.exchanges.append(seen)
        return seen

    # --- what holds of any answer ---------------------------------------------------------------------------------------

    def _look(self, seen: Seen, request: Request, answer: Answer, stage: Stage, scope: Scope) -> None:
        location = answer.header("location")
        if answer.status in REDIRECTS and location:
            self.listed(urljoin(request.url, location.partition("#")[0]), "the answer sends there", seen)
        hints = (*self.contract.http.delay_hints, *(self.poll.hints if stage == "result" else ()))
        look_at_hints(self.findings, seen, hints, answer_scope(answer, scope), f"deadlines.{stage}", self.span(stage))

    def listed(self, url: str, what: str, seen: Seen | None = None) -> bool:
        """Whether the contract lets a request go to this address; that it does not is a difference."""
        try:
            if self.contract.auth_for(url, self.target) is not None:
                return True
            why = f"{what}, and neither http.base nor http.hosts has it"
        except AddressError as error:
            why = f"{what}: {error.message}"
        self._address_differs(url, why, seen)
        return False

    def _address_differs(self, url: str | None, why: str, seen: Seen | None = None) -> None:
        origin = _origin(url)
        where = "an address that is none" if origin is None else str(origin)
        listable = origin is not None and origin.scheme == "https" and as_ip(origin.host) is None
        note = f"list {where} only if it is the provider's own; it gets no credential"
        mends = [Mend("add", ("http", "hosts", where), "none", note)] if listable else []
        says = f"requests go to {', '.join(text for text, _ in self._policy.origins)} only"
        self.findings.say("addresses", "differs", says=says, did=f"{where}: {why}", seen=[seen or self.findings.newest], mends=mends)

    # --- steps ----------------------------------------------------------------------------------------------------------

    async def before(self, call: str, steps: Sequence[Step], scope: Scope, stage: Stage) -> Scope | Unsent:
        """The steps ahead of a call; the scope with what they saved."""
        for step in steps:
            saved = await self._step(f"{call}.before.{step.step}", step, replace(scope, call_id=f"{scope.call_id}.{step.step}"), stage)
            if isinstance(saved, Unsent):
                return saved
            known = scope.steps if isinstance(scope.steps, dict) else {}
            scope = replace(scope, steps={**known, step.step: saved})
        return scope

    async def ready(
        self, call: str, steps: Sequence[Step], model: RequestModel, scope: Scope, stage: Stage
    ) -> tuple[Request, Scope] | Unsent:
        """A request whose steps are done, and the scope with what they saved."""
        known = await self.before(call, steps, scope, stage)
        if isinstance(known, Unsent):
            return known
        request = await self.made(model, known)
        return request if isinstance(request, Unsent) else (request, known)

    async def _step(self, call: str, step: Step, scope: Scope, stage: Stage) -> dict[str, JsonValue] | Unsent:
        tries, read = 0, StepRead("page")
        while tries < STEP_TRIES:
            tries += 1
            done = await self._pages(call, step, scope, stage)
            if isinstance(done, Unsent):
                return done
            read = done
            if read.meaning == "done":
                return read.saved
            if read.meaning != "again" or not await self.pause(tries, read.delay_ms):
                break
        return Unsent(f"{call} is not done: {read.word} {read.reason or read.message or ''}".strip())

    async def _pages(self, call: str, step: Step, scope: Scope, stage: Stage) -> StepRead | Unsent:
        read, trail, base = StepRead("page"), Trail(), ""
        for index in range(step.pages.limit if step.pages else 1):
            here = replace(scope, page=page_root(index, read.leads)) if step.pages else scope
            request = await self._page(step.request, here, read.leads.next_url if index else None, base)
            if isinstance(request, Unsent):
                return request
            said = await self.ask(call, request, stage, here)
            if isinstance(said.outcome, NoAnswer):
                return StepRead("again", word=said.outcome.word, delay_ms=said.outcome.wait_ms)
            read = read_step(self.contract, step, said.outcome, here, said.now, before=read)
            said.seen.word, base = read.word, request.url
            if read.meaning != "page":
                return read
            if trail.leads_back(read.leads):
                break
        return replace(read, meaning="again", reason="its pages come to no end")

    async def _page(self, model: RequestModel, scope: Scope, url: str | None, base: str) -> Request | Unsent:
        return await self.made(model, scope) if url is None else await self.next_page(model, scope, url, base)

    async def next_page(
        self, model: RequestModel, scope: Scope, url: str, base: str, *, accept: str = "application/json"
    ) -> Request | Unsent:
        """The request for a page whose whole address was given."""
        try:
            return next_page(self.contract, model, scope, url, base, accept=accept)
        except AddressError as error:
            self._address_differs(urljoin(base, url), error.message)
            return Unsent(error.message, elsewhere=True)
        except RenderError as error:
            return Unsent(error.message)


def _given(model: RequestModel, scope: Scope) -> str | None:
    """The address that a request takes from an answer."""
    try:
        return None if model.url is None else fill_text(model.url, scope)
    except RenderError:
        return None


def _origin(url: str | None) -> Origin | None:
    try:
        return None if url is None else origin_of(url)
    except AddressError:
        return None
