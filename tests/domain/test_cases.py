"""Cases are read by production's own functions, and whatever is wrong with one is said at its place."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.cases.calls import calls_of, places_of
from domain.cases.checking import check_cases
from domain.cases.matching import Arrived, differences, fits, multipart_of
from domain.cases.models import Case, Cases, Given, Sent
from domain.cases.running import run_case
from domain.cases.scope import MARK, Known, contents, scope_of
from domain.language.expressions import Scope
from tests.domain.sample_contract import sample

STEP = {"step": "up", "request": {"method": "POST", "path": "/up"}, "answers": [{"when": {"status": 201}, "is": "done"}]}
EVERY = sample(
    files={"rows": {"media": "text/csv", "max_bytes": "1MiB", "from": "input.nested.rows"}},
    create__before=[
        {**STEP, "save": {"id": "body.id"}, "undo": {"method": "DELETE", "path": "/up/${steps.up.id}"}, "same": {"body.who": ["me", None]}},
        {**STEP, "step": "all", "pages": {"next": "body.next", "items": "body.list"}, "save": {"count": "length(items)"}},
    ],
    create__same={"body.name": ["${input.name}", None]},
    create__token__replayed={"headers.replayed": "yes"},
    create__answers=[
        {"when": {"status": 202}, "is": "accepted"},
        {"when": {"status": 200}, "is": "completed"},
        {"when": {"status": 409}, "is": "mismatch"},
        {"when": {"status": 400}, "is": "rejected"},
        {"when": {"status": 429}, "is": "throttled"},
    ],
    observe__before=[{**STEP, "step": "look"}],
    observe__counts={"total": "body.total", "succeeded": "body.good"},
    observe__same={"body.id": ["${job.id}", None]},
    observe__reason="body.why",
    cancel__before=[{**STEP, "step": "ready"}],
    cancel__force={"request": {"method": "POST", "path": "/kill/${job.id}"}, "answers": [{"when": {"status": 204}, "is": "acknowledged"}],
                   "before": [{**STEP, "step": "sure"}]},
    collect={
        "before": [{**STEP, "step": "open"}],
        "outputs": {
            "good": {
                "when": {"observed.body.good": {"not": None}},
                "from": [
                    {"when": {"observed.call": "create"}, "inline": "observed.body.list"},
                    {"when": {"observed.body.state": "done"}, "request": {"method": "GET", "url": "${observed.body.url}"},
                     "answers": [{"when": {"status": 200}, "is": "done"}, {"when": {"status": 404}, "is": "gone"},
                                 {"when": {"status": 409}, "is": "not_ready"}],
                     "pages": {"next": "body.next", "items": "body.list"}},
                ],
                "format": "jsonl",
            },
            "one": {"from": {"request": {"method": "GET", "path": "/one"}}, "before": [{**STEP, "step": "each_one"}], "format": "json"},
        },
        "items": {"submitted": {"count": "input.nested.count"},
                  "read": [{"output": "good", "key": "item.id", "states": [{"when": {"item.ok": True}, "is": "succeeded"},
                                                                           {"when": {"item.ok": False}, "is": "failed"}]}]},
    },
    reconcile=[
        {"by": "get", "request": {"method": "GET", "path": "/jobs/${mark}"}, "answers": [{"when": {"status": 200}, "is": "found"},
         {"when": {"status": 404}, "is": "absent"}], "job": {"id": "body.id"}, "same": {"body.mark": ["${mark}", None]}},
        {"by": "list", "request": {"method": "GET", "path": "/jobs"}, "pages": {"items": "body.jobs", "next_url": "body.next"},
         "match": {"item.mark": "${mark}"}, "strength": "exact", "job": {"id": "item.id"}},
        {"by": "webhook", "match": {"body.mark": "${mark}"}, "wait": "1m"},
    ],
    webhook={"scheme": "standard_webhooks", "secret": "x"},
    http__hosts={"https://files.sample.example": "none"},
    errors__answers=[{"when": {"status": 401}, "is": "unauthorized"}],
)  # fmt: skip

INPUT: dict[str, Any] = {"name": "n", "nested": {"rows": [{"a": 1}], "count": 1}}
READY = {"observed": {"status": 200, "body": {"good": 1, "state": "done", "url": "https://files.sample.example/f"}}}
EXAMPLE = Given.model_validate({"input": INPUT, "job": {"id": "j-1"}, "steps": {"up": {"id": "u"}, "all": {"count": 2}}})


def ran(call: str, answer: Any, means: str = "?", **more: Any) -> tuple[str | None, list[str], dict[str, Any]]:
    """What a case of the contract with everything in it comes to: the word, what is wrong, and what was seen."""
    document = {"name": "a case", "call": call, "means": means, **more} | ({} if answer is ... else {"answer": answer})
    case = Case.model_validate(document)
    found, problems = run_case(EVERY, calls_of(EVERY)[call], case, case.given.over(EXAMPLE))
    said = [f"{'.'.join(map(str, one.path))}: {one.expected}" for one in problems if one.path != ("means",)]
    return (found.means if found else None), said, dict(found.seen) if found else {}


@pytest.mark.parametrize(
    ("call", "answer", "given", "means"),
    [
        ("create", {"status": 202, "json": {"id": "j"}}, {}, "accepted"),
        ("create", {"status": 202, "json": {}}, {}, "unsure"),
        ("create", {"status": 202, "json": {"id": "j", "name": "other"}}, {}, "violation"),
        ("create", {"status": 200, "json": {}}, {}, "completed"),
        ("create", {"status": 409}, {}, "mismatch"),
        ("create", {"status": 400}, {}, "rejected"),
        ("create", {"status": 429}, {}, "throttled"),
        ("create", {"status": 401}, {}, "unauthorized"),
        ("create", {"status": 502, "text": "bad"}, {}, "unsure"),
        ("create", {"status": 500, "headers": {"Replayed": "yes"}}, {}, "stuck"),
        ("create", "lost", {}, "lost"),
        ("create.before.up", {"status": 201, "json": {"id": "u"}}, {}, "done"),
        ("create.before.up", {"status": 201, "json": {}}, {}, "unsure"),
        ("create.before.up", {"status": 201, "json": {"id": "u", "who": "you"}}, {}, "violation"),
        ("create.before.up", {"status": 401}, {}, "unauthorized"),
        ("create.before.all", {"status": 201, "json": {"list": [1], "next": "c"}}, {}, "done"),
        ("create.before.up.undo", {"status": 204}, {}, "done"),
        ("create.before.up.undo", {"status": 404}, {}, "done"),
        ("create.before.up.undo", {"status": 500}, {}, "unsure"),
        ("observe", {"status": 200, "json": {"state": "running"}}, {}, "running"),
        ("observe", {"status": 200, "json": {"state": "done"}}, {}, "succeeded"),
        ("observe", {"status": 200, "json": {"state": "odd"}}, {}, "held"),
        ("observe", {"status": 500}, {}, "unsure"),
        ("observe", {"status": 401}, {}, "unauthorized"),
        ("observe", {"status": 200, "json": {"state": "done", "id": "other"}}, {}, "violation"),
        ("observe", {"status": 200, "base64": "eyJ4", "headers": {"Content-Type": "application/json"}}, {}, "unsure"),
        ("observe.before.look", {"status": 201}, {}, "done"),
        ("cancel", {"status": 200}, {}, "acknowledged"),
        ("cancel", {"status": 500}, {}, "unsure"),
        ("cancel.force", {"status": 204}, {}, "acknowledged"),
        ("cancel.force", {"status": 200}, {}, "unsure"),
        ("cancel.force.before.sure", {"status": 201}, {}, "done"),
        ("cancel.before.ready", {"status": 500}, {}, "unsure"),
        ("collect.before.open", {"status": 201}, {}, "done"),
        ("collect.good", {"status": 200, "json": {"list": [1, 2], "next": "c"}}, READY, "done"),
        ("collect.good", {"status": 200, "json": {"list": [1], "next": [["x" * 9_000]]}}, READY, "unsure"),
        ("collect.good", {"status": 404}, READY, "gone"),
        ("collect.good", {"status": 409}, READY, "not_ready"),
        ("collect.good", ..., {"observed": {"call": "create", "body": {"good": 1, "list": [1]}}}, "done"),
        ("collect.good", ..., {"observed": {"call": "create", "body": {"good": 1}}}, "unsure"),
        ("collect.good", ..., {"observed": {"body": {}}}, "empty"),
        ("collect.one", {"status": 200, "json": {}}, {}, "done"),
        ("collect.one", {"status": 500}, {}, "unsure"),
        ("collect.one.before.each_one", {"status": 201}, {}, "done"),
        ("reconcile.0", {"status": 200, "json": {"id": "j", "mark": "${mark}"}}, {}, "found"),
        ("reconcile.0", {"status": 200, "json": {"id": "j", "mark": "other"}}, {}, "violation"),
        ("reconcile.0", {"status": 404}, {}, "absent"),
        ("reconcile.0", {"status": 500}, {}, "unsure"),
        ("reconcile.0", {"status": 401}, {}, "unauthorized"),
        ("reconcile.1", {"status": 200, "json": {"jobs": [{"id": "j", "mark": "${mark}"}], "next": "/jobs?p=2"}}, {}, "found"),
        ("reconcile.1", {"status": 200, "json": {"jobs": []}}, {}, "none"),
        ("reconcile.1", {"status": 200, "json": {}}, {}, "unsure"),
        ("items.0", ..., {"item": {"id": 1, "ok": True}}, "succeeded"),
        ("items.0", ..., {"item": {"id": 1}}, "unread"),
    ],
)  # fmt: skip
def test_an_answer_means_what_production_concludes(call: str, answer: Any, given: dict[str, Any], means: str) -> None:
    assert ran(call, answer, given=given)[:2] == (means, [])


def test_what_was_read_can_be_asked_for() -> None:
    assert ran("create", {"status": 202, "json": {"id": "j"}})[2]["job"] == {"id": "j"}
    assert ran("create.before.up", {"status": 201, "json": {"id": "u"}})[2]["saved"] == {"id": "u"}
    paged = ran("create.before.all", {"status": 201, "json": {"list": [1, 2], "next": "c"}})[2]
    assert (paged["items"], paged["next"]) == (2, "c")
    ended = ran("observe", {"status": 200, "json": {"state": "done", "total": 2, "good": 2, "why": "so"}})[2]
    assert (ended["verdict"], ended["reason"]) == ("succeeded", "so")
    listed = ran("reconcile.1", {"status": 200, "json": {"jobs": [{"id": "j", "mark": "${mark}"}], "next": "/jobs?p=2"}})[2]
    assert (listed["found"], listed["next"]) == ([{"id": "j"}], "/jobs?p=2")
    assert ran("collect.good", {"status": 200, "json": {"list": [1, 2]}}, given=READY)[2]["items"] == 2


@pytest.mark.parametrize(
    ("call", "answer", "more", "said"),
    [
        ("create", {"status": 202, "json": {"id": "j"}}, {"job": {"id": "k"}}, "job: {'id': 'j'}"),
        ("create", {"status": 202, "json": {"id": "j"}}, {"job": {"id": "*"}}, None),
        ("create", {"status": 400, "json": {"code": "c"}}, {"code": "d"}, "code: 'c'"),
        ("create", ..., {}, "answer: an answer, or the word lost"),
        ("create", {"status": 202, "json": {"x": "${lost}"}}, {}, "answer: ${lost} has no value"),
        ("create", {"status": 202, "json": {"x": "${"}}, {}, "answer: "),
        ("create", {"status": 202, "base64": "?"}, {}, "answer: base64"),
        ("create", {"status": 202, "headers": {"X": "${lost}"}}, {}, "answer: "),
        ("observe", {"status": 200}, {"given": {"job": {}}}, "call: a case in which the request can be made"),
        ("collect.good", {"status": 200}, {"given": {"observed": {"body": {"good": 1}}}}, "given: an `observed` that one of"),
        ("create", {"status": 202}, {"given": {"input": {"name": "n", "nested": {"rows": 5}}}}, "given: files.rows is made of a list"),
        ("create", {"status": 202}, {"sent": {"path": "/other"}}, "sent.path: what the contract sends: /jobs"),
        ("create", {"status": 202}, {"sent": {"headers": {"X-None": "*"}}}, "sent.headers.X-None: what the contract sends: no such header"),
        ("reconcile.1", {"status": 200, "json": {"jobs": [{"id": "j", "mark": "${mark}"}]}}, {"found": ["k"]}, "found: "),
        ("reconcile.1", {"status": 200, "json": {"jobs": [{"id": "j", "mark": "${mark}"}]}}, {"found": ["j"]}, None),
        ("reconcile.1", {"status": 200, "json": {"jobs": [{"id": "j", "mark": "${mark}"}]}}, {"found": [{"id": "j"}]}, None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_case_is_said(call: str, answer: Any, more: dict[str, Any], said: str | None) -> None:
    problems = ran(call, answer, **more)[1]
    assert any(said in problem for problem in problems) if said else problems == [], problems


def test_why_less_is_concluded_than_the_entry_says_is_told() -> None:
    def why(answer: dict[str, Any], **changes: object) -> str:
        contract = sample(**changes)
        case = Case.model_validate({"name": "c", "call": "observe", "means": "running", "answer": answer, "given": {"job": {"id": "j"}}})
        return run_case(contract, calls_of(contract)["observe"], case, Given(input={"name": "n"}, job={"id": "j"}))[1][0].expected

    assert "allow that with ~" in why({"status": 200, "json": {"state": "running"}}, observe__same={"body.id": "${job.id}"})
    assert "its body can't be read" in why({"status": 200, "base64": "eyJ4", "headers": {"Content-Type": "application/json"}})
    cut = {"status": 200, "base64": "eyJ4", "headers": {"Content-Type": "application/json"}}
    assert "and the answer can't be read" in why(cut, observe__states=[{"when": {"status": 200}, "is": "succeeded"}])


def test_every_call_has_a_name_and_every_entry_a_place() -> None:
    assert [*calls_of(EVERY)] == [
        "create", "create.before.up", "create.before.up.undo", "create.before.all", "observe", "observe.before.look", "cancel",
        "cancel.before.ready", "cancel.force", "cancel.force.before.sure", "collect.before.open", "collect.good", "collect.one",
        "collect.one.before.each_one", "items.0", "reconcile.0", "reconcile.1",
    ]  # fmt: skip
    places = {place.path for place in places_of(EVERY)}
    assert ("collect", "outputs", "good", "from", 1, "answers", 2) in places
    assert ("collect", "outputs", "good", "from", 0) in places
    assert ("collect", "outputs", "one", "from", 0) not in places
    assert ("create", "before", 0, "answers", 0) in places
    assert ("collect", "items", "read", 0, "states", 1) in places
    assert ("errors", "answers", 0) in places
    bare = sample(observe="none", cancel="none", collect="none", create__answers=[{"when": {"status": 200}, "is": "completed"}])
    assert [*calls_of(bare)] == ["create"]
    assert "collect" in calls_of(sample(collect__before=[STEP]))
    assert "collect.before.up" in calls_of(sample(collect__before=[STEP]))


def checked(contract_changes: dict[str, Any], **cases: Any) -> tuple[list[str], list[str]]:
    """What is wrong in the cases of the changed sample, and which entries none reaches."""
    document = {"contract": "sample.jobs.create", "example": {"input": {"name": "n"}, "job": {"id": "j"}}, **cases}
    found = check_cases(sample(**contract_changes), Cases.model_validate(document))
    wrong = [f"{'.'.join(map(str, one.path))}: {one.expected}" for one in found.wrong]
    return wrong, [".".join(map(str, one.path)) for one in found.unreached]


TAKEN = {"name": "taken", "call": "create", "means": "accepted", "answer": {"status": 202, "json": {"id": "j", "url": "/jobs/j"}}}
RUNS = {"name": "runs", "call": "observe", "means": "running", "answer": {"status": 200, "json": {"state": "running"}}}


def test_what_no_case_reaches_is_named_and_what_one_reaches_is_not() -> None:
    wrong, unreached = checked({}, cases=[TAKEN, RUNS])
    assert wrong == []
    assert unreached == ["create.answers.1", "observe.states.1", "observe.states.2", "observe.states.3", "cancel.answers.0"]


def test_names_are_unique_and_calls_exist_and_stories_tell_of_cases() -> None:
    item = {"name": "nothing is asked", "call": "collect", "means": "done"}
    stories = [
        {"name": "a", "exchanges": ["taken", "gone"], "ends": "succeeded"},
        {"name": "a", "exchanges": ["taken", "nothing is asked"], "ends": "succeeded", "cancel_after": "taken", "force": True},
    ]
    wrong, _ = checked(
        {"cancel": "none", "collect__from": {"inline": "observed.body"}},
        cases=[TAKEN, TAKEN, {**RUNS, "call": "watch"}, {**item, "given": {"observed": {"body": {"x": 1}}}}],
        stories=stories,
    )
    assert [line.split(":")[0] for line in wrong] == [
        "cases.1.name", "stories.1.name", "stories.0.exchanges.1", "stories.1.exchanges.1", "stories.1.cancel_after", "stories.1.force",
        "cases.2.call",
    ]  # fmt: skip


def test_what_is_asked_must_be_what_the_contract_takes() -> None:
    targeted = {"target": {"server": {"kind": "origin"}}, "http__base": "${target.server}"}
    wrong, _ = checked(targeted, contract="other.jobs.create", cases=[TAKEN], example={"input": {"nam": 1}, "target": {}})
    assert wrong[0].startswith("contract: sample.jobs.create")
    assert wrong[1].startswith("example.input: ")
    wrong, _ = checked(targeted, cases=[TAKEN], example={"input": {"name": "n"}, "target": {}})
    assert "example: sample.jobs.create needs a target with server" in wrong
    wrong, _ = checked(targeted, cases=[TAKEN], example={"input": {"name": "n"}, "target": {"server": "https://x.example/path"}})
    assert any(line.startswith("example: ") for line in wrong), wrong
    told = {"name": "a", "exchanges": ["taken"], "ends": "succeeded", "given": {"input": {}}}
    assert checked({}, cases=[TAKEN], stories=[told])[0][0].startswith("stories.0.given.input: ")


BY_ADDRESS = {
    "create__job": {"id": "body.id", "url": "body.url"},
    "observe__request": {"method": "GET", "url": "${job.url}"},
    "collect__from": [{"request": {"method": "GET", "url": "${observed.body.url}"}}],
}


@pytest.mark.parametrize(
    ("url", "wrong"), [("/jobs/j", False), ("https://api.sample.example/j", False), ("https://other.example/j", True), ("", False)]
)
def test_an_address_that_an_answer_gives_must_be_one_that_may_be_called(url: str, wrong: bool) -> None:
    taken = {**TAKEN, "answer": {"status": 202, "json": {"id": "j", "url": url} if url else {"id": "j"}}}
    done = {"name": "done", "call": "observe", "means": "succeeded", "given": {"job": {"id": "j", "url": "/jobs/j"}},
            "answer": {"status": 200, "json": {"state": "done", "url": url} if url else {"state": "done"}}}  # fmt: skip
    found, _ = checked(BY_ADDRESS, cases=[taken, done])
    assert [line for line in found if "may call" in line] == [] if not wrong else len([line for line in found if "may call" in line]) == 2


def test_a_case_shows_where_an_address_leads() -> None:
    document = {"contract": "sample.jobs.create", "example": {"input": {"name": "n"}, "job": {"id": "j", "url": "/jobs/j"}}}
    collected = {
        "name": "it",
        "call": "collect",
        "means": "done",
        "given": {"observed": {"body": {"url": "/r"}}},
        "answer": {"status": 200},
    }
    found = check_cases(sample(**BY_ADDRESS), Cases.model_validate({**document, "cases": [RUNS, collected]}))
    assert found.shown == {("observe", "request", "url"), ("collect", "from", 0, "request", "url")}
    undone = {"name": "undo", "call": "create.before.up.undo", "means": "done", "answer": {"status": 200}}
    shown = check_cases(EVERY, Cases(contract="sample.jobs.create", example=EXAMPLE, cases=(Case.model_validate(undone),))).shown
    assert shown == {("create", "before", 0, "undo", "url")}


@pytest.mark.parametrize(
    ("sent", "differs"),
    [
        ({"method": "POST"}, []),
        ({"method": "GET"}, ["method"]),
        ({"path": "/jobs/a%20b"}, []),
        ({"path": "/jobs/a b"}, []),
        ({"path": "/jobs/*"}, []),
        ({"path": "/jobs"}, ["path"]),
        ({"path": "/other/*"}, ["path"]),
        ({"url": "https://api.sample.example/jobs/*"}, []),
        ({"url": "https://x.example/jobs/*"}, ["url"]),
        ({"query": {"a": ["1", "2"], "b": True}}, []),
        ({"query": {"a": ["1", "2"], "b": "*"}}, []),
        ({"query": {"a": "1"}}, ["query"]),
        ({"headers": {"x-key": "k"}}, []),
        ({"headers": {"X-Key": "*"}}, []),
        ({"headers": {"X-Key": "other"}}, ["headers.X-Key"]),
        ({"headers": {"X-None": "*"}}, ["headers.X-None"]),
        ({"json": {"a": [1, {"b": "*"}]}}, []),
        ({"json": {"a": [1, {"b": 2}], "c": 3}}, ["json"]),
        ({"json": None}, ["json"]),
        ({"text": '{"a": [1, {"b": 2}]}'}, []),
        ({"text": "*"}, []),
        ({"text": "other"}, ["text"]),
    ],
)
def test_a_request_is_compared_with_what_a_case_says_was_sent(sent: dict[str, Any], differs: list[str]) -> None:
    body = b'{"a": [1, {"b": 2}]}'
    request = Arrived("POST", "https://api.sample.example/jobs/a%20b?a=1&a=2&b=true", (("X-Key", "k"),), body)
    assert [key for key, _ in differences(Sent.model_validate(sent), request)] == differs


def test_forms_and_parts_are_compared_field_by_field() -> None:
    form = Arrived("POST", "https://x.example/", (), b"a%5Bb%5D=1&c%5B%5D=x&c%5B%5D=y&d=")
    assert [*differences(Sent.model_validate({"form": {"a": {"b": 1}, "c": ["x", "*"], "d": None}}), form)] == []
    assert [*differences(Sent.model_validate({"form": {"a[b]": "1", "c[]": ["x", "y"], "d": ""}}), form)] == []
    assert [key for key, _ in differences(Sent.model_validate({"form": {"a": 1}}), form)] == ["form"]
    body = (
        b'--b\r\nContent-Disposition: form-data; name="p"\r\n\r\nbatch\r\n'
        b'--b\r\nContent-Disposition: form-data; name="f"; filename="r.jsonl"\r\nContent-Type: text/plain\r\n\r\none\r\n--b--\r\n'
    )
    parts = Arrived("POST", "https://x.example/", (("Content-Type", "multipart/form-data; boundary=b"),), body)
    wanted = {"p": "batch", "f": {"filename": "r.jsonl", "text": "one"}}
    assert multipart_of(parts) == wanted
    assert [*differences(Sent.model_validate({"multipart": wanted}), parts)] == []
    assert [key for key, _ in differences(Sent.model_validate({"multipart": {"p": "other"}}), parts)] == ["multipart"]
    assert multipart_of(Arrived("POST", "https://x.example/", (), b"x")) == {}
    assert [key for key, _ in differences(Sent.model_validate({"json": {"a": "*"}}), Arrived("POST", "https://x.example/", (), b"{"))] == [
        "json"
    ]


def test_a_long_difference_is_shown_shortened() -> None:
    request = Arrived("POST", "https://x.example/", (), b'"' + b"x" * 1_000 + b'"')
    ((_, shown),) = differences(Sent.model_validate({"json": 1}), request)
    assert len(shown) == 301


@pytest.mark.parametrize(
    ("wanted", "value", "fit"), [("*", None, True), (1, 1.0, True), ([1], [1, 2], False), ({"a": 1}, {"a": 1, "b": 2}, False)]
)
def test_a_star_fits_anything_and_the_rest_is_equal(wanted: Any, value: Any, fit: bool) -> None:
    assert fits(wanted, value) is fit


def test_what_only_a_running_operation_knows_can_be_brought() -> None:
    scope = scope_of(EVERY, EXAMPLE)
    assert (scope.mark, scope.job, scope.token is not None) == (MARK, {"id": "j-1"}, True)
    assert scope_of(EVERY, EXAMPLE, Known(token="t", mark="m")).token == "t"
    assert scope_of(sample(), Given(input={"name": "n"}, job={"id": "${token}"}), Known(token="t")).job == {"id": "t"}
    from_step = sample(create__before=[{**STEP, "save": {"id": "body.id"}}], create__token={"from": "steps.up.id", "window": "1d"})
    assert scope_of(from_step, EXAMPLE).token == "u"
    assert scope_of(sample(create__token="none", create__request__headers={}), EXAMPLE).token is None


def test_files_are_given_as_text_or_made_of_the_input() -> None:
    assert contents(EVERY, EXAMPLE, Scope(input=INPUT)) == {"rows": b"a\r\n1\r\n"}
    assert contents(EVERY, EXAMPLE.model_copy(update={"files": {"rows": "b\n2\n3\n"}}), Scope(input=INPUT)) == {"rows": b"b\n2\n3\n"}
    facts: Any = scope_of(EVERY, EXAMPLE).files
    assert (facts["rows"]["records"], facts["rows"]["bytes"], facts["rows"]["media"]) == (1, 6, "text/csv")
    unknown: Any = scope_of(EVERY, EXAMPLE.model_copy(update={"files": {"other": "x"}})).files
    assert unknown["other"]["media"] == "application/octet-stream"


def test_a_body_of_a_file_is_compared_by_what_is_in_it() -> None:
    contract = sample(
        files={"rows": {"media": "text/csv", "max_bytes": "1MiB"}},
        create__request__json=...,
        create__request__multipart={"note": "${input.name}", "f": {"file": "rows"}},
    )
    case = Case.model_validate(
        {"name": "c", "call": "create", "means": "accepted", "answer": {"status": 202, "json": {"id": "j"}},
         "sent": {"multipart": {"note": "n", "f": {"filename": "rows", "text": "a\n1\n"}}}}
    )  # fmt: skip
    given = Given(input={"name": "n"}, files={"rows": "a\n1\n"})
    assert run_case(contract, calls_of(contract)["create"], case, given)[1] == []
    assert run_case(contract, calls_of(contract)["create"], case, given.model_copy(update={"files": {"rows": "b\n"}}))[1] != []


@pytest.mark.parametrize(
    "document",
    [
        {"sent": {"json": 1, "text": "x"}},
        {"sent": {"path": "/", "url": "/"}},
        {"answer": {"status": 200, "json": 1, "text": "x"}},
        {"answer": {"status": 700}},
        {"answer": None},
    ],
)
def test_a_case_that_says_two_things_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Case.model_validate({"name": "c", "call": "create", "means": "accepted"} | document)


def test_a_story_that_cannot_be_told_is_refused() -> None:
    for bad in ({"ends": "done"}, {"ends": "failed", "cancel_after": "b"}, {"ends": "failed", "force": True}):
        with pytest.raises(ValidationError):
            Cases.model_validate({"contract": "a.b", "cases": [TAKEN], "stories": [{"name": "s", "exchanges": ["taken"], **bad}]})


def test_a_part_that_a_case_gives_stands_in_place_of_the_examples() -> None:
    cases = Cases.model_validate(
        {"contract": "a.b", "example": {"input": 1, "job": {"id": "a"}}, "cases": [{**TAKEN, "given": {"job": {"id": "b"}}}],
         "stories": [{"name": "s", "exchanges": ["taken"], "ends": "failed", "given": {"input": 2}}]}
    )  # fmt: skip
    case = cases.named("taken")
    assert (cases.given(case).input, cases.given(case).job) == (1, {"id": "b"})
    assert cases.given(case, cases.stories[0]).input == 2


MUCH = "{0}.l[].{{a: @.a, b: @.b, c: @.c}}"


def test_what_is_more_than_may_be_evaluated_decides_nothing() -> None:
    many: list[Any] = [{"a": 1}] * 20_000
    items = {"submitted": {"count": "input.nested"}, "read": [{"output": "output", "key": MUCH.format("item"),
             "states": [{"when": {MUCH.format("item"): {"not": None}}, "is": "failed"}]}]}  # fmt: skip
    paged = {"request": {"method": "GET", "path": "/r"}, "pages": {"next": MUCH.format("body"), "items": "body.l"}}
    sources = [{"when": {MUCH.format("observed.body"): {"not": None}}, "inline": "observed.body"}, paged]
    contract = sample(collect__items=items, collect__from=sources, collect__format="jsonl")
    given = Given.model_validate({"input": {"name": "n"}, "item": {"l": many}, "observed": {"body": {"l": many}}})

    def came(call: str, **more: Any) -> str:
        case = Case.model_validate({"name": "c", "call": call, "means": "?", **more})
        ran, _ = run_case(contract, calls_of(contract)[call], case, given)
        assert ran is not None
        return ran.means

    assert came("items.0") == "unread"
    assert came("collect", answer={"status": 200, "json": {"l": many}}) == "unsure"


def test_a_step_that_is_refused_for_good_reads_as_rejected() -> None:
    refusing = [{**STEP, "answers": [{"when": {"status": 201}, "is": "done"}, {"when": {"status": 400}, "is": "rejected"}]}]
    contract = sample(create__before=refusing)
    case = Case.model_validate({"name": "c", "call": "create.before.up", "means": "rejected", "answer": {"status": 400}})
    assert run_case(contract, calls_of(contract)["create.before.up"], case, Given(input={"name": "n"}))[1] == []


ROWS = sample(
    collect={
        "from": {"request": {"method": "GET", "path": "/rows/${job.id}", "query": {"n": "${page.number}"}},
                 "pages": {"items": "body.rows", "next_url": "link(headers.link, 'next')"}},
        "format": "jsonl",
    },
    http__hosts={"https://files.sample.example": "none"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("page", "path", "query"),
    [
        ({}, "/rows/j-1", {"n": "1"}),
        ({"next": "/rows/j-1?from=2"}, "/rows/j-1", {"from": "2"}),
        ({"next": "?from=2"}, "/rows/j-1", {"from": "2"}),
        ({"next": "more/2", "number": 3}, "/rows/more/2", {}),
        ({"next": "https://files.sample.example/two"}, "/two", {}),
    ],
)
def test_a_case_follows_the_address_of_a_next_page_as_production_does(page: dict[str, Any], path: str, query: dict[str, str]) -> None:
    answer = {"status": 200, "json": {"rows": [1]}, "headers": {"Link": '</last>; rel="next"'}}
    document: dict[str, Any] = {"name": "a page", "call": "collect", "means": "done", "given": {"page": page}, "answer": answer}
    case = Case.model_validate({**document, "sent": {"method": "GET", "path": path, "query": query}, "items": 1, "next": "/last"})
    found, problems = run_case(ROWS, calls_of(ROWS)["collect"], case, case.given.over(EXAMPLE))
    assert (found is not None, problems) == (True, [])


@pytest.mark.parametrize(
    ("page", "path", "said"),
    [
        ({"next": 2}, ("given", "page", "next"), "the address of the page"),
        ({"next": "https://other.example/two"}, ("call",), "neither the base of sample.jobs.create nor in its http.hosts"),
        ({"next": "//other.example/two"}, ("call",), "begins with //"),
    ],
)
def test_a_page_that_production_would_not_ask_for_is_no_case(page: dict[str, Any], path: tuple[str, ...], said: str) -> None:
    case = Case.model_validate({"name": "a page", "call": "collect", "means": "done", "answer": {"status": 200}, "given": {"page": page}})
    found, (problem,) = run_case(ROWS, calls_of(ROWS)["collect"], case, case.given.over(EXAMPLE))
    assert (found, problem.path) == (None, path)
    assert said in problem.expected


@pytest.mark.parametrize(
    ("page", "root"),
    [
        ({}, (None, 0, 1)),
        ({"next": "c"}, ("c", 1, 2)),
        ({"index": 2}, (None, 2, 3)),
        ({"number": 2}, (None, 1, 2)),
        ({"next": "c", "index": 4, "number": 5}, ("c", 4, 5)),
    ],
)
def test_a_page_that_a_case_names_in_part_is_whole(page: dict[str, Any], root: tuple[Any, int, int]) -> None:
    assert Given.model_validate({"page": page}).page.root == dict(zip(("next", "index", "number"), root, strict=True))


def test_deadlines_are_what_production_sends_whole_seconds_as_integers() -> None:
    contract = sample(deadlines={"create": "90s", "cancel": "1500ms"})
    deadlines = scope_of(contract, Given(input={"name": "x"})).deadlines
    assert str(deadlines) == "{'create': 90, 'result': 3600, 'cancel': 1.5, 'collect': 600, 'approval': 86400}"


def test_a_violation_says_which_value_differs_and_of_what_kind_it_is() -> None:
    contract = sample(observe__same={"body.id": "${job.id}"})
    answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "json": {"id": 7, "state": "done"}}
    case = Case.model_validate({"name": "a number", "call": "observe", "means": "succeeded", "answer": answer})
    given = Given.model_validate({"input": {"name": "x"}, "job": {"id": "7"}})
    _, (problem,) = run_case(contract, calls_of(contract)["observe"], case, given)
    assert problem.expected == (
        'violation, which is what the contract reads this answer as: `same` wants body.id to be "7", and it is 7 (nothing is converted)'
    )
