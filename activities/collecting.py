"""Fetching, verifying and keeping a result: one object, or several.

* The intent with its staging key is recorded first; a later attempt looks at staging before the network, so that a one-time
  result is never lost to a crash, and what is staged is not fetched again.
* Bytes are hashed, counted and checked on the way, never held whole. What is not verified is never visible.
* What the provider did not offer to check is said in the record. Our own SHA-256, size and count are always there.
* All objects are verified before the first is published: a result is there whole, or not at all.
* Publishing comes before the record says `verified`, and staging is forgotten after it: any crash between is repeated harmlessly, and
  what the crash left staged is forgotten by the attempt that finds nothing more to do.
* An address that has expired is renewed by a status reading, once for each object and attempt. That reading stands under the rules of
  observing: it may contradict the verdict, and then it is a violation and no renewal.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, cast

from activities.case import Case, call_id
from activities.fetching import Fetched
from activities.gathering import Failed, Gathering, Kept, Renew
from activities.itemising import Held, Itemised, itemise
from activities.loading import needed
from activities.observing import read_status
from activities.owning import append_as_owner, append_fact
from activities.ports import World
from activities.recording import observed_root, words_of
from activities.stepping import UNRENDERABLE, Before, run_before
from activities.waiting import again
from domain.evidence import Check, Evidence, Intent, Json, Output, ResultOutcome, StepOutcome, StepSeen, Words, instant
from domain.language.expressions import Scope
from domain.language.matching import is_met
from domain.language.stages import Collect
from domain.lifecycle import next_step
from domain.needs import ANSWER
from domain.results.pieces import Plan, plan
from domain.standing import Standing

MAX_STEPS_SAID: Final = 50
"""Steps of one attempt that its entry tells of."""


async def collect(world: World, case: Case, *, turn: int) -> Case:
    """One attempt to have the result."""
    wanted = case.contract.collect
    attempt = _Attempt(world, case, turn)
    if wanted is None:
        await attempt.none()
    else:
        while await attempt.goes_on(wanted):
            pass
    return attempt.case


async def tidy(world: World, case: Case) -> None:
    """Forget what is staged for an operation that has ended: whoever ended it may have died before he could."""
    if case.standing.final and case.standing.staging is not None:
        await world.results.discard(case.standing.staging)


class _Attempt:
    """One attempt: begun anew each time that a reading has renewed the addresses."""

    def __init__(self, world: World, case: Case, turn: int) -> None:
        self._world, self._turn = world, turn
        self.case = case
        self._begun = case.standing.staging is not None
        self._renewed: set[str] = set()
        self._seen: list[StepSeen] = []
        self._intended = False

    async def none(self) -> None:
        """The contract says that success has no result."""
        await self._say("none", itemised=await itemise(self._world, self.case, _known(self.case)))

    async def goes_on(self, wanted: Collect) -> bool:
        """Try; true if the addresses were renewed and it is to be tried again."""
        scope = await _scope(self._world, self.case, wanted)
        if wanted.before:
            if not await self._intend():
                return False
            ran = await run_before(self._world, self.case, wanted.before, scope)
            self._seen += ran.seen
            if ran.stopped is not None:
                await self._stopped(ran)
                return False
            scope = ran.scope
        found = await asyncio.to_thread(plan, wanted, scope)
        if found.problem is not None:
            # That it can't be said what the result is says nothing against what is staged, which may be had once only.
            await self._say("invalid", problems=[found.problem], kept=True)
        elif not found.pieces:
            await self._say("empty", itemised=await itemise(self._world, self.case, scope), empty=found.empty)
        elif await self._intend():
            return await self._gather(wanted, found, scope)
        return False

    async def _gather(self, wanted: Collect, found: Plan, scope: Scope) -> bool:
        staging = self.case.standing.staging
        assert staging is not None
        gathering = Gathering(self._world, self.case, scope, staging, began=_addresses_of(self.case, wanted), renewed=self._renewed)
        got = await gathering.all(found.pieces, look=self._begun)
        self._seen += gathering.seen
        self._begun = True
        match got:
            case Renew():
                return await self._renew()
            case Failed():
                await self._failed(got, several=len(found.pieces) > 1)
            case Before():
                await self._stopped(got)
            case kept:
                await self._all_there(wanted, found, kept, scope, staging)
        return False

    async def _renew(self) -> bool:
        """A new status reading. Whatever else it says than the verdict is recorded by it, and ends this attempt."""
        before = self.case.standing.renewed
        self.case = await read_status(self._world, self.case, turn=self._turn)
        after = self.case.standing.renewed
        due = next_step(self.case.standing).name == "collect"
        if due and after == before and self.case.standing.next_at is None:
            # Another end than the first, where the contract lets it be one: nothing says when to ask again.
            await self._say("again", problems=["a new status reading was made, and it does not show the end that was seen first"])
        return due and after is not None and after != before

    async def _intend(self) -> bool:
        """Record the staging key; the same one for every attempt, so that what was sealed is found again."""
        if self._intended:
            return True
        case = self.case
        staging = case.standing.staging or f"{case.record.stream}/{case.record.seq}"
        intent = Intent(
            at=instant(self._world.clocks.now()), actor=self._world.identity, meaning="collect", attempt=case.standing.collect_attempts + 1,
            staging=staging,
        )  # fmt: skip

        def decide(standing: Standing) -> Sequence[Evidence]:
            return [intent] if next_step(standing).name == "collect" else []

        self.case = case.at(await append_as_owner(self._world, case.record.stream, decide, turn=self._turn))
        self._intended = next_step(self.case.standing).name == "collect" and self.case.standing.staging is not None
        return self._intended

    async def _all_there(self, wanted: Collect, found: Plan, kept: Sequence[Kept], scope: Scope, staging: str) -> None:
        """Every object is staged and right: is the whole? Then it is published, and said to be verified."""
        outputs = tuple(one.output for one in kept)
        checks: tuple[Check, ...] = ()
        problems: list[str] = []
        if wanted.expect is not None:
            facts = replace(scope, outputs=_facts(kept), result=kept[0].value, counts=cast("Json", self.case.standing.counts))
            right = await asyncio.to_thread(is_met, wanted.expect, facts)
            checks = (Check(check="expect", verdict="ok" if right else "differs", expected="as the contract says"),)
            problems = [] if right else ["expect: the result is not as the contract expects"]
        if len(kept) == 1:
            outputs, checks = (outputs[0].model_copy(update={"checks": (*outputs[0].checks, *checks)}),), ()
        if problems:
            await self._say("invalid", problems=problems, outputs=outputs, checks=checks, discard=staging)
            return
        held = [Held(one.piece.output, one.staging) for one in kept]
        itemised = await itemise(self._world, self.case, scope, held, staging=staging)
        for one in kept:
            await self._world.results.publish(one.staging, one.output.key)
        last = kept[-1].fetched
        await self._say("verified", itemised=itemised, fetched=last, outputs=outputs, checks=checks, empty=found.empty, discard=staging)

    async def _failed(self, failed: Failed, *, several: bool) -> None:
        """What could not be had, or is wrong. Where there are several, what is right stays staged for the next attempt."""
        fetched = failed.fetched
        if fetched.problem is not None or fetched.measured is not None:
            discard = failed.staging if several else self.case.standing.staging
            await self._say(
                "invalid", problems=failed.problems, outputs=failed.outputs, fetched=fetched, kept=several, discard=discard
            )  # fmt: skip
            return
        meaning = {"done": "again"}.get(fetched.reading.meaning, fetched.reading.meaning)
        await self._say(meaning, problems=failed.problems, fetched=fetched)

    async def _stopped(self, before: Before) -> None:
        """A step was not done: nothing was learned of the result."""
        step = before.stopped
        assert step is not None
        if step.word == UNRENDERABLE:  # as an address of the result itself: asking again makes no other of it
            await self._say("invalid", problems=[f"nothing was sent: step {step.step}: {step.words.message}"], kept=True)
            return
        at, seen = instant(self._world.clocks.now()), tuple(self._seen[-MAX_STEPS_SAID:])
        common: dict[str, object] = {"at": at, "actor": self._world.identity, "word": before.word, "http": step.http, "words": step.words}
        if step.meaning == "violation":
            fact = StepOutcome.model_validate(common | {"meaning": "violation", "step": step.step, "violation": step.violation})
        else:
            next_at = again(self.case, "collect", at, step.delay_ms)
            fact = ResultOutcome.model_validate(common | {"meaning": step.meaning, "next_at": next_at, "before": seen})
        self.case = self.case.at(await append_fact(self._world, self.case, fact, turn=self._turn))

    async def _say(
        self,
        meaning: str,
        *,
        itemised: Itemised | None = None,
        fetched: Fetched | None = None,
        discard: str | None = None,
        **said: object,
    ) -> None:
        """Record what came of it; then forget what nobody will ask for again."""
        fact = _outcome(self._world, self.case, meaning, itemised, fetched, {"before": tuple(self._seen[-MAX_STEPS_SAID:]), **said})
        record = await append_fact(self._world, self.case, fact, turn=self._turn)
        if discard is not None and _done_with(record.standing, fact):
            await self._world.results.discard(discard)
        self.case = self.case.at(record)


def _done_with(after: Standing, fact: ResultOutcome) -> bool:
    """Nobody will ask for what is staged again.

    What is gone at the provider may be on its way to another live attempt. What is verified after that one was believed
    (a note) is here and nowhere else, until a human has it collected again. Objects are compared by their keys: of names and media types
    the record may hide a part.
    """
    return fact.meaning == "invalid" or (fact.meaning == "verified" and _keys(after.outputs) == _keys(fact.outputs))


def _keys(outputs: Sequence[Output]) -> list[str]:
    return [output.key for output in outputs]


def _known(case: Case, observed: Json = None) -> Scope:
    return case.scope(call_id=call_id(case.record.stream, "collect", case.standing.collect_attempts + 1), observed=observed)


async def _scope(world: World, case: Case, wanted: Collect) -> Scope:
    """What templates know once the job has ended; of two answers that say so the newer one, where addresses may be renewed."""
    verdict, renewed = case.standing.verdict, case.standing.renewed if _renewable(wanted) else None
    kept = renewed.observed if renewed is not None else verdict.observed if verdict is not None else None
    return _known(case, None if kept is None else observed_root(await needed(world.ledger, kept.digest, ANSWER)))


def _addresses_of(case: Case, wanted: Collect) -> datetime | None:
    """When the reading began that the addresses are of."""
    verdict, renewed = case.standing.verdict, case.standing.renewed if _renewable(wanted) else None
    return renewed.began if renewed is not None else verdict.began if verdict is not None else None


def _renewable(wanted: Collect) -> bool:
    return any(output.refresh == "observe" for output in wanted.every.values())


def _facts(kept: Sequence[Kept]) -> dict[str, Json]:
    """What `expect` knows of each output: of one with several objects, their sums."""
    facts: dict[str, Json] = {}
    for name in dict.fromkeys(one.piece.output for one in kept):
        outputs = [one.output for one in kept if one.piece.output == name]
        records = [output.records for output in outputs]
        facts[name] = {
            "bytes": sum(output.size for output in outputs),
            "records": None if None in records else sum(count for count in records if count is not None),
            "sha256": outputs[0].sha256 if len(outputs) == 1 else None,
        }
    return facts


def _outcome(
    world: World, case: Case, meaning: str, itemised: Itemised | None, fetched: Fetched | None, said: Mapping[str, object]
) -> ResultOutcome:
    at = instant(world.clocks.now())
    return ResultOutcome.model_validate(
        {
            "at": at,
            "actor": world.identity,
            "meaning": meaning,
            "word": fetched.reading.word if fetched else "default",
            "cut": fetched.cut if fetched else False,
            "http": fetched.http if fetched else None,
            "words": words_of(fetched.reading) if fetched else Words(),
            "next_at": again(case, "collect", at, fetched.reading.delay_ms if fetched else None),
            **(itemised.fields() if itemised else {}),
            **said,
        }
    )
