"""`list --attention`, `list --orphans`, `run --continue` and `escalate` as they are typed, on one embedded stack."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.settings import ROOT
from adapters.stack_file import running_stack
from adapters.temporal import connect_to
from tests.installation import INPUT, WITHIN, Installation, Said
from tests.test_starter import Typed, typed

__all__ = ["typed"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("orphans") / "home")
    installation.dev()
    yield installation
    installation.end(signal.SIGTERM)


def terminate(installation: Installation, id: str, reason: str) -> None:
    async def work() -> None:
        stack = running_stack(installation.home)
        assert stack is not None
        client = await connect_to(stack.temporal)
        await client.get_workflow_handle(id).terminate(reason=reason)

    asyncio.run(work())


def test_a_terminated_operation_is_listed_told_by_doctor_and_continued(installed: Installation):
    id = installed.run(seconds=600).json["id"]
    terminate(installed, id, "the wrong \x1b[31mbutton")
    listed = installed("list", "--orphans", "--json").json
    (item,) = listed["items"]
    assert (listed["schema"], listed["strangers"], listed["behind"]) == ("sakshi.list/1", [], [])
    assert item["id"] == id
    assert item["orphan"]["why"].startswith("its workflow was terminated by ")
    assert item["next"] == [f"python starter.py run --continue {id}"]
    text = installed("list", "--orphans").out
    assert f"python starter.py run --continue {id}" in text
    assert "\x1b[31m" not in text
    doctor = installed("doctor", "--json").json
    assert [one["level"] for one in doctor["items"] if one["what"] == "operations"] == ["note"]
    refused = installed("cancel", id, "--reason", "no longer needed", "--json")
    assert (refused.code, "run --continue" in refused.json["message"]) == (3, True)
    continued = installed("run", "--continue", id[:-2], "--json")
    assert (continued.code, continued.json["id"], continued.json["created"]) == (0, id, False)
    assert installed("cancel", id, "--reason", "no longer needed").code == 0
    assert installed("wait", id, "--timeout", f"{WITHIN:g}s", "--json").json["state"] == "cancelled"
    assert installed("list", "--orphans").out.startswith("every operation that has not ended has its workflow")
    assert installed("verify", id, "--against-temporal", "--json").code == 0


def test_continuing_is_refused_where_a_workflow_runs_or_the_operation_has_ended(installed: Installation):
    running = installed.run(seconds=600).json["id"]
    said = installed("run", "--continue", running, "--json")
    assert (said.code, "goes on by itself" in said.json["message"]) == (3, True)
    installed("cancel", running, "--reason", "tidy")
    ended = installed.run("--wait", polls=1).json["id"]
    said = installed("run", "--continue", ended, "--json")
    assert (said.code, f"{ended} has ended: succeeded" in said.json["message"]) == (3, True)


def test_what_waits_for_a_human_is_listed_with_words_and_commands_and_can_be_escalated(installed: Installation, tmp_path: Path):
    stack = running_stack(installed.home)
    assert stack is not None
    rule: dict[str, Any] = {"match": {"kind": "collect", "account": "acct-9"}, "lies": ["result_expired"], "times": 5}
    told = subprocess.run(
        [sys.executable, "-c", "import sys, httpx; httpx.post(sys.argv[1], content=sys.argv[2], trust_env=False).raise_for_status()",
         f"{stack.simulator}/script", json.dumps(rule)], check=False, cwd=ROOT,
    )  # fmt: skip
    assert told.returncode == 0
    said = installed.run("--wait", "--timeout", f"{WITHIN:g}s", account="acct-9", polls=1)
    assert (said.code, said.json["state"]) == (7, "result_unavailable")
    id = said.json["id"]
    (item,) = [one for one in installed("list", "--attention", "--json").json["items"] if one["id"] == id]
    options = {one["choice"]: one for one in item["attention"]["options"]}
    assert list(options) == item["attention"]["choices"] == ["recollect", "abandon"]
    assert options["recollect"]["means"] == "fetch the result again"
    assert options["recollect"]["commands"][0].startswith(f"python starter.py resolve {id} recollect --by ")
    text = " ".join(installed("list", "--attention").out.split())
    for words in (id, "waits since", "the result cannot be had", "recollect: fetch the result again", "--reason WHY", f"escalate {id}"):
        assert words in text
    out = tmp_path / "out"
    written = installed("escalate", id, "--output", str(out), "--json")
    assert (written.code, written.json["schema"], written.json["faults"]) == (0, "sakshi.escalated/1", [])
    assert Path(written.json["zip"]) == tmp_path / "out.zip"
    page = (out / "README.md").read_text()
    assert "until when can it be fetched?" in page
    assert "Your account: `" in page
    again = installed("escalate", id, "--output", str(out), "--json")
    assert (again.code, again.json["code"]) == (2, "bad_input")
    assert installed("escalate", id, "--output", str(out), "--force").code == 0
    secret = json.loads((installed.home / "secrets" / "sim").read_text())["value"]
    for path in [*out.rglob("*"), tmp_path / "out.zip"]:
        assert path.is_dir() or secret.encode() not in path.read_bytes()


def test_a_lost_ledger_is_told_and_the_same_id_is_not_started_over(installed: Installation, tmp_path: Path):
    id = installed.run("--id", "kept-by-temporal", "--wait", polls=1).json["id"]
    ledger = tmp_path / "another.db"
    environ = installed.environ | {"SAKSHI_LEDGER_URL": f"sqlite+aiosqlite:///{ledger}"}
    stack = running_stack(installed.home)
    assert stack is not None
    environ |= {"TEMPORAL_ADDRESS": stack.temporal, "SAKSHI_TARGETS": json.dumps({"sim": {"server": stack.simulator}})}

    def elsewhere(*words: str) -> Said:
        done = subprocess.run([sys.executable, "starter.py", *words], cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
        return Said(done.returncode, done.stdout, done.stderr)

    try:
        assert elsewhere("ledger", "migrate", "--json").code == 0
        until_listed_as_closed(id, elsewhere)
        text = " ".join(elsewhere("list", "--orphans").out.split())
        assert "the ledger was lost, or this is another one" in text
        doctor = elsewhere("doctor", "--json").json
        told = [one for one in doctor["items"] if one["what"] == "operations" and one["level"] == "wrong"]
        assert "does not hold" in told[0]["said"]
        said = elsewhere("run", "--continue", id, "--json")
        assert (said.code, "this ledger does not hold it" in said.json["message"]) == (3, True)
        said = elsewhere("run", "sim.reports.create", "--input", json.dumps(INPUT | {"polls": 1}), "--id", id, "--json")
        assert (said.code, "nothing is started" in said.json["message"]) == (3, True)
    finally:
        shutil.rmtree(tmp_path, ignore_errors=True)


def until_listed_as_closed(id: str, command: Callable[..., Said]) -> None:
    """The ledger says first that an operation has ended, then its workflow closes, and then Temporal's index says so."""
    last = time.monotonic() + WITHIN
    while True:
        strangers = {one["id"]: one["why"] for one in command("list", "--orphans", "--json").json["strangers"]}
        if "(completed)" in strangers.get(id, ""):
            return
        assert time.monotonic() < last, strangers


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "--continue", "nothing"], "no embedded stack"),
        (["run", "--continue", "x", "--again", "y", "--reason", "r"], "--continue"),
        (["run", "sim.reports.create", "--continue", "x"], "--continue"),
        (["run", "--continue", "x", "--key", "k", "--input", "{}"], "--input and --key"),
        (["list", "--orphans", "--attention"], "--orphans"),
        (["list", "--orphans"], "no embedded stack"),
        (["escalate", "nothing", "--output", "out"], "no operation nothing"),
        (["escalate", "nothing"], "--output"),
    ],
)
def test_what_cannot_be_done_is_one_clear_message(typed: Typed, words: list[str], told: str):
    said = typed(*words, "--json")
    assert said.code in {2, 4}
    assert told in said.json["message"] + said.json["hint"]
    assert not os.path.exists("out")


def test_a_list_of_what_waits_is_empty_where_nothing_waits(typed: Typed):
    assert typed("list", "--attention").out == "nothing waits for a human\n"
