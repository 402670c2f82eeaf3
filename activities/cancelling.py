"""Asking the provider to cancel: once per decision. The force call of a contract is sent where a human's `--force` asked for it.

* The answer is recorded as an acknowledgement at most. Only a status read confirms.
* The steps ahead of it are done anew each time. Where one is not done nothing was sent, and nothing was intended.
* A cancel whose outcome is not known is re-sent only where the contract says that it may be; the force call never is.
* Where a cancel would destroy a finished job the status is read first, and a finished job is left alone.
"""

from collections.abc import Sequence

from activities.case import Case, call_id
from activities.owning import append_as_owner, append_fact
from activities.ports import Record, World
from activities.recording import read, recorded, unanswered, words_of
from activities.sealing import request_facts, sealed
from activities.stepping import UNRENDERABLE, Before, StepDone, run_before
from activities.veiling import hide
from activities.waiting import again
from domain.contract import Contract
from domain.contradictions import DIFFERS, contradiction
from domain.errors import AddressError, RenderError
from domain.evidence import CancelAnswer, Evidence, Intent, Words, instant
from domain.exchange import NoAnswer, Request
from domain.lifecycle import next_step
from domain.reading import read_cancel
from domain.rendering import render
from domain.standing import Standing

NO_CANCEL = "this provider has no way to cancel: the job goes on"


async def close_open_cancel(world: World, case: Case, *, turn: int) -> Case:
    """A cancel that was recorded as being sent and has no outcome may have been taken: unsure."""
    if not case.standing.cancel_sent:
        return case
    now = instant(world.clocks.now())
    fact = CancelAnswer(at=now, actor=world.identity, meaning="unsure", word="lost", recovered="lost", next_at=now)
    return case.at(await append_fact(world, case, fact, turn=turn))


async def say_no_cancel(world: World, case: Case, *, turn: int) -> Record:
    """Record that there is nothing to send."""
    now = instant(world.clocks.now())
    fact = CancelAnswer(at=now, actor=world.identity, meaning="refused", word="none", words=Words(message=NO_CANCEL))
    return await append_fact(world, case, fact, turn=turn)


async def send_cancel(world: World, case: Case, contract: Contract, *, turn: int) -> Record:
    """Record the intent, send, read, record the answer."""
    assert contract.cancel is not None
    forced = case.standing.cancel_forced and contract.cancel.force is not None
    cancel = contract.cancel.call(forced=forced)
    stream = case.record.stream
    before = await run_before(world, case, cancel.before, case.scope(call_id=call_id(stream, "cancel", case.record.seq)))
    if before.stopped is not None:
        return await append_fact(world, case, _stopped(world, case, before, before.stopped), turn=turn)
    scope = before.scope
    try:
        request = await sealed(world, render(contract, cancel.request, scope))
    except (RenderError, AddressError) as error:
        now = instant(world.clocks.now())
        words = Words(message=error.message)
        fact = CancelAnswer(at=now, actor=world.identity, meaning="refused", word=UNRENDERABLE, words=words, before=before.seen)
        return await append_fact(world, case, fact, turn=turn)
    record, ours = await _intend(world, case, request, forced=forced, turn=turn)
    if not ours:
        return record
    exchange = await world.provider.exchange(request, case.policy(max_bytes=contract.http.limits.response_bytes))
    at, outcome = instant(world.clocks.now()), exchange.outcome
    base: dict[str, object] = {"at": at, "actor": world.identity, "http": await recorded(world, case, exchange)}
    base |= {"before": before.seen}
    if isinstance(outcome, NoAnswer):
        base |= {"meaning": "unsure" if outcome.sent else "again", "word": outcome.word, "words": unanswered(outcome, at)}
        base |= {"next_at": again(case, "cancel", at, outcome.wait_ms)}
    else:
        reading = await read(lambda: read_cancel(contract, outcome, scope, at, forced=forced), outcome)
        base |= {"meaning": reading.meaning, "word": reading.word, "words": words_of(reading)}
        base |= {"next_at": again(case, "cancel", at, reading.delay_ms)}
        if reading.meaning == "violation":
            base["violation"] = contradiction("the answer to the cancel", reading.differs, DIFFERS, salt=case.asked.salt, word=reading.word)
    return await append_fact(world, case, CancelAnswer.model_validate(base), turn=turn)


def _stopped(world: World, case: Case, before: Before, stopped: StepDone) -> CancelAnswer:
    """A cancel that was not sent, because a step ahead of it was not done. Such a step is inert: it is done again with the cancel."""
    at = instant(world.clocks.now())
    violation = {**stopped.violation, "word": before.word} if stopped.meaning == "violation" else None
    return CancelAnswer.model_validate(
        {
            "at": at,
            "actor": world.identity,
            "meaning": stopped.meaning,
            "word": before.word,
            "words": stopped.words,
            "violation": violation,
            "next_at": again(case, "cancel", at, stopped.delay_ms),
            "before": before.seen,
        }
    )


async def _intend(world: World, case: Case, request: Request, *, forced: bool, turn: int) -> tuple[Record, bool]:
    """Record the intent, unless another attempt did. Only whose intent it is may send."""
    facts, payload = request_facts(request)
    said = Intent(at=instant(world.clocks.now()), actor=world.identity, meaning="cancel", request=facts, forced=forced)
    intent = hide(case, said)
    ours = False

    def decide(standing: Standing) -> Sequence[Evidence]:
        nonlocal ours
        ours = next_step(standing).name == "cancel" and not standing.cancel_sent
        return [intent] if ours else []

    record = await append_as_owner(world, case.record.stream, decide, turn=turn, payloads=[payload])
    return record, ours


def reads_first(case: Case) -> bool:
    """The status is read before the cancel is sent: it would destroy a finished job, or the job may be somebody else's."""
    return case.standing.facts.destroys_finished_jobs or case.standing.compare_due


def may_be_sent(case: Case) -> bool:
    """The newest entry is a reading that showed the job not to have ended, and it is what was asked for."""
    return case.standing.remote_read in {"going", "held", "not_visible"} and not case.standing.compare_due
