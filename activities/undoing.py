"""Taking back what steps left at the provider, where nothing was committed that could work with it.

* Due once an operation has ended without a commit, and before a new generation starts. What a generation left whose create may have
  been carried out is never undone: a job may be at work with it.
* A contract says what is sent, not how its answers read: 2xx, and 404 or 410 (it is gone), count as taken. All else is tried again
  until the bound: the create deadline; or, of an operation that ended, as long again from its end on. What is left then is recorded
  and flagged, and where a new generation waited for it, a human decides.
* An undo may be sent twice: after a crash nobody knows whether it was taken, and what is gone stays gone.
* The state of an ended operation stays what it is: its undo is noted.
* Of a step that is done after the end whoever did it undoes what it left, once: no workflow is left that would. If that is not taken,
  it is recorded and flagged.
"""

from collections.abc import Sequence
from dataclasses import replace

from activities.case import Case, call_id
from activities.loading import needed
from activities.owning import append_as_owner, append_fact
from activities.ports import World
from activities.recording import recorded
from activities.sealing import request_facts, sealed
from activities.stepping import UNRENDERABLE
from activities.veiling import hide
from activities.waiting import again, next_instant
from domain.answer_matching import answer_scope
from domain.errors import AddressError, RenderError, StaleOwner, Unloadable
from domain.evidence import Evidence, Http, Intent, Json, StepOutcome, Words, instant
from domain.exchange import Answer, Request
from domain.language.expressions import Scope
from domain.lifecycle import undo_until
from domain.needs import saved_by
from domain.polling import hint
from domain.rendering import render
from domain.standing import Leftover, Standing
from domain.steps import token_of, undone, values_of


async def before_create(world: World, case: Case, *, turn: int) -> Case:
    """Undo what older generations left, or at the create deadline leave it to a human."""
    if _is_over(world, case):
        return await _give_up(world, case, turn=turn)
    return await _try_each(world, case, turn=turn)


async def undo(world: World, case: Case, *, turn: int) -> Case:
    """Undo what an operation left that ended without a commit; at the bound once more, and then no longer."""
    case = await _try_each(world, case, turn=turn)
    return await _give_up(world, case, turn=turn) if case.standing.undo_due and _is_over(world, case) else case


async def undo_late(world: World, case: Case, done: StepOutcome, *, turn: int) -> Case:
    """Undo what a step left that was done after the operation had ended, or say that it stays."""
    for left in case.standing.undo_due:
        if (left.generation, left.step, left.saved) != (done.generation, done.step, done.saved):
            continue
        case = await _undo(world, case, left, turn=turn)
        if left in case.standing.undo_due:
            words = Words(reason=case.standing.why or "it was not taken")
            case = await _record(world, case, _outcome(world, left, "leftover", "late", words=words), turn=turn)
    return case


def _is_over(world: World, case: Case) -> bool:
    until = undo_until(case.standing)
    return until is not None and world.clocks.now() >= until


async def _give_up(world: World, case: Case, *, turn: int) -> Case:
    for left in case.standing.undo_due:
        words = Words(reason=case.standing.why or "it was not taken in time")
        case = await _record(world, case, _outcome(world, left, "leftover", "deadline", words=words), turn=turn)
    return case


async def _try_each(world: World, case: Case, *, turn: int) -> Case:
    for left in case.standing.undo_due:
        case = await _undo(world, case, left, turn=turn)
    return case


async def _undo(world: World, case: Case, left: Leftover, *, turn: int) -> Case:
    """One undo: intended, sent, read, recorded. One that can't be made is given up at once."""
    try:
        request = await sealed(world, await _request(world, case, left))
    except (RenderError, AddressError, Unloadable) as error:
        words = Words(message=error.message)
        return await _record(world, case, _outcome(world, left, "leftover", UNRENDERABLE, words=words), turn=turn)
    case, ours = await _intend(world, case, left, request, turn=turn)
    if not ours:
        return case
    exchange = await world.provider.exchange(request, case.policy(max_bytes=case.contract.http.limits.response_bytes))
    http, answer = await recorded(world, case, exchange), exchange.outcome
    if not isinstance(answer, Answer):
        return await _later(world, case, left, answer.word, http, answer.wait_ms, turn=turn)
    if undone(answer.status):
        return await _record(world, case, _outcome(world, left, "undone", str(answer.status), http=http), turn=turn)
    return await _later(world, case, left, str(answer.status), http, _hint(world, case, answer), turn=turn)


async def _request(world: World, case: Case, left: Leftover) -> Request:
    step = next((step for step in case.contract.create.before if step.step == left.step), None)
    if step is None or step.undo is None:
        raise RenderError(f"the contract has no undo for {left.step}")
    generation, token = left.generation, case.contract.create.token
    values: dict[str, Json] = {name: values_of(await needed(world.ledger, ref.digest, saved_by(name))) for name, ref in left.steps.items()}
    ours = token_of(token.source, values) if token and token.source else case.token(generation)
    base = case.scope(
        call_id=call_id(case.record.stream, "undo", generation, left.step, left.saved.digest[:12] if left.saved else ""), token=ours
    )
    return render(case.contract, step.undo, replace(base, mark=case.mark(generation), steps=values))


def _hint(world: World, case: Case, answer: Answer) -> int | None:
    delay = hint(case.contract.http.delay_hints, answer_scope(answer, Scope()), world.clocks.now())
    return None if delay is None else int(delay.total_seconds() * 1000)


async def _intend(world: World, case: Case, left: Leftover, request: Request, *, turn: int) -> tuple[Case, bool]:
    facts, payload = request_facts(request)
    said = Intent(
        at=instant(world.clocks.now()), actor=world.identity, meaning="undo", generation=left.generation, step=left.step, request=facts
    )
    intent = hide(case, said)
    ours = False

    def decide(standing: Standing) -> Sequence[Evidence]:
        nonlocal ours
        ours = left in standing.undo_due and _asks(standing)
        return [intent] if ours else []

    try:
        record = await append_as_owner(world, case.record.stream, decide, turn=turn, payloads=[payload])
    except StaleOwner:
        if not case.standing.final:
            raise
        record = await world.ledger.append(case.record.stream, decide, owner=None, payloads=[payload])  # a note needs no owner
    return case.at(record), ours


def _asks(standing: Standing) -> bool:
    return standing.final or standing.state in {"approved", "create_pending"}


async def _later(world: World, case: Case, left: Leftover, word: str, http: Http, hint_ms: int | None, *, turn: int) -> Case:
    fact = _outcome(world, left, "undo_again", word, http=http, words=Words(reason=f"the undo of step {left.step} was not taken: {word}"))
    if case.standing.final:
        standing = case.standing
        due = next_instant(
            case.contract, stream=case.record.stream, now=fact.at, hint_ms=hint_ms, tries=standing.tries, deadline=undo_until(standing)
        )
    else:
        due = again(case, "create", fact.at, hint_ms)
    return await _record(world, case, fact.model_copy(update={"next_at": due}), turn=turn)


def _outcome(world: World, left: Leftover, meaning: str, word: str, *, http: Http | None = None, words: Words | None = None) -> StepOutcome:
    return StepOutcome.model_validate(
        {
            "at": instant(world.clocks.now()),
            "actor": world.identity,
            "meaning": meaning,
            "step": left.step,
            "generation": left.generation,
            "saved": left.saved,
            "word": word,
            "http": http,
            "words": words or Words(),
        }
    )


async def _record(world: World, case: Case, fact: StepOutcome, *, turn: int) -> Case:
    return case.at(await append_fact(world, case, fact, turn=turn))
