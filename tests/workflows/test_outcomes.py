"""A job of five with two failures is not just succeeded: what came of each item is counted, listed, and held against what was said."""

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.escalation import dossier_of, escalate
from adapters.showing.entries import entry_shape
from adapters.showing.status import exit_code_of, status_of
from adapters.showing.text import evidence_text, result_text, status_text
from domain.contract import Contract
from domain.evidence import Json
from tests.workflows.stage import REPORT, Stage, stage, variant

LINES = "".join(json.dumps({"id": str(number)}) + "\n" for number in range(1, 6)).encode()
"""What was submitted: five items, whose keys are the numbers of the report's rows."""

STATES: list[Json] = [
    {"when": {"body.state": ["queued", "running"]}, "is": "running"},
    {"when": {"body.state": "cancelling"}, "is": "cancelling"},
    {"when": {"body.state": "succeeded"}, "is": "ended"},
    {"when": {"body.state": "failed"}, "is": "failed"},
    {"when": {"body.state": "cancelled"}, "is": "cancelled"},
]


def batch(*failed: str, counts: dict[str, str] | None = None, items: dict[str, Any] | None = None, **collect: Any) -> Contract:
    """A contract that takes the rows of a report for the outcomes of a batch; `failed` are the numbers of those that failed."""
    states = [{"when": {"item.line": [*failed]}, "is": "failed", "reason": "item.day"}, {"is": "succeeded"}]
    read = {"output": "output", "key": "item.line", "states": states if failed else states[1:]}
    wanted: dict[str, Any] = {"submitted": {"file": "lines", "key": "item.id"}, "read": [read]} | (items or {})
    files = {"lines": {"media": "application/jsonl", "max_bytes": "1MiB"}} if "file" in wanted["submitted"] else None
    return variant(
        "sim.reports.create",
        {
            "files": files,
            "observe": {"states": STATES, "counts": counts},
            "collect": {"items": wanted, "partial": "attention", **collect},
        },
    )


async def ended(on: Stage, contract: Contract, state: str, lines: bytes = LINES, **more: Any) -> dict[str, Json]:
    """Play it to its end, or until it waits for a human; the status."""
    files = {"lines": lines} if contract.files else {}
    await on.start(contract, files=files, **more)
    record = await on.until_state(state, step=0.5)
    await on.verified()
    return status_of(record, at=on.clocks.now(), last_entry=on.clocks.now(), by="asha")


async def failed_items(on: Stage) -> list[dict[str, Any]]:
    listed = (await on.standing()).failed_items
    assert listed is not None
    data = b"".join([chunk async for chunk in on.results.read(listed.key)])
    assert (len(data), data.count(b"\n")) == (listed.size, listed.records)
    return [json.loads(line) for line in data.splitlines()]


def staged(on: Stage) -> list[Path]:
    return on.stored(".staging")


@pytest.mark.parametrize(
    ("partial", "state", "code"), [("succeeded", "succeeded", 6), ("failed", "failed", 1), ("attention", "outcome_undecided", 7)]
)
async def test_the_contract_says_whether_partial_is_success_failure_or_for_a_human(
    tmp_path: Path, partial: str, state: str, code: int
) -> None:
    async with stage(tmp_path) as on:
        status = await ended(on, batch("2", "4", partial=partial), state)
        items: Any = status["items"]
        assert (status["outcome"], items["submitted"], items["succeeded"], items["failed"]) == ("partial", 5, 3, 2)
        assert (items["disagreements"], exit_code_of(status)) == ([], code)
        assert [(one["key"], one["outcome"]) for one in await failed_items(on)] == [("2", "failed"), ("4", "failed")]
        assert [one["error"] for one in items["failed_items"]] == ["2026-01-02", "2026-01-04"]
        assert (await on.standing()).outputs
        await on.soon(lambda _: staged(on) == [])
        assert "3 succeeded, 2 failed of 5" in status_text(status)


