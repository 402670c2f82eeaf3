"""What the provider does when nobody asks it to lie."""

import hashlib
import json
from pathlib import Path

import httpx
import pytest

from simulator.answer import Call
from simulator.asking import Pace
from simulator.books import Books
from simulator.jobs import Job
from simulator.provider import Provider, Settings
from simulator.serve import running
from tests.simulator.conftest import ASK, Desk


async def test_a_job_is_queued_then_running_then_done_after_the_readings_it_was_given(desk: Desk) -> None:
    job = await desk.job(polls=3)
    assert [await desk.state(job) for _ in range(5)] == ["queued", "running", "running", "succeeded", "succeeded"]
    progress = (await desk.read(job)).json()["progress"]
    assert progress == {"completed": 40, "total": 40}


async def test_a_finished_job_tells_checksum_size_rows_and_address_of_its_result(desk: Desk) -> None:
    job = await desk.finished()
    status, result = (await desk.read(job)).json(), await desk.result(job)
    assert result.headers["content-type"] == status["content_type"] == "text/csv"
    assert status["checksum"] == "sha256:" + hashlib.sha256(result.content).hexdigest()
    assert status["size"] == len(result.content) == int(result.headers["content-length"])
    assert len(result.text.splitlines()) - 1 == status["rows"] == 40
    assert (await desk.client.get(status["result_url"])).content == result.content
    assert desk.books.downloads(job) == 2


@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
async def test_each_form_has_as_many_rows_as_asked_also_across_pieces(desk: Desk, form: str) -> None:
    text = (await desk.result(await desk.finished(token=form, format=form, rows=4_501, account='a,"b'))).text
    match form:
        case "csv":
            rows = text.splitlines()[1:]
            assert rows[0].split(",", 1)[1].startswith('"a,""b"')
        case "jsonl":
            rows = [json.loads(line) for line in text.splitlines()]
        case _:
            rows = json.loads(text)
    assert len(rows) == 4_501


async def test_a_large_result_is_sent_in_pieces_and_is_what_its_checksum_says(desk: Desk) -> None:
    job = await desk.finished(rows=60_000)
    status, result = (await desk.read(job)).json(), await desk.result(job)
    assert len(result.content) == status["size"] > 1024 * 1024
    assert status["checksum"] == "sha256:" + hashlib.sha256(result.content).hexdigest()


async def test_the_same_token_and_body_is_the_same_job(desk: Desk) -> None:
    first, second = await desk.create(), await desk.create()
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["job_id"] == second.json()["job_id"]
    assert (first.json()["replayed"], second.json()["replayed"]) == (False, True)
    assert second.headers["idempotent-replayed"] == "true"
    assert len(desk.books.jobs_for("t-1")) == 1


