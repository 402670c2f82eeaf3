"""The status of an operation, from the ledger alone: `sakshi.status/1`.

* Every field is always there; within the number fields are only added.
* `effect` says what the provider may have done; `safe_to_run_again` is true only where another run can't double it.
* `waiting_for: worker` means that a step was due over half a minute ago and nothing followed: see `doctor`.
"""

import shlex
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, cast

from activities.ports import Record
from adapters.sql_projection import StreamRow
from domain.evidence import Json, instant_text
from domain.lifecycle import CHOICES, cancels, choices, flags_of, next_step, why_of
from domain.standing import Standing

SCHEMA = "sakshi.status/1"
OVERDUE = timedelta(seconds=30)
CANDIDATES_SHOWN = 5
FORCED = "ask the provider to end the job by the contract's forced cancel"
Waiting = Literal["provider", "human", "clock", "worker"]


def status_of(record: Record, *, at: datetime, last_entry: datetime, by: str) -> dict[str, Json]:
    """All that is shown of an operation. `last_entry` is when the newest entry was made; `by` fills in the commands."""
    standing = record.standing
    opened = standing.opened
    waiting = waiting_for(standing, at=at, last_entry=last_entry)
    return {
        "schema": SCHEMA,
        "id": record.stream,
        "key": opened.key_,
        "state": standing.state,
        "final": standing.final,
        "outcome": (standing.outcome or "whole") if standing.state == "succeeded" else (standing.outcome or "none"),
        "items": standing.items,
        "counts": cast("Json", standing.counts),
        "attention": attention_of(record.stream, standing, at=at, by=by),
        "effect": standing.effect,
        "safe_to_run_again": safe_to_run_again(standing),
        "waiting_for": waiting,
        "why": why_of(standing),
        "next": [*next_commands(record.stream, standing, at=at, waiting=waiting, by=by)],
        "remote_state": standing.remote_state,
        "remote_job_id": standing.job_id,
        "contract": opened.contract,
        "version": opened.version,
        "fingerprint": opened.fingerprint,
        "tenant": opened.tenant,
        "principal": opened.principal,
        "trace_id": opened.trace_id,
        "reason": opened.reason,
        "next_poll_at": instant_text(standing.next_at) if standing.next_at and waiting not in {None, "human"} else None,
        "deadlines": {name: instant_text(moment) for name, moment in sorted(standing.deadlines.items())},
        "progress": standing.progress,
        "result": result_of(standing),
        "retry_of": opened.retry_of,
        "retried_by": standing.retried_by,
        "flags": [flag.model_dump(mode="json") for flag in flags_of(standing)],
        "head": {"seq": record.seq, "hash": record.hash},
        "opened_at": instant_text(opened.at),
        "state_since": instant_text(standing.state_since),
        "summary": opened.effect.get("summary"),
    }


def status_of_row(row: StreamRow, *, at: datetime, by: str) -> dict[str, Json]:
    """The same, of a row of the ledger. Raises Tampered if it does not hold a standing."""
    record = Record(row.stream, row.seq, row.head, row.standing)
    return status_of(record, at=at, last_entry=datetime.fromisoformat(row.updated_at), by=by)


def attention_of(stream: str, standing: Standing, *, at: datetime, by: str) -> dict[str, Json] | None:
    """Since when, why and for which choice an operation waits for a human; None if it does not.

    `options` has the words and the commands of each choice, and of a cancel by force; `candidates` are jobs at the provider that may be
    this operation's.
    """
    if not standing.attention:
        return None
    since = standing.attention_since or standing.state_since
    offered = choices(standing, at)
    options = [(choice, CHOICES[choice], _commands_of(stream, standing, choice, by=by)) for choice in offered]
    if forced := _forced(stream, standing, at=at, by=by):
        options.append(("cancel --force", FORCED, forced))
    return {
        "since": instant_text(since),
        "why": why_of(standing),
        "choices": list(offered),
        "options": [{"choice": choice, "means": means, "commands": [*commands]} for choice, means, commands in options],
        "candidates": list(standing.candidates),
    }


def _commands_of(stream: str, standing: Standing, choice: str, *, by: str) -> list[str]:
    said = _by(by)
    if choice != "adopt":
        return [command("resolve", stream, f"{choice.replace('accept_', 'accept ')} {said}")]
    jobs = [_adopted(job) for job in standing.candidates[:CANDIDATES_SHOWN] if "id" in job]
    return [command("resolve", stream, f"adopt {job} {said}") for job in jobs or ["JOB"]]


