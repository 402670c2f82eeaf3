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

from activities.ports import Provider, ResultStore
from adapters.probing.cancelling import Cancelling, clear
from adapters.probing.collecting import Collecting
from adapters.probing.consent import Consent
from adapters.probing.creating import Creating
from adapters.probing.findings import QUESTIONS, Findings
from adapters.probing.jobs import Job, Left
from adapters.probing.looking import Looking
from adapters.probing.mending import suggested
from adapters.probing.naming import Asked, Names
from adapters.probing.talking import Talk
from adapters.probing.watching import Watching
from domain.contract import Contract
from domain.veil import Veil

LONGEST: Final = timedelta(minutes=30)
SHARE: Final = 0.6
"""Of the probe's time, that the first job may take to its end: a cancel has to be seen through too."""


_WORDS: Final = {"checks": ("provider_did",), "states": ("state",), "exchanges": ("url",), "left": ("why",)}
"""Where a report has words of the provider."""


@dataclass
class Report:
    """What came of a probe."""

    contract: Contract
    consent: Consent
    findings: Findings
    left: list[Left] = field(default_factory=list[Left])
    ended: bool = False
    broken_off: bool = False
    diff: str = ""
    hidden: tuple[str, ...] = ()
    blind: bool = False

    @property
    def reason(self) -> str | None:
        """Why the contract can't be called true; None if it can, as far as a probe goes."""
        if self.broken_off:
            return "it was broken off"
        if self.findings.differs:
            return "something is not as the contract says"
        if self.ended or self.contract.observe is None:
            return None
        return f"no job was seen to its end: {self.findings.checks['status.ends'].did}"

    def to_json(self) -> dict[str, object]:
        """`sakshi.probe/1`. Where the contract calls values sensitive, they stand in it as commitments that nobody can test."""
        shown = self._shown()
        if not (self.hidden or self.blind):
            return shown
        veil = Veil(secrets.token_bytes(32), self.hidden, blind=self.blind)
        for part, names in _WORDS.items():
            for one in cast("list[dict[str, object]]", shown[part]):
                one.update((name, veil.text(str(one[name]))) for name in names)
        notes = [veil.text(note) for note in cast("list[str]", shown["notes"])]
        reason = None if self.reason is None else veil.text(self.reason)
        return shown | {"suggested_diff": veil.text(self.diff), "notes": notes, "reason": reason}

    def _shown(self) -> dict[str, object]:
        return {
            "schema": "sakshi.probe/1",
            "contract": self.contract.contract,
            "version": self.contract.version,
            "digest": self.contract.digest,
            "consent": self.consent.to_json(),
            "ok": self.reason is None,
            "reason": self.reason,
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
    report.ended = any(job.ended is not None and not job.cancelling for job in run.creating.jobs)
    report.hidden, report.blind = tuple(talk.hidden), talk.blind
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
        else:
            self._without_an_end(job)
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
        says, newest = f"it ends within {within.total_seconds():g}s", self._findings.newest
        if ended:
            self._findings.say("status.ends", "ok", says=says, did=f"it is {job.ended}", seen=[newest])
        elif job.lost is not None:
            self._findings.say("status.ends", "not_tried", says=says, did=job.unread, seen=[newest])
        elif cut:
            self._findings.say("status.ends", "not_tried", says=says, did="the time of the probe was over before", seen=[newest])
        else:
            did = "no state that ends it, and no other reading was possible" if not job.seen else "no state that ends it"
            self._findings.say("status.ends", "differs", says=says, did=did, seen=[newest])

    async def _ended(self, job: Job, honoured: bool) -> None:
        """What holds of a job that has ended."""
        observe, cancel = self._contract.observe, self._contract.cancel
        await self._collected(job)
        watching = self._watching(job)
        if observe is not None and watching is not None and job.id is not None:
            self._said("reading what has ended again")
            await watching.final()
            await watching.unknown()
        await self.creating.late(job, honoured)
        if cancel is not None:
            await Cancelling(self._talk, self._findings, cancel).finished(job)

    def _without_an_end(self, job: Job) -> None:
        """Questions about a job that was read, or has ended, where none was seen to."""
        for name in ("create.window", "status.same", "status.states", "status.final", "status.unknown", "cancel.finished", *_of("result")):
            self._findings.say(name, "not_tried", did=job.unread)

    async def _collected(self, job: Job) -> None:
        collect = self._contract.collect
        if collect is not None and job.ended in collect.after:
            self._said(f"fetching the result of {job.what}")
            await Collecting(self._talk, self._findings, collect).job(job)

    async def _cancelled(self, first: Job) -> None:
        """A cancel, of a job that goes on. Where the status does not know the first, it won't know another."""
        cancel = self._contract.cancel
        if cancel is None:
            return
        cancelling, job = Cancelling(self._talk, self._findings, cancel), cast("Job | None", first)
        if first.ended is not None or (first.seen and first.lost is not None):
            self._said("creating a second job, and cancelling it")
            job = await self.creating.create(2, "the second job")
            if job is not None and job.id is None and job.ended is None:
                self.creating.jobs += await self._looking.find(job)
        if job is None or job.id is None:
            return
        if self._findings.verdict("lookup.finds") == "differs" and job is not first:
            self.creating.jobs += await self._looking.others(job)
        watching = self._watching(job)
        if job.ended is None and job.lost is None and watching is not None:
            await watching.once()
        if job.ended is not None or job.lost is not None:
            cancelling.untried(job)
            return
        await cancelling.job(job)
        if job.ended is not None:
            await self._collected(job)

    def _nothing_to_say(self) -> None:
        """Questions to which nothing came up."""
        quiet = {
            "addresses": ("ok", "no address of a host that is not listed"),
            "hints": ("not_offered", "no hint was given"),
            "create.compare": ("not_offered", "no earlier sending was met, or no compare"),
            "status.progress": ("not_offered", "no progress was shown"),
        }
        for name, (verdict, did) in quiet.items():
            if not self._findings.heard_of(name):
                self._findings.say(name, "ok" if verdict == "ok" else "not_offered", did=did)
        for part, key in {"status": "observe", "result": "collect", "cancel": "cancel"}.items():
            for name in _of(part) if getattr(self._contract, key) is None else ():
                self._findings.say(name, "not_offered", says=f"{key}: none")


def _of(part: str) -> list[str]:
    """The questions about one part of a contract."""
    return [name for name in QUESTIONS if name.startswith(f"{part}.")]
