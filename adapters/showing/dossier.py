"""All that is told of one operation to someone outside, gathered: what the pages of an escalation are made from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from activities.ports import Record
from adapters.showing.exchanges import Shown
from domain.chain import Entry
from domain.contract import Contract
from domain.standing import Standing

FAILED_ITEMS = "failed-items.jsonl"
MOST_ITEMS = 16 * 1024 * 1024
"""Bytes of that list that still go into an escalation."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One generation of creating: when it was sent first and last, and what the provider can find it by."""

    generation: int
    first: str
    last: str
    token: str | None
    mark: str | None

    def shape(self) -> Shown:
        """As JSON."""
        return {
            "generation": self.generation, "first_intent": self.first, "last_intent": self.last, "token": self.token, "mark": self.mark
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dossier:
    """`fault`: where the chain does not hold, in words."""

    made_at: datetime
    ledger_id: str
    record: Record
    entries: Sequence[Entry]
    contract: Contract
    exchanges: list[Shown]
    sendings: tuple[Sending, ...]
    fault: str | None

    @property
    def standing(self) -> Standing:
        """How the operation stands."""
        return self.record.standing

    @property
    def job(self) -> str | None:
        """The provider's id of the job."""
        return self.standing.job_id

    def of_call(self, call: str) -> list[Shown]:
        """The exchanges of one call."""
        return [one for one in self.exchanges if one["call"] == call]
