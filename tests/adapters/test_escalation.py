"""What an escalation tells, for each state that waits for a human: made by real operations against the lying simulator."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.escalation import Escalated, dossier_of, escalate
from adapters.verifying import verified
from domain.errors import BadInput
from domain.evidence import Json
from tests.workflows.stage import REPORT, SECRET, Stage, stage, variant

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
KEEP: dict[str, Json] = {"record": {"bodies": "keep"}}
EVERY_MINUTE: dict[str, Json] = {"observe": {"poll": {"first": "1m", "cap": "10m"}}}


async def create_unknown(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting")
    await on.start(variant("sim.plain.create", KEEP))
    await on.until_state("create_unknown")


async def contract_violation(on: Stage) -> None:
    on.books.lie("observe", "terminal_then_running", times=9)
    on.books.lie("collect", "result_expired")
    await on.start(variant("sim.reports.create", KEEP | {"observe": {"same": {"body.job_id": "another"}}}))
    await on.until_state("contract_violation")


async def result_timed_out(on: Stage) -> None:
    await on.start(variant("sim.reports.create", KEEP | EVERY_MINUTE), {**REPORT, "polls": 100_000})
    await on.until_state("result_timed_out", step=300.0)


async def cancellation_unconfirmed(on: Stage) -> None:
    on.books.lie("cancel", "cancel_acknowledged_and_ignored")
    await on.start(variant("sim.reports.create", KEEP | EVERY_MINUTE), {**REPORT, "polls": 100_000})
    await on.until_state("observing")
    await on.cancel()
    await on.until_state("cancellation_unconfirmed", step=30.0)


async def result_unavailable(on: Stage) -> None:
    on.books.lie("collect", "result_expired")
    await on.start(variant("sim.reports.create", KEEP))
    await on.until_state("result_unavailable")


async def job_gone(on: Stage) -> None:
    on.books.lie("observe", "job_gone", nth=3)
    await on.start(variant("sim.reports.create", KEEP), {**REPORT, "polls": 9})
    await on.until_state("result_unavailable")


async def result_validation_failed(on: Stage) -> None:
    on.books.lie("collect", "wrong_result_bytes", times=2)
    await on.start(variant("sim.reports.create", KEEP))
    await on.until_state("result_validation_failed")


async def outcome_undecided(on: Stage) -> None:
    states: list[Json] = [{"when": {"body.state": "succeeded"}, "is": "partial"}, {"when": {"body.state": ["queued", "running"]}, "is": "running"}]
    changes: dict[str, Json] = {"observe": {"states": states}, "collect": {"partial": "attention"}}
    await on.start(variant("sim.reports.create", KEEP | changes))
    await on.until_state("outcome_undecided")


CASES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    one.__name__: one
    for one in (
        create_unknown, contract_violation, result_timed_out, cancellation_unconfirmed, result_unavailable, job_gone,
        result_validation_failed, outcome_undecided,
    )
}  # fmt: skip


async def escalated(on: Stage, folder: Path, **more: Any) -> Escalated:
    return await escalate(await dossier_of(on.ledger, on.ledger_books, "op-1", AT), on.results, folder, **more)


@pytest.mark.parametrize("case", CASES)
async def test_try(tmp_path: Path, case: str) -> None:
    async with stage(tmp_path) as on:
        await CASES[case](on)
        out = Path("/tmp/n2-out") / case
        print(await escalated(on, out, force=True))
