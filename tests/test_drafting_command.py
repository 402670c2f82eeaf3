"""`contracts new` as a person runs it."""

import re
from pathlib import Path

import pytest

import starter

REPORTS = Path(__file__).parent / "fixtures" / "openapi" / "reports.yaml"
ASKED = ("contracts", "new", "acme.reports.create", "--openapi", str(REPORTS), "--create", "createReport", "--status", "getReport")


def test_a_draft_is_printed_or_written_to_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert starter.main(ASKED) == 0
    printed = capsys.readouterr()
    assert starter.main([*ASKED, "--output", str(tmp_path)]) == 0
    written = capsys.readouterr()
    assert (tmp_path / "acme.reports.create.yaml").read_text("utf-8") == printed.out
    assert printed.err == written.out == ""
    assert re.search(r"acme.reports.create.yaml: [0-9]+ holes to fill; `python starter.py contracts check \S+` names them\n", written.err)


def test_the_check_names_as_many_holes_as_were_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "acme.reports.create.yaml"
    starter.main([*ASKED, "--output", str(path)])
    said = int(re.findall(r": ([0-9]+) holes", capsys.readouterr().err)[0])
    assert starter.main(["contracts", "check", str(path)]) == 2
    assert capsys.readouterr().out.count("a hole that a person has to fill") == said


def test_a_file_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "acme.reports.create.yaml"
    path.write_text("mine")
    assert starter.main([*ASKED, "--output", str(path)]) == 2
    assert "is there already, and is not replaced" in capsys.readouterr().err
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--output", "elsewhere.yaml"), "is no file for acme.reports.create"),
        (("--output", "none/acme.reports.create.yaml"), "can't be written: No such file or directory"),
        (("--cancel", "stopReport"), "has no operation stopReport\nhint: it has"),
        (("--openapi", "none.json"), "can't be read: No such file or directory"),
    ],
)
def test_what_can_not_be_done_is_said(words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                      capsys: pytest.CaptureFixture[str]):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert starter.main([*ASKED, *words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_a_contract_s(capsys: pytest.CaptureFixture[str]):
    assert starter.main(["contracts", "new", "../Reports", *ASKED[3:]]) == 2
    assert "is no name of a contract" in capsys.readouterr().err


def test_help_says_what_holes_and_comments_are(capsys: pytest.CaptureFixture[str]):
    assert starter.main(["contracts", "new", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the document only suggests" in said
    assert "contracts check" in said
