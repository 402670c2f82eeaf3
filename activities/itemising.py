"""What an ended job came to, item by item: the stored outputs are read once more, and held against what was submitted.

* Read from the result store and not on the way in: an attempt that finds its outputs staged counts them like any other.
* Reading and counting are work of the processor: they are done off the loop, a piece at a time.
* Every item that did not succeed is written to one object of its own, published like an output before any record names it.
  It follows from the outputs alone: after a crash it is simply made again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from activities.case import Case
from activities.ports import Staged, World
from domain.counts import Outcome, named_counts, whole_number
from domain.errors import NotFound
from domain.evidence import Json, Output, file_key, object_key
from domain.files import format_of
from domain.jsontext import NotReadable
from domain.language.calls import Submitted
from domain.language.expressions import Scope, first_value
from domain.language.functions import TooMuch
from domain.results.item_keys import Keys
from domain.results.item_records import Records, record_format
from domain.results.itemising import MAX_ITEMS, ItemCounter, SubmittedKeys
from domain.results.measuring import Measurer
from domain.results.outcomes import ProviderCounts, Said, SubmittedFacts, Weighed, explained, weigh

LIST_NAME: Final = "failed-items"
LIST_MEDIA: Final = "application/jsonl"
KILLED: Final = 8
"""Attempts before this one of which a list may have stayed behind, if they were killed while they counted."""


@dataclass(frozen=True)
class Held:
    """One sealed staged object. `output`: the contract's name of the output, of which there may be several objects."""

    output: str
    staging: str


@dataclass(frozen=True)
class Itemised:
    """What a result outcome says of the items."""

    outcome: Outcome
    items: dict[str, Json] | None
    disagrees: bool
    failed_items: Output | None = None

    def fields(self) -> dict[str, object]:
        """The fields of a `ResultOutcome`."""
        return {"outcome": self.outcome, "items": self.items, "disagrees": self.disagrees, "failed_items": self.failed_items}


async def itemise(world: World, case: Case, scope: Scope, held: Sequence[Held] = (), *, staging: str = "") -> Itemised:
    """What the job came to. `held`: its outputs, whole and checked; none where there is no result."""
    items = case.contract.collect.items if case.contract.collect else None
    if items is None:
        return _itemised(weigh(_said(case), _counts(case)))
    submitted = _Submission(world, case, items.submitted, scope)
    await submitted.note()
    counter = ItemCounter(items.read, scope, submitted.keys)
    # Of its own for each attempt: of two that are alive at once, neither writes into the other's list.
    attempt = case.standing.collect_attempts
    places = f"{staging or f'{case.record.stream}/{case.record.seq}'}-{LIST_NAME}"
    place = f"{places}-{attempt}"
    measurer = Measurer("binary")
    async with world.results.stage(place) as staged:
        facts = await _count(world, case, counter, submitted, held, _writing(counter, measurer, staged))
        if counter.tally.listed:
            await staged.seal(LIST_MEDIA)
    for before in range(max(0, attempt - KILLED), attempt):
        await world.results.discard(f"{places}-{before}")
    weighed = weigh(_said(case), _counts(case), counter.tally, facts)
    if not counter.tally.listed:
        return _itemised(weighed)
    measured = measurer.finish()
    key = object_key(case.standing.opened.tenant, case.record.stream, measured.sha256)
    await world.results.publish(place, key)
    await world.results.discard(place)
    listed = Output(
        name=LIST_NAME, key=key, sha256=measured.sha256, size=measured.size, media=LIST_MEDIA, records=counter.tally.listed
    )  # fmt: skip
    return _itemised(weighed, listed)


def _itemised(weighed: Weighed, failed_items: Output | None = None) -> Itemised:
    return Itemised(weighed.outcome, weighed.items, weighed.disagrees, failed_items)


def _said(case: Case) -> Said:
    verdict = case.standing.verdict
    if verdict is None:
        return "succeeded"
    return "ended" if verdict.undecided else verdict.verdict