def _adopted(job: Mapping[str, Json]) -> str:
    """A job as `adopt` takes it: its id, and every further name that it has."""
    named = [f"{name}={value}" for name, value in job.items() if name != "id"]
    return " ".join(shlex.quote(word) for word in (str(job["id"]), *named))


def safe_to_run_again(standing: Standing) -> bool:
    """Whether another run can't double an effect: it ended, and the provider did nothing or took it back or failed."""
    ended_without = standing.state in {"failed", "cancelled"} and standing.ends_without_result
    return standing.final and (standing.effect == "none" or ended_without)


def effect_is_over(standing: Standing) -> bool:
    """Whether nothing can come of it any more that is not known: it ended, and no attempt is unproven."""
    return standing.final and standing.effect != "possible"


def waiting_for(standing: Standing, *, at: datetime, last_entry: datetime) -> Waiting | None:
    """Whom an operation waits for; None once it has ended."""
    step = next_step(standing)
    if step.name == "done":
        return None
    if step.name == "inbox":
        return "human"
    due = max(last_entry, standing.next_at or last_entry)
    if standing.open_attempt is not None:  # a request may be under way for as long as the contract lets it
        due += timedelta(milliseconds=standing.facts.http_total_ms)
    if at > due + OVERDUE:
        return "worker"
    if step.name == "observe":
        return "provider"
    if step.name == "judge":  # it is a matter of a moment: nothing is amiss until it is overdue
        return "clock"
    return "clock" if standing.next_at is not None and standing.next_at > at else "provider"


def result_of(standing: Standing) -> dict[str, Json] | None:
    """The verified result: what was stored, and what each check found."""
    if not standing.outputs and standing.items is None:
        return None
    return {
        "verdict": standing.verdict.verdict if standing.verdict else None,
        "outputs": [output.model_dump(mode="json") for output in standing.outputs],
        "items": standing.items,
        "failed_items": standing.failed_items.model_dump(mode="json") if standing.failed_items else None,
    }


def next_commands(stream: str, standing: Standing, *, at: datetime, waiting: Waiting | None, by: str) -> list[str]:
    """What to type next, as it is to be typed."""
    if standing.attention:
        look = [command("result", stream, "--failed-items")] if standing.failed_items else []
        chosen = [line for choice in choices(standing, at) for line in _commands_of(stream, standing, choice, by=by)]
        return [*look, *chosen, *_forced(stream, standing, at=at, by=by)]
    if standing.final:
        result = [command("result", stream, f"--output result-{stream}")] if standing.outputs else []
        result += [command("result", stream, "--failed-items")] if standing.failed_items else []
        lost = ["python starter.py doctor", command("run", "--continue", stream)] if waiting == "worker" else []
        again = [f"python starter.py run --again {stream} --reason WHY"] if safe_to_run_again(standing) else []
        return [*result, command("evidence", stream), *lost, *again]
    if waiting == "worker":
        return ["python starter.py doctor", command("status", stream)]
    plain = [command("cancel", stream, _by(by))] if False in cancels(standing, at) else []
    return [command("watch", stream), *plain, *_forced(stream, standing, at=at, by=by)]


def _forced(stream: str, standing: Standing, *, at: datetime, by: str) -> list[str]:
    """The cancel by force, where the contract has a call for it and the state lets it be asked for."""
    return [command("cancel", stream, f"--force {_by(by)}")] if True in cancels(standing, at) else []


def _by(by: str) -> str:
    return f"--by {shlex.quote(by)} --reason WHY"


def command(verb: str, stream: str, rest: str = "") -> str:
    """One command of ours about one operation."""
    return f"python starter.py {verb} {shlex.quote(stream)} {rest}".rstrip()


def exit_code_of(status: dict[str, Json]) -> int:
    """What waiting for this operation exits with: 0 whole, 6 in part, 1 ended otherwise, 7 a human is needed, 8 not yet."""
    if status["state"] == "succeeded":
        return 0 if status["outcome"] == "whole" else 6
    if status["final"]:
        return 1
    return 7 if settled(status) else 8


def settled(status: dict[str, Json]) -> bool:
    """Whether waiting ends: final, in attention, or awaiting approval."""
    return bool(status["final"]) or status["attention"] is not None or status["state"] == "awaiting_approval"
