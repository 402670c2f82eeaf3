"""What `doctor` looks at: each part of an installation, what is wrong with it, and what to do."""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from adapters.settings import Settings, unknown_variables
from domain.errors import SakshiError, Unreachable

if TYPE_CHECKING:
    from adapters.orphans import Apart
    from domain.contract import Contract

Level = Literal["good", "note", "wrong"]
MAX_SKEW = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the installation. `note`: it works, and someone may want to know."""

    what: str
    level: Level
    said: str
    hint: str = ""

    def shape(self) -> dict[str, str]:
        """As JSON."""
        return {"what": self.what, "level": self.level, "said": self.said, "hint": self.hint}


async def diagnose(settings: Settings) -> list[Finding]:
    """Every finding, in the order in which parts need each other. Never raises for what is wrong with a part."""
    found: list[Finding] = []
    for what, look in _LOOKS:
        try:
            found += [one async for one in look(settings)]
        except SakshiError as error:
            found.append(Finding(what, "wrong", error.message, error.hint))
    return found


async def _settings(settings: Settings) -> AsyncIterator[Finding]:
    where = f"embedded under {settings.home}" if settings.embedded else "on servers of its own"
    yield Finding("settings", "good", where)
    for name in unknown_variables(os.environ):
        yield Finding("settings", "note", f"{name} is set and no setting has that name", "docs/settings.md lists the settings")


async def _ledger(settings: Settings) -> AsyncIterator[Finding]:
    from adapters.sql_books import LedgerBooks
    from adapters.sql_ledger import SqlLedger

    if settings.ledger_url is None:
        settings.prepare_home()
    ledger = await SqlLedger.connect(settings.ledger, settings.ledger_password())
    try:
        books = LedgerBooks(ledger)
        await books.ping()
        skew = await books.clock_skew()
        yield Finding("ledger", "good", f"answers; its id is {ledger.ledger_id}")
        if abs(skew) > MAX_SKEW:
            yield Finding("clocks", "wrong", f"the ledger's clock is {skew.total_seconds():+.1f} s away", "synchronise both with NTP")
        else:
            yield Finding("clocks", "good", f"the ledger's clock is {skew.total_seconds():+.1f} s away")
    finally:
        await ledger.aclose()


async def _temporal(settings: Settings) -> AsyncIterator[Finding]:
    from adapters.temporal import connect, live_workers, missing_search_attributes
    from domain.messages import QUEUE_EFFECTS, QUEUE_LEDGER, QUEUE_READS

    client = await connect(settings)
    yield Finding("temporal", "good", f"answers at {client.service_client.config.target_host}, namespace {client.namespace}")
    missing = await missing_search_attributes(client)
    if missing:
        yield Finding("temporal", "wrong", f"search attributes are missing: {', '.join(missing)}", "start worker.py once; it makes them")
    for queue in (QUEUE_LEDGER, QUEUE_EFFECTS, QUEUE_READS):
        alive = await live_workers(client, queue)
        hint = "" if alive else "start one: python worker.py, or python starter.py dev"
        yield Finding("workers", "good" if alive else "wrong", f"{alive} on {queue}", hint)


async def _operations(settings: Settings) -> AsyncIterator[Finding]:
    from adapters.orphans import survey
    from adapters.sql_books import LedgerBooks
    from adapters.sql_ledger import SqlLedger
    from adapters.temporal import connect

    try:
        client = await connect(settings)
    except Unreachable:
        return  # said under `temporal`
    ledger = await SqlLedger.connect(settings.ledger, settings.ledger_password())
    try:
        found = await survey(client, ledger, LedgerBooks(ledger))
    finally:
        await ledger.aclose()
    look = "python starter.py list --orphans says what to do about each"
    if found.strangers:
        yield Finding("operations", "wrong", f"Temporal has workflows that this ledger does not hold: {_few(found.strangers)}", look)
    if found.behind:
        yield Finding("operations", "wrong", f"the ledger lacks entries that Temporal knows of: {_few(found.behind)}", look)
    if found.orphans:
        told = _few([one.row.stream for one in found.orphans])
        yield Finding("operations", "note", f"without a workflow, so that nothing goes on: {told}", look)
    if not (found.strangers or found.behind or found.orphans):
        yield Finding("operations", "good", "ledger and Temporal know the same ones")


def _few(found: "Sequence[Apart] | Sequence[str]") -> str:
    ids = [one if isinstance(one, str) else one.id for one in found]
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


async def _results(settings: Settings) -> AsyncIterator[Finding]:
    from adapters.result_store import ObstoreResults

    store = ObstoreResults(settings.results)
    await store.staged_size("doctor/looks")
    yield Finding("results", "good", "the store answers" if settings.results_url else f"kept in {settings.results}")
    if settings.results_url is None:
        free = shutil.disk_usage(settings.prepare_home()).free
        if free < 1024**3:
            yield Finding("results", "note", f"{free // 1024**2} MiB are free there", "make room before large results are collected")


async def _policies(settings: Settings) -> AsyncIterator[Finding]:
    from adapters.cedar_gate import CedarGate

    gate = CedarGate(settings.policies_dir, settings.embedded, settings.local_user)
    yield Finding("policies", "good", f"the bundle is valid; its digest is {gate.bundle[:16]}")


async def _contracts(settings: Settings) -> AsyncIterator[Finding]:
    from adapters.contract_files import ContractFolder
    from adapters.credential_checks import credential_findings
    from adapters.stack_file import target_sets

    folder = ContractFolder(settings.contracts_dir)
    contracts: list[Contract] = []
    for name in folder.names():
        try:
            contracts.append(folder.get(name))
        except SakshiError as error:
            yield Finding("contracts", "wrong", error.message.splitlines()[0], "python starter.py contracts check")
    yield Finding("contracts", "good", f"{len(folder.names())} in {settings.contracts_dir}")
    sets = target_sets(settings.home if settings.embedded else None, settings.targets)
    for one in credential_findings(contracts, settings, sets, await _used(settings)):
        yield one


async def _used(settings: Settings) -> set[str] | None:
    """The contracts that operations were run of; None where the ledger does not answer, which is said under `ledger`."""
    from adapters.sql_books import LedgerBooks
    from adapters.sql_ledger import SqlLedger

    try:
        ledger = await SqlLedger.connect(settings.ledger, settings.ledger_password())
        try:
            return await LedgerBooks(ledger).used()
        finally:
            await ledger.aclose()
    except SakshiError:
        return None


_LOOKS: tuple[tuple[str, Callable[[Settings], AsyncIterator[Finding]]], ...] = (
    ("settings", _settings),
    ("ledger", _ledger),
    ("temporal", _temporal),
    ("operations", _operations),
    ("results", _results),
    ("policies", _policies),
    ("contracts", _contracts),
)
