"""From scores to tables: the figures, the ratios, and whether what is promised of them holds."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.rounds import ROLES, Score
from benchmarks.contest.work import DELAY_S, IN_FLIGHT
from benchmarks.table import Table

Scores = Mapping[tuple[str, int], Score]
EVENTS_AT_MOST = 32
NOTES = (
    f"Each job is read once more than it has polls, {DELAY_S * 1000:.0f} ms after the reading before, with {IN_FLIGHT} operations in "
    "flight at most. Figures are medians of the rounds, CPU is of user and kernel, and of no part of the provider.",
    "Sakshi keeps all evidence, asks its policies, and verifies type, size, rows and SHA-256 of the result. The others do none of that, "
    "and would have to be written further before they could be asked what happened.",
    "Temporal's server starts what is due in about a second's steps. The timer loop and the retry poll wait for it at every poll, so at "
    "many polls their throughput is that of the server's timers and their CPU is what to compare.",
    "DBOS is a library: its workflows run in the process that starts them, which counts as its worker. Its events are recorded steps. "
    "Sakshi's SQLite ledger is in its worker and starter, and Temporal's own database in the engine.",
)


@dataclass(frozen=True)
class Promise:
    """Sakshi's throughput is at least `factor` times that of a peer, and its CPU per operation at most the peer's divided by it."""

    peer: str
    ours: str
    polls: int
    factor: float


PROMISES = (
    Promise("b", "sakshi-sqlite", 3, 0.9),
    Promise("b2", "sakshi-sqlite", 20, 0.8),
    Promise("a", "sakshi-sqlite", 20, 2.5),
    Promise("dbos-sqlite", "sakshi-sqlite", 20, 1.2),
    Promise("dbos-postgresql", "sakshi-postgresql", 20, 1.2),
    Promise("dbos-sqlite", "sakshi-sqlite", 100, 2.0),
    Promise("dbos-postgresql", "sakshi-postgresql", 100, 2.0),
)


def score_tables(scores: Scores) -> list[Table]:
    """All tables of the contest."""
    counts = sorted({polls for _, polls in scores})
    return [*(_figures(scores, polls) for polls in counts), *_promises(scores)]


def _figures(scores: Scores, polls: int) -> Table:
    own = [score for (_, count), score in scores.items() if count == polls]
    head = ("contestant", "evidence, authority, verification", "operations/s", "CPU ms/operation", *ROLES, "events", "history KiB")
    return Table(f"{polls} polls", head, tuple(_figure(score) for score in own), notes=NOTES if polls == min(p for _, p in scores) else ())


def _figure(score: Score) -> tuple[str, ...]:
    contestant = CONTESTANTS[score.contestant]
    return (
        contestant.title,
        "all" if contestant.evidence else "none",
        f"{score.per_second:.1f}",
        f"{score.total:.1f}",
        *(f"{score.cpu[role]:.1f}" if role in score.cpu else "-" for role in ROLES),
        "-" if score.events is None else f"{score.events:.0f}",
        "-" if score.history is None else f"{score.history / 1024:.1f}",
    )


def _promises(scores: Scores) -> list[Table]:
    rows = [row for promise in PROMISES if (row := _judged(scores, promise))]
    head = ("against", "polls", "throughput, times the peer's", "CPU per operation, the peer's over ours", "both at least", "holds")
    short = f"History of a success has at most {EVENTS_AT_MOST} events at any number of polls: {'yes' if events_hold(scores) else 'NO'}."
    return [Table("Ratios", head, tuple(rows), notes=(short,))] if rows else []


def _judged(scores: Scores, promise: Promise) -> tuple[str, ...] | None:
    ours, peer = scores.get((promise.ours, promise.polls)), scores.get((promise.peer, promise.polls))
    if ours is None or peer is None:
        return None
    speed, cpu = ours.per_second / peer.per_second, peer.total / ours.total
    verdict = holds(speed, cpu, promise.factor)
    title = f"{CONTESTANTS[promise.ours].title} against {CONTESTANTS[promise.peer].title}"
    return (title, str(promise.polls), f"{speed:.2f}", f"{cpu:.2f}", f"{promise.factor:.2f}", verdict)


def holds(speed: float, cpu: float, factor: float) -> str:
    """The verdict on both ratios."""
    match speed >= factor, cpu >= factor:
        case True, True:
            return "yes"
        case True, False:
            return "throughput yes, CPU NO"
        case False, True:
            return "throughput NO, CPU yes"
        case _:
            return "NO"


def events_hold(scores: Scores) -> bool:
    """History stays short at any number of polls."""
    ours = [score for score in scores.values() if CONTESTANTS[score.contestant].evidence]
    return all(score.events is not None and score.events <= EVENTS_AT_MOST for score in ours)
