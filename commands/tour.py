"""The tour of `demo`: six scenes against the simulated provider, each held against its books.

Every scene says what it is about, shows the operation's timeline, and checks what was promised of it. The tour has gone well
only if every check holds.
"""

import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import cast

import httpx
from ulid import ULID

from adapters.client import Sakshi
from adapters.contract_files import ContractFolder
from adapters.result_output import write_out
from adapters.result_store import ObstoreResults
from adapters.showing.entries import evidence_of
from adapters.showing.live import line_of
from adapters.showing.text import evidence_text
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.verifying import verified
from domain.evidence import Json
from domain.messages import Resolution
from domain.opening import Asked

Say = Callable[[str], None]
CONTRACT = "sim.reports.create"
LONGEST = timedelta(minutes=5)


class Tour:
    """One walk through the scenes."""

    def __init__(self, there: Sakshi, simulator: str, say: Say) -> None:
        self._there = there
        self._simulator = simulator
        self._say = say
        self._contract = ContractFolder(there.settings.contracts_dir).get(CONTRACT)
        self._account = f"demo-{str(ULID()).lower()}"
        self._failed: list[str] = []
        self._accounts: dict[str, str] = {}

    async def walk(self) -> bool:
        """All scenes; whether all was as promised."""
        scenes: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
            ("A report that takes its time: accepted, observed, collected, verified", self._success),
            ("A provider that answers at once with the finished report", self._at_once),
            ("The answer to a create is lost: sent again with the same token and bytes, one job", self._lost_answer),
            ("A cancel: asked, and cancelled only when the provider shows it", self._cancelled),
            ("The result is not what its checksum says: parked, fetched again, verified", self._wrong_result),
            ("Someone changes the ledger: found", self._tampered),
        )
        for number, (title, scene) in enumerate(scenes, 1):
            self._say(f"\n{number}. {title}")
            await scene()
        self._epilogue()
        return not self._failed

    # --- scenes -----------------------------------------------------------------------------------------------------------

    async def _success(self) -> None:
        stream = await self._start("slow", polls=6, rows=500)
        status = await self._follow(stream)
        await self._timeline(stream)
        self._check("it succeeded", status["state"] == "succeeded")
        entries = await self._there.ledger.entries(stream)
        self._check(
            "its progress was seen on the way", any(entry.cause == "reading.going" and "progress" in entry.body for entry in entries)
        )
        await self._one_job(stream)
        await self._written_out(stream)

    async def _at_once(self) -> None:
        stream = await self._start("sync", sync=True, rows=20)
        status = await self._follow(stream)
        await self._timeline(stream)
        self._check("it succeeded", status["state"] == "succeeded")
        await self._one_job(stream)

    async def _lost_answer(self) -> None:
        account = self._named("lost")
        await self._script(account, "create", "drop_after_accepting")
        stream = await self._start("lost", polls=2, rows=50)
        status = await self._follow(stream)
        await self._timeline(stream)
        self._check("it succeeded", status["state"] == "succeeded")
        creates = [one for one in await self._requests(account) if one["kind"] == "create"]
        self._check(f"the create was sent {len(creates)} times", len(creates) == 2)
        self._check("both times with the same bytes", len({str(one["body_digest"]) for one in creates}) == 1)
        self._check("both times with the same token", len({str(one["token"]) for one in creates}) == 1)
        await self._one_job(stream)

    async def _cancelled(self) -> None:
        stream = await self._start("cancel", seconds=600)
        async for status in self._there.changes(stream):
            if status["state"] == "observing":
                break
        verdict = await self._there.cancel(stream, by=self._there.settings.local_user, reason="the demo changed its mind")
        self._check("the cancel was accepted and recorded", verdict.accepted is True)
        status = await self._follow(stream)
        await self._timeline(stream)
        self._check("it is cancelled", status["state"] == "cancelled")
        entries = await self._there.ledger.entries(stream)
        self._check("because a reading showed it", entries[-1].cause == "reading.terminal" and entries[-1].to == "cancelled")
        self._check("the provider's books say cancelled too", [job["state"] for job in await self._jobs(stream)] == ["cancelled"])

    async def _wrong_result(self) -> None:
        await self._script(self._named("wrong"), "collect", "wrong_result_bytes", times=2)
        stream = await self._start("wrong", polls=1, rows=50)
        status = await self._follow(stream)
        self._check("it waits for a human: the result breaks what was promised", status["state"] == "result_validation_failed")
        self._check("nothing unverified became visible", status["result"] is None)
        resolution = Resolution(
            request_id=str(ULID()).lower(), by=self._there.settings.local_user, choice="recollect", reason="the provider has mended it"
        )
        verdict = await self._there.resolve(stream, resolution)
        self._check("the choice `recollect` was accepted", verdict.accepted is True)
        status = await self._follow(stream)
        await self._timeline(stream)
        self._check("fetched again, it is what was promised", status["state"] == "succeeded")
        await self._one_job(stream)

    async def _tampered(self) -> None:
        stream, ledger = next(iter(self._accounts)), self._there.ledger
        chain = await self._there.books.verify(stream)
        whole = await verified(ledger, self._there.books, chain, client=await self._there.temporal(), rebuild=True)
        self._check(f"as it is, {stream} verifies, {whole['witnesses']} heads that Temporal remembers included", bool(whole["ok"]))
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "ledger.db"
            _copy_and_change(self._there.settings.home / "ledger.db", copy, stream)
            changed = await SqlLedger.connect(f"sqlite:///{copy}")
            try:
                fault = (await LedgerBooks(changed).verify(stream)).fault
            finally:
                await changed.aclose()
        self._check("in a copy in which one word of one entry was changed, verify finds it", fault is not None)
        if fault is not None:
            self._say(f"     entry {fault.seq}: {fault.what}")

    # --- what scenes are made of --------------------------------------------------------------------------------------------

    def _named(self, name: str) -> str:
        return f"{self._account}-{name}"

    async def _start(self, name: str, **more: Json) -> str:
        asked = Asked(
            contract=self._contract,
            input={"account": self._named(name), "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv", **more},
            target={"server": self._simulator},
            tenant=self._there.settings.tenant,
            principal=self._there.settings.local_user,
            reason="the tour",
            account=self._there.account("sim"),
        )
        started = await self._there.open_and_start(asked)
        self._accounts[started.id] = self._named(name)
        self._say(f"   {started.id}")
        return started.id

    async def _follow(self, stream: str) -> dict[str, Json]:
        status = (await self._there.wait([stream], timeout=LONGEST))[stream]
        self._say(f"   {line_of(status)}")
        return status

    async def _timeline(self, stream: str) -> None:
        shown = evidence_text(evidence_of(stream, await self._there.ledger.entries(stream), fold=True))
        self._say("\n".join(f"     {line}" for line in shown.splitlines()))

    def _check(self, what: str, held: bool) -> None:
        self._say(f"   {'ok ' if held else 'NOT'} {what}")
        if not held:
            self._failed.append(what)

    async def _one_job(self, stream: str) -> None:
        jobs = await self._jobs(stream)
        self._check(f"the provider's books hold {len(jobs)} job for it", len(jobs) == 1)

    async def _written_out(self, stream: str) -> None:
        standing = (await self._there.ledger.record(stream)).standing
        self._check("there is a result", bool(standing.outputs))
        folder = self._there.settings.home / "demo" / stream
        await write_out(ObstoreResults(self._there.settings.results), standing.outputs, folder, force=True)
        self._check(f"its result, verified again, is in {folder}", (folder / "manifest.json").is_file())

    async def _jobs(self, stream: str) -> list[dict[str, Json]]:
        jobs = cast("list[dict[str, Json]]", (await self._books())["jobs"])
        return [job for job in jobs if cast("dict[str, Json]", job["report"])["account"] == self._accounts[stream]]

    async def _requests(self, account: str) -> list[dict[str, Json]]:
        requests = cast("list[dict[str, Json]]", (await self._books())["requests"])
        return [request for request in requests if request["account"] == account]

    async def _books(self) -> dict[str, Json]:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            return cast("dict[str, Json]", (await http.get(f"{self._simulator}/books")).json())

    async def _script(self, account: str, kind: str, word: str, times: int = 1) -> None:
        rule = {"match": {"kind": kind, "account": account}, "lies": [word], "times": times}
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            (await http.post(f"{self._simulator}/script", json=rule)).raise_for_status()

    def _epilogue(self) -> None:
        first = next(iter(self._accounts))
        self._say("\nAll of it is kept. Look at it with")
        for command in (f"status {first}", f"evidence {first} --all", f"result {first}", f"verify {first}", "list"):
            self._say(f"   python starter.py {command}")
        self._say("and with `python starter.py dev` running, in the Temporal UI.")
        self._say("\nall as promised" if not self._failed else "\nNOT as promised: " + "; ".join(self._failed))


def _copy_and_change(ledger: Path, copy: Path, stream: str) -> None:
    """What someone with the file and no respect for triggers could do."""
    source, target = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True), sqlite3.connect(copy)
    try:
        source.backup(target)
        triggers = [name for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in triggers:
            target.execute(f'DROP TRIGGER "{name}"')
        changed = "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'demo', 'demi') AS BLOB) WHERE stream = ? AND seq = 0"
        target.execute(changed, (stream,))
        target.commit()
    finally:
        source.close()
        target.close()
