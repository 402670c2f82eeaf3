"""What is done ahead of a create: what older generations left is undone, then the contract's steps are done, each under an intent.

* Policy is asked before every step, in the transaction of its intent: a step already carries data away. It consumes no approval.
* A generation starts with no step done, and no step is done again once the create's request of the generation is recorded.
* What a step saved is durable, as a payload, with the entry that says so. Between its answer and that entry a crash loses both: the
  step is inert, so it is simply sent again, and what the lost sending left is known to nobody.
* A cancel, the create deadline and policy are looked at between any two steps.
"""

from collections.abc import Sequence

from temporalio import activity

from activities import creating, stepping, undoing
from activities.beating import Pulse
from activities.case import Case, call_id
from activities.judging import judge_execution
from activities.owning import append_as_owner, append_fact
from activities.ports import World
from activities.sealing import request_facts, sealed
from activities.stepping import UNRENDERABLE, StepDone
from activities.veiling import hide
from activities.waiting import again, due_in
from domain.errors import AddressError, RenderError
from domain.evidence import Evidence, Intent, Ref, StepOutcome, Words, instant
from domain.exchange import Request
from domain.fingerprint import sha256_hex
from domain.language.calls import Step
from domain.language.expressions import Scope
from domain.lifecycle import next_step
from domain.standing import Standing
from domain.steps import kept_values


def due(case: Case) -> Step | None:
    """The step of create that is due: none once the create's request is recorded, for that is sent as it stands."""
    standing = case.standing
    if standing.request is not None:
        return None
    return next((step for step in case.contract.create.before if step.step not in standing.steps), None)


def is_ready(case: Case) -> bool:
    """The create itself is what is due: nothing is left to undo, and every step is done."""
    return next_step(case.standing).name == "create" and not case.standing.undo_due and due(case) is None


async def prepare(world: World, case: Case, pulse: Pulse, *, turn: int) -> Case:
    """Do what is due ahead of the create, until it is ready or the next of it has to wait."""
    while next_step(case.standing).name == "create" and not is_ready(case) and not activity.is_cancelled():
        before = case.record.seq
        if case.standing.undo_due:
            case = await undoing.before_create(world, case, turn=turn)
        else:
            case = await creating.end_at_deadline(world, case, turn=turn)
            step = due(case)
            if next_step(case.standing).name == "create" and step is not None:
                case = await _do(world, case, step, turn=turn)
        pulse.witness(case.record.seq, case.record.hash)
        if case.record.seq == before or due_in(case.standing, world.clocks.now()):
            break
    return case


async def _do(world: World, case: Case, step: Step, *, turn: int) -> Case:
    """One step: judged and intended in one transaction, sent, read, recorded with what it saved."""
    generation = case.standing.generation
    scope = _scope(case, step)
    try:
        request = await sealed(world, stepping.first_request(case, step, scope))
    except (RenderError, AddressError) as error:
        done = StepDone(step.step, "refused", UNRENDERABLE, words=Words(message=error.message))
        return await _record(world, case, done, generation, turn=turn)
    case, ours = await _intend(world, case, step, request, turn=turn)
    if not ours:
        return case
    done = await stepping.run_step(world, case, step, scope, first=request)
    return await _record(world, case, done, generation, turn=turn)


def _scope(case: Case, step: Step) -> Scope:
    generation = case.standing.generation
    return case.scope(call_id=call_id(case.record.stream, "step", generation, step.step), token=case.token(generation))


async def _intend(world: World, case: Case, step: Step, request: Request, *, turn: int) -> tuple[Case, bool]:
    """Record the intent, unless policy or the state is against it. Only whose intent it is may send."""
    facts, payload = request_facts(request)
    at, generation = instant(world.clocks.now()), case.standing.generation
    said = Intent(at=at, actor=world.identity, meaning="step", generation=generation, step=step.step, request=facts)
    intent = hide(case, said)
    ours = False

    def decide(standing: Standing) -> Sequence[Evidence]:
        nonlocal ours
        ours = False
        still = next_step(standing).name == "create" and standing.generation == generation and not standing.undo_due
        if not still or standing.request is not None or step.step in standing.steps or standing.open_attempt is not None:
            return []
        policy = judge_execution(world, case.record.stream, standing, at=at, actor=world.identity)
        ours = policy.meaning in {"unattended", "covered"}
        return [policy, intent] if ours else [policy]

    record = await append_as_owner(world, case.record.stream, decide, turn=turn, payloads=[payload])
    return case.at(record), ours


async def _record(world: World, case: Case, done: StepDone, generation: int, *, turn: int) -> Case:
    stream, at = case.record.stream, instant(world.clocks.now())
    fact = StepOutcome(
        at=at, actor=world.identity, meaning=done.meaning, step=done.step, generation=generation, word=done.word, pages=done.pages,
        http=done.http, words=done.words,
    )  # fmt: skip
    payloads: list[bytes] = []
    match done.meaning:
        case "done":
            kept = kept_values(case.asked.salt, stream, generation, done.step, done.saved)
            saved = Ref(digest=sha256_hex(kept), size=len(kept))
            payloads, fact = [kept], fact.model_copy(update={"saved": saved})
            case = case.knowing(saved.digest, done.saved)
        case "again":
            fact = fact.model_copy(update={"next_at": again(case, "create", at, done.delay_ms)})
        case "violation":
            fact = fact.model_copy(update={"violation": {**done.violation, "word": done.word}})
        case "refused":
            pass
    case = case.at(await append_fact(world, case, fact, turn=turn, payloads=payloads))
    return await undoing.undo_late(world, case, fact, turn=turn) if case.standing.final else case
