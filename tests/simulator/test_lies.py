"""Each word of the vocabulary, told over a real socket; and what really happened, in the books."""

import asyncio
import email.utils
import json
import time
import zlib

import httpx
import pytest

from simulator.acting import RETRY_AFTER
from simulator.answer import Json
from simulator.lies import LIES
from simulator.script import BadScript
from tests.simulator.conftest import WITHIN, Desk

DROPPED = (httpx.RemoteProtocolError, httpx.ReadError)


async def eventually(condition: object) -> None:
    """Lets the loop turn until the condition holds."""
    assert callable(condition)
    async with asyncio.timeout(WITHIN):
        while not condition():  # noqa: ASYNC110  # the books have no event to wait for
            await asyncio.sleep(0)


async def test_a_create_dropped_before_it_is_accepted_made_nothing(desk: Desk) -> None:
    desk.books.lie("create", "drop_before_accepting", times=1)
    with pytest.raises(DROPPED):
        await desk.create()
    assert desk.books.jobs() == []
    assert (await desk.create()).json()["replayed"] is False


async def test_a_create_dropped_after_it_was_accepted_made_one_job_that_the_token_finds(desk: Desk) -> None:
    desk.books.lie("create", "drop_after_accepting", times=1)
    with pytest.raises(DROPPED):
        await desk.create()
    (made,) = desk.books.jobs_for("t-1")
    again = (await desk.create()).json()
    assert (again["job_id"], again["replayed"]) == (made.id, True)
    assert [seen.status for seen in desk.books.requests("create")] == [0, 202]


async def test_a_second_create_meets_in_flight_while_the_first_is_held(desk: Desk) -> None:
    desk.books.lie("create", "hold", times=1)
    first = asyncio.create_task(desk.create())
    await eventually(lambda: desk.sim.app.gate.holding == 1)
    second = await desk.create()
    assert (second.status_code, second.json()["error"]) == (409, "in_flight")
    assert (await desk.client.post("/release")).json() == {"released": 1}
    assert (await first).status_code == 202
    assert len(desk.books.jobs_for("t-1")) == 1


async def test_a_held_call_that_its_caller_gave_up_is_carried_out_all_the_same(desk: Desk) -> None:
    desk.books.lie("create", {"word": "hold", "args": {"when": "before"}}, times=1)
    given_up = asyncio.create_task(desk.create())
    await eventually(lambda: desk.sim.app.gate.holding == 1)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert desk.books.jobs() == []
    desk.sim.app.gate.release()
    await eventually(lambda: len(desk.books.jobs_for("t-1")) == 1)


async def test_a_delayed_answer_comes(desk: Desk) -> None:
    desk.books.lie("create", {"word": "delay", "args": {"seconds": 0.05}})
    began = time.monotonic()
    assert (await desk.create()).status_code == 202
    assert time.monotonic() - began >= 0.05


async def test_accepting_twice_makes_two_jobs_for_one_token(desk: Desk) -> None:
    desk.books.lie("create", "accept_twice")
    job = await desk.job()
    assert [made.id for made in desk.books.jobs_for("t-1")].count(job) == 1
    assert len(desk.books.jobs_for("t-1")) == 2


async def test_a_new_id_for_the_same_token_is_another_name_of_the_same_job(desk: Desk) -> None:
    first = await desk.job()
    desk.books.lie("create", "new_id_for_same_token")
    second = await desk.job()
    assert second != first
    assert len(desk.books.jobs()) == 1
    assert (await desk.read(second)).json()["job_id"] == second
    assert desk.books.job(second).id == first


async def test_a_forgotten_token_makes_another_job(desk: Desk) -> None:
    await desk.job()
    desk.books.lie("create", "forget_token")
    assert (await desk.create(rows=3)).json()["replayed"] is False
    assert len(desk.books.jobs_for("t-1")) == 2


