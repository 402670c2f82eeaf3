"""What people send: every message is recorded, accepted or refused with a reason, and never twice."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from activities.authority import MAX_REFUSALS
from domain.messages import Head
from tests.workflows.stage import REPORT, Stage, stage, variant

SLOW = variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "1m"}}})
LONG = {**REPORT, "polls": 500}


async def watching(on: Stage) -> WorkflowHandle[Any, Head]:
    handle = await on.start(SLOW, LONG)
    await on.soon_state("accepted")
    return handle


UNDECODABLE: dict[str, tuple[str, list[Any], str]] = {
    "bytes": ("cancel", [b"\xff\xfe"], "not JSON"),
    "a list": ("cancel", [["c-1"]], "message:"),
    "a number": ("resolve", [7], "message:"),
    "wrong types": ("cancel", [{"request_id": "c-9", "by": 5}], "by:"),
    "a missing field": ("resolve", [{"request_id": "r-9", "by": "local"}], "choice:"),
    "no argument": ("cancel", [], "not JSON"),
    "twenty KiB": ("cancel", [{"request_id": "c-9", "by": "local", "reason": "x" * 20 * 1024}], "at most 16384 are taken"),
    "an unknown message": ("explode", [{}], "no such message: explode"),
    "an approval": ("decide", [{"request_id": "d-1", "by": "local", "decision": "approve", "action_hash": "0" * 64}], "approv"),
}


@pytest.mark.parametrize("case", list(UNDECODABLE))
async def test_what_cannot_be_taken_is_recorded_as_refused_and_the_operation_goes_on(tmp_path: Path, case: str) -> None:
    name, args, why = UNDECODABLE[case]
    async with stage(tmp_path) as on:
        handle = await watching(on)
        await on.signal(name, *args)
        record = await on.soon(lambda one: bool(one.standing.answered))
        [(request_id, answer)] = record.standing.answered.items()
        assert not answer.accepted
        assert why in str(answer.why)
        assert record.standing.state == "accepted"
        assert request_id in {"c-9", "r-9", "d-1"} or request_id.startswith("undecoded/")
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        await on.verified()


async def test_a_request_id_is_recorded_once_and_keeps_its_verdict(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await watching(on)
        for _ in range(3):
            await on.resolve("abandon", request_id="r-1")
        await on.resolve("abandon", request_id="r-2")
        verdict = await on.answered("r-2")
        assert (verdict.accepted, verdict.why) == (False, "the operation is accepted and waits for no human")
        assert [entry.body["request_id"] for entry in await on.entries("decision")] == ["r-1", "r-2"]
        await on.cancel(request_id="r-1")
        await on.cancel(request_id="c-1")
        assert (await handle.result()).state == "cancelled"
        await on.verified()


async def test_after_twenty_refusals_further_ones_are_counted_and_a_cancel_is_still_heard(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await watching(on)
        for number in range(MAX_REFUSALS + 5):
            await on.resolve("abandon", request_id=f"r-{number}")
        await on.soon(lambda one: one.standing.refusals == MAX_REFUSALS)
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        refused = [entry for entry in await on.entries("decision") if entry.body["meaning"] == "refused"]
        assert len(refused) == MAX_REFUSALS
        assert [entry.body["count"] for entry in await on.entries("refusals")] == [1, 2, 4]
        await on.verified()


async def test_a_person_whom_policy_does_not_let_cancel_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await watching(on)
        await on.cancel(by="a-stranger")
        verdict = await on.answered("c-1")
        assert not verdict.accepted
        await on.cancel(request_id="c-2")
        assert (await handle.result()).state == "cancelled"
        await on.verified()


async def test_temporals_own_cancel_is_a_decision_that_is_judged_and_recorded(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        handle = await watching(on)
        await on.resting()
        await handle.cancel()
        await on.soon(lambda one: bool(one.standing.answered))
        await on.resting()
        await handle.cancel()
        assert (await handle.result()).state == "cancelled"
        [decision] = await on.entries("decision")
        run_id = (await handle.describe()).run_id
        assert (decision.body["request_id"], decision.body["by"], decision.body["source"]) == (f"native/{run_id}", "temporal-ui", "native")
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_temporals_own_cancel_before_anything_was_sent_ends_the_operation_on_the_record(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        handle = await on.start()
        await handle.cancel()
        async with on.working():
            assert (await handle.result()).state == "cancelled"
        assert on.books.seen == []
        await on.verified()


async def test_a_message_that_arrives_with_the_end_is_recorded_as_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "hold")
        handle = await on.start()
        await on.until(lambda one: one.standing.staging is not None, step=0.5)
        await on.held()
        on.release()
        await on.soon_state("succeeded")
        with suppress(RPCError):  # the workflow may have been faster than the message
            await on.cancel()
        assert (await handle.result()).state == "succeeded"
        assert all(not answer.accepted for answer in (await on.standing()).answered.values())
        await on.verified()
