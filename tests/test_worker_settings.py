"""What an installation sets of a worker's slots and cache arrives at the queue that it is for."""

from typing import Any, cast

import pytest
from temporalio.client import Client

import worker
from activities.ports import World
from adapters.clocks import SystemClocks
from adapters.settings import Settings, load_settings
from domain.messages import QUEUE_EFFECTS, QUEUE_LEDGER, QUEUE_READS


class _World:
    """As much of it as is touched before the first activity."""

    ledger = None
    clocks = SystemClocks()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch):
    """By queue, what a worker of these settings is made with."""

    def build(settings: Settings) -> dict[str, dict[str, Any]]:
        made: dict[str, dict[str, Any]] = {}
        monkeypatch.setattr(worker, "Worker", lambda _client, *, task_queue, **options: made.update({task_queue: options}))
        worker.workers_of(settings, cast("Client", None), cast("World", _World()))
        return made

    return build


@pytest.mark.parametrize(
    ("setting", "queues", "option"),
    [
        ("slots_effects", [QUEUE_EFFECTS, QUEUE_READS], "max_concurrent_activities"),
        ("slots_reads", [QUEUE_LEDGER], "max_concurrent_activities"),
        ("slots_workflows", [QUEUE_LEDGER], "max_concurrent_workflow_tasks"),
        ("cached_workflows", [QUEUE_LEDGER], "max_cached_workflows"),
    ],
)
def test_a_setting_reaches_the_queues_that_it_is_for(built: Any, setting: str, queues: list[str], option: str):
    assert [name for name, options in built(load_settings(**{setting: 7})).items() if options.get(option) == 7] == queues


def test_workflows_are_kept_by_one_queue_alone(built: Any):
    assert [queue for queue, options in built(load_settings()).items() if "workflows" in options] == [QUEUE_LEDGER]
