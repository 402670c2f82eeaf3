"""A provider that nobody here wrote, with a token: a Prefect server, its own runner, and its own database. One contract file, no code."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.live.leash import until
from tests.live.passage import Passage, passage
from tests.live.prefect_server import Prefect, Run
from tests.live.stack import Sakshi

pytestmark = pytest.mark.live

CONTRACT = "prefect.deployments.run"
CREATE = "POST /api/deployments/"
Made = Callable[[], list[Run]]


@pytest.fixture
def made(prefect: Prefect) -> Made:
    """The runs that the server's own database has since the test began."""
    before = {run.id for run in prefect.runs()}
    return lambda: [run for run in prefect.runs() if run.id not in before]


def asked(prefect: Prefect, **parameters: object) -> dict[str, object]:
    return {"deployment": prefect.deployment, "parameters": parameters}


# --- the facts that the contract stands on ----------------------------------------------------------------------------------


def test_the_same_key_gives_the_same_run_even_with_other_parameters(prefect: Prefect, made: Made) -> None:
    path, key = f"/api/deployments/{prefect.deployment}/create_flow_run", str(uuid4())
    answers = [prefect.ask("POST", path, json={"idempotency_key": key, "parameters": {"rows": rows}}) for rows in (1, 1, 2)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert {answer.json()["id"] for answer in answers} == {run.id for run in made()}
    assert answers[2].json()["parameters"] == {"rows": 1}


def test_a_run_of_parameters_that_do_not_fit_is_not_made(prefect: Prefect, made: Made) -> None:
    path = f"/api/deployments/{prefect.deployment}/create_flow_run"
    assert prefect.ask("POST", path, json={"parameters": {"rows": "many"}}).status_code == 409
    assert made() == []


# --- stories ----------------------------------------------------------------------------------------------------------------


def test_a_run_is_created_once_watched_and_its_artifacts_are_collected(
    prefect: Prefect, sakshi: Sakshi, made: Made, tmp_path: Path
) -> None:
    found = sakshi.start(CONTRACT, asked(prefect, rows=2, seconds=3), server=prefect.url)
    assert (found["state"], found["outcome"], found["effect"]) == ("succeeded", "whole", "made")
    (run,) = made()
    assert (run.id, run.state) == (found["remote_job_id"], "COMPLETED")
    sakshi.ask("result", found["id"], "--output", str(tmp_path / "out"))
    (written,) = (path for path in (tmp_path / "out").iterdir() if path.name.startswith("output-"))
    (artifact,) = json.loads(written.read_bytes())
    assert (artifact["flow_run_id"], json.loads(artifact["data"])) == (run.id, [{"row": 0}, {"row": 1}])
    assert sakshi.causes(found["id"]).count("intent.create") == 1
    sakshi.is_whole(found["id"])


def test_a_run_that_fails_is_failed_with_the_reason_that_the_server_gave(prefect: Prefect, sakshi: Sakshi, made: Made) -> None:
    found = sakshi.start(CONTRACT, asked(prefect, fails=True), server=prefect.url, code=1)
    assert (found["state"], found["result"]) == ("failed", None)
    assert "asked to fail" in found["why"]
    assert [(run.id, run.state) for run in made()] == [(found["remote_job_id"], "FAILED")]
    sakshi.is_whole(found["id"])


def test_parameters_that_do_not_fit_are_refused_without_an_effect(prefect: Prefect, sakshi: Sakshi, made: Made) -> None:
    found = sakshi.start(CONTRACT, asked(prefect, rows="many"), server=prefect.url, code=1)
    assert (found["state"], found["effect"], found["safe_to_run_again"]) == ("failed", "none", True)
    assert "rows" in found["why"]
    assert made() == []


def test_a_cancel_sets_a_state_and_is_believed_when_the_server_says_cancelled(prefect: Prefect, sakshi: Sakshi, made: Made) -> None:
    with passage(prefect.url) as way:
        stream = sakshi.start(CONTRACT, asked(prefect, seconds=600), server=way.url, wait=False)["id"]
        assert until(lambda: [run.state for run in made()] == ["RUNNING"], within=60)
        assert sakshi.ask("cancel", stream, "--reason", "no longer needed")["accepted"] is True
        found = sakshi.ask("wait", stream, "--timeout", "90s", code=1)
        assert found["state"] == "cancelled"
        assert [(run.id, run.state) for run in made()] == [(found["remote_job_id"], "CANCELLED")]
        assert [target.endswith("/set_state") for target in way.methods("POST")] == [False, True]
    sakshi.is_whole(stream)


def test_a_lost_answer_is_asked_for_again_under_the_same_key_and_there_is_one_run(prefect: Prefect, sakshi: Sakshi, made: Made) -> None:
    with passage(prefect.url) as way:
        way.loses = frozenset({CREATE})
        stream = sakshi.start(CONTRACT, asked(prefect, rows=1), server=way.url, wait=False)["id"]
        assert until(lambda: len(_creates(way)) >= 1, within=60)
        way.loses = frozenset()
        found = sakshi.ask("wait", stream, "--timeout", "90s")
        assert (found["state"], found["effect"]) == ("succeeded", "made")
        assert len(_creates(way)) >= 2
    (run,) = made()
    assert run.id == found["remote_job_id"]
    causes = sakshi.causes(stream)
    assert causes.count("exchange.ambiguous") >= 1
    assert causes.count("exchange.accepted") == 1
    sakshi.is_whole(stream)


def _creates(way: Passage) -> list[str]:
    return [target for target in way.methods("POST") if target.startswith("/api/deployments/")]
