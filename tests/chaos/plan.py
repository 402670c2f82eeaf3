"""What will go wrong and when, drawn from one seed: the same seed and the same time give the same plan.

* Faults stand at instants of the run, or at a named point of one operation. Lies are told by chance, from seeds of the plan.
* What no client can defend against is left out: a provider that makes two jobs of one request (`accept_twice`) or forgets tokens.
"""

import random
from dataclasses import dataclass
from typing import Literal

from domain.evidence import Json
from tests.chaos.halting import Point

Word = Literal["kill", "freeze", "ledger", "temporal"]
OPERATIONS_PER_SECOND = 520 / 600
STARTING_SHARE = 0.8
KILL_EVERY, FREEZE_EVERY = 25.0, 75.0
WORKERS = 2
FREEZE_S = (6.0, 16.0)

SHIPPED = (
    "sim.reports.create", "sim.plain.create", "sim.read.count", "sim.listed.create", "sim.named.create", "sim.unnamed.create",
    "sim.searched.create",
)  # fmt: skip
CREATE_POINTS: tuple[Point, ...] = (
    "before_intent", "after_intent", "while_sending", "after_answer", "after_heartbeat", "after_append", "before_report",
)  # fmt: skip
LATER_POINTS: tuple[Point, ...] = ("before_first_poll", "after_terminal_reading", "after_publish")

LIES: tuple[tuple[str, str, dict[str, Json], float], ...] = (
    ("create", "drop_before_accepting", {}, 0.08),
    ("create", "drop_after_accepting", {}, 0.1),
    ("create", "delay", {"seconds": 2, "when": "before"}, 0.03),
    ("create", "delay", {"seconds": 2, "when": "after"}, 0.03),
    ("create", "status_429", {"retry_after": "seconds", "seconds": 1}, 0.06),
    ("create", "status_503", {"retry_after": "past_date"}, 0.03),
    ("create", "status_500", {}, 0.04),
    ("create", "unauthorized", {}, 0.02),
    ("create", "truncated_body", {}, 0.02),
    ("create", "invalid_utf8", {}, 0.01),
    ("create", "reject", {}, 0.01),
    ("observe", "drop_after_accepting", {}, 0.03),
    ("observe", "status_500", {}, 0.03),
    ("observe", "status_503", {"retry_after": "seconds", "seconds": 1}, 0.03),
    ("observe", "stale_status", {}, 0.03),
    ("observe", "state_backwards", {}, 0.02),
    ("observe", "unknown_state", {}, 0.03),
    ("observe", "truncated_body", {}, 0.02),
    ("observe", "remote_failure", {}, 0.01),
    ("cancel", "drop_before_accepting", {}, 0.1),
    ("cancel", "drop_after_accepting", {}, 0.1),
    ("cancel", "success_racing_cancel", {}, 0.2),
    ("cancel", "success_after_cancel", {}, 0.1),
    ("collect", "drop_after_accepting", {}, 0.05),
    ("collect", "truncated_body", {}, 0.05),
    ("collect", "status_503", {"retry_after": "seconds", "seconds": 1}, 0.05),
    ("collect", "wrong_result_bytes", {}, 0.02),
    ("collect", "result_of_another_job", {}, 0.01),
    ("list", "drop_before_accepting", {}, 0.05),
    ("list", "status_500", {}, 0.05),
    ("read", "drop_after_accepting", {}, 0.1),
    ("read", "status_429", {"retry_after": "zero"}, 0.05),
)
AMBIGUOUS = frozenset({"drop_before_accepting", "drop_after_accepting", "status_500", "truncated_body", "invalid_utf8"})
"""After one of these lies about a create nobody can know from its answer whether it was carried out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something done to a process at an instant."""

    at: float
    word: Word
    worker: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Planned:
    """One operation: when it starts, under which contract, how long its job takes, whether it is cancelled, where it kills its worker."""

    at: float
    stream: str
    contract: str
    polls: int
    cancel_after: float | None
    dies_at: Point | None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is decided ahead."""

    seed: int
    seconds: float
    faults: tuple[Fault, ...]
    operations: tuple[Planned, ...]
    rules: tuple[dict[str, Json], ...]


def plan(seed: int, seconds: float) -> Plan:
    """The plan of a run."""
    draw = random.Random(f"chaos/{seed}")
    return Plan(seed, seconds, _faults(draw, seconds), _operations(draw, seconds), _rules(draw))


def _faults(draw: random.Random, seconds: float) -> tuple[Fault, ...]:
    found = [Fault(draw.uniform(0.25, 0.35) * seconds, "ledger"), Fault(draw.uniform(0.45, 0.55) * seconds, "temporal")]
    found += [Fault(draw.uniform(0.65, 0.75) * seconds, "ledger"), Fault(draw.uniform(0.8, 0.9) * seconds, "temporal")]
    at = 0.0
    while (at := at + draw.expovariate(1 / KILL_EVERY)) < seconds:
        found.append(Fault(at, "kill", draw.randrange(WORKERS)))
    at = 0.0
    while (at := at + draw.expovariate(1 / FREEZE_EVERY)) < seconds:
        found.append(Fault(at, "freeze", draw.randrange(WORKERS), draw.uniform(*FREEZE_S)))
    return tuple(sorted(found, key=lambda one: one.at))


def _operations(draw: random.Random, seconds: float) -> tuple[Planned, ...]:
    count = max(len(SHIPPED), round(seconds * OPERATIONS_PER_SECOND))
    found: list[Planned] = []
    for number in range(count):
        contract = SHIPPED[number % len(SHIPPED)]
        cancelled = draw.random() < 0.15 and contract != "sim.read.count"
        dies = draw.random() < 0.1
        point = draw.choice(CREATE_POINTS if draw.random() < 0.7 else LATER_POINTS)
        stream = f"{contract.split('.')[1]}-{seed_name(draw)}-{number}"
        at = number / count * seconds * STARTING_SHARE
        polls = 40 if cancelled else draw.randrange(4)
        found.append(Planned(at, stream, contract, polls, draw.uniform(0, 4) if cancelled else None, point if dies else None))
    return tuple(found)


def seed_name(draw: random.Random) -> str:
    """A short name that comes with the seed, so that accounts of two runs differ."""
    return f"{draw.randrange(16**4):04x}"


def _rules(draw: random.Random) -> tuple[dict[str, Json], ...]:
    return tuple(
        {
            "match": {"kind": kind},
            "lies": [{"word": word, "args": args}],
            "probability": probability,
            "seed": draw.randrange(2**31),
        }
        for kind, word, args, probability in LIES
    )