@pytest.mark.parametrize("created", [False, True])
async def test_a_stored_500_is_given_again_for_its_token_and_for_no_other(desk: Desk, created: bool) -> None:
    desk.books.lie("create", {"word": "error_500_stored", "args": {"created": created}}, times=1)
    first, second, other = await desk.create(), await desk.create(), await desk.create("t-2")
    assert (first.status_code, second.status_code, other.status_code) == (500, 500, 202)
    assert ("idempotent-replayed" in first.headers, second.headers["idempotent-replayed"]) == (False, "true")
    assert len(desk.books.jobs_for("t-1")) == int(created)


@pytest.mark.parametrize(
    ("word", "status"),
    [("in_flight", 409), ("reject", 422), ("status_500", 500), ("unauthorized", 401), ("redirect_elsewhere", 307)],
)
async def test_a_refused_create_made_nothing(desk: Desk, word: str, status: int) -> None:
    desk.books.lie("create", word, times=1)
    assert (await desk.create()).status_code == status
    assert desk.books.jobs() == []
    assert (await desk.create()).status_code == 202


@pytest.mark.parametrize("word", ["status_429", "status_503"])
@pytest.mark.parametrize("form", sorted(RETRY_AFTER))
async def test_coming_back_later_is_asked_for_in_each_form(desk: Desk, word: str, form: str) -> None:
    desk.books.lie("create", {"word": word, "args": {"retry_after": form, "seconds": 2}})
    began = time.time()
    answer = await desk.create()
    took = time.time() - began
    assert answer.status_code == int(word[-3:])
    said = answer.headers.get("retry-after")
    match form:
        case "none":
            assert said is None
        case "http_date" | "past_date":
            ahead = email.utils.parsedate_to_datetime(said or "").timestamp() - began
            assert (1 <= ahead <= 2 + took) if form == "http_date" else ahead < -86_400
        case "garbage":
            assert said is not None
            assert not said[:1].isdigit()
        case _:
            assert said == {"seconds": "2", "fraction": "2.25", "zero": "0", "negative": "-2", "hour": "3600"}[form]


async def test_a_job_that_never_becomes_visible_runs_all_the_same(desk: Desk) -> None:
    job = await desk.job(token=None, reference="mark-1")
    desk.books.lie("observe", "never_visible")
    desk.books.lie("list", "never_visible")
    assert (await desk.read(job)).status_code == 404
    assert (await desk.client.get("/v1/reports")).json() == {"items": [], "next": None}
    assert (await desk.client.get("/v1/references/mark-1")).status_code == 404
    assert len(desk.books.jobs()) == 1


async def test_a_lagging_list_lacks_the_newest_jobs(desk: Desk) -> None:
    old, new = await desk.job(token="t-1"), await desk.job(token="t-2", reference="mark-1")
    desk.books.lie("list", "list_lag", times=2)
    assert [item["job_id"] for item in (await desk.client.get("/v1/reports")).json()["items"]] == [old]
    assert (await desk.client.get("/v1/references/mark-1")).status_code == 404
    assert (await desk.client.get("/v1/references/mark-1")).json()["job_id"] == new


async def test_statuses_lie_about_a_job_that_has_ended(desk: Desk) -> None:
    job = await desk.job(polls=1)
    desk.books.lie("observe", "terminal_then_running")
    desk.books.lie("observe", "stale_status", nth=3)  # the later rule has the last word
    assert [await desk.state(job) for _ in range(4)] == ["queued", "succeeded", "queued", "running"]
    assert desk.books.job(job).ended == "succeeded"


async def test_a_running_job_is_shown_as_queued_again(desk: Desk) -> None:
    job = await desk.job(polls=9)
    desk.books.lie("observe", "state_backwards", nth=3)
    readings = [(await desk.read(job)).json() for _ in range(4)]
    assert [reading["state"] for reading in readings] == ["queued", "running", "queued", "running"]
    assert readings[2]["progress"]["completed"] < readings[1]["progress"]["completed"]


@pytest.mark.parametrize(("lie", "shown"), [("unknown_state", "percolating"), ("needs_input", "needs_input")])
async def test_a_state_is_shown_that_hides_the_end(desk: Desk, lie: str, shown: str) -> None:
    job = await desk.finished()
    desk.books.lie("observe", lie, times=1)
    status = (await desk.read(job)).json()
    assert (status["state"], status["result_url"]) == (shown, None)
    assert await desk.state(job) == "succeeded"