async def test_all_items_succeeded_and_the_operation_is_whole_and_lists_none(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        status = await ended(on, batch(), "succeeded")
        assert (status["outcome"], exit_code_of(status)) == ("whole", 0)
        assert (await on.standing()).failed_items is None
        await on.soon(lambda _: staged(on) == [])


async def test_where_no_item_succeeded_the_operation_has_failed_whatever_partial_says(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        status = await ended(on, batch("1", "2", "3", "4", "5", partial="succeeded"), "failed")
        assert status["outcome"] == "none"
        assert (await on.story())[-1] == "result.verified"
        assert str(status["why"]).endswith("5 failed of 5")


async def test_an_item_that_never_came_back_one_that_came_twice_and_a_stranger_are_listed_and_disagree(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        lines = b'{"id": "1"}\n{"id": "2"}\n{"id": "3"}\n{"id": "4"}\n{"id": "left out"}\n{"id": "4"}\n'
        contract = batch(
            items={"read": [{"output": "output", "key": "item.line == '3' && '1' || item.line", "states": [{"is": "succeeded"}]}]}
        )
        status = await ended(on, contract, "outcome_undecided", lines)
        items: Any = status["items"]
        assert [items[word] for word in ("succeeded", "missing", "double", "unknown")] == [3, 2, 1, 1]
        assert items["disagreements"] == [
            "1 submitted keys are not the first of their kind",
            "2 of 6 submitted items have no outcome",
            "1 outcomes are of items that had one",
            "1 outcomes are of items that were never submitted",
        ]
        assert sorted((one["outcome"], one["key"]) for one in await failed_items(on)) == [
            ("double", "1"), ("missing", "3"), ("missing", "left out"), ("unknown", "5"),
        ]  # fmt: skip
        assert "2 of 6 submitted items have no outcome" in str(status["why"])
        await on.resolve("accept_succeeded")
        await on.until_state("succeeded", step=0.5)


@pytest.mark.parametrize(("disagreement", "state"), [("record", "succeeded"), ("attention", "outcome_undecided")])
async def test_counts_that_say_otherwise_than_the_results_are_said_and_stop_it_where_the_contract_says_so(
    tmp_path: Path, disagreement: str, state: str
) -> None:
    async with stage(tmp_path) as on:
        counts = {"total": "body.rows", "succeeded": "body.rows && `4`", "failed": "body.rows && `1`"}
        status = await ended(on, batch("2", "4", counts=counts, items={"disagreement": disagreement}, partial="succeeded"), state)
        items: Any = status["items"]
        assert items["disagreements"] == [
            "the provider counts 4 succeeded, its results show 3",
            "the provider counts 1 failed, its results show 2",
        ]
        assert (await on.standing()).counts == {
            "succeeded": 4,
            "failed": 1,
            "cancelled": 0,
            "expired": 0,
            "unprocessed": 0,
            "done": 5,
            "total": 5,
        }
        assert status["outcome"] == "partial"
        shown = evidence_text({"id": "op-1", "total": 1, "entries": [entry_shape(entry) for entry in await on.entries()]})
        assert "4 succeeded, 1 failed of 5" in shown
        assert "its results show 3" in shown


async def test_an_ended_job_of_which_the_counts_say_that_nothing_succeeded_has_failed_and_nothing_is_fetched(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        status = await ended(on, batch(counts={"failed": "body.rows", "succeeded": "body.rows && `0`"}, items=None), "failed")
        assert (await on.states())[-1] == "failed"
        assert on.books.requests("collect") == []
        assert status["counts"] == {"succeeded": 0, "failed": 5, "cancelled": 0, "expired": 0, "unprocessed": 0, "done": 5, "total": 5}
        assert "5 failed of 5" in status_text(status)


@pytest.mark.parametrize(
    ("total", "says"),
    [
        ("body.nothing", "nothing says how many of its items succeeded"),
        ("to_string(body.rows)", "the count total is no number"),
        ("body.rows && `2`", "the counts contradict each other: 5 succeeded are not 2 total"),
    ],
)
async def test_an_ended_job_without_items_and_without_counts_to_go_by_is_for_a_human(tmp_path: Path, total: str, says: str) -> None:
    contract = variant(
        "sim.reports.create",
        {"observe": {"states": STATES, "counts": {"total": total, "succeeded": "body.rows"}}, "collect": {"partial": "succeeded"}},
    )
    async with stage(tmp_path) as on:
        status = await ended(on, contract, "outcome_undecided")
        assert says in str(status["why"])
        assert (await on.standing()).outputs, "what came is kept"
        assert says in status_text(status)


async def test_what_a_failed_job_left_has_counts_and_items_and_the_operation_stays_failed(tmp_path: Path) -> None:
    contract = variant(
        "sim.reports.create",
        {
            "observe": {"states": [*STATES[:2], {"when": {"body.state": "succeeded"}, "is": "failed"}], "counts": {"total": "body.rows"}},
            "collect": {
                "after": ["succeeded", "partial", "failed"],
                "items": {
                    "submitted": {"count": "input.rows"},
                    "read": [{"output": "output", "states": [{"when": {"item.line": "1"}, "is": "cancelled"}, {"is": "succeeded"}]}],
                },
                "partial": "succeeded",
            },
        },
    )
    async with stage(tmp_path) as on:
        status = await ended(on, contract, "failed")
        items: Any = status["items"]
        assert (items["succeeded"], items["cancelled"], items["disagreements"]) == (4, 1, [])
        assert await failed_items(on) == [{"key": None, "outcome": "cancelled", "error": None, "output": "output", "record": 1}]
        result: Any = status["result"]
        assert "4 succeeded, 1 cancelled of 5" in result_text({"id": "op-1", "outcome": status["outcome"], **result})


async def test_an_item_that_no_entry_fits_counts_nowhere_and_leaves_it_to_a_human(tmp_path: Path) -> None:
    read = {"output": "output", "key": "item.line", "states": [{"when": {"item.line": {"not": "3"}}, "is": "succeeded"}]}
    async with stage(tmp_path) as on:
        status = await ended(on, batch(items={"read": [read]}), "outcome_undecided")
        items: Any = status["items"]
        assert (items["succeeded"], items["unread"], items["missing"]) == (4, 1, 0)
        assert [(one["key"], one["outcome"]) for one in await failed_items(on)] == [("3", "unread")]


async def test_a_submitted_file_that_is_gone_is_said_and_the_items_are_counted_all_the_same(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        record = await on.open(batch("2", items={"disagreement": "record"}, partial="succeeded"), files={"lines": LINES})
        # The body of this request needs no file: only what came back is held against it.
        for path in (on.folder / "results" / "t1").rglob("*"):
            if path.is_file():
                path.unlink()
        await on.tell(record)
        items: Any = (await on.until_state("succeeded", step=0.5)).standing.items
        assert (items["succeeded"], items["failed"], items["submitted"]) == (4, 1, None)
        assert items["disagreements"][0].startswith("the submitted file can't be read again: ")


async def test_a_result_that_is_collected_again_is_counted_again_and_lists_the_same(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await ended(
            on,
            batch(*map(str, range(1, 41)), items={"submitted": {"count": "input.rows"}}),
            "outcome_undecided",
            input={**REPORT, "rows": 60},
        )
        first, standing = await failed_items(on), await on.standing()
        assert len(first) == 40
        assert standing.items is not None
        assert (len(standing.items["failed_items"]), standing.items["listed"]) == (20, 40)  # pyright: ignore[reportArgumentType]
        await on.resolve("recollect")
        await on.until(lambda one: one.standing.collect_attempts == 2 and one.standing.state == "outcome_undecided", step=0.5)
        assert await failed_items(on) == first
        assert (await on.standing()).failed_items == standing.failed_items
        await on.soon(lambda _: staged(on) == [])
        await on.verified()


async def test_whoever_has_to_decide_is_shown_the_items_and_the_support_is_sent_the_list(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        status = await ended(on, batch("2", "4", counts={"total": "body.rows", "succeeded": "body.rows"}), "outcome_undecided")
        assert "python starter.py result op-1 --failed-items" in json.dumps(status["next"])
        assert "the provider counts 5 succeeded, its results show 3" in str(status["why"])
        dossier = await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now())
        made = await escalate(dossier, on.results, tmp_path / "escalation")
        assert made.faults == ()
        assert [json.loads(line)["key"] for line in (made.folder / "failed-items.jsonl").read_text().splitlines()] == ["2", "4"]
        page = (made.folder / "README.md").read_text()
        assert "`failed-items.jsonl`: the 2 items that did not succeed" in page
        assert "What does not agree: `the provider counts 5 succeeded, its results show 3`" in page
        assert "An item that is failed: `2`, with your words `2026-01-02`" in page
        assert "What became of the items in `failed-items.jsonl`" in page


async def test_what_an_attempt_that_was_killed_left_of_its_list_does_not_stay(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = batch("2", partial="succeeded")
        on.books.lie("collect", "hold", nth=1)
        await on.start(contract, files={"lines": LINES})
        record = await on.until(lambda one: one.standing.staging is not None, step=0.5)
        # The provider holds the answer meanwhile: what is staged here is what an attempt before this one left.
        await on.held()
        async with on.results.stage(f"{record.standing.staging}-failed-items-1") as half:
            await half.write(b"{}\n")
            await half.seal()
        on.release()
        await on.until_state("succeeded", step=0.5)
        assert [one["key"] for one in await failed_items(on)] == ["2"]
        await on.soon(lambda _: staged(on) == [])
