"""The command line: bad input without a stack, and one embedded stack that is used, stopped, killed and found again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import starter
from adapters.settings import ROOT
from adapters.stack_file import remembered_stack, running_stack

INPUT = {"account": "acct-7", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv"}
SET = ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        (line,) = self.out.splitlines()
        return json.loads(line)


Typed = Callable[..., Said]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs a command in this process, against a home folder without a stack."""
    for name in [*SET, *(name for name in os.environ if name.startswith("SAKSHI_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SAKSHI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SAKSHI_LOCAL_USER", "ada")

    def run(*words: str) -> Said:
        code = starter.main(words)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


def with_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAKSHI_TARGETS", '{"sim": {"server": "http://127.0.0.1:1"}}')


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "acme.report.create", "--input", "{}"], "acme.reports.create"),
        (["run", "sim.reports.create@9", "--input", "{}"], "sim.reports.create@9"),
        (["run", "sim.reports.create"], "--input"),
        (["run"], "--again"),
        (["run", "sim.reports.create", "--again", "x", "--input", "{}"], "--again"),
        (["run", "--again", "x", "--input", "{}", "--reason", "r"], "--input"),
        (["run", "--again", "x"], "--reason"),
        (["run", "sim.reports.create", "--input", "no-such-file.json"], "no-such-file.json"),
        (["run", "sim.reports.create", "--input", "\0"], "not a path"),
        (["run", "sim.reports.create", "--input", "{broken"], "not JSON"),
        (["run", "sim.reports.create", "--input", '{"a": 9007199254740993}'], "2^53"),
        (["run", "sim.reports.create", "--input", '{"a": 1e400}'], "not finite"),
        (["run", "sim.reports.create", "--input", '{"a": NaN}'], "NaN"),
        (["run", "sim.reports.create", "--input", '{"a": "\\ud800"}'], "surrogate"),
        (["run", "sim.reports.create", "--input", '{"a": 1, "a": 2}'], "twice"),
        (["run", "sim.reports.create", "--input", "[" * 70 + "]" * 70], "nested deeper"),
        (["run", "sim.reports.create", "--input", json.dumps({"a": "x" * 256 * 1024})], "262144"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT | {"format": "pdf"})], "format"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT | {"colour": "red"})], "colour"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--target", "eu"], "no target eu"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--id", "a.b"], "an id"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--key", "a b"], "a key"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--tenant", "a/b"], "a tenant"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--wait", "--timeout", "soon"], "not a duration"),
        (["status", "nothing"], "no operation nothing"),
        (["evidence", "nothing"], "no operation"),
        (["result", "nothing"], "no operation"),
        (["result", "x", "--output", "-", "--json"], "stdout"),
        (["watch", "nothing"], "no operation"),
        (["wait", "nothing"], "no operation"),
        (["verify", "nothing"], "no operation"),
        (["cancel", "nothing", "--reason", "r"], "no operation"),
        (["cancel", "nothing"], "--reason"),
        (["cancel", "x", "--reason", "r" * 1025], "1024"),
        (["cancel", "x", "--reason", "r", "--by", "a\nb"], "--by"),
        (["resolve", "x", "explode", "--reason", "r"], "explode"),
        (["resolve", "x", "abandon", "now", "--reason", "r"], "no arguments"),
        (["resolve", "x", "adopt", "--reason", "r"], "adopt"),
        (["resolve", "x", "resume", "--until", "2026-12-24T12:00:00", "--reason", "r"], "zone"),
        (["resolve", "x", "resume", "--until", "later", "--reason", "r"], "later"),
        (["resolve", "x", "abandon", "--until", "5m", "--reason", "r"], "--until"),
        (["list", "--state", "dreaming"], "dreaming"),
        (["contracts", "show", "sim.reports.creat"], "sim.reports.create"),
        (["contracts", "check", "no-such.yaml"], "no-such.yaml"),
        (["frobnicate"], "frobnicate"),
        (["status"], "ID"),
        (["list", "--limit", "many"], "many"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_2(typed: Typed, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str):
    with_target(monkeypatch)
    said = typed(*words)
    assert said.code == 2
    assert told in said.err
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    assert said.out == "" or "--json" in words


def test_with_json_an_error_is_one_object_on_stdout_and_text_on_stderr(typed: Typed):
    said = typed("status", "nothing", "--json")
    assert said.json == {
        "schema": "sakshi.error/1",
        "code": "not_found",
        "message": "no operation nothing",
        "hint": "python starter.py list shows what there is",
        "retryable": False,
    }
    assert "no operation nothing" in said.err


def test_an_input_that_breaks_the_schema_says_where(typed: Typed, monkeypatch: pytest.MonkeyPatch):
    with_target(monkeypatch)
    said = typed("run", "sim.reports.create", "--input", json.dumps(INPUT | {"range": {"start": "2026"}}), "--json")
    assert said.code == 2
    assert said.json["code"] == "input_invalid"
    assert any("range" in problem for problem in said.json["problems"])


def test_a_contract_with_a_typo_says_file_line_key_and_what_was_expected(typed: Typed, tmp_path: Path):
    text = (ROOT / "contracts" / "sim.reports.create.yaml").read_text("utf-8")
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith("repeatable:"))
    broken = tmp_path / "sim.reports.create.yaml"
    broken.write_text(text.replace("repeatable:", "repeatble:"), "utf-8")
    said = typed("contracts", "check", str(broken))
    assert said.code == 2
    assert f"{broken}:{line}:" in said.out
    assert "repeatble" in said.out
    assert "repeatable" in said.out.replace("repeatble", "")


