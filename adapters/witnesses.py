"""What Temporal remembers of a stream: every (seq, hash) that a workflow's history and pending activities hold.

A chain shows by itself that nothing inside it was changed. That its tail was cut, only a later witness shows: heads stand in
workflow inputs, activity arguments and results, heartbeats and not-yet failures, which whoever cut the ledger can't reach. What
anyone may send (a signal) and what a provider said (the answer in a heartbeat) is no witness.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.temporal import RPC_TIMEOUT
from domain.chain import Entry
from domain.errors import Unreachable

MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Witness:
    """One entry that Temporal knows of."""

    seq: int
    hash: str


async def witnesses(client: Client, stream: str) -> set[Witness]:
    """All that every run of an operation's workflow remembers. Raises Unreachable."""
    found: set[Witness] = set()
    try:
        async for execution in client.list_workflows(f"WorkflowId = '{escaped(stream)}'", rpc_timeout=RPC_TIMEOUT):
            handle = client.get_workflow_handle(stream, run_id=execution.run_id)
            async for event in handle.fetch_history_events(rpc_timeout=RPC_TIMEOUT):
                found |= set(remembered(event))
            described = await handle.describe(rpc_timeout=RPC_TIMEOUT)
            for pending in described.raw_description.pending_activities:
                found |= set(remembered(pending))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return found
        raise Unreachable(f"Temporal can't show what it remembers ({error.status.name.lower()})") from None
    return found


def escaped(text: str) -> str:
    """A text inside the quotes of a visibility query."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def remembered(message: Message) -> Iterator[Witness]:
    """Every head in the payloads of a message of Temporal's, however deep they lie."""
    if isinstance(message, Payload):
        yield from _in_payload(message.data)
        return
    if isinstance(message, HistoryEvent) and message.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        return
    for _, value in message.ListFields():
        for part in _messages(value):
            yield from remembered(part)


def _messages(value: object) -> Iterator[Message]:
    if isinstance(value, Message):
        yield value
    elif hasattr(value, "values"):  # a map of messages, or of scalars
        for part in cast("dict[object, object]", value).values():
            yield from _messages(part)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for part in cast("Iterable[object]", value):
            yield from _messages(part)


def _in_payload(data: bytes) -> Iterator[Witness]:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return
    pending: list[tuple[object, int]] = [(value, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            continue
        if isinstance(node, dict):
            fields = cast("dict[str, object]", node)
            seq, digest = fields.get("seq"), fields.get("hash")
            if isinstance(seq, int) and isinstance(digest, str) and len(digest) == 64:
                yield Witness(seq, digest)
            pending.extend((part, depth + 1) for name, part in fields.items() if name != "answer")
        elif isinstance(node, list):
            pending.extend((part, depth + 1) for part in cast("list[object]", node))


def missing(known: Iterable[Witness], entries: Iterable[Entry]) -> list[Witness]:
    """The witnesses that the ledger does not hold, in order."""
    held = {(entry.seq, entry.hash) for entry in entries}
    return sorted((one for one in known if (one.seq, one.hash) not in held), key=lambda one: one.seq)
