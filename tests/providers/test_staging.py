"""A stage that is worn is left for another, so that no story waits for days in real time, or meets what another has left running."""

from pathlib import Path

import pytest
from temporalio.api.testservice.v1 import LockTimeSkippingRequest

from tests.providers.staging import stages_for
from tests.workflows.server_loss import LostByTheServer, time_is_skipped, time_passes

ROOT = Path(__file__).parents[2]
TINY = ROOT / "docs" / "contracts" / "tiny.jobs.create.yaml"
STORY = "create, watch, collect"


async def test_a_stage_whose_time_no_longer_passes_at_once_is_left_for_another(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with stages_for(tmp_path_factory, "worn") as on:
        assert (await on.tell(TINY, STORY, "op-1")).standing.state == "succeeded"
        assert (await on.tell(TINY, STORY, "op-2")).standing.state == "succeeded"
        assert on.opened == 1
        for _ in range(2):  # a sleep that nobody waits for any more takes away one
            await on.now.client.test_service.lock_time_skipping(LockTimeSkippingRequest())
        with pytest.raises(LostByTheServer):
            await time_passes(on.now.env, 3600.0, within=0.5)
        assert (await on.tell(TINY, STORY, "op-3")).standing.state == "succeeded"
        assert on.opened == 2
        assert await time_is_skipped(on.now.env)


async def test_what_a_story_that_failed_has_left_is_left_behind(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with stages_for(tmp_path_factory, "worn") as on:
        assert (await on.tell(TINY, STORY, "op-1")).standing.state == "succeeded"
        with pytest.raises(FileNotFoundError):
            await on.tell(tmp_path / "nobody.wrote.it.yaml", STORY, "op-2")
        assert (await on.tell(TINY, STORY, "op-1")).standing.state == "succeeded"
        assert on.opened == 2
