"""Reading the status: once at least, then as often as the next delay is short enough to hold.

* A failed read decides nothing: it is recorded and repeated. So is one whose `before` steps, done anew each time, were not all done.
* At the deadline one last reading is made; if it does not end the waiting, the clock is appended by this same activity.
* A reading that began before the first terminal observation can contradict nothing: its beginning is recorded.
"""

from collections.abc import Sequence
from datetime import datetime

from activities.case import Case, call_id
from activities.owning import append_fact
from activities.ports import World
from activities.recording import keep_observed, read, recorded, unanswered, words_of
from activities.stepping import UNRENDERABLE, Before, StepDone, run_before
from activities.waiting import next_instant
from domain.contradictions import DIFFERS, contradiction
from domain.errors import AddressError, RenderError
from domain.evidence import Observation, Words, instant
from domain.exchange import NoAnswer, Request
from domain.language.stages import Observe
from domain.lifecycle import next_step
from domain.reading import Reading, read_observe
from domain.rendering import render


async def read_status(world: World, case: Case, *, turn: int, woken: bool = False) -> Case:
    """One status read, recorded with the move it allows."""
    observe = case.contract.observe
    assert observe is not None
    scope_id = call_id(case.record.stream, "observe", case.standing.reads + 1)
    began = instant(world.clocks.now())
    before = await run_before(world, case, observe.before, case.scope(call_id=scope_id))
    if before.stopped is not None:
        fact = _stopped(world, case, observe, before, before.stopped, began, turn=turn)
        return case.at(await append_fact(world, case, fact, turn=turn))
    try:
        request = render(case.contract, observe.request, before.scope)
    except (RenderError, AddressError) as error:
        fact = _failed(world, case, before, began, error.message, turn=turn)
        return case.at(await append_fact(world, case, fact, turn=turn))
    fact, payloads = await _reading(world, case, observe, request, before, began, turn=turn, woken=woken)
    return case.at(await append_fact(world, case, fact, turn=turn, payloads=payloads))


def _failed(world: World, case: Case, before: Before, began: datetime, message: str, *, turn: int) -> Observation:
    at = instant(world.clocks.now())
    return Observation(
        at=at, actor=world.identity, meaning="failed", word=UNRENDERABLE, began=began, turn=turn, words=Words(message=message),
        next_at=_next(case, at, None, woken=False), before=before.seen,
    )  # fmt: skip


def _stopped(world: World, case: Case, observe: Observe, before: Before, stopped: StepDone, began: datetime, *, turn: int) -> Observation:
    """A reading that was not made, because a step ahead of it was not done."""
    at = instant(world.clocks.now())
    meaning = "failed" if stopped.meaning == "again" or stopped.word == UNRENDERABLE else stopped.meaning
    refused = round(observe.poll.cap.total_seconds() * 1000)
    hint_ms = refused if meaning == "refused" else stopped.delay_ms
    violation = {**stopped.violation, "word": before.word} if meaning == "violation" else None
    return Observation.model_validate(
        {
            "at": at,
            "actor": world.identity,
            "meaning": meaning,
            "word": before.word,
            "began": began,
            "turn": turn,
            "words": stopped.words,
            "violation": violation,
            "next_at": None if violation else _next(case, at, hint_ms, woken=False),
            "before": before.seen,
        }
    )


async def _reading(
    world: World, case: Case, observe: Observe, request: Request, before: Before, began: datetime, *, turn: int, woken: bool
) -> tuple[Observation, Sequence[bytes]]:
    exchange = await world.provider.exchange(request, case.policy(max_bytes=case.contract.http.limits.response_bytes))
    at, outcome = instant(world.clocks.now()), exchange.outcome
    base: dict[str, object] = {
        "at": at,
        "actor": world.identity,
        "began": began,
        "http": await recorded(world, case, exchange),
        "turn": turn,
        "woken": woken,
        "before": before.seen,
    }
    if isinstance(outcome, NoAnswer):
        base |= {"meaning": "failed", "word": outcome.word, "words": unanswered(outcome, at)}
        base |= {"next_at": _next(case, at, outcome.wait_ms, woken=woken)}
        return Observation.model_validate(base), ()
    scope = before.scope
    compare = case.standing.compare_due
    reading = await read(lambda: read_observe(case.contract, outcome, scope, at, compare=compare), outcome)
    base |= _shown(reading)
    payloads: Sequence[bytes] = ()
    match reading.meaning:
        case "terminal":
            base["observed"], payload = keep_observed("observe", outcome)
            payloads = (payload,)
        case "violation":
            base["violation"] = contradiction("the status", reading.differs, DIFFERS, salt=case.asked.salt, word=reading.word)
        case "refused":
            base["next_at"] = _next(case, at, round(observe.poll.cap.total_seconds() * 1000), woken=False)
        case _:
            base["next_at"] = _next(case, at, reading.delay_ms, woken=woken)
    return Observation.model_validate(base), payloads


def _shown(reading: Reading) -> dict[str, object]:
    """The fields of an `Observation` that are the provider's."""
    return {
        "meaning": reading.meaning,
        "word": reading.word,
        "verdict": reading.verdict,
        "remote_state": reading.remote_state,
        "provider_at": reading.at,
        "progress": reading.progress,
        "counts": reading.counts,
        "counts_problem": reading.counts_problem,
        "undecided": reading.undecided,
        "words": words_of(reading),
    }


def _next(case: Case, now: datetime, hint_ms: int | None, *, woken: bool) -> datetime:
    standing = case.standing
    return next_instant(
        case.contract,
        stream=case.record.stream,
        now=now,
        hint_ms=hint_ms,
        tries=0 if woken else standing.tries,
        deadline=next_step(standing).until,
    )


def is_over(world: World, case: Case) -> bool:
    """The clock that runs in this state has passed its deadline."""
    deadline = next_step(case.standing).until
    return deadline is not None and world.clocks.now() >= deadline
