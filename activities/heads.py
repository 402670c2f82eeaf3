"""The head that every activity returns: the newest entry, and what it leads to."""

from datetime import datetime

from activities.ports import Record
from domain.evidence import Json, bounded
from domain.lifecycle import WHY, choices, next_step
from domain.messages import Card, Head


def head_of(record: Record, now: datetime) -> Head:
    """`record` as the message that the workflow goes on by."""
    standing = record.standing
    step = next_step(standing)
    return Head(
        state=standing.state,
        seq=record.seq,
        hash=record.hash,
        step=step.name,
        until=step.until,
        http_total_ms=standing.facts.http_total_ms,
        attention=standing.attention,
        wake_reads=standing.state in {"result_timed_out", "cancellation_unconfirmed"},
        card=_card(record, now),
    )


def _card(record: Record, now: datetime) -> Card:
    standing = record.standing
    summary = standing.opened.effect.get("summary")
    job = (standing.job or {}).get("id")
    return Card(
        contract=f"{standing.opened.contract}@{standing.opened.version}",
        tenant=standing.opened.tenant,
        summary=bounded(str(summary or ""), 300),
        job=None if job is None else bounded(str(job), 512),
        why=WHY.get(standing.state) if standing.attention or standing.state == "awaiting_approval" else standing.why,
        remote_state=standing.remote_state,
        progress=progress_text(standing.progress),
        effect=standing.effect,
        choices=choices(standing, now),
    )


def progress_text(progress: dict[str, Json] | None) -> str | None:
    """Progress as people read it: `146/500` or `29%`. It informs; it never decides."""
    match progress:
        case {"completed": completed, "total": total}:
            return f"{completed}/{total}"
        case {"percent": percent}:
            return f"{percent}%"
        case {"completed": completed}:
            return str(completed)
        case _:
            return None
