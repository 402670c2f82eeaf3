"""One job of the provider and how it lives.

* It runs for `polls` readings, or for `seconds` if `polls` is None. A reading is a status read; nothing else counts.
* A cancel takes a while too: `cancel_polls` further readings, or `cancel_seconds`. Then the job is what `after_cancel` says.
* What has ended never changes. Lies change what is *shown*, or, where they say so, what really happens.
"""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Literal, Self, cast

from simulator.answer import Endpoint, Json
from simulator.rows import CONTENT_TYPES, Format, Report

State = Literal["queued", "running", "cancelling", "succeeded", "failed", "cancelled"]
End = Literal["succeeded", "failed", "cancelled"]


def stamp(at: float) -> str:
    """An instant as RFC 3339 with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Job:
    """What the provider holds of a job. `reads` counts status reads, `ends_shown` how many of them showed the end."""

    id: str
    endpoint: Endpoint
    report: Report
    body_digest: str
    created_at: float
    polls: int | None
    seconds: float
    fails: bool = False
    sync: bool = False
    token: str | None = None
    reference: str | None = None
    cancel_polls: int = 1
    cancel_seconds: float = 1.0
    after_cancel: End = "cancelled"
    reads: int = 0
    reads_at_cancel: int = 0
    cancel_asked_at: float | None = None
    ended: End | None = None
    ended_at: float | None = None
    ends_shown: int = 0
    downloads: int = 0
    aliases: list[str] = field(default_factory=list[str])

    def read(self, now: float) -> State:
        """One status read."""
        self.reads += 1
        return self.settle(now)

    def settle(self, now: float) -> State:
        """The true state now; ends the job if its time has come."""
        due = self._due_at(now)
        if self.ended is None and due is not None and due <= now:
            self.end(self.after_cancel if self.cancel_asked_at is not None else "failed" if self.fails else "succeeded", due)
        if self.ended is not None:
            return self.ended
        if self.cancel_asked_at is not None:
            return "cancelling"
        return "queued" if self.share(now) == 0.0 else "running"

    def end(self, how: End, now: float) -> None:
        """Ends the job, once."""
        if self.ended is None:
            self.ended, self.ended_at = how, now

    def ask_cancel(self, now: float, after: End = "cancelled") -> None:
        """Starts the cancel, once."""
        if self.cancel_asked_at is None:
            self.cancel_asked_at, self.reads_at_cancel, self.after_cancel = now, self.reads, after

    def share(self, now: float) -> float:
        """How much of the work is done, from 0 to 1."""
        if self.ended == "succeeded":
            return 1.0
        if self.polls is not None:
            reads = self.reads_at_cancel if self.cancel_asked_at is not None else self.reads
            return min(1.0, max(0, reads - 1) / self.polls) if self.polls else 0.0
        until = self.cancel_asked_at or self.ended_at or now
        return min(1.0, max(0.0, until - self.created_at) / self.seconds) if self.seconds else 0.0

    def _due_at(self, now: float) -> float | None:
        """When it ends; None while it waits for further readings."""
        if self.polls is None:
            return self.created_at + self.seconds if self.cancel_asked_at is None else self.cancel_asked_at + self.cancel_seconds
        left = self.polls - self.reads if self.cancel_asked_at is None else self.cancel_polls - (self.reads - self.reads_at_cancel)
        return now if left < 0 else None

    def view(self, base: str, now: float) -> dict[str, Json]:
        """What an honest status answer says. Only a finished report has a checksum, a size, rows and an address."""
        state, report = self.settle(now), self.report
        done = state == "succeeded"
        summary = report.summary() if done else None
        return {
            "job_id": self.id,
            "state": state,
            "account": report.account,
            "reference": self.reference,
            "progress": {"completed": int(report.rows * self.share(now)), "total": report.rows},
            "created_at": stamp(self.created_at),
            "updated_at": stamp(self.ended_at or now),
            "status_url": f"{base}/v1/jobs/{self.id}",
            "result_url": f"{base}/v1/jobs/{self.id}/result" if done else None,
            "content_type": CONTENT_TYPES[report.format] if done else None,
            "checksum": f"sha256:{summary.sha256}" if summary else None,
            "size": summary.size if summary else None,
            "rows": report.rows if done else None,
            "error": {"code": "render_failed", "message": "the report could not be rendered"} if state == "failed" else None,
        }

    def to_json(self) -> dict[str, Json]:
        """Everything, for the books."""
        fields = asdict(self)
        fields["report"] |= {"start": self.report.start.isoformat(), "end": self.report.end.isoformat()}
        return fields

    @classmethod
    def from_json(cls, value: dict[str, Json]) -> Self:
        """The reverse of `to_json`."""
        report = cast("dict[str, str]", value["report"])
        days = (datetime.fromisoformat(report["start"]).date(), datetime.fromisoformat(report["end"]).date())
        asked = Report(report["account"], *days, cast("Format", report["format"]), int(report["rows"]))
        return cls(**{**value, "report": asked})  # pyright: ignore[reportArgumentType]  # the shape that to_json wrote
