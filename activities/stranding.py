"""Operations that can't be gone on with, because something that was kept for them cannot be had: they are brought before a human.

* Erased, changed in the ledger, or unreadable to this version: one kind, whatever step met it. Nothing was sent, and nothing is retried.
* Before a job is known that is `create_unknown`, after it `result_unavailable`; where the job has ended without a result, its own end.
* Of what steps left by an operation that has ended, it is said that it stays.
* An operation that waits for a human already goes on waiting: the wake that read once more has learned nothing.
* Where another attempt has moved it on meanwhile, the step that is then due may need less: whoever does that one meets what it needs.
"""

from collections.abc import Sequence
from datetime import datetime

from activities.owning import append_as_owner
from activities.ports import Record, World
from domain.errors import Unloadable
from domain.evidence import Evidence, Missing, StepOutcome, Words, instant
from domain.lifecycle import StepName, next_step
from domain.standing import Leftover, Standing

UNLOADABLE = "unloadable"


async def strand(world: World, stream: str, step: StepName, error: Unloadable, *, turn: int) -> Record:
    """Record what is missing, with the move it makes, unless the step that met it is no longer due."""
    at = instant(world.clocks.now())

    def decide(standing: Standing) -> Sequence[Evidence]:
        due = next_step(standing).name
        if due != step:
            return []
        match due:
            case "undo":
                return [_stays(world, at, left, error) for left in standing.undo_due]
            case "create" | "reconcile" | "observe" | "cancel" | "collect":
                return [Missing(at=at, actor=world.identity, what=error.what, fault=error.fault, under=error.digest)]
            case "judge" | "inbox" | "done":
                return []

    return await append_as_owner(world, stream, decide, turn=turn)


def _stays(world: World, at: datetime, left: Leftover, error: Unloadable) -> StepOutcome:
    return StepOutcome(
        at=at, actor=world.identity, meaning="leftover", step=left.step, generation=left.generation, saved=left.saved, word=UNLOADABLE,
        words=Words(reason=error.message),
    )  # fmt: skip
