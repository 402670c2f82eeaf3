"""Judge an action, judge a decision. Both run as local activities and touch nothing but the ledger and the gate.

* A message is recorded once per request id, accepted or refused with the reason; sent again it gets the recorded verdict.
* What does not decode is refused and recorded like anything else.
* After MAX_REFUSALS in a round further refusals are counted, not listed, so that a flood cannot fill the ledger.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue, ValidationError
from temporalio import activity

from activities.failures import as_failures
from activities.heads import head_of
from activities.judging import judge_execution, question_of
from activities.loading import Cases
from activities.owning import append_as_owner
from activities.ports import Record, World
from domain.errors import Refused, Unloadable
from domain.evidence import Decision, DecisionMeaning, Evidence, Refusals, Regressed, bounded
from domain.lifecycle import choices, next_step, permits
from domain.messages import (
    MAX_SIGNAL_BYTES,
    ApprovalDecision,
    CancelRequest,
    Head,
    JudgedDecision,
    JudgeDecisionInput,
    Known,
    Message,
    Received,
    Resolution,
    StepInput,
)
from domain.reading import job_id
from domain.standing import Standing

MAX_REFUSALS = 20
NATIVE_USER = "temporal-ui"
_PAYLOADS: dict[str, type[Message]] = {"cancel": CancelRequest, "decide": ApprovalDecision, "resolve": Resolution}


@dataclass(frozen=True)
class Asked:
    """A message as far as it could be read. `refused`: why it cannot be taken, whatever the state."""

    request_id: str
    by: str
    verb: str
    meaning: DecisionMeaning
    reason: str | None = None
    source: str = "signal"
    resolution: Resolution | None = None
    force: bool = False
    refused: str | None = None


class AuthorityActivities:
    """The judging activities of one worker."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cases = Cases(world)

    @activity.defn(name="judge")
    async def judge(self, step: StepInput) -> Head:
        """Judge the proposal, if that is still the step; read the head in the same transaction."""
        world = self._world

        def decide(standing: Standing) -> list[Evidence]:
            if next_step(standing).name != "judge":
                return []
            return [judge_execution(world, step.id, standing, at=world.clocks.now(), actor=world.identity)]

        with as_failures():
            record = await append_as_owner(world, step.id, decide, turn=step.turn, known=step.known)
            return head_of(record, world.clocks.now())

    @activity.defn(name="judge_decision")
    async def judge_decision(self, asked: JudgeDecisionInput) -> JudgedDecision:
        """Verify, judge and record one message from a person."""
        world = self._world
        with as_failures():
            message = read_message(asked.received)
            if asked.regressed is not None:
                return await self._accept_ledger(asked, message, asked.regressed)
            record = await world.ledger.record(asked.id, known=asked.known)
            if message.request_id not in record.standing.answered:
                record = await self._record(asked, await self._with_job(asked.id, message))
            answer = record.standing.answered.get(message.request_id)
            head = head_of(record, world.clocks.now())
            if answer is None:
                return JudgedDecision(head=head, accepted=False, listed=False, why="too many refusals in this round")
            return JudgedDecision(head=head, accepted=answer.accepted, why=answer.why)

    async def _record(self, asked: JudgeDecisionInput, message: Asked) -> Record:
        def decide(standing: Standing) -> list[Evidence]:
            if message.request_id in standing.answered:
                return []
            decision = self._decide(asked.id, standing, message)
            if decision.meaning == "refused" and standing.refusals >= MAX_REFUSALS:
                return self._counted(asked.unlisted + 1, message)
            return [decision]

        try:
            return await append_as_owner(self._world, asked.id, decide, turn=asked.turn)
        except Refused as refused:
            # The job belongs to another operation: only the ledger can see that.
            taken = self._asked_for(message).model_copy(update={"meaning": "refused", "why": bounded(refused.message)})
            return await append_as_owner(self._world, asked.id, lambda _: [taken], turn=asked.turn)

    async def _with_job(self, stream: str, message: Asked) -> Asked:
        """An `adopt` with the job that it names, or refused: a job is named by all that later calls need of it."""
        if message.meaning != "adopt" or message.resolution is None:
            return message
        try:
            names = set((await self._cases.load(stream, None)).contract.job_names)
        except Unloadable as error:
            return replace(message, refused=f"no job can be taken: {error.message}")
        given = message.resolution.arguments
        named = job_id(given.get("id"))
        if named is None or set(given) != names:
            wanted = " ".join(("JOB", *sorted(f"{name}=VALUE" for name in names - {"id"})))
            return replace(message, refused=f"adopt needs exactly: {wanted}")
        resolution = message.resolution.model_copy(update={"arguments": {**given, "id": named}})
        return replace(message, resolution=resolution)

    async def _accept_ledger(self, asked: JudgeDecisionInput, message: Asked, lost: Known) -> JudgedDecision:
        """While the ledger lacks what Temporal knows, only a human's `accept_ledger` is taken; the rest waits where it is."""
        world = self._world
        record = await world.ledger.record(asked.id)
        if message.meaning != "accept_ledger":
            return JudgedDecision(head=head_of(record, world.clocks.now()), accepted=False, waits=True)

        def decide(standing: Standing) -> list[Evidence]:
            if message.request_id in standing.answered:
                return []
            judged = self._judged(asked.id, standing, self._asked_for(message), "resolve")
            if judged.meaning == "refused":
                return [judged]
            accepted = Regressed(
                at=judged.at, actor=judged.actor, known_seq=lost.seq, known_hash=lost.hash, by=message.by, reason=message.reason
            )
            return [judged, accepted]

        record = await append_as_owner(world, asked.id, decide, turn=asked.turn)
        answer = record.standing.answered[message.request_id]
        return JudgedDecision(head=head_of(record, world.clocks.now()), accepted=answer.accepted, why=answer.why)

    def _counted(self, unlisted: int, message: Asked) -> list[Evidence]:
        """The running count, written at 1, 2, 4, 8 ... so that a flood of n costs log n entries."""
        if unlisted & (unlisted - 1):
            return []
        at = self._world.clocks.now()
        return [Refusals(at=at, actor=self._world.identity, count=unlisted, last_request_id=message.request_id)]

    def _asked_for(self, message: Asked) -> Decision:
        """The decision as it was asked for, not yet judged."""
        return Decision(
            at=self._world.clocks.now(),
            actor=f"human:{message.by}",
            meaning=message.meaning,
            request_id=message.request_id,
            verb=message.verb,
            by=message.by,
            reason=message.reason,
            source=message.source,
            force=message.force,
            arguments=message.resolution.arguments if message.resolution else {},
            until=message.resolution.until if message.resolution else None,
        )

    def _decide(self, stream: str, standing: Standing, message: Asked) -> Decision:
        decision = self._asked_for(message)
        why = message.refused or state_refuses(standing, decision)
        if why is not None:
            return decision.model_copy(update={"meaning": "refused", "why": bounded(why)})
        return self._judged(stream, standing, decision, "cancel" if message.meaning == "cancel" else "resolve")

    def _judged(self, stream: str, standing: Standing, decision: Decision, verb: str) -> Decision:
        """The decision with what policy says of it; refused if it does not let this person."""
        world = self._world
        judgement = world.gate.judge_decision(question_of(world, stream, standing, decision.at), verb, decision.by)
        judged = {"policies": judgement.policies, "bundle": judgement.bundle}
        if judgement.answer != "unattended":
            why = judgement.why or f"policy does not let {decision.by} {verb} this"
            return decision.model_copy(update={"meaning": "refused", "why": bounded(why), **judged})
        return decision.model_copy(update=judged)


