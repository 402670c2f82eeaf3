"""A worker that dies at any moment while it collects a result of several kinds of objects: the next one ends it, whole and tidy."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.provider import ProviderActivities
from domain.messages import StepInput
from tests.workflows.dying import Died, collecting, go_on
from tests.workflows.stage import Stage, acting_for, stage
from tests.workflows.test_collecting_pages import AT_ONCE, BY_CURSOR, rows_of
from tests.workflows.test_collecting_several import LIST, PARTS, STATUS, outcome, several, staged

UNNAMED = {key: value for key, value in PARTS.items() if key != "name"}
OUTPUTS: dict[str, Any] = {
    "parts": {**UNNAMED, "verify": {"sha256": "${headers.x_checksum}", "required": ["sha256"]}},
    "progress": STATUS,
    "rows": {"from": BY_CURSOR, "format": "csv"},
}


class Fate:
    """Counts moments, and ends it all at one of them: before what is asked for happens, or after it and before anybody hears."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.met, self._at, self._after = 0, at, after
        self.struck = False

    def before(self) -> bool:
        self.met += 1
        if self.met == self._at and not self._after:
            self.struck = True
            raise Died
        return self.met == self._at

    def after(self, due: bool) -> None:
        if due:
            self.struck = True
            raise Died


class Doomed:
    """Something of the world whose every call is a moment."""

    def __init__(self, real: Any, fate: Fate, *calls: str) -> None:
        self._real, self._fate, self._calls = real, fate, calls

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if name not in self._calls:
            return value

        async def call(*args: Any, **named: Any) -> Any:
            due = self._fate.before()
            got = await value(*args, **named)
            self._fate.after(due)
            return got

        @asynccontextmanager
        async def opened(*args: Any, **named: Any) -> AsyncGenerator[Any]:
            due = self._fate.before()
            async with value(*args, **named) as got:
                yield Doomed(got, self._fate, "seal") if name == "stage" else got
            self._fate.after(due)

        return opened if name in ("stage", "stream") else call


MOMENTS: dict[str, tuple[str, ...]] = {
    "provider": ("exchange", "stream"),
    "results": ("stage", "publish", "discard", "staged_size", "staged_media"),
    "ledger": ("append",),
}


async def die_at(on: Stage, at: int, *places: str, after: bool) -> bool:
    """One attempt that ends at that moment; whether it did."""
    fate = Fate(at, after=after)
    world = replace(on.world, **{place: Doomed(getattr(on.world, place), fate, *MOMENTS[place]) for place in places})
    with suppress(Died):
        await acting_for("run-1").run(ProviderActivities(world).collect, StepInput(id="op-1", turn=4))
    return fate.struck


@pytest.mark.parametrize(
    ("places", "after", "first", "every"),
    [(tuple(MOMENTS), False, 1, 9), (tuple(MOMENTS), True, 5, 9), (("ledger",), True, 1, 1), (("results",), True, 40, 4)],
)
async def test_whenever_a_worker_dies_the_next_one_has_the_whole_result_and_leaves_nothing_staged(
    tmp_path: Path, places: tuple[str, ...], after: bool, first: int, every: int
) -> None:
    at, struck = first, True
    while struck:
        (folder := tmp_path / str(at)).mkdir()
        async with stage(folder, work=False) as on:
            await collecting(on, several(OUTPUTS, before=[LIST]), AT_ONCE)
            struck = await die_at(on, at, *places, after=after)
            assert (await go_on(on)).state == "succeeded", at
            said = await outcome(on)
            assert [output.name for output in said.outputs] == [*(f"parts/{number}" for number in range(1, 6)), "progress", "rows"], at
            assert len({output.sha256 for output in said.outputs}) == 7, at
            assert sum(output.records or 0 for output in said.outputs[:5]) == 9, at
            rows = [chunk async for chunk in on.results.read(said.outputs[-1].key)]
            assert b"".join(rows) == rows_of(on), at
            assert (await on.story()).count("result.verified") == 1, at
            assert staged(on) == [], at
            await on.verified()
        at += every
    assert at > first + every
