"""Where ledger and Temporal do not know the same operations, and what to do about each.

* *Orphan*: not ended, and no workflow runs: never started, terminated, or Temporal lost its database. Nothing is lost and nothing
  goes on, until `run --continue` starts another workflow. So is one that has ended and whose steps left something that nobody takes back.
* *Behind*: a workflow remembers entries that the ledger lacks: the ledger was restored from an older copy, or cut. It sends nothing.
* *Stranger*: Temporal has a workflow and the ledger has no such stream: the ledger was lost, or is another one.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowHistoryEventFilterType
from temporalio.service import RPCError, RPCStatusCode

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.sql_projection import StreamRow
from adapters.temporal import RPC_TIMEOUT, described
from adapters.witnesses import witnesses
from adapters.workflow_starts import lost_entries
from domain.errors import Unreachable
from domain.evidence import bounded, instant_text
from domain.lifecycle import next_step
from domain.messages import OPERATION_WORKFLOW

AT_ONCE = 16
CLOSED_LOOKED_AT = 1000
"""How many of the newest closed workflows are compared with the ledger; of those that run, all are."""

LEFT = "the operation has ended, and what its steps left at the provider is still to be taken back"
_OURS = f"WorkflowType = '{OPERATION_WORKFLOW}'"


@dataclass(frozen=True, slots=True)
class Orphan:
    """A stream for which something is still to be done, and that has no workflow."""

    row: StreamRow
    since: str
    why: str


@dataclass(frozen=True, slots=True)
class Apart:
    """A workflow that knows more than the ledger: all of the operation (a stranger), or its newest entries (behind)."""

    id: str
    workflow: str
    since: str
    why: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found."""

    orphans: tuple[Orphan, ...]
    strangers: tuple[Apart, ...]
    behind: tuple[Apart, ...]


async def survey(client: Client, ledger: SqlLedger, books: LedgerBooks, *, tenant: str | None = None) -> Survey:
    """Compare what the ledger and Temporal know. Raises Unreachable."""
    try:
        orphans = [one async for one in _orphans(client, books, tenant)]
        strangers = [one async for one in _strangers(client, books)]
        behind = [one async for one in _behind(client, ledger, books)]
    except RPCError as error:
        raise Unreachable(f"Temporal can't be asked for its workflows ({error.status.name.lower()})") from None
    return Survey(tuple(orphans), tuple(strangers), tuple(behind))


async def _orphans(client: Client, books: LedgerBooks, tenant: str | None) -> AsyncIterator[Orphan]:
    after: str | None = None
    while True:
        rows, after = await books.list(undone=True, tenant=tenant, limit=200, after=after)
        for some in _pieces(rows):
            for found in await asyncio.gather(*(_orphan(client, row) for row in some)):
                if found is not None:
                    yield found
        if after is None:
            return


async def _orphan(client: Client, row: StreamRow) -> Orphan | None:
    """Asked of the workflow itself: the index of workflows lags behind."""
    if next_step(row.standing).name == "done":
        return None
    found = await described(client, row.stream)
    if found is None:
        return Orphan(row, row.updated_at, _unknown_to_temporal(row))
    if found.status is WorkflowExecutionStatus.RUNNING:
        return None
    since = instant_text(found.close_time) if found.close_time else row.updated_at
    return Orphan(row, since, LEFT if row.standing.final else await _ended(client, found))


def _unknown_to_temporal(row: StreamRow) -> str:
    if not row.standing.owners:
        return "its workflow was never started"
    return "Temporal knows no workflow of it: its database was lost or replaced, or its retention is over"


async def _ended(client: Client, workflow: WorkflowExecutionDescription) -> str:
    status = _how(workflow.status)
    if workflow.status is not WorkflowExecutionStatus.TERMINATED:
        return f"its workflow {status} before the operation had ended"
    handle = client.get_workflow_handle(workflow.id, run_id=workflow.run_id)
    last = WorkflowHistoryEventFilterType.CLOSE_EVENT
    async for event in handle.fetch_history_events(event_filter_type=last, rpc_timeout=RPC_TIMEOUT):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
            said = event.workflow_execution_terminated_event_attributes
            by = f" by {bounded(said.identity, 200)}" if said.identity else ""
            why = f": {bounded(said.reason, 500)}" if said.reason else ""
            return f"its workflow was terminated{by}{why}"
    return "its workflow was terminated"


def _how(status: WorkflowExecutionStatus | None) -> str:
    return "closed" if status is None else status.name.lower().replace("_", " ")


async def _strangers(client: Client, books: LedgerBooks) -> AsyncIterator[Apart]:
    seen: dict[str, Apart] = {}
    async for one in client.list_workflows(f"{_OURS} AND ExecutionStatus = 'Running'", rpc_timeout=RPC_TIMEOUT):
        seen[one.id] = _stranger(one.id, one.run_id, one.start_time, "runs")
    closed = client.list_workflows(f"{_OURS} AND ExecutionStatus != 'Running'", limit=CLOSED_LOOKED_AT, rpc_timeout=RPC_TIMEOUT)
    async for one in closed:
        seen.setdefault(one.id, _stranger(one.id, one.run_id, one.start_time, _how(one.status)))
    held = await books.held(seen)
    for id in sorted(seen.keys() - held):
        yield seen[id]


def _stranger(id: str, run: str, since: datetime, status: str) -> Apart:
    return Apart(id, run, instant_text(since), f"Temporal has a workflow of it ({status}) and the ledger has no such operation")


async def _behind(client: Client, ledger: SqlLedger, books: LedgerBooks) -> AsyncIterator[Apart]:
    """A workflow that met such a ledger asks for attention; whether that is why, its history shows."""
    asking = f"{_OURS} AND ExecutionStatus = 'Running' AND SakshiAttention = true"
    try:
        found = {one.id: one async for one in client.list_workflows(asking, rpc_timeout=RPC_TIMEOUT)}
    except RPCError as error:
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        return  # a new server that no worker has met: it lacks the search attribute, and so has no workflow of ours
    for id in sorted(await books.held(found)):
        lost = lost_entries(await witnesses(client, id), await ledger.entries(id))
        if lost:
            why = f"its workflow remembers entry {lost[-1].seq} ({lost[-1].hash[:12]}), which the ledger does not hold"
            yield Apart(id, found[id].run_id, instant_text(found[id].start_time), why)


def _pieces(rows: Sequence[StreamRow]) -> list[list[StreamRow]]:
    left = iter(rows)
    return [piece for _ in range(0, len(rows), AT_ONCE) if (piece := list(islice(left, AT_ONCE)))]