def state_refuses(standing: Standing, decision: Decision) -> str | None:
    """Why the state does not allow this, in words a person can act on; None if it does."""
    if standing.final:
        return f"the operation has ended: {standing.state}"
    if decision.force and decision.meaning != "cancel":
        return "only a cancel can be forced"
    if decision.force and not standing.facts.cancel_force:
        return "this provider's contract has no call that forces a cancel; ask without --force"
    if decision.meaning == "accept_ledger":
        return "the ledger holds all that Temporal knows of: there is nothing to accept"
    if decision.verb == "resolve" and not standing.attention:
        return f"the operation is {standing.state} and waits for no human"
    if decision.until is not None and decision.until <= decision.at:
        return "until is not in the future"
    offers = choices(standing, decision.at)
    if decision.meaning in offers if decision.verb == "resolve" else permits(standing, decision):
        return None
    if decision.verb == "resolve":
        offered = ", ".join(offers) or "nothing"
        return f"{decision.meaning} is not possible in {standing.state}; possible: {offered}"
    match standing.state:
        case "result_collecting":
            return "the job has ended; its result is being collected"
        case "cancel_requested" | "cancelling" | "cancellation_unconfirmed":
            forced = "; --force sends the contract's forced cancel" if permits(standing, _by_force(decision)) else ""
            return f"already asked, and this provider's cancel is not to be repeated{forced}"
        case state:
            return f"a cancel is not possible in {state}"


def _by_force(decision: Decision) -> Decision:
    return decision.model_copy(update={"force": True})


def read_message(received: Received) -> Asked:
    """A message as far as it can be read. Total: what does not decode is refused with the reason, under an id of its own."""
    if received.native is not None:
        request_id = f"native/{received.native}"
        return Asked(request_id, NATIVE_USER, "cancel", "cancel", reason="Temporal's own cancel", source="native")
    unread = f"undecoded/{received.event}/{hashlib.sha256(received.body.encode()).hexdigest()[:16]}"
    refused = Asked(unread, "unknown", bounded(received.kind, 64), "refused")
    model = _PAYLOADS.get(received.kind)
    if model is None:
        return _refuse(refused, f"no such message: {received.kind}")
    if received.size > MAX_SIGNAL_BYTES:
        return _refuse(refused, f"a message of {received.size} bytes; at most {MAX_SIGNAL_BYTES} are taken")
    try:
        value = cast("JsonValue", json.loads(received.body))
        message = model.model_validate(value)
    except (ValueError, RecursionError) as error:
        return _refuse(_named(refused, received.body), f"cannot be read: {_where(error)}")
    match message:
        case CancelRequest():
            return Asked(message.request_id, message.by, "cancel", "cancel", message.reason, force=message.force)
        case Resolution():
            return Asked(message.request_id, message.by, "resolve", message.choice, message.reason, resolution=message, force=message.force)
        case ApprovalDecision():
            return Asked(message.request_id, message.by, message.decision, message.decision, message.reason, refused=_NO_APPROVALS)
        case _:
            return _refuse(refused, "no such message")


_NO_APPROVALS = "approvals are not taken: this version's policy either permits an effect or denies it"


def _refuse(asked: Asked, why: str) -> Asked:
    return Asked(asked.request_id, asked.by, asked.verb, "refused", refused=why)


def _named(asked: Asked, body: str) -> Asked:
    """Under the request id that the sender gave, where that much can be read, so that the sender finds the verdict."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return asked
    match value:
        case {"request_id": str() as request_id} if 0 < len(request_id) <= 128 and request_id.isprintable():
            return Asked(request_id, asked.by, asked.verb, "refused")
        case _:
            return asked


def _where(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'message'}: {first['msg']}"
    return "not JSON"
