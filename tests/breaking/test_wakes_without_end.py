"""A flood of wakes: the workflow starts afresh in time, and no wake is lost on the way."""

from pathlib import Path

from domain.messages import OperationInput
from tests.workflows.stage import stage, variant


async def test_a_wake_goes_along_when_the_workflow_starts_afresh(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        record = await on.open(variant("sim.reports.create", {"observe": {"poll": {"first": "10m", "cap": "10m"}}}))
        handle = await on.tell(record)
        async with on.working():
            await on.soon(lambda one: one.standing.state in {"accepted", "observing"})
        before = (await on.standing()).reads
        await handle.terminate()
        await on.client.start_workflow("SakshiOperation", OperationInput(id="op-1", woken=True), id="op-1", task_queue="sakshi-ledger")
        async with on.working():
            woken = await on.soon(lambda one: one.standing.reads > before)
        assert [entry.body.get("woken") for entry in await on.entries("reading")][-1] is True
        assert len(on.books.jobs()) == 1
        assert woken.standing.state in {"observing", "result_collecting", "succeeded"}
