"""Stories of a folder of one's own are played too, and one that fails says first what came where what was due."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAME = "tiny.jobs.create"


def played(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make stories DIR=folder` runs."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/providers/test_library.py"]
    environment = os.environ | {"STORIES_IN": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (f"{NAME}.yaml", f"{NAME}.cases.yaml"):
        shutil.copy(ROOT / "docs" / "contracts" / name, tmp_path)
    return tmp_path


def _changed(folder: Path, there: str, put: str) -> None:
    path = folder / f"{NAME}.cases.yaml"
    text = path.read_text()
    assert there in text
    path.write_text(text.replace(there, put))


def test_the_stories_of_another_folder_are_played(folder: Path) -> None:
    done = played(folder)
    assert done.returncode == 0, done.stdout
    assert "3 passed, 1 skipped" in done.stdout


def test_a_story_that_is_not_told_says_first_what_came_where_what_was_due(folder: Path) -> None:
    _changed(folder, "it works, it is ready, the result]", "it works, it is ready, it works]")
    done = played(folder)
    assert done.returncode == 1
    failed = done.stdout[done.stdout.index("FAILURES") :].splitlines()
    assert " came where 'it works' was due, which is path '/jobs/j-1', not /jobs/j-1/result" in failed[2]
    assert "Stage(" not in done.stdout


def test_a_story_that_ends_elsewhere_says_why_by_the_ledger(folder: Path) -> None:
    _changed(folder, "call: collect, answer: {status: 200, json: {made: one}}", "call: collect, answer: {status: 200, text: made}")
    done = played(folder)
    assert done.returncode == 1
    failed = done.stdout[done.stdout.index("FAILURES") :].splitlines()
    assert failed[2].endswith("/jobs/j-1/result came where nothing more was due")
    assert failed[3].endswith(", not succeeded")
    assert any(line.startswith("the ledger says: result.invalid: format: expected json, found ") for line in failed)


def test_facts_of_a_result_that_differ_are_named(folder: Path) -> None:
    _changed(folder, "    ends: succeeded\n", "    ends: succeeded\n    result: {bytes: 7, outcome: partial}\n")
    done = played(folder)
    assert done.returncode == 1
    assert "bytes of output: 7 is due, stored is " in done.stdout
    assert "result.outcome: partial is due, it is whole" in done.stdout


def test_a_folder_without_contracts_is_said(tmp_path: Path) -> None:
    done = played(tmp_path)
    assert done.returncode != 0
    assert f"no contract in {tmp_path}" in done.stdout + done.stderr
