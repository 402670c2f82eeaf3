"""Contract files are strict YAML, and every finding says where."""

import json
import time
from datetime import date
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from adapters.contract_files import MAX_BYTES, ContractFolder, check, json_schema, load, parse, parse_yaml
from domain.errors import BadContract, NotFound
from domain.language.checks import WEBHOOK_ALONE
from domain.language.findings import ADVICE, FINDINGS
from domain.language.loading import contract_from_canonical
from tests.domain.sample_contract import document

SHIPPED = Path(__file__).parents[2] / "contracts"
CONTRACTS = sorted(path for path in SHIPPED.glob("*.yaml") if not path.name.endswith(".cases.yaml"))
TODAY = date(2026, 11, 30)


def written(folder: Path, name: str, **changes: object) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(document(**changes), sort_keys=False))
    return path


def test_scalars_are_those_of_json_and_everything_else_is_text() -> None:
    text = (
        "{a: true, b: null, c: ~, d: 12, e: -1.5, f: yes, g: on, h: 012, i: 1:30, j: 2026-11-30, k: 1e3, l: '12', "
        "m: True, n: .5, o: +1, p: 0x1f}"
    )
    assert parse_yaml(text.encode(), "f").document == {
        "a": True, "b": None, "c": None, "d": 12, "e": -1.5, "f": "yes", "g": "on", "h": "012", "i": "1:30", "j": "2026-11-30", "k": "1e3",
        "l": "12", "m": "True", "n": ".5", "o": "+1", "p": "0x1f",
    }  # fmt: skip


def test_keys_are_text_whatever_they_look_like() -> None:
    assert parse_yaml(b"200: a\ntrue: b\n~: c\n", "f").document == {"200": "a", "true": "b", "~": "c"}


def test_aliases_are_expanded_and_have_places_of_their_own() -> None:
    parsed = parse_yaml(b"a: &x {k: [1, 2]}\nb: *x\n", "f")
    assert parsed.document == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}
    assert parsed.positions[("b",)] == (2, 1)
    assert parsed.positions[("b", "k", 1)] == (1, 15)


DEEP = b"[" * 65 + b"]" * 65


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        (b"a: 1\nb: 2\na: 3\n", 3, 1, "the key a once"),
        (b"a: !!str 1\n", 1, 4, "without a tag"),
        (b"a: !x {}\n", 1, 4, "without a tag"),
        (b"!!map {a: 1}\n", 1, 1, "without a tag"),
        (b"!!str a: 1\n", 1, 1, "plain text"),
        (b"a: &x {}\n<<: *x\n", 2, 1, "no merge key"),
        (b"a: 1\n---\nb: 1\n", 2, 1, "one document"),
        (b"%YAML 1.1\n---\na: 1\n", 1, 1, "without directives"),
        (b"? [a]\n: 1\n", 1, 3, "plain text"),
        (b"&k a: 1\n", 1, 1, "plain text"),
        (b"a: *x\n", 1, 4, "completed before *x"),
        (b"a: &x [*x]\n", 1, 8, "completed before *x"),
        (b"a: &x 1\nb: &x 2\n", 2, 4, "defined once"),
        (b"a: [1\n", 2, 1, "YAML"),
        (b'a: "\\UFFFFFFFF"\n', 1, 1, "YAML"),
        (b"a: \x07\n", 1, 1, "printable"),
        (b"", 1, 1, "empty"),
        (b"a: 1\nb: \xff\n", 2, 1, "UTF-8"),
        (b"x" * (MAX_BYTES + 1), 1, 1, "256 KiB"),
        (DEEP, 1, 65, "64 levels"),
        (b"a: &x " + b"[" * 40 + b"]" * 40 + b"\nb: " + b"[" * 40 + b"*x" + b"]" * 40, 2, 44, "64 levels"),
        (b"[" + b"1," * 10_001 + b"]", 1, 20_000, "10000 values"),
    ],
)
def test_what_is_not_strict_yaml_is_refused_with_its_place(text: bytes, line: int, column: int, said: str) -> None:
    with pytest.raises(BadContract) as caught:
        parse_yaml(text, "f.yaml")
    (finding,) = caught.value.findings
    assert (finding.file, finding.line, said in finding.expected) == ("f.yaml", line, True), finding
    assert finding.column == column


