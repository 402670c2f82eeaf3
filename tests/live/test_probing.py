"""`contracts probe` of servers that nobody here wrote: what their contracts say is true of them, and nothing is left behind."""

import json
from pathlib import Path

import pytest

from tests.live.prefect_server import Prefect
from tests.live.pygeoapi_server import Server
from tests.live.stack import Sakshi, Shown

pytestmark = pytest.mark.live

AT_TIMEOUT = ("--timeout", "90s")


def probed(tmp_path: Path, contract: str, asked: object, *words: str, server: str) -> Shown:
    """The report of a probe; no stack is needed for it."""
    said = Sakshi(tmp_path / "home").say(
        "contracts", "probe", contract, "--input", json.dumps(asked), "--yes", "--json", *AT_TIMEOUT, *words, server=server
    )
    assert said.text, said.complaint
    shown = said.shown
    assert said.code == (0 if shown["ok"] else 1)
    return shown


def verdicts(shown: Shown) -> dict[str, str]:
    return {check["name"]: check["verdict"] for check in shown["checks"]}


def differing(shown: Shown) -> list[Shown]:
    return [check for check in shown["checks"] if check["verdict"] == "differs"]


def test_what_the_contract_says_of_pygeoapi_is_true(server: Server, tmp_path: Path) -> None:
    before = len(server.jobs())
    asked = {"process": "echo", "inputs": {"echoInput": "Echo", "pause": 3.5}}
    shown = probed(tmp_path, "ogc.processes.execute", asked, server=server.url)
    assert differing(shown) == []
    found = verdicts(shown)
    assert {name: found[name] for name in ("create.taken", "lookup.finds", "status.final", "result.there", "cancel.confirmed")} == {
        "create.taken": "ok", "lookup.finds": "ok", "status.final": "ok", "result.there": "ok", "cancel.confirmed": "ok",
    }  # fmt: skip
    assert (found["create.token"], found["cancel.finished"]) == ("not_offered", "not_offered")
    assert shown["left"] == []
    assert len(server.jobs()) == before + 1, "the one that ended; the other was cancelled, and so is forgotten"


def test_what_the_contract_says_of_prefect_is_true(prefect: Prefect, tmp_path: Path) -> None:
    before = {run.id for run in prefect.runs()}
    asked = {"deployment": prefect.deployment, "parameters": {"rows": 3, "seconds": 4}}
    shown = probed(tmp_path, "prefect.deployments.run", asked, server=prefect.url)
    assert differing(shown) == []
    found = verdicts(shown)
    wanted = ("create.token", "create.other_body", "create.compare", "create.window", "mark", "lookup.finds", "result.there")
    assert {name: found[name] for name in wanted} == dict.fromkeys(wanted, "ok") | {"mark": "not_offered"}
    assert [found[name] for name in ("cancel.acknowledged", "cancel.confirmed", "cancel.finished")] == ["ok", "ok", "ok"]
    assert shown["left"] == []
    made = [run for run in prefect.runs() if run.id not in before]
    assert sorted(run.state for run in made) == ["CANCELLED", "COMPLETED"]
