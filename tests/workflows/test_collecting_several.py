"""A result of several objects: named outputs, one per element of a list, and what a list may do wrong."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from domain.evidence import Json, ResultOutcome
from tests.workflows.dying import collecting, die_after, go_on
from tests.workflows.stage import REPORT, Stage, stage, variant

ROWS_5: dict[str, Json] = {**REPORT, "polls": 1}
WHOLE: dict[str, Any] = {"from": {"request": {"method": "GET", "url": "${observed.body.result_url}"}}, "format": "csv"}
STATUS: dict[str, Any] = {"from": {"inline": "observed.body.progress"}, "format": "json"}
LIST: dict[str, Any] = {
    "step": "list",
    "request": {"method": "GET", "path": "/v1/jobs/${job.id}/parts"},
    "answers": [{"when": {"status": 200}, "is": "done"}],
    "save": {"parts": "body.parts"},
}
PARTS: dict[str, Any] = {
    "each": "steps.list.parts",
    "name": "${each.name}",
    "from": {"request": {"method": "GET", "url": "${each.url}"}, "answers": [{"when": {"status": [404, 410]}, "is": "gone"}]},
    "format": "csv",
    "verify": {"sha256": "${each.checksum}", "bytes": "${each.size}", "records": "${each.rows}", "required": ["sha256"]},
}


def several(outputs: dict[str, Any], **collect: Any) -> Any:
    """The shipped contract with these outputs."""
    direct = dict.fromkeys(("from", "format", "verify"))
    return variant("sim.reports.create", {"collect": {**direct, "outputs": outputs, **collect}})


def staged(on: Stage) -> list[Path]:
    return on.stored(".staging")


async def outcome(on: Stage) -> ResultOutcome:
    said = (await on.entries("result"))[-1].evidence
    assert isinstance(said, ResultOutcome)
    return said


async def test_several_outputs_are_one_result_and_one_that_has_nothing_is_said_to_be_empty(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        outputs = {"rows": WHOLE, "errors": {**STATUS, "when": {"observed.body.error": {"not": None}}}, "progress": STATUS}
        expect = {"outputs.rows.records": 5, "outputs.errors.bytes": None, "outputs.rows.sha256": {"not": None}}
        await on.start(several(outputs, expect=expect))
        await on.until_state("succeeded", step=0.5)
        said = await outcome(on)
        assert [output.name for output in said.outputs] == ["progress", "rows"]
        assert said.empty == ("errors",)
        assert [(check.check, check.verdict) for check in said.checks] == [("expect", "ok")]
        kept = b"".join([chunk async for chunk in on.results.read(said.outputs[1].key)])
        assert kept == b"".join(on.books.jobs()[0].report.pieces())
        await on.soon(lambda _: staged(on) == [])
        await on.verified()


async def test_where_no_output_has_anything_the_result_is_empty(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(several({"errors": {**STATUS, "when": {"observed.body.error": {"not": None}}}}))
        await on.until_state("succeeded", step=0.5)
        said = await outcome(on)
        assert (said.meaning, said.empty, said.outputs) == ("empty", ("errors",), ())
        await on.verified()


async def test_each_element_is_an_object_of_its_own_under_its_name(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(several({"parts": PARTS}, before=[LIST], expect={"outputs.parts.records": 5}))
        await on.until_state("succeeded", step=0.5)
        said = await outcome(on)
        assert [(output.name, output.records) for output in said.outputs] == [("parts/part-1", 2), ("parts/part-2", 2), ("parts/part-3", 1)]
        assert [step.step for step in said.before] == ["list"]
        await on.soon(lambda _: staged(on) == [])
        await on.verified()


async def test_an_element_has_steps_and_checks_of_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        look = {**LIST, "step": "look", "save": {"rows": "body.parts[0].rows"}}
        checked = {"records": "${steps.look.rows}", "sha256": "${headers.x_checksum}", "required": ["sha256"]}
        await on.start(several({"parts": {**PARTS, "each": "steps.list.parts[:2]", "before": [look], "verify": checked}}, before=[LIST]))
        await on.until_state("succeeded", step=0.5)
        said = await outcome(on)
        assert [step.step for step in said.before] == ["list", "look", "look"]
        for output in said.outputs:
            assert {check.check: check.verdict for check in output.checks}["sha256"] == "ok"
            assert {check.check: check.verdict for check in output.checks}["records"] == "ok"
        await on.verified()


async def test_a_step_that_is_not_done_leaves_nothing_learned(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "status_500", nth=1)
        on.books.lie("collect", "reject", nth=2)
        on.books.lie("collect", "reject", nth=4)
        await on.start(several({"parts": {**PARTS, "before": [{**LIST, "step": "again"}]}}, before=[LIST]))
        await on.until_state("succeeded", step=0.5)
        assert [(entry.cause, entry.body.get("word")) for entry in await on.entries("result")] == [
            ("result.again", "step list: default"), ("result.refused", "step list: rejected"), ("result.refused", "step again: rejected"),
            ("result.verified", None),
        ]  # fmt: skip
        await on.verified()


async def test_a_step_at_a_host_that_is_not_listed_is_no_result_and_nothing_is_sent_there(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "location_elsewhere")
        away = {**LIST, "request": {"method": "GET", "url": "${observed.body.result_url}"}}
        await on.start(several({"parts": PARTS}, before=[away]))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems[0].startswith("nothing was sent: step list: https://elsewhere.example is neither the base")
        assert on.books.requests("collect") == []
        await on.verified()


async def test_a_step_about_another_job_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(several({"parts": PARTS}, before=[{**LIST, "same": {"body.parts[0].name": "${job.id}"}}]))
        record = await on.until_state("contract_violation", step=0.5)
        assert "step list" in str(record.standing.violation)
        await on.verified()


async def test_a_list_of_nothing_is_empty(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(several({"parts": {**PARTS, "each": "steps.list.parts[9:]"}}, before=[LIST]))
        await on.until_state("succeeded", step=0.5)
        assert (await outcome(on)).empty == ("parts",)
        await on.verified()


async def test_what_is_no_list_is_no_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(several({"parts": {**PARTS, "each": "steps.list.parts[0].name"}}, before=[LIST]))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("parts: the answer holds no list of elements where the contract says it is",)
        await on.verified()


async def test_hostile_names_are_made_safe_and_stand_in_the_manifest_only(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", {"word": "part_names", "args": {"name": "../../etc/pass wd\n\u202e"}})
        await on.start(several({"parts": {**PARTS, "each": "steps.list.parts[:1]"}}, before=[LIST]))
        await on.until_state("succeeded", step=0.5)
        said = await outcome(on)
        assert [output.name for output in said.outputs] == ["parts/%2E.%2F..%2Fetc%2Fpass%20wd%0A%E2%80%AE"]
        await on.verified()


async def test_two_elements_of_one_name_are_no_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", {"word": "part_names", "args": {"name": "same"}})
        await on.start(several({"parts": PARTS}, before=[LIST]))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("parts: the elements 1 and 2 have one name, same",)
        assert len(on.books.requests("collect")) == 2  # the list, twice, and no part
        await on.verified()


async def test_a_list_of_a_hundred_thousand_is_more_than_is_kept_and_nothing_of_it_is_fetched(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "many_elements")
        await on.start(several({"parts": {**PARTS, "each": "observed.body.elements", "name": "${each}", "verify": None}}))
        record = await on.until_state("result_validation_failed", step=0.5)
        said = record.standing.problems[0]
        assert "one operation keeps 1000 objects at most" in said
        assert on.books.requests("collect") == []
        await on.verified()


async def test_as_many_objects_as_are_kept_are_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", {"word": "many_elements", "args": {"count": 1000}})
        element = {"each": "observed.body.elements", "name": "${each}", "from": {"inline": "to_string(each)"}, "format": "text"}
        await on.start(several({"numbers": element}))
        await on.until_state("succeeded", step=0.5)
        said = await outcome(on)
        assert [output.name for output in said.outputs] == [f"numbers/{number}" for number in range(1000)]
        await on.soon(lambda _: staged(on) == [])
        await on.verified()


async def test_elements_that_are_staged_are_not_fetched_again_after_a_crash(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await collecting(on, several({"parts": {**PARTS, "verify": {"sha256": "${headers.x_checksum}"}}}, before=[LIST]), ROWS_5)
        await die_after(on, 3)  # the list and two parts
        assert (await go_on(on)).state == "succeeded"
        fetched = [one.path.rsplit("/", 1)[1] for one in on.books.requests("collect")]
        assert fetched == ["parts", "0", "1", "parts", "2"]
        said = await outcome(on)
        # What only the first attempt saw is what its objects are checked against.
        assert [{check.check: check.verdict for check in output.checks}["sha256"] for output in said.outputs] == ["ok"] * 3
        assert staged(on) == []
        await on.verified()


async def test_one_wrong_element_is_fetched_again_and_the_right_ones_are_not(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "wrong_result_bytes", nth=3)
        await on.start(several({"parts": PARTS}, before=[LIST]))
        await on.until_state("succeeded", step=0.5)
        assert [one.path.rsplit("/", 1)[1] for one in on.books.requests("collect")] == ["parts", "0", "1", "parts", "1", "2"]
        first = (await on.entries("result"))[0].evidence
        assert isinstance(first, ResultOutcome)
        assert first.problems[0].startswith("parts/part-2: sha256: expected ")
        await on.verified()


async def test_what_the_whole_breaks_is_fetched_again_whole(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(several({"parts": PARTS}, before=[LIST], expect={"outputs.parts.records": 6}))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("expect: the result is not as the contract expects",)
        assert len(on.books.requests("collect")) == 8
        await on.soon(lambda _: staged(on) == [])
        await on.verified()


async def test_several_outputs_have_the_room_of_one_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        limited = {"http": {"limits": {"result_bytes": "150B"}}}
        contract = several({"parts": PARTS}, before=[LIST])
        document = json.loads(contract.canonical)
        changes = {**limited, "collect": document["collect"] | dict.fromkeys(("from", "format", "verify"))}
        await on.start(variant("sim.reports.create", changes))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("parts/part-3: the result is larger than the contract allows",)
        await on.verified()


async def test_equal_objects_are_stored_once_and_named_each(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(several({"one": WHOLE, "two": WHOLE}))
        await on.until_state("succeeded", step=0.5)
        one, two = (await outcome(on)).outputs
        assert (one.name, two.name, one.key) == ("one", "two", two.key)
        assert hashlib.sha256(await on.result_bytes()).hexdigest() == one.sha256
        await on.verified()


@pytest.mark.parametrize("inline", ["[observed.body.account, `9007199254740993`]", "observed.body.account"])
async def test_what_the_status_holds_is_kept_with_all_its_digits_and_as_lines_where_they_are_due(tmp_path: Path, inline: str) -> None:
    async with stage(tmp_path) as on:
        outputs = {
            "lines": {"from": {"inline": f"[{inline}][]"}, "format": "jsonl"},
            "value": {"from": {"inline": inline}, "format": "json"},
        }
        await on.start(several(outputs))
        await on.until_state("succeeded", step=0.5)
        lines, value = (await outcome(on)).outputs
        kept = b"".join([chunk async for chunk in on.results.read(value.key)])
        assert b"9007199254740993" in kept if "`" in inline else kept == b'"a-1"'
        assert lines.records == (2 if "`" in inline else 1)
        await on.verified()
