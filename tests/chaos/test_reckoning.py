"""The plan comes from its seed, and the reckoning finds what is planted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.chain import Entry
from simulator.jobs import Job
from simulator.rows import Report
from tests.chaos.plan import LIES, SHIPPED, plan
from tests.chaos.reckoning import Injected, Seen, reckon, table

REPORT = Report("plain-1", datetime(2026, 1, 1).date(), datetime(2026, 1, 31).date(), "jsonl", 5)  # noqa: DTZ001 - days
JOB = Job("job_1", "plain", REPORT, "0" * 64, 0.0, 1, 0.0).to_json() | {"state": "succeeded"}
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
GOOD = Seen(
    "plain-1", "sim.plain.create", state="succeeded", final=True, jobs=[JOB], result=b"".join(REPORT.pieces()), workflow="completed"
)


def entry(seq: int, cause: str, at: datetime) -> Entry:
    return Entry(seq, "", "", b"", at.isoformat(), "worker:17@here", cause.partition(".")[0], "stay", 1, 1, None, None, cause, {})


UNKNOWN = Seen(
    "plain-1",
    "sim.plain.create",
    state="create_unknown",
    attention=True,
    workflow="running",
    entries=[entry(1, "intent.create", AT), entry(2, "exchange.ambiguous", AT + timedelta(seconds=12))],
)


def faults(one: Seen, *injected: Injected) -> set[str]:
    return {name for name, lines in reckon([one], injected).faults.items() if lines}


def test_the_same_seed_gives_the_same_plan_and_another_seed_another():
    assert plan(7, 600) == plan(7, 600)
    assert plan(7, 600).faults != plan(8, 600).faults
    assert [rule["seed"] for rule in plan(7, 600).rules] != [rule["seed"] for rule in plan(8, 600).rules]


def test_a_full_plan_has_what_is_asked_of_it():
    full = plan(7, 600)
    assert len(full.operations) >= 500
    assert {one.contract for one in full.operations} == set(SHIPPED)
    assert {fault.word for fault in full.faults} == {"kill", "freeze", "ledger", "temporal"}
    assert len({one.dies_at for one in full.operations if one.dies_at}) == 10
    assert len(full.rules) == len(LIES)


def test_what_is_right_is_not_complained_about():
    assert faults(GOOD) == set()


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (replace(GOOD, jobs=[JOB, JOB]), "duplicate"),
        (replace(GOOD, result=None), "lost"),
        (replace(GOOD, result=b"something else"), "lost"),
        (replace(GOOD, state="failed"), "lost"),
        (replace(GOOD, state="cancelled"), "lost"),
        (replace(GOOD, broken="chain: forked at 3"), "broken"),
        (replace(GOOD, workflow="running"), "unaccounted"),
        (replace(GOOD, state="observing", final=False), "unaccounted"),
        (Seen("plain-1", "sim.plain.create"), "unaccounted"),
        (UNKNOWN, "unexplained"),
    ],
    ids=[
        "two jobs", "no result", "other bytes", "failed though it succeeded", "cancelled though it succeeded", "broken chain",
        "workflow goes on", "not settled", "not in the ledger", "unknown without a cause",
    ],
)  # fmt: skip
def test_what_is_planted_is_found(planted: Seen, found: str):
    assert found in faults(planted)


@pytest.mark.parametrize(
    "injected",
    [
        Injected(AT, "kill", ":17@"),
        Injected(AT - timedelta(seconds=4), "freeze", ":17@", seconds=6),
        Injected(AT + timedelta(seconds=3), "ledger"),
    ],
)
def test_an_unknown_create_is_explained_by_what_met_its_attempt(injected: Injected):
    assert faults(UNKNOWN, injected) == set()


def test_an_unknown_create_is_not_explained_by_what_met_another():
    assert faults(UNKNOWN, Injected(AT, "kill", ":18@")) == {"unexplained"}
    assert faults(UNKNOWN, Injected(AT + timedelta(minutes=1), "kill", ":17@")) == {"unexplained"}


def test_an_unknown_create_is_explained_by_the_lie_that_met_its_request():
    lied = replace(UNKNOWN, creates=[{"status": 0, "lies": ["drop_after_accepting"]}])
    assert faults(lied) == set()


def test_the_table_says_what_was_found():
    text = table(reckon([GOOD, replace(GOOD, jobs=[JOB, JOB])], []), title=["a run"], naive=(10, 4))
    assert "duplicate: 1" in text
    assert "naive client" in text
