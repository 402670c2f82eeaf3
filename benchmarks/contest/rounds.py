"""The rounds: each contestant in turn, the same order, the same numbers; then medians.

* A contestant warms up once before the first round. An operation counts only if it proved that it succeeded with the whole result.
* CPU is what the kernel booked to a contestant's processes from the order until a moment after the last answer, by role.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.contest.ground import Team
from benchmarks.contest.starter import Cost, Order
from benchmarks.processes import cpu_seconds

ROLES = ("worker", "engine", "database", "starter")
AFTERMATH_S = 0.3
"""What a server still writes after the last answer is part of the price."""
WARM_UP = Order(operations=30, in_flight=30, polls=1)


@dataclass(frozen=True)
class Turn:
    """One order, fulfilled by one contestant."""

    contestant: str
    polls: int
    operations: int
    seconds: float
    cpu: dict[str, float]
    events: float | None
    history: float | None


@dataclass(frozen=True)
class Score:
    """The medians of a contestant's turns with the same polls. CPU is in milliseconds per operation."""

    contestant: str
    polls: int
    per_second: float
    cpu: dict[str, float]
    events: float | None
    history: float | None

    @property
    def total(self) -> float:
        """CPU of all roles."""
        return sum(self.cpu.values())


async def turn(team: Team, order: Order) -> Turn:
    """Have one order fulfilled, and reckon. Raises AssertionError if an operation has no whole result."""
    before = {role: cpu_seconds(pids) for role, pids in team.processes.items()}
    seconds = float(await team.starter.ask(json.dumps(asdict(order))))
    await asyncio.sleep(AFTERMATH_S)
    cpu = {role: cpu_seconds(pids) - before[role] for role, pids in team.processes.items()}
    costs = [Cost(**one) for one in json.loads(await team.starter.ask("prove"))]
    assert len(costs) == order.operations
    assert len({cost.result for cost in costs}) == 1, "not all fetched the same result"
    assert costs[0].result > 0
    events, history = ([getattr(cost, name) for cost in costs if getattr(cost, name) is not None] for name in ("events", "history"))
    return Turn(
        team.contestant.name, order.polls, order.operations, seconds, cpu,
        median(events) if events else None, median(history) if history else None,
    )  # fmt: skip


@dataclass(frozen=True)
class Heat:
    """One order in so many rounds, in each of which every contestant has its turn; but those that are left out."""

    order: Order
    rounds: int
    without: tuple[str, ...] = ()


async def compete(teams: Sequence[Team], heats: Sequence[Heat], say: Callable[[Turn], None]) -> list[Turn]:
    """All heats."""
    for team in teams:
        await turn(team, WARM_UP)
    turns: list[Turn] = []
    for heat in heats:
        for _ in range(heat.rounds):
            for team in teams:
                if team.contestant.name not in heat.without:
                    turns.append(await turn(team, heat.order))
                    say(turns[-1])
    return turns


def scores(turns: Sequence[Turn]) -> dict[tuple[str, int], Score]:
    """The medians, by contestant and polls."""
    groups: dict[tuple[str, int], list[Turn]] = {}
    for one in turns:
        groups.setdefault((one.contestant, one.polls), []).append(one)
    return {key: _score(group) for key, group in groups.items()}


def _score(group: Sequence[Turn]) -> Score:
    first = group[0]
    cpu = {role: median(1000 * one.cpu[role] / one.operations for one in group) for role in ROLES if role in first.cpu}
    return Score(first.contestant, first.polls, median(one.operations / one.seconds for one in group), cpu, first.events, first.history)
