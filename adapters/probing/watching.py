"""Reading the status: at once, until the job has ended, again after that, and of a job that there is not."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from pydantic import JsonValue

from adapters.probing.findings import Findings, Mend, Seen, plain
from adapters.probing.jobs import Job
from adapters.probing.mending import scalar
from adapters.probing.naming import nobodys
from adapters.probing.talking import Talk, Unsent
from domain.answer_matching import answer_scope, observed_value
from domain.exchange import Answer, NoAnswer
from domain.language.expressions import Scope, compile_expression, evaluate
from domain.language.functions import TooMuch
from domain.language.stages import Observe
from domain.reading import Reading, read_observe

UNREADABLE: Final = 8
"""Readings in a row that say nothing, after which no more is asked."""
LONGER: Final = 3
"""How many times `appears_within` is waited for a job, to learn how long it does take."""
LEAST: Final = 3
"""Readings that are made of a job, however soon it should appear."""
TERMINAL_READS: Final = 2
ABSENT: Final = frozenset({404, 410})
"""Statuses that show no job, whatever a contract makes of them."""


@dataclass(frozen=True, slots=True)
class Read:
    """One reading, or why there is none."""

    seen: Seen | None
    reading: Reading | None = None
    answer: Answer | None = None
    delay_ms: int | None = None
    why: str = ""
    elsewhere: bool = False


async def read_once(talk: Talk, call: str, scope: Scope, *, compare: bool = False) -> Read:
    """One reading of the status, with its steps."""
    observe = talk.contract.observe
    assert observe is not None
    ready = await talk.ready("observe", observe.before, observe.request, scope, "result")
    if isinstance(ready, Unsent):
        return Read(None, why=ready.why, elsewhere=ready.elsewhere)
    request, known = ready
    said = await talk.ask(call, request, "result", known)
    if isinstance(said.outcome, NoAnswer):
        return Read(said.seen, delay_ms=said.outcome.wait_ms, why=f"no answer ({said.outcome.word})")
    reading = read_observe(talk.contract, said.outcome, known, said.now, compare=compare)
    said.seen.word = reading.word
    return Read(said.seen, reading, said.outcome, reading.delay_ms, f"{reading.word} ({said.outcome.status})")


async def compared(talk: Talk, job: Job, scope: Scope) -> tuple[bool | None, list[Seen]]:
    """Whether `compare` finds that the job is not the one that `scope` asks for; None if the status could not be read."""
    plainly = await read_once(talk, "observe", replace(scope, phase=job.phase))
    strictly = await read_once(talk, "observe, compared", replace(scope, phase=job.phase), compare=True)
    seen = [one for one in (plainly.seen, strictly.seen) if one is not None]
    if plainly.reading is None or strictly.reading is None or plainly.reading.meaning not in {"going", "held", "terminal"}:
        return None, seen
    return strictly.reading.meaning == "violation", seen


class Watching:
    """The readings of one job."""

    def __init__(self, talk: Talk, findings: Findings, observe: Observe, job: Job) -> None:
        self._talk, self._findings, self._observe, self._job = talk, findings, observe, job
        self._attempt = self._unreadable = 0
        self._done: float | None = None
        self._clock = asyncio.get_running_loop().time

    async def once(self) -> Read:
        """One reading, and what it shows."""
        job = self._job
        self._attempt += 1
        job.reads += 1
        read = await read_once(self._talk, "observe", replace(job.scope, phase=job.phase), compare=job.named_by_exists and not job.seen)
        self._take(read)
        return read

    async def until_ended(self, within: timedelta, *, end: float | None = None) -> bool:
        """Read until the job has ended; False if it has not by then. Waits as an operation does."""
        last = self._clock() + within.total_seconds()
        last = last if end is None else min(last, end)
        delay: int | None = None
        while self._job.ended is None:
            if self._attempt and not await self._talk.pause(self._attempt, delay, end=last):
                return False
            read = await self.once()
            delay = read.delay_ms
            if read.elsewhere or self._gives_up(read):
                return False
        return True

    def _gives_up(self, read: Read) -> bool:
        if self._job.lost is not None:
            return True
        says_nothing = read.reading is None or read.reading.meaning in {"failed", "refused", "violation"}
        self._unreadable = self._unreadable + 1 if says_nothing else 0
        late = not self._job.seen and datetime.now(UTC) - self._job.sent > self._observe.appears_within * LONGER
        over = self._unreadable >= UNREADABLE or (late and self._attempt > LEAST)
        if over and not self._job.seen:
            did = f"{self._attempt} readings, and none shows the job: {read.why}"
            self._findings.say("status.known", "differs", says="the status of a job can be read", did=did, seen=[read.seen])
        return over

    def _take(self, read: Read) -> None:
        reading, job = read.reading, self._job
        if reading is None or read.answer is None:
            if read.seen is None and not job.seen:
                self._findings.say("status.known", "differs", says="the status of a job can be read", did=f"nothing was sent: {read.why}")
            return
        match reading.meaning:
            case "terminal" if not job.seen and read.answer.status in ABSENT:
                self._loses(read, reading, read.answer)
            case "going" | "held" | "terminal":
                self._knows(read)
                self._state(read, reading, read.answer)
                if reading.meaning == "terminal":
                    job.ended, job.observed = reading.verdict, observed_value("observe", read.answer)
            case "not_visible":
                self._invisible(read)
            case "gone":
                self._loses(read, reading, read.answer)
            case "violation":
                compared = job.named_by_exists and not job.seen and not reading.same_differs
                name = "create.compare" if compared else "status.same"
                self._findings.say(name, "differs", says="compare" if compared else "observe.same", did=read.why, seen=[read.seen])
            case _:
                pass

    def _loses(self, read: Read, reading: Reading, answer: Answer) -> None:
        """Answered as if there were no such job. An operation ends its waiting here, and knows of no end."""
        job, before = self._job, self._job.lost
        said = reading.message or reading.reason
        job.lost = f"{reading.word} ({answer.status}{f' {plain(said)}' if said else ''})"
        if before is not None or (job.seen and job.cancelling):
            return
        says = f"appears_within {_shown(self._observe.appears_within)}"
        did = f"the job was answered as {job.lost} at {'the first reading' if job.reads == 1 else f'reading {job.reads}'}, "
        did += f"{_shown(datetime.now(UTC) - job.sent)} after its create; is {plain(job.id)} the id that its address needs?"
        if job.seen:
            says, did = "it stays known", f"a job that was seen is answered as {job.lost}, and nobody cancelled it"
        self._findings.say("status.known", "differs", says=says, did=did, seen=[read.seen])

    def _knows(self, read: Read) -> None:
        job, within = self._job, self._observe.appears_within
        if job.lost is not None and not job.seen:
            did = f"it is known after {_shown(datetime.now(UTC) - job.sent)}: until then, an entry with `phase: fresh` has to make it wait"
            self._findings.say("status.known", "differs", did=did, seen=[read.seen])
        job.lost = None
        if not job.seen:
            took = datetime.now(UTC) - job.sent
            late = job.missed is not None and job.missed - job.sent > within
            mend = Mend("set", ("observe", "appears_within"), _twice(took), f"the job was first shown after {_shown(took)}")
            did = f"known {'at once' if job.reads == 1 else f'after {_shown(took)}'}"
            verdict, says = "differs" if late else "ok", f"appears_within {_shown(within)}"
            self._findings.say("status.known", verdict, says=says, did=did, seen=[read.seen], mends=[mend] if late else [])
            if job.named_by_exists and self._talk.contract.create.compare is not None:
                self._findings.say("create.compare", "ok", says="compare", did="it holds", seen=[read.seen])
        job.seen = True
        if self._observe.same is not None:
            self._findings.say("status.same", "ok", says="observe.same", did="it holds", seen=[read.seen])
        else:
            self._findings.say("status.same", "not_offered", says="no observe.same")

    def _invisible(self, read: Read) -> None:
        began, within = datetime.now(UTC), self._observe.appears_within
        self._job.missed = self._job.missed if self._job.seen else began
        if not self._job.seen and began - self._job.sent > within:
            did = f"not known after {_shown(began - self._job.sent)}"
            self._findings.say("status.known", "differs", says=f"appears_within {_shown(within)}", did=did, seen=[read.seen])

    def _state(self, read: Read, reading: Reading, answer: Answer) -> None:
        word = "held" if reading.meaning == "held" else reading.word
        self._findings.state(reading.remote_state, word)
        if reading.meaning == "held":
            did = f"{plain(reading.remote_state)} is mapped to nothing"
            mends = _entry_for(self._observe, answer, self._job.scope)
            self._findings.say("status.states", "differs", says="observe.states", did=did, seen=[read.seen], mends=mends)
        else:
            self._findings.say(
                "status.states", "ok", says="observe.states", did=f"{plain(reading.remote_state)} is {word}", seen=[read.seen]
            )
        self._progress(read, reading)

    def _progress(self, read: Read, reading: Reading) -> None:
        progress = reading.progress or {}
        done = progress.get("completed", progress.get("percent"))
        if done is None or reading.meaning != "going":
            return
        before, self._done = self._done, float(done)
        if before is None:
            did = f"one value only was shown: {done:g} done"
            self._findings.say("status.progress", "not_tried", says="progress", did=did, seen=[read.seen])
            return
        did = f"{before:g} done, then {done:g}"
        self._findings.say("status.progress", "differs" if done < before else "ok", says="progress", did=did, seen=[read.seen])

    # --- after the end --------------------------------------------------------------------------------------------------

    async def final(self) -> None:
        """Read again what has ended: does it say the same?"""
        ended, observe = self._job.ended, self._observe
        if not observe.terminal_is_final:
            self._findings.say("status.final", "not_offered", says="terminal_is_final: false", did="it may change")
            return
        for attempt in range(1, TERMINAL_READS + 1):
            if not await self._talk.pause(1, None):
                return
            read = await read_once(self._talk, "observe, after the end", replace(self._job.scope, phase=self._job.phase))
            reading = read.reading
            if reading is None or reading.meaning not in {"going", "held", "terminal", "gone"}:
                continue
            same = reading.meaning == "terminal" and reading.verdict == ended
            did = f"{ended}, then {plain(reading.remote_state)} ({reading.word}), at reading {attempt} after the end"
            mends = [] if same else [Mend("set", ("observe", "terminal_is_final"), "false", did)]
            says = "terminal_is_final: true"
            self._findings.say("status.final", "ok" if same else "differs", says=says, did=did, seen=[read.seen], mends=mends)
            if not same:
                return

    async def unknown(self) -> None:
        """A job that there is not, asked for as one that was seen."""
        name, says = "status.unknown", "gone or rejected"
        job = nobodys(self._job.names)
        if job is None:
            self._findings.say(name, "not_tried", says=says, did="another id of this form could be somebody's")
            return
        scope = replace(self._job.scope, job=cast("JsonValue", job), phase="seen")
        read = await read_once(self._talk, "observe a job that there is not", scope)
        if read.reading is None:
            self._findings.say(name, "not_tried", says=says, did=read.why, seen=[read.seen])
            return
        right = read.reading.meaning in {"gone", "refused"}
        mends = [] if right else _gone_entry(read)
        self._findings.say(name, "ok" if right else "differs", says=says, did=f"read as {read.why}", seen=[read.seen], mends=mends)


def _shown(span: timedelta) -> str:
    return f"{span.total_seconds():.3g}s"


def _twice(span: timedelta) -> str:
    """A window that leaves room for a slower day."""
    return f"{math.ceil(span.total_seconds() * 2)}s"


def _gone_entry(read: Read) -> list[Mend]:
    if read.answer is None or read.answer.status not in ABSENT or read.reading is None or read.reading.meaning != "failed":
        return []
    entry = f"{{when: {{status: {read.answer.status}, phase: [seen, cancelling]}}, is: gone}}"
    return [Mend("append", ("observe", "states"), entry, "what the status says of a job that it does not know")]


def _entry_for(observe: Observe, answer: Answer, scope: Scope) -> list[Mend]:
    """An entry for a state that no entry has: where the others look, with the word left to a person."""
    here = answer_scope(answer, scope)
    for key in _keys(observe):
        try:
            value = evaluate(key, here)
        except TooMuch:
            continue
        if isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= 64:
            note = "which word of the language it is, only the provider's documentation tells"
            return [Mend("append", ("observe", "states"), f'{{when: {{{scalar(key)}: {scalar(value)}}}, is: "?"}}', note)]
    return []


def _keys(observe: Observe) -> Mapping[str, None]:
    """The expressions over the body that entries look at, in their order."""
    found: dict[str, None] = {}
    for state in observe.states:
        for key in state.when or {}:
            if "body" in compile_expression(key).roots:
                found.setdefault(key)
    return found
