"""The stories whose histories are kept: each is played on the stage and left when its workflow has ended, or is parked.

`python -m tests.replay.stories` plays all of them again and writes `tests/replay/histories/`. A history that is there was made by
code that may still be running somewhere: it is replaced only when such runs are known to be over.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

from domain.evidence import Json
from tests.workflows.losing import copy_ledger, ledger_is_missed, one_clock, put_back
from tests.workflows.stage import PLAIN, REPORT, Stage, stage, variant

FOLDER = Path(__file__).parent / "histories"
LONG: Json = {**REPORT, "polls": 500}
SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "1m"}}})
HALF_DONE = variant(
    "sim.reports.create",
    {
        "observe": {"states": [{"when": {"body.state": "succeeded"}, "is": "partial"}, {"when": {"status": 200}, "is": "running"}]},
        "collect": {"partial": "attention"},
    },
)
"""What the provider calls success is less than what was asked for, and a human says what that is."""
PREPARED = variant(
    "sim.plain.create",
    {
        "create": {
            "before": [
                {
                    "step": "upload",
                    "request": {"method": "POST", "path": "/v1/uploads", "json": {"for": "${input.account}"}},
                    "answers": [{"when": {"status": 201}, "is": "done"}],
                    "save": {"id": "body.id"},
                    "undo": {"method": "DELETE", "path": "/v1/uploads/${steps.upload.id}"},
                }
            ],
            "request": {"json": {"reference": "${steps.upload.id}"}},
        }
    },
)
"""Something is put there before the create, and taken back where no job is made."""


async def success(on: Stage) -> None:
    await (await on.start()).result()


async def judged_first(on: Stage) -> None:
    """As `success` is told since a fresh stream's workflow begins with its judgement."""
    await (await on.start()).result()


async def finished_at_once(on: Stage) -> None:
    await (await on.start(input={**REPORT, "sync": True})).result()


async def rejection(on: Stage) -> None:
    on.books.lie("create", "reject")
    await (await on.start()).result()


async def denial(on: Stage) -> None:
    await (await on.start(variant("sim.reports.create", {"effect": {"class": "destructive"}}))).result()


async def throttling(on: Stage) -> None:
    on.books.lie("create", {"word": "status_429", "args": {"seconds": 30}}, times=2)
    await (await on.start()).result()


