"""The reckoning: the provider's books against the ledger against Temporal, operation by operation. Pure.

* A duplicate is a second job of one operation, whoever made it: no contract here allows one without a human.
* A result is lost if the ledger says `succeeded` and the right bytes are not there, or if the operation ended as something else
  although its job succeeded.
* An operation is accounted for if it is final and its workflow completed, or waits for a human and its workflow runs.
* A create_unknown is explained if, for each attempt that stayed unproven, the injection log has what made it so.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.chain import Entry
from simulator.jobs import Job
from tests.chaos.plan import AMBIGUOUS, CREATE_POINTS

SLACK = timedelta(seconds=1)
ENDED_OTHERWISE = frozenset({"failed", "cancelled", "denied", "rejected", "expired", "abandoned"})
FAULTS = ("duplicate", "lost", "broken", "unaccounted", "unexplained")


@dataclass(frozen=True, slots=True)
class Injected:
    """One line of the injection log. `worker`: whom it met, or empty for all."""

    at: datetime
    word: str
    worker: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found of one operation."""

    stream: str
    contract: str
    state: str = "missing"
    final: bool = False
    attention: bool = False
    entries: Sequence[Entry] = ()
    unproven: frozenset[tuple[int, int]] = frozenset()
    jobs: Sequence[Mapping[str, Any]] = ()
    creates: Sequence[Mapping[str, Any]] = ()
    broken: str | None = None
    result: bytes | None = None
    workflow: str = "none"
    died_at: str | None = None


@dataclass
class Reckoned:
    """What it came to: a count per contract and state, and each fault with the operation it was found at."""

    states: dict[str, Counter[str]] = field(default_factory=dict[str, "Counter[str]"])
    jobs: Counter[str] = field(default_factory=Counter[str])
    faults: dict[str, list[str]] = field(default_factory=lambda: {name: list[str]() for name in FAULTS})

    @property
    def clean(self) -> bool:
        """Nothing was found."""
        return not any(self.faults.values())


def reckon(operations: Iterable[Seen], injected: Sequence[Injected]) -> Reckoned:
    """Account for every operation."""
    found = Reckoned()
    for one in operations:
        found.states.setdefault(one.contract, Counter())[one.state] += 1
        found.jobs[one.contract] += len(one.jobs)
        faults = {
            "duplicate": f"{len(one.jobs)} jobs" if len(one.jobs) > 1 else None,
            "lost": lost(one),
            "broken": one.broken,
            "unaccounted": unaccounted(one),
            "unexplained": unexplained(one, injected),
        }
        for name, why in faults.items():
            if why is not None:
                found.faults[name].append(f"{one.stream}: {why}")
    return found


def lost(one: Seen) -> str | None:
    """Why a result is lost, if one is."""
    ends = [str(job["state"]) for job in one.jobs]
    if one.state in ENDED_OTHERWISE and "succeeded" in ends:
        return f"{one.state}, and its job succeeded"
    if one.state != "succeeded":
        return None
    if one.result is None:
        return "succeeded without a result"
    if one.jobs and one.result not in [_rendered(job) for job in one.jobs]:
        return "the kept bytes are not those of its job"
    return None


def _rendered(job: Mapping[str, Any]) -> bytes:
    fields = {name: value for name, value in job.items() if name != "state"}
    return b"".join(Job.from_json(fields).report.pieces())


def unaccounted(one: Seen) -> str | None:
    """Why an operation is unaccounted for, if it is."""
    if one.state == "missing":
        return "not in the ledger"
    if not (one.final or one.attention):
        return f"still {one.state}"
    wanted = "completed" if one.final else "running"
    return None if one.workflow == wanted else f"{one.state}, and its workflow is {one.workflow}"


def unexplained(one: Seen, injected: Sequence[Injected]) -> str | None:
    """The attempts of an unknown create that nothing in the log explains."""
    if (
        one.state != "create_unknown"
        or one.died_at in CREATE_POINTS
        or _lied_to(one)
        or "exchange.unnamed" in {e.cause for e in one.entries}
    ):
        return None
    bare = [attempt for attempt in attempts(one.entries) if not _met(attempt, injected)]
    return f"{len(bare)} attempts without a cause" if bare else None


def _lied_to(one: Seen) -> bool:
    return any(call["status"] == 0 or AMBIGUOUS & set(call["lies"]) for call in one.creates)


@dataclass(frozen=True, slots=True)
class Attempt:
    """From the intent to the outcome, by the worker that recorded the intent."""

    began: datetime
    ended: datetime
    worker: str


def attempts(entries: Sequence[Entry]) -> list[Attempt]:
    """The attempts to create whose outcome is ambiguous."""
    found: list[Attempt] = []
    begun: Entry | None = None
    for entry in entries:
        if entry.cause == "intent.create":
            begun = entry
        elif entry.cause == "exchange.ambiguous" and begun is not None:
            found.append(Attempt(_instant(begun.at), _instant(entry.at), begun.actor))
            begun = None
    return found


def _met(attempt: Attempt, injected: Sequence[Injected]) -> bool:
    return any(
        one.at - SLACK <= attempt.ended and attempt.began <= one.at + timedelta(seconds=one.seconds) + SLACK
        for one in injected
        if not one.worker or one.worker in attempt.worker
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def table(found: Reckoned, *, title: Sequence[str], naive: tuple[int, int]) -> str:
    """What is printed: one table, its title and what was found wrong."""
    columns = ("succeeded", "failed", "cancelled", "create_unknown", "other")
    rows: list[tuple[str, ...]] = [("contract", "operations", *columns, "jobs", "duplicates")]
    for contract, states in sorted(found.states.items()):
        named = [states[column] for column in columns[:-1]]
        doubled = sum(line.startswith(contract.split(".")[1] + "-") for line in found.faults["duplicate"])
        rows.append((contract, *map(str, (states.total(), *named, states.total() - sum(named), found.jobs[contract], doubled))))
    total = sum((states for states in found.states.values()), Counter[str]())
    named = [total[column] for column in columns[:-1]]
    figures = (total.total(), *named, total.total() - sum(named), found.jobs.total(), len(found.faults["duplicate"]))
    rows.append(("all", *map(str, figures)))
    rows.append(("naive client", str(naive[0]), *[""] * len(columns), str(naive[0] + naive[1]), str(naive[1])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if not n else cell.rjust(width) for n, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    others = Counter(f"{state}" for state in total.elements() if state not in columns)
    wrong = [f"{name}: {len(lines_)}" + "".join(f"\n    {line}" for line in lines_[:20]) for name, lines_ in found.faults.items()]
    return "\n".join([*title, *lines, f"other states: {dict(others)}", *wrong])
