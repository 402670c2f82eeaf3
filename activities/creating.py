"""One attempt to create: close what is open, judge, record the intent, send, read, record.

* No byte leaves before the intent, with the digest of the exact bytes, is durable; nor later than `send_until`.
* Every later attempt of a generation sends the stored bytes of the first and adds only authentication.
* An intent without an outcome is closed before anything else: as recovered from the last heartbeat, or as lost.
* A stored file that is lost or changed is found before the intent: nothing is sent, and the record says why.
* A create sends nothing at its deadline, nor where the token no longer protects.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError
from temporalio import activity

from activities import options
from activities.beating import Pulse, last_answer
from activities.case import Case, call_id
from activities.judging import judge_execution
from activities.loading import frozen_request
from activities.owning import append_as_owner, append_fact
from activities.ports import Record, World
from activities.recording import http_facts, keep_observed, read, recorded, unanswered, words_of
from activities.sealing import request_facts, sealed
from activities.stepping import UNRENDERABLE
from activities.veiling import hide, notice, veiled
from activities.waiting import again, next_instant
from domain.contradictions import MISMATCH, contradiction
from domain.errors import AddressError, NotFound, RenderError, Tampered, Unreachable
from domain.evidence import Clock, CreateExchange, Evidence, Intent, Words, instant, instant_text
from domain.exchange import Exchange, NoAnswer, Request
from domain.guards import replayable
from domain.lifecycle import next_step
from domain.reading import read_create
from domain.rendering import render
from domain.standing import Standing


@dataclass(frozen=True)
class Prepared:
    """A request that may be sent, until `send_by` of the monotonic clock."""

    case: Case
    request: Request
    generation: int
    attempt: int
    sent_at: datetime
    send_by: float


def _due(standing: Standing) -> bool:
    return next_step(standing).name == "create"


async def close_open_intent(world: World, case: Case, *, turn: int) -> Case:
    """Give an intent without outcome its outcome, from the heartbeat of the attempt that made it, or as lost."""
    opened = case.standing.open_attempt
    if opened is None:
        return case
    fact = _recovered(opened.generation, opened.attempt)
    if fact is None or not await _is_kept(world, fact):
        now = instant(world.clocks.now())
        fact = CreateExchange(
            at=now, actor=world.identity, meaning="ambiguous", generation=opened.generation, attempt=opened.attempt, word="lost",
            recovered="lost", next_at=now,
        )  # fmt: skip
    return case.at(await append_fact(world, case, fact, turn=turn))


async def _is_kept(world: World, fact: CreateExchange) -> bool:
    """What later calls need of what was hidden in it is in the ledger: without that, a job that is known can't be read."""
    if fact.sensitive is None:
        return True
    try:
        await world.ledger.payload(fact.sensitive.digest)
    except (NotFound, Tampered):
        return False
    return True


def _recovered(generation: int, attempt: int) -> CreateExchange | None:
    answer = last_answer()
    if answer is None:
        return None
    try:
        fact = CreateExchange.model_validate(answer | {"recovered": "recovered"})
    except ValidationError:
        return None
    # A finished job's answer is needed whole, and a heartbeat holds only its digest: that one is asked for again.
    fits = (fact.generation, fact.attempt) == (generation, attempt) and fact.meaning != "finished"
    return fact if fits else None


async def end_at_deadline(world: World, case: Case, *, turn: int) -> Case:
    """Append the create clock if the deadline is over, or what may have been carried out cannot be sent again."""
    standing, now = case.standing, instant(world.clocks.now())
    deadline = _sending_ends(standing) or now
    if now < deadline and (replayable(standing, now) or not standing.uncertain):
        return case

    def decide(current: Standing) -> Sequence[Evidence]:
        return [Clock(at=now, actor="clock", meaning="create", deadline=deadline)] if _due(current) else []

    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))


def _sending_ends(standing: Standing) -> datetime | None:
    """The create deadline; or earlier, the end of the token's protection once something may have been carried out."""
    ends = [standing.deadlines.get("create"), standing.token_until if standing.uncertain else None]
    return min((end for end in ends if end is not None), default=None)


async def intend(world: World, case: Case, *, turn: int) -> tuple[Case, Prepared | None]:
    """Judge and record the intent in one transaction. None if policy or the state does not let this be sent."""
    standing = case.standing
    attempt, at = standing.attempts + 1, instant(world.clocks.now())
    try:
        request = await sealed(world, await _frozen(world, case, at))
    except (RenderError, AddressError) as error:
        return case.at(await _unrenderable(world, case, error.message, attempt, turn=turn)), None
    # Only now: reading a large file may take longer than there is between judging and the first byte.
    judged, send_by = instant(world.clocks.now()), world.clocks.monotonic() + options.SEND_WITHIN.total_seconds()
    facts, payload = request_facts(request)
    intent = Intent(
        at=at, actor=world.identity, meaning="create", generation=standing.generation, attempt=attempt, request=hide(case, facts),
        send_until=judged + options.SEND_WITHIN,
    )  # fmt: skip

    ours = False

    def decide(current: Standing) -> Sequence[Evidence]:
        nonlocal ours
        ours = False
        still = _due(current) and current.open_attempt is None
        same = (current.generation, current.attempts + 1) == (intent.generation, intent.attempt)
        ends = _sending_ends(current)
        over = ends is not None and judged >= ends  # while a large file was read
        if not still or not same or over or (current.uncertain and not replayable(current, judged)):
            return []
        policy = judge_execution(world, case.record.stream, current, at=judged, actor=world.identity)
        ours = policy.meaning in {"unattended", "covered"}
        return [policy, intent] if ours else [policy]

    record = await append_as_owner(world, case.record.stream, decide, turn=turn, payloads=[payload])
    # Two attempts may live at once, and the newest entry may be the other's intent of the same number: only our own lets us send.
    if not ours:
        return case.at(record), None
    return case.at(record), Prepared(case.at(record), request, intent.generation, attempt, at, send_by)


