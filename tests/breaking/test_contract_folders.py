"""A folder of contracts in which other things lie too, and contracts of a size that nobody writes by hand."""

import os
import shutil
import time
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from pydantic import JsonValue
from typer.testing import CliRunner

from adapters import contract_files
from adapters.contract_files import ContractFolder, check_file, load, parse
from adapters.strict_yaml import Bounds, Parsed
from domain.errors import BadContract, NotFound
from domain.language import matching
from domain.language.expressions import Scope
from domain.language.loading import contract_from_canonical
from starter import app

SHIPPED = Path("contracts")
NAME = "sim.reports.create"
TODAY = date(2026, 11, 30)


def copied(folder: Path, name: str = f"{NAME}.yaml") -> Path:
    return Path(shutil.copyfile(SHIPPED / f"{NAME}.yaml", folder / name))


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    copied(tmp_path)
    shutil.copyfile(SHIPPED / f"{NAME}.cases.yaml", tmp_path / f"{NAME}.cases.yaml")
    os.mkfifo(tmp_path / "a.pipe.yaml")
    (tmp_path / "a.folder.yaml").mkdir()
    (tmp_path / "a.device.yaml").symlink_to("/dev/zero")
    (tmp_path / "a.nowhere.yaml").symlink_to("nowhere")
    (tmp_path / "a.loop.yaml").symlink_to("a.loop.yaml")
    return tmp_path


def test_what_is_no_file_is_said_and_neither_waited_for_nor_in_the_way_of_the_others(crowded: Path) -> None:
    with pytest.raises(NotFound, match="no regular file"):
        parse(crowded / "a.pipe.yaml")
    checked = CliRunner().invoke(app, ["contracts", "check", *map(str, sorted(crowded.glob("*.yaml")))])
    assert checked.exit_code == 2
    lines = [line.removeprefix(f"{crowded}/") for line in checked.output.splitlines()]
    assert [line.split(":")[0] for line in lines if "cannot read" in line] == [
        "a.device.yaml",
        "a.folder.yaml",
        "a.loop.yaml",
        "a.nowhere.yaml",
        "a.pipe.yaml",
    ]
    assert lines[-1].startswith("6 file(s), 27 case(s) run")
    assert ContractFolder(crowded).get(NAME).contract == NAME


def test_cases_that_cannot_be_read_are_a_finding_and_not_none(tmp_path: Path) -> None:
    path = copied(tmp_path)
    os.mkfifo(tmp_path / f"{NAME}.cases.yaml")
    assert [one.expected for one in check_file(path, TODAY).findings if one.code == "invalid"] == [
        f"cannot read {tmp_path}/{NAME}.cases.yaml: it is no regular file"
    ]


@pytest.mark.parametrize("name", ["Sim.Reports.Create.yaml", "sim reports create.yaml", "sim.reports.create@one.yaml"])
def test_a_contract_under_a_name_by_which_nobody_finds_it_is_wrong(tmp_path: Path, name: str) -> None:
    path = copied(tmp_path, name)
    with pytest.raises(BadContract) as caught:
        load(path)
    assert caught.value.findings[0].expected == f"a file by whose name it is found, {NAME}.yaml"


def test_a_contract_of_a_thousand_states_is_checked_in_seconds(tmp_path: Path) -> None:
    text = (SHIPPED / f"{NAME}.yaml").read_text()
    states = "".join(f"    - {{when: {{body.state: s{number}}}, is: running}}\n" for number in range(1000))
    path = tmp_path / f"{NAME}.yaml"
    path.write_text(text.replace("  states:\n", f"  states:\n{states}"))
    contract = load(path)
    began = time.process_time()
    assert contract_from_canonical(contract.canonical) == contract
    assert time.process_time() - began < 15


def of_states(folder: Path, number: int) -> Path:
    """The simulator's contract with so many states more, and a case for each."""
    folder.mkdir()
    states = "".join(f"    - {{when: {{status: 200, body.state: s{one}}}, is: running}}\n" for one in range(number))
    path = folder / f"{NAME}.yaml"
    path.write_text((SHIPPED / f"{NAME}.yaml").read_text().replace("  states:\n", f"  states:\n{states}"))
    cases = "".join(
        f"  - {{name: c{one}, call: observe, answer: {{status: 200, json: {{state: s{one}}}}}, means: running}}\n" for one in range(number)
    )
    whole = (SHIPPED / f"{NAME}.cases.yaml").read_text().replace("\ncases:\n", f"\ncases:\n{cases}")
    (folder / f"{NAME}.cases.yaml").write_text(whole)
    return path


def test_what_a_check_evaluates_and_reads_grows_as_the_contract_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[str] = Counter()
    inner_evaluate, inner_read = matching.evaluate, contract_files.read_yaml

    def evaluated(expression: str, scope: Scope) -> JsonValue:
        done["evaluated"] += 1
        return inner_evaluate(expression, scope)

    def read(data: bytes, file: str, bounds: Bounds) -> Parsed:
        done["read"] += 1
        return inner_read(data, file, bounds)

    monkeypatch.setattr(matching, "evaluate", evaluated)
    monkeypatch.setattr(contract_files, "read_yaml", read)

    def cost(number: int) -> int:
        done.clear()
        checked = check_file(of_states(tmp_path / str(number), number), TODAY)
        assert (checked.findings, checked.cases - number, done["read"]) == ([], 27, 2)
        return done["evaluated"]

    few, some, many = cost(20), cost(40), cost(60)
    assert 0 < some - few == many - some


@pytest.mark.parametrize("value", ["9007199254740993", "1" * 400 + ".0", '"\\ud800"'])
def test_a_value_that_nothing_can_carry_is_found_where_it_stands(tmp_path: Path, value: str) -> None:
    text = (SHIPPED / f"{NAME}.yaml").read_text()
    path = tmp_path / f"{NAME}.yaml"
    path.write_text(text.replace("observe:\n", f"observe:\n  x: [1, {value}]\n", 1))
    line = path.read_text().splitlines().index(f"  x: [1, {value}]") + 1
    [finding] = check_file(path, TODAY).findings
    assert (finding.line, finding.key) == (line, "observe.x.1")
