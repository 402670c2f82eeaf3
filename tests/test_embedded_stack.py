"""One embedded stack: used from the command line, stopped, killed, found again; and its ledger in the wrong hands."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.settings import ROOT
from adapters.stack_file import remembered_stack, running_stack
from tests.installation import WITHIN, Installation, Said


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("stack") / "home")
    installation.dev()
    yield installation
    if installation.process is not None:
        installation.end(signal.SIGTERM)


def test_an_operation_is_run_to_its_verified_result_and_everything_can_be_looked_at(installed: Installation, tmp_path: Path):
    said = installed.run("--wait", "--reason", "month end", "--key", "first", polls=2, rows=20)
    assert said.code == 0, said.err
    status = said.json
    assert (status["schema"], status["state"], status["outcome"], status["created"]) == ("sakshi.status/1", "succeeded", "whole", True)
    id = status["id"]
    assert installed("status", id, "--json").json["head"] == status["head"]
    assert id in [item["id"] for item in installed("list", "--json").json["items"]]
    entries = installed("evidence", id, "--all", "--json").json["entries"]
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert {"seq", "at", "actor", "kind", "from", "to", "cause", "hash"} <= entries[0].keys()
    result = installed("result", id, "--output", str(tmp_path / "out"), "--json")
    assert result.code == 0, result.err
    assert (tmp_path / "out" / "output-001").stat().st_size == result.json["outputs"][0]["size"]
    verified = installed("verify", id, "--against-temporal", "--rebuild", "--json")
    assert verified.code == 0, verified.out
    assert verified.json["items"][0]["witnesses"] > 0
    assert not installed.run("--key", "first", polls=2, rows=20).json["created"]
    other = installed.run("--key", "first", polls=3, rows=20)
    assert other.code == 3
    assert f"the key first is of {id}, with another input" in other.err
    strangers = installed.run("--key", "first", "--principal", "eve", polls=3, rows=20)
    assert strangers.code == 3
    assert "this id or key is taken" in strangers.err
    assert id not in strangers.err + strangers.out


def test_waiting_can_be_stopped_by_time_and_the_operation_goes_on_until_it_is_cancelled(installed: Installation):
    said = installed.run("--wait", "--timeout", "1s", seconds=600)
    assert said.code == 8
    id = said.json["id"]
    cancelled = installed("cancel", id, "--by", "ada", "--reason", "no longer needed", "--json")
    assert cancelled.code == 0, cancelled.err
    assert cancelled.json["accepted"] is True
    waited = installed("wait", id, "--json")
    assert (waited.code, waited.json["state"]) == (1, "cancelled")
    refused = installed("cancel", id, "--by", "ada", "--reason", "again", "--json")
    assert refused.code == 3
    again = installed("run", "--again", id, "--reason", "needed after all", "--json")
    assert again.code == 0, again.err
    assert again.json["retry_of"] == id
    assert installed("status", id, "--json").json["retried_by"] == again.json["id"]
    assert installed("run", "--again", again.json["id"], "--reason", "and again", "--json").code == 3
    told = installed("cancel", again.json["id"], "--by", "ada", "--reason", "tidy").out
    assert told.startswith("cancel accepted, and recorded as said by ada; nobody checked who that is. ")


def test_ctrl_c_stops_the_waiting_and_not_the_operation(installed: Installation):
    id = installed.run(seconds=600).json["id"]
    waiting = subprocess.Popen(
        [sys.executable, "starter.py", "watch", id, "--json"],
        cwd=ROOT,
        env=installed.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None
    assert json.loads(waiting.stdout.readline())["id"] == id
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=WITHIN)
    assert waiting.returncode == 8
    assert "goes on" in err
    assert not installed("status", id, "--json").json["final"]
    installed("cancel", id, "--reason", "tidy")


def test_a_result_that_is_not_there_is_refused(installed: Installation):
    id = installed.run("--wait", fail=True, polls=1).json["id"]
    said = installed("result", id, "--json")
    assert (said.code, said.json["code"]) == (3, "refused")


def test_doctor_finds_nothing_wrong_on_a_running_stack(installed: Installation):
    assert installed.run("--wait", polls=1).code == 0, "a worker that has only just started may not have asked for work yet"
    said = installed("doctor", "--json")
    assert said.code == 0, said.out
    assert "sim" in " ".join(item["said"] for item in said.json["items"] if item["what"] == "credentials")


def test_a_worker_can_be_checked_without_working(installed: Installation):
    check = [sys.executable, "worker.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, env=installed.environ, capture_output=True, text=True, timeout=WITHIN, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "sakshi.worker/1"
    alone = installed.environ | {"SAKSHI_HOME": str(installed.home / "elsewhere")}
    done = subprocess.run(check, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=WITHIN, check=False)
    assert done.returncode == 4
    assert "starter.py dev" in done.stderr


def test_a_changed_ledger_and_a_cut_tail_are_found_and_a_changed_projection_is_mended(installed: Installation, tmp_path: Path):
    id = installed.run("--wait", polls=1).json["id"]
    other = Installation(installed.home)
    for change, further, found in ((_CHANGED, [], "hash differs"), (_CUT, ["--against-temporal"], "Temporal remembers")):
        other.environ["SAKSHI_LEDGER_URL"] = f"sqlite:///{copied(installed.home / 'ledger.db', tmp_path, change, id)}"
        said = found_out(other, "verify", id, *further, "--json")
        assert said.code == 5, said.err
        assert found in said.json["items"][0]["faults"][0]["what"]
    other.environ["SAKSHI_LEDGER_URL"] = f"sqlite:///{copied(installed.home / 'ledger.db', tmp_path, _BENT, id)}"
    assert other("verify", id, "--json").code == 0
    assert other("verify", id, "--rebuild", "--json").code == 5
    assert "failed" in other("ledger", "rebuild", id, "--repair").out
    assert other("verify", id, "--rebuild").code == 0
    assert other("ledger", "migrate", "--json").json["ok"]


def found_out(command: Installation, *words: str) -> Said:
    """What verify says once Temporal has heard of the last entry: the ledger has it a moment before."""
    last = time.monotonic() + WITHIN
    while (said := command(*words)).code == 0 and time.monotonic() < last:
        pass
    return said


_CHANGED = """
    UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'acct-7', 'acct-8') AS BLOB) WHERE stream = :stream AND seq = 0
