"""A message that decodes and cannot be recorded would be tried for ever, and every message behind it would wait."""

import json
from pathlib import Path

import pytest

from activities.authority import AuthorityActivities, read_message
from activities.provider import ProviderActivities
from domain.messages import JudgeDecisionInput, Received, StepInput
from tests.workflows.stage import acting_for, stage

NO_INSTANTS = ["2030-01-01T00:00:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", 10**12, 10**17]


def resolution(until: object) -> Received:
    body = json.dumps({"request_id": "r-1", "by": "local", "choice": "resume", "reason": "looked", "until": until})
    return Received(kind="resolve", body=body, size=len(body))


@pytest.mark.parametrize("until", NO_INSTANTS)
async def test_an_instant_without_zone_or_out_of_reach_is_refused_and_what_comes_after_it_is_heard(tmp_path: Path, until: object) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.intend_and_die("sim.plain.create", run_id="run-1")
        owner = acting_for("run-1")
        head = await owner.run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=3))
        assert head.state == "create_unknown"
        judge = AuthorityActivities(on.world).judge_decision
        refused = await owner.run(judge, JudgeDecisionInput(id="op-1", turn=4, received=resolution(until)))
        assert not refused.accepted
        body = json.dumps({"request_id": "r-2", "by": "local", "choice": "abandon", "reason": "enough"})
        heard = await owner.run(judge, JudgeDecisionInput(id="op-1", turn=5, received=Received(kind="resolve", body=body, size=len(body))))
        assert (heard.accepted, heard.head.state) == (True, "abandoned")
        assert await on.answered("r-1")
        await on.verified()


@pytest.mark.parametrize("depth", [60, 200, 300, 900, 3000])
def test_arguments_nested_however_deeply_are_read_or_refused(depth: int) -> None:
    body = '{"request_id":"r-1","by":"local","choice":"adopt","arguments":{"id":' + "[" * depth + "]" * depth + "}}"
    assert read_message(Received(kind="resolve", body=body, size=len(body))).request_id
