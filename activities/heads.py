"""The head that every activity returns: the newest entry, and what it leads to."""

from datetime import datetime

from activities.ports import Record
from domain.evidence import bounded
from domain.lifecycle import choices, next_step, why_of
from domain.messages import Card, Head
from domain.standing import OVERDUE, progress_text


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
        http_total_ms=standing.facts.http_total_ms + standing.facts.before_ms.get(step.name, 0),
        attention=standing.attention,
        wake_reads=standing.state in OVERDUE,
        card=_card(record, now),
    )


def _card(record: Record, now: datetime) -> Card:
    standing = record.standing
    summary = standing.opened.effect.get("summary")
    return Card(
        contract=f"{standing.opened.contract}@{standing.opened.version}",
        tenant=standing.opened.tenant,
        summary=bounded(str(summary or ""), 300),
        job=None if standing.job_id is None else bounded(standing.job_id, 512),
        why=why_of(standing),
        remote_state=standing.remote_state,
        progress=progress_text(standing.progress),
        counts=standing.counted,
        effect=standing.effect,
        choices=choices(standing, now),
    )
