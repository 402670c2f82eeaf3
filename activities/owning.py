"""Appending as the owner of a stream, and what to do when one no longer is.

* The owner is the Temporal run, read from the activity's own info, never from an argument.
* A run that was overtaken by a run that is itself gone (a stale activity of an older run claimed the stream) asks Temporal: if
  it is the current one it claims again. An older turn of the current run never does: a newer step of the same run is at work.
* Facts are never lost: what a stale owner saw is kept as a note, and a late create answer wakes the operation. So does one that an
  attempt that was given up for dead appends as a move, when nobody waits for that attempt any more.
* A wake that Temporal does not take is repeated: behind a partition the ledger may be reached while Temporal is not.
"""

import asyncio
from collections.abc import Sequence

from temporalio import activity

from activities.case import Case
from activities.ports import Decide, Owner, Record, World
from activities.veiling import veiled
from domain.errors import StaleOwner, Unreachable
from domain.evidence import CreateExchange, Evidence, Late
from domain.lifecycle import next_step
from domain.messages import Known
from domain.standing import Standing

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 5.0


def owner_of(turn: int) -> Owner:
    """The owner that this activity acts for."""
    run_id = activity.info().workflow_run_id
    if run_id is None:
        raise StaleOwner("this activity belongs to no workflow run")
    return Owner(run_id=run_id, turn=turn)


async def append_as_owner(
    world: World, stream: str, decide: Decide, *, turn: int, known: Known | None = None, payloads: Sequence[bytes] = ()
) -> Record:
    """Append moves and stays. Raises StaleOwner if another run, or a newer turn of this one, has the stream."""
    owner = owner_of(turn)
    try:
        return await world.ledger.append(stream, decide, owner=owner, known=known, payloads=payloads)
    except StaleOwner:
        standing = (await world.ledger.record(stream)).standing
        overtaken_by_run = standing.owners.get(owner.run_id, -1) < standing.epoch
        if not overtaken_by_run or await world.runs.current_run(stream) != owner.run_id:
            raise
    await world.ledger.claim(stream, owner)
    return await world.ledger.append(stream, decide, owner=owner, known=known, payloads=payloads)


async def append_fact(world: World, case: Case, fact: Evidence, *, turn: int, payloads: Sequence[bytes] = ()) -> Record:
    """Append what a provider did, without what is sensitive in it: with the move it allows if we own the stream, else as a note.

    Never loses it.
    """
    expected = True
    stream = case.record.stream
    fact, hidden = await veiled(world, case, fact)
    payloads = (*payloads, *hidden)

    def decide(standing: Standing) -> Sequence[Evidence]:
        nonlocal expected
        expected = next_step(standing).name == "create"
        return [fact]

    try:
        record = await append_as_owner(world, stream, decide, turn=turn, payloads=payloads)
    except StaleOwner:
        note = late_of(fact) if isinstance(fact, CreateExchange) else fact
        record = await world.ledger.append(stream, lambda _: [note], owner=None, payloads=payloads)
        expected = False
    if isinstance(fact, CreateExchange) and fact.recovered is None and not expected:
        await _wake(world, stream)
    return record


async def _wake(world: World, stream: str) -> None:
    """Say that a late answer came, until Temporal has heard it."""
    pause = FIRST_PAUSE_S
    while True:
        try:
            return await world.runs.wake(stream, "late answer")
        except Unreachable:
            if activity.is_worker_shutdown():
                raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)


def late_of(exchange: CreateExchange, *, of: int | None = None) -> Late:
    """The same outcome as a late one. `of`: the note that the owner read."""
    return Late.model_validate({**exchange.model_dump(exclude={"kind"}), "of": of})
