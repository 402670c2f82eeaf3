"""Fetching, verifying and keeping a result.

* The intent with its staging key is recorded first; a later attempt looks at staging before the network, so that a one-time
  result is never lost to a crash.
* Bytes are hashed, counted and checked on the way, never held whole. What is not verified is never visible.
* What the provider did not offer to check is said in the record. Our own SHA-256, size and count are always there.
* Publishing comes before the record says `verified`, and staging is forgotten after it: any crash between is repeated harmlessly.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from activities.calling import http_facts, observed_root, recorded, words_of
from activities.case import Case, call_id
from activities.owning import append_as_owner, append_fact
from activities.ports import World
from activities.waiting import again
from domain.calls import Source
from domain.checking import check
from domain.contract import Contract
from domain.errors import AddressError, RenderError
from domain.evidence import Check, Evidence, Http, Intent, Json, Output, ResultOutcome, Words, instant
from domain.exchange import Answer, Exchange, NoAnswer, Request
from domain.expectations import Expectations, expectations
from domain.expressions import Scope, first_value
from domain.fingerprint import canonical
from domain.functions import TooMuch
from domain.lifecycle import next_step
from domain.matching import Match, holds
from domain.measuring import Measured, Measurer
from domain.reading import Reading, read_collect
from domain.rendering import render
from domain.stages import Collect
from domain.standing import Standing

OUTPUT_NAME = "output"
_FINAL_FAULTS = {"oversized": "the result is larger than the contract allows", "encoding": "the result's encoding is not one we offered"}


@dataclass(frozen=True)
class Fetched:
    """What came of fetching: a sealed staged object that was measured, or a reading that says why there is none."""

    reading: Reading
    measured: Measured | None = None
    media: str | None = None
    http: Http | None = None
    cut: bool = False
    problem: str | None = None


async def collect(world: World, case: Case, *, turn: int) -> Case:
    """One attempt to have the result."""
    wanted = case.contract.collect
    stream = case.record.stream
    if wanted is None:
        fact = _outcome(world, case, "none", outcome=_whole(case))
        return case.at(await append_fact(world, stream, fact, turn=turn))
    scope = case.scope(call_id=call_id(stream, "collect", case.standing.collect_attempts + 1), observed=await _observed(world, case))
    if wanted.when is not None and not _true(wanted.when, scope):
        fact = _outcome(world, case, "empty", outcome=_whole(case))
        return case.at(await append_fact(world, stream, fact, turn=turn))
    source = next((one for one in wanted.source if one.when is None or _true(one.when, scope)), None)
    if source is None:
        return case.at(await append_fact(world, stream, _invalid(world, case, ["no source of the result fits this answer"]), turn=turn))
    begun = case.standing.staging is not None
    case = await _intend(world, case, turn=turn)
    if next_step(case.standing).name != "collect" or case.standing.staging is None:
        return case
    fetched = await _staged(world, wanted, case.standing.staging) if begun else None
    fetched = fetched or await _fetch(world, case, wanted, source, scope, case.standing.staging)
    if fetched.reading.meaning == "gone":
        # Another live attempt may have had it meanwhile: what can be fetched once is then here and nowhere else.
        fetched = await _staged(world, wanted, case.standing.staging) or fetched
    fact = await _judged(world, case, wanted, scope, case.standing.staging, fetched)
    record = await append_fact(world, stream, fact, turn=turn)
    if _done_with(record.standing, fact):
        await world.results.discard(case.standing.staging)
    return case.at(record)


def _done_with(after: Standing, fact: ResultOutcome) -> bool:
    """Nobody will ask for the staged object again.

    What is gone at the provider may be on its way to another live attempt. What is verified after that one was believed
    (a note) is here and nowhere else, until a human has it collected again.
    """
    return fact.meaning == "invalid" or (fact.meaning == "verified" and after.outputs == fact.outputs)


async def _observed(world: World, case: Case) -> Json:
    verdict = case.standing.verdict
    if verdict is None or verdict.observed is None:
        return None
    return observed_root(await world.ledger.payload(verdict.observed.digest))


async def _intend(world: World, case: Case, *, turn: int) -> Case:
    """Record the staging key; the same one for every attempt, so that what was sealed is found again."""
    staging = case.standing.staging or f"{case.record.stream}/{case.record.seq}"
    intent = Intent(
        at=instant(world.clocks.now()), actor=world.identity, meaning="collect", attempt=case.standing.collect_attempts + 1, staging=staging
    )

    def decide(standing: Standing) -> Sequence[Evidence]:
        return [intent] if next_step(standing).name == "collect" else []

    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))


async def _judged(world: World, case: Case, wanted: Collect, scope: Scope, staging: str, fetched: Fetched) -> ResultOutcome:
    if fetched.problem is not None:
        return _invalid(world, case, [fetched.problem], fetched)
    if fetched.measured is None:
        meaning = {"done": "again"}.get(fetched.reading.meaning, fetched.reading.meaning)
        return _outcome(world, case, meaning, fetched=fetched)
    return await _verified(world, case, wanted, scope, staging, fetched, fetched.measured)


async def _staged(world: World, wanted: Collect, staging: str) -> Fetched | None:
    """What an earlier attempt sealed, measured again."""
    if await world.results.staged_size(staging) is None:
        return None
    measurer = Measurer(wanted.format)
    async for chunk in world.results.read_staged(staging):
        measurer.feed(chunk)
        await asyncio.sleep(0)
    return Fetched(Reading("done", word="staged"), measured=measurer.finish(), media=await world.results.staged_media(staging))


async def _fetch(world: World, case: Case, wanted: Collect, source: Source, scope: Scope, staging: str) -> Fetched:
    if source.request is None:
        return await _inline(world, case.contract, wanted, source, scope, staging)
    try:
        request = render(case.contract, source.request, scope, accept="*/*")
    except (RenderError, AddressError) as error:
        return Fetched(Reading("again", word="unrenderable", message=error.message))
    return await _stream(world, case, wanted, source, scope, request, staging)


async def _inline(world: World, contract: Contract, wanted: Collect, source: Source, scope: Scope, staging: str) -> Fetched:
    try:
        value = first_value(source.inline, scope)
    except TooMuch:
        value = None
    if value is None:
        return Fetched(Reading("done", word="inline"), problem="the answer holds no result where the contract says it is")
    data = value.encode() if isinstance(value, str) and wanted.format in {"text", "binary", "csv", "jsonl"} else canonical(value)
    if len(data) > contract.http.limits.response_bytes:
        return Fetched(Reading("done", word="inline"), problem="the result is larger than the contract allows")
    measurer = Measurer(wanted.format)
    async with world.results.stage(staging) as staged:
        measurer.feed(data)
        await staged.write(data)
        await staged.seal()
    return Fetched(Reading("done", word="inline"), measured=measurer.finish())


async def _stream(world: World, case: Case, wanted: Collect, source: Source, scope: Scope, request: Request, staging: str) -> Fetched:
    limits = case.contract.http.limits
    now, until = world.clocks.now(), next_step(case.standing).until
    total = max(case.contract.http.timeouts.total.total_seconds(), (until - now).total_seconds() if until else 0.0)
    policy = case.policy(max_bytes=limits.result_bytes, total_s=total)
    async with world.provider.stream(request, policy) as streamed:
        head = streamed.answer
        if isinstance(head, NoAnswer):
            http = http_facts(Exchange(request, streamed.began, world.clocks.now(), head))
            return Fetched(Reading("again", word=head.word), http=http)
        measurer = Measurer(wanted.format)
        body, size = bytearray(), 0
        good = 200 <= head.status < 300
        async with world.results.stage(staging) as staged:
            async for chunk in _bounded(streamed.chunks(), None if good else limits.response_bytes):
                measurer.feed(chunk)
                size += len(chunk)
                if len(body) < limits.response_bytes:
                    body += chunk[: limits.response_bytes - len(body)]
                if good:
                    await staged.write(chunk)
            answer = replace(head, body=streamed.masked(bytes(body)), fault=streamed.fault)
            reading = await asyncio.to_thread(_read, case, source, answer, scope, size, world.clocks.now())
            exchange = Exchange(request, streamed.began, world.clocks.now(), answer)
            fetched = Fetched(reading, media=_media(head), http=await _answer_facts(world, case, exchange, size))
            if good and streamed.fault in _FINAL_FAULTS:
                return replace(fetched, problem=_FINAL_FAULTS[streamed.fault])
            if streamed.fault is not None:
                return replace(fetched, cut=good)
            if reading.meaning != "done":
                return fetched
            await staged.seal(_media(head))
        return replace(fetched, measured=measurer.finish())


async def _answer_facts(world: World, case: Case, exchange: Exchange, size: int) -> Http:
    """What is recorded of the answer. Its body is one that may be kept only where it is no larger than an answer may be."""
    if size <= case.contract.http.limits.response_bytes:
        return await recorded(world, case, exchange)
    return http_facts(exchange).model_copy(update={"body_sha256": None, "body_bytes": size})


async def _bounded(chunks: AsyncIterator[bytes], limit: int | None) -> AsyncIterator[bytes]:
    taken = 0
    async for chunk in chunks:
        yield chunk
        taken += len(chunk)
        if limit is not None and taken >= limit:
            return


def _read(case: Case, source: Source, answer: Answer, scope: Scope, size: int, now: datetime) -> Reading:
    """What the answer means; of a body larger than an answer may be, only status and headers are read."""
    whole = answer if size <= case.contract.http.limits.response_bytes else replace(answer, body=b"")
    return read_collect(case.contract, source, whole, scope, now)


def _media(answer: Answer) -> str | None:
    return next((value for name, value in answer.headers if name == "content-type"), None)


async def _verified(
    world: World, case: Case, wanted: Collect, scope: Scope, staging: str, fetched: Fetched, measured: Measured
) -> ResultOutcome:
    try:
        expected = expectations(case.contract, scope)
    except RenderError as error:
        return _invalid(world, case, [error.message], fetched)
    checks = await asyncio.to_thread(_checks, wanted, expected, measured, fetched.media, scope)
    opened = case.standing.opened
    key = f"{opened.tenant}/{case.record.stream}/{measured.sha256}"
    output = Output(
        name=OUTPUT_NAME, key=key, sha256=measured.sha256, size=measured.size, media=fetched.media, records=measured.records, checks=checks
    )
    problems = [f"{one.check}: expected {one.expected}, found {one.found}" for one in checks if one.verdict == "differs"]
    if problems:
        return _invalid(world, case, problems, fetched, (output,))
    await world.results.publish(staging, key)
    return _outcome(world, case, "verified", outcome=_whole(case), fetched=fetched, outputs=(output,))


def _checks(wanted: Collect, expected: Expectations, measured: Measured, media: str | None, scope: Scope) -> tuple[Check, ...]:
    checks = check(expected, measured, media)
    if expected.expect is None:
        return checks
    facts: dict[str, Json] = {OUTPUT_NAME: {"bytes": measured.size, "records": measured.records, "sha256": measured.sha256}}
    found = _true(expected.expect, replace(scope, outputs=facts, result=measured.value))
    return (*checks, Check(check="expect", verdict="ok" if found else "differs", expected="as the contract says", found=None))


def _true(match: Match, scope: Scope) -> bool:
    try:
        return holds(match, scope)
    except TooMuch:
        return False


def _whole(case: Case) -> str:
    verdict = case.standing.verdict
    return "partial" if verdict is not None and verdict.verdict == "partial" else "whole"


def _invalid(
    world: World, case: Case, problems: Sequence[str], fetched: Fetched | None = None, outputs: Sequence[Output] = ()
) -> ResultOutcome:
    return _outcome(world, case, "invalid", fetched=fetched, outputs=outputs, problems=problems)


def _outcome(
    world: World,
    case: Case,
    meaning: str,
    *,
    outcome: str | None = None,
    fetched: Fetched | None = None,
    outputs: Sequence[Output] = (),
    problems: Sequence[str] = (),
) -> ResultOutcome:
    at = instant(world.clocks.now())
    return ResultOutcome.model_validate(
        {
            "at": at,
            "actor": world.identity,
            "meaning": meaning,
            "word": fetched.reading.word if fetched else "default",
            "outcome": outcome,
            "outputs": tuple(outputs),
            "cut": fetched.cut if fetched else False,
            "problems": tuple(problems),
            "http": fetched.http if fetched else None,
            "words": words_of(fetched.reading) if fetched else Words(),
            "next_at": again(case, "collect", at, fetched.reading.delay_ms if fetched else None),
        }
    )
