"""Appending the clock that runs in a state, once its deadline has passed.

The activity that owns a step owns its deadline: it made its last attempt before it gets here.
"""

from collections.abc import Sequence

from activities.case import Case
from activities.owning import append_as_owner
from activities.ports import World
from domain.evidence import Clock, Evidence, instant
from domain.lifecycle import clock_of, next_step
from domain.standing import Standing


async def end_at_deadline(world: World, case: Case, *, turn: int) -> Case:
    """The case after its clock, if its deadline has passed; else the case as it is, without a trip to the ledger."""
    step, now = next_step(case.standing).name, instant(world.clocks.now())

    def decide(standing: Standing) -> Sequence[Evidence]:
        due = next_step(standing)
        if due.name != step or due.until is None or now < due.until:
            return []
        return [Clock.model_validate({"at": now, "actor": "clock", "meaning": clock_of(standing), "deadline": due.until})]

    if not decide(case.standing):
        return case
    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))
