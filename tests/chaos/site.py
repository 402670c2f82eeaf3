"""One installation: a namespace of Temporal, a ledger, a result folder, credentials and policies; and its workers.

* Nothing of it is embedded: each site names its ledger and its server, so that several stand beside each other.
* What is asked of a site is asked as any client would; what came of it is read from the ledger, the results and Temporal.
"""

import asyncio
import json
import os
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from activities.ports import Opening, Record
from adapters.result_store import ObstoreResults
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.temporal import DATA_CONVERTER, register_search_attributes
from adapters.witnesses import missing, witnesses
from domain.chain import Entry
from domain.contract import Contract
from domain.errors import NotFound
from domain.evidence import Json
from domain.fingerprint import SALT_BYTES
from domain.messages import OPERATION_WORKFLOW, QUEUE_LEDGER, Known, OperationInput
from domain.opening import Asked, Drawn, opening
from domain.standing import Standing
from tests.chaos.processes import ROOT, Child, worker
from tests.workflows.stage import variant

OPERATOR = "operator"
_OPERATOR_DECIDES = """
@id("operator-decides")
permit (principal == User::"operator", action in [Action::"cancel", Action::"resolve", Action::"view"], resource);
"""
SHORT: dict[str, Json] = {"http": {"timeouts": {"read": "10s", "total": "10s"}}}
"""A request is given up after ten seconds: a ring has no time for the ninety of production."""


def contract(name: str, changes: Mapping[str, Json] | None = None) -> Contract:
    """A contract that ships, with shorter timeouts."""
    return variant(name, {**SHORT, **(changes or {})})


def input_of(chosen: Contract, account: str, **more: Json) -> dict[str, Json]:
    """What a contract of the simulator asks for, with as much of `more` as it knows."""
    usual: dict[str, Json] = {"account": account, "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv"}
    known: Any = chosen.input["properties"] if chosen.input else {}
    return {name: value for name, value in (usual | more).items() if name in known}


