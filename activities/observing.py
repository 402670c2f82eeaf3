"""Reading the status: once at least, then as often as the next delay is short enough to hold.

* A failed read decides nothing: it is recorded and repeated.
* At the deadline one last reading is made; if it does not end the waiting, the clock is appended by this same activity.
* A reading that began before the first terminal observation can contradict nothing: its beginning is recorded.
"""

from collections.abc import Sequence
from datetime import datetime

from activities.calling import keep_observed, read, recorded, words_of
from activities.case import Case, call_id
from activities.owning import append_fact
from activities.ports import World
from activities.waiting import next_instant
from domain.errors import AddressError, RenderError
from domain.evidence import Observation, Words, instant
from domain.exchange import NoAnswer, Request
from domain.lifecycle import next_step
from domain.reading import read_observe
from domain.rendering import render
from domain.stages import Observe


async def read_status(world: World, case: Case, *, turn: int, woken: bool = False) -> Case:
    """One status read, recorded with the move it allows."""
    observe = case.contract.observe
    assert observe is not None
    scope_id = call_id(case.record.stream, "observe", case.standing.reads + 1)
    began = instant(world.clocks.now())
    try:
        request = render(case.contract, observe.request, case.scope(call_id=scope_id))
    except (RenderError, AddressError) as error:
        fact = _failed(world, case, began, error.message, turn=turn)
        return case.at(await append_fact(world, case.record.stream, fact, turn=turn))
    fact, payloads = await _reading(world, case, observe, request, scope_id, began, turn=turn, woken=woken)
    return case.at(await append_fact(world, case.record.stream, fact, turn=turn, payloads=payloads))


def _failed(world: World, case: Case, began: datetime, message: str, *, turn: int) -> Observation:
    at = instant(world.clocks.now())
    return Observation(
        at=at, actor=world.identity, meaning="failed", word="unrenderable", began=began, turn=turn, words=Words(message=message),
        next_at=_next(case, at, None, woken=False),
    )  # fmt: skip


async def _reading(
    world: World, case: Case, observe: Observe, request: Request, scope_id: str, began: datetime, *, turn: int, woken: bool
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
    }
    if isinstance(outcome, NoAnswer):
        base |= {"meaning": "failed", "word": outcome.word, "next_at": _next(case, at, None, woken=woken)}
        return Observation.model_validate(base), ()
    scope = case.scope(call_id=scope_id)
    compare = case.standing.compare_due
    reading = await read(lambda: read_observe(case.contract, outcome, scope, at, compare=compare), outcome)
    base |= {
        "meaning": reading.meaning,
        "word": reading.word,
        "verdict": reading.verdict,
        "remote_state": reading.remote_state,
        "provider_at": reading.at,
        "progress": reading.progress,
        "words": words_of(reading),
    }
    payloads: Sequence[bytes] = ()
    match reading.meaning:
        case "terminal":
            base["observed"], payload = keep_observed("observe", outcome)
            payloads = (payload,)
        case "violation":
            base["violation"] = {"why": reading.reason or "the status names another job than the one asked for", "word": reading.word}
        case "refused":
            base["next_at"] = _next(case, at, round(observe.poll.cap.total_seconds() * 1000), woken=False)
        case _:
            base["next_at"] = _next(case, at, reading.delay_ms, woken=woken)
    return Observation.model_validate(base), payloads


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
