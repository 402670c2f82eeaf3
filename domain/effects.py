"""What policy judges and an approver sees: computed from the input and the target alone, never from a provider or a model.

Whatever is due and has no value is a RenderError: an effect that can't be shown can't be allowed.
"""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from domain.contract import Contract, Money
from domain.errors import RenderError
from domain.language.expressions import Scope
from domain.language.patterns import pattern
from domain.language.templates import fill, fill_text, fill_tree, scalar_text

_CURRENCY: Final = pattern(r"[A-Z]{3}")


class EffectMoney(BaseModel):
    """Whole minor units of a currency."""

    model_config = ConfigDict(frozen=True)
    minor: int
    currency: str


class EffectPreview(BaseModel):
    """What the operation would do, computed from the input alone."""

    model_config = ConfigDict(frozen=True)
    cls: Literal["read", "external_write", "money", "destructive"]
    resource: str
    summary: str
    recipient: str | None = None
    amount: EffectMoney | None = None
    cost: EffectMoney | Literal["unknown"] | None = None
    fields: dict[str, JsonValue] = {}
    data_leaving: tuple[str, ...] = ()
    after_cancel: str = ""


def effect_preview(
    contract: Contract, input: JsonValue, target: Mapping[str, JsonValue], files: Mapping[str, JsonValue] | None = None
) -> EffectPreview:
    """What policy judges and an approver sees. Raises RenderError."""
    effect, scope = contract.effect, Scope(input=input, target=dict(target), files=dict(files or {}))
    recipient = None if effect.recipient is None else fill(effect.recipient, scope)
    labelled = fill_tree(dict(effect.labelled), scope)
    return EffectPreview(
        cls=effect.cls,
        resource=fill_text(effect.resource, scope),
        summary=fill_text(effect.summary, scope),
        recipient=None if recipient is None else scalar_text(recipient, "effect.recipient"),
        amount=None if effect.amount is None else _money(effect.amount, scope),
        cost=_money(effect.cost, scope) if isinstance(effect.cost, Money) else effect.cost,
        fields=_mapping(labelled),
        data_leaving=effect.data_leaving,
        after_cancel=effect.after_cancel,
    )


def _money(money: Money, scope: Scope) -> EffectMoney:
    minor = fill(money.minor, scope) if isinstance(money.minor, str) else money.minor
    currency = fill_text(money.currency, scope)
    if not isinstance(minor, int) or isinstance(minor, bool) or not 0 <= minor < 2**53:
        raise RenderError("an amount must be whole minor units, an integer from 0 to 2^53 - 1")
    if not _CURRENCY.matches(currency):
        raise RenderError("a currency must be three capital letters")
    return EffectMoney(minor=minor, currency=currency)


def _mapping(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
