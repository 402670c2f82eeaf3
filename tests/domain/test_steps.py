"""Steps: what their answers mean, what is known where in a contract, and what a standing remembers of them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.contract import Contract
from domain.errors import AddressError
from domain.evidence import Ref
from domain.exchange import Answer
from domain.language.calls import Step
from domain.language.expressions import Scope
from domain.language.step_checks import known_at
from domain.lifecycle import next_step
from domain.paging import MAX_CURSOR, Following, Trail, next_page, page_root
from domain.steps import MAX_ITEMS, MAX_SAVED, StepRead, kept_values, read_step, token_of, values_of
from tests.domain.growing import Stream, at, told
from tests.domain.sample_contract import answer, problems, sample

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SALT = b"s" * 32
REQUEST = {"method": "POST", "path": "/files"}
UPLOAD: dict[str, Any] = {
    "step": "upload",
    "request": REQUEST,
    "answers": [{"when": {"status": 201}, "is": "done"}, {"when": {"status": 400}, "is": "rejected", "reason": "body.why"}],
    "save": {"id": "body.id"},
    "undo": {"method": "DELETE", "path": "/files/${steps.upload.id}"},
}
LISTING: dict[str, Any] = {
    "step": "list",
    "request": {"method": "GET", "path": "/files", "query": {"cursor": "${page.next}"}},
    "pages": {"items": "body.items", "next": "body.next"},
    "answers": [{"is": "done"}],
    "save": {"all": "items", "last": "body.last || 'none'"},
}


def made(step: dict[str, Any]) -> tuple[Contract, Step]:
    contract = sample(create__before=[step])
    return contract, contract.create.before[0]


def read(value: object, status: int = 201, scope: Scope | None = None, **changes: Any) -> StepRead:
    contract, step = made({**UPLOAD, **changes})
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_step(contract, step, answer(status, body), scope or Scope(), NOW)


# --- what an answer means --------------------------------------------------------------------------------------------------------


def test_done_is_the_contracts_word_and_gives_what_is_saved() -> None:
    found = read({"id": "file-1"})
    assert (found.meaning, found.word, found.saved) == ("done", "done", {"id": "file-1"})


@pytest.mark.parametrize(
    ("status", "value", "meaning", "reason"),
    [
        (400, {"why": "too large", "message": "no"}, "refused", "too large"),
        (200, {"id": "file-1"}, "again", None),
        (429, {}, "again", None),
        (500, {}, "again", None),
        (201, {}, "again", "the answer has no value for id"),
        (201, {"id": None}, "again", "the answer has no value for id"),
        (201, b"{", "again", "the answer could not be read whole"),
        (201, {"id": "x" * (MAX_SAVED + 1)}, "again", f"the values take more than {MAX_SAVED} bytes"),
    ],
)
def test_whatever_is_not_done_whole_saves_nothing(status: int, value: object, meaning: str, reason: str | None) -> None:
    found = read(value, status)
    assert (found.meaning, found.reason) == (meaning, reason)
    if meaning == "refused":
        assert found.message == "no"


def test_an_answer_about_something_else_is_a_violation_and_one_that_does_not_say_is_undecided() -> None:
    same = {"body.name": "${input.name}"}
    asked = Scope(input={"name": "a"})
    assert read({"id": "f", "name": "a"}, scope=asked, same=same).meaning == "done"
    assert read({"id": "f", "name": "b"}, scope=asked, same=same).meaning == "violation"
    assert read({"id": "f"}, scope=asked, same=same).meaning == "again"


def test_an_answer_that_is_more_than_can_be_evaluated_is_undecided() -> None:
    wide = ", ".join(["body.list"] * 200)
    found = read({"list": list(range(2_000))}, save={"id": f"[{wide}][][]"})
    assert (found.meaning, found.reason) == ("again", "the answer is more than can be read")


def test_a_value_that_no_file_can_hold_is_not_saved() -> None:
    contract, upload = made({**UPLOAD, "save": {"id": "headers.x_id"}})
    found = read_step(contract, upload, answer(201, b"{}", (("x-id", "a\ud800"),)), Scope(), NOW)
    assert (found.meaning, found.reason) == ("again", "a value that cannot be kept")


def test_a_step_ahead_of_a_reading_may_be_offered_less_and_save_more() -> None:
    step = {key: value for key, value in UPLOAD.items() if key != "undo"} | {"save": {"id": "body.id", "size": "body.size"}}
    contract = sample(observe__before=[step])
    assert contract.observe is not None
    ahead = contract.observe.before[0]
    wide = "x" * (MAX_SAVED + 1)
    found = read_step(contract, ahead, answer(201, json.dumps({"id": wide}).encode()), Scope(), NOW)
    assert (found.meaning, found.saved) == ("done", {"id": wide})
    found = read_step(contract, ahead, answer(201, json.dumps({"id": "x" * (MAX_ITEMS + 1)}).encode()), Scope(), NOW)
    assert (found.meaning, found.reason) == ("again", f"the values take more than {MAX_ITEMS} bytes")


def pages(*bodies: object, **changes: Any) -> list[StepRead]:
    contract, step = made({**LISTING, **changes})
    found: list[StepRead] = []
    for index, body in enumerate(bodies):
        before = found[-1] if found else None
        scope = Scope(page=page_root(index, before.leads if before else None))
        found.append(read_step(contract, step, answer(200, json.dumps(body).encode()), scope, NOW, before=before))
    return found


def test_items_are_added_up_over_pages_and_saved_from_the_last() -> None:
    first, second = pages({"items": [1, 2], "next": "c-2"}, {"items": [3], "last": "yes"})
    assert (first.meaning, first.items, first.leads, first.saved) == ("page", (1, 2), Following(next="c-2", more=True), {})
    assert (second.meaning, second.saved) == ("done", {"all": [1, 2, 3], "last": "yes"})


def test_pages_without_items_are_done_with_the_last_one() -> None:
    unlisted = {"pages": {"next": "body.next"}, "save": {"last": "body.last"}}
    assert [one.meaning for one in pages({"next": "c-2"}, {"last": "yes"}, **unlisted)] == ["page", "done"]


@pytest.mark.parametrize("body", [{"items": {"a": 1}}, {}, {"items": [], "next": "x" * MAX_CURSOR}])
def test_a_page_that_does_not_show_its_items_or_how_to_go_on_is_undecided(body: object) -> None:
    [found] = pages(body)
    assert (found.meaning, found.reason) == ("again", "the page does not show its items, or how to go on")


def test_the_items_of_all_pages_are_bounded() -> None:
    half = ["x" * (MAX_ITEMS // 2)]
    first, second = pages({"items": half, "next": "c-2"}, {"items": half})
    assert (first.meaning, second.meaning) == ("page", "again")
    assert second.reason == f"the items of all pages take more than {MAX_ITEMS} bytes"


def test_a_trail_knows_where_it_was_and_counted_pages_leave_none() -> None:
    trail = Trail()
    assert [trail.leads_back(Following(next=cursor, more=True)) for cursor in ("a", "b", "a")] == [False, False, True]
    assert [trail.leads_back(Following(more=True)) for _ in range(2)] == [False, False]
    assert Trail().leads_back(Following(next_url="/a", more=True)) is False


def test_the_address_of_a_next_page_is_data_under_the_rules_of_addresses() -> None:
    contract, listing = made(LISTING)
    base = "https://api.sample.example/files?cursor=a"
    scope = Scope(page=page_root(1))

    def leads(url: str) -> str:
        return next_page(contract, listing.request, scope, url, base).url

    assert leads("/files?page=2") == "https://api.sample.example/files?page=2"
    assert leads("?page=2") == "https://api.sample.example/files?page=2"
    assert leads("/files?x=${steps.a}") == "https://api.sample.example/files?x=${steps.a}"
    for elsewhere in ("//other.example/files", "https://other.example/files", "http://api.sample.example/", "/a b", "/#a"):
        with pytest.raises(AddressError):
            leads(elsewhere)


def test_what_was_saved_comes_back_as_it_was_and_its_digest_tells_nothing() -> None:
    values: dict[str, Any] = {"id": 2**70, "list": [1, None, "x"]}
    kept = kept_values(SALT, "op-1", 1, "upload", values)
    assert values_of(kept) == values
    assert kept_values(SALT, "op-1", 1, "upload", values) == kept
    others = [kept_values(SALT, "op-1", 2, "upload", values), kept_values(SALT, "op-2", 1, "upload", values)]
    assert len({one[:32] for one in (kept, *others, kept_values(b"t" * 32, "op-1", 1, "upload", values))}) == 4


@pytest.mark.parametrize(
    ("value", "token"), [("file-1", "file-1"), (7, "7"), (True, None), ("", None), ([1], None), (None, None), (1.5, None)]
)
def test_a_token_from_a_step_is_text_or_a_whole_number(value: Any, token: str | None) -> None:
    assert token_of(("steps.upload.id",), {"upload": {"id": value}}) == token


def test_a_token_whose_expression_is_too_much_is_none() -> None:
    wide = ", ".join(["steps.a"] * 200)
    assert token_of((f"[{wide}][][]",), {"a": list(range(2_000))}) is None


# --- what is wrong with a contract -----------------------------------------------------------------------------------------------


def step(name: str, *, uses: str | None = None, **changes: Any) -> dict[str, Any]:
    query = {"query": {"x": f"${{steps.{uses}}}"}} if uses else {}
    return {"step": name, "request": {**REQUEST, **query}, "answers": [{"is": "done"}], "save": {"id": "body.id"}, **changes}


USES_A: dict[str, Any] = {"create__request__query": {"x": "${steps.a.id}"}}
BAD_PATH: dict[str, Any] = {"method": "GET", "path": "/a?b"}
OUTPUT: dict[str, Any] = {"from": {"request": {"method": "GET", "path": "/a", "query": {"x": "${steps.own.id}"}}}, "before": [step("own")]}


@pytest.mark.parametrize(
    "changes",
    [
        {"create__before": [step("a"), step("b", uses="a.id")], "create__request__query": {"x": "${steps.b.id}"}},
        {"create__before": [UPLOAD], "observe__request__query": {"x": "${steps.upload.id}"}},
        {"create__before": [UPLOAD], "cancel__request__query": {"x": "${steps.upload}"}},
        {"create__before": [UPLOAD], "errors__code": "steps.upload.id"},
        {"observe__before": [step("a"), step("b", uses="a.id")], "observe__same": {"body.a": "${steps.b.id}"}},
        {"cancel__before": [step("a")], "cancel__request__query": {"x": "${steps.a.id}"}},
        {
            "cancel__force": {
                "before": [step("a"), step("b", uses="a.id")],
                "request": {**REQUEST, "query": {"x": "${steps.b.id}"}},
                "answers": [{"is": "acknowledged"}],
            }
        },
        {"collect__before": [step("a")], "collect__from__request__query": {"x": "${steps.a.id}"}},
        {
            "collect": {
                "before": [step("all")],
                "outputs": {"one": {**OUTPUT, "each": "steps.all.id", "name": "${steps.own.id}"}},
                "expect": {"outputs.one.bytes": {"not": None}, "`1`": ["${steps.all.id}", 1]},
            }
        },
        {"create__before": [LISTING]},
        {"create__before": [{**LISTING, "pages": {"more": {"body.more": True}}, "save": {}}]},
    ],
)
def test_steps_know_what_was_saved_before_them(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"create__before": [step("a"), step("a")]}, "create.before.1.step", "a name of its own"),
        ({"create__before": [step("a")], "observe__before": [step("a")]}, "observe.before.0.step", "a name of its own"),
        ({"create__before": [step("a", uses="b.id"), step("b")]}, "create.before.0.request.query.x", "a step that is done before this; b"),
        ({"create__before": [step("a", uses="a.id")]}, "create.before.0.request.query.x", "a step that is done before this; a is not"),
        ({"create__before": [step("a", save={"id": "steps.a.id"})]}, "create.before.0.save.id.0", "a step that is done before this"),
        ({"create__before": [step("a", uses="c.id")]}, "create.before.0.request.query.x", "steps has no c; it has a"),
        ({"create__before": [step("a", save={})], **USES_A}, "create.request.query.x", "saves no id"),
        ({"create__request__query": {"x": "${steps.a.id}"}}, "create.request.query.x", "steps has no a; it has nothing"),
        ({"observe__before": [step("a")], "create__request__query": {"x": "${steps.a.id}"}}, "create.request.query.x", "is done before"),
        ({"observe__before": [step("a")], "cancel__request__query": {"x": "${steps.a.id}"}}, "cancel.request.query.x", "is done before"),
        ({"collect": {"outputs": {"a": OUTPUT, "b": {**OUTPUT, "before": []}}}}, "collect.outputs.b.from.0.request.query.x", "own is not"),
        ({"collect": {"outputs": {"a": {**OUTPUT, "each": "steps.own.id"}}}}, "collect.outputs.a.each.0", "own is not"),
        ({"collect__before": [step("a")], "collect__when": {"steps.a.id": 1}}, "collect.when.steps.a.id", "a is not"),
        ({"create__before": [step("a", answers=[{"is": "throttled"}])]}, "create.before.0.answers", "an answer that is done"),
        ({"observe__before": [step("a", undo=REQUEST)]}, "observe.before.0.undo", "no undo outside of create.before"),
        ({"create__before": [step("a", save={"x": "items[0]"})]}, "create.before.0.save.x", "no items"),
        ({"create__before": [step("a", pages={"next": "body.n"}, save={"x": "items"})]}, "create.before.0.save.x", "no items"),
        ({"create__before": [step("a", pages={"next": "body.n", "count": "body.c"})]}, "create.before.0.pages", "at most one of"),
        ({"create__before": [step("a", pages={"items": "body.i"})]}, "create.before.0.pages", "how a page leads on"),
        ({"create__before": [step("a", request={**REQUEST, "headers": {"Host": "x"}})]}, "create.before.0.request.headers.Host", "header"),
        ({"create__before": [{**UPLOAD, "undo": {**REQUEST, "host": "https://x.example"}}]}, "create.before.0.undo.host", "http.hosts"),
        ({"cancel__force": {"request": BAD_PATH, "answers": [{"is": "refused"}]}}, "cancel.force.request.path", "a path"),
        ({"collect": {"outputs": {"a": {"from": {"request": BAD_PATH}}}}}, "collect.outputs.a.from.0.request.path", "a path"),
        ({"create__before": [step("a", answers=[{"is": "done"}, {"is": "done"}])]}, "create.before.0.answers.1", "can be reached"),
        (
            {"collect": {"outputs": {"a": {"from": [{"inline": "observed.body"}, {"inline": "observed.body"}]}}}},
            "collect.outputs.a.from.1", "can be reached",
        ),
    ],
)  # fmt: skip
def test_a_step_that_could_never_be_done_or_used_is_an_error_with_its_place(changes: dict[str, Any], key: str, said: str) -> None:
    found = problems(**changes)
    assert [place for place, _ in found] == [key], found
    assert said in found[0][1]


TOKEN: dict[str, Any] = {"from": "steps.upload.id", "window": "1d"}


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"create__token": {**TOKEN, "format": "hex"}}, "create.token.format", "no format beside from"),
        ({"create__token": {**TOKEN, "charset": "abc"}}, "create.token.charset", "no charset beside from"),
        ({"create__token": {**TOKEN, "from": "'a'"}}, "create.token.from", "a value of an earlier step"),
        ({"create__token": {**TOKEN, "from": "steps.upload.name"}}, "create.token.from.0", "saves no name"),
        (
            {"create__before": [{**UPLOAD, "request": {**REQUEST, "query": {"x": "${token}"}}}]},
            "create.before.0.request.query.x", "before the step",
        ),
    ],
)  # fmt: skip
def test_a_token_may_come_from_an_earlier_step_alone(changes: dict[str, Any], key: str, said: str) -> None:
    base: dict[str, Any] = {"create__before": [UPLOAD], "create__token": TOKEN}
    assert problems(**base) == []
    found = problems(**base | changes)
    assert [place for place, _ in found][:1] == [key], found
    assert said in found[0][1]


def test_a_token_from_elsewhere_than_steps_is_an_error() -> None:
    found = problems(create__before=[UPLOAD], create__token={**TOKEN, "from": "input.name"})
    assert ("create.token.from.0", "input is not known here; known are steps") in found


def test_a_lookup_is_exact_by_what_a_step_saved() -> None:
    lookup = {
        "by": "list", "request": {"method": "GET", "path": "/jobs"}, "pages": {"items": "body.items"}, "strength": "exact",
        "match": {"item.file": "${steps.upload.id}"}, "job": {"id": "item.id"},
    }  # fmt: skip
    assert problems(create__before=[UPLOAD], reconcile=[lookup]) == []


def test_what_is_known_of_a_stage_that_a_contract_does_not_have_is_what_create_saved() -> None:
    contract = sample(create__before=[UPLOAD], observe="none", cancel="none", collect="none", create__answers=[{"is": "completed"}])
    for place in ("observe", "cancel", "collect", "reconcile"):
        assert [one.step for one in known_at(contract, (place, "request"))] == ["upload"]
    assert [one.step for one in known_at(contract, ("create", "before", 0, "undo", "path"))] == ["upload"]


def test_the_facts_of_a_contract_say_what_can_be_undone_and_how_long_steps_may_take() -> None:
    facts = sample(
        create__before=[UPLOAD, step("second")], observe__before=[LISTING], cancel__before=[step("third")], http__timeouts__total="10s"
    ).facts()
    assert facts.undo == ("upload",)
    assert facts.before_ms == {"create": 30_000, "undo": 10_000, "observe": 610_000, "cancel": 620_000}
    assert sample().facts().before_ms == {}


# --- what a standing remembers ----------------------------------------------------------------------------------------------------


def ref(name: str) -> dict[str, Any]:
    return {"digest": name * 64, "size": 40}


def stepping(*more: str | tuple[str, dict[str, Any]], **facts: Any) -> Stream:
    return told("policy.unattended", "intent.step", *more, **{"undo": ("upload",), "reconcile_entries": 1, **facts})


def done(name: str, saved: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "step.done", {"step": name, "saved": ref(saved), **more}


def test_a_step_that_is_done_is_known_to_the_next_and_what_it_left_can_be_undone() -> None:
    standing = stepping(done("upload", "a"), done("second", "b")).standing
    assert {name: one.digest for name, one in standing.steps.items()} == {"upload": "a" * 64, "second": "b" * 64}
    [left] = standing.leftovers
    assert (left.generation, left.step, left.steps, left.saved) == (1, "upload", {"upload": Ref(**ref("a"))}, Ref(**ref("a")))
    assert standing.undo_due == (), "not while its generation is at work"


def test_of_two_attempts_that_did_the_same_step_the_first_counts_and_both_left_something() -> None:
    stream = stepping(done("upload", "a"), done("upload", "b"), "decision.cancel")
    assert stream.standing.steps == {"upload": Ref(**ref("a"))}
    assert [one.saved for one in stream.standing.undo_due] == [Ref(**ref("b")), Ref(**ref("a"))]
    stream.hear("step.undone", step="upload", saved=ref("b"))
    assert [one.saved for one in stream.standing.undo_due] == [Ref(**ref("a"))]
    stream.hear("step.undone", step="upload", saved=ref("a"))
    assert next_step(stream.standing).name == "done"


@pytest.mark.parametrize("more", [{"generation": 2}, {"saved": None}])
def test_what_was_saved_for_another_generation_or_not_kept_is_not_known(more: dict[str, Any]) -> None:
    name, fields = done("upload", "a")
    standing = stepping((name, fields | more)).standing
    assert (standing.steps, standing.leftovers) == ({}, ())


def test_a_new_generation_starts_with_no_step_and_first_undoes_what_the_old_one_left() -> None:
    stream = stepping(done("upload", "a"), "intent.create", "exchange.ambiguous", "intent.lookup", ("lookup.absent", {"exhausted": True}))
    standing = stream.standing
    assert (standing.state, standing.generation, standing.steps) == ("create_pending", 2, {})
    assert [one.generation for one in standing.undo_due] == [1]
    stream.hear("intent.undo", at(90), step="upload")
    stream.hear("step.undo_again", at(91), step="upload", saved=ref("a"), next_at=at(95).isoformat(), words={"reason": "500"})
    assert (stream.standing.next_at, stream.standing.why, stream.standing.tries) == (at(95), "500", 1)
    stream.hear("step.undone", at(96), step="upload", saved=ref("a"))
    assert (stream.standing.undo_due, stream.standing.next_at) == ((), None)


def test_an_undo_that_is_given_up_before_a_new_generation_leaves_it_to_a_human() -> None:
    stream = stepping(
        done("upload", "a"), "intent.create", "exchange.ambiguous", "intent.lookup", ("lookup.absent", {"exhausted": True}),
        ("step.undo_again", {"step": "upload", "saved": ref("a"), "next_at": at(95).isoformat()}),
        ("step.leftover", {"step": "upload", "saved": ref("a"), "words": {"reason": "the provider says 500"}}),
    )  # fmt: skip
    standing = stream.standing
    assert (standing.state, standing.leftovers, standing.next_at, standing.round) == ("awaiting_approval", (), None, 1)
    assert [flag.why for flag in standing.flags] == ["what the step upload left could not be undone: the provider says 500"]


@pytest.mark.parametrize(
    "known",
    [
        ("exchange.accepted", {"job": {"id": "job-1"}}), ("exchange.unnamed", {}), ("exchange.finished", {"verdict": "failed"}),
    ],
)  # fmt: skip
def test_what_is_at_work_in_a_job_is_not_undone(known: tuple[str, dict[str, Any]]) -> None:
    stream = stepping(done("upload", "a"), "intent.create", known)
    assert stream.standing.leftovers == ()


def test_a_job_that_is_found_called_back_or_adopted_keeps_what_the_present_generation_left() -> None:
    lost = (done("upload", "a"), "intent.create", "exchange.ambiguous")
    job = {"job": {"id": "job-1"}}
    for more in (
        ("lookup.found", job), ("callback.accepted", job), ("decision.adopt", {"arguments": {"id": "job-1"}}),
    ):  # fmt: skip
        stream = stepping(*lost, more)
        assert (stream.standing.state, stream.standing.leftovers) == ("accepted", ()), more
        again = stepping(*lost, more, ("callback.accepted", job))
        assert again.standing.job == {"id": "job-1"}


@pytest.mark.parametrize("why", [{"message": "no"}, {"reason": "no"}, {"code": "no"}])
def test_why_a_step_is_not_done_is_said_and_a_contradiction_is_kept(why: dict[str, str]) -> None:
    assert stepping(("step.again", {"words": why})).standing.why == "no"
    assert stepping(("step.refused", {"words": why})).standing.why == "no"
    violated = stepping(("step.violation", {"violation": {"why": "another file"}})).standing
    assert (violated.state, violated.violation) == ("contract_violation", {"why": "another file"})


def test_an_ended_operation_remembers_what_came_of_its_undo_and_stays_what_it_is() -> None:
    stream = stepping(done("upload", "a"), "decision.cancel")
    stream.hear("intent.undo", step="upload")
    stream.hear("step.undo_again", at(70), step="upload", saved=ref("a"), next_at=at(75).isoformat())
    assert (stream.standing.state, stream.standing.next_at, next_step(stream.standing).name) == ("cancelled", at(75), "undo")
    stream.hear("step.leftover", at(99), step="upload", saved=ref("a"))
    assert (stream.standing.state, next_step(stream.standing).name) == ("cancelled", "done")
    assert [flag.word for flag in stream.standing.flags] == ["leftovers"]


def test_of_two_undos_one_that_is_taken_leaves_the_other_its_own_time() -> None:
    stream = stepping(done("upload", "a"), done("upload", "b"), "decision.cancel")
    stream.hear("step.undo_again", at(70), step="upload", saved=ref("b"), next_at=at(75).isoformat())
    stream.hear("step.undone", at(71), step="upload", saved=ref("a"))
    assert stream.standing.next_at == at(75)


def test_a_fact_about_an_undo_from_beside_the_story_changes_what_is_left_and_not_when_something_is_sent() -> None:
    stream = stepping(done("upload", "a"), "intent.create", "exchange.ambiguous", "intent.lookup", ("lookup.absent", {"exhausted": True}))
    stream.hear("step.undo_again", at(60), owned=False, step="upload", saved=ref("a"), next_at=at(95).isoformat())
    assert stream.standing.next_at is None
    stream.hear("step.leftover", at(61), owned=False, step="upload", saved=ref("a"))
    assert (stream.standing.state, len(stream.standing.leftovers), stream.standing.flags) == ("create_pending", 1, ())
    stream.hear("step.undone", at(62), owned=False, step="upload", saved=ref("a"))
    assert (stream.standing.state, stream.standing.leftovers) == ("create_pending", ())


def test_an_answer_is_read_whatever_a_provider_sends() -> None:
    contract, upload = made({**UPLOAD, "answers": [{"when": {"status": "100..599"}, "is": "done"}]})
    for body in (b"", b"\xff\xfe", b"[" * 10_000, b'{"id": 1e999}', b'{"id": "\\ud800"}', b"null"):
        for fault in (None, "cut", "oversized"):
            said = Answer(200, (("content-type", "application/json"),), body, fault)
            assert read_step(contract, upload, said, Scope(), NOW).meaning in {"done", "again"}