@pytest.mark.parametrize(("lie", "end"), [("remote_failure", "failed"), ("remote_cancel", "cancelled")])
@pytest.mark.parametrize("kind", ["create", "observe"])
async def test_a_job_really_ends_behind_our_back(desk: Desk, lie: str, end: str, kind: str) -> None:
    desk.books.lie(kind, lie)  # pyright: ignore[reportArgumentType]
    job = await desk.job(polls=9)
    assert await desk.state(job) == end
    assert desk.books.job(job).ended == end


async def test_a_job_that_was_seen_is_gone(desk: Desk) -> None:
    job = await desk.job()
    desk.books.lie("observe", "job_gone")
    assert [(await desk.read(job)).status_code for _ in range(3)] == [200, 404, 404]


@pytest.mark.parametrize(
    ("lie", "answered", "then"),
    [
        ("cancel_ignored", "running", ["running", "running", "succeeded"]),
        ("cancel_acknowledged_and_ignored", "cancelled", ["running", "running", "succeeded"]),
        ("success_racing_cancel", "cancelling", ["succeeded"]),
        ("success_after_cancel", "cancelling", ["cancelling", "succeeded"]),
    ],
)
async def test_a_cancel_is_taken_and_does_not_cancel(desk: Desk, lie: str, answered: str, then: list[str]) -> None:
    job = await desk.job(polls=4)
    assert [await desk.state(job) for _ in range(2)] == ["queued", "running"]
    desk.books.lie("cancel", lie)
    answer = await desk.cancel(job)
    assert (answer.status_code, answer.json()["state"]) == (202, answered)
    assert [await desk.state(job) for _ in then] == then
    assert desk.books.job(job).ended == "succeeded"


async def test_a_cancel_is_refused(desk: Desk) -> None:
    job = await desk.job()
    desk.books.lie("cancel", "cancel_refused")
    assert (await desk.cancel(job)).status_code == 403
    assert desk.books.job(job).cancel_asked_at is None


async def test_a_result_expires_or_can_be_fetched_once(desk: Desk) -> None:
    job = await desk.finished()
    desk.books.lie("collect", "result_one_time")
    assert [(await desk.result(job)).status_code for _ in range(2)] == [200, 410]
    desk.books.script.clear()
    desk.books.lie("collect", "result_expired")
    assert (await desk.result(job)).status_code == 410


@pytest.mark.parametrize(
    ("lie", "rows", "same_size"),
    [("wrong_result_bytes", 40, True), ("result_of_another_job", 40, False), ("truncated_result", None, False), ("short_rows", 20, False)],
)
async def test_a_result_is_not_the_one_that_was_promised(desk: Desk, lie: str, rows: int | None, same_size: bool) -> None:
    job = await desk.finished()
    honest = (await desk.result(job)).content
    desk.books.lie("collect", lie)
    answer = await desk.result(job)
    assert answer.status_code == 200
    assert answer.content != honest
    assert (len(answer.content) == len(honest)) is same_size
    assert int(answer.headers["content-length"]) == len(answer.content)
    if rows is not None:
        assert len(answer.text.splitlines()) - 1 == rows


@pytest.mark.parametrize("lie", ["slow_headers", "slow_body"])
async def test_a_slow_answer_is_whole_in_the_end(desk: Desk, lie: str) -> None:
    job = await desk.finished()
    honest = (await desk.result(job)).content
    desk.books.lie("collect", {"word": lie, "args": {"seconds": 0.01}})
    began = time.monotonic()
    assert (await desk.result(job)).content == honest
    assert time.monotonic() - began >= 0.03


async def test_an_endless_body_ends_when_its_caller_has_had_enough(desk: Desk) -> None:
    job = await desk.finished()
    desk.books.lie("collect", "endless_body")
    async with desk.client.stream("GET", f"/v1/jobs/{job}/result") as answer:
        size = 0
        async for piece in answer.aiter_raw():
            size += len(piece)
            if size > 3_000_000:
                break
    desk.books.script.clear()
    assert (await desk.result(job)).status_code == 200


