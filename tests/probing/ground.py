"""A probe of the simulator: the real HTTP adapter, a contract that ships (or one with changes), and lies that are told."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapters.addresses import AddressRules
from adapters.contract_files import load, parse
from adapters.credentials import Credentials
from adapters.http_provider import HttpProvider
from adapters.probing.consent import consent_for
from adapters.probing.naming import Asked, Names, another
from adapters.probing.probe import Report, probe
from adapters.result_store import ObstoreResults
from simulator.books import Books
from simulator.serve import running

CONTRACTS = Path(__file__).parents[2] / "contracts"
SECRET = "planted-credential-5d2e"
WITHIN = 120.0
"""Seconds for a probe that takes some: a bound that only matters where the end of its time is the point."""
ASK: dict[str, Any] = {"account": "a-1", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "rows": 6, "polls": 1}


@dataclass(frozen=True)
class Told:
    """One lie: of which calls, and how often."""

    kind: str
    word: str
    args: Mapping[str, Any] = field(default_factory=dict)
    nth: int | None = None
    times: int | None = None


@dataclass
class Probed:
    """What a probe came to, and what the provider's own books have."""

    report: Report
    books: Books
    text: str

    @property
    def differs(self) -> set[str]:
        return {name for name, check in self.report.findings.checks.items() if check.verdict == "differs"}

    def verdict(self, name: str) -> str:
        return self.report.findings.checks[name].verdict

    @property
    def going(self) -> list[str]:
        """Jobs that the provider still works on."""
        return [job.id for job in self.books.jobs() if job.ended is None]


def input_of(name: str, **more: Any) -> dict[str, Any]:
    asked = ASK | more
    if name == "sim.reports.create":
        return {"format": "csv"} | asked
    return {key: asked[key] for key in ("account", "range")} if name == "sim.read.count" else asked


def merged(old: Any, new: Any) -> Any:
    """Maps are merged, all else is replaced; None takes a key away."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    kept = {key: value for key, value in old.items() if new.get(key, value) is not None}
    return kept | {key: merged(old.get(key), value) for key, value in new.items() if value is not None}


def written(name: str, folder: Path, changes: Mapping[str, Any] | None, replaced: Mapping[str, str] | None) -> Path:
    """The contract's file: as it ships, with some of its text replaced, or with changes (then as JSON, which is YAML too)."""
    text = (CONTRACTS / f"{name}.yaml").read_text()
    for old, new in (replaced or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    if changes:
        path.write_text(json.dumps(merged(parse(path).document, changes), indent=1))
    return path


@asynccontextmanager
async def probing(
    name: str,
    folder: Path,
    lies: Sequence[Told] = (),
    *,
    changes: Mapping[str, Any] | None = None,
    replaced: Mapping[str, str] | None = None,
    seconds: float = WITHIN,
    **more: Any,
) -> AsyncGenerator[Probed]:
    """One probe of a simulator that is there while the block runs."""
    path = written(name, folder, changes, replaced)
    async with running() as sim:
        for lie in lies:
            sim.books.lie(lie.kind, {"word": lie.word, "args": dict(lie.args)}, nth=lie.nth, times=lie.times)  # pyright: ignore[reportArgumentType]
        report = await report_of(path, {"server": sim.url}, input_of(name, **more), seconds)
        yield Probed(report, sim.books, path.read_text())


async def report_of(path: Path, target: Mapping[str, str], input: dict[str, Any], seconds: float) -> Report:
    """One probe of what listens at the contract's base."""
    contract, text, store = load(path), await asyncio.to_thread(path.read_text), ObstoreResults(path.parent / "files")
    asked = Asked(contract, target, "local", "ada", input)
    if contract.create.token:
        asked = replace(asked, other=another(contract, input, Names(asked).scope(1, "create")))
    provider = HttpProvider(Credentials({"SAKSHI_CREDENTIAL_SIM": SECRET}, embedded=True), AddressRules(loopback=True), files=store)
    try:
        consent = consent_for(asked, lambda credential: credential, seconds)
        return await probe(asked, consent, provider, store, file=path.name, text=text, said=lambda _: None)
    finally:
        await provider.aclose()
