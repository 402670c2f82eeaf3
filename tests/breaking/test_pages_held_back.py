"""A list that is longer than the provider gives at a time: the page that is held back is waited for, and the list is read to its end."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from activities.waiting import Patience
from adapters.clocks import SystemClocks
from domain.contract import Contract
from domain.evidence import StepOutcome
from domain.language.stages import Poll
from tests.workflows.losing import ends_with_one_job, lookups, made_by_others
from tests.workflows.stage import Stage, stage, variant

QUICK = {"poll": {"first": "10ms", "floor": "10ms"}}
LISTING: dict[str, Any] = {"method": "GET", "path": "/v1/reports", "query": {"cursor": "${page.next}", "limit": 2}}


AT_ONCE = Poll.model_validate({"first": "10ms", "floor": "1ms"})


def listed() -> Contract:
    shipped: Any = json.loads(variant("sim.listed.create", {}).canonical)["reconcile"][0]
    return variant("sim.listed.create", {"reconcile": [shipped | {"request": LISTING}], "observe": QUICK})


def held(on: Stage, *, nth: int) -> None:
    on.books.lie("list", {"word": "status_429", "args": {"retry_after": "seconds", "seconds": 0}}, nth=nth)


def cursors(on: Stage) -> list[str | None]:
    return [one.query.get("cursor") for one in on.books.requests("list")]


async def test_a_page_of_a_lookup_that_is_held_back_is_asked_again_and_none_before_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        made_by_others(on, 5)
        on.books.lie("create", "drop_after_accepting")
        for nth in (2, 3, 5):
            held(on, nth=nth)
        await on.start(listed())
        await ends_with_one_job(on)
        assert cursors(on) == [None, "2", "2", "2", "4", "4"]
        assert [lookup.meaning for lookup in await lookups(on)] == ["found"]
        await on.verified()


async def test_a_page_that_is_held_back_for_longer_than_the_list_may_take_is_left_to_the_next_look(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        made_by_others(on, 3)
        on.books.lie("create", "drop_after_accepting")
        on.books.lie("list", {"word": "status_429", "args": {"retry_after": "seconds", "seconds": 601}}, nth=2)
        await on.start(variant("sim.listed.create", {**changes_of(listed()), "deadlines": {"create": "2h"}}))
        await ends_with_one_job(on)
        assert cursors(on) == [None, "2", None, "2"]
        assert [lookup.meaning for lookup in await lookups(on)] == ["failed", "found"]


def changes_of(contract: Contract) -> dict[str, Any]:
    document: Any = json.loads(contract.canonical)
    return {"reconcile": document["reconcile"], "observe": document["observe"]}


async def test_a_page_of_a_step_that_is_held_back_is_asked_again_and_none_before_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        others = made_by_others(on, 5)
        for nth in (2, 3):
            held(on, nth=nth)
        step = {
            "step": "others",
            "request": LISTING,
            "pages": {"items": "body.items", "next": "body.next"},
            "answers": [{"when": {"status": 200}, "is": "done"}],
            "save": {"count": "length(items)"},
        }
        create = {"before": [step], "request": {"json": {"reference": "${to_string(steps.others.count)}"}}}
        head = await (await on.start(variant("sim.plain.create", {"create": create, "observe": QUICK}))).result()
        assert head.state == "succeeded"
        assert on.books.jobs("a-1")[0].reference == str(len(others))
        assert cursors(on) == [None, "2", "2", "2", "4"]
        [done] = [cast("StepOutcome", entry.evidence) for entry in await on.entries("step")]
        assert (done.meaning, done.pages) == ("done", 3)


@pytest.mark.parametrize(
    ("word", "hint_ms", "left_s", "ends_in_s", "waits"),
    [
        ("quota", 0, 10, 100, True),
        ("throttled", None, 10, 100, True),
        ("throttled", 0, 10, 100, True),
        ("unsure", 0, 10, 100, False),
        ("broken", None, 10, 100, False),
        ("quota", 11_000, 10, 100, False),
        ("quota", 5_000, 10, 4, False),
        ("quota", 0, 0, 100, False),
    ],
)
async def test_patience_is_for_what_is_held_back_and_has_an_end(
    word: str, hint_ms: int | None, left_s: int, ends_in_s: int, waits: bool
) -> None:
    clocks, left = SystemClocks(), timedelta(seconds=left_s)
    patience = Patience(AT_ONCE, left, clocks.monotonic() + ends_in_s)
    assert await patience.waits(clocks, word, hint_ms) is waits
    assert (patience.left < left) is waits


async def test_a_provider_that_always_says_at_once_is_not_asked_without_end() -> None:
    clocks, waited = SystemClocks(), 0
    patience = Patience(AT_ONCE, timedelta(seconds=30), clocks.monotonic() + 600)
    while await patience.waits(clocks, "throttled", 0):
        waited += 1
    assert waited == 30
