"""Having the result as an operation would, measured while it passes, and held against what the provider says of it.

* Nothing is stored. What is verified is what the contract verifies; what the provider offers beside that is advice.
* Of a result with many objects the first few are fetched.
"""

import asyncio
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from adapters.probing.fetching import Fetching, Had, at
from adapters.probing.findings import Findings, Mend
from adapters.probing.jobs import Job
from adapters.probing.talking import Talk, Unsent
from domain.exchange import NoAnswer
from domain.language.calls import Source
from domain.language.expressions import Scope
from domain.language.stages import ONE_OUTPUT, Collect
from domain.paging import page_root
from domain.reading import read_collect
from domain.results.checking import check
from domain.results.expectations import count_of, digest_of
from domain.results.pieces import Piece, plan, source_of

OBJECTS: Final = 5
TELLING: Final = 100
"""A smaller number than this may stand in an answer for anything."""


class Collecting:
    """The results of one probe."""

    def __init__(self, talk: Talk, findings: Findings, collect: Collect) -> None:
        self._talk, self._findings, self._collect = talk, findings, collect
        self._fetching = Fetching(talk)
        self._contract = talk.contract

    async def job(self, job: Job) -> None:
        """The result of a job that has ended, where its end leaves one."""
        scope = replace(job.scope, observed=job.observed, call_id=f"{job.scope.call_id}.collect", phase=None)
        known = await self._talk.before("collect", self._collect.before, scope, "collect")
        says = f"a result after {', '.join(self._collect.after)}"
        if isinstance(known, Unsent):
            self._findings.say("result.there", "differs", says=says, did=known.why)
            return
        found = await asyncio.to_thread(plan, self._collect, known)
        if found.problem is not None:
            self._findings.say("result.there", "differs", says=says, did=found.problem, seen=[self._findings.newest])
            return
        if not found.pieces:
            self._findings.say("result.there", "not_offered", says=says, did=f"nothing for {', '.join(found.empty)}")
        for piece in found.pieces[:OBJECTS]:
            await self._piece(piece, known, job)

    async def _piece(self, piece: Piece, scope: Scope, job: Job) -> None:
        scope = piece.scope(scope)
        if piece.model is not self._collect:
            known = await self._talk.before(f"collect.{piece.name}", piece.model.before, scope, "collect")
            if isinstance(known, Unsent):
                self._findings.say("result.there", "differs", did=f"{piece.name}: {known.why}")
                return
            scope = known
        source = source_of(piece.model, scope)
        if source is None:
            self._findings.say(
                "result.there", "differs", says="one of the sources fits", did=f"{piece.name}: none does", seen=[self._findings.newest]
            )
            return
        had = await self._fetching.had(piece, source, scope)
        if had.measured is None:
            verdict = "not_tried" if had.cut else "differs"
            self._findings.say("result.there", verdict, says="done", did=f"{piece.name}: {had.why}", seen=had.seen)
            if had.pages is not None:
                self._findings.say("result.pages", "differs", says="pages", did=had.pages, seen=had.seen)
            return
        self._findings.say("result.there", "ok", says="done", did=f"{piece.name}: {had.measured.size} bytes", seen=had.seen)
        if source.pages is not None:
            verdict, did = ("ok", "they come to an end") if had.pages is None else ("differs", had.pages)
            self._findings.say("result.pages", verdict, says="pages", did=did, seen=had.seen)
        else:
            self._findings.say("result.pages", "not_offered", says="no pages")
        self._checked(piece, had)
        if job.observed is not None:
            self._offered(piece, had, job.observed)
        await self._again(piece, source, scope)

    # --- what was had ---------------------------------------------------------------------------------------------------

    def _checked(self, piece: Piece, had: Had) -> None:
        """Each check of the contract, as an operation makes it."""
        assert had.measured is not None
        assert had.expected is not None
        for one in check(had.expected, had.measured, had.media):
            name = f"result.{one.check}"
            says = "collect.format" if one.check == "format" else f"verify.{one.check}"
            if one.verdict == "differs":
                did = f"{piece.name}: expected {one.expected}, found {one.found}"
                self._findings.say(name, "differs", says=says, did=did, seen=had.seen, mends=self._without(piece, one.check))
            elif one.verdict == "ok":
                self._findings.say(name, "ok", says=says, did=f"{piece.name}: {one.found}", seen=had.seen)
            else:
                self._findings.say(name, "not_offered", says=says, did=f"{piece.name}: no value to compare with")

    def _path(self, piece: Piece) -> tuple[str, ...]:
        return ("collect",) if piece.output == ONE_OUTPUT and not self._collect.outputs else ("collect", "outputs", piece.output)

    def _without(self, piece: Piece, key: str) -> list[Mend]:
        verify, path = piece.model.verify, self._path(piece)
        if key == "format":
            return [Mend("set", (*path, "format"), "binary", "what the result is, only the provider's documentation tells")]
        if verify is None or key not in _KEYS:
            return []
        note = "only if the difference is the contract's mistake: without it, a wrong result is taken for the right one"
        mends = [Mend("drop", (*path, "verify", key), note=note)]
        if key in verify.required:
            left = ", ".join(name for name in verify.required if name != key)
            mends.append(Mend("set", (*path, "verify", "required"), f"[{left}]"))
        return mends

    def _offered(self, piece: Piece, had: Had, observed: JsonValue) -> None:
        """What the provider states of the result and the contract does not verify."""
        assert had.measured is not None
        verify, measured = piece.model.verify, had.measured
        wanted = {"sha256": measured.sha256, "bytes": measured.size, "records": measured.records}
        for key, value in wanted.items():
            if piece.element is not None or value is None or (verify is not None and key in verify.model_fields_set):
                continue
            places = [path for path, leaf in _leaves(observed, "observed") if _states(key, leaf, value)]
            if len(places) == 1:
                text = f'"${{{places[0]}}}"'
                note = f"the answer that ended the job states it at {places[0]}"
                if verify is None:
                    self._findings.advice.append(Mend("add", (*self._path(piece), "verify"), f"{{{key}: {text}}}", note))
                else:
                    self._findings.advice.append(Mend("add", (*self._path(piece), "verify", key), text, note))

    async def _again(self, piece: Piece, source: Source, scope: Scope) -> None:
        """Only the head of a second answer is looked at."""
        if piece.model.one_time or self._collect.one_time:
            self._findings.say("result.again", "not_offered", says="one_time: true", did="it is fetched once")
            return
        if source.request is None:
            self._findings.say("result.again", "not_offered", says="the result stands in an answer")
            return
        here = replace(scope, page=page_root(0)) if source.pages else scope
        request = await self._talk.made(source.request, here, accept="*/*")
        if isinstance(request, Unsent):
            return
        async with self._talk.fetch("collect again", request, total_s=self._fetching.total_s()) as (seen, streamed):
            head = streamed.answer
            if isinstance(head, NoAnswer):
                return
        meaning = read_collect(self._contract, source, head, here, at(seen)).meaning
        gone = head.status in (403, 404, 410) or meaning == "gone"
        path = self._path(piece) if piece.model.one_time is False else ("collect",)
        mends = [Mend("set", (*path, "one_time"), "true", "a second request is refused")] if gone else []
        verdict = "differs" if gone else "ok" if 200 <= head.status < 300 else "not_tried"
        self._findings.say("result.again", verdict, says="one_time: false", did=f"{piece.name}: {head.status}", seen=[seen], mends=mends)


_KEYS: Final = frozenset({"content_type", "bytes", "sha256", "records", "schema"})


def _states(key: str, leaf: JsonValue, value: str | int) -> bool:
    if key == "sha256":
        return digest_of(leaf) == value
    return isinstance(value, int) and value >= TELLING and count_of(leaf) == value


def _leaves(value: JsonValue, path: str) -> list[tuple[str, JsonValue]]:
    match value:
        case dict():
            return [found for name, item in value.items() if name.replace("_", "a").isalnum() for found in _leaves(item, f"{path}.{name}")]
        case list():
            return []
        case _:
            return [(path, value)]
