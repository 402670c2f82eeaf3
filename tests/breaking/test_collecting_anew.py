"""What an attempt to collect makes of what an earlier one left, when the provider says something else by then or the store fails."""

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from adapters.result_store import ObstoreResults
from domain.errors import NotFound, Unreachable
from domain.evidence import Json
from domain.paging import Following, Trail
from simulator import lies
from simulator.answer import Answer, Call, told
from simulator.provider import Provider
from tests.workflows.dying import collecting, die_after, go_on
from tests.workflows.stage import REPORT, stage
from tests.workflows.test_collecting_pages import AT_ONCE, WAYS, paged
from tests.workflows.test_collecting_renewed import FROM
from tests.workflows.test_collecting_several import LIST, PARTS, ROWS_5, outcome, several


def backwards(call: Call, args: dict[str, Json], provider: Provider) -> Answer:
    """The parts in another order."""
    fields = provider.answer(call).fields() or {}
    parts = fields.get("parts")
    assert isinstance(parts, list)
    return told(200, {**fields, "parts": parts[::-1]})


def back_to_the_second(call: Call, args: dict[str, Json], provider: Provider) -> Answer:
    """A page that leads back."""
    return told(200, {**(provider.answer(call).fields() or {}), "next": "2"})


@pytest.fixture(autouse=True)
def a_provider_that_thinks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, act in (("backwards", backwards), ("back_to_the_second", back_to_the_second)):
        monkeypatch.setitem(lies.LIES, name, lies.Lie("Says something else.", lies.ANY, instead=act))


async def test_elements_without_names_that_come_in_another_order_are_each_had_once(tmp_path: Path) -> None:
    parts = {key: value for key, value in PARTS.items() if key not in ("name", "verify")}
    async with stage(tmp_path, work=False) as on:
        await collecting(on, several({"parts": parts}, before=[LIST]), ROWS_5)
        await die_after(on, 3)  # the list and two of three parts
        on.books.lie("collect", "backwards", nth=1)
        assert (await go_on(on)).state == "succeeded"
        said = await outcome(on)
        assert [output.name for output in said.outputs] == ["parts/1", "parts/2", "parts/3"]
        assert len({output.sha256 for output in said.outputs}) == 3
        assert sum(output.records or 0 for output in said.outputs) == 5
        await on.verified()


async def test_elements_without_names_in_the_same_order_are_not_fetched_again(tmp_path: Path) -> None:
    parts = {key: value for key, value in PARTS.items() if key not in ("name", "verify")}
    async with stage(tmp_path, work=False) as on:
        await collecting(on, several({"parts": parts}, before=[LIST]), ROWS_5)
        await die_after(on, 3)
        assert (await go_on(on)).state == "succeeded"
        assert [one.path.rsplit("/", 1)[1] for one in on.books.requests("collect")] == ["parts", "0", "1", "parts", "2"]


async def test_what_can_be_had_once_is_kept_when_it_can_not_be_said_what_the_rest_of_the_result_is(tmp_path: Path) -> None:
    once = {"from": [FROM], "format": "csv", "one_time": True}
    async with stage(tmp_path) as on:
        on.books.lie("collect", "status_503", nth=3)  # after the list and the object that can be had once
        on.books.lie("collect", {"word": "part_names", "args": {"name": "same"}}, nth=4)
        await on.start(several({"a_once": once, "parts": PARTS}, before=[LIST]))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert "have one name" in record.standing.problems[0]
        await on.resolve("recollect")
        await on.until_state("succeeded", step=0.5)
        assert len([one for one in on.books.requests("collect") if one.path.endswith("/result")]) == 1
        assert len((await outcome(on)).outputs) == 4
        await on.verified()


async def test_a_page_that_leads_back_is_one_though_another_worker_read_where_it_leads(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await collecting(on, paged(WAYS["a cursor"]), {**AT_ONCE, "format": "jsonl"})
        await die_after(on, 3)  # of five pages: what led on were 2, 4 and 6
        on.books.lie("collect", "back_to_the_second", nth=1)
        with pytest.raises(ApplicationError, match="next at"):  # it is fetched once more
            await go_on(on)
        said = await outcome(on)
        assert (said.meaning, said.problems) == ("invalid", ("page 4 leads back to a page that was read",))
        assert len(on.books.requests("collect")) == 4
        await on.verified()


def test_a_trail_that_is_kept_knows_as_much() -> None:
    trail = Trail()
    ways = [Following(next=number, more=True) for number in range(300)]
    assert not any(map(trail.leads_back, ways))
    again = Trail.resumed(trail.kept)
    assert all(map(again.leads_back, ways))
    assert Trail.resumed("") == Trail()
    assert len(trail.kept) < 300 * 12


@pytest.mark.parametrize("broken", ["mkdir", "chmod", "replace", "unlink", "hardlink_to", "glob", "fsync"])
async def test_a_disk_that_fails_is_told_in_our_words_and_nothing_half_made_counts(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObstoreResults(tmp_path / "results")
    data = b"a,b\n" * 1000
    key = f"blue/op-1/{hashlib.sha256(data).hexdigest()}"

    async def keep(staging: str) -> None:
        async with store.stage(staging) as staged:
            await staged.write(data)
            await staged.seal()
        await store.publish(staging, key)
        await store.discard(staging)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path))

    with monkeypatch.context() as failing:
        failing.setattr(*(os, broken) if broken == "fsync" else (Path, broken), full)
        with pytest.raises(Unreachable) as told_of:
            await keep("op-1/7")
        assert str(tmp_path) not in f"{told_of.value.message}{told_of.value.hint}"
    if broken not in ("unlink", "fsync"):
        with pytest.raises(NotFound):
            _ = [chunk async for chunk in store.read(key)]
    await keep("op-1/7")
    assert b"".join([chunk async for chunk in store.read(key)]) == data
    assert not [path for path in (tmp_path / "results" / ".staging").rglob("*") if path.is_file()]


@pytest.mark.parametrize("deaf", ["discard", "publish", "seal"])
async def test_a_store_that_fails_once_at_the_end_costs_an_attempt_and_no_result(
    tmp_path: Path, deaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters import result_store

    async with stage(tmp_path) as on:
        failed: list[str] = []
        holder = result_store._Writing if deaf == "seal" else ObstoreResults
        real = getattr(holder, deaf)

        async def fails_once(*args: Any, **named: Any) -> Any:
            if not failed:
                failed.append(deaf)
                raise Unreachable("the result store did not take it")
            return await real(*args, **named)

        monkeypatch.setattr(holder, deaf, fails_once)
        await on.start(several({"parts": PARTS}, before=[LIST]), {**REPORT, "polls": 1})
        await on.until_state("succeeded", step=0.5)
        assert failed
        assert len((await outcome(on)).outputs) == 3
        await on.verified()
