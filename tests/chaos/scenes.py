"""What is played with real processes, and what is left of it: the ledger's story, the provider's books, Temporal.

* One Temporal server for all scenes; a site and a provider of its own for each, so that they play at the same time.
* In each scene many operations stand at their points at once, and one signal meets all of them.
* A scene only plays. What it left is judged by the tests.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from domain.chain import Entry
from domain.evidence import Json
from tests.chaos.processes import WITHIN, Child, Provider, Temporal, until
from tests.chaos.proxy import Proxy, proxy
from tests.chaos.site import Site, contract, site

TOKEN, PLAIN = "token", "plain"
CONTRACTS = {TOKEN: "sim.reports.create", PLAIN: "sim.plain.create"}
KILLED_AT = (
    "before_intent", "after_intent", "after_sending", "after_answer", "after_heartbeat", "after_append", "before_report",
    "before_first_poll",
)  # fmt: skip
SCENES = ("killed", "frozen", "partitioned")
QUICK: dict[str, Json] = {"polls": 1, "rows": 5}


@dataclass(frozen=True)
class Left:
    """What is left of one operation."""

    state: str
    attention: bool
    entries: list[Entry]
    jobs: list[dict[str, Any]]
    creates: list[dict[str, Any]]
    cancels: int
    broken: str | None
    result: bytes | None
    workflow: str

    @property
    def story(self) -> list[str]:
        """Causes in order."""
        return [entry.cause for entry in self.entries]

    def told(self, cause: str) -> int:
        """How often this is in the story."""
        return self.story.count(cause)


Play = dict[str, Left]


async def play(folder: Path) -> Play:
    """Play all scenes; what is left, by operation."""
    temporal, providers = Temporal(folder, SCENES), {name: Provider(folder / name) for name in SCENES}
    async with AsyncExitStack() as stack:
        try:
            await asyncio.gather(temporal.start(), *(provider.start() for provider in providers.values()))
            sites = {
                name: await stack.enter_async_context(
                    site(folder / name, temporal=temporal.address, namespace=name, provider_url=providers[name].url)
                )
                for name in SCENES
            }
            async with asyncio.TaskGroup() as group:
                played = [
                    group.create_task(_killed(sites["killed"], providers["killed"])),
                    group.create_task(_frozen(sites["frozen"], temporal.address)),
                    group.create_task(_partitioned(sites["partitioned"], providers["partitioned"], temporal.address)),
                ]
            found: Play = {}
            for name, streams in zip(SCENES, played, strict=True):
                books = await providers[name].books()
                found |= {stream: await left(sites[name], stream, books) for stream in streams.result()}
            return found
        finally:
            await stack.aclose()
            for server in (temporal.child, *(provider.child for provider in providers.values())):
                if server is not None:
                    server.end()


async def left(one: Site, stream: str, books: Mapping[str, object]) -> Left:
    """What is left of an operation."""
    standing = await one.standing(stream)
    jobs = [job for job in cast("list[dict[str, Any]]", books["jobs"]) if job["report"]["account"] == stream]
    asked = [call for call in cast("list[dict[str, Any]]", books["requests"]) if call["account"] == stream]
    return Left(
        state=standing.state,
        attention=standing.attention,
        entries=await one.entries(stream),
        jobs=jobs,
        creates=[call for call in asked if call["kind"] == "create"],
        cancels=len([call for call in asked if call["kind"] == "cancel"]),
        broken=await one.broken(stream),
        result=await one.result(stream),
        workflow=await one.workflow(stream),
    )


async def _killed(one: Site, provider: Provider) -> list[str]:
    """A worker is killed with an operation at each of its points; another goes on. Then what needs no killing."""
    streams = [f"{kind}-{point}" for kind in CONTRACTS for point in KILLED_AT]
    held = [stream for stream in streams if stream.endswith("after_sending")]
    beating = [stream for stream in streams if stream.endswith("after_heartbeat")]
    for stream in streams:
        if stream in held:
            await provider.lie("create", "hold", account=stream, times=1, when="after")
        else:
            one.halt(stream, stream.partition("-")[2])
        await one.start(stream, contract(CONTRACTS[stream.partition("-")[0]]), **QUICK)
    first = one.worker("first", halting=True)
    await until(lambda: one.halted(*(stream for stream in streams if stream not in held)), within=WITHIN, what="all stand at their points")
    await _taken(provider, "create", held)
    for stream in beating:
        await _heard(one, stream)
    first.kill()
    await provider.ask("POST", "/release")
    one.worker("second")
    others = await _honest_worker(one, provider)
    await one.settled(*streams, *others, within=WITHIN)
    return [*streams, *others]


async def _honest_worker(one: Site, provider: Provider) -> list[str]:
    """The answer is lost; the end races a cancel. The worker lives."""
    streams = ["token-dropped", "plain-dropped", "racing"]
    for stream in streams[:2]:
        await provider.lie("create", "drop_after_accepting", account=stream, times=1)
        await one.start(stream, contract(CONTRACTS[stream.partition("-")[0]]), **QUICK)
    await provider.lie("cancel", "success_racing_cancel", account="racing")
    await one.start("racing", contract(CONTRACTS[TOKEN]), seconds=3600, rows=5)
    await one.reached("racing", "observing", within=WITHIN)
    await one.cancel("racing")
    return streams


async def _taken(provider: Provider, kind: str, streams: list[str]) -> None:
    """Wait until the provider has done the work of each call, and holds its answer."""
    async with asyncio.timeout(WITHIN):
        while True:
            calls = cast("list[dict[str, Any]]", (await provider.books())["requests"])
            if {call["account"] for call in calls if call["status"] == 202 and call["kind"] == kind} >= set(streams):
                return
            await asyncio.sleep(0.1)


async def _heard(one: Site, stream: str) -> None:
    """Wait until Temporal has heard of the answer by a heartbeat."""
    async with asyncio.timeout(WITHIN):
        while True:
            described = await one.client.get_workflow_handle(stream).describe()
            pending = described.raw_description.pending_activities
            if any(b'"answer"' in part.data for act in pending for part in act.heartbeat_details.payloads):
                return
            await asyncio.sleep(0.1)


async def _frozen(one: Site, temporal: str) -> list[str]:
    """A worker is frozen for a moment, and again for so long that another takes over what it had; then it goes on."""
    async with proxy(temporal) as way:
        first = one.worker("first", halting=True, temporal=way.address)
        short = await _frozen_shortly(one, first)
        return [*short, *await _frozen_and_replaced(one, first, way)]


async def _frozen_shortly(one: Site, first: Child) -> list[str]:
    short = ["token-short", "plain-short"]
    for stream in short:
        one.halt(stream, "after_intent")
        await one.start(stream, contract(CONTRACTS[stream.partition("-")[0]]), **QUICK)
    await until(lambda: one.halted(*short), within=WITHIN, what="the first stand after their intents")
    first.freeze()
    await _too_late(one, short)
    first.thaw()
    await one.settled(*short, within=WITHIN)
    return short


async def _frozen_and_replaced(one: Site, first: Child, way: Proxy) -> list[str]:
    stale = {
        "token-stale_intent": "after_intent", "plain-stale_intent": "after_intent", "token-stale_answer": "after_answer",
        "plain-stale_answer": "after_answer",
    }  # fmt: skip
    replaced = {"plain-replaced_answer": "after_answer", "plain-replaced_intent": "before_intent", "token-replaced_intent": "before_intent"}
    for stream, point in (stale | replaced).items():
        one.halt(stream, point)
        await one.start(stream, contract(CONTRACTS[stream.partition("-")[0]]), **QUICK)
    await until(lambda: one.halted(*stale, *replaced), within=WITHIN, what="the second stand at their points")
    first.freeze()
    way.shut()  # else the server would hand work to the polls of the frozen one, and wait for it in vain
    for stream in replaced:
        await one.client.get_workflow_handle(stream).terminate("the server was lost")
        await one.tell(stream)
    one.worker("second")
    await one.settled(*stale, *replaced, within=WITHIN)
    before = {stream: len(await one.entries(stream)) for stream in (*stale, "plain-replaced_answer")}
    await _too_late(one, [stream for stream in stale if stream.endswith("intent")])
    way.open()
    first.thaw()
    await _grown(one, before)
    await one.settled(*stale, *replaced, within=WITHIN)
    return [*stale, *replaced]


async def _too_late(one: Site, streams: list[str]) -> None:
    """Wait until nothing of these may be sent any more."""
    for stream in streams:
        limit = (await one.standing(stream)).newest_send_until
        if limit is not None:
            await asyncio.sleep(max(0.0, (limit + timedelta(milliseconds=300) - datetime.now(UTC)).total_seconds()))


async def _grown(one: Site, before: Mapping[str, int]) -> None:
    """Wait until each stream has an entry more."""
    for stream, count in before.items():
        async with asyncio.timeout(WITHIN):
            while len(await one.entries(stream)) <= count:  # noqa: ASYNC110 - other processes set no event of ours
                await asyncio.sleep(0.05)


async def _partitioned(one: Site, provider: Provider, temporal: str) -> list[str]:
    """A worker loses Temporal in the middle of its work; another takes over; then the first goes on, and sees Temporal again."""
    waiting = ["token-partitioned", "plain-partitioned"]
    halted = {"plain-loaded": "create_loaded", "token-news": "after_terminal_reading", "token-cancel": "cancel_loaded"}
    patient: dict[str, Json] = {"http": {"timeouts": {"read": "10m", "total": "10m"}}}
    for stream in [*waiting, "plain-loaded"]:
        await provider.lie("create", "hold", account=stream, times=1, when="after")
    await provider.lie("cancel", "hold", account="token-cancel", times=1, when="after")
    async with proxy(temporal) as way:
        first = one.worker("first", halting=True, temporal=way.address)
        for stream, point in halted.items():
            one.halt(stream, point)
        for stream in [*waiting, *halted]:
            pace: dict[str, Json] = {"seconds": 3600, "rows": 5} if stream == "token-cancel" else QUICK
            await one.start(stream, contract(CONTRACTS[stream.partition("-")[0]], patient), **pace)
        await one.reached("token-cancel", "observing", within=WITHIN)
        await one.cancel("token-cancel")
        await until(lambda: one.halted(*halted), within=WITHIN, what="all stand at their points")
        await _taken(provider, "create", waiting)
        way.shut()
        one.worker("second")
        await one.reached("plain-partitioned", "create_unknown", within=WITHIN)
        await until_told(one, "token-partitioned", "exchange.in_flight", within=WITHIN)
        await _taken(provider, "create", ["plain-loaded"])
        await _taken(provider, "cancel", ["token-cancel"])
        await one.reached("token-news", "succeeded", within=WITHIN)
        first.thaw()
        await until(lambda: one.ended(*halted), within=WITHIN, what="the stale attempts are done")
        await provider.ask("POST", "/release")
        await one.reached("plain-partitioned", "accepted", within=WITHIN)
        way.open()
        await one.settled(*waiting, *halted, within=WITHIN)
        await one.reached("plain-partitioned", "succeeded", within=WITHIN)
    return [*waiting, *halted]


async def until_told(one: Site, stream: str, cause: str, *, within: float) -> None:
    """Wait until a story has this."""
    async with asyncio.timeout(within):
        while cause not in await one.story(stream):  # noqa: ASYNC110 - other processes set no event of ours
            await asyncio.sleep(0.05)