@pytest.mark.parametrize("rows", [40, 60_000])
async def test_a_truncated_body_breaks_within(desk: Desk, rows: int) -> None:
    job = await desk.finished(rows=rows)
    desk.books.lie("collect", "truncated_body")
    with pytest.raises(DROPPED):
        await desk.result(job)


async def test_a_gzip_bomb_is_small_and_unpacks_to_much(desk: Desk) -> None:
    job = await desk.job()
    desk.books.lie("observe", {"word": "gzip_bomb", "args": {"mebibytes": 4}})
    async with desk.client.stream("GET", f"/v1/jobs/{job}") as answer:
        packed = b"".join([piece async for piece in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip"
    assert len(packed) < 100_000
    assert len(zlib.decompress(packed, 31)) > 4 * 1024 * 1024


async def test_bodies_that_no_reader_should_trust(desk: Desk) -> None:
    job = await desk.job()

    async def told(word: str) -> bytes:
        desk.books.script.clear()
        desk.books.lie("observe", word)
        return (await desk.read(job)).content

    with pytest.raises(UnicodeDecodeError):
        (await told("invalid_utf8")).decode()
    with pytest.raises(RecursionError):
        json.loads(await told("deep_json"))
    huge = json.loads(await told("huge_integer"))
    assert (huge["note"], huge["infinite"]) == (2**60, float("inf"))
    assert json.loads(await told("nul_in_text"))["note"] == "a\x00b"
    assert json.loads(await told("lone_surrogate"))["note"] == "a\ud800b"


async def test_headers_that_no_reader_should_trust(desk: Desk) -> None:
    job = await desk.finished()
    desk.books.lie("collect", "huge_header", nth=1)
    desk.books.lie("collect", "wrong_content_type", nth=2)
    with pytest.raises(httpx.RemoteProtocolError):
        await desk.result(job)
    assert (await desk.result(job)).headers["content-type"] == "text/html"


async def test_addresses_lead_elsewhere(desk: Desk) -> None:
    desk.books.lie("create", "location_elsewhere", nth=1)
    desk.books.lie("create", "location_metadata", nth=2)
    first = await desk.create("t-1")
    job = first.json()["job_id"]
    assert first.headers["location"] == first.json()["status_url"] == f"https://elsewhere.example/v1/jobs/{job}"
    second = await desk.create("t-2")
    assert second.headers["location"] == second.json()["status_url"] == "http://169.254.169.254/latest/meta-data/"
    await desk.finished(token="t-3")
    desk.books.lie("observe", {"word": "redirect_elsewhere", "args": {"to": "http://127.0.0.1:1", "status": 302}})
    moved = await desk.read(job)
    assert (moved.status_code, moved.headers["location"]) == (302, f"http://127.0.0.1:1/v1/jobs/{job}")


async def test_lies_combine(desk: Desk) -> None:
    desk.books.lie("create", "accept_twice", "drop_after_accepting", times=1)
    with pytest.raises(DROPPED):
        await desk.create()
    assert len(desk.books.jobs_for("t-1")) == 2
    assert desk.books.requests("create")[0].lies == ["accept_twice", "drop_after_accepting"]


async def test_a_rule_is_told_of_one_account_one_job_or_one_turn_only(desk: Desk) -> None:
    desk.books.lie("create", "reject", account="other")
    job = await desk.job()
    assert (await desk.create("t-2", account="other")).status_code == 422
    other = await desk.job(token="t-3")
    desk.books.lie("observe", "job_gone", job=other)
    desk.books.lie("observe", "status_503", job=job, nth=2, times=1)
    assert [(await desk.read(one)).status_code for one in (job, other, other, job, job)] == [200, 200, 404, 503, 200]


async def test_chance_is_seeded_and_the_same_seed_gives_the_same_lies(desk: Desk) -> None:
    job = await desk.job()

    async def statuses(seed: int) -> list[int]:
        desk.books.script.clear()
        desk.books.lie("observe", "status_503", probability=0.5, seed=seed)
        return [(await desk.read(job)).status_code for _ in range(40)]

    first = await statuses(7)
    assert first == await statuses(7) != await statuses(8)
    assert 5 < first.count(503) < 35


async def test_a_script_is_installed_shown_and_cleared_over_http(desk: Desk) -> None:
    rule = {"match": {"kind": "create", "account": "acme"}, "lies": ["reject", {"word": "delay", "args": {"seconds": 0}}], "times": 1}
    installed = await desk.client.post("/script", json=rule)
    assert (installed.status_code, installed.json()["lies"][1]["args"]) == (201, {"seconds": 0, "when": "before"})
    assert [(await desk.create()).status_code for _ in range(2)] == [422, 202]
    assert (await desk.client.get("/script")).json()["rules"][0]["used"] == 1
    assert (await desk.client.delete("/script")).json() == {"rules": []}


BAD_RULES: list[Json] = [
    {"match": {"kind": "create"}, "lies": ["fib"]},
    {"match": {"kind": "create"}, "lies": []},
    {"match": {"kind": "destroy"}, "lies": ["reject"]},
    {"match": {"kind": "create", "colour": "red"}, "lies": ["reject"]},
    {"match": {"kind": "create"}, "lies": ["cancel_ignored"]},
    {"match": {"kind": "create"}, "lies": ["reject"], "times": "often"},
    {"match": {"kind": "create"}, "lies": ["reject"], "nth": True},
    {"match": {"kind": "create"}, "lies": [{"word": "status_429", "args": {"retry_after": "soon"}}]},
    {"match": {"kind": "create"}, "lies": [{"word": "delay", "args": {"seconds": "long"}}]},
    {"match": {"kind": "create"}, "lies": [{"word": "reject", "args": {"why": "x"}}]},
    {"lies": ["reject"]},
    [],
]


@pytest.mark.parametrize("rule", BAD_RULES, ids=lambda rule: json.dumps(rule)[:60])
async def test_a_rule_that_could_never_be_told_is_refused(desk: Desk, rule: Json) -> None:
    assert (await desk.client.post("/script", json=rule)).status_code in (400, 422)
    with pytest.raises(BadScript):
        desk.books.script.add(rule)
    assert desk.books.script.rules == []


async def test_the_vocabulary_is_told_word_by_word(desk: Desk) -> None:
    told = (await desk.client.get("/lies")).json()["lies"]
    assert [one["word"] for one in told] == list(LIES)
    assert all(one["sentence"].endswith(".") and one["kinds"] for one in told)
    assert all(lie.instead or lie.on_job or lie.bend or lie.holds for lie in LIES.values())


@pytest.mark.parametrize("word", sorted(set(LIES) - {"hold", "delay", "slow_headers", "slow_body", "endless_body", "gzip_bomb"}))
async def test_each_lie_can_be_told_of_each_kind_it_names_and_the_provider_lives_on(desk: Desk, word: str) -> None:
    job = await desk.finished(token="t-0")
    calls = {
        "create": lambda: desk.create("t-1"),
        "observe": lambda: desk.read(job),
        "cancel": lambda: desk.cancel(job),
        "collect": lambda: desk.result(job),
        "list": lambda: desk.client.get("/v1/reports"),
        "read": lambda: desk.client.post("/v1/counts", json={"account": "a", "range": desk.asked["range"]}),
        "upload": lambda: desk.client.post("/v1/uploads", content=b"rows"),
        "remove": lambda: desk.client.delete("/v1/uploads/up_0"),
    }
    for kind in sorted(LIES[word].kinds):
        desk.books.lie(kind, word, times=1)
        try:
            answer = await calls[kind]()
            assert answer.status_code != 500 or "error" in answer.json()
        except DROPPED:
            pass
        assert desk.books.seen[-1].lies == [word]
    assert (await desk.client.get("/health")).json()["ok"] is True
