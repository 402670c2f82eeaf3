"""`python -m benchmarks.contest [--polls 3 20] [--contestants b sakshi-sqlite] [--quick]` prints the contest's tables."""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.ground import ground
from benchmarks.contest.rounds import Heat, Turn, compete, scores
from benchmarks.contest.scoring import score_tables
from benchmarks.contest.starter import Order
from benchmarks.contest.work import IN_FLIGHT
from benchmarks.table import Table

HEATS = (
    Heat(Order(100, IN_FLIGHT, 0), rounds=1),
    Heat(Order(100, IN_FLIGHT, 3), rounds=3),
    Heat(Order(100, IN_FLIGHT, 20), rounds=3),
    # What waits for the server's timers needs two minutes here, and tells nothing that it did not tell at 20.
    Heat(Order(60, IN_FLIGHT, 100), rounds=1, without=("a", "b")),
)
SHORT = {0: 60, 3: 60, 20: 40, 100: 20}


def heats(polls: Sequence[int], *, rounds: int | None, quick: bool) -> list[Heat]:
    """The heats at these polls, or short ones."""
    chosen = [heat for heat in HEATS if heat.order.polls in polls]
    if quick:
        chosen = [
            replace(heat, order=replace(heat.order, operations=SHORT[heat.order.polls]), rounds=min(heat.rounds, 2)) for heat in chosen
        ]
    return [replace(heat, rounds=rounds or heat.rounds) for heat in chosen]


def tables(
    *,
    polls: Sequence[int] = tuple(SHORT),
    contestants: Sequence[str] = tuple(CONTESTANTS),
    rounds: int | None = None,
    quick: bool = False,
) -> list[Table]:
    """Compete, and say what it came to."""
    chosen = [CONTESTANTS[name] for name in contestants]

    async def run(folder: Path) -> list[Turn]:
        async with ground(folder, chosen) as made:
            teams = [await made.team(one) for one in chosen]
            return await compete(teams, heats(polls, rounds=rounds, quick=quick), _say)

    with tempfile.TemporaryDirectory(prefix="sakshi-contest-") as folder:
        return score_tables(scores(asyncio.run(run(Path(folder)))))


def _say(turn: Turn) -> None:
    cpu = ", ".join(f"{role} {1000 * seconds / turn.operations:.1f}" for role, seconds in turn.cpu.items())
    rate = turn.operations / turn.seconds
    print(f"{turn.contestant} at {turn.polls} polls: {rate:.1f}/s; CPU ms each: {cpu}", file=sys.stderr, flush=True)


def main() -> None:
    """Read the options, compete, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contest", description="The contest.")
    parser.add_argument("--polls", type=int, nargs="+", choices=list(SHORT), default=list(SHORT))
    parser.add_argument("--contestants", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--rounds", type=int, help="how many turns each has at each number of polls")
    parser.add_argument("--quick", action="store_true", help="fewer operations")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is started is stopped, and the folder removed
    for table in tables(polls=options.polls, contestants=options.contestants, rounds=options.rounds, quick=options.quick):
        print(table.markdown())


if __name__ == "__main__":
    main()
