"""`make chaos`. CHAOS_SECONDS (600) and CHAOS_SEED (drawn, and printed) change it; the same seed draws the same plan."""

import asyncio
import faulthandler
import os
import secrets
from pathlib import Path

import pytest

from tests.chaos.plan import plan
from tests.chaos.reckoning import table
from tests.chaos.storm import Outcome, crash_postgres, storm
from tests.conftest import Postgres

pytestmark = pytest.mark.chaos


def test_after_a_storm_every_book_agrees_and_only_the_naive_client_made_duplicates(
    postgres: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    faulthandler.cancel_dump_traceback_later()  # it is meant to run long
    seconds = float(os.environ.get("CHAOS_SECONDS") or 600)
    seed = int(os.environ.get("CHAOS_SEED") or secrets.randbelow(2**31))
    drawn = plan(seed, seconds)
    with capsys.disabled():
        print(f"\nCHAOS_SEED={seed} CHAOS_SECONDS={seconds:g}: {len(drawn.operations)} operations, {len(drawn.faults)} faults", flush=True)
    data = Path(postgres.server.socket)
    url = asyncio.run(_database(postgres))
    outcome = asyncio.run(storm(drawn, tmp_path, ledger_url=url, restart_ledger=lambda: crash_postgres(data)))
    with capsys.disabled():
        print(table(outcome.reckoned, title=_title(outcome), naive=outcome.naive), flush=True)
    assert outcome.reckoned.clean, outcome.reckoned.faults
    assert outcome.naive[1] > 0, "the control made no duplicates: the ring would not have seen ours"


async def _database(postgres: Postgres) -> str:
    """A database of its own; it goes with its server."""
    name = f"chaos{secrets.token_hex(4)}"
    admin = await postgres.connect()
    try:
        await admin.execute(f"CREATE DATABASE {name}")
    finally:
        await admin.close()
    return postgres.url(name)


def _title(outcome: Outcome) -> list[str]:
    return [
        f"started {outcome.started} operations; ran {outcome.ran:.0f} s, settled in {outcome.settled_in:.0f} s more",
        f"injected: {dict(outcome.injected)}",
        f"lies told: {outcome.lies.total()} of {len(outcome.lies)} kinds",
    ]
