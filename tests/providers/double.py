"""The provider of one story: loopback servers that answer the n-th request with the n-th exchange, once it is what it must be.

* What `sent` says is compared, else the method and the path that the contract renders from what the story knows by then. Values that
  are made while a story runs (token, mark, ids) fit anything.
* The first request that is not what must come next is the end of the story: the double says what was wrong and answers 500 from then on.
* While a cancel is on its way, the exchange that it follows may be asked for again, and is answered as before.
* Several outputs are collected in the order of their names, whatever the order in the file: of exchanges that collect and stand side by
  side, the first that fits is the next.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from urllib.parse import urljoin, urlsplit

from pydantic import JsonValue

from domain.cases.calls import Call, calls_of
from domain.cases.matching import ANY, Arrived, differences
from domain.cases.models import Case, Ended, Given, Sent
from domain.cases.running import Ran, run_case
from domain.cases.scope import CALL_ID, MARK, OPERATION, Known, answer_of, scope_of
from domain.contract import Contract
from domain.exchange import Answer
from tests.adapters.loopback import serve
from tests.providers.relocating import Moved

Learn = Callable[[], Awaitable[Known]]
TOKEN_PATH = "/made-up-token"


@dataclass
class Double:
    """The script, as far as it is left to play: the exchanges that nobody asked for yet.

    `origins`: the servers, by the provider's origin that each stands for.
    """

    origins: dict[str, str]
    moved: Moved | None = None
    learn: Learn | None = None
    script: list[str] = field(default_factory=list[str])
    last: str | None = None
    wrong: str | None = None
    cancel_due: bool = False
    cancelled: bool = False
    asked: list[str] = field(default_factory=list[str])
    _knows: Given = field(default_factory=Given)
    _next_url: dict[str, str] = field(default_factory=dict[str, str])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def plays(self, moved: Moved, learn: Learn) -> None:
        """Play this story."""
        self.moved, self.learn, self.script = moved, learn, list(moved.story.exchanges)
        self._knows = moved.story.given.over(moved.cases.example)

    async def answer(self, arrived: Arrived) -> Answer | None:
        """What the script says; None for an answer that never comes."""
        async with self._turn:
            return await self._answer(arrived)

    async def _answer(self, arrived: Arrived) -> Answer | None:
        assert self.moved is not None
        assert self.learn is not None
        if urlsplit(arrived.url).path == TOKEN_PATH:
            return _json(200, {"access_token": "made-up-access-token", "token_type": "Bearer", "expires_in": 3600})
        self.asked.append(f"{arrived.method} {arrived.url}")
        if self.wrong is not None:
            return _json(500, {})
        known = _with_call_id(await self.learn(), arrived)
        contract = self.moved.contract
        problems: list[str] = []
        for index, name in self._next():
            found = self._problems(contract, case := self.moved.cases.named(name), arrived)
            if not found:
                self.last = self.script.pop(index)
                return self._says(contract, case, known)
            problems = found if index == 0 else problems
        if self.cancel_due and self.last and not self._problems(contract, before := self.moved.cases.named(self.last), arrived):
            return self._says(contract, before, known)
        due = f"{self.script[0]!r} was due, which is {'; '.join(problems)}" if self.script else "nothing more was due"
        self.wrong = f"{arrived.method} {arrived.url} came where {due}"
        return _json(500, {})

    def _next(self) -> list[tuple[int, str]]:
        """The exchanges that may come now, with their places in the script."""
        assert self.moved is not None
        calls = calls_of(self.moved.contract)
        found: list[tuple[int, str]] = []
        for index, name in enumerate(self.script):
            collects = calls[self.moved.cases.named(name).call].path[0] == "collect"
            if index and not collects:
                break
            found.append((index, name))
            if not collects:
                break
        return found

    def _problems(self, contract: Contract, case: Case, arrived: Arrived) -> list[str]:
        call = calls_of(contract)[case.call]
        sent = self._sent(contract, call, case)
        return [f"{key} {getattr(sent, key.split('.')[0])!r}, not {found}" for key, found in differences(sent, arrived)]

    def _sent(self, contract: Contract, call: Call, case: Case) -> Sent:
        """What must come: method and path as rendered, and whatever the case says."""
        ran, _ = run_case(contract, call, case, self._given(case))
        if ran is None or ran.request is None:
            return Sent.model_validate({"method": "GET", "path": "/a-request-that-cannot-be-made"})
        own = (MARK, OPERATION, CALL_ID, str(ran.scope.token))
        path = urlsplit(self._next_url.get(call.name) or ran.request.url).path
        loose = "/".join(ANY if any(part in segment for part in own) else segment for segment in path.split("/"))
        written = case.sent.model_dump(by_alias=True, exclude_unset=True) if case.sent else {}
        return Sent.model_validate({"method": ran.request.method} | ({} if "url" in written else {"path": loose}) | written)

    def _given(self, case: Case) -> Given:
        """What the case says is known, under what the story has learned."""
        given = case.given.over(self._knows)
        learned = {name: getattr(self._knows, name) for name in ("job", "steps") if getattr(self._knows, name)}
        if self._knows.observed is not None:
            learned["observed"] = self._knows.observed
        return given.model_copy(update=learned)

    def _says(self, contract: Contract, case: Case, known: Known) -> Answer | None:
        call = calls_of(contract)[case.call]
        given = self._given(case)
        ran, _ = run_case(contract, call, case, given, known)
        if ran is not None:
            self._learn(call, ran)
        if self.moved and case.name == self.moved.story.cancel_after and not self.cancelled:
            self.cancel_due = True
        return None if case.answer is None else answer_of(case.answer, scope_of(contract, given, known))

    def _learn(self, call: Call, ran: Ran) -> None:
        """What later calls know by this answer."""
        job, saved = ran.seen.get("job"), ran.seen.get("saved")
        changes: dict[str, object] = {}
        if call.kind in ("create", "get", "list") and isinstance(job, dict) and job:
            changes["job"] = job
        if call.step and isinstance(saved, dict):
            changes["steps"] = {**self._knows.steps, call.step.step: saved}
        if ran.means in ("completed", "succeeded", "partial", "failed", "cancelled", "ended") and call.kind in ("create", "observe"):
            changes["observed"] = Ended.model_validate(
                {"call": call.kind, "status": ran.scope.status, "headers": _wire(ran.scope.headers), "body": ran.scope.body}
            )
        self._knows = self._knows.model_copy(update=changes)
        self._next_url.pop(call.name, None)
        if ran.next_url and ran.request:
            self._next_url[call.name] = urljoin(ran.request.url, ran.next_url)


def _with_call_id(known: Known, arrived: Arrived) -> Known:
    """The id of this one request, where it shows it: an operation's id, a dot, and which call it is."""
    shown = "\n".join([arrived.url, *(value for _, value in arrived.headers), arrived.body.decode("utf-8", "replace")])
    found = re.search(rf"{re.escape(known.operation)}\.[A-Za-z0-9_.-]+", shown)
    return replace(known, call_id=found[0]) if found else known


