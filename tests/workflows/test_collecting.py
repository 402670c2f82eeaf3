"""Having the result: only what was verified is success, and nothing else is ever visible."""

from pathlib import Path

import pytest

from tests.workflows.stage import REPORT, Stage, stage, variant


def published(on: Stage) -> list[Path]:
    return on.stored()


@pytest.mark.parametrize("lie", ["wrong_result_bytes", "truncated_result", "short_rows", "wrong_content_type", "result_of_another_job"])
async def test_wrong_bytes_once_are_fetched_again_and_the_right_ones_kept(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", lie, times=1)
        assert (await (await on.start()).result()).state == "succeeded"
        assert [entry.cause for entry in await on.entries("result")] == ["result.invalid", "result.verified"]
        assert await on.result_bytes() == b"".join(on.books.jobs()[0].report.pieces())
        assert len(published(on)) == 1
        await on.verified()


async def test_wrong_bytes_twice_are_for_a_human_and_are_never_visible(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        rule = on.books.lie("collect", "wrong_result_bytes", times=2)
        handle = await on.start()
        record = await on.until_state("result_validation_failed", step=0.5)
        assert any(problem.startswith("sha256:") for problem in record.standing.problems)
        assert ([path for path in published(on) if ".staging" not in path.parts], rule.used) == ([], 2)
        await on.soon(lambda _: not published(on))  # what was staged is forgotten once the record says what came of it
        await on.resolve("recollect")
        assert (await handle.result()).state == "succeeded"
        assert len(published(on)) == 1
        await on.verified()


@pytest.mark.parametrize("lie", ["truncated_body", "drop_before_accepting", "status_500", "unauthorized"])
async def test_a_result_that_was_cut_or_not_had_is_fetched_again(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", lie, times=2)
        assert (await (await on.start()).result()).state == "succeeded"
        assert [entry.cause for entry in await on.entries("result")] == ["result.again", "result.again", "result.verified"]
        await on.verified()


async def test_a_result_that_has_expired_is_unavailable_and_can_be_asked_for_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "result_expired", times=2)
        handle = await on.start()
        record = await on.until_state("result_unavailable", step=0.5)
        assert record.standing.verdict is not None
        await on.resolve("resume", request_id="r-1")
        refused = await on.answered("r-1")
        assert not refused.accepted
        assert "recollect" in str(refused.why)
        await on.resolve("recollect", request_id="r-2")
        await on.soon(lambda one: one.standing.collect_attempts >= 2 and one.standing.state == "result_unavailable")
        await on.resolve("recollect", request_id="r-3")
        assert (await handle.result()).state == "succeeded"
        await on.verified()


async def test_a_result_that_the_provider_will_not_give_is_flagged_and_asked_for_until_the_deadline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "reject")
        await on.start(variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "2m"}}}))
        record = await on.until_state("result_unavailable", step=30)
        assert (await on.story())[-1] == "clock.collect"
        assert "read_rejected" in [flag.word for flag in record.standing.flags]
        await on.verified()


async def test_a_result_larger_than_the_contract_allows_is_never_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"http": {"limits": {"result_bytes": "1KiB"}}})
        await on.start(contract, {**REPORT, "rows": 500})
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("the result is larger than the contract allows",)
        await on.soon(lambda _: published(on) == [])
        await on.verified()


async def test_a_result_without_what_the_contract_expects_of_it_fails_verification(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        contract = variant("sim.reports.create", {"collect": {"expect": {"outputs.output.records": {"min": 6}}}})
        await on.start(contract)
        record = await on.until_state("result_validation_failed", step=0.5)
        assert any(problem.startswith("expect") for problem in record.standing.problems)
        await on.verified()


async def test_where_no_source_fits_the_answer_the_result_is_invalid(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        source = {"when": {"observed.call": "create"}, "request": {"method": "GET", "path": "/v1/never"}}
        await on.start(variant("sim.reports.create", {"collect": {"from": [source]}}))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("no source of the result fits this answer",)
        await on.verified()


ADDRESSES = {
    "location_elsewhere": "nothing was sent: https://elsewhere.example is neither the base of sim.reports.create nor in its http.hosts",
    "location_metadata": "nothing was sent: http://169.254.169.254 is neither the base of sim.reports.create nor in its http.hosts",
}


@pytest.mark.parametrize("lie", list(ADDRESSES))
async def test_a_result_at_a_host_that_is_not_listed_is_no_result_and_nothing_is_sent_there(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", lie)
        await on.start()
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == (ADDRESSES[lie],)
        assert on.books.requests("collect") == []
        await on.verified()


async def test_an_address_that_no_executor_may_call_is_no_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", "location_metadata")
        await on.start(variant("sim.reports.create", {"http": {"hosts": {"http://169.254.169.254": "none"}}}))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("nothing was sent: the address of the result is not one that may be called",)
        await on.verified()


async def test_a_result_without_an_address_is_no_result(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        source = {"request": {"method": "GET", "url": "${observed.body.nowhere}"}}
        await on.start(variant("sim.reports.create", {"collect": {"from": [source]}}))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("nothing was sent: ${observed.body.nowhere} has no value",)
        await on.verified()


async def test_a_result_that_is_sent_for_elsewhere_is_waited_for_and_the_record_says_where(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "redirect_elsewhere")
        await on.start(variant("sim.reports.create", {"observe": {"poll": {"first": "1m", "cap": "3m"}}}))
        record = await on.until_state("result_unavailable", step=60)
        assert record.standing.problems == (
            "the answer sends to https://elsewhere.example, where the contract lets no request go; nothing was sent there",
        )
        assert (await on.story())[-1] == "clock.collect"
        await on.verified()


async def test_a_result_without_end_is_ended_by_what_the_contract_allows(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("collect", "endless_body")
        await on.start(variant("sim.reports.create", {"http": {"limits": {"result_bytes": "4MiB"}}}))
        record = await on.until_state("result_validation_failed", step=0.5)
        assert record.standing.problems == ("the result is larger than the contract allows",)
        await on.soon(lambda _: published(on) == [])
        await on.verified()


@pytest.mark.parametrize(
    ("inline", "state"), [("observed.body.account", "succeeded"), ("observed.body.nothing", "result_validation_failed")]
)
async def test_a_result_inside_the_status_is_taken_from_it(tmp_path: Path, inline: str, state: str) -> None:
    async with stage(tmp_path) as on:
        changes = {"collect": {"from": [{"inline": inline}], "format": "text", "verify": None}}
        await on.start(variant("sim.reports.create", changes))
        await on.until_state(state, step=0.5)
        if state == "succeeded":
            assert await on.result_bytes() == b"a-1"
        assert on.books.requests("collect") == []
        await on.verified()


async def test_leftovers_of_a_failed_job_are_collected_and_the_verdict_stands(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        leftovers = {"after": ["succeeded", "failed"], "from": [{"inline": "observed.body.error"}], "format": "json", "verify": None}
        head = await (await on.start(variant("sim.reports.create", {"collect": leftovers}), {**REPORT, "fail": True})).result()
        assert head.state == "failed"
        assert b"render_failed" in await on.result_bytes()
        await on.verified()
