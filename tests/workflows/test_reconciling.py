"""Looking up what became of a create: found once, absent only by the timing rule, and else left to a human."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.losing import (
    CACHED,
    began,
    candidates_of,
    create_intents,
    ends_with_one_job,
    interrupted,
    lookups,
    made_by_others,
    one_clock,
    proof_is_due,
    sent,
)
from tests.workflows.stage import PLAIN, stage, variant

BY_NAME_ALONE = variant("sim.named.create", {"create": {"token": {"window": "155s"}}})
"""The window less its margin is 5 s: after that a name is asked for and not sent again."""
LONG: dict[str, Any] = {**PLAIN, "polls": 500}


@pytest.mark.parametrize("contract", ["sim.reports.create", "sim.listed.create", "sim.named.create", "sim.unnamed.create"])
async def test_a_lost_answer_makes_one_job_which_is_found(tmp_path: Path, contract: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        await on.start(contract)
        await ends_with_one_job(on)
        assert len({(token, mark, path) for token, mark, path, _ in sent(on)}) == 1


async def test_where_our_mark_is_in_the_list_nothing_is_sent_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        await on.start("sim.listed.create")
        await ends_with_one_job(on)
        assert len(sent(on)) == 1
        assert await on.states() == [
            "approved", "create_pending", "create_unknown", "reconciling", "accepted", "observing", "result_collecting", "succeeded",
        ]  # fmt: skip
        [found] = await lookups(on)
        assert found.meaning == "found"


async def test_our_mark_is_found_on_whichever_page_it_is(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        made_by_others(on, 5)
        on.books.lie("create", "drop_after_accepting")
        query = {"cursor": "${page.next}", "limit": 2}
        contract = variant("sim.listed.create", {"reconcile": [_lookup("sim.listed.create") | {"request": _get("/v1/reports", query)}]})
        await on.start(contract)
        await ends_with_one_job(on)
        assert [one.query.get("cursor") for one in on.books.requests("list")] == [None, "2", "4"]


async def test_a_page_that_fails_decides_nothing_whatever_the_pages_before_it_showed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        made_by_others(on, 3)
        on.books.lie("create", "drop_after_accepting")
        on.books.lie("list", "status_500", nth=2)
        query = {"cursor": "${page.next}", "limit": 2}
        contract = variant("sim.listed.create", {"reconcile": [_lookup("sim.listed.create") | {"request": _get("/v1/reports", query)}]})
        await on.start(contract)
        await ends_with_one_job(on)
        assert [lookup.meaning for lookup in await lookups(on)] == ["failed", "found"]


PAGED: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "addresses relative to the page": ({"next_url": "join('', ['?limit=2&cursor=', body.next])"}, {"limit": 2}, 3),
    "addresses below the origin": ({"next_url": "join('', ['/v1/reports?limit=2&cursor=', body.next])"}, {"limit": 2}, 3),
    "numbers": ({"more": {"body.next": {"not": None}}}, {"limit": 1, "cursor": "${page.index}"}, 6),
    "a count": ({"count": "`6`"}, {"limit": 1, "cursor": "${page.index}"}, 6),
}


@pytest.mark.parametrize("kind", list(PAGED))
async def test_a_list_is_read_to_its_end_however_it_leads_on(tmp_path: Path, kind: str) -> None:
    async with stage(tmp_path) as on:
        pages, query, count = PAGED[kind]
        made_by_others(on, 5)
        on.books.lie("create", "drop_after_accepting")
        lookup: Any = _lookup("sim.listed.create") | {"request": _get("/v1/reports", query), "pages": {"items": "body.items", **pages}}
        await on.start(variant("sim.listed.create", {"reconcile": [lookup]}))
        await ends_with_one_job(on)
        assert len(on.books.requests("list")) == count


ENDLESS: dict[str, tuple[dict[str, Any], str]] = {
    "a cursor that comes again": ({"next": "'0'"}, "the list leads back to a page that was read"),
    "more pages than allowed": ({"more": {"status": 200}, "limit": 3}, "the list is longer than can be read"),
    "another host": ({"next_url": "'https://elsewhere.example/v1/reports'"}, "https://elsewhere.example is neither the base"),
    "no scheme": ({"next_url": "'//elsewhere.example/v1/reports'"}, "an address that begins with //"),
}


@pytest.mark.parametrize("kind", list(ENDLESS))
async def test_a_list_that_does_not_end_here_says_nothing(tmp_path: Path, kind: str) -> None:
    async with stage(tmp_path) as on:
        pages, why = ENDLESS[kind]
        on.books.lie("create", "drop_after_accepting")
        lookup: Any = _lookup("sim.listed.create") | {"pages": {"items": "body.items", **pages}}
        await on.start(variant("sim.listed.create", {"reconcile": [lookup], "deadlines": {"create": "10s"}}))
        record = await on.until(lambda one: one.standing.attention)
        assert {lookup.meaning for lookup in await lookups(on)} == {"failed"}
        assert str((await lookups(on))[0].words.message).startswith(why)
        assert (record.standing.state, record.standing.candidates) == ("create_unknown", ())
        await on.verified()


async def test_a_list_that_lags_is_asked_again_and_nothing_is_created_meanwhile(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        on.books.lie("list", "list_lag", times=3)
        await on.start("sim.listed.create")
        await ends_with_one_job(on)
        assert len(sent(on)) == 1
        assert [lookup.meaning for lookup in await lookups(on)] == ["none", "none", "none", "found"]


async def test_a_lookup_that_is_throttled_or_broken_is_repeated_until_it_says_something(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        on.books.lie("list", {"word": "status_429", "args": {"retry_after": "seconds", "seconds": 20}}, nth=1)
        on.books.lie("list", "truncated_body", nth=2)
        on.books.lie("list", "invalid_utf8", nth=2)
        on.books.lie("list", "unauthorized", nth=3)
        await on.start("sim.listed.create")
        await ends_with_one_job(on)
        assert [lookup.meaning for lookup in await lookups(on)] == ["failed", "failed", "failed", "found"]
        first, second = (await lookups(on))[:2]
        assert began(second) - first.at >= timedelta(seconds=20)


async def test_nothing_found_is_proof_only_by_the_timing_rule_and_starts_a_new_generation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_before_accepting", times=1)
        await on.start("sim.listed.create")
        await ends_with_one_job(on)
        *none, absent = await lookups(on)
        due = await proof_is_due(on, visible_s=5)
        assert {lookup.meaning for lookup in none} == {"none"}
        assert all(began(lookup) < due for lookup in none)
        assert absent.meaning == "absent"
        assert none[-1].next_at == due
        assert due <= began(absent)
        first, second = await create_intents(on)
        assert (first.generation, second.generation, second.attempt) == (1, 2, 1)
        assert second.at >= absent.at
        marks = [mark for _, mark, _, _ in sent(on)]
        assert len(set(marks)) == 2


async def test_a_new_generation_is_judged_anew_under_a_new_token(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_before_accepting")
        await on.start(BY_NAME_ALONE)
        await on.until_state("reconciling")
        on.books.script.clear()
        await ends_with_one_job(on)
        first, second = {path for _, _, path, _ in sent(on)}
        assert first != second
        assert (await lookups(on))[-1].meaning == "absent"
        assert [entry.body["generation"] for entry in await on.entries("policy") if entry.body.get("generation", 1) == 2] == [2]
        window = [intent.at for intent in await create_intents(on) if intent.generation == 1]
        assert window[-1] - window[0] <= timedelta(seconds=5)


async def test_a_name_that_may_not_be_sent_again_is_asked_for_and_found(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        await on.start(BY_NAME_ALONE)
        await ends_with_one_job(on)
        assert [lookup.meaning for lookup in await lookups(on)] == ["found"]
        assert {intent.generation for intent in await create_intents(on)} == {1}


async def test_a_name_that_is_answered_with_another_job_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        on.books.lie("observe", {"word": "nul_in_text", "args": {"field": "job_id"}})
        await on.start(BY_NAME_ALONE)
        record = await on.until_state("contract_violation")
        violation = record.standing.violation or {}
        assert (violation["why"], violation["field"]) == ("the lookup names another job than the one asked for", "body.job_id")
        assert violation["expected"] != [violation["found"], "no value"], "digests of two names"
        await on.verified()


async def test_where_proof_would_come_after_the_deadline_a_human_is_asked_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_before_accepting")
        await on.start(variant("sim.listed.create", {"deadlines": {"create": "1m"}}))
        record = await on.until(lambda one: one.standing.attention)
        last = (await lookups(on))[-1]
        assert (record.standing.state, last.meaning, last.exhausted) == ("create_unknown", "none", True)
        assert last.at - record.standing.opened.at < timedelta(seconds=45), "and not at the deadline"
        assert len(sent(on)) == 1
        await on.verified()


async def test_a_lookup_that_says_nothing_until_its_deadline_is_made_once_more_and_given_up(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        on.books.lie("list", {"word": "status_503", "args": {"retry_after": "hour"}})
        await on.start(variant("sim.listed.create", {"deadlines": {"create": "3m"}}))
        record = await on.until(lambda one: one.standing.attention, step=20)
        [clock] = await on.entries("clock")
        last = (await lookups(on))[-1]
        assert (clock.cause, last.meaning, record.standing.reconcile_left) == ("clock.lookup", "failed", 0)
        assert last.at <= clock.evidence.at
        assert len(await lookups(on)) == 2
        assert began(last) >= clock.evidence.deadline  # pyright: ignore[reportAttributeAccessIssue] - a clock has one
        await on.verified()


async def test_absence_after_the_create_deadline_is_failed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", {"word": "status_429", "args": {"retry_after": "seconds", "seconds": 60}}, nth=1)
        on.books.lie("create", "drop_before_accepting", nth=2)
        handle = await on.start(variant("sim.listed.create", {"deadlines": {"create": "3m"}}))
        assert (await handle.result()).state == "failed"
        assert (await lookups(on))[-1].meaning == "absent"
        assert (await on.standing()).effect == "none"
        assert on.books.jobs() == []
        await on.verified()


async def test_absence_after_a_cancel_is_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path, cached=CACHED) as on:
        on.books.lie("create", "drop_before_accepting")
        handle = await on.start("sim.listed.create")
        await on.soon_state("reconciling")
        await on.cancel()
        assert (await handle.result()).state == "cancelled"
        assert (await on.answered("c-1")).accepted
        assert (len(sent(on)), on.books.jobs(), on.books.requests("cancel")) == (1, [], [])
        due = await proof_is_due(on, visible_s=5)
        assert began((await lookups(on))[-1]) >= due
        await on.verified()


async def test_a_job_that_is_found_after_a_cancel_is_cancelled_and_no_create_is_sent_again(tmp_path: Path) -> None:
    async with stage(tmp_path, cached=CACHED) as on:
        on.books.lie("create", "drop_after_accepting")
        on.books.lie("list", "list_lag")
        handle = await on.start("sim.listed.create", LONG)
        await on.soon_state("reconciling")
        await on.cancel()
        assert (await on.answered("c-1")).accepted
        on.books.script.clear()  # only now can it be found
        assert (await handle.result()).state == "cancelled"
        assert (await on.states())[-4:] == ["reconciling", "cancel_requested", "cancelling", "cancelled"]
        assert len(sent(on)) == 1
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_a_cancel_while_the_create_is_on_the_wire_is_followed_by_a_lookup_and_never_by_the_same_name_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "hold", "drop_after_accepting", times=1)
        handle = await on.start("sim.named.create", LONG)
        await on.held()
        await on.cancel()
        await interrupted(on)
        on.release()
        assert (await handle.result()).state == "cancelled"
        assert len(sent(on)) == 1
        assert [lookup.meaning for lookup in await lookups(on)] == ["found"]
        assert [job.ended for job in on.books.jobs()] == ["cancelled"]
        await on.verified()


async def test_what_could_be_the_job_is_shown_to_a_human_who_adopts_one(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        one_clock(on)
        on.books.lie("create", "drop_after_accepting")
        await on.start("sim.searched.create")
        record = await on.until(lambda one: one.standing.attention)
        [job] = on.books.jobs()
        url = f"{on.provider.url}/v1/jobs/{job.id}"
        assert record.standing.candidates == ({"id": job.id, "status_url": url},)
        assert record.standing.job is None
        assert "lookup.candidates" in await on.story()
        await on.resolve("adopt", arguments={"id": job.id, "status_url": url})
        await ends_with_one_job(on)
        assert len(sent(on)) == 1


async def test_two_jobs_under_our_own_mark_are_shown_and_neither_is_adopted(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "accept_twice", "drop_after_accepting")
        await on.start("sim.listed.create")
        record = await on.until(lambda one: one.standing.attention)
        jobs = on.books.jobs()
        assert candidates_of(record.standing.candidates) == {job.id for job in jobs}
        assert len(jobs) == 2
        await on.resolve("adopt", arguments={"id": jobs[1].id})
        record = await on.until_state("succeeded")
        assert record.standing.job == {"id": jobs[1].id}
        await on.verified()


async def test_nothing_that_only_looks_like_it_is_not_proof_that_nothing_is_there(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_before_accepting")
        await on.start("sim.searched.create")
        record = await on.until(lambda one: one.standing.attention)
        assert record.standing.candidates == ()
        assert {lookup.meaning for lookup in await lookups(on)} == {"none"}
        assert len(sent(on)) == 1
        await on.verified()


async def test_lookups_are_tried_in_order_and_the_next_one_where_the_first_shows_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting")
        guess: Any = _lookup("sim.searched.create") | {"match": {"item.account": "nobody"}, "job": {"id": "item.job_id"}}
        await on.start(variant("sim.listed.create", {"reconcile": [guess, _lookup("sim.listed.create")]}))
        await ends_with_one_job(on)
        assert [(one.entry, one.meaning) for one in await lookups(on)][-2:] == [(0, "none"), (1, "found")]


async def test_what_is_found_and_belongs_to_another_operation_is_a_violation(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await (await on.start("sim.listed.create")).result()
        on.books.lie("create", "drop_before_accepting")
        taken: Any = _lookup("sim.listed.create") | {"job": {"id": f"'{on.books.jobs()[0].id}'"}, "match": {"length(mark) >= `1`": True}}
        await on.start(variant("sim.listed.create", {"reconcile": [taken], "version": 2}), stream="op-2")
        record = await on.until_state("contract_violation", "op-2")
        assert record.standing.violation is not None
        assert record.standing.violation["operation"] == "op-1"
        assert record.standing.job is None
        await on.verified("op-2")


async def test_a_wait_for_a_call_ends_and_proves_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_before_accepting")
        webhook: Any = {"scheme": "standard_webhooks", "secret": "sim", "job_id": "body.job_id"}
        call: Any = [{"by": "webhook", "match": {"body.reference": "${mark}"}, "wait": "2m"}]
        await on.start(variant("sim.plain.create", {"reconcile": call, "webhook": webhook, "deadlines": {"create": "10m"}}))
        record = await on.until(lambda one: one.standing.attention, step=10)
        first, last = await lookups(on)
        assert (first.exhausted, last.exhausted, record.standing.state) == (False, True, "create_unknown")
        assert last.at - (await create_intents(on))[0].at >= timedelta(minutes=2)
        await on.verified()


def _lookup(contract: str) -> dict[str, Any]:
    """The lookup that a contract ships with."""
    written: Any = json.loads(variant(contract, {}).canonical)["reconcile"][0]
    return written


def _get(path: str, query: dict[str, Any]) -> dict[str, Any]:
    return {"method": "GET", "path": path, "query": query}
