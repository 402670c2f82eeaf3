"""Creating, and creating again under the same token: with the same bytes at once and late, and with another body.

* Whatever the provider is found to have made is a job of the probe: it is cancelled in the end.
* What is lost, and may have been made, is said.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

from pydantic import JsonValue

from adapters.probing.findings import Findings, Mend, Seen, plain
from adapters.probing.jobs import Job, Left
from adapters.probing.naming import Names
from adapters.probing.settling import Settled, settle
from adapters.probing.talking import Talk, Unsent
from adapters.probing.watching import compared
from domain.answer_matching import answer_scope, observed_value
from domain.language.expressions import Scope
from domain.language.matching import is_met
from domain.language.stages import Token
from domain.reading import Reading
from domain.steps import token_of


class Creating:
    """Everything that asks for a job."""

    def __init__(self, talk: Talk, names: Names, findings: Findings) -> None:
        self._talk, self._names, self._findings = talk, names, findings
        self._contract = talk.contract
        self.jobs: list[Job] = []
        self.unknown: list[Left] = []

    # --- a new job ------------------------------------------------------------------------------------------------------

    async def create(self, generation: int, what: str) -> Job | None:
        """A job under names of its own; None if there is none, which is then said."""
        create, scope = self._contract.create, self._names.scope(generation, "create")
        known = await self._talk.before("create", create.before, scope, "create")
        if isinstance(known, Unsent):
            self._not_taken(known.why, ())
            return None
        if create.token and create.token.source:
            known = replace(known, token=token_of(create.token.source, cast("dict[str, JsonValue]", known.steps)))
        request = await self._talk.made(create.request, known)
        if isinstance(request, Unsent):
            self._not_taken(request.why, ())
            return None
        job = Job(what, known, request, datetime.now(UTC), datetime.now(UTC))
        settled = await settle(self._talk, f"create ({what})", request, known, first=True)
        return await self._taken(job, settled)

    async def _taken(self, job: Job, settled: Settled) -> Job | None:
        """The job that the answer names. An id that is still to be found by a lookup is no difference."""
        reading = settled.reading
        match settled.meaning:
            case "accepted" | "finished" | "unnamed" if reading is not None:
                self._name(job, reading, settled)
                self.jobs.append(job)
                self._findings.say("create.taken", "ok", says=self._says(), did=settled.shown, seen=settled.seen)
                self._replayed(settled, again=False)
                return job
            case _:
                if settled.lost and self._contract.reconcile:
                    self.jobs.append(job)  # a lookup may name it
                elif settled.lost:
                    self.unknown.append(Left(job.what, None, "the answer to its create was lost, so it may be there"))
                elif settled.meaning == "stuck":
                    self.unknown.append(Left(job.what, None, "a 5xx is stored under its token, so it may be there"))
                self._not_taken(settled.shown, settled.seen)
                if not settled.lost:
                    await self._undo(job)
                return job if settled.lost and self._contract.reconcile else None

    def _not_taken(self, why: str, seen: tuple[Seen, ...]) -> None:
        self._findings.say("create.taken", "differs", says=self._says(), did=why, seen=seen)

    def _says(self) -> str:
        taken = {"accepted", "accepted_unnamed", "completed", "failed"}
        return " or ".join(dict.fromkeys(answer.word for answer in self._contract.create.answers if answer.word in taken))

    def _name(self, job: Job, reading: Reading, settled: Settled) -> None:
        job.names, job.last_sent = dict(reading.job), settled.at
        job.named_by_exists = reading.word == "exists"
        job.scope = replace(job.scope, job=cast("JsonValue", job.names) or None)
        if reading.meaning == "finished" and settled.answer is not None:
            job.ended = reading.verdict
            job.observed = observed_value("create", settled.answer)

    async def _undo(self, job: Job) -> None:
        """What steps left is taken back where no create was taken."""
        done = job.scope.steps if isinstance(job.scope.steps, dict) else {}
        for step in reversed(self._contract.create.before):
            if step.undo is not None and step.step in done:
                request = await self._talk.made(step.undo, replace(job.scope, call_id=f"{job.scope.call_id}.undo"))
                if not isinstance(request, Unsent):
                    await self._talk.ask(f"create.before.{step.step}.undo", request, "create", job.scope)

    # --- the same token again -------------------------------------------------------------------------------------------

    async def again(self, job: Job) -> bool:
        """The same bytes at once: is it the same job? True if the token is honoured."""
        token = self._contract.create.token
        if token is None:
            for name in ("create.token", "create.replayed", "create.other_body", "create.window"):
                self._findings.say(name, "not_offered", says="token: none", did="nothing is sent again")
            return False
        if job.id is None:
            self._findings.say("create.token", "not_tried", says=self._says_token(token), did="no id to compare")
            return False
        settled = await settle(self._talk, "create again", job.request, job.scope)
        honoured = self._same(job, settled, "create.token", self._says_token(token))
        if honoured:
            self._replayed(settled, again=True)
            job.last_sent = settled.at
            await self._alike(job, settled)
        return honoured

    async def _alike(self, job: Job, settled: Settled) -> None:
        """What `exists` names is compared with what was asked for, as an operation would that adopts it."""
        create = self._contract.create
        if settled.reading is None or settled.reading.word != "exists" or create.compare is None or self._contract.observe is None:
            return
        differs, seen = await compared(self._talk, job, job.scope)
        if differs is not None:
            did = "it does not hold for the job that was asked for" if differs else "it holds for the job that was asked for"
            self._findings.say("create.compare", "differs" if differs else "ok", says="exists, and compare", did=did, seen=seen)

    def _says_token(self, token: Token) -> str:
        return f"a token of window {'unstated' if token.window is None else _seconds(token.window)}"

    def _same(self, job: Job, settled: Settled, name: str, says: str, mends: tuple[Mend, ...] | None = None) -> bool:
        """Whether the answer to a repeated create is about the same job."""
        none = Mend("set", ("create", "token"), "none", "then ${token} has to leave the request, and a lost answer is for reconcile")
        mended = (none,) if mends is None else mends
        reading = settled.reading
        match settled.meaning:
            case "accepted" | "finished" if reading is not None and "id" in reading.job:
                other = str(reading.job["id"])
                if other == job.id:
                    self._findings.say(name, "ok", says=says, did=f"the same job: {settled.shown}", seen=settled.seen)
                    return True
                self._further(job, reading, settled, f"made by the repeated request ({name})")
                self._findings.say(name, "differs", says=says, did=f"another job, {plain(other)}", seen=settled.seen, mends=mended)
            case "accepted" | "finished" | "refused" | "violation" | "stuck":
                self._findings.say(name, "differs", says=says, did=settled.shown, seen=settled.seen, mends=mended)
            case _:
                if settled.lost:
                    self.unknown.append(Left(f"made by the repeated request ({name})", None, "its answer was lost, so it may be there"))
                self._findings.say(name, "not_tried", says=says, did=settled.shown, seen=settled.seen)
        return False

    def _further(self, job: Job, reading: Reading, settled: Settled, what: str) -> None:
        """A job that should not be."""
        further = Job(what, job.scope, job.request, settled.at, settled.at)
        self._name(further, reading, settled)
        self.jobs.append(further)

    def _replayed(self, settled: Settled, *, again: bool) -> None:
        """Whether `token.replayed` tells a stored answer from a first one."""
        token = self._contract.create.token
        if token is None or settled.answer is None:
            return
        if token.replayed is None:
            self._findings.say("create.replayed", "not_offered", says="no token.replayed")
            return
        held = is_met(token.replayed, answer_scope(settled.answer, Scope()))
        if again or held or len(settled.seen) > 1:
            did = f"it {'holds' if held else 'does not hold'} for {'a repeated' if again else 'a first'} request"
            right = held == again or (not again and len(settled.seen) > 1)
            self._findings.say("create.replayed", "ok" if right else "differs", says="token.replayed", did=did, seen=settled.seen)

    async def with_another_body(self, job: Job) -> None:
        """Another body under the same token, once."""
        name, other = "create.other_body", self._names.asked.other
        says = "one token serves one body"
        if other is None:
            self._findings.say(name, "not_tried", says=says, did="no other input for the same address; --other gives one")
            return
        scope = replace(job.scope, input=other)
        request = await self._talk.made(self._contract.create.request, scope)
        if isinstance(request, Unsent) or request.url != job.request.url or request.body == job.request.body:
            self._findings.say(name, "not_tried", says=says, did="--other gives no other body for the same address")
            return
        settled = await settle(self._talk, "create with another body", request, scope)
        reading = settled.reading
        match settled.meaning:
            case "violation" | "refused":
                self._findings.say(name, "ok", says=says, did=f"refused: {settled.shown}", seen=settled.seen)
            case "accepted" | "finished" if reading is not None and reading.job.get("id") == job.id:
                await self._told_apart(job, scope, settled, says)
            case "accepted" | "finished" | "unnamed" | "stuck":
                if reading is not None and "id" in reading.job:
                    self._further(job, reading, settled, "made by another body under the same token")
                self._findings.say(name, "differs", says=says, did=f"it is taken as new: {settled.shown}", seen=settled.seen)
            case _:
                if settled.lost:
                    self.unknown.append(Left("made by another body under the same token", None, "its answer was lost, so it may be there"))
                self._findings.say(name, "not_tried", says=says, did=settled.shown, seen=settled.seen)

    async def _told_apart(self, job: Job, scope: Scope, settled: Settled, says: str) -> None:
        """The same job for another body: then `compare` has to find out that it is not what was asked for."""
        name, reading = "create.other_body", settled.reading
        if reading is None or reading.word != "exists" or self._contract.create.compare is None or self._contract.observe is None:
            did = "the same job, as if it had been asked for: nothing tells that the body is another"
            self._findings.say(name, "differs", says=says, did=did, seen=settled.seen)
            return
        differs, seen = await compared(self._talk, job, scope)
        if differs is None:
            self._findings.say(name, "not_tried", says="compare", did="the status could not be read", seen=[*settled.seen, *seen])
            return
        did = "the job of the first body, which `compare` tells apart" if differs else "the job of the first body, and `compare` holds"
        self._findings.say(name, "ok" if differs else "differs", says="exists, and compare", did=did, seen=[*settled.seen, *seen])

    async def late(self, job: Job, honoured: bool) -> None:
        """The same bytes again, now that the job has ended and some time has passed."""
        token = self._contract.create.token
        if token is None or not honoured:
            return
        held, now = job.last_sent - job.sent, datetime.now(UTC)
        if now - job.sent > token.lasts:
            self._findings.say("create.window", "not_tried", says=self._says_token(token), did="the window is over by now")
            return
        settled = await settle(self._talk, "create again, late", job.request, job.scope)
        shorter = f"{max(1, int(held.total_seconds()))}s"
        note = f"the token was honoured after {_seconds(held)} and not after {_seconds(now - job.sent)}"
        mend = Mend("set", ("create", "token", "window"), shorter, note)
        says = f"{self._says_token(token)}; tried after {_seconds(now - job.sent)}"
        self._same(job, settled, "create.window", says, (mend,))


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g}s"
