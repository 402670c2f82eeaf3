"""The one door to providers: one request, sent once, and what came of it.

* What is sent is what was frozen, plus authentication. That is added to the object that goes to the socket and to
  nothing else; the recorded request stays without it. A secret that an answer echoes is masked.
* Only origins that the policy lists are called, each with its own authentication, under `AddressRules`.
* A body of parts is streamed from the result store (`http_upload`). A stored file that is not what it was makes the request `unsendable`:
  before the first byte where that can be told by its size, else cut before its last piece.
* Every outcome is a value; nothing raises. `NoAnswer.sent` is False only where the wire proves that no byte of the request left: address,
  credential or its token, quota, name, TLS, refused connection, waiting for a turn, too late, no request at all.
  After the first byte it is True, whatever broke.
* The words of the HTTP library go nowhere. Only the kind of its errors is read, and nothing of ours is chained to them.
* `total_s` is wall clock over everything, redirects and body included. Bodies are bounded, raw and decoded.
* Redirects are followed only for GET, only as often as the request and the policy both allow, only to listed origins. A
  redirect that may not be followed is itself the answer. On the way to another origin the request keeps none of its
  headers but the harmless ones, and gets the authentication of that origin.
"""

import asyncio
import base64
import logging
import math
import ssl
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import urljoin

import httpcore
import httpx

from adapters.addresses import Address, AddressRules, Origin, OriginPattern, Resolver, parse_address, parse_pattern, system_resolver
from adapters.credential_records import Secret
from adapters.credentials import Credentials
from adapters.http_answer import StreamedAnswer, Unanswered
from adapters.http_auth import Applied, apply, authenticate, names_of
from adapters.http_pace import Pace, QuotaSpent, Turnstile
from adapters.http_request import wired
from adapters.http_upload import FileLost, Files, Upload
from adapters.http_wire import Journey, NameUnknown, PinnedTransport, TlsFailed, TooLate
from adapters.oauth import TokenRequest, Tokens
from domain.errors import AddressError, CredentialError, SakshiError
from domain.exchange import REDIRECTS, Answer, AuthUse, CallPolicy, Exchange, NoAnswer, NotSent, Request

_log = logging.getLogger("sakshi.http")

_KEPT_ACROSS_ORIGINS = frozenset({"accept", "accept-language", "accept-encoding", "range", "user-agent"})

_PROOFS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], NotSent], ...] = (
    (AddressError, "address"),
    (TooLate, "late"),
    (NameUnknown, "dns"),
    (TlsFailed, "tls"),
    ((httpcore.ConnectTimeout, httpx.ConnectTimeout), "connect_timeout"),
    ((httpcore.PoolTimeout, httpx.PoolTimeout), "pool_timeout"),
    ((httpcore.ConnectError, httpx.ConnectError), "refused_connection"),
)
_FORM = (("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json"))
_OF_A_TOKEN = CallPolicy(origins=(), tenant="", read_s=10.0, write_s=10.0, total_s=20.0, max_bytes=64 * 1024)
_TIMEOUTS = (httpcore.TimeoutException, httpx.TimeoutException)
_PROTOCOL = (httpcore.RemoteProtocolError, httpx.RemoteProtocolError)