"""
_CUT = """
    DELETE FROM entries WHERE stream = :stream AND seq > (SELECT max(seq) - 1 FROM entries WHERE stream = :stream);
    UPDATE streams SET seq = seq - 1, head = (SELECT hash FROM entries WHERE stream = :stream ORDER BY seq DESC LIMIT 1)
        WHERE stream = :stream
"""
_BENT = "UPDATE streams SET state = 'failed' WHERE stream = :stream"


def copied(ledger: Path, folder: Path, change: str, stream: str) -> Path:
    """A copy of a ledger that someone with the file, and no respect for its triggers, has changed."""
    copy = folder / f"{abs(hash(change))}.db"
    source, target = sqlite3.connect(ledger), sqlite3.connect(copy)
    try:
        source.backup(target)
        for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            target.execute(f'DROP TRIGGER "{name}"')
        for statement in change.split(";"):
            target.execute(statement, {"stream": stream})
        target.commit()
    finally:
        source.close()
        target.close()
    return copy


def test_the_demo_walks_its_whole_tour_on_the_stack_that_runs(installed: Installation):
    said = installed("demo")
    assert said.code == 0, said.out
    assert said.out.rstrip().endswith("all as promised")
    assert "NOT" not in said.out


def test_a_second_dev_says_where_the_first_is_and_disturbs_nothing(installed: Installation):
    before = running_stack(installed.home)
    said = installed("dev", "--json")
    assert said.code == 3
    assert before is not None
    assert before.ui in said.err
    assert running_stack(installed.home) == before


def test_a_stack_that_was_stopped_or_killed_comes_back_with_what_it_kept(tmp_path: Path):
    installation = Installation(tmp_path / "home")
    first = installation.dev()
    id = installation.run("--wait", polls=1).json["id"]
    assert installation.end(signal.SIGINT) == 0
    assert running_stack(installation.home) is None
    assert installation("status", id, "--json").json["state"] == "succeeded"
    second = installation.dev()
    assert (second["temporal"], second["ui"], second["simulator"]) == (first["temporal"], first["ui"], first["simulator"])
    waiting = installation.run(seconds=4).json["id"]
    assert installation.end(signal.SIGKILL) == -signal.SIGKILL
    assert running_stack(installation.home) is None
    assert remembered_stack(installation.home).ready, "the file still says so, and is not believed"
    installation.dev()
    try:
        assert installation("wait", waiting, "--timeout", f"{WITHIN:g}s", "--json").json["state"] == "succeeded"
        assert installation("verify", "--against-temporal", "--json").code == 0
    finally:
        assert installation.end(signal.SIGTERM) == 0
