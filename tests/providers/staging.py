"""The stages on which the stories of contracts are told: one for all of them, and another once it is worn.

* The time-skipping server counts an activity as running for ever if a cancel meets the very end of its attempt. From then on its time
  passes as ours does, and each later story would take half a minute instead of a second. So a stage is asked first whether days still
  pass at once on it.
* What a story that failed, or went another way than was written, has left running belongs to no other: that stage is worn too.
* A stage is opened in a task of its own, because the time that is set for it must not end in the middle of somebody's story.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.providers.telling import Consents, Told, tell
from tests.workflows.server_loss import time_is_skipped
from tests.workflows.stage import Stage, stage


class Stages:
    """Tells stories, on a stage that is fit for the next."""

    def __init__(self, folders: pytest.TempPathFactory, name: str) -> None:
        self._folders = folders
        self._name = name
        self._open = AsyncExitStack()
        self._on: Stage | None = None
        self.opened = 0

    @property
    def now(self) -> Stage:
        """The stage of the story before."""
        assert self._on is not None
        return self._on

    async def tell(self, path: Path, name: str, stream: str) -> Told:
        """Play one story of the contract to its end."""
        on = await self._fit()
        try:
            told = await tell(on, path, name, stream)
        except BaseException:
            await self.aclose()
            raise
        if told.wrong is not None:
            await self.aclose()
        return told

    async def aclose(self) -> None:
        """End the stage there is."""
        self._on = None
        await self._open.aclose()

    async def _fit(self) -> Stage:
        if self._on is not None and not await time_is_skipped(self._on.env):
            await self.aclose()
        if self._on is None:
            self._on = await asyncio.create_task(self._another(self._folders.mktemp(self._name)))
        return self._on

    async def _another(self, folder: Path) -> Stage:
        self.opened += 1
        return await self._open.enter_async_context(stage(folder, gate=Consents(), within=1_200.0))


@asynccontextmanager
async def stages_for(folders: pytest.TempPathFactory, name: str) -> AsyncGenerator[Stages]:
    """Stages for the block, in folders of that name."""
    made = Stages(folders, name)
    try:
        yield made
    finally:
        await made.aclose()