class HttpProvider:
    """Implements the provider port. One per process; `aclose` when done."""

    def __init__(
        self,
        credentials: Credentials,
        rules: AddressRules | None = None,
        *,
        resolver: Resolver = system_resolver,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        files: Files | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._credentials = credentials
        self._rules = AddressRules() if rules is None else rules
        self._transport = PinnedTransport(self._rules, resolver, tls) if transport is None else transport
        self._pace = Pace()
        self._files = files
        self._now = now
        self._monotonic = monotonic
        self._tokens = Tokens(self._post_for_token, monotonic)

    async def exchange(self, request: Request, policy: CallPolicy) -> Exchange:
        """Send once and read the whole body, within the policy's bounds."""
        opened = await self._open(request, policy)
        if isinstance(opened, Unanswered):
            return Exchange(request, opened.began, self._now(), opened.answer)
        outcome = await opened.whole()
        self._heed(opened.url, policy, outcome)
        return Exchange(request, opened.began, self._now(), outcome)

    @asynccontextmanager
    async def stream(self, request: Request, policy: CallPolicy) -> AsyncGenerator[StreamedAnswer | Unanswered]:
        """Send once and hand out the body piece by piece. A body that announces more than the limit is not begun."""
        opened = await self._open(request, policy)
        if isinstance(opened, Unanswered):
            yield opened
            return
        try:
            await opened.refuse_oversized()
            yield opened
        finally:
            await opened.aclose()

    def check(self, url: str, policy: CallPolicy) -> None:
        """Raise `AddressError` or `CredentialError`, in words, if this address could not be called. Asks no resolver."""
        address, use = self._permitted(url, policy)
        apply(use, self._credentials, address.origin, policy.tenant)

    async def aclose(self) -> None:
        """End fetches of tokens and all idle connections."""
        await self._tokens.aclose()
        await self._transport.aclose()

    async def _open(self, request: Request, policy: CallPolicy) -> StreamedAnswer | Unanswered:
        began = self._now()
        deadline = asyncio.get_running_loop().time() + policy.total_s
        remaining = min(request.redirects, policy.redirects) if request.method == "GET" else 0
        outcome = await self._send(request, policy, began, deadline, Journey(policy.send_by, self._monotonic))
        while remaining and isinstance(outcome, StreamedAnswer) and (target := self._target(request, outcome, policy)):
            await outcome.aclose()
            request, remaining = target, remaining - 1
            outcome = await self._send(request, policy, began, deadline, Journey())
            if isinstance(outcome, NoAnswer):
                outcome = NoAnswer(outcome.word, sent=True)
        return Unanswered(outcome, began) if isinstance(outcome, NoAnswer) else outcome

    async def _send(
        self, request: Request, policy: CallPolicy, began: datetime, deadline: float, journey: Journey
    ) -> StreamedAnswer | NoAnswer:
        gate: Turnstile | None = None
        opened: StreamedAnswer | None = None
        try:
            async with asyncio.timeout_at(deadline):
                address, use = self._permitted(request.url, policy)
                gate = await self._turn(address.origin, use, policy)
                self._check_quota(address.origin, use, policy)
                applied = await authenticate(
                    use, self._credentials, address.origin, policy.tenant, tokens=self._tokens, within=self._left(policy, deadline),
                    now=self._now,
                )  # fmt: skip
                upload = Upload(request.parts, self._files) if request.parts else None
                if upload is not None:
                    await upload.check()
                prepared = wired(request, address, applied, policy, journey, upload)
                journey.check_time()
                if not isinstance(self._transport, PinnedTransport):
                    journey.sent = True  # another transport does not tell how far it got, so running out of time proves nothing
                response = await self._transport.handle_async_request(prepared)
            opened = StreamedAnswer(response, applied.secrets, policy, began=began, deadline=deadline, gate=gate, url=request.url)
            if applied.token is not None:
                self._tokens.seen(applied.token, response.status_code)
            self._heed(request.url, policy, opened.answer)
            return opened
        except TimeoutError:
            return _out_of_time(journey)
        except Exception as raised:  # noqa: BLE001  the library's kinds are open; each becomes a word below
            error = raised
        finally:
            if opened is None and gate is not None:
                gate.leave()
        return _without_answer(error, journey)

    async def _turn(self, origin: Origin, use: AuthUse, policy: CallPolicy) -> Turnstile | None:
        """Wait for a turn, where the policy limits, but not past the instant by which the first byte has to leave."""
        if policy.parallel is None and policy.per_second is None:
            return None
        patience = None if policy.send_by is None else max(0.0, policy.send_by - self._monotonic())
        async with asyncio.timeout(patience):
            return await self._pace.enter(_first(use), str(origin), policy.parallel, policy.per_second)

    def _left(self, policy: CallPolicy, deadline: float) -> float:
        """Seconds in which a token is of use: most of those until the first byte has to leave, or until all is over."""
        left = deadline - asyncio.get_running_loop().time()
        return max(0.0, left if policy.send_by is None else min(left, policy.send_by - self._monotonic())) * 0.9

    def _check_quota(self, origin: Origin, use: AuthUse, policy: CallPolicy) -> None:
        until = None if policy.spent is None else self._pace.spent_until(_first(use), str(origin), self._now())
        if until is not None:
            raise QuotaSpent(until - self._now())

    def _heed(self, url: str, policy: CallPolicy, answer: Answer) -> None:
        """Remember what an answer says about the quota."""
        now = self._now()
        until = None if policy.spent is None else policy.spent(answer, now)
        if until is not None:
            address, use = self._permitted(url, policy)
            self._pace.spend(_first(use), str(address.origin), until, now)

    async def _post_for_token(self, asked: TokenRequest) -> Answer | NoAnswer:
        """Ask for a token, at the address that a credential's own record names. The answer is nobody's but the asker's."""
        request = Request("POST", asked.address.url, _FORM, asked.form.reveal().encode())
        loop, journey = asyncio.get_running_loop(), Journey()
        deadline = loop.time() + _OF_A_TOKEN.total_s
        try:
            async with asyncio.timeout_at(deadline):
                self._rules.permit(asked.address.origin)
                applied = Applied(() if asked.basic is None else (("Authorization", _basic(*asked.basic)),))
                response = await self._transport.handle_async_request(wired(request, asked.address, applied, _OF_A_TOKEN, journey))
            return await StreamedAnswer(response, (), _OF_A_TOKEN, began=self._now(), deadline=deadline, gate=None).whole()
        except TimeoutError:
            return _out_of_time(journey)
        except Exception as raised:  # noqa: BLE001  as above
            return _without_answer(raised, journey)

    def _permitted(self, url: str, policy: CallPolicy) -> tuple[Address, AuthUse]:
        address = parse_address(url)
        self._rules.permit(address.origin)
        return address, _use_for(address.origin, policy)

    def _target(self, request: Request, answer: StreamedAnswer, policy: CallPolicy) -> Request | None:
        """The request that a redirect leads to, or None if the answer is none, or one that is not followed."""
        location = answer.header("location")
        if answer.answer.status not in REDIRECTS or not location or location.startswith("//"):
            return None
        try:
            # A fragment is for the reader of a page; anything else that is odd about the target is refused.
            target = self._permitted(urljoin(request.url, location.partition("#")[0]), policy)[0]
        except (AddressError, ValueError):
            return None
        headers = request.headers
        if target.origin != parse_address(request.url).origin:
            headers = tuple(pair for pair in headers if pair[0].lower() in _KEPT_ACROSS_ORIGINS)
        return Request("GET", target.url, headers)


def _first(use: AuthUse) -> str:
    """The credential by whose name limits are counted."""
    return next(iter(names_of(use)), "")


def _basic(name: str, secret: Secret) -> Secret:
    return Secret("Basic " + base64.b64encode(f"{name}:{secret.reveal()}".encode()).decode("ascii"))


def _use_for(origin: Origin, policy: CallPolicy) -> AuthUse:
    """An exact origin wins over a pattern, else the first that fits."""
    fitting: AuthUse | None = None
    for text, use in policy.origins:
        pattern = _listed(text)
        if pattern.fits(origin):
            if not pattern.below:
                return use
            fitting = fitting or use
    if fitting is None:
        raise AddressError(f"{origin} is not an origin that the contract lists", hint="a contract lists other hosts under `http.hosts`")
    return fitting


@lru_cache(maxsize=1024)
def _listed(text: str) -> OriginPattern:
    return parse_pattern(text) if "://*." in text else OriginPattern(parse_address(text).origin, below=False)


def _out_of_time(journey: Journey) -> NoAnswer:
    if journey.sent:
        return NoAnswer("timeout", sent=True)
    if journey.is_late():
        return NoAnswer("late", sent=False)
    return NoAnswer("pool_timeout" if journey.phase == "waiting" else "connect_timeout", sent=False)


def _without_answer(error: Exception, journey: Journey) -> NoAnswer:
    if isinstance(error, CredentialError):
        _say_why(error)
        return NoAnswer("credential", sent=False, fault=error.fault, origin=error.origin)
    for kinds, proof in _PROOFS:
        if isinstance(error, kinds):
            _say_why(error)
            return NoAnswer(proof, sent=False)
    if isinstance(error, QuotaSpent):
        return NoAnswer("quota", sent=False, wait_ms=math.ceil(error.wait.total_seconds() * 1000))
    if isinstance(error, FileLost):
        _say_why(error)
        return NoAnswer("unsendable", sent=journey.sent)
    if not journey.sent:
        # No byte left, and for no reason that is known here: a request that cannot be, or a defect.
        _say_why(error)
        return NoAnswer("unsendable", sent=False)
    if isinstance(error, _TIMEOUTS):
        return NoAnswer("timeout", sent=True)
    if isinstance(error, _PROTOCOL) and "too long" in str(error):
        return NoAnswer("header_overflow", sent=True)  # h11's own limit on an unfinished head, 100 KiB
    return NoAnswer("broken", sent=True)


def _say_why(error: Exception) -> None:
    """For the operator: our own words, or the kind of an error whose words we don't trust."""
    _log.warning("nothing was sent: %s", error.message if isinstance(error, SakshiError) else type(error).__name__)
