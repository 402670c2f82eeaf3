"""The command line without a stack: bad input, and what can be looked at all the same."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import starter
from adapters.settings import ROOT
from tests.installation import INPUT, Said

SET = ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")


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
        (["run", "mine/sim.reports.create.yaml", "--input", "{}"], "SAKSHI_CONTRACTS_DIR"),
        (["run", "sim.reports.create.yaml", "--input", "{}"], "the name of a contract in "),
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
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--timeout", "3s"], "--wait"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--file", "rows"], "NAME=PATH"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--file", "=rows.csv"], "NAME=PATH"),
        (["run", "sim.reports.create", "--input", json.dumps(INPUT), "--file", "rows=a", "--file", "rows=b"], "rows twice"),
        (["run", "--again", "x", "--file", "rows=a", "--reason", "r"], "--file"),
        (["run", "--continue", "x", "--file", "rows=a"], "--file"),
        (["cancel", "x"], "starter.py cancel --help"),
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
        (["frobnicate"], "frobnicate"),
        (["status"], "ID"),
        (["list", "--limit", "many"], "--limit"),
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


def test_a_contract_file_that_cannot_be_read_is_a_finding_beside_those_of_other_files(typed: Typed):
    said = typed("contracts", "check", "no-such.yaml", "contracts/acme.reports.create.yaml")
    assert (said.code, said.err) == (2, "")
    assert "no-such.yaml:1:1: cannot read no-such.yaml" in said.out
    assert "2 file(s)" in said.out


@pytest.mark.parametrize("more", [[], ["--target", "sim"]])
def test_whoever_forgot_to_start_the_stack_is_told_how(typed: Typed, more: list[str]):
    said = typed("run", "sim.reports.create", "--input", json.dumps(INPUT), *more)
    assert said.code == 2
    assert "python starter.py dev" in said.err


def test_a_group_without_a_command_is_answered_with_its_help_and_no_empty_error(typed: Typed):
    said = typed("contracts")
    assert said.code == 2
    assert "check" in said.out
    assert said.err == ""


def test_another_python_goes_on_in_the_project_s_own(tmp_path: Path):
    """Commands are shown as `python starter.py`, so that has to run with whatever `python` is."""
    (tmp_path / "starter.py").write_bytes((ROOT / "starter.py").read_bytes())
    alone = subprocess.run([sys.executable, "-I", "-S", tmp_path / "starter.py"], capture_output=True, text=True, check=False)
    assert alone.returncode == 2
    assert "make demo" in alone.stderr
    own = tmp_path / ".venv" / "bin"
    own.mkdir(parents=True)
    (own / "python").write_text('#!/bin/sh\necho "own: $2"\n')
    (own / "python").chmod(0o755)
    there = subprocess.run([sys.executable, "-I", "-S", tmp_path / "starter.py", "list"], capture_output=True, text=True, check=True)
    assert there.stdout == "own: list\n"


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


def test_a_file_that_the_contract_does_not_name_is_refused_before_anything_is_reached(typed: Typed, monkeypatch: pytest.MonkeyPatch):
    with_target(monkeypatch)
    said = typed("run", "sim.reports.create", "--input", json.dumps(INPUT), "--file", "rows=rows.csv", "--json")
    assert said.code == 2
    assert said.json["message"] == "sim.reports.create takes no file rows"
    assert said.json["hint"] == "it takes none"


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
    lines = typed("contracts", "list").out.splitlines()
    assert len(lines) == len(listed["items"]) + 2, "a line each, between the head and where more is said"
    assert all(line.startswith(f"{item['contract']}@") for item, line in zip(listed["items"], lines[1:-1], strict=True))
    assert lines[0].split() == ["contract", "class", "about"]
    assert "anthropic.batches.create@1       external_write  Runs a list of Messages requests within 24 hours" in lines
    shown = typed("contracts", "show", "sim.reports.create", "--json").json
    assert shown["document"]["contract"] == "sim.reports.create"
    assert "external_write" in typed("contracts", "show", "sim.reports.create").out
    checked = typed("contracts", "check", "--json").json["findings"]
    # Not read again for a year is a finding of the day on which the test runs, and none of the contracts.
    assert [one for one in checked if one["kind"] != "advice" and one["code"] != "stale"] == []
    assert "$defs" in json.loads(typed("contracts", "schema").out)


def test_a_contract_that_does_not_load_is_a_line_of_the_list_that_says_where_to_look(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "broken.jobs.create.yaml").write_text("contract: [")
    monkeypatch.setenv("SAKSHI_CONTRACTS_DIR", str(tmp_path))
    line = typed("contracts", "list").out.splitlines()[1]
    assert line.split(maxsplit=2) == ["broken.jobs.create", "-", "can't be loaded: `contracts check` says why"]


def test_doctor_says_what_is_missing_and_what_to_do(typed: Typed):
    said = typed("doctor", "--json")
    assert said.code == 4
    levels = {item["what"]: item["level"] for item in said.json["items"]}
    assert levels["ledger"] == levels["policies"] == levels["contracts"] == "good"
    assert levels["temporal"] == "wrong"
    assert "starter.py dev" in typed("doctor").out


def test_doctor_tells_a_record_for_another_origin_and_folds_what_nobody_used(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with_target(monkeypatch)
    file = tmp_path / "home" / "secrets" / "sim"
    file.parent.mkdir(parents=True)
    file.write_text('{"scheme": "bearer", "value": "x-1", "account": "a", "origins": ["http://localhost:1"], "tenants": ["local"]}')
    file.chmod(0o644)
    told = [item for item in typed("doctor", "--json").json["items"] if item["what"] == "credentials"]
    assert [item["level"] for item in told] == ["note"] * 3
    origin, mode, folded = told
    assert origin["said"].startswith("credential sim is not for http://127.0.0.1:1 (its origins: http://localhost:1); used by sim.")
    assert mode["hint"] == f"chmod 600 {file}"
    assert "credentials of contracts that were never used are not there: " in folded["said"]
    assert f"{tmp_path}/home/secrets/NAME" in folded["hint"]
