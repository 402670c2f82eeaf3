"""What stories about lost answers share: other people's jobs, what was really sent, and a ledger that is put back."""

import asyncio
import json
import shutil
import sqlite3
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from temporalio.common import SearchAttributeKey

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.evidence import Intent, Json, Lookup
from simulator.answer import Call
from simulator.jobs import Job
from tests.workflows.stage import PATIENCE, PLAIN, Stage

CACHED = 8
"""For a cancel that meets a lookup which waits for its next look: without a cache the SDK then keeps a workflow task alive, and time
does not pass while one is."""


def made_by_others(on: Stage, count: int, *, account: str = "somebody-else", name: str = "") -> list[Job]:
    """Jobs that are at the provider already; under a name, if one is given."""
    endpoint = "named" if name else "plain"
    for _ in range(count):
        body = json.dumps({**PLAIN, "account": account, "format": "jsonl"}).encode()
        on.books.provider.answer(Call("create", "POST", "/v1/reports", endpoint=endpoint, name=name, body=body))
    return on.books.jobs(account)


def one_clock(on: Stage) -> None:
    """The provider's clock goes with the stage's: times that it shows can be compared with ours."""
    on.books.provider.clock = lambda: on.clocks.now().timestamp()


async def ends_with_one_job(on: Stage, stream: str = "op-1") -> Job:
    """The operation succeeded, and the provider has made one job, which is the operation's."""
    record = await on.until_state("succeeded", stream)
    [job] = on.books.jobs("a-1")
    assert record.standing.job is not None
    assert record.standing.job["id"] == job.id
    await on.verified(stream)
    return job


async def lookups(on: Stage, stream: str = "op-1") -> list[Lookup]:
    """What was looked up, in order."""
    return [entry.evidence for entry in await on.entries("lookup", stream) if isinstance(entry.evidence, Lookup)]


async def create_intents(on: Stage, stream: str = "op-1") -> list[Intent]:
    """The intents to create, in order."""
    intents = [entry.evidence for entry in await on.entries("intent", stream) if isinstance(entry.evidence, Intent)]
    return [intent for intent in intents if intent.meaning == "create"]


async def proof_is_due(on: Stage, *, visible_s: float) -> datetime:
    """From when nothing found is proof: the newest sending, the whole HTTP timeout, visibility, and a minute."""
    until = [intent.send_until for intent in await create_intents(on) if intent.generation == 1]
    newest = max(moment for moment in until if moment is not None)
    total = timedelta(milliseconds=(await on.standing()).facts.http_total_ms)
    return newest + timedelta(seconds=visible_s) + total + timedelta(minutes=1)


def began(lookup: Lookup) -> datetime:
    """When the lookup began."""
    assert lookup.began is not None
    return lookup.began


async def interrupted(on: Stage, stream: str = "op-1") -> None:
    """Wait until the activity in flight has been told to end: a heartbeat came after the workflow asked for it."""
    handle, asked = on.client.get_workflow_handle(stream), None
    for _ in range(PATIENCE):
        pending = (await handle.describe()).raw_description.pending_activities
        beat = pending[0].last_heartbeat_time.ToNanoseconds() if pending else 0
        if asked is None:
            history = await handle.fetch_history()
            if any(event.HasField("activity_task_cancel_requested_event_attributes") for event in history.events):
                asked = beat
        elif beat > asked:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the workflow did not interrupt its activity")


async def ledger_is_missed(on: Stage, stream: str = "op-1") -> None:
    """Wait until the workflow has seen that the ledger is not what it was."""
    attention = SearchAttributeKey.for_bool("SakshiAttention")
    for _ in range(400):
        if (await on.client.get_workflow_handle(stream).describe()).typed_search_attributes.get(attention):
            return
        await on.env.sleep(2)
    raise AssertionError("nobody noticed")


def copy_ledger(on: Stage) -> Path:
    """A backup of the ledger as it is now."""
    kept = on.folder / "backup.db"
    with sqlite3.connect(on.folder / "ledger.db") as now, sqlite3.connect(kept) as copy:
        now.backup(copy)
    now.close()
    copy.close()
    return kept


async def put_back(on: Stage, backup: Path | None) -> None:
    """The ledger is replaced by a backup, or by a new and empty one. Nothing may be at work."""
    await on.ledger.aclose()
    for old in on.folder.glob("ledger.db*"):
        old.unlink()
    if backup is not None:
        shutil.copyfile(backup, on.folder / "ledger.db")
    on.ledger = await SqlLedger.connect(f"sqlite:///{on.folder / 'ledger.db'}")
    on.world = replace(on.world, ledger=on.ledger)
    on.ledger_books = LedgerBooks(on.ledger)


def sent(on: Stage) -> list[tuple[str | None, str | None, str, str]]:
    """Every create that the provider was sent: token, mark, address and body."""
    return [(one.token, one.reference, one.path, one.body_digest) for one in on.books.requests("create")]


def candidates_of(standing_candidates: tuple[dict[str, Json], ...]) -> set[str]:
    """The ids of jobs that a human is shown."""
    return {str(job["id"]) for job in standing_candidates}