def test_a_temporal_that_does_not_run_is_exit_4_and_nothing_is_opened(typed: Typed, monkeypatch: pytest.MonkeyPatch):
    with_target(monkeypatch)
    said = typed("run", "sim.reports.create", "--input", json.dumps(INPUT), "--json")
    assert said.code == 4
    assert said.json["retryable"] is True
    assert "starter.py dev" in said.err
    assert typed("list", "--json").json["items"] == []


def test_a_ledger_that_does_not_answer_is_exit_4_without_its_drivers_words(typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    password = tmp_path / "password"
    password.write_text("hunter2\n")
    monkeypatch.setenv("SAKSHI_LEDGER_URL", "postgresql+asyncpg://sakshi@127.0.0.1:1/sakshi")
    monkeypatch.setenv("SAKSHI_LEDGER_PASSWORD_FILE", str(password))
    said = typed("list", "--json")
    assert said.code == 4
    assert said.json["code"] == "unreachable"
    assert "hunter2" not in said.out + said.err
    assert "asyncpg" not in said.out + said.err


def test_an_unusable_setting_is_named(typed: Typed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SAKSHI_SLOTS_READS", "many")
    said = typed("list")
    assert said.code == 2
    assert "SAKSHI_SLOTS_READS" in said.err


def test_the_contracts_can_be_listed_shown_checked_and_described(typed: Typed):
    listed = typed("contracts", "list", "--json").json
    assert "sim.reports.create" in [item["contract"] for item in listed["items"]]
    shown = typed("contracts", "show", "sim.reports.create", "--json").json
    assert shown["document"]["contract"] == "sim.reports.create"
    assert "external_write" in typed("contracts", "show", "sim.reports.create").out
    assert typed("contracts", "check").code == 0
    assert "$defs" in json.loads(typed("contracts", "schema").out)


def test_doctor_says_what_is_missing_and_what_to_do(typed: Typed):
    said = typed("doctor", "--json")
    assert said.code == 4
    levels = {item["what"]: item["level"] for item in said.json["items"]}
    assert levels["ledger"] == levels["policies"] == levels["contracts"] == "good"
    assert levels["temporal"] == "wrong"
    assert "starter.py dev" in typed("doctor").out


def test_help_is_quick_and_needs_no_engine():
    loaded = "import sys, starter; starter.main(['--help']); print([m for m in sys.modules if m in ('temporalio', 'sqlalchemy', 'httpx')])"
    found = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_a_status_loads_no_temporal_library(tmp_path: Path):
    loaded = "import sys, starter; starter.main(['status', 'x']); print([m for m in sys.modules if m.startswith('temporalio')])"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_"))}
    environ |= {"SAKSHI_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True, env=environ)
    assert found.stdout.splitlines()[-1] == "[]"


# --- one embedded stack ------------------------------------------------------------------------------------------------------


class Installation:
    """A home folder, commands against it, and `dev` in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SAKSHI_", "TEMPORAL_"))}
        self.environ = {**kept, "SAKSHI_HOME": str(home), "SAKSHI_LOCAL_USER": "ada", "XDG_CONFIG_HOME": str(home)}
        self.process: subprocess.Popen[str] | None = None

    def dev(self) -> dict[str, Any]:
        """Start `dev`, and return what it says once it is up."""
        self.process = subprocess.Popen(
            [sys.executable, "starter.py", "dev", "--json"], cwd=ROOT, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return json.loads(line)

    def end(self, how: signal.Signals) -> int:
        """End `dev` with a signal, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.communicate(timeout=60)
        code = self.process.returncode
        self.process = None
        return code

    def __call__(self, *words: str) -> Said:
        done = subprocess.run(
            [sys.executable, "starter.py", *words], cwd=ROOT, env=self.environ, capture_output=True, text=True, timeout=120, check=False
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    def run(self, *words: str, **more: Any) -> Said:
        return self("run", "sim.reports.create", "--input", json.dumps(INPUT | more), *words, "--json")


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
    assert installed.run("--key", "first", polls=3, rows=20).code == 3


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
    installed("cancel", again.json["id"], "--reason", "tidy")


def test_ctrl_c_stops_the_waiting_and_not_the_operation(installed: Installation):
    id = installed.run(seconds=600).json["id"]
    waiting = subprocess.Popen(
        [sys.executable, "starter.py", "watch", id, "--json"], cwd=ROOT, env=installed.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    assert waiting.stdout is not None
    assert json.loads(waiting.stdout.readline())["id"] == id
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 8
    assert "goes on" in err
    assert not installed("status", id, "--json").json["final"]
    installed("cancel", id, "--reason", "tidy")


def test_a_result_that_is_not_there_is_refused(installed: Installation):
    id = installed.run("--wait", fail=True, polls=1).json["id"]
    said = installed("result", id, "--json")
    assert (said.code, said.json["code"]) == (3, "refused")


def test_doctor_finds_nothing_wrong_on_a_running_stack(installed: Installation):
    said = installed("doctor", "--json")
    assert said.code == 0, said.out
    assert "sim" in " ".join(item["said"] for item in said.json["items"] if item["what"] == "credentials")


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
        assert installation("wait", waiting, "--timeout", "60s", "--json").json["state"] == "succeeded"
        assert installation("verify", "--against-temporal", "--json").code == 0
    finally:
        assert installation.end(signal.SIGTERM) == 0