@dataclass
class Site:
    """One installation, reached by its ledger and a Temporal client."""

    folder: Path
    environ: dict[str, str]
    client: Client
    ledger: SqlLedger
    books: LedgerBooks
    results: ObstoreResults
    provider_url: str
    workers: list[Child] = field(default_factory=list[Child])

    def worker(self, name: str, *, halting: bool = False, temporal: str | None = None) -> Child:
        """Start a worker; its Temporal may be reached another way."""
        environ = self.environ | ({} if temporal is None else {"TEMPORAL_ADDRESS": temporal})
        made = worker(self.folder, name, environ, halts=self.folder / "halts" if halting else None)
        self.workers.append(made)
        return made

    def halt(self, stream: str, point: str, then: str = "hang") -> None:
        """Have an operation halted at a point, once."""
        partial = self.folder / f"{stream}.halt"
        partial.write_text(f"{point} {then}")
        partial.rename(self.folder / "halts" / stream)

    def halted(self, *streams: str) -> bool:
        """Each of these stands at its point, or stood there."""
        return all((self.folder / "halts" / f"{stream}.reached").exists() for stream in streams)

    def ended(self, *streams: str) -> bool:
        """The activities that stood at these points have ended."""
        return all((self.folder / "halts" / f"{stream}.ended").exists() for stream in streams)

    async def open(self, stream: str, chosen: Contract, **more: Json) -> Record:
        """Open an operation: its account at the provider is its id, by which the provider's books tell whose a job is."""
        asked = Asked(
            contract=chosen, input=input_of(chosen, stream, **more), target={"server": self.provider_url}, tenant="t1", principal=OPERATOR
        )
        drawn = Drawn(secrets.token_bytes(SALT_BYTES), secrets.token_bytes(SALT_BYTES), secrets.token_hex(16))
        evidence, payloads = opening(asked, drawn, at=datetime.now(UTC))
        return (await self.ledger.open(Opening(stream, evidence, chosen.canonical, payloads))).record

    async def tell(self, stream: str) -> str:
        """Start the workflow of an open stream; the run's id."""
        record = await self.ledger.record(stream)
        handle = await self.client.start_workflow(
            OPERATION_WORKFLOW,
            OperationInput(id=stream, known=Known(seq=record.seq, hash=record.hash)),
            id=stream,
            task_queue=QUEUE_LEDGER,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        )
        return str(handle.result_run_id)

    async def start(self, stream: str, chosen: Contract, **more: Json) -> None:
        """Open an operation and start it."""
        await self.open(stream, chosen, **more)
        await self.tell(stream)

    async def cancel(self, stream: str) -> None:
        """Ask for a cancel."""
        request: dict[str, Json] = {"request_id": f"c-{stream}", "by": OPERATOR, "reason": "no longer needed"}
        await self.client.get_workflow_handle(stream).signal("cancel", request)

    async def standing(self, stream: str) -> Standing:
        """The standing that the ledger says."""
        return (await self.ledger.record(stream)).standing

    async def settled(self, *streams: str, within: float) -> dict[str, Standing]:
        """The standings, once each is final or waits for a human."""
        found: dict[str, Standing] = {}
        try:
            async with asyncio.timeout(within):
                for stream in streams:
                    while not ((standing := await self.standing(stream)).final or standing.attention):  # noqa: ASYNC110 - as below
                        await asyncio.sleep(0.1)
                    found[stream] = standing
        except TimeoutError:
            left = {stream: (await self.standing(stream)).state for stream in streams if stream not in found}
            raise AssertionError(f"not settled within {within} s: {left}; {await self.story(next(iter(left)))}") from None
        return found

    async def reached(self, stream: str, *states: str, within: float = 30.0) -> Standing:
        """The standing, once it is in one of these states."""
        async with asyncio.timeout(within):
            while (standing := await self.standing(stream)).state not in states:  # noqa: ASYNC110 - other processes set no event of ours
                await asyncio.sleep(0.05)
        return standing

    async def entries(self, stream: str) -> list[Entry]:
        """All entries of a stream."""
        return await self.ledger.entries(stream)

    async def story(self, stream: str) -> list[str]:
        """Causes in order."""
        return [entry.cause for entry in await self.entries(stream)]

    async def broken(self, stream: str) -> str | None:
        """What is wrong with a stream: its chain, its row, or what Temporal remembers of it. None if nothing is."""
        verification = await self.books.verify(stream)
        if verification.fault is not None:
            return f"chain: {verification.fault}"
        if differences := await self.books.rebuild(stream):
            return f"row: {differences}"
        if lost := missing(await witnesses(self.client, stream), await self.entries(stream)):
            return f"Temporal remembers what the ledger does not hold: {lost}"
        return None

    async def result(self, stream: str) -> bytes | None:
        """The kept result of an operation that says that it has one; None if it can't be had."""
        standing = await self.standing(stream)
        if standing.state != "succeeded" or not standing.outputs:
            return None
        try:
            return b"".join([chunk async for chunk in self.results.read(standing.outputs[0].key)])
        except NotFound:
            return None

    async def workflow(self, stream: str) -> str:
        """What Temporal says of the operation's newest run."""
        try:
            described = await self.client.get_workflow_handle(stream).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return "none"
            raise
        return "running" if described.status is WorkflowExecutionStatus.RUNNING else str(described.status and described.status.name.lower())


@asynccontextmanager
async def site(folder: Path, *, temporal: str, namespace: str, provider_url: str, ledger_url: str | None = None) -> AsyncGenerator[Site]:
    """A site while the block runs; none of its workers outlives it."""
    home = folder / "home"
    for made in (folder / "halts", home / "secrets", folder / "policies"):
        made.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    _policies(folder / "policies")
    record = {"value": secrets.token_urlsafe(24), "scheme": "bearer", "account": "sim", "origins": [provider_url], "tenants": "*"}
    (home / "secrets" / "sim").write_text(json.dumps(record))
    url = ledger_url or f"sqlite:///{home / 'ledger.db'}"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_"))}
    environ = inherited | {
        "SAKSHI_HOME": str(home), "SAKSHI_LEDGER_URL": url, "SAKSHI_ALLOWED_ORIGINS": provider_url,
        "SAKSHI_RESULTS_URL": str(home / "results"),
        "SAKSHI_POLICIES_DIR": str(folder / "policies"), "SAKSHI_LOG_LEVEL": "warning", "SAKSHI_DRAIN": "2",
        "TEMPORAL_ADDRESS": temporal, "TEMPORAL_NAMESPACE": namespace, "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    client = await Client.connect(temporal, namespace=namespace, data_converter=DATA_CONVERTER)
    await register_search_attributes(client)
    ledger = await SqlLedger.connect(url)
    made = Site(folder, environ, client, ledger, LedgerBooks(ledger), ObstoreResults(str(home / "results")), provider_url)
    try:
        yield made
    finally:
        for one in made.workers:
            one.end()
        await ledger.aclose()


def _policies(folder: Path) -> None:
    """The bundle that ships, and one person who may decide."""
    for file in (ROOT / "policies").iterdir():
        if file.suffix in {".cedar", ".cedarschema", ".json"}:
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "operator.cedar").write_text(_OPERATOR_DECIDES)
