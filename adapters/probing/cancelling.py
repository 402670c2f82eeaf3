"""Asking for a cancel: is it taken, once and twice; does a state confirm it; and does a finished job outlive one?"""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from adapters.probing.findings import Findings, Mend, Seen, plain
from adapters.probing.jobs import Job, Left
from adapters.probing.talking import Talk, Unsent
from adapters.probing.watching import Watching, read_once
from domain.answer_matching import DEFAULT
from domain.contract import Contract
from domain.exchange import NoAnswer
from domain.language.stages import Cancel
from domain.reading import Reading, read_cancel

TRIES: Final = 4
CLEANING: Final = 45.0
"""Seconds that are given to cancelling what is left, whatever the probe's own end was."""
_TAKEN: Final = frozenset({"taken", "read_again"})


@dataclass(frozen=True, slots=True)
class Answered:
    """What a cancel was answered with."""

    seen: tuple[Seen, ...]
    reading: Reading | None = None
    why: str = ""

    @property
    def meaning(self) -> str:
        """What it means."""
        return "no answer" if self.reading is None else self.reading.meaning


class Cancelling:
    """The cancels of one probe."""

    def __init__(self, talk: Talk, findings: Findings, cancel: Cancel) -> None:
        self._talk, self._findings, self._cancel = talk, findings, cancel
        self._contract = talk.contract

    async def job(self, job: Job) -> None:
        """Cancel a job that goes on, and see what becomes of it."""
        first = await self._ask(job, "cancel")
        says, did = "acknowledged", first.why
        match first.meaning:
            case "taken":
                job.cancelling = True
                self._findings.say("cancel.acknowledged", "ok", says=says, did=did, seen=first.seen)
            case "read_again":
                await self._too_late(job, first)
                return
            case "refused" | "unsure" | "violation":
                self._findings.say("cancel.acknowledged", "differs", says=says, did=did, seen=first.seen)
                self._findings.say("cancel.confirmed", "not_tried", did="no cancel was acknowledged")
                return
            case _:
                self._findings.say("cancel.acknowledged", "not_tried", says=says, did=did, seen=first.seen)
                return
        await self._twice(job)
        await self._confirmed(job, first)

    async def _too_late(self, job: Job, first: Answered) -> None:
        """Already ended, by the answer. The status has to agree; that it says cancelled is a cancel that was taken."""
        says = "already_terminal: the job has ended"
        if self._contract.observe is None:
            self._findings.say("cancel.acknowledged", "not_tried", says=says, did="there is no status to compare with", seen=first.seen)
            return
        job.cancelling = True
        watching = Watching(self._talk, self._findings, self._contract.observe, job)
        read = await watching.once()
        if job.ended is None and read.reading is not None and read.reading.meaning == "going":
            did = f"answered as ended, and the status is {plain(read.reading.remote_state)}"
            self._findings.say("cancel.acknowledged", "differs", says=says, did=did, seen=[*first.seen, read.seen])
        elif job.ended == "cancelled":
            did = "answered as ended; the status is cancelled"
            for name in ("cancel.acknowledged", "cancel.confirmed"):
                self._findings.say(name, "ok", says="cancelled", did=did, seen=[*first.seen, read.seen])
        else:
            self.untried(job)

    def untried(self, job: Job) -> None:
        """Nothing was found out by a job that goes on no more, or of which nobody knows whether it does."""
        did = job.unread if job.ended is None else "the job ended before its cancel: give an input whose job takes longer"
        for name in ("cancel.acknowledged", "cancel.confirmed", "cancel.repeatable"):
            self._findings.say(name, "not_tried", did=did)

    async def _twice(self, job: Job) -> None:
        says = "repeatable: true"
        if not self._cancel.repeatable:
            self._findings.say("cancel.repeatable", "not_offered", says="repeatable: false", did="it is sent once")
            return
        second = await self._ask(job, "cancel again")
        if second.reading is None:
            self._findings.say("cancel.repeatable", "not_tried", says=says, did=second.why, seen=second.seen)
            return
        right = second.meaning in _TAKEN | {"again"}
        mends = [] if right else [Mend("set", ("cancel", "repeatable"), "false", f"the second cancel: {second.why}")]
        self._findings.say("cancel.repeatable", "ok" if right else "differs", says=says, did=second.why, seen=second.seen, mends=mends)

    async def _confirmed(self, job: Job, first: Answered) -> None:
        name, observe = "cancel.confirmed", self._contract.observe
        if observe is None:
            self._findings.say(name, "not_tried", did="there is no status that could confirm it")
            return
        watching, within = Watching(self._talk, self._findings, observe, job), self._talk.span("cancel")
        cut = within.total_seconds() > self._talk.left
        await watching.until_ended(within)
        says, newest = f"cancelled within {within.total_seconds():g}s", self._findings.newest
        if job.ended == "cancelled":
            self._findings.say(name, "ok", says=says, did="the state is cancelled", seen=[newest])
        elif job.lost is not None:
            did = f"acknowledged, and then answered as {job.lost}, which an operation takes for a lost job and not for a cancelled one: "
            did += "if it is one, an earlier entry with `phase: cancelling` has to say so"
            self._findings.say(name, "differs", says=says, did=did, seen=[*first.seen, newest])
        elif job.ended is not None:
            did = f"acknowledged, and then it ended as {job.ended} (if it was about to end by itself, try an input whose job takes longer)"
            self._findings.say(name, "differs", says=says, did=did, seen=[*first.seen, newest])
        elif cut:
            self._findings.say(name, "not_tried", says=says, did="the time of the probe was over before", seen=[newest])
        else:
            did = "acknowledged, and no state confirmed it"
            self._findings.say(name, "differs", says=says, did=did, seen=[*first.seen, newest])

    async def finished(self, job: Job) -> None:
        """Cancel what has ended, where the contract says that this is harmless, and read the status after."""
        name, observe = "cancel.finished", self._contract.observe
        if self._cancel.destroys_finished_jobs:
            self._findings.say(name, "not_offered", says="destroys_finished_jobs: true", did="a finished job is left alone")
            return
        if observe is None or job.ended is None or job.id is None:
            return
        answered = await self._ask(job, "cancel what has ended")
        says = "destroys_finished_jobs: false"
        if answered.reading is None:
            self._findings.say(name, "not_tried", says=says, did=answered.why, seen=answered.seen)
            return
        read = await read_once(self._talk, "observe, after the cancel of what has ended", replace(job.scope, phase="seen"))
        if read.reading is None or read.reading.meaning not in {"going", "held", "terminal", "gone"}:
            self._findings.say(name, "not_tried", says=says, did=read.why, seen=[*answered.seen, read.seen])
            return
        same = read.reading.meaning == "terminal" and read.reading.verdict == job.ended
        did = f"the cancel: {answered.why}; the status after it: {plain(read.reading.remote_state)} ({read.reading.word})"
        # A state that changes by itself after the end is another finding, and is not laid to the cancel.
        blamed = not same and self._findings.verdict("status.final") != "differs"
        mends = [Mend("set", ("cancel", "destroys_finished_jobs"), "true", did)] if blamed else []
        verdict = "ok" if same else "differs" if blamed else "not_tried"
        self._findings.say(name, verdict, says=says, did=did, seen=[*answered.seen, read.seen], mends=mends)

    async def _ask(self, job: Job, call: str) -> Answered:
        """One cancel. After a lost answer it is sent again only where the contract lets it be."""
        scope = replace(job.scope, call_id=f"{job.scope.call_id}.cancel", phase=job.phase)
        ready = await self._talk.ready("cancel", self._cancel.before, self._cancel.request, scope, "cancel")
        if isinstance(ready, Unsent):
            return Answered((), why=f"nothing was sent: {ready.why}")
        request, known = ready
        seen: list[Seen] = []
        for attempt in range(1, TRIES + 1):
            said = await self._talk.ask(call, request, "cancel", known)
            seen.append(said.seen)
            if isinstance(said.outcome, NoAnswer):
                answered, delay = Answered(tuple(seen), why=f"no answer ({said.outcome.word})"), said.outcome.wait_ms
                again = self._cancel.repeatable or not said.outcome.sent
            else:
                reading = read_cancel(self._contract, said.outcome, known, said.now)
                said.seen.word, delay = reading.word, reading.delay_ms
                word = "an answer that no entry fits" if reading.word == DEFAULT else reading.word
                answered, again = Answered(tuple(seen), reading, f"{word} ({said.outcome.status})"), reading.meaning == "again"
            if not again or attempt == TRIES or not await self._talk.pause(attempt, delay):
                return answered
        raise AssertionError

    # --- what is left ---------------------------------------------------------------------------------------------------

    async def clear(self, job: Job) -> Left | None:
        """Try to cancel what may go on; what stays, or may, is said. One that no reading has shown is read first: an answer that there is
        no such job is worth something only of a job that there was.
        """
        if job.id is None:
            return Left(job.what, None, "its id is not known, so it can't be cancelled; it may be there")
        observe = self._contract.observe
        watching = None if observe is None else Watching(self._talk, Findings(), observe, job)
        if watching is not None and not job.seen and job.lost is None:
            await watching.once()
        if job.ended is not None:
            return None
        said = "its cancel was taken"
        if not job.cancelling or self._cancel.repeatable:
            answered = await self._ask(job, f"cancel, to leave nothing ({job.what})")
            said = f"its cancel: {answered.why}"
            if answered.meaning not in _TAKEN:
                return Left(job.what, job.id, said if job.lost is None else f"{said}; {job.unread}")
        job.cancelling = True
        if watching is None:
            return Left(job.what, job.id, f"{said}, and no status can confirm it")
        if await watching.until_ended(self._talk.span("cancel")):
            return None
        return Left(job.what, job.id, f"{said}, and " + ("no state has confirmed it yet" if job.lost is None else job.unread))


async def clear(talk: Talk, contract: Contract, jobs: list[Job]) -> list[Left]:
    """What is left of the jobs after trying to cancel those that go on."""
    talk.until = max(talk.until, asyncio.get_running_loop().time() + CLEANING)
    left: list[Left] = []
    for job in jobs:
        if job.ended is not None:
            continue
        if contract.cancel is None:
            left.append(Left(job.what, job.id, "the contract has no cancel"))
            continue
        stays = await Cancelling(talk, talk.findings, contract.cancel).clear(job)
        if stays is not None:
            left.append(stays)
    return left
