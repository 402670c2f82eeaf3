"""Steps ahead of a call: each is done once it is due, what it saved is used and kept out of the record, and what it left is taken back
where nothing was committed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from activities import preparing
from activities.preparing import StepDone
from domain.authority import Judgement, Question
from domain.contract import Contract
from domain.evidence import CancelAnswer, Erased, Intent, Observation, StepOutcome
from simulator.books import Seen
from simulator.uploads import Upload
from tests.workflows.losing import interrupted, made_by_others
from tests.workflows.stage import PLAIN, SECRET, Stage, stage, variant

QUICK = {"poll": {"first": "200ms", "factor": 1.5, "cap": "2s", "floor": "100ms"}}


def upload(name: str = "upload", **changes: Any) -> dict[str, Any]:
    """A step that puts something there, and can take it away again. A change to None takes a key away."""
    step = {
        "step": name,
        "request": {"method": "POST", "path": "/v1/uploads", "json": {"for": "${input.account}", "name": name, "mark": "${mark}"}},
        "answers": [{"when": {"status": 201}, "is": "done"}],
        "save": {"id": "body.id", "size": "body.size"},
        "undo": {"method": "DELETE", "path": "/v1/uploads/${steps." + name + ".id}"},
    } | changes
    return {key: value for key, value in step.items() if value is not None}


def plain(*steps: Mapping[str, Any], base: str = "sim.plain.create", reference: str = "${steps.upload.id}", **changes: Any) -> Contract:
    """A contract whose create names what its first step put there."""
    create: dict[str, Any] = {"before": list(steps) or [upload()], "request": {"json": {"reference": reference}}}
    return variant(base, {"create": create | changes.pop("create", {}), **changes})


def paths(on: Stage) -> list[str]:
    """What was asked of the provider, in order, status reads and results aside."""
    return [f"{one.method} {one.path}" for one in on.books.seen if one.kind in ("create", "upload", "remove")]


def made(on: Stage) -> list[Seen]:
    return on.books.requests("create")


async def outcomes(on: Stage) -> list[StepOutcome]:
    return [cast("StepOutcome", entry.evidence) for entry in await on.entries("step")]


async def nothing_is_left(on: Stage) -> list[Upload]:
    """Every upload was taken away, and nothing is said to be left."""
    assert on.books.uploads(removed=False) == []
    standing = await on.standing()
    assert (standing.leftovers, standing.flags) == ((), ())
    await on.verified()
    return on.books.uploads()


async def test_a_step_is_done_before_the_create_which_carries_what_it_saved(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start(plain(upload(), upload("second", undo=None)))).result()
        assert (head.state, head.step) == ("succeeded", "done")
        [first, second], [job] = on.books.uploads(), on.books.jobs()
        assert job.reference == first.id
        assert (json.loads(first.content)["name"], json.loads(second.content)["name"]) == ("upload", "second")
        assert paths(on) == ["POST /v1/uploads", "POST /v1/uploads", "POST /v1/plain/reports"]
        story = await on.story()
        assert story[:12] == [
            "opened.opened", "owner.claimed", "policy.unattended", "policy.unattended", "intent.step", "step.done", "policy.unattended",
            "intent.step", "step.done", "policy.unattended", "intent.create", "exchange.accepted",
        ]  # fmt: skip
        assert (await on.states())[:3] == ["approved", "create_pending", "accepted"]
        assert on.books.uploads(removed=True) == [], "a job is at work with what its steps left"
        await on.verified()


async def test_what_a_step_saved_stands_in_no_entry_and_is_kept_behind_salt(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await (await on.start(plain(upload(save={"id": "body.id", "planted": f"'{SECRET}'"})))).result()
        [left] = on.books.uploads()
        entries = b"".join(entry.raw for entry in await on.entries())
        assert left.id.encode() not in entries
        assert SECRET.encode() not in entries
        [done] = await outcomes(on)
        assert done.saved is not None
        kept = await on.ledger.payload(done.saved.digest)
        assert json.loads(kept[32:]) == {"id": left.id, "planted": SECRET}
        assert len(set(kept[:32])) > 8


@pytest.mark.parametrize(
    "lie", ["drop_after_accepting", "drop_before_accepting", "status_500", "status_503", "truncated_body", "unauthorized"]
)
async def test_a_step_without_a_usable_answer_is_sent_again_and_its_last_answer_counts(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("upload", lie, times=2)
        head = await (await on.start(plain())).result()
        assert head.state == "succeeded"
        assert len(on.books.requests("upload")) == 3
        [job] = on.books.jobs()
        assert job.reference == on.books.uploads()[-1].id
        assert [one.meaning for one in await outcomes(on)] == ["again", "again", "done"]
        assert len(made(on)) == 1
        await on.verified()


async def test_a_step_is_sent_again_no_sooner_than_the_provider_asks(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("upload", {"word": "status_429", "args": {"seconds": 20}}, times=1)
        await (await on.start(plain())).result()
        first, second = [entry.evidence.at for entry in await on.entries("intent") if entry.cause == "intent.step"]
        assert (second - first).total_seconds() >= 20


async def test_a_crash_between_the_answer_of_a_step_and_its_entry_sends_the_step_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path) as on:
        honest, died = preparing._record, list[str]()

        async def dies(*args: Any, **named: Any) -> Any:
            if not died:
                died.append(cast("StepDone", args[2]).step)
                raise RuntimeError("the worker is gone")
            return await honest(*args, **named)

        monkeypatch.setattr(preparing, "_record", dies)
        head = await (await on.start(plain())).result()
        assert (head.state, died) == ("succeeded", ["upload"])
        lost, used = on.books.uploads()
        assert [job.reference for job in on.books.jobs()] == [used.id]
        assert not lost.removed, "nobody knows of it"
        assert [one.meaning for one in await outcomes(on)] == ["done"]
        await on.verified()


async def test_a_step_that_is_refused_ends_the_operation_and_what_the_steps_before_it_left_is_undone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("upload", "reject", nth=3)
        head = await (await on.start(plain(upload(), upload("second"), upload("third")))).result()
        assert (head.state, head.step) == ("failed", "done")
        first, second = await nothing_is_left(on)
        assert paths(on)[3:] == [f"DELETE /v1/uploads/{second.id}", f"DELETE /v1/uploads/{first.id}"], "the newest first"
        assert made(on) == []
        assert (await on.standing()).why == "we do not do this"
        story = await on.story()
        assert story[story.index("step.refused") :] == ["step.refused", "intent.undo", "step.undone", "intent.undo", "step.undone"]
        assert {entry.role for entry in (await on.entries())[-4:]} == {"note"}, "the state stays what it is"


async def test_a_step_that_cannot_be_made_ends_the_operation_before_anything_is_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        cannot = upload(request={"method": "POST", "url": "https://elsewhere.example/uploads", "json": {}})
        head = await (await on.start(plain(cannot))).result()
        assert (head.state, on.books.seen) == ("failed", [])
        [refused] = await outcomes(on)
        assert (refused.meaning, refused.word) == ("refused", "unrenderable")
        await on.verified()


async def test_a_step_whose_answer_is_about_something_else_is_a_contradiction(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.start(plain(upload(), upload("second", same={"body.id": "${steps.upload.id}"})))
        await on.until_state("contract_violation")
        violation = (await on.standing()).violation or {}
        assert violation["why"] == "step second: the answer shows something else than was asked for"
        assert (violation["word"], violation["field"]) == ("done", "body.id")
        assert str(violation["found"]).startswith("salted digest "), "what steps saved stands in no entry"
        assert violation["expected"] != [violation["found"]]
        assert made(on) == []
        await on.resolve("abandon")
        await on.until(lambda one: one.standing.state == "abandoned" and not one.standing.leftovers)
        assert [one.removed for one in on.books.uploads()] == [True, False], "what was done is undone; a contradiction was not done"


async def test_an_answer_without_a_value_to_save_leaves_the_step_undone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        head = await (await on.start(plain(upload(save={"id": "body.key"}), deadlines={"create": "30s"}))).result()
        assert (head.state, made(on)) == ("failed", [])
        seen = await outcomes(on)
        assert {(one.meaning, one.word, one.words.reason) for one in seen} == {("again", "done", "the answer has no value for id")}


async def test_a_cancel_between_two_steps_ends_it_and_what_was_done_is_undone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("upload", "hold", nth=2)
        await on.start(plain(upload(), upload("second"), upload("third")))
        await on.held()
        await on.cancel()
        await interrupted(on)
        on.release()
        await on.until(lambda one: one.standing.state == "cancelled" and not one.standing.leftovers)
        assert len(await nothing_is_left(on)) == 2, "what was on the wire was taken, and is undone too"
        assert made(on) == []


async def test_at_the_create_deadline_no_step_is_sent_any_more_and_what_was_done_is_undone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("upload", {"word": "status_429", "args": {"retry_after": "hour"}}, nth=2)
        head = await (await on.start(plain(upload(), upload("second")))).result()
        assert head.state == "failed"
        assert len(on.books.requests("upload")) == 2
        assert len(await nothing_is_left(on)) == 1
        assert "clock.create" in await on.story()


class ChangesItsMind:
    """A gate that lets so many things be done, and then nothing."""

    def __init__(self, lets: int) -> None:
        self.left = lets

    def judge(self, question: Question) -> Judgement:
        self.left -= 1
        return Judgement(answer="unattended" if self.left >= 0 else "no", why=None if self.left >= 0 else "not any more", bundle="b" * 64)

    def judge_decision(self, question: Question, verb: str, person: str) -> Judgement:
        return Judgement(answer="unattended", bundle="b" * 64)


@pytest.mark.parametrize(("lets", "uploads"), [(1, 0), (2, 1), (3, 2)])
async def test_policy_that_says_no_between_steps_denies_it_and_what_was_done_is_undone(tmp_path: Path, lets: int, uploads: int) -> None:
    async with stage(tmp_path, gate=ChangesItsMind(lets)) as on:
        head = await (await on.start(plain(upload(), upload("second")))).result()
        assert (head.state, made(on)) == ("denied", [])
        assert len(await nothing_is_left(on)) == uploads


@pytest.mark.parametrize("lie", ["drop_after_accepting", "drop_before_accepting", "status_500", "status_429", "reject"])
async def test_an_undo_without_a_usable_answer_is_sent_again_and_one_of_what_is_gone_was_taken(tmp_path: Path, lie: str) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "reject")
        on.books.lie("remove", lie, times=2)
        head = await (await on.start(plain(**QUICK_OBSERVE))).result()
        assert (head.state, head.step) == ("failed", "done")
        await nothing_is_left(on)
        [*tried, taken] = [one for one in await outcomes(on) if one.meaning != "done"]
        assert [one.meaning for one in tried] == ["undo_again", "undo_again"]
        assert (taken.meaning, taken.word) == ("undone", "404" if lie == "drop_after_accepting" else "204")


QUICK_OBSERVE: dict[str, Any] = {"observe": QUICK}


async def test_an_undo_that_is_never_taken_is_given_up_and_flagged_and_the_state_stays(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "reject")
        on.books.lie("remove", "status_500", nth=None)
        head = await (await on.start(plain(upload(), upload("second"), deadlines={"create": "20s"}, observe=QUICK))).result()
        assert (head.state, head.step) == ("failed", "done")
        standing = await on.standing()
        assert standing.leftovers == ()
        assert [flag.word for flag in standing.flags] == ["leftovers", "leftovers"]
        assert "what the step second left could not be undone" in standing.flags[0].why
        ended = [entry.evidence.at for entry in await on.entries("step") if entry.cause == "step.leftover"]
        assert all((at - standing.state_since).total_seconds() >= 20 for at in ended)
        assert len(on.books.uploads(removed=False)) == 2
        await on.verified()


async def test_what_was_saved_and_is_erased_cannot_be_undone_and_that_is_said(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "reject")
        on.books.lie("remove", "status_500", times=1)
        handle = await on.start(plain(observe={"poll": {"first": "1m", "cap": "1m"}}))
        record = await on.until(lambda one: one.standing.final and one.standing.next_at is not None, step=0.1)
        [left] = record.standing.leftovers
        gone = (left.steps["upload"].digest,)
        await on.ledger.erase("op-1", Erased(at=on.clocks.now(), actor="human:local", refs=gone, by="local", reason="asked for"))
        assert (await handle.result()).state == "failed"
        assert [one.meaning for one in await outcomes(on)][-1] == "leftover"
        assert [flag.word for flag in (await on.standing()).flags] == ["leftovers"]


# --- generations ---------------------------------------------------------------------------------------------------------------


def listed(*steps: Mapping[str, Any], **changes: Any) -> Contract:
    """A contract by which absence can be proven; its create takes what was put there in a query that nobody reads."""
    create: dict[str, Any] = {"before": list(steps) or [upload()], "request": {"query": {"upload": "${steps.upload.id}"}}}
    return variant("sim.listed.create", {"create": create, **changes})


async def test_a_new_generation_undoes_what_the_old_one_left_and_does_its_own_steps(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_before_accepting", times=1)
        head = await (await on.start(listed(deadlines={"create": "10m"}))).result()
        assert head.state == "succeeded"
        old, new = on.books.uploads()
        lost, taken = made(on)
        assert paths(on)[2:5] == [f"DELETE /v1/uploads/{old.id}", "POST /v1/uploads", f"POST {taken.path}"]
        assert (lost.query, taken.query) == ({"upload": old.id}, {"upload": new.id})
        assert (old.removed, new.removed) == (True, False)
        standing = await on.standing()
        assert (standing.generation, len(on.books.jobs())) == (2, 1)
        assert {one.generation for one in await outcomes(on)} == {1, 2}
        assert json.loads(old.content)["mark"] != json.loads(new.content)["mark"]
        await on.verified()


async def test_a_new_generation_does_not_start_while_the_old_one_left_something_and_a_human_decides(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_before_accepting", times=1)
        on.books.lie("remove", "status_500")
        await on.start(listed(deadlines={"create": "10m"}, observe=QUICK))
        await on.until_state("awaiting_approval", step=5.0)
        assert len(made(on)) == 1
        assert len(on.books.uploads()) == 1
        record = await on.ledger.record("op-1")
        assert [flag.word for flag in record.standing.flags] == ["leftovers"]
        await on.cancel()
        await on.until_state("cancelled")
        assert (await on.standing()).leftovers == (), "it was given up once, and is not tried for ever"
        await on.verified()


async def test_what_an_unproven_generation_left_is_never_undone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        handle = await on.start(plain())
        await on.until_state("create_unknown")
        await on.resolve("retry_create")
        assert (await handle.result()).state == "succeeded"
        assert on.books.requests("remove") == [], "the first request made a job too, which may be at work with it"
        assert len(on.books.jobs()) == 2
        assert [one.generation for one in (await on.standing()).leftovers] == [1]
        await on.verified()


async def test_a_replay_sends_the_same_bytes_and_does_no_step_again(tmp_path: Path) -> None:
    """The value of a step is the token: the provider knows the second sending for the first."""
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        create: dict[str, Any] = {
            "before": [upload()],
            "request": {"headers": {"Idempotency-Key": "${token}"}},
            "token": {"from": "steps.upload.id", "window": "24h", "format": None},
        }
        head = await (await on.start(variant("sim.reports.create", {"create": create}))).result()
        assert head.state == "succeeded"
        [left], [first, second] = on.books.uploads(), made(on)
        assert first.token == second.token == left.id
        assert first.body_digest == second.body_digest
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_token_that_a_step_did_not_give_as_text_is_none_and_nothing_is_created(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        create: dict[str, Any] = {
            "before": [upload(save={"id": "body.id", "list": "[body.id]"})],
            "request": {"headers": {"Idempotency-Key": "${token || 'none'}"}},
            "token": {"from": "steps.upload.list", "window": "24h", "format": None},
        }
        head = await (await on.start(variant("sim.reports.create", {"create": create}))).result()
        assert (head.state, made(on)) == ("failed", [])
        await nothing_is_left(on)


async def test_a_lookup_finds_a_job_by_what_a_step_saved(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", times=1)
        contract = variant(
            "sim.listed.create",
            {
                "create": {
                    "before": [upload()],
                    "request": {"headers": {"X-Reference": "${steps.upload.id}"}, "json": {"reference": None}},
                },
                "reconcile": [
                    {
                        "by": "list",
                        "request": {"method": "GET", "path": "/v1/reports", "query": {"cursor": "${page.next}", "limit": 50}},
                        "pages": {"items": "body.items", "next": "body.next"},
                        "match": {"item.reference": "${steps.upload.id}"},
                        "strength": "exact",
                        "visible_within": "5s",
                        "job": {"id": "item.job_id"},
                    }
                ],
            },
        )
        head = await (await on.start(contract)).result()
        assert head.state == "succeeded"
        assert (len(on.books.jobs()), len(on.books.uploads(removed=False))) == (1, 1)


# --- pages, and the other stages -----------------------------------------------------------------------------------------------

LISTING: dict[str, Any] = {
    "step": "others",
    "request": {"method": "GET", "path": "/v1/reports", "query": {"cursor": "${page.next}", "limit": 2}},
    "pages": {"items": "body.items", "next": "body.next"},
    "answers": [{"when": {"status": 200}, "is": "done"}],
    "save": {"jobs": "items[].job_id", "count": "length(items)"},
}


async def test_the_pages_of_a_step_are_read_to_the_end_and_saved_as_one(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        others = made_by_others(on, 5)
        contract = plain(LISTING, reference="${join(',', steps.others.jobs)}")
        head = await (await on.start(contract)).result()
        assert head.state == "succeeded"
        assert on.books.jobs("a-1")[0].reference == ",".join(job.id for job in others)
        assert [one.query for one in on.books.requests("list")] == [
            {"limit": "2"}, {"cursor": "2", "limit": "2"}, {"cursor": "4", "limit": "2"},
        ]  # fmt: skip
        [done] = await outcomes(on)
        assert (done.meaning, done.pages) == ("done", 3)


async def test_pages_that_lead_back_to_one_that_was_read_are_not_followed_for_ever(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        made_by_others(on, 3)
        circle = {**LISTING, "pages": {"items": "body.items", "next": "'0'"}}
        head = await (await on.start(plain(circle, reference="x", deadlines={"create": "30s"}))).result()
        assert (head.state, made(on)) == ("failed", [])
        assert {one.words.reason for one in await outcomes(on)} == {"the pages lead back to one that was read"}
        limited = {**LISTING, "pages": {"items": "body.items", "next": "body.next", "limit": 1}}
        await (await on.start(plain(limited, reference="x", deadlines={"create": "30s"}, version=2), stream="op-2")).result()
        assert {cast("StepOutcome", entry.evidence).words.reason for entry in await on.entries("step", "op-2")} == {
            "the pages are more than can be read"
        }


async def test_the_next_page_may_be_a_whole_address_of_the_providers_and_nothing_is_sent_elsewhere(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        made_by_others(on, 3)
        by_address = {
            **LISTING,
            "pages": {"items": "body.items", "next_url": "body.next && join('', ['/v1/reports?limit=2&cursor=', body.next])"},
        }
        contract = plain(by_address, reference="${to_string(steps.others.count)}")
        assert (await (await on.start(contract)).result()).state == "succeeded"
        assert on.books.jobs("a-1")[0].reference == "3"
        elsewhere = {**LISTING, "pages": {"items": "body.items", "next_url": "'https://elsewhere.example/v1/reports'"}}
        head = await (await on.start(plain(elsewhere, reference="x", version=2), stream="op-2")).result()
        assert head.state == "failed"
        [refused] = [cast("StepOutcome", entry.evidence) for entry in await on.entries("step", "op-2")]
        assert (refused.meaning, refused.word, refused.pages) == ("refused", "unrenderable", 2)


async def test_the_steps_of_a_reading_are_done_anew_each_time_and_stand_in_its_entry(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        ticket = upload("ticket", undo=None)
        observe = {"before": [ticket], "request": {"query": {"ticket": "${steps.ticket.id}", "first": "${steps.upload.id}"}}}
        on.books.lie("upload", "status_503", nth=3)
        head = await (await on.start(plain(observe=observe), {**PLAIN, "polls": 3})).result()
        assert head.state == "succeeded"
        first, *tickets = on.books.uploads()
        assert [one.query for one in on.books.requests("observe")] == [{"ticket": one.id, "first": first.id} for one in tickets]
        readings = [cast("Observation", entry.evidence) for entry in await on.entries("reading")]
        assert all([seen.step for seen in reading.before] == ["ticket"] for reading in readings)
        [failed] = [reading for reading in readings if reading.meaning == "failed"]
        assert (failed.word, failed.before[0].word, failed.http) == ("step ticket: throttled", "throttled", None)
        assert await on.entries("step") == [entry for entry in await on.entries("step") if entry.cause == "step.done"][:1]
        assert tickets[0].id.encode() not in b"".join(entry.raw for entry in await on.entries())
        await on.verified()


@pytest.mark.parametrize(
    ("change", "lie", "meaning"),
    [
        ({}, "reject", "refused"),
        ({"same": {"body.id": "x"}}, None, "violation"),
        ({"request": {"method": "POST", "url": "https://elsewhere.example/uploads", "json": {}}}, None, "failed"),
    ],
)
async def test_a_reading_whose_step_is_not_done_has_shown_nothing(tmp_path: Path, change: Any, lie: str | None, meaning: str) -> None:
    async with stage(tmp_path) as on:
        if lie:
            on.books.lie("upload", lie)
        contract = variant(
            "sim.plain.create", {"observe": {"before": [upload("ticket", undo=None, **change)]}, "deadlines": {"result": "30s"}}
        )
        await on.start(contract)
        await on.until_state("contract_violation" if meaning == "violation" else "result_timed_out")
        readings = [cast("Observation", entry.evidence) for entry in await on.entries("reading")]
        assert {reading.meaning for reading in readings} == {meaning}
        assert on.books.requests("observe") == []
        if meaning == "refused":
            assert [flag.word for flag in (await on.standing()).flags] == ["read_rejected"]


@pytest.mark.parametrize(("lie", "meanings"), [("status_503", ["again", "taken"]), ("reject", ["refused"])])
async def test_a_cancel_waits_for_its_steps_and_is_sent_with_what_they_saved(tmp_path: Path, lie: str, meanings: list[str]) -> None:
    async with stage(tmp_path) as on:
        cancel = {"before": [upload("ticket", undo=None)], "request": {"query": {"ticket": "${steps.ticket.id}"}}}
        await on.start(variant("sim.plain.create", {"cancel": cancel}), {**PLAIN, "polls": 500})
        await on.until_state("observing")
        on.books.lie("upload", lie, times=1)
        await on.cancel()
        await on.until(lambda one: one.standing.state in ("cancelled", "observing") and one.standing.answered != {})
        await on.until(lambda one: "cancel_requested" not in one.standing.state)
        answers = [cast("CancelAnswer", entry.evidence) for entry in await on.entries("cancel_answer")]
        assert [answer.meaning for answer in answers] == meanings
        assert all([seen.step for seen in answer.before] == ["ticket"] for answer in answers)
        sent = [one for one in await on.entries("intent") if cast("Intent", one.evidence).meaning == "cancel"]
        assert len(sent) == len(on.books.requests("cancel")) == meanings.count("taken")
        assert [one.query for one in on.books.requests("cancel")] == [{"ticket": one.id} for one in on.books.uploads()]
        await on.verified()


async def test_a_cancel_whose_step_is_about_something_else_is_not_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        cancel = {"before": [upload("ticket", undo=None, same={"body.id": "x"})]}
        await on.start(variant("sim.plain.create", {"cancel": cancel}), {**PLAIN, "polls": 500})
        await on.until_state("observing")
        await on.cancel()
        await on.until_state("contract_violation")
        assert on.books.requests("cancel") == []