def _counts(case: Case) -> ProviderCounts:
    observe, standing = case.contract.observe, case.standing
    stated = named_counts(observe.counts) if observe and observe.counts else ()
    return ProviderCounts(standing.counts, stated, standing.counts_problem)


def _writing(counter: ItemCounter, measurer: Measurer, staged: Staged) -> Callable[[], Awaitable[None]]:
    """Write down what was listed since the last time."""

    async def write() -> None:
        if lines := counter.lines():
            measurer.feed(lines)
            await staged.write(lines)

    return write


async def _count(
    world: World, case: Case, counter: ItemCounter, submitted: "_Submission", held: Sequence[Held], write: Callable[[], Awaitable[None]]
) -> SubmittedFacts:
    """Every record of every output that has items, and then what never came back."""
    collect = case.contract.collect
    assert collect is not None
    for one in held:
        format = record_format(collect.every[one.output].format)
        if one.output not in counter.outputs or format is None:
            continue
        sink = counter.open(one.output, format)
        async for chunk in world.results.read_staged(one.staging):
            await asyncio.to_thread(sink.feed, chunk)
            await write()
        await asyncio.to_thread(sink.finish)
        await write()
    if submitted.keys is not None:
        counter.tally.missing = submitted.keys.absent
        word = "unprocessed" if explained(counter.tally, submitted.facts, _counts(case)) else "missing"
        async for keys in submitted.missing():
            for key in keys:
                counter.listing(key, word)
            await write()
    return submitted.facts


class _Submission:
    """What was submitted: a stored file, or a number."""

    def __init__(self, world: World, case: Case, submitted: Submitted, scope: Scope) -> None:
        self._world, self._case, self._submitted, self._scope = world, case, submitted, scope
        self._file = case.standing.opened.files.get(submitted.file) if submitted.file else None
        self._noted = SubmittedKeys(submitted.key, scope, case.asked.salt)
        self.facts = SubmittedFacts()

    @property
    def keys(self) -> Keys | None:
        """The keys to compare with; None where they are not compared."""
        return self._noted.keys

    async def note(self) -> None:
        """Count what was submitted, and note its keys."""
        noted = self._noted
        if self._submitted.file is None:
            self.facts = SubmittedFacts(submitted_number(self._submitted, self._scope))
        elif noted.keys is None and self._file is not None and self._file.records is not None:
            self.facts = SubmittedFacts(self._file.records)
        else:
            problems: list[str] = []
            try:
                async for records in self._records():
                    await asyncio.to_thread(noted.note, records)
            except (NotFound, NotReadable) as error:
                noted.keys = None
                problems.append(f"the submitted file can't be read again: {error}")
            if noted.keys is not None:
                await asyncio.to_thread(noted.keys.close)
            elif self._submitted.key and not problems:
                problems.append(f"there are more than {MAX_ITEMS} submitted items: their keys were not compared")
            items = noted.records if not problems or noted.records > MAX_ITEMS else None
            self.facts = SubmittedFacts(items, noted.keys.doubles if noted.keys else 0, noted.unkeyed, problems)

    async def missing(self) -> AsyncIterator[list[str]]:
        """The keys that never came back, a few at a time. Read again only if there are any."""
        if self.keys is None or not self.keys.absent:
            return
        async for records in self._records():
            yield await asyncio.to_thread(self._noted.missing, records)

    async def _records(self) -> AsyncIterator[Iterator[JsonValue]]:
        """The records of the file, a piece of it at a time. Raises NotFound, NotReadable."""
        name, opened = self._submitted.file, self._case.standing.opened
        format = record_format(format_of(self._case.contract.files[name].media)) if name else None
        if self._file is None or format is None:
            raise NotFound("it was not kept")
        records = Records(format)
        async for chunk in self._world.results.read(file_key(opened.tenant, self._file.sha256)):
            yield records.feed(chunk)
        yield records.finish()


def submitted_number(submitted: Submitted, scope: Scope) -> int | None:
    """How many the contract says were submitted."""
    try:
        value = first_value(submitted.count, scope)
    except TooMuch:
        return None
    return whole_number(value)
