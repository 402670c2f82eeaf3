"""Workers whose clocks are wrong, by an hour and more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.ports import Clocks
from adapters.clock_check import ClockCheck
from domain.authority import Judgement, Question
from domain.errors import BadContract
from tests.workflows.stage import stage, variant


@dataclass
class Off:
    """Clocks that are off by a span."""

    true: Clocks
    by: timedelta

    def now(self) -> datetime:
        return self.true.now() + self.by

    def monotonic(self) -> float:
        return self.true.monotonic()


class AsksPeople:
    """A gate that wants a human for everything."""

    def judge(self, question: Question) -> Judgement:
        return Judgement(answer="needs_human", policies=(), errors=(), bundle="b" * 64, why=None)

    def judge_decision(self, question: Question, verb: str, person: str) -> Judgement:
        return Judgement(answer="unattended", policies=(), errors=(), bundle="b" * 64, why=None)


async def test_an_approval_clock_is_waited_for_and_not_asked_about_in_a_hot_loop(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False, gate=AsksPeople()) as on:
        on.world = replace(on.world, clocks=Off(on.clocks, timedelta(minutes=-10)))
        handle = await on.start(variant("sim.reports.create", {"deadlines": {"approval": "2m"}}))
        async with on.working():
            assert (await handle.result()).state == "expired"
        assert await on.history_events() < 2000
        await on.verified()


class _Real(ActivityInboundInterceptor):
    def __init__(self) -> None:
        self.done = 0

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self.done += 1


async def _attempt(off: timedelta, *, is_local: bool = False) -> int:
    moment = datetime(2026, 12, 1, 12, tzinfo=UTC)

    class Still:
        def now(self) -> datetime:
            return moment + off

        def monotonic(self) -> float:
            return 0.0

    env, real = ActivityEnvironment(), _Real()
    env.info = replace(env.info, started_time=moment, is_local=is_local)
    checked = ClockCheck(Still()).intercept_activity(real)
    args = cast("Sequence[Any]", ())
    await env.run(checked.execute_activity, ExecuteActivityInput(fn=_attempt, args=args, executor=None, headers={}))
    return real.done


@pytest.mark.parametrize("off", [timedelta(hours=1), timedelta(hours=-1), timedelta(seconds=31), timedelta(seconds=-31)])
async def test_a_worker_whose_clock_is_not_temporals_does_nothing_and_says_so(off: timedelta) -> None:
    with pytest.raises(ApplicationError, match="clock") as failed:
        await _attempt(off)
    assert not failed.value.non_retryable


@pytest.mark.parametrize("off", [timedelta(), timedelta(seconds=29), timedelta(seconds=-29)])
async def test_a_worker_whose_clock_is_nearly_right_works(off: timedelta) -> None:
    assert await _attempt(off) == 1


async def test_a_local_activity_has_no_clock_to_compare_with(tmp_path: Path) -> None:
    assert await _attempt(timedelta(hours=1), is_local=True) == 1


@pytest.mark.parametrize("span", ["3651d", "999999999d", "999999999h"])
def test_a_duration_that_leads_out_of_the_calendar_is_refused_where_it_is_written(span: str) -> None:
    with pytest.raises(BadContract, match="at most 3650d"):
        variant("sim.reports.create", {"deadlines": {"result": span}})
