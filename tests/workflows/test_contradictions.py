"""What a provider contradicts is told with the field, what was due and what was found, and without what nobody may read."""

from pathlib import Path
from typing import Any

import pytest

from domain.lifecycle import why_of
from simulator import lies
from tests.workflows.stage import REPORT, Stage, stage, variant
from tests.workflows.test_sensitive import DOOR, MAIL, PLANTED, planted, recorded

SLOW = {"poll": {"first": "1m", "cap": "1m"}}


async def contradicted(on: Stage, changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    await on.start(variant("sim.reports.create", changes), {**REPORT, **more})
    standing = (await on.until_state("contract_violation")).standing
    violation: Any = standing.violation
    assert str(violation["why"]) in str(why_of(standing))
    await on.verified()
    return violation


async def test_a_status_of_another_job_is_told_with_both_ids(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("observe", {"word": "nul_in_text", "args": {"field": "job_id"}})
        violation = await contradicted(on, {})
        [job] = on.books.jobs("a-1")
        assert violation["why"] == "the status names another job than the one asked for"
        assert (violation["field"], violation["expected"]) == ("body.job_id", [job.id, "no value"])
        assert violation["found"] not in (job.id, None)
        why = str(why_of(await on.standing()))
        assert f"body.job_id is {violation['found']}, where {job.id} or no value is due" in why


async def test_what_differs_from_the_input_is_told_by_digests_alone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        violation = await contradicted(on, {"observe": {"same": {"body.state": "${input.account}"}}})
        assert violation["why"] == "the status shows something else than was asked for"
        assert all(str(one).startswith("salted digest ") for one in (*violation["expected"], violation["found"]))


async def test_an_answer_to_a_cancel_that_is_about_something_else_says_about_what(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(
            variant("sim.reports.create", {"observe": SLOW, "cancel": {"same": {"body.state": "queued"}}}), {**REPORT, "polls": 500}
        )
        await on.until_state("accepted")
        await on.cancel()
        violation: Any = (await on.until_state("contract_violation")).standing.violation
        assert violation["why"] == "the answer to the cancel shows something else than was asked for"
        assert (violation["field"], violation["expected"], violation["found"]) == ("body.state", ["queued"], "cancelling")
        await on.verified()


async def test_a_job_that_was_there_already_and_is_of_another_request_is_told_by_the_field_that_differs(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        on.books.lie("observe", {"word": "nul_in_text", "args": {"field": "account"}})
        await on.start("sim.named.create")
        violation: Any = (await on.until_state("contract_violation")).standing.violation
        assert (violation["why"], violation["field"]) == ("the status shows something else than was asked for", "body.account")
        assert violation["expected"] != [violation["found"]]
        assert "a-1" not in str(violation), "the input stands in no entry"


async def test_a_refused_reuse_of_a_token_is_told_as_what_the_provider_says_it_is(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        violation = await contradicted(on, {"create": {"answers": [{"when": {"status": 202}, "is": "mismatch"}]}})
        assert violation == {"why": "the provider says that it knows this request as another one", "word": "mismatch"}


@pytest.mark.parametrize("field", ["body.door", "body.owner.mail", "headers.x_request_id"])
async def test_a_sensitive_value_that_contradicts_stands_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    monkeypatch.setitem(lies.LIES, "planted", lies.Lie("Tells what is nobody's business.", lies.ANY, instead=planted))
    async with stage(tmp_path) as on:
        on.books.lie("observe", "planted")
        sensitive = {"record": {"sensitive": ["body.door", "body.owner", "body.signed", "headers.x_request_id"]}}
        violation = await contradicted(on, sensitive | {"observe": {"same": {field: "${job.id}"}}})
        assert violation["field"] == field
        assert DOOR not in str(violation)
        assert MAIL not in str(violation)
        assert "sha256:" in str(violation["found"])
        told = await recorded(on)
        assert not [value for value in PLANTED if value in told]