def _wire(headers: JsonValue) -> dict[str, JsonValue]:
    return {name.replace("_", "-"): value for name, value in headers.items()} if isinstance(headers, dict) else {}


def _json(status: int, body: JsonValue) -> Answer:
    return Answer(status, (("content-type", "application/json"),), json.dumps(body).encode())


@asynccontextmanager
async def double(origins: list[str]) -> AsyncGenerator[Double]:
    """A provider that stands for these origins."""
    made = Double({})
    async with AsyncExitStack() as stack:
        for origin in origins:
            made.origins[origin] = await _standing_for(stack, made)
        yield made


async def _standing_for(stack: AsyncExitStack, made: Double) -> str:
    """One more server of the double; its address."""

    async def behaviour(head: bytes, writer: asyncio.StreamWriter) -> bool:
        answer = await made.answer(_arrived(head, server.bodies[-1], server.origin))
        if answer is not None:
            writer.write(_bytes(answer, head.startswith(b"HEAD ")))
            await writer.drain()
        return False

    server = await stack.enter_async_context(serve(behaviour))
    return server.origin


def _arrived(head: bytes, body: bytes, origin: str) -> Arrived:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = [line.split(":", 1) for line in lines]
    return Arrived(method, origin + target, tuple((name.strip(), value.strip()) for name, value in headers), body)


def _bytes(answer: Answer, bodiless: bool) -> bytes:
    body = b"" if answer.status in (204, 304) else answer.body
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = "Said"
    lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in answer.headers), "Connection: close"]
    if answer.status != 204:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (b"" if bodiless else body)
