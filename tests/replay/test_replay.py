"""Today's code fits yesterday's histories, as production loads it, in the sandbox of the stories, and with everything policed."""

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, WorkflowRunner
from temporalio.workflow import NondeterminismError

from adapters.temporal import DATA_CONVERTER, policed_runner, production_runner, sandboxed_runner
from tests.replay.changed import ChangedOperationWorkflow
from tests.replay.stories import FOLDER, STORIES
from tests.workflows.stage import SECRET
from workflows.operation import OperationWorkflow

RUNNERS = {"production": production_runner, "sandboxed": sandboxed_runner, "policed": policed_runner}
KEPT = sorted(FOLDER.glob("*.json"))


def read(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json("op-1", path.read_text())


async def replay(path: Path, runner: WorkflowRunner, workflow: type = OperationWorkflow) -> None:
    replayer = Replayer(workflows=[workflow], workflow_runner=runner, data_converter=DATA_CONVERTER)
    await replayer.replay_workflow(read(path))


@pytest.mark.parametrize("runner", list(RUNNERS))
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
async def test_a_kept_history_is_replayed_by_todays_code(path: Path, runner: str) -> None:
    await replay(path, RUNNERS[runner]())


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
async def test_a_changed_workflow_is_caught(path: Path) -> None:
    with pytest.raises(NondeterminismError):
        await replay(path, production_runner(), ChangedOperationWorkflow)


def test_every_story_has_a_kept_history_and_every_history_a_story() -> None:
    assert {path.name.split(".")[0] for path in KEPT} == set(STORIES)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_history_is_small_and_holds_no_credential_and_no_path(path: Path) -> None:
    text = path.read_text()
    assert len(text) < 200_000
    assert SECRET not in text
    assert "site-packages" not in text
    assert json.loads(text)["events"]
