"""An attempt that was given up for dead still fetches, while the next one begins: what can be had once is not lost between them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from activities.authority import AuthorityActivities
from activities.ports import Provider, StreamedAnswer
from activities.provider import ProviderActivities
from adapters.result_store import ObstoreResults
from domain.exchange import Answer, CallPolicy, Exchange, Fault, NoAnswer, Request
from domain.messages import JudgeDecisionInput, Received, StepInput
from tests.workflows.stage import acting_for, stage

STAGING = "op-1/7"


class Slow:
    """A body whose end waits for `go_on`."""

    def __init__(self, real: StreamedAnswer, begun: asyncio.Event, go_on: asyncio.Event) -> None:
        self._real, self._begun, self._go_on = real, begun, go_on

    @property
    def answer(self) -> Answer | NoAnswer:
        return self._real.answer

    @property
    def began(self) -> Any:
        return self._real.began

    @property
    def fault(self) -> Fault | None:
        return self._real.fault

    def masked(self, body: bytes) -> bytes:
        return self._real.masked(body)

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._real.chunks():
            yield chunk
            self._begun.set()
            await self._go_on.wait()


class FirstIsSlow:
    """A provider whose first stream is slow."""

    def __init__(self, real: Provider) -> None:
        self._real, self._streams = real, 0
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def exchange(self, request: Request, policy: CallPolicy) -> Exchange:
        return await self._real.exchange(request, policy)

    @asynccontextmanager
    async def stream(self, request: Request, policy: CallPolicy) -> AsyncGenerator[Any]:
        self._streams += 1
        first = self._streams == 1
        async with self._real.stream(request, policy) as real:
            yield Slow(real, self.begun, self.go_on) if first else real


async def test_a_result_that_the_older_attempt_brings_home_after_it_is_gone_can_be_collected(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        slow = FirstIsSlow(on.world.provider)
        world = replace(on.world, provider=slow)
        steps, owner = ProviderActivities(world), acting_for("run-1")
        on.books.lie("collect", "result_expired", nth=2, times=50)
        await on.open(
            input={"account": "a-1", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv", "rows": 5, "polls": 1}
        )
        await owner.run(AuthorityActivities(world).judge, StepInput(id="op-1", turn=1))
        await owner.run(steps.create, StepInput(id="op-1", turn=2))
        assert (await owner.run(steps.observe, StepInput(id="op-1", turn=3))).state == "result_collecting"

        older = asyncio.create_task(acting_for("run-1").run(steps.collect, StepInput(id="op-1", turn=4)))
        await slow.begun.wait()
        gone = await acting_for("run-1", attempt=2).run(steps.collect, StepInput(id="op-1", turn=4))
        assert gone.state == "result_unavailable"
        slow.go_on.set()
        assert (await older).state == "result_unavailable"

        body = '{"request_id": "r-1", "by": "local", "choice": "recollect", "reason": "it came"}'
        asked = JudgeDecisionInput(id="op-1", turn=5, received=Received(kind="resolve", body=body, size=len(body)))
        assert (await owner.run(AuthorityActivities(world).judge_decision, asked)).accepted
        assert (await owner.run(steps.collect, StepInput(id="op-1", turn=6))).state == "succeeded"
        assert len(on.books.requests("collect")) == 2
        assert await on.result_bytes() == b"".join(on.books.jobs()[0].report.pieces())
        assert list((on.folder / "results" / ".staging").iterdir()) == []
        await on.verified()


async def test_one_attempt_that_begins_or_gives_up_takes_nothing_away_from_another(tmp_path: Path) -> None:
    store = ObstoreResults(tmp_path / "results")
    async with store.stage(STAGING) as older:
        await older.write(b"half")
        async with store.stage(STAGING) as newer:
            await newer.write(b"other")
            await older.write(b" and half")
            await older.seal("text/plain")
        # The newer one had nothing, and gave up after the older one had sealed.
    assert b"".join([chunk async for chunk in store.read_staged(STAGING)]) == b"half and half"
    assert await store.staged_media(STAGING) == "text/plain"
    await store.discard(STAGING)
    assert list((tmp_path / "results" / ".staging").iterdir()) == []
