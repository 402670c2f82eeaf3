"""Asking the gate about an operation, and writing down what it said.

* Judged on the exact effect, from the ledger's own record of it; at the moment of execution, not of the request.
* The same function judges the proposal and every attempt that can create; the latter inside the transaction of its intent.
"""

from datetime import datetime

from activities.ports import World
from domain.authority import Question, Requirement, action_hash
from domain.evidence import Policy, instant_text
from domain.standing import Standing


def question_of(world: World, stream: str, standing: Standing, now: datetime, *, authenticated: bool = False) -> Question:
    """What the gate is asked about this operation."""
    opened = standing.opened
    return Question(
        operation=stream,
        tenant=opened.tenant,
        principal=opened.principal,
        requesters=opened.requesters,
        started_by=opened.started_by,
        reason=opened.reason or "",
        contract=opened.contract,
        contract_digest=opened.contract_digest,
        effect=opened.effect,
        now=instant_text(now),
        embedded=world.embedded,
        authenticated=authenticated,
    )


def judge_execution(world: World, stream: str, standing: Standing, *, at: datetime, actor: str) -> Policy:
    """Policy's word on executing this operation now."""
    judgement = world.gate.judge(question_of(world, stream, standing, at))
    expires = standing.deadlines.get("create")
    opened = standing.opened
    exact = action_hash(
        ledger_id=world.ledger.ledger_id,
        operation=stream,
        tenant=opened.tenant,
        principal=opened.principal,
        requesters=opened.requesters,
        contract=opened.contract,
        version=opened.version,
        contract_digest=opened.contract_digest,
        fingerprint=opened.fingerprint,
        origin=opened.origin,
        credential=opened.credential,
        effect=opened.effect,
        requirement=Requirement(),
        round=standing.round,
        generation=standing.generation,
        expires_at=instant_text(expires) if expires else None,
    )
    return Policy(
        at=at,
        actor=actor,
        meaning=judgement.answer,
        action="execute",
        action_hash=exact,
        policies=judgement.policies,
        errors=judgement.errors,
        bundle=judgement.bundle,
        round=standing.round,
        generation=standing.generation,
        expires_at=expires,
        why=judgement.why,
    )
