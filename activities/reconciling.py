"""Settling an unknown create from what we already have: our own late answers first.

A late answer is the outcome of an attempt whose owner had been replaced when it came. It was kept as a note; here the owner reads
it and lets it count as its create word.
"""

from collections.abc import Sequence
from typing import cast

from activities.case import Case
from activities.owning import append_as_owner, late_of
from activities.ports import World
from domain.evidence import CreateExchange, Evidence, Late, instant
from domain.standing import Standing


async def read_late_notes(world: World, case: Case, *, turn: int) -> Case:
    """Read the oldest unread late answer. One at a time: each may move the state."""
    unread = case.standing.unread_late
    if not unread:
        return case
    seq = unread[0]
    entry = (await world.ledger.entries(case.record.stream, after=seq - 1, limit=1))[0]
    note = cast("Late", entry.evidence)
    answer = CreateExchange.model_validate(note.model_dump(exclude={"kind", "of"}))
    fact = late_of(answer, of=seq).model_copy(update={"at": instant(world.clocks.now()), "actor": world.identity})

    def decide(standing: Standing) -> Sequence[Evidence]:
        return [fact] if seq in standing.unread_late else []

    return case.at(await append_as_owner(world, case.record.stream, decide, turn=turn))
