"""Operations that have lost their workflow, workflows that have lost their ledger: found, told, and taken up again."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from temporalio.client import Client

from adapters.client import Sakshi
from adapters.orphans import LEFT, Survey, survey
from adapters.settings import Settings
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.temporal import TemporalRuns
from domain.errors import Refused
from domain.opening import Asked
from tests.workflows.stage import PATIENCE, REPORT, Stage, development_server, stage, variant, workers
from tests.workflows.test_steps import plain, upload

# Workers are stopped here while they work: the SDK may then be told to cancel a local activity that has just ended.
pytestmark = pytest.mark.filterwarnings("ignore:Cannot find activity to cancel")
T = TypeVar("T")
QUICK = variant("sim.reports.create", {"observe": {"poll": {"first": "100ms", "floor": "100ms", "cap": "100ms"}}})


def connected(there: Stage, ledger: SqlLedger, client: Client) -> Sakshi:
    made = Sakshi(Settings(home=there.folder / "home", local_user="local"), ledger, LedgerBooks(ledger))
    made._client = client
    return made


async def eventually(look: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
    found = await look()
    for _ in range(PATIENCE):
        if wanted(found):
            return found
        await asyncio.sleep(0.05)
        found = await look()
    raise AssertionError(f"not seen: {found}")


async def surveyed(there: Stage, client: Client | None = None, ledger: SqlLedger | None = None) -> Survey:
    held = ledger or there.ledger
    return await survey(client or there.client, held, LedgerBooks(held))


def why(found: Survey) -> dict[str, str]:
    return {one.row.stream: one.why for one in found.orphans}


async def start_in_many_states(there: Stage) -> None:
    """One operation in each of several states, and one whose intent has no outcome and no workflow. No job ends before it is ended."""
    await there.intend_and_die(QUICK)
    await there.start(QUICK, REPORT | {"polls": 100_000}, stream="observing")
    await there.soon_state("observing", "observing")
    there.books.lie("create", "drop_after_accepting", times=1)
    await there.start("sim.plain.create", stream="unknown")
    await there.soon_state("create_unknown", "unknown")
    there.books.lie("cancel", "cancel_acknowledged_and_ignored", times=1)
    await there.start(QUICK, REPORT | {"polls": 100_000, "account": "a-2"}, stream="cancelling")
    await there.soon_state("observing", "cancelling")
    await there.cancel("cancelling")
    await there.soon_state("cancelling", "cancelling")
    await there.open(QUICK, REPORT | {"account": "a-3"}, stream="never")


MANY = {"op-1", "observing", "unknown", "cancelling", "never"}


async def all_end_with_one_job_each(there: Stage) -> None:
    for job in there.books.jobs():
        job.end("succeeded", there.books.provider.clock())
    for stream in MANY - {"unknown"}:
        await there.until(lambda record: record.standing.final, stream, step=0.05, tries=PATIENCE)
        await there.verified(stream)
    assert {stream: await there.state(stream) for stream in MANY} == {
        "op-1": "succeeded", "observing": "succeeded", "unknown": "create_unknown", "cancelling": "succeeded", "never": "succeeded",
    }  # fmt: skip
    assert len(there.books.jobs()) == len(MANY)


@asynccontextmanager
async def on_a_real_server(folder: Path) -> AsyncGenerator[Stage]:
    async with await development_server() as env, stage(folder, env=env, work=False, hold=5.0) as there:
        yield there


async def test_a_terminated_workflow_leaves_an_orphan_that_is_taken_up_in_whatever_state_it_was(tmp_path: Path):
    async with on_a_real_server(tmp_path) as there, there.working(hold=5.0):
        await start_in_many_states(there)
        sakshi = connected(there, there.ledger, there.client)
        with pytest.raises(Refused, match="goes on by itself"):
            await sakshi.continue_("observing")
        assert set(why(await surveyed(there))) == {"op-1", "never"}
        for stream in ("observing", "unknown", "cancelling"):
            await there.client.get_workflow_handle(stream).terminate(reason="the wrong button")
        told = why(await surveyed(there))
        assert set(told) == MANY
        assert told["never"] == "its workflow was never started"
        assert told["unknown"].startswith("its workflow was terminated by ")
        assert told["unknown"].endswith(": the wrong button")
        for stream in sorted(MANY):
            assert await sakshi.continue_(stream)
        assert await surveyed(there) == Survey((), (), ())
        await all_end_with_one_job_each(there)
        with pytest.raises(Refused, match="has ended: succeeded"):
            await sakshi.continue_("observing")


async def test_an_ended_operation_whose_workflow_died_over_its_undo_is_an_orphan_until_it_is_taken_back(tmp_path: Path):
    async with on_a_real_server(tmp_path) as there, there.working():
        there.books.lie("create", "reject")
        there.books.lie("remove", "status_500", nth=None)
        await there.start(plain(upload()))
        await there.until(lambda record: record.standing.final and record.standing.next_at is not None, step=0.05, tries=PATIENCE)
        assert await surveyed(there) == Survey((), (), ())
        await there.client.get_workflow_handle("op-1").terminate(reason="the wrong button")
        sakshi = connected(there, there.ledger, there.client)
        assert why(await surveyed(there)) == {"op-1": LEFT}
        there.books.script.clear()
        assert await sakshi.continue_("op-1")
        await there.until(lambda record: not record.standing.leftovers, step=0.05, tries=PATIENCE)
        assert [one.removed for one in there.books.uploads()] == [True]
        assert (await there.state(), (await there.standing()).flags) == ("failed", ())
        assert await surveyed(there) == Survey((), (), ())
        with pytest.raises(Refused, match="has ended: failed"):
            await sakshi.continue_("op-1")
        await there.verified()


async def test_a_lost_temporal_database_costs_nothing_that_the_ledger_holds(tmp_path: Path):
    async with on_a_real_server(tmp_path) as there:
        async with there.working(hold=5.0):
            await start_in_many_states(there)
        async with await development_server() as new:
            world = replace(there.world, runs=TemporalRuns(new.client))
            sakshi = connected(there, there.ledger, new.client)
            told = why(await surveyed(there, new.client))
            assert set(told) == MANY
            assert "database was lost" in told["observing"]
            async with workers(new.client, world, there.clocks, there.runner, hold=5.0):
                for stream in sorted(MANY):
                    assert await sakshi.continue_(stream)
                await all_end_with_one_job_each(there)


async def older_copy(there: Stage, name: str) -> Path:
    """The ledger as it is now, as a backup."""
    copy = there.folder / name
    source, target = sqlite3.connect(there.folder / "ledger.db"), sqlite3.connect(copy)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    return copy


async def test_a_ledger_older_than_a_terminated_workflow_is_noticed_before_anything_is_sent(tmp_path: Path):
    async with on_a_real_server(tmp_path) as there:
        await there.open(QUICK, REPORT | {"polls": 1000})
        backup = await older_copy(there, "backup.db")
        async with there.working(hold=5.0):
            await there.tell(await there.ledger.record("op-1"))
            await there.soon_state("observing")
            await there.soon(lambda record: record.standing.reads > 1)
        await there.client.get_workflow_handle("op-1").terminate(reason="restoring")
        older = await SqlLedger.connect(f"sqlite:///{backup}")
        sakshi = connected(there, older, there.client)
        try:
            assert set(why(await surveyed(there, ledger=older))) == {"op-1"}
            assert not await sakshi.continue_("op-1")
            requests = len(there.books.requests())
            world = replace(there.world, ledger=older)
            async with workers(there.client, world, there.clocks, there.runner, hold=5.0):
                found = await eventually(lambda: surveyed(there, ledger=older), lambda seen: bool(seen.behind))
                assert [one.id for one in found.behind] == ["op-1"]
                assert "which the ledger does not hold" in found.behind[0].why
                assert found.orphans == ()
                assert len(await older.entries("op-1")) == 1
                assert len(there.books.requests()) == requests
                await there.resolve("accept_ledger")
                await eventually(lambda: older.record("op-1"), lambda record: record.standing.state == "create_unknown")
                assert len(there.books.jobs()) == 1
                assert (await surveyed(there, ledger=older)).behind == ()
        finally:
            await older.aclose()


async def test_a_lost_ledger_is_told_and_never_papered_over(tmp_path: Path):
    async with on_a_real_server(tmp_path) as there, there.working(hold=5.0):
        await there.start(QUICK, REPORT | {"polls": 1}, stream="ended")
        await there.soon_state("succeeded", "ended")
        await there.start(QUICK, REPORT | {"polls": 1000}, stream="running")
        await there.soon_state("observing", "running")
        empty = await SqlLedger.connect(f"sqlite:///{tmp_path / 'empty.db'}")
        sakshi = connected(there, empty, there.client)
        try:
            found = await eventually(lambda: surveyed(there, ledger=empty), lambda seen: len(seen.strangers) == 2)
            assert {one.id: one.why for one in found.strangers} == {
                "ended": "Temporal has a workflow of it (completed) and the ledger has no such operation",
                "running": "Temporal has a workflow of it (runs) and the ledger has no such operation",
            }
            jobs = len(there.books.jobs())
            asked = Asked(QUICK, REPORT, {"server": there.provider.url}, "t1", "local")
            for _ in range(2):
                with pytest.raises(Refused, match="more of ended than this ledger holds"):
                    await sakshi.open_and_start(asked, id="ended")
            assert len(there.books.jobs()) == jobs
        finally:
            await empty.aclose()
