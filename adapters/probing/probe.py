"""One probe, from its first request to its report.

1. A job is created, its status read at once, the same bytes and another body sent under its token, and the job looked up.
2. It is watched to its end, its result had and verified, its end read again; then it is created again, late, and cancelled, finished.
3. A second job is created and cancelled. Where the first does not end in time, it is cancelled instead.
4. Whatever is left going is cancelled, also where the probe is broken off; what stays is said.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Final, cast

from pydantic import JsonValue

from activities.ports import Provider, ResultStore
from adapters.probing.cancelling import Cancelling, clear
from adapters.probing.collecting import Collecting
from adapters.probing.consent import Consent
from adapters.probing.creating import Creating
from adapters.probing.findings import Findings
from adapters.probing.jobs import Job, Left
from adapters.probing.looking import Looking
from adapters.probing.mending import suggested
from adapters.probing.naming import Asked, Names
from adapters.probing.talking import Talk
from adapters.probing.watching import Watching
from domain.contract import Contract
from domain.sensitive import Veil

LONGEST: Final = timedelta(minutes=30)
SHARE: Final = 0.6
"""Of the probe's time, that the first job may take to its end: a cancel has to be seen through too."""


@dataclass
class Report:
    """What came of a probe."""

    contract: Contract
    consent: Consent
    findings: Findings
    left: list[Left] = field(default_factory=list[Left])
    broken_off: bool = False
    diff: str = ""
    hidden: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether anything is not as the contract says."""
        return self.findings.differs

    def to_json(self) -> dict[str, object]:
        """`sakshi.probe/1`. Where the contract calls values sensitive, they stand in it as commitments that nobody can test."""
        shown = self._shown()
        if not self.hidden:
            return shown
        veil = Veil(secrets.token_bytes(32), self.hidden)
        for check in cast("list[dict[str, object]]", shown["checks"]):
            check["provider_did"] = veil.text(str(check["provider_did"]))
        for name in ("states", "exchanges", "left", "notes"):
            shown[name] = veil.tree(cast("JsonValue", shown[name]))
        return shown | {"suggested_diff": veil.text(self.diff)}

    def _shown(self) -> dict[str, object]:
        return {
            "schema": "sakshi.probe/1",
            "contract": self.contract.contract,
            "version": self.contract.version,
            "digest": self.contract.digest,
            "consent": self.consent.to_json(),
            "ok": not self.differs,
            "broken_off": self.broken_off,
            **self.findings.to_json(),
            "left": [asdict(one) for one in self.left],
            "suggested_diff": self.diff,
            "notes": [mend.note for mend in self.findings.mends() if mend.note],
        }


def time_for(contract: Contract) -> timedelta:
    """How long a probe may take where nobody says: as long as the contract's deadlines, and half an hour at most."""
    deadlines = contract.deadlines
    return min(deadlines.create + deadlines.result + deadlines.cancel + deadlines.collect, LONGEST)


async def probe(
    asked: Asked, consent: Consent, provider: Provider, files: ResultStore, *, file: str, text: str, said: Callable[[str], None]
) -> Report:
    """Probe, with consent. `text` is the contract's file, `said` is told what is being done, and what is left if it is broken off."""
    findings = Findings()
    until = asyncio.get_running_loop().time() + consent.seconds
    talk = Talk(asked.contract, dict(asked.target), asked.tenant, provider, files, findings, until)
    report = Report(asked.contract, consent, findings)
    run = _Probe(talk, Names(asked), findings, said)
    try:
        await run.all()
    except asyncio.CancelledError:
        report.broken_off = True
    # Broken off or not: what was made is not left going without a word.
    try:
        left = await clear(talk, asked.contract, run.creating.jobs)
    except asyncio.CancelledError:
        report.broken_off = True
        left = [Left(job.what, job.id, "broken off before its cancel was seen through") for job in run.creating.jobs if not job.ended]
    report.left = [*left, *run.creating.unknown]
    report.hidden = tuple(talk.hidden)
    report.diff = suggested(file, text, findings.mends())
    return report