def test_an_alias_bomb_is_refused_before_it_costs_anything() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40)]
    began = time.process_time()
    with pytest.raises(BadContract, match="10000 values"):
        parse_yaml("\n".join(lines).encode(), "bomb.yaml")
    assert time.process_time() - began < 30, "unfolded, it would take for ever"


def test_a_typo_is_named_with_file_line_column_key_and_what_was_expected(tmp_path: Path) -> None:
    path = tmp_path / "sample.jobs.create.yaml"
    path.write_text(yaml.safe_dump(document(), sort_keys=False).replace("  token:", "  tokken:"))
    with pytest.raises(BadContract) as caught:
        load(path)
    (finding,) = caught.value.findings
    line = path.read_text().splitlines().index("  tokken:") + 1
    assert (finding.file, finding.line, finding.column, finding.key) == (str(path), line, 3, "create.tokken")
    assert "did you mean token?" in finding.expected


def test_a_job_that_a_webhook_alone_would_end_is_refused_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, "sample.jobs.create.yaml", observe="none", webhook={"scheme": "standard_webhooks", "secret": "x"})
    line = path.read_text().splitlines().index("observe: none") + 1
    assert [str(finding) for finding in check(path, TODAY)] == [f"{path}:{line}:1: observe: {WEBHOOK_ALONE}"]


def test_the_newest_version_is_the_default_and_an_older_one_has_a_name(tmp_path: Path) -> None:
    written(tmp_path, "sample.jobs.create.yaml", version=10)
    written(tmp_path, "sample.jobs.create@2.yaml", version=2)
    folder = ContractFolder(tmp_path)
    assert folder.names() == ["sample.jobs.create"]
    assert folder.get("sample.jobs.create").version == 10
    assert folder.get("sample.jobs.create@2").version == 2
    assert folder.get("sample.jobs.create@10").version == 10
    with pytest.raises(NotFound):
        folder.get("sample.jobs.create@3")


def test_a_contract_that_is_not_there_is_named_with_near_ones(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        ContractFolder(SHIPPED).get("acme.report.create")
    assert "acme.reports.create" in caught.value.hint
    with pytest.raises(NotFound) as caught:
        ContractFolder(tmp_path).get("x.y")
    assert caught.value.hint == "there are: none"
    with pytest.raises(NotFound):
        ContractFolder(tmp_path).get("../secrets")
    with pytest.raises(NotFound, match="cannot read"):
        parse(tmp_path / "none.yaml")


def test_a_file_is_named_as_its_contract(tmp_path: Path) -> None:
    for name in ("other.jobs.create.yaml", "sample.jobs.create@7.yaml"):
        with pytest.raises(BadContract, match="the name and version of the file"):
            load(written(tmp_path, name))


def test_cases_and_other_files_are_no_contracts(tmp_path: Path) -> None:
    for name in ("sample.jobs.create.cases.yaml", "README.md", "Upper.yaml"):
        (tmp_path / name).write_text("x")
    assert ContractFolder(tmp_path).names() == []


def test_one_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    written(tmp_path, "sample.jobs.create.yaml")
    (tmp_path / "a.b.yaml").write_text("contract: [")
    folder = ContractFolder(tmp_path)
    assert folder.names() == ["a.b", "sample.jobs.create"]
    assert folder.get("sample.jobs.create").version == 1
    found = [finding.code for path in sorted(tmp_path.glob("*.yaml")) for finding in check(path, TODAY)]
    assert found == ["invalid", "no-cases"]


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_every_shipped_contract_loads_and_loads_back(path: Path) -> None:
    contract = load(path)
    assert contract_from_canonical(contract.canonical) == contract
    assert json.loads(contract.canonical) == parse(path).document


def test_the_schema_for_editors_takes_the_shipped_contracts_and_no_typo() -> None:
    validator = jsonschema_rs.Draft202012Validator(json_schema(), offline=True)
    for path in CONTRACTS:
        assert validator.is_valid(parse(path).document), path
    assert not validator.is_valid(document(effects=1))
    assert not validator.is_valid(document(observe=None))
    assert not validator.is_valid(document(create__answers=[{"is": "taken"}]))
    assert validator.is_valid(document(observe="none", collect__from=[{"inline": "observed.body"}]))


DOCUMENTED = (SHIPPED.parent / "docs" / "contracts.md").read_text()


def test_the_documentation_names_every_finding() -> None:
    for code in (*FINDINGS, *ADVICE):
        assert f"`{code}`" in DOCUMENTED, code
