"""Having the objects of one result, one after another: what is staged is taken as it is, the rest is fetched; each is checked at once.

* The order is the plan's, and the first that can't be had ends it: what is asked for again finds the others staged.
* Together they have the room that the contract leaves a result.
* A `good_for` counts from the answer whose addresses are used. Past it, an answer that says nothing else means that it is gone.
* An address is renewed before it is asked in vain where it is known to be over, and once after it was found to be.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from activities import fetching, paging
from activities.case import Case
from activities.fetching import CHECKS, Errand, Fetched, Rows
from activities.ports import World, staged_below
from activities.stepping import Before, run_before
from domain.answer_matching import DEFAULT
from domain.evidence import Check, Json, Output, StepSeen, bounded, instant_text, object_key
from domain.language.expressions import Scope
from domain.lifecycle import next_step
from domain.reading import Reading
from domain.results.checking import check
from domain.results.expectations import Expectations, expectations, passing
from domain.results.measuring import Measured, Measurer
from domain.results.pieces import Piece, lifetime_s, source_of

_SAYS_NOTHING: Final = frozenset({DEFAULT, "unsure", "rejected"})


@dataclass(frozen=True)
class Kept:
    """An object that is staged and as it should be. `value`: what it holds, if it is JSON that is small enough."""

    piece: Piece
    staging: str
    output: Output
    fetched: Fetched
    value: Json = None


@dataclass(frozen=True)
class Failed:
    """An object that could not be had, or is not as it should be: `problems` say what of it breaks what was promised."""

    fetched: Fetched
    staging: str
    problems: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True)
class Renew:
    """The addresses are over: a new status reading is due."""


class Gathering:
    """One walk over the objects. `renewed`: those whose address was renewed in this attempt; `seen`: the steps that ran."""

    def __init__(self, world: World, case: Case, scope: Scope, staging: str, *, began: datetime | None, renewed: set[str]) -> None:
        self._world, self._case, self._scope, self._staging = world, case, scope, staging
        self._began, self._renewed = began, renewed
        self.seen: list[StepSeen] = []

    async def all(self, pieces: Sequence[Piece], *, look: bool) -> tuple[Kept, ...] | Failed | Before | Renew:
        """All of them, or what came instead. `look`: an earlier attempt may have staged some."""
        kept: list[Kept] = []
        room = self._case.contract.http.limits.result_bytes
        for piece in pieces:
            got = await self._one(piece, room, look=look)
            if not isinstance(got, Kept):
                return self._named(got, piece) if isinstance(got, Failed) and len(pieces) > 1 else got
            kept.append(got if len(pieces) == 1 else replace(got, value=None))
            room -= got.output.size
        return tuple(kept)

    def _named(self, failed: Failed, piece: Piece) -> Failed:
        return replace(failed, problems=tuple(bounded(f"{piece.name}: {problem}") for problem in failed.problems))

    def _place(self, piece: Piece) -> str:
        """Where it is staged. A single output written directly is staged under the key itself."""
        alone = piece.element is None and piece.model is self._case.contract.collect
        return self._staging if alone else staged_below(self._staging, piece.mark)

    async def _one(self, piece: Piece, room: int, *, look: bool) -> Kept | Failed | Before | Renew:
        staging, scope = self._place(piece), piece.scope(self._scope)
        if look and (found := await self._staged(piece, staging)) is not None:
            return await self._checked(piece, scope, staging, found)
        over = self._over(piece, scope)
        if over is not None and self._renewable(piece):
            return Renew()
        if self._late():
            return Failed(Fetched(Reading("again", word="deadline")), staging)
        if piece.model.before and piece.model is not self._case.contract.collect:
            ran = await run_before(self._world, self._case, piece.model.before, scope)
            self.seen += ran.seen
            if ran.stopped is not None:
                return ran
            scope = ran.scope
        fetched = await self._fetched(piece, scope, staging, room)
        if _is_gone(fetched):
            # Another live attempt may have had it meanwhile: what can be fetched once is then here and nowhere else.
            fetched = await self._staged(piece, staging) or fetched
        if (_is_gone(fetched) or fetched.elsewhere) and self._renewable(piece):
            return Renew()
        return await self._checked(piece, scope, staging, _past(fetched, over), over=over)

    def _renewable(self, piece: Piece) -> bool:
        """Whether the address may be renewed now; it is remembered that it was."""
        if piece.model.refresh != "observe" or piece.name in self._renewed:
            return False
        self._renewed.add(piece.name)
        return True

    def _over(self, piece: Piece, scope: Scope) -> datetime | None:
        """Since when it can't be fetched any more, as far as the contract says; None while it can."""
        seconds = None if self._began is None else lifetime_s(piece.model, scope)
        if seconds is None or self._began is None:
            return None
        end = self._began + timedelta(seconds=seconds)
        return end if self._world.clocks.now() >= end else None

    def _late(self) -> bool:
        until = next_step(self._case.standing).until
        return until is not None and self._world.clocks.now() >= until

    async def _fetched(self, piece: Piece, scope: Scope, staging: str, room: int) -> Fetched:
        source = source_of(piece.model, scope)
        if source is None:
            return fetching.problem("no source of the result fits this answer")
        errand = Errand(self._world, self._case, piece.model, source, scope, staging, max(room, 0))
        if source.request is None:
            return await fetching.inline(errand)
        if source.pages is None:
            return await fetching.stream(errand)
        return await paging.pages(errand, afresh=piece.name in self._renewed)

    async def _staged(self, piece: Piece, staging: str) -> Fetched | None:
        """What an earlier attempt sealed, measured again."""
        results = self._world.results
        if await results.staged_size(staging) is None:
            return None
        measurer = Measurer(piece.model.format)
        async for chunk in results.read_staged(staging):
            measurer.feed(chunk)
            await asyncio.sleep(0)
        media, rows = await results.staged_media(staging), await paging.page_rows(self._world, staging)
        return Fetched(Reading("done", word="staged"), measured=measurer.finish(), media=media, page_rows=rows)

    async def _checked(self, piece: Piece, scope: Scope, staging: str, fetched: Fetched, *, over: datetime | None = None) -> Kept | Failed:
        if fetched.problem is not None:
            return Failed(fetched, staging, (fetched.problem,))
        if fetched.measured is None:
            return Failed(self._cut(piece, fetched), staging, self._why(piece, fetched, over))
        measured = fetched.measured
        expected = await self._expected(piece, scope, staging)
        checks = (*await asyncio.to_thread(check, expected, measured, fetched.media), *_rows(fetched.page_rows))
        output = Output(
            name=piece.name, key=self._key(measured), sha256=measured.sha256, size=measured.size, media=_media(piece, scope, fetched),
            records=measured.records, checks=checks,
        )  # fmt: skip
        problems = tuple(f"{one.check}: expected {one.expected}, found {one.found}" for one in checks if one.verdict == "differs")
        if problems:
            return Failed(fetched, staging, problems, (output,))
        return Kept(piece, staging, output, replace(fetched, measured=None), measured.value)

    def _why(self, piece: Piece, fetched: Fetched, over: datetime | None) -> tuple[str, ...]:
        """What we know of why it can't be had, beside what the provider says."""
        if fetched.why is not None:
            return (fetched.why,)
        if _is_gone(fetched) and piece.name in self._renewed:
            return ("a new status reading was made, and by what it shows the result is gone too",)
        return (f"it could be fetched until {instant_text(over)}",) if _is_gone(fetched) and over is not None else ()

    def _cut(self, piece: Piece, fetched: Fetched) -> Fetched:
        """That it was cut ends an output that can be had once, and no other."""
        once = self._case.standing.facts.one_time
        return replace(fetched, cut=fetched.cut and (piece.model.one_time or not once))

    async def _expected(self, piece: Piece, scope: Scope, staging: str) -> Expectations:
        kept = await paging.kept_json(self._world, staged_below(staging, CHECKS)) if passing(piece.model.verify) else None
        return expectations(piece.model, scope) if kept is None else Expectations.from_json(kept)

    def _key(self, measured: Measured) -> str:
        return object_key(self._case.standing.opened.tenant, self._case.record.stream, measured.sha256)


def _is_gone(fetched: Fetched) -> bool:
    return fetched.problem is None and fetched.reading.meaning == "gone"


def _past(fetched: Fetched, over: datetime | None) -> Fetched:
    """Past its lifetime, an answer that says nothing of its own means that it is gone."""
    answered = fetched.http is not None and fetched.http.status is not None
    silent = fetched.problem is None and fetched.reading.meaning in {"again", "refused"} and fetched.reading.word in _SAYS_NOTHING
    if over is None or not answered or not silent or fetched.cut:
        return fetched
    return replace(fetched, reading=replace(fetched.reading, meaning="gone"))


def _rows(found: Rows) -> tuple[Check, ...]:
    """What came of the pages' own counts of rows; one that differed never gets here."""
    return () if found is None else (Check(check="page_records", verdict=found),)


def _media(piece: Piece, scope: Scope, fetched: Fetched) -> str | None:
    """As it came, but for lists of pages, which are kept as lines."""
    source = source_of(piece.model, scope)
    return "application/jsonl" if source is not None and source.pages is not None and source.pages.items else fetched.media
