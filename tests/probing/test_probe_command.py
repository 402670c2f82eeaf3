"""`contracts probe` as it is typed: what it shows, what it asks, what it refuses, and with which code it exits."""

import asyncio
import io
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import starter
from simulator.serve import Running, running
from tests.probing.ground import CONTRACTS, SECRET, WITHIN, input_of

NAME = "sim.reports.create"
POLICIES = CONTRACTS.parent / "policies"


@dataclass
class Desk:
    """An installation whose target `sim` is a simulator in a thread."""

    sim: Running
    contracts: Path
    capsys: pytest.CaptureFixture[str]

    def say(self, *words: str) -> tuple[int, str, str]:
        code = starter.main(["contracts", "probe", *words])
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def probe(self, *words: str, **more: Any) -> tuple[int, str, str]:
        return self.say(NAME, "--input", json.dumps(input_of(NAME, **more)), *words)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    loop, up, found = asyncio.new_event_loop(), threading.Event(), list[Running]()
    over = asyncio.Event()

    async def serve() -> None:
        async with running() as sim:
            found.append(sim)
            up.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert up.wait(WITHIN)
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    (contracts / f"{NAME}.yaml").write_text((CONTRACTS / f"{NAME}.yaml").read_text())
    for name, value in {
        "HOME": str(tmp_path / "home"),
        "CONTRACTS_DIR": str(contracts),
        "TARGETS": json.dumps({"sim": {"server": found[0].url}}),
        "CREDENTIAL_SIM": SECRET,
        "LOCAL_USER": "ada",
    }.items():
        monkeypatch.setenv(f"SAKSHI_{name}", value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    yield Desk(found[0], contracts, capsys)
    loop.call_soon_threadsafe(over.set)
    thread.join(WITHIN)
    loop.close()


class Terminal(io.StringIO):
    """Somebody who can be asked."""

    def isatty(self) -> bool:
        return True


def test_consent_is_shown_and_a_report_is_given(desk: Desk, tmp_path: Path):
    code, out, err = desk.probe("--yes", "--json", "--report", str(tmp_path / "report.json"))
    assert code == 0
    shown = json.loads(out)
    assert (shown["schema"], shown["ok"], shown["left"]) == ("sakshi.probe/1", True, [])
    assert json.loads((tmp_path / "report.json").read_text()) == shown
    for said in (desk.sim.url, "credential sim", "account sim", "2 if the contract is true, 5 at most", "24 minor units of EUR"):
        assert said in err
    assert "rows: 5 instead of 6" in err
    assert SECRET not in out + err


def test_a_difference_is_exit_code_1_and_stands_in_the_text_with_its_exchanges(desk: Desk):
    desk.sim.books.lie("create", "forget_token")
    code, out, _ = desk.probe("--yes")
    assert code == 1
    assert "DIFFERS" in out
    assert "create again: POST" in out
    assert "+  token: none" in out


def test_where_nobody_can_be_asked_nothing_is_sent(desk: Desk):
    code, out, err = desk.probe()
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert desk.sim.books.requests() == []


def test_where_nobody_can_be_asked_it_is_shown_all_the_same_what_would_be_done(desk: Desk):
    _, _, err = desk.probe()
    shown, _, refused = err.partition("error: nobody can be asked here")
    assert f"A probe of {NAME}@1 will" in shown
    assert "2 if the contract is true, 5 at most" in shown
    assert refused


@pytest.mark.parametrize("words", [("--yes",), ()])
def test_what_policy_does_not_permit_is_shown_and_refused(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    bundle = tmp_path / "policies"
    shutil.copytree(CONTRACTS.parent / "policies", bundle)
    with (bundle / "default.cedar").open("a") as file:
        file.write('@id("no-probes") @message("Nothing is probed here.") forbid (principal, action == Action::"probe", resource);')
    monkeypatch.setenv("SAKSHI_POLICIES_DIR", str(bundle))
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    code, _, err = desk.probe(*words)
    assert code == 3
    assert err.index("A probe of") < err.index("no-probes: Nothing is probed here.")
    assert desk.sim.books.requests() == []


def test_by_which_policies_it_was_permitted_stands_in_the_report(desk: Desk):
    _, out, _ = desk.probe("--yes", "--json")
    policy = json.loads(out)["consent"]["policy"]
    assert "human-started-probes" in policy["policies"]
    assert len(policy["bundle"]) == 64


def test_a_probe_that_saw_no_end_is_exit_code_1_with_the_reason(desk: Desk):
    code, out, _ = desk.probe("--yes", "--timeout", "2s", "--json", polls=1000)
    shown = json.loads(out)
    assert (code, shown["ok"]) == (1, False)
    assert shown["reason"].startswith("no job was seen to its end: ")
    assert all(check["verdict"] != "differs" for check in shown["checks"])


@pytest.mark.parametrize(("typed", "code"), [("yes\n", 0), ("y\n", 3), ("\n", 3), ("no\n", 3)])
def test_only_a_typed_yes_is_one(desk: Desk, monkeypatch: pytest.MonkeyPatch, typed: str, code: int):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert desk.probe()[0] == code
    assert bool(desk.sim.books.requests()) is (code == 0)


def grave(desk: Desk, cls: str) -> None:
    path = desk.contracts / f"{NAME}.yaml"
    moved = "\n  recipient: account/a-1\n  amount: {minor: 500, currency: EUR}" if cls == "money" else ""
    path.write_text(path.read_text().replace("class: external_write", f"class: {cls}{moved}"))


@pytest.mark.parametrize(("cls", "policy"), [("money", "no-money"), ("destructive", "no-destruction")])
def test_what_policy_lets_nobody_run_nobody_may_probe(desk: Desk, cls: str, policy: str):
    grave(desk, cls)
    code, _, err = desk.probe("--yes")
    assert code == 3
    assert policy in err
    assert desk.sim.books.requests() == []


@pytest.mark.parametrize("cls", ["money", "destructive"])
def test_a_grave_effect_that_policy_permits_is_refused_unless_that_is_said_beforehand(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cls: str
):
    grave(desk, cls)
    bundle = tmp_path / "policies"
    shutil.copytree(POLICIES, bundle)
    (bundle / "default.cedar").write_text('@id("all")\npermit (principal, action, resource);\n')
    monkeypatch.setenv("SAKSHI_POLICIES_DIR", str(bundle))
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    code, _, err = desk.probe()
    assert code == 3
    assert err.index("A probe of") < err.index(f"of class {cls}: it is probed only where that is said beforehand")
    assert desk.sim.books.requests() == []


@pytest.mark.parametrize(
    "words",
    [
        ("no.such.contract", "--input", "{}", "--yes"),
        (NAME, "--input", '{"account": "a-1"}', "--yes"),
        (NAME, "--input", json.dumps(input_of(NAME)), "--yes", "--target", "nowhere"),
        (NAME, "--input", json.dumps(input_of(NAME)), "--yes", "--timeout", "soon"),
        (NAME, "--input", json.dumps(input_of(NAME)), "--yes", "--other", '{"account": 1}'),
        (NAME, "--input", json.dumps(input_of(NAME)), "--yes", "--file", "x=/nowhere"),
    ],
)
def test_bad_input_is_exit_code_2_and_nothing_is_sent(desk: Desk, words: tuple[str, ...]):
    assert desk.say(*words)[0] == 2
    assert desk.sim.books.requests() == []


def test_a_missing_credential_is_said_before_anything_is_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SAKSHI_CREDENTIAL_SIM")
    code, _, err = desk.probe("--yes")
    assert code == 2
    assert "SAKSHI_CREDENTIAL_SIM" in err


def test_an_existing_report_is_not_replaced(desk: Desk, tmp_path: Path):
    (tmp_path / "report.json").write_text("mine")
    assert desk.probe("--yes", "--report", str(tmp_path / "report.json"))[0] == 2
    assert (tmp_path / "report.json").read_text() == "mine"
    assert desk.sim.books.requests() == []


def test_a_contract_is_probed_by_the_path_of_its_file_too(desk: Desk, tmp_path: Path):
    draft = tmp_path / f"{NAME}.yaml"
    draft.write_text((desk.contracts / f"{NAME}.yaml").read_text().replace("version: 1", "version: 0"))
    code, out, _ = desk.say(str(draft), "--input", json.dumps(input_of(NAME)), "--yes", "--json")
    assert (code, json.loads(out)["version"]) == (0, 0)
