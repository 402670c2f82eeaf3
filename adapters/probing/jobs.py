"""The jobs of one probe: what each was asked with, and how it stands as far as the probe has seen."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from domain.exchange import Request
from domain.language.calls import Verdict
from domain.language.expressions import Scope


@dataclass
class Job:
    """One job. `scope` knows its names once they are known; `observed` is the answer that ended it.

    `missed` is when the newest reading began that did not show a job which no reading had shown yet. `lost` is what the newest reading
    said, if that was that there is no such job: no end, for nobody saw one, and the job may go on.
    """

    what: str
    scope: Scope
    request: Request
    sent: datetime
    last_sent: datetime
    names: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    named_by_exists: bool = False
    reads: int = 0
    missed: datetime | None = None
    seen: bool = False
    cancelling: bool = False
    lost: str | None = None
    ended: Verdict | None = None
    observed: JsonValue = None

    @property
    def id(self) -> str | None:
        """Its id, once it is known."""
        found = self.names.get("id")
        return None if found is None else str(found)

    @property
    def unread(self) -> str:
        """Why it is not known how it stands, or to have ended."""
        return "it was not seen to its end" if self.lost is None else f"its status could not be read ({self.lost})"

    @property
    def phase(self) -> Literal["fresh", "seen", "cancelling"]:
        """What a status answer has to know."""
        return "cancelling" if self.cancelling else "seen" if self.seen else "fresh"


@dataclass
class Left:
    """A job that the probe left at the provider, or may have."""

    what: str
    job: str | None
    why: str
