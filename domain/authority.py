"""Authority over the exact effect: what is judged, what an approval names, and what judging can say.

* `action_hash` commits to everything that makes the effect what it is; any change of input, contract, requirement, round,
  generation or expiry is another hash, so an approval can never be carried over.
* A gate answers `unattended`, `needs_human` or `no`. It never raises: whatever goes wrong while judging is `no`.
"""

from typing import Literal

from domain.evidence import Frozen, Json
from domain.fingerprint import canonical, sha256_hex

_ACTION = b"sakshi/action/v1\0"
Answer = Literal["unattended", "needs_human", "no"]


class Question(Frozen):
    """What a gate is asked. `principal` acts; `requesters` are every person in the chain; `now` is RFC 3339."""

    operation: str
    tenant: str
    principal: str
    requesters: tuple[str, ...]
    started_by: Literal["human", "agent"]
    reason: str
    contract: str
    contract_digest: str
    effect: dict[str, Json]
    now: str
    embedded: bool
    authenticated: bool = False


class Judgement(Frozen):
    """What a gate said: the matched policies' `@id`s, the bundle's SHA-256, and why in words where it said no."""

    answer: Answer
    policies: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    bundle: str
    why: str | None = None


class Requirement(Frozen):
    """Who must approve: any of `roles`, `count` persons, none of the requesters where `four_eyes`."""

    roles: tuple[str, ...] = ()
    count: int = 1
    four_eyes: bool = True


def action_hash(
    *,
    ledger_id: str,
    operation: str,
    tenant: str,
    principal: str,
    requesters: tuple[str, ...],
    contract: str,
    version: int,
    contract_digest: str,
    fingerprint: str,
    origin: str,
    credential: dict[str, str],
    effect: dict[str, Json],
    requirement: Requirement,
    round: int,
    generation: int,
    expires_at: str | None,
) -> str:
    """SHA-256 over the exact action."""
    what: dict[str, object] = {
        "ledger_id": ledger_id,
        "operation": operation,
        "tenant": tenant,
        "principal": principal,
        "requesters": list(requesters),
        "contract": contract,
        "version": version,
        "contract_digest": contract_digest,
        "fingerprint": fingerprint,
        "origin": origin,
        "credential": {"name": credential.get("name", ""), "account": credential.get("account", "")},
        "effect": effect,
        "requirement": {"roles": list(requirement.roles), "count": requirement.count, "four_eyes": requirement.four_eyes},
        "round": round,
        "generation": generation,
        "expires_at": expires_at,
    }
    return sha256_hex(_ACTION + canonical(what))