class _Probe:
    """The order of things."""

    def __init__(self, talk: Talk, names: Names, findings: Findings, said: Callable[[str], None]) -> None:
        self._talk, self._findings, self._said = talk, findings, said
        self._contract = talk.contract
        self.creating = Creating(talk, names, findings)
        self._looking = Looking(talk, names, findings)

    async def all(self) -> None:
        """Everything."""
        self._said("creating a job, and creating it again")
        job = await self.creating.create(1, "the first job")
        if job is None:
            return
        honoured = await self._named(job)
        if job.id is None and job.ended is None:
            return
        self._said("watching it to its end")
        await self._watched(job)
        if job.ended is not None:
            await self._ended(job, honoured)
        await self._cancelled(job)
        self._nothing_to_say()

    async def _named(self, job: Job) -> bool:
        """Status, token and lookups of a job that was just made. True if its token is honoured."""
        watching = self._watching(job)
        if job.id is not None and job.ended is None and watching is not None:
            await watching.once()
        honoured = await self.creating.again(job)
        if honoured:
            await self.creating.with_another_body(job)
        self.creating.jobs += await self._looking.find(job)
        return honoured

    def _watching(self, job: Job) -> Watching | None:
        observe = self._contract.observe
        return None if observe is None else Watching(self._talk, self._findings, observe, job)

    async def _watched(self, job: Job) -> None:
        watching = self._watching(job)
        if watching is None or job.ended is not None:
            return
        within = self._talk.span("result")
        share = asyncio.get_running_loop().time() + self._talk.left * SHARE
        cut = within.total_seconds() > self._talk.left * SHARE
        ended = await watching.until_ended(within, end=share)
        says, newest = f"it ends within {within.total_seconds():g}s", self._findings.exchanges[-1]
        if ended:
            self._findings.say("status.ends", "ok" if job.verdict else "not_tried", says=says, did=f"it is {job.ended}", seen=[newest])
        elif cut:
            self._findings.say("status.ends", "not_tried", says=says, did="the time of the probe was over before", seen=[newest])
        else:
            did = "no state that ends it, and no other reading was possible" if not job.seen else "no state that ends it"
            self._findings.say("status.ends", "differs", says=says, did=did, seen=[newest])

    async def _ended(self, job: Job, honoured: bool) -> None:
        """What holds of a job that has ended."""
        collect, observe, cancel = self._contract.collect, self._contract.observe, self._contract.cancel
        await self._collected(job)
        if collect is None:
            for name in (name for name in self._findings.checks if name.startswith("result.")):
                self._findings.say(name, "not_offered", says="collect: none")
        watching = self._watching(job)
        if observe is not None and watching is not None and job.id is not None:
            self._said("reading what has ended again")
            if job.verdict is not None:
                await watching.final()
            await watching.unknown()
        await self.creating.late(job, honoured)
        if cancel is not None:
            await Cancelling(self._talk, self._findings, cancel).finished(job)

    async def _collected(self, job: Job) -> None:
        collect = self._contract.collect
        if collect is not None and job.ended in collect.after:
            self._said(f"fetching the result of {job.what}")
            await Collecting(self._talk, self._findings, collect).job(job)

    async def _cancelled(self, first: Job) -> None:
        """A cancel, of a job that goes on."""
        cancel, names = self._contract.cancel, ("cancel.acknowledged", "cancel.confirmed", "cancel.repeatable", "cancel.finished")
        if cancel is None:
            for name in names:
                self._findings.say(name, "not_offered", says="cancel: none")
            return
        job: Job | None = first
        if first.ended is not None:
            self._said("creating a second job, and cancelling it")
            job = await self.creating.create(2, "the second job")
            if job is not None and job.id is None and job.ended is None:
                self.creating.jobs += await self._looking.find(job)
        if job is None or job.id is None:
            return
        if self._findings.verdict("lookup.finds") == "differs" and job is not first:
            self.creating.jobs += await self._looking.others(job)
        watching = self._watching(job)
        if job.ended is None and watching is not None:
            await watching.once()
        if job.ended is not None:
            for name in names[:3]:
                self._findings.say(name, "not_tried", did="the job ended before its cancel: give an input whose job takes longer")
            return
        await Cancelling(self._talk, self._findings, cancel).job(job)
        if job.ended is not None:
            await self._collected(job)

    def _nothing_to_say(self) -> None:
        """Questions to which nothing came up."""
        quiet = {
            "addresses": ("ok", "no address of another host"),
            "hints": ("not_offered", "no hint was given"),
            "create.compare": ("not_offered", "no earlier sending was met, or no compare"),
            "status.progress": ("not_offered", "no progress was shown"),
        }
        for name, (verdict, did) in quiet.items():
            if self._findings.verdict(name) == "not_tried":
                self._findings.say(name, "ok" if verdict == "ok" else "not_offered", did=did)
        if self._contract.observe is None:
            for name in (name for name in self._findings.checks if name.startswith("status.")):
                self._findings.say(name, "not_offered", says="observe: none")