async def _frozen(world: World, case: Case, at: datetime) -> Request:
    standing = case.standing
    if standing.request is not None:
        return await frozen_request(world.ledger, standing.request.digest)
    token = case.token(standing.generation)
    if token is None and case.contract.create.token is not None:
        raise RenderError("the token that a step was to give has no value")
    scope = case.scope(
        call_id=call_id(case.record.stream, "create", standing.generation),
        token=token,
        token_sent_at=instant_text(at),
    )
    return render(case.contract, case.contract.create.request, scope)


async def _unrenderable(world: World, case: Case, message: str, attempt: int, *, turn: int) -> Record:
    fact = CreateExchange(
        at=instant(world.clocks.now()), actor=world.identity, meaning="refused", generation=case.standing.generation, attempt=attempt,
        word=UNRENDERABLE, words=Words(message=message),
    )  # fmt: skip
    return await append_fact(world, case, fact, turn=turn)


async def attempt(world: World, case: Case, pulse: Pulse, *, turn: int) -> Case:
    """One attempt, which is not broken off between its intent and its outcome. One that was cancelled before sending sends nothing."""
    case, prepared = await intend(world, case, turn=turn)
    if prepared is None:
        return case
    pulse.witness(case.record.seq, case.record.hash)
    if activity.is_cancelled():
        return case.at(await append_fact(world, case, _not_sent(world, prepared), turn=turn))
    return case.at(await send(world, prepared, pulse, turn=turn))


def _not_sent(world: World, prepared: Prepared) -> CreateExchange:
    now = instant(world.clocks.now())
    return CreateExchange(
        at=now, actor=world.identity, meaning="not_sent", generation=prepared.generation, attempt=prepared.attempt, word="interrupted",
        words=Words(reason="nothing was sent"), next_at=now,
    )  # fmt: skip


async def send(world: World, prepared: Prepared, pulse: Pulse, *, turn: int) -> Record:
    """Send, read, tell the heartbeat, record."""
    case = prepared.case
    policy = case.policy(max_bytes=case.contract.http.limits.response_bytes, send_by=prepared.send_by)
    exchange = await world.provider.exchange(prepared.request, policy)
    fact, payloads = await _fact(world, prepared, exchange)
    if not isinstance(exchange.outcome, NoAnswer):
        await read(lambda: notice(case, exchange), exchange.outcome)
    fact, hidden = await veiled(world, case, fact)
    if hidden:
        # Ahead of the heartbeat, from which the next attempt may have to recover. If it fails the append may still succeed.
        with suppress(Unreachable):
            await world.ledger.put_payloads(case.record.stream, hidden)
    pulse.answered(fact.model_dump(mode="json", exclude_defaults=True) | {"meaning": fact.meaning})
    fact = fact.model_copy(update={"http": await recorded(world, case, exchange)})
    return await append_fact(world, case, fact, turn=turn, payloads=(*payloads, *hidden))


async def _fact(world: World, prepared: Prepared, exchange: Exchange) -> tuple[CreateExchange, Sequence[bytes]]:
    case, outcome = prepared.case, exchange.outcome
    standing = case.standing
    at = instant(world.clocks.now())
    base: dict[str, object] = {
        "at": at,
        "actor": world.identity,
        "generation": prepared.generation,
        "attempt": prepared.attempt,
        "http": http_facts(exchange),
    }
    if isinstance(outcome, NoAnswer):
        meaning = "ambiguous" if outcome.sent else "not_sent"
        base |= {"meaning": meaning, "word": outcome.word, "words": unanswered(outcome, at)}
        return CreateExchange.model_validate(base | {"next_at": again(case, "create", at, outcome.wait_ms)}), ()
    scope = case.scope(
        call_id=call_id(case.record.stream, "create", prepared.generation),
        token=case.token(prepared.generation),
        token_sent_at=instant_text(standing.first_intent_at or prepared.sent_at),
    )
    reading = await read(lambda: read_create(case.contract, outcome, scope, at), outcome)
    base |= {"meaning": reading.meaning, "word": reading.word, "words": words_of(reading), "verdict": reading.verdict}
    base |= {"job": reading.job or None}
    payloads: Sequence[bytes] = ()
    if reading.meaning == "finished":
        base["observed"], payload = keep_observed("create", outcome)
        payloads = (payload,)
    if reading.meaning == "violation":
        otherwise = reading.reason or MISMATCH  # in the provider's own words, where it is the provider that says so
        base["violation"] = contradiction("the answer", reading.differs, otherwise, salt=case.asked.salt, word=reading.word)
    if reading.meaning == "accepted":
        base["next_at"] = first_poll(case, at, reading.delay_ms)
    elif reading.meaning != "finished":
        base["next_at"] = again(case, "create", at, reading.delay_ms)
    return CreateExchange.model_validate(base), payloads


def first_poll(case: Case, now: datetime, hint_ms: int | None) -> datetime:
    """When the first status read is due: the create answer's hint, else the contract's `first`."""
    deadline = now + timedelta(milliseconds=case.standing.facts.deadlines_ms.result)
    return next_instant(case.contract, stream=case.record.stream, now=now, hint_ms=hint_ms, tries=0, deadline=deadline)
