"""What came of one request, as recordable facts and a person's words.

* What is recorded of an exchange is bounded, printable, and holds neither a body nor a query string.
* An answer that becomes `observed` is kept whole in `payloads`, because later calls are rendered from it.
* Where the contract says `record: {bodies: keep}` the raw body of each answer is in the result store before an entry names it. A
  store that can't take it costs the body, never the record: the entry then does not say that it was kept.
* Reading an answer costs CPU in proportion to its size: large ones are read in a thread, so that heartbeats go on.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeVar, cast

from activities.case import Case
from activities.ports import World
from activities.veiling import notice
from domain.answer_matching import observed_value
from domain.errors import CredentialFault, SakshiError
from domain.evidence import Http, Json, Ref, Words, instant_text, object_key
from domain.exchange import Answer, Exchange, NoAnswer
from domain.fingerprint import sha256_hex
from domain.kept import kept_answer, kept_bytes
from domain.lifecycle import UNSENT
from domain.origins import shown_url
from domain.reading import Reading
from domain.recordable_headers import allowed_headers

READ_IN_THREAD_FROM = 64 * 1024
KEEP_WITHIN_S = 5.0
T = TypeVar("T")


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
    sensitive = await asyncio.to_thread(notice, case, exchange) if case.contract.record.sensitive else False
    return facts.model_copy(update={"body_kept": True}) if not sensitive and await _kept(world, case, exchange) else facts


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
            await world.results.publish(staging, object_key(case.standing.opened.tenant, case.record.stream, digest))
            await world.results.discard(staging)
    except (SakshiError, TimeoutError):
        return False
    return True


def unanswered(outcome: NoAnswer, now: datetime) -> Words:
    """What a person reads of a request that got no answer."""
    if outcome.sent:
        return Words(reason="no answer came; whether it was carried out is not known")
    why = _UNSENT.get(outcome.word) if outcome.fault is None else _WITHOUT_CREDENTIAL[outcome.fault].format(origin=outcome.origin)
    if outcome.wait_ms is not None:
        until = now + timedelta(milliseconds=outcome.wait_ms)
        why = f"the provider's quota is used up until {instant_text(until)}"
    return Words(reason=f"{UNSENT}: {why}" if why else UNSENT)


_UNSENT: Final[Mapping[str, str]] = {
    "refused_connection": "the connection was refused",
    "dns": "the host's name has no address",
    "tls": "the host's certificate or TLS was not accepted",
    "connect_timeout": "no connection in time",
    "address": "the rules of addresses forbid where it would go",
    "credential": "the credential can't be used",
    "quota": "the provider's quota is used up",
}
"""What whoever waits can do something about."""

_WITHOUT_CREDENTIAL: Final[Mapping[CredentialFault, str]] = {
    "absent": "the credential is not there; `doctor` says where it is looked for",
    "record": "the record of the credential can't be used; `doctor` says why",
    "origin": "the credential is not for {origin}; `doctor` names what it is for",
    "tenant": "the credential is not for this tenant; `doctor` names those it is for",
    "scheme": "the credential is of another scheme than the contract's; `doctor` names both",
    "token": "the credential gets no token; the worker's log says why",
}
"""Which of the reasons it is. The origin is one that the contract lists; nothing here comes from the record."""


def words_of(reading: Reading) -> Words:
    """The provider's own words in a reading."""
    return Words(reason=reading.reason, code=reading.code, message=reading.message, request_id=reading.request_id)


async def read(work: Callable[[], T], answer: Answer) -> T:
    """Run a reading of `answer`, in a thread if the answer is large."""
    return await asyncio.to_thread(work) if len(answer.body) >= READ_IN_THREAD_FROM else work()


def keep_observed(call: str, answer: Answer) -> tuple[Ref, bytes]:
    """The payload that keeps an answer whole, and the reference to it."""
    payload = kept_bytes(call, answer)
    return Ref(digest=sha256_hex(payload), size=len(payload)), payload


def observed_root(payload: bytes) -> Json:
    """The root `observed` from a kept answer: what later calls are rendered from."""
    return cast("Json", observed_value(*kept_answer(payload)))