async def lost_answer(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting", nth=1)
    await (await on.start()).result()


async def unknown_create(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting")
    handle = await on.start("sim.plain.create")
    await on.soon_state("create_unknown")
    await on.resolve("abandon")
    await handle.result()


async def remote_failure(on: Stage) -> None:
    await (await on.start(input={**REPORT, "fail": True})).result()


async def human_cancel(on: Stage) -> None:
    handle = await on.start(SLOW, LONG)
    await on.soon_state("accepted")
    await on.cancel()
    await handle.result()


async def native_cancel(on: Stage) -> None:
    handle = await on.start(SLOW, LONG)
    await on.soon_state("accepted")
    await handle.cancel()
    await handle.result()


async def refused_cancel(on: Stage) -> None:
    on.books.lie("cancel", "cancel_refused")
    handle = await on.start(SLOW, {**REPORT, "polls": 3})
    await on.soon_state("accepted")
    await on.cancel()
    await handle.result()


async def late_success(on: Stage) -> None:
    on.books.lie("cancel", "success_racing_cancel")
    handle = await on.start(SLOW, LONG)
    await on.soon_state("accepted")
    await on.cancel()
    await handle.result()


async def job_gone(on: Stage) -> None:
    on.books.lie("observe", "job_gone")
    handle = await on.start()
    await on.until_state("result_unavailable", step=0.5)
    await on.resolve("abandon")
    await handle.result()


async def timed_out_and_resumed(on: Stage) -> None:
    contract = variant("sim.reports.create", {"observe": {"poll": {"first": "10m", "cap": "20m"}}})
    handle = await on.start(contract, LONG)
    await on.until_state("result_timed_out", step=600)
    await on.resolve("resume")
    await on.soon_state("observing")
    on.books.jobs()[0].end("succeeded", on.books.provider.clock())
    await handle.result()


async def unconfirmed_cancellation(on: Stage) -> None:
    on.books.lie("cancel", "cancel_acknowledged_and_ignored")
    handle = await on.start(SLOW, LONG)
    await on.soon_state("accepted")
    await on.cancel()
    await on.until_state("cancellation_unconfirmed", step=60)
    await on.resolve("abandon")
    await handle.result()


async def invalid_result(on: Stage) -> None:
    on.books.lie("collect", "wrong_result_bytes", times=2)
    handle = await on.start()
    await on.until_state("result_validation_failed", step=0.5)
    await on.resolve("recollect")
    await handle.result()


async def refused_messages(on: Stage) -> None:
    handle = await on.start(SLOW, LONG)
    await on.soon_state("accepted")
    await on.client.get_workflow_handle("op-1").signal("cancel", b"\xff")
    await on.client.get_workflow_handle("op-1").signal("explode")
    await on.resolve("abandon")
    await on.answered("r-1")
    await on.wake()
    await on.soon(lambda one: one.standing.reads == 1)
    await on.cancel()
    await handle.result()


async def found_by_lookup(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting")
    on.books.lie("list", "list_lag", times=1)
    await (await on.start("sim.listed.create")).result()


async def absent_and_created_again(on: Stage) -> None:
    on.books.lie("create", "drop_before_accepting", times=1)
    await (await on.start("sim.listed.create")).result()


async def adopted_candidate(on: Stage) -> None:
    one_clock(on)
    on.books.lie("create", "drop_after_accepting")
    handle = await on.start("sim.searched.create")
    record = await on.until(lambda one: one.standing.attention)
    await on.resolve("adopt", arguments=record.standing.candidates[0])
    await handle.result()


async def looked_again(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting")
    on.books.lie("list", "list_lag")
    handle = await on.start(variant("sim.listed.create", {"deadlines": {"create": "1m"}}))
    await on.until(lambda one: one.standing.attention)
    on.books.script.clear()
    await on.resolve("look")
    await handle.result()


async def accepted_ledger(on: Stage) -> None:
    record = await on.open("sim.plain.create", {**PLAIN, "polls": 500})
    backup = copy_ledger(on)
    async with on.working():
        handle = await on.tell(record)
        await on.soon_state("observing")
    await put_back(on, backup)
    async with on.working():
        await ledger_is_missed(on)
        await on.resolve("accept_ledger")
        await on.soon_state("create_unknown")
        await on.resolve("abandon", request_id="r-2")
        await handle.result()


async def undecided_outcome(on: Stage) -> None:
    handle = await on.start(HALF_DONE)
    await on.until_state("outcome_undecided", step=0.5)
    await on.resolve("accept_failed")
    await handle.result()


async def taken_back(on: Stage) -> None:
    on.books.lie("create", "reject")
    on.books.lie("remove", "status_500", times=1)
    await (await on.start(PREPARED)).result()


BRINGS_ITS_WORKERS = {"accepted_ledger"}
"""Stories in which workers come and go."""
STORIES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    story.__name__: story
    for story in (
        success, judged_first, finished_at_once, rejection, denial, throttling, lost_answer, unknown_create, remote_failure, human_cancel,
        native_cancel, refused_cancel, late_success, job_gone, timed_out_and_resumed, unconfirmed_cancellation, invalid_result,
        refused_messages, found_by_lookup, absent_and_created_again, adopted_candidate, looked_again, accepted_ledger,
        undecided_outcome, taken_back,
    )
}  # fmt: skip


async def histories(on: Stage) -> list[WorkflowHistory]:
    """The histories of the runs of an operation, oldest first."""
    found: list[WorkflowHistory] = []
    run_id: str | None = str((await on.client.get_workflow_handle("op-1").describe()).run_id)
    while run_id:
        history = await on.client.get_workflow_handle("op-1", run_id=run_id).fetch_history()
        found.insert(0, history)
        run_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    return found


def kept(history: WorkflowHistory) -> str:
    """A history as it is kept: without what names the machine that it was made on."""
    return json.dumps(_scrubbed(json.loads(history.to_json())), separators=(",", ":")) + "\n"


def _scrubbed(value: Any) -> Any:
    match value:
        case dict():
            return {name: "worker" if name == "identity" else _scrubbed(one) for name, one in value.items() if name != "stackTrace"}
        case list():
            return [_scrubbed(one) for one in value]
        case _:
            return value


async def write(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            async with stage(Path(folder), work=name not in BRINGS_ITS_WORKERS) as on:
                await STORIES[name](on)
                for number, history in enumerate(await histories(on), 1):
                    (FOLDER / f"{name}.{number}.json").write_text(kept(history))
                    print(name, number, len(history.events))


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1:] or list(STORIES)))
