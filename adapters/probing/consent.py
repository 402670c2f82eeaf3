"""What a person agrees to before a probe sends anything: where to, as whom, what will be made, and what it may cost.

All of it is shown, whatever comes of it: policy's no, a gravity that has to be said beforehand, nobody who could be asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast

from activities.ports import Gate
from adapters.probing.naming import Asked, changes_of
from adapters.showing.text import inert
from domain.authority import Judgement, Question
from domain.effects import EffectMoney, EffectPreview, effect_preview
from domain.errors import Refused
from domain.evidence import Json, instant_text
from domain.files import files_root
from domain.rendering import origins

GRAVE: Final = frozenset({"money", "destructive"})


@dataclass(frozen=True)
class Endpoint:
    """Where requests go, and as whom. No secret."""

    origin: str
    credential: str | None
    account: str | None


@dataclass(frozen=True)
class Consent:
    """All that is shown."""

    contract: str
    endpoints: tuple[Endpoint, ...]
    effect: EffectPreview
    other: EffectPreview | None
    changes: tuple[str, ...]
    jobs: int
    most: int
    cancels: bool
    seconds: float
    judged: Judgement | None = None

    @property
    def cost(self) -> str:
        """What it may cost, as far as the contract says."""
        match self.effect.cost:
            case EffectMoney(minor=minor, currency=currency):
                return f"{minor * self.jobs} minor units of {currency}, {minor * self.most} at most, as the contract declares"
            case "unknown":
                return "not known ahead, as the contract declares"
            case _:
                return "the contract declares no cost"

    def to_json(self) -> dict[str, object]:
        """As it is reported."""
        return {
            "contract": self.contract,
            "endpoints": [vars(endpoint) for endpoint in self.endpoints],
            "effect": self.effect.model_dump(mode="json", exclude_none=True),
            "changes": list(self.changes),
            "other": None if self.other is None else self.other.model_dump(mode="json", exclude_none=True),
            "jobs": self.jobs,
            "jobs_at_most": self.most,
            "cost": self.cost,
            "cancels": self.cancels,
            "seconds_at_most": self.seconds,
            "policy": None if self.judged is None else {"policies": list(self.judged.policies), "bundle": self.judged.bundle},
        }

    def text(self) -> str:
        """For a person who decides."""
        effect = self.effect
        lines = [f"A probe of {self.contract} will", ""]
        lines += [f"  call    {_endpoint(one)}" for one in self.endpoints]
        lines += [f"  make    {effect.cls}: {inert(effect.summary)}", f"          {inert(effect.resource)}"]
        if effect.amount is not None:
            lines.append(f"          {effect.amount.minor} minor units of {effect.amount.currency} to {inert(effect.recipient or '?')}")
        lines += [f"          {inert(name)}: {inert(value)}" for name, value in effect.fields.items()]
        if effect.data_leaving:
            lines.append(f"          leaving: {', '.join(map(inert, effect.data_leaving))}")
        lines.append(f"  jobs    {self.jobs} if the contract is true, {self.most} at most")
        if self.other is not None:
            lines.append(f"          once, another body is sent under the same token: {inert(self.other.summary)}")
            lines += [f"          with {inert(change)}" for change in self.changes]
        lines.append(f"  cost    {self.cost}")
        lines.append(f"  cancel  {_cancels(self)}")
        if effect.after_cancel:
            lines.append(f"          {inert(effect.after_cancel)}")
        lines.append(f"  take    {self.seconds:g} seconds at most, and up to a minute to cancel what is left")
        return "\n".join(lines)


def _endpoint(endpoint: Endpoint) -> str:
    if endpoint.credential is None:
        return f"{inert(endpoint.origin)}  without a credential"
    account = "an account that is not known here" if endpoint.account is None else f"account {inert(endpoint.account)}"
    return f"{inert(endpoint.origin)}  with the credential {endpoint.credential}, {account}"


def _cancels(consent: Consent) -> str:
    return "one job is cancelled, and whatever is left going" if consent.cancels else "nothing: the contract has no cancel, so jobs stay"


def consent_for(asked: Asked, account: Callable[[str | None], str | None], seconds: float) -> Consent:
    """What this probe would do. Raises RenderError, AddressError."""
    contract = asked.contract
    target: dict[str, Json] = {**asked.target}
    places = origins(contract, target)
    files = files_root(asked.files)
    effect = effect_preview(contract, asked.input, target, files)
    token, cancels = contract.create.token is not None, contract.cancel is not None
    return Consent(
        contract=f"{contract.contract}@{contract.version}",
        endpoints=tuple(Endpoint(origin, auth.credential, account(auth.credential)) for origin, auth in places),
        effect=effect,
        other=effect_preview(contract, asked.other, target, files) if token and asked.other is not None else None,
        changes=changes_of(asked.input, asked.other) if token and asked.other is not None else (),
        jobs=2 if cancels else 1,
        most=(2 if cancels else 1) + (3 if token else 0),
        cancels=cancels,
        seconds=seconds,
    )


def permitted(gate: Gate, asked: Asked, consent: Consent, *, embedded: bool) -> Judgement:
    """Policy's word on this probe by this person. Raises Refused."""
    contract, effect = asked.contract, cast("dict[str, Json]", consent.effect.model_dump(mode="json", exclude_none=True))
    question = Question(
        operation="probe",
        tenant=asked.tenant,
        principal=asked.principal,
        requesters=(asked.principal,),
        started_by="human",
        reason="contracts probe",
        contract=contract.contract,
        contract_digest=contract.digest,
        effect=effect | {"class": consent.effect.cls},
        now=instant_text(datetime.now(UTC)),
        embedded=embedded,
    )
    judged = gate.judge_decision(question, "probe", asked.principal)
    if judged.answer != "unattended":
        why = "; ".join(filter(None, [judged.why, *judged.errors]))
        raise Refused(f"policy does not permit this probe: {why}", hint="policies/README.md says what a bundle decides")
    return judged


def refuse_grave(consent: Consent) -> None:
    """Raise Refused: an effect of this gravity is not agreed to in passing."""
    if consent.effect.cls in GRAVE:
        raise Refused(
            f"{consent.contract} is of class {consent.effect.cls}: it is probed only where that is said beforehand",
            hint="--yes, after reading what it will do; rather against a sandbox of the provider",
        )


def agreed(answer: str) -> bool:
    """Whether what was typed is a yes."""
    return answer.strip().lower() == "yes"
