"""The composition root of a worker: settings -> adapters -> activities -> Temporal workers.

`python worker.py` does what operations need done, until SIGTERM or Ctrl-C; `--check` builds everything, connects, and ends.
Creates and cancels have slots of their own, so that status reads never starve a cancel.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TypedDict

from temporalio.client import Client
from temporalio.worker import Worker

from activities.authority import AuthorityActivities
from activities.ledger import LedgerActivities
from activities.ports import World
from activities.provider import ProviderActivities
from adapters.addresses import AddressRules, parse_origin
from adapters.cedar_gate import CedarGate
from adapters.clock_check import ClockCheck
from adapters.clocks import SystemClocks
from adapters.credentials import Credentials
from adapters.http_provider import HttpProvider
from adapters.result_store import ObstoreResults
from adapters.settings import Settings, load_settings
from adapters.sql_ledger import SqlLedger
from adapters.telemetry import configure_logging, log
from adapters.temporal import TemporalRuns, connect, production_runner, register_search_attributes
from domain.errors import SakshiError
from domain.messages import QUEUE_EFFECTS, QUEUE_LEDGER, QUEUE_READS
from workflows.operation import OperationWorkflow


class _Beats(TypedDict):
    max_heartbeat_throttle_interval: timedelta
    default_heartbeat_throttle_interval: timedelta


def _at_most_every(seconds: float) -> _Beats:
    between = timedelta(seconds=seconds)
    return {"max_heartbeat_throttle_interval": between, "default_heartbeat_throttle_interval": between}


EFFECTS_BEAT = _at_most_every(0.5)
READINGS_BEAT = _at_most_every(2)
"""Throttled little: heartbeats carry answers and witnesses."""


@asynccontextmanager
async def world_of(settings: Settings, client: Client, identity: str) -> AsyncGenerator[World]:
    """Every port of the outside world, plugged in."""
    async with AsyncExitStack() as stack:
        if settings.ledger_url is None:
            settings.prepare_home()
        ledger = await SqlLedger.connect(settings.ledger, settings.ledger_password())
        stack.push_async_callback(ledger.aclose)
        credentials = Credentials(folder=settings.secrets, embedded=settings.embedded)
        listed = frozenset(parse_origin(origin) for origin in settings.allowed_origins)
        results = ObstoreResults(settings.results)
        provider = HttpProvider(credentials, AddressRules(listed=listed, loopback=settings.embedded), files=results)
        stack.push_async_callback(provider.aclose)
        yield World(
            ledger=ledger,
            provider=provider,
            results=results,
            gate=CedarGate(settings.policies_dir, settings.embedded, settings.local_user),
            runs=TemporalRuns(client),
            clocks=SystemClocks(),
            identity=f"worker:{identity}",
            embedded=settings.embedded,
        )


def workers_of(settings: Settings, client: Client, world: World) -> list[Worker]:
    """One worker for each queue (which step is on which: `activities/options.py`).

    Each queue also takes what an installation that is brought up to date may have there: the ledger's activities on the workflows'
    queue, readings on that of lookups.
    """
    provider = ProviderActivities(world, observe_slots=settings.slots_reads)
    authority, ledger = AuthorityActivities(world), LedgerActivities(world)
    books = [authority.judge, authority.judge_decision, ledger.look, ledger.record_clock]
    made = partial(Worker, client, graceful_shutdown_timeout=timedelta(seconds=settings.drain), interceptors=[ClockCheck(world.clocks)])
    return [
        made(
            task_queue=QUEUE_LEDGER,
            workflows=[OperationWorkflow],
            workflow_runner=production_runner(),
            max_concurrent_workflow_tasks=settings.slots_workflows,
            max_cached_workflows=settings.cached_workflows,
            activities=[*books, provider.observe, provider.collect],
            max_concurrent_activities=settings.slots_reads,
            **READINGS_BEAT,
        ),
        made(
            task_queue=QUEUE_EFFECTS,
            activities=[provider.create, provider.cancel, provider.undo, *books],
            max_concurrent_activities=settings.slots_effects,
            **EFFECTS_BEAT,
        ),
        made(
            task_queue=QUEUE_READS,
            activities=[provider.reconcile, provider.observe, provider.collect],
            max_concurrent_activities=settings.slots_effects,
            **READINGS_BEAT,
        ),
    ]


async def work(settings: Settings, identity: str, *, check: bool) -> None:
    """Work until told to stop; with `check`, stop once everything is connected."""
    told = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, told.set)
    client = await connect(settings, identity=identity)
    made = await register_search_attributes(client)
    async with world_of(settings, client, identity) as world, AsyncExitStack() as stack:
        for worker in workers_of(settings, client, world):
            await stack.enter_async_context(worker)
        log().info("working", ledger=world.ledger.ledger_id, embedded=world.embedded, search_attributes_made=list(made))
        gc.collect()
        gc.freeze()  # what is here now stays: the collector need not walk over it again with every operation
        print(json.dumps({"schema": "sakshi.worker/1", "identity": identity, "ledger_id": world.ledger.ledger_id}), flush=True)
        if not check:
            await told.wait()
        log().info("stopping", drain_s=settings.drain)


def main() -> int:
    """Read the options and the settings, and work."""
    parser = argparse.ArgumentParser(prog="python worker.py", description="Does what operations need done.")
    parser.add_argument("--check", action="store_true", help="build and connect everything, and end")
    options = parser.parse_args()
    identity = f"{os.getpid()}@{socket.gethostname()}"
    try:
        settings = load_settings()
        configure_logging(level=settings.log_level, form=settings.log_format, identity=identity)
        asyncio.run(work(settings, identity, check=options.check))
    except SakshiError as error:
        print(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
