"""Plays many cells on one stage at the same time: each has an operation, a provider and books of its own.

* Each provider's clock is the stage's: what takes hours there takes none here.
* Where lies point elsewhere, somebody listens there and writes down what comes.
* A cell has ended when its operation is final or waits for a human.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from activities.loading import Cases
from activities.ports import Record
from domain.chain import Entry
from domain.evidence import Json
from domain.standing import Standing
from simulator.books import Books
from simulator.provider import Provider, Settings
from simulator.serve import running
from tests.matrix.oracle import Cell
from tests.workflows.elsewhere import Elsewhere, elsewhere
from tests.workflows.stage import SECRET, Stage, stage

FIRST_STEP_S = 10.0
LONGEST_S = 24 * 3600.0
JOB_OUTLASTS_ITS_CANCEL: dict[str, Json] = {"seconds": 4 * 3600}
TWO_READINGS: dict[str, Json] = {"polls": 2}
WITHIN_S = 280.0


@dataclass(frozen=True)
class Left:
    """What is left of one cell."""

    cell: Cell
    stage: Stage
    standing: Standing
    entries: list[Entry]
    result: bytes | None

    @property
    def story(self) -> list[str]:
        """Causes in order."""
        return [entry.cause for entry in self.entries]


@dataclass(frozen=True)
class Played:
    """What is left of all cells of a stage, and of the stage."""

    left: list[Left]
    strangers: Elsewhere
    honest: Standing
    folder: Path


async def play(folder: Path, chosen: Sequence[Cell]) -> Played:
    """Play these cells, and then an honest operation by the same workers."""
    async with stage(folder, within=WITHIN_S, cached=len(chosen) + 1) as on, elsewhere() as strangers, AsyncExitStack() as doors:
        stages = [await _own_provider(on, doors) for _ in range(len(chosen) + 1)]
        _allow(on, [one.provider.url for one in stages])
        *mine, last = stages
        begun = list(zip(chosen, mine, strict=True))
        for cell, one in begun:
            await _begin(cell, one, strangers)
        await _cancel_those_that_run([pair for pair in begun if pair[0].phase == "cancel"], on)
        await _until_settled(on, [cell.name for cell in chosen])
        await last.start("sim.reports.create", stream="an-honest-one")
        await _until_settled(on, ["an-honest-one"])
        left = [await _left(cell, one) for cell, one in begun]
        return Played(left, strangers, await on.standing("an-honest-one"), folder)


async def _own_provider(on: Stage, doors: AsyncExitStack) -> Stage:
    clocks = on.clocks
    books = Books(Provider(replace(Settings(), cancel_polls=0), clock=lambda: clocks.now().timestamp()))
    return replace(on, provider=await doors.enter_async_context(running(books)), started=[])


def _allow(on: Stage, origins: list[str]) -> None:
    record = {"scheme": "bearer", "value": SECRET, "origins": origins, "tenants": ["t1"], "account": "acct-1"}
    (on.folder / "secrets" / "sim").write_text(json.dumps(record))


async def _begin(cell: Cell, on: Stage, strangers: Elsewhere) -> None:
    kind = cell.kind
    contract = kind.paced(patient=cell.word == "hold", unrepeated=cell.phase == "lookup" and kind.resends)
    pace = JOB_OUTLASTS_ITS_CANCEL if cell.phase == "cancel" else TWO_READINGS
    record = await on.open(contract, kind.input(**pace), stream=cell.name)
    await _script(cell, on, record, strangers)
    await on.tell(record)


async def _script(cell: Cell, on: Stage, record: Record, strangers: Elsewhere) -> None:
    word, books = cell.row, on.books
    form = dict(word.forms)[cell.form]
    args: dict[str, Json] = {name: strangers.url if value == "ELSEWHERE" else value for name, value in form.items()}
    lie: dict[str, Json] = {"word": cell.word, "args": args}
    job: str | None = None
    call = cell.phase
    if cell.phase == "create":
        call = "read" if cell.kind.at_once else "create"
        if word.after:
            books.lie("create", word.after, nth=1)
    if cell.phase == "lookup":
        call = cell.kind.lookups_are
        if not cell.kind.nameless:
            books.lie("create", "drop_after_accepting", nth=1)
        if call == "observe":  # other calls about other jobs are status reads of the same kind
            case = await Cases(on.world).load(record.stream, None)
            job = str(case.token(1))
    assert call != "lookup"
    nth = word.nth if cell.phase in {"create", "observe"} else 1
    books.lie(call, lie, job=job, nth=None if cell.always else nth)


async def _cancel_those_that_run(begun: list[tuple[Cell, Stage]], on: Stage) -> None:
    waiting = {cell.name for cell, _ in begun}
    for _ in range(6000):
        for name in list(waiting):
            if await on.state(name) in {"accepted", "observing"}:
                await on.cancel(name, request_id=f"c-{name}"[:64])
                waiting.discard(name)
        if not waiting:
            return
        await asyncio.sleep(0.02)  # the server's time stands, so that no job goes on meanwhile
    raise AssertionError(f"never came to run: {sorted(waiting)}")


async def _until_settled(on: Stage, names: list[str]) -> None:
    """Most happens soon, so the steps are small in the beginning."""
    waiting, passed = set(names), 0.0
    while passed < LONGEST_S:
        for name in list(waiting):
            standing = await on.standing(name)
            if standing.final or standing.attention:
                waiting.discard(name)
        if not waiting:
            return
        step = max(FIRST_STEP_S, passed / 10)
        await on.pass_time(step)
        passed += step
    told = {name: (await on.state(name), (await on.story(name))[-12:]) for name in sorted(waiting)}
    raise AssertionError(f"never settled: {told}")


async def _left(cell: Cell, on: Stage) -> Left:
    standing = await on.standing(cell.name)
    kept = standing.outputs and standing.state == "succeeded"
    await on.verified(cell.name)
    return Left(cell, on, standing, await on.entries(stream=cell.name), await on.result_bytes(cell.name) if kept else None)
