"""Judge an action, judge a decision. Both run as local activities and touch nothing but the ledger and the gate.

* A message is recorded once per request id, accepted or refused with the reason; sent again it gets the recorded verdict.
* What does not decode is refused and recorded like anything else.
* After MAX_REFUSALS in a round further refusals are counted, not listed, so that a flood cannot fill the ledger.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue, ValidationError
from temporalio import activity

from activities.case import Cases
from activities.failures import as_failures
from activities.heads import head_of
from activities.judging import judge_execution, question_of
from activities.owning import append_as_owner
from activities.ports import Record, World
from domain.evidence import Decision, DecisionMeaning, Evidence, Refusals, bounded
from domain.lifecycle import OFFERED, choices, next_step, permits
from domain.messages import (
    MAX_SIGNAL_BYTES,
    ApprovalDecision,
    CancelRequest,
    Head,
    JudgedDecision,
    JudgeDecisionInput,
    Message,
    Received,
    Resolution,
    StepInput,
)
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
        """Judge the proposal."""
        world = self._world
        with as_failures():
            record = await world.ledger.record(step.id, known=step.known)
            if next_step(record.standing).name == "judge":

                def decide(standing: Standing) -> list[Evidence]:
                    if next_step(standing).name != "judge":
                        return []
                    return [judge_execution(world, step.id, standing, at=world.clocks.now(), actor=world.identity)]

                record = await append_as_owner(world, step.id, decide, turn=step.turn)
            return head_of(record, world.clocks.now())

    @activity.defn(name="judge_decision")
    async def judge_decision(self, asked: JudgeDecisionInput) -> JudgedDecision:
        """Verify, judge and record one message from a person."""
        world = self._world
        with as_failures():
            message = read_message(asked.received)
            record = await world.ledger.record(asked.id, known=asked.known)
            if message.request_id not in record.standing.answered:
                record = await self._record(asked, message)
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

        return await append_as_owner(self._world, asked.id, decide, turn=asked.turn)

    def _counted(self, unlisted: int, message: Asked) -> list[Evidence]:
        """The running count, written at 1, 2, 4, 8 ... so that a flood of n costs log n entries."""
        if unlisted & (unlisted - 1):
            return []
        at = self._world.clocks.now()
        return [Refusals(at=at, actor=self._world.identity, count=unlisted, last_request_id=message.request_id)]

    def _decide(self, stream: str, standing: Standing, message: Asked) -> Decision:
        world = self._world
        at = world.clocks.now()
        decision = Decision(
            at=at,
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
        why = message.refused or self._state_refuses(standing, decision)
        if why is not None:
            return decision.model_copy(update={"meaning": "refused", "why": bounded(why)})
        verb = "cancel" if message.meaning == "cancel" else "resolve"
        judgement = world.gate.judge_decision(question_of(world, stream, standing, at), verb, message.by)
        judged = {"policies": judgement.policies, "bundle": judgement.bundle}
        if judgement.answer != "unattended":
            why = judgement.why or f"policy does not let {message.by} {verb} this"
            return decision.model_copy(update={"meaning": "refused", "why": bounded(why), **judged})
        return decision.model_copy(update=judged)

    def _state_refuses(self, standing: Standing, decision: Decision) -> str | None:
        """Why the state does not allow this, in words a person can act on; None if it does."""
        if standing.final:
            return f"the operation has ended: {standing.state}"
        if decision.verb == "resolve" and decision.meaning not in OFFERED:
            return f"{decision.meaning} is not offered"
        if decision.verb == "resolve" and not standing.attention:
            return f"the operation is {standing.state} and waits for no human"
        if decision.until is not None and decision.until <= decision.at:
            return "until is not in the future"
        if permits(standing, decision):
            return None
        if decision.meaning != "cancel":
            offered = ", ".join(choices(standing, decision.at)) or "nothing"
            return f"{decision.meaning} is not possible in {standing.state}; possible: {offered}"
        match standing.state:
            case "result_collecting":
                return "the job has ended; its result is being collected"
            case "cancel_requested" | "cancelling" | "cancellation_unconfirmed":
                return "already asked, and this provider's cancel is not to be repeated"
            case state:
                return f"a cancel is not possible in {state}"


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
            return Asked(message.request_id, message.by, "resolve", message.choice, message.reason, resolution=message)
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
