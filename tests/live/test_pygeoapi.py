"""A provider that nobody here wrote: pygeoapi, its own processes, and its own books. One contract file, no code for it.

The same commands that an operator types go over real sockets to a real server, with Temporal's development server in between.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.leash import until
from tests.live.passage import Passage
from tests.live.pygeoapi_server import Job, Server, serving
from tests.live.stack import Sakshi

pytestmark = pytest.mark.live

Made = Callable[[], list[Job]]
SOON = {"echoInput": "Echo", "pause": 2.5}
LONG = {"echoInput": "Echo", "pause": 600.5}
ASYNC = {"headers": {"Prefer": "respond-async"}}


def ended(made: Made) -> bool:
    return [job["status"] for job in made()] == ["successful"]


# --- the facts that the contract stands on ----------------------------------------------------------------------------------


def test_a_taken_execution_is_answered_with_nothing_but_a_location(server: Server, made: Made) -> None:
    answer = server.ask("POST", "/processes/echo/execution", json={"inputs": SOON}, **ASYNC)
    assert (answer.status_code, answer.json()) == (201, None)
    (job,) = made()
    assert answer.headers["location"] == f"{server.url}/jobs/{job['identifier']}"
    assert job["status"] == "accepted"
    assert server.get(f"/jobs/{job['identifier']}/results", params={"f": "json"}).status_code == 404
    assert until(lambda: ended(made), within=30)
    assert server.get(f"/jobs/{job['identifier']}/results", params={"f": "json"}).json() == {"id": "echoOutput", "value": "Echo"}


def test_a_delete_destroys_a_finished_job_and_its_result(server: Server, made: Made) -> None:
    server.ask("POST", "/processes/hello-world/execution", json={"inputs": {"name": "live"}}, **ASYNC)
    assert until(lambda: ended(made), within=30)
    path = f"/jobs/{made()[0]['identifier']}"
    answer = server.ask("DELETE", path)
    assert (answer.status_code, answer.json()["status"]) == (200, "dismissed")
    assert [server.get(one).status_code for one in (path, f"{path}/results")] == [404, 404]
    assert server.ask("DELETE", path).status_code == 404


# --- stories ----------------------------------------------------------------------------------------------------------------


def test_an_execution_is_created_once_watched_and_its_result_is_what_the_server_gives(
    server: Server, sakshi: Sakshi, made: Made, tmp_path: Path
) -> None:
    found = sakshi.run("echo", SOON, server=server.url)
    assert (found["state"], found["outcome"], found["effect"]) == ("succeeded", "whole", "made")
    (job,) = made()
    assert (job["identifier"], job["status"]) == (found["remote_job_id"], "successful")
    sakshi.ask("result", found["id"], "--output", str(tmp_path / "out"))
    (written,) = (path for path in (tmp_path / "out").iterdir() if path.name.startswith("output-"))
    assert written.read_bytes() == server.get(f"/jobs/{job['identifier']}/results", params={"f": "json"}).content
    causes = sakshi.causes(found["id"])
    assert causes.count("intent.create") == 1
    assert causes.count("reading.going") >= 1
    sakshi.is_whole(found["id"])


def test_an_execution_that_fails_is_failed_with_the_reason_that_the_server_gave(server: Server, sakshi: Sakshi, made: Made) -> None:
    found = sakshi.run("echo", {}, server=server.url, code=1)
    assert (found["state"], found["result"]) == ("failed", None)
    (job,) = made()
    assert (job["identifier"], job["status"]) == (found["remote_job_id"], "failed")
    assert job["message"] in found["why"]
    assert "Cannot run process without echo value" in found["why"]
    sakshi.is_whole(found["id"])


def test_a_cancel_is_cancelled_only_when_the_server_no_longer_shows_the_job(
    server: Server, sakshi: Sakshi, made: Made, way: Passage
) -> None:
    stream = sakshi.run("echo", LONG, server=way.url, wait=False)["id"]
    job = sakshi.reached(stream, "observing")["remote_job_id"]
    assert [one["identifier"] for one in made()] == [job]
    assert sakshi.ask("cancel", stream, "--reason", "no longer needed")["accepted"] is True
    found = sakshi.ask("wait", stream, "--timeout", "60s", code=1)
    assert (found["state"], found["remote_job_id"]) == ("cancelled", job)
    assert made() == []
    assert [len(way.methods(method)) for method in ("POST", "DELETE")] == [1, 1]
    entries = sakshi.entries(stream)
    asked = next(entry["seq"] for entry in entries if entry["cause"] == "cancel_answer.taken")
    # A read that the cancel interrupted may still have found nothing: that is a note, and moves nothing.
    assert [entry["cause"] for entry in entries[asked + 1 :] if entry["role"] != "note"] == ["reading.terminal"]
    assert [entry["to"] for entry in entries[asked + 1 :] if entry["role"] == "move"] == ["cancelled"]
    assert way.passed[-1][0] == "GET"
    sakshi.is_whole(stream)


def test_a_cancel_that_comes_too_late_destroys_nothing(server: Server, sakshi: Sakshi, made: Made, way: Passage) -> None:
    way.shut = frozenset({"GET"})
    stream = sakshi.run("echo", SOON, server=way.url, wait=False)["id"]
    assert until(lambda: ended(made), within=60)
    sakshi.reached(stream, "accepted")
    assert sakshi.ask("cancel", stream, "--reason", "no longer needed")["accepted"] is True
    way.shut = frozenset()
    found = sakshi.ask("wait", stream, "--timeout", "60s")
    assert (found["state"], found["result"]["outputs"][0]["name"]) == ("succeeded", "output")
    assert way.methods("DELETE") == []
    assert [(job["identifier"], job["status"]) for job in made()] == [(found["remote_job_id"], "successful")]
    sakshi.is_whole(stream)


def test_what_the_server_executes_at_once_is_collected_from_the_answer_to_the_create(
    server: Server, sakshi: Sakshi, made: Made, way: Passage
) -> None:
    found = sakshi.run("at-once", {"name": "live"}, server=way.url)
    assert found["state"] == "succeeded"
    assert [(job["identifier"], job["status"]) for job in made()] == [(found["remote_job_id"], "successful")]
    assert [method for method, _ in way.passed] == ["POST"]
    assert json.loads(sakshi.say("result", found["id"], "--output", "-").text) == {"id": "echo", "value": "Hello live!"}
    sakshi.is_whole(found["id"])


def test_what_fails_at_once_is_known_to_have_been_executed(server: Server, sakshi: Sakshi, made: Made) -> None:
    found = sakshi.run("at-once", {}, server=server.url, code=1)
    assert (found["state"], found["effect"]) == ("failed", "made")
    assert "Cannot process without a name" in found["why"]
    assert [(job["identifier"], job["status"]) for job in made()] == [(found["remote_job_id"], "failed")]
    sakshi.is_whole(found["id"])


def test_a_refused_execution_is_failed_without_an_effect(server: Server, sakshi: Sakshi, made: Made) -> None:
    found = sakshi.run("no-such-process", {}, server=server.url, code=1)
    assert (found["state"], found["effect"], found["safe_to_run_again"]) == ("failed", "none", True)
    assert made() == []
    sakshi.is_whole(found["id"])


def test_a_server_without_a_job_manager_executes_at_once_and_names_no_job(sakshi: Sakshi, tmp_path: Path) -> None:
    with serving(tmp_path / "pygeoapi", manager=False) as bare:
        found = sakshi.run("hello-world", {"name": "live"}, server=bare.url)
        assert (found["state"], found["remote_job_id"]) == ("succeeded", None)
        failed = sakshi.run("hello-world", {}, server=bare.url, code=1)
        assert (failed["state"], failed["effect"]) == ("failed", "made")
    for one in (found, failed):
        sakshi.is_whole(one["id"])


def test_a_lost_answer_makes_no_second_job_and_what_it_may_have_made_is_for_a_human_to_adopt(
    server: Server, sakshi: Sakshi, made: Made, way: Passage
) -> None:
    way.loses = frozenset({"POST"})
    found = sakshi.run("echo", SOON, server=way.url, code=7)
    assert (found["state"], found["effect"], found["safe_to_run_again"]) == ("create_unknown", "possible", False)
    assert found["remote_job_id"] is None
    assert found["waiting_for"] == "human"
    assert until(lambda: ended(made), within=30)
    assert sakshi.status(found["id"])["head"] == found["head"]
    [job] = made()
    assert job["identifier"] in [candidate["id"] for candidate in found["attention"]["candidates"]]
    assert sakshi.ask("resolve", found["id"], "adopt", job["identifier"], "--reason", "looked at its inputs")["accepted"] is True
    assert sakshi.ask("wait", found["id"], "--timeout", "60s")["state"] == "succeeded"
    assert way.passed.count(("POST", "/processes/echo/execution")) == 1
    assert len(made()) == 1
    sakshi.is_whole(found["id"])
