"""A large result costs no more memory in pages than in one piece, and what an earlier version staged is taken as it is."""

import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from activities.ports import Provider
from activities.provider import ProviderActivities
from domain.exchange import Answer, CallPolicy, Exchange, Fault, Request
from domain.messages import StepInput
from tests.workflows.dying import collecting, die_after, go_on
from tests.workflows.stage import REPORT, acting_for, stage, variant

MIB = 1024 * 1024
PAGES, PAGE = 24, 4 * MIB
AT_MOST = 48 * MIB
"""Half of the whole. A store whose disk is slow has up to four parts of 8 MiB under way and gathers the next; a quick one has one."""
CHUNK = b"one line of a text that has many\n" * 2048


class LargePage:
    """One page of a large text, made while it is read."""

    fault: Fault | None = None

    def __init__(self, number: int) -> None:
        more = (("x-next", str(number + 1)),) if number + 1 < PAGES else ()
        self.answer = Answer(200, (("content-type", "text/plain"), *more))
        self.began = datetime.now(UTC)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Lines, a few thousand at a time."""
        for first in range(0, PAGE, len(CHUNK)):
            yield CHUNK[: PAGE - first]

    def masked(self, body: bytes) -> bytes:
        """Nothing to hide."""
        return body


class LargePages:
    """A provider whose result comes in large pages."""

    def __init__(self, real: Provider) -> None:
        self._real = real

    async def exchange(self, request: Request, policy: CallPolicy) -> Exchange:
        """All but the result."""
        return await self._real.exchange(request, policy)

    @asynccontextmanager
    async def stream(self, request: Request, policy: CallPolicy) -> AsyncGenerator[Any]:
        """The page that is asked for."""
        yield LargePage(int(parse_qs(urlsplit(request.url).query).get("cursor", ["0"])[0]))


async def test_a_large_result_in_pages_is_never_held(tmp_path: Path) -> None:
    request = {"method": "GET", "path": "/v1/jobs/${job.id}/pages", "query": {"cursor": "${page.next}"}}
    source = {"request": request, "pages": {"next": "headers.x_next"}}
    contract = variant("sim.reports.create", {"collect": {"from": [source], "format": "text", "verify": None}})
    async with stage(tmp_path, work=False) as on:
        await collecting(on, contract, {**REPORT, "polls": 1})
        steps = ProviderActivities(replace(on.world, provider=LargePages(on.world.provider)))
        tracemalloc.start()
        try:
            head = await acting_for("run-1").run(steps.collect, StepInput(id="op-1", turn=4))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (head.state, (await on.standing()).outputs[0].size) == ("succeeded", PAGES * PAGE)
        assert peak < AT_MOST
        await on.verified()


async def test_what_was_staged_under_the_key_itself_is_taken_and_not_fetched(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await collecting(on, on.contracts.get("sim.reports.create"), {**REPORT, "polls": 1})
        await die_after(on, 0)
        staging = (await on.standing()).staging
        assert staging is not None
        async with on.results.stage(staging) as staged:
            await staged.write(b"".join(on.books.jobs()[0].report.pieces()))
            await staged.seal("text/csv")
        assert (await go_on(on)).state == "succeeded"
        assert on.books.requests("collect") == []
        await on.verified()