async def test_the_same_token_with_another_body_is_a_mismatch_and_makes_nothing(desk: Desk) -> None:
    await desk.create()
    answer = await desk.create(rows=41)
    assert (answer.status_code, answer.json()["error"]) == (422, "token_mismatch")
    assert len(desk.books.jobs()) == 1


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"account": ""}, 422),
        ({"account": "a\nb"}, 422),
        ({"range": {"start": "2026-02-01", "end": "2026-01-01"}}, 422),
        ({"range": "january"}, 422),
        ({"format": "pdf"}, 422),
        ({"rows": -1}, 422),
        ({"rows": True}, 422),
        ({"seconds": "soon"}, 422),
        ({"colour": "red"}, 422),
    ],
)
async def test_a_question_that_is_none_is_refused_and_makes_nothing(desk: Desk, changed: dict[str, object], status: int) -> None:
    assert (await desk.create(**changed)).status_code == status  # pyright: ignore[reportArgumentType]
    assert desk.books.jobs() == []


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[]", 400), (b"[" * 100_000, 400), (b"x" * 1_100_000, 413)])
async def test_a_body_that_cannot_be_read_is_refused(desk: Desk, body: bytes, status: int) -> None:
    assert (await desk.client.post("/v1/reports", content=body)).status_code == status


async def test_a_synchronous_report_is_finished_in_its_answer(desk: Desk) -> None:
    answer = await desk.create(sync=True)
    status = answer.json()
    assert (answer.status_code, status["state"]) == (200, "succeeded")
    assert status["result"].encode() == (await desk.result(status["job_id"])).content
    failed = await desk.create("t-2", sync=True, fail=True)
    assert (failed.status_code, failed.json()["state"]) == (200, "failed")


async def test_a_job_that_is_asked_to_fail_says_why_and_leaves_no_result(desk: Desk) -> None:
    job = await desk.job(polls=0, fail=True)
    status = (await desk.read(job)).json()
    assert (status["state"], status["error"]["code"], status["checksum"]) == ("failed", "render_failed", None)
    assert (await desk.result(job)).json()["error"] == "no_result"


async def test_a_result_is_not_ready_before_its_job_is(desk: Desk) -> None:
    assert (await desk.result(await desk.job())).json()["error"] == "not_ready"


async def test_a_cancel_takes_a_while_and_can_be_repeated(desk: Desk) -> None:
    job = await desk.job(polls=9)
    assert await desk.state(job) == "queued"
    assert (await desk.cancel(job)).status_code == 202
    assert (await desk.cancel(job)).status_code == 202
    assert [await desk.state(job) for _ in range(3)] == ["cancelling", "cancelled", "cancelled"]
    assert (await desk.cancel(job)).status_code == 409


async def test_a_finished_job_cannot_be_cancelled(desk: Desk) -> None:
    job = await desk.finished()
    assert (await desk.cancel(job)).json()["error"] == "already_ended"
    assert await desk.state(job) == "succeeded"


@pytest.mark.parametrize("act", ["read", "cancel", "result"])
async def test_an_unknown_job_is_not_found(desk: Desk, act: str) -> None:
    assert (await getattr(desk, act)("job_none")).status_code == 404


async def test_the_plain_address_makes_a_job_each_time(desk: Desk) -> None:
    answers = [await desk.create(path="/v1/plain/reports") for _ in range(2)]
    assert len({answer.json()["job_id"] for answer in answers}) == len(desk.books.jobs()) == 2
    assert desk.books.jobs_for("t-1") == []


async def test_the_named_address_makes_one_job_per_name(desk: Desk) -> None:
    first = await desk.client.put("/v1/named/reports/ours-1", json=ASK)
    second = await desk.client.put("/v1/named/reports/ours-1", json=ASK)
    other = await desk.client.put("/v1/named/reports/ours-1", json=ASK | {"rows": 1})
    assert [answer.status_code for answer in (first, second, other)] == [201, 200, 409]
    assert (first.json()["job_id"], second.json()["existed"], other.json()["error"]) == ("ours-1", True, "name_taken")
    assert len(desk.books.jobs()) == 1


async def test_the_unnamed_address_tells_no_id_and_the_job_is_found_by_its_reference(desk: Desk) -> None:
    answer = await desk.client.post("/v1/unnamed/reports", json=ASK, headers={"X-Reference": "mark-1"})
    assert (answer.status_code, answer.content) == (204, b"")
    (job,) = desk.books.jobs_with("mark-1")
    assert (await desk.client.get("/v1/references/mark-1")).json()["job_id"] == job.id
    assert (await desk.client.get("/v1/references/mark-2")).status_code == 404


async def test_the_list_is_paged_and_searched_by_reference_and_by_time(desk: Desk) -> None:
    for n in range(5):
        await desk.create(None, path="/v1/plain/reports", reference=f"mark-{n % 2}")
    first = (await desk.client.get("/v1/reports", params={"limit": 2})).json()
    last = (await desk.client.get("/v1/reports", params={"limit": 3, "cursor": first["next"]})).json()
    assert (len(first["items"]), len(last["items"]), last["next"]) == (2, 3, None)
    marked = (await desk.client.get("/v1/reports", params={"reference": "mark-1"})).json()["items"]
    assert [item["job_id"] for item in marked] == [job.id for job in desk.books.jobs_with("mark-1")]
    later = await desk.client.get("/v1/reports", params={"created_from": "2999-01-01T00:00:00Z"})
    assert later.json()["items"] == []
    window = {"created_from": "2000-01-01T00:00:00Z", "created_to": "2999-01-01T00:00:00+00:00"}
    assert len((await desk.client.get("/v1/reports", params=window)).json()["items"]) == 5
    for bad in ({"created_from": "yesterday"}, {"created_to": "2026-01-01T00:00:00"}, {"cursor": "x"}):
        assert (await desk.client.get("/v1/reports", params=bad)).status_code == 400
    assert all(job.reads == 0 for job in desk.books.jobs()), "a list is not a reading"


async def test_a_read_that_counts_makes_no_job(desk: Desk) -> None:
    answer = await desk.client.post("/v1/counts", json={"account": "acme", "range": ASK["range"]})
    assert (answer.status_code, desk.books.jobs()) == (200, [])
    assert isinstance(answer.json()["count"], int)
    assert [seen.kind for seen in desk.books.requests()] == ["read"]


async def test_a_wrong_credential_is_refused_and_never_written_down() -> None:
    settings = Settings(bearer="s3cret-value")
    async with running(settings=settings) as sim, httpx.AsyncClient(base_url=sim.url, trust_env=False) as client:
        answers = [await client.post("/v1/reports", json=ASK, headers={"Authorization": f"Bearer {v}"}) for v in ("other", "s3cret-value")]
        books = (await client.get("/books")).text
    assert [answer.status_code for answer in answers] == [401, 202]
    assert "s3cret-value" not in books
    assert hashlib.sha256(b"Bearer s3cret-value").hexdigest() in books


async def test_the_books_show_every_request_with_its_headers_and_the_digest_of_its_body(desk: Desk) -> None:
    body = json.dumps(ASK).encode()
    await desk.client.post("/v1/reports", content=body, headers={"Idempotency-Key": "t-9", "X-Trace-ID": "trace-1"})
    books = (await desk.client.get("/books")).json()
    (seen,) = books["requests"]
    assert seen["headers"]["x-trace-id"] == "trace-1"
    assert (seen["token"], seen["status"], seen["lies"]) == ("t-9", 202, [])
    assert seen["body_digest"] == books["jobs"][0]["body_digest"] == hashlib.sha256(body).hexdigest()
    assert books["tokens"] == {"t-9": [seen["job"]]}


async def test_an_address_that_is_none_is_not_found(desk: Desk) -> None:
    for path in ("/", "/v1/", "/v1/jobs", "/v1/named/reports/", "/elsewhere"):
        assert (await desk.client.get(path)).status_code == 404


async def test_the_answer_to_a_create_can_carry_retry_after() -> None:
    settings = Settings(retry_after="0.5")
    async with running(settings=settings) as sim, httpx.AsyncClient(base_url=sim.url, trust_env=False) as client:
        assert (await client.post("/v1/reports", json=ASK)).headers["retry-after"] == "0.5"


def timed_job(**changes: object) -> tuple[Job, Provider]:
    from simulator.answer import Call

    provider = Provider(Settings(pace=Pace(None, 10.0), cancel_seconds=2.0), clock=lambda: 1_000.0)
    call = Call("create", "POST", "/v1/reports", "reports", body=json.dumps(ASK).encode())
    provider.answer(call)
    return provider.jobs[call.job or ""], provider


def test_a_job_measured_in_seconds_is_done_when_they_have_passed() -> None:
    job, _ = timed_job()
    assert [job.read(1_000.0 + t) for t in (0, 5, 9.9, 10)] == ["queued", "running", "running", "succeeded"]


def test_progress_of_a_job_measured_in_seconds_follows_the_clock_and_stops_with_the_cancel() -> None:
    job, _ = timed_job()
    assert job.view("", 1_005.0)["progress"] == {"completed": 20, "total": 40}
    job.ask_cancel(1_005.0)
    assert (job.read(1_006.9), job.read(1_007.0)) == ("cancelling", "cancelled")
    assert job.view("", 1_009.0)["progress"] == {"completed": 20, "total": 40}


def test_a_job_survives_its_own_json() -> None:
    job, _ = timed_job()
    job.read(1_005.0)
    job.ask_cancel(1_006.0)
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_new_books_are_empty() -> None:
    assert Books().to_json() == {
        "created": 0,
        "downloads": 0,
        "tokens": {},
        "uploads": [],
        "references": {},
        "jobs": [],
        "requests": [],
        "script": [],
    }


async def test_an_upload_is_taken_each_time_anew_and_taken_away_once(desk: Desk) -> None:
    first, second = [(await desk.client.post("/v1/uploads", content=b"rows")).json()["id"] for _ in range(2)]
    assert first != second
    assert [(await desk.client.delete(f"/v1/uploads/{first}")).status_code for _ in range(2)] == [204, 404]
    assert [one.id for one in desk.books.uploads(removed=False)] == [second]
    assert [one.id for one in desk.books.uploads(removed=True)] == [first]
    assert (await desk.client.delete("/v1/uploads/up_0")).status_code == 404


def test_uploads_outlive_the_process_with_the_books(tmp_path: Path) -> None:
    path, settings = tmp_path / "books.db", Settings()
    books = Books.kept_in(path, settings)
    kept, gone = [json.loads(books.provider.answer(Call("upload", "POST", "/v1/uploads", body=b"rows")).body)["id"] for _ in range(2)]
    books.provider.answer(Call("remove", "DELETE", f"/v1/uploads/{gone}", name=gone))
    books.save()
    again = Books.kept_in(path, settings)
    assert {(one.id, one.size, one.content, one.removed) for one in again.uploads()} == {(kept, 4, "rows", False), (gone, 4, "rows", True)}
