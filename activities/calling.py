"""Sending one request for an operation, and turning what came of it into recordable facts.

* What is recorded of an exchange is bounded, printable, and holds neither a body nor a query string.
* An answer that becomes `observed` is kept whole in `payloads`, because later calls are rendered from it.
* Where the contract says `record: {bodies: keep}` the raw body of each answer is in the result store before an entry names it. A
  store that can't take it costs the body, never the record: the entry then does not say that it was kept.
* Reading an answer costs CPU in proportion to its size: large ones are read in a thread, so that heartbeats go on.
"""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Literal, TypeVar, cast
from urllib.parse import urlsplit

from activities.case import Case
from activities.ports import World
from domain.errors import SakshiError
from domain.evidence import Http, Json, Ref, RequestFacts, Words, body_key, bounded
from domain.exchange import Answer, Exchange, Request
from domain.fingerprint import canonical, sha256_hex
from domain.reading import Reading, observed_value
from domain.recordable_headers import allowed_headers

READ_IN_THREAD_FROM = 64 * 1024
KEEP_WITHIN_S = 5.0
_NOT_KEPT = frozenset({"set-cookie", "authorization", "proxy-authorization"})
T = TypeVar("T")


def shown_url(url: str) -> str:
    """An address without its query, which may hold what was asked."""
    parts = urlsplit(url)
    return bounded(f"{parts.scheme}://{parts.netloc}{parts.path}{'?...' if parts.query else ''}", 2048)


def request_facts(request: Request) -> tuple[RequestFacts, bytes]:
    """What an intent says of a request, and the payload that holds the whole of it."""
    payload = canonical(request.to_json())
    facts = RequestFacts(
        method=request.method,
        url=shown_url(request.url),
        body_sha256=sha256_hex(request.body),
        body_bytes=len(request.body),
        ref=sha256_hex(payload),
    )
    return facts, payload


def http_facts(exchange: Exchange) -> Http:
    """What is recorded of an exchange."""
    common: dict[str, object] = {
        "method": exchange.request.method,
        "url": shown_url(exchange.request.url),
        "began": exchange.began,
        "ended": exchange.ended,
    }
    outcome = exchange.outcome
    if isinstance(outcome, Answer):
        common |= {
            "status": outcome.status,
            "fault": outcome.fault,
            "headers": allowed_headers(outcome.headers),
            "body_sha256": sha256_hex(outcome.body),
            "body_bytes": len(outcome.body),
        }
    else:
        common |= {"no_answer": outcome.word, "sent": outcome.sent}
    return Http.model_validate(common)


async def recorded(world: World, case: Case, exchange: Exchange) -> Http:
    """What is recorded of an exchange, once the body of its answer is kept where the contract wants that."""
    facts = http_facts(exchange)
    return facts.model_copy(update={"body_kept": True}) if await _kept(world, case, exchange) else facts


async def _kept(world: World, case: Case, exchange: Exchange) -> bool:
    body = exchange.outcome.body if isinstance(exchange.outcome, Answer) else b""
    if case.contract.record.bodies != "keep" or not body:
        return False
    digest = sha256_hex(body)
    staging = f"{case.record.stream}/body-{digest}"
    try:
        async with asyncio.timeout(KEEP_WITHIN_S):
            async with world.results.stage(staging) as staged:
                await staged.write(body)
                await staged.seal()
            await world.results.publish(staging, body_key(case.standing.opened.tenant, case.record.stream, digest))
            await world.results.discard(staging)
    except (SakshiError, TimeoutError):
        return False
    return True


def words_of(reading: Reading) -> Words:
    """The provider's own words in a reading."""
    return Words(reason=reading.reason, code=reading.code, message=reading.message, request_id=reading.request_id)


async def read(work: Callable[[], T], answer: Answer) -> T:
    """Run a reading of `answer`, in a thread if the answer is large."""
    return await asyncio.to_thread(work) if len(answer.body) >= READ_IN_THREAD_FROM else work()


def keep_observed(call: str, answer: Answer) -> tuple[Ref, bytes]:
    """The payload that keeps an answer whole, and the reference to it."""
    payload = canonical(
        {
            "call": call,
            "status": answer.status,
            "headers": [[name, value.encode("utf-8", "replace").decode()] for name, value in answer.headers if name not in _NOT_KEPT],
            "body": base64.b64encode(answer.body).decode("ascii"),
        }
    )
    return Ref(digest=sha256_hex(payload), size=len(payload)), payload


def observed_root(payload: bytes) -> Json:
    """The root `observed` from a kept answer: what later calls are rendered from."""
    kept = cast("dict[str, Json]", json.loads(payload))
    headers = tuple((str(name), str(value)) for name, value in cast("list[tuple[str, str]]", kept["headers"]))
    answer = Answer(status=cast("int", kept["status"]), headers=headers, body=base64.b64decode(str(kept["body"])))
    return cast("Json", observed_value(cast("Literal['create', 'observe']", kept["call"]), answer))
