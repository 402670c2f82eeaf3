"""`result --failed-items` gives out every item that did not succeed, verified; nothing where all did, and says so where none are read."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.ports import Owner
from adapters.client import sakshi
from adapters.result_store import ObstoreResults
from adapters.settings import Settings
from domain.evidence import Evidence, Output
from domain.fingerprint import sha256_hex
from tests.adapters.sql_ledger_cases import opening
from tests.domain.growing import said
from tests.installation import Installation

LIST = b'{"key": "b", "outcome": "failed", "error": "no \\u0007 such row", "output": "output", "record": 2}\n'
ITEMS: dict[str, Any] = {"submitted": 2, "succeeded": 1, "failed": 1, "listed": 1, "failed_items": [], "disagreements": []}


def ended(stream: str, result: Evidence) -> list[Evidence]:
    """The entries of an operation that came to this result."""
    return [
        said("policy.unattended"),
        said("intent.create", attempt=1),
        said("exchange.accepted", attempt=1, job={"id": f"job-of-{stream}"}),
        said("reading.terminal", verdict="succeeded"),
        said("intent.collect", staging="op-1/5"),
        result,
    ]


@pytest.fixture
async def installed(tmp_path: Path) -> Installation:
    """Three operations: of one an item failed, of one none did, and of one the contract reads no items."""
    settings = Settings(home=tmp_path / "home", local_user="ada")
    results = ObstoreResults(settings.results)
    async with sakshi(settings) as there:
        for stream, body, items in (("mixed", LIST, ITEMS), ("whole", b"", ITEMS), ("plain", b"", None)):
            opened = opening(stream)
            await there.ledger.open(opened)
            listed = None
            if body:
                key = f"{opened.evidence.tenant}/{stream}/{sha256_hex(body)}"
                listed = Output(name="failed-items", key=key, sha256=sha256_hex(body), size=len(body), records=1)
                async with results.stage(f"{stream}/5") as staged:
                    await staged.write(body)
                    await staged.seal()
                await results.publish(f"{stream}/5", key)
            output = Output(name="output", key=f"acme/{stream}/{'a' * 64}", sha256="a" * 64, size=3)
            fields: dict[str, Any] = {"outcome": "whole", "outputs": (output,), "items": items, "failed_items": listed}
            for turn, evidence in enumerate(ended(stream, said("result.verified", **fields)), start=1):
                await there.ledger.append(stream, lambda _, one=evidence: [one], owner=Owner("run-1", turn))
    return Installation(settings.home)


def test_the_items_that_failed_are_given_out_as_they_were_listed(installed: Installation, tmp_path: Path) -> None:
    told = installed("result", "mixed", "--failed-items")
    assert (told.code, told.out.encode(), told.err) == (0, LIST, "")
    written = installed("result", "mixed", "--failed-items", "--output", str(tmp_path / "out"))
    assert (written.code, (tmp_path / "out" / "output-001").read_bytes()) == (0, LIST)
    shown = installed("result", "mixed")
    assert "1 succeeded, 1 failed of 2" in shown.out
    assert "and 1 more: result mixed --failed-items" in shown.out
    assert installed("result", "mixed", "--json").json["failed_items"]["records"] == 1
    assert "python starter.py result mixed --failed-items" in installed("status", "mixed", "--json").json["next"]


def test_where_all_succeeded_nothing_is_given_out(installed: Installation) -> None:
    told = installed("result", "whole", "--failed-items")
    assert (told.code, told.out, told.err) == (0, "", "")


def test_where_the_contract_reads_no_items_that_is_said(installed: Installation) -> None:
    told = installed("result", "plain", "--failed-items")
    assert told.code == 3
    assert "the contract reads no items of this result" in told.err


def test_a_list_that_was_altered_is_not_given_out(installed: Installation) -> None:
    (path,) = (installed.home / "results" / "acme" / "mixed").iterdir()
    path.chmod(0o600)
    path.write_bytes(LIST.replace(b"failed", b"passed"))
    told = installed("result", "mixed", "--failed-items")
    assert (told.out, json.dumps("not what was recorded")[1:-1] in told.err) == ("", True)
