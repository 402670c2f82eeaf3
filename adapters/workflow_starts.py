"""Starting the workflow of a stream: for a new operation, and for one that has lost its workflow.

* A stream has one workflow at a time. One that runs is left alone.
* A workflow that closed before may remember more than the ledger holds: the ledger was restored from an older copy, or is another
  one. Then what it remembers is what the new workflow is started with, and that one sends nothing until a human has acted.
* A stream that no workflow has ever had, under an id for which Temporal remembers a story, is not started: the ledger of that story
  was lost, and starting would do its work a second time.
"""

from collections.abc import Iterable, Sequence

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from activities.ports import Ledger, Record
from adapters.temporal import RPC_TIMEOUT, run_of
from adapters.witnesses import Witness, missing, witnesses
from domain.chain import Entry
from domain.errors import Refused, Unreachable
from domain.evidence import bounded
from domain.messages import OPERATION_WORKFLOW, QUEUE_LEDGER, Known, OperationInput


async def start(client: Client, ledger: Ledger, record: Record) -> None:
    """Start the workflow of a stream unless it runs. Raises Unreachable; Refused if the ledger of this id was lost."""
    try:
        await _start(client, record, head_of(record), WorkflowIDConflictPolicy.USE_EXISTING, WorkflowIDReusePolicy.REJECT_DUPLICATE)
    except WorkflowAlreadyStartedError:
        known = await newest_known(client, ledger, record)
        if known != head_of(record) and not record.standing.owners:
            raise Refused(
                f"Temporal remembers more of {record.stream} than this ledger holds: nothing is started",
                hint="was the ledger lost, exchanged or restored? python starter.py list --orphans, and docs/operating.md",
            ) from None
        await _start(client, record, known, WorkflowIDConflictPolicy.USE_EXISTING, WorkflowIDReusePolicy.ALLOW_DUPLICATE)


async def start_again(client: Client, ledger: Ledger, record: Record) -> bool:
    """Start a new workflow for a stream that has none. False if the ledger lacks what an earlier workflow remembers.

    Raises Refused if one runs, Unreachable.
    """
    running = await run_of(client, record.stream)
    known = await newest_known(client, ledger, record)
    try:
        if running is None:
            await _start(client, record, known, WorkflowIDConflictPolicy.FAIL, WorkflowIDReusePolicy.ALLOW_DUPLICATE)
    except WorkflowAlreadyStartedError as error:
        running = error.run_id or "one"
    if running is not None:
        raise Refused(
            f"{record.stream} has a workflow that runs ({running}), and it goes on by itself",
            hint=f"python starter.py status {record.stream}",
        )
    return known == head_of(record)


def head_of(record: Record) -> Known:
    """The ledger's own head as a witness."""
    return Known(seq=record.seq, hash=record.hash)


async def newest_known(client: Client, ledger: Ledger, record: Record) -> Known:
    """The newest entry that Temporal remembers and the ledger lacks; the ledger's head if it lacks nothing."""
    lost = lost_entries(await witnesses(client, record.stream), await ledger.entries(record.stream))
    return Known(seq=lost[-1].seq, hash=lost[-1].hash) if lost else head_of(record)


def lost_entries(known: Iterable[Witness], entries: Sequence[Entry]) -> list[Witness]:
    """What Temporal remembers and the ledger lacks, without the loss that a human has accepted on the record."""
    accepted = [entry.body["known_seq"] for entry in entries if entry.kind == "regressed"]
    return [one for one in missing(known, entries) if not any(isinstance(seq, int) and one.seq <= seq for seq in accepted)]


def _summary(record: Record) -> str:
    """What is asked, as a code span: the Temporal UI reads a summary as Markdown, and values of a caller are in it."""
    effect = record.standing.opened.effect.get("summary")
    text = bounded(str(effect or record.standing.opened.contract), 190).replace("`", "'")
    return f"`{text}`"


async def _start(client: Client, record: Record, known: Known, conflict: WorkflowIDConflictPolicy, reuse: WorkflowIDReusePolicy) -> None:
    try:
        await client.start_workflow(
            OPERATION_WORKFLOW,
            OperationInput(id=record.stream, known=known, fresh=record.seq == 0 and known.seq == 0),
            id=record.stream,
            task_queue=QUEUE_LEDGER,
            id_conflict_policy=conflict,
            id_reuse_policy=reuse,
            static_summary=_summary(record),
            rpc_timeout=RPC_TIMEOUT,
        )
    except RPCError as error:
        raise Unreachable(
            f"{record.stream} is recorded and not started: Temporal did not take it ({error.status.name.lower()})",
            hint="the same command starts it, with the same --id or --key if it is `run`; nothing was sent",
        ) from None
