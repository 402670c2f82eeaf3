"""Every lie, in every phase, for every contract: what must come of it is derived from the rules, and is what comes of it."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from docs.write_failures import PAGE, page
from simulator.lies import LIES
from tests.matrix.cells import cells, every_cell, has
from tests.matrix.judging import faults
from tests.matrix.kinds import Kind, kinds
from tests.matrix.oracle import PHASES, Phase
from tests.matrix.playing import Left, play
from tests.matrix.words import FORMS_OF_RETRY_AFTER, WORDS
from tests.workflows.stage import SECRET

STAGES = [(phase, kind) for phase in PHASES for kind in kinds() if has(phase, kind)]


def test_the_matrix_has_every_word_that_the_simulator_knows_and_no_other() -> None:
    assert set(WORDS) == set(LIES)
    assert {cell.word for cell in every_cell()} == set(LIES)


def test_every_form_of_retry_after_is_told() -> None:
    assert {cell.form for cell in every_cell() if cell.word in {"status_429", "status_503"}} == FORMS_OF_RETRY_AFTER


def test_every_word_is_told_in_every_phase_that_it_is_about() -> None:
    told = {(cell.word, cell.phase) for cell in every_cell()}
    phases: dict[str, tuple[Phase, ...]] = {
        "create": ("create",), "read": ("create",), "observe": ("observe",), "cancel": ("cancel",), "collect": ("collect",),
        "list": ("lookup",),
    }  # fmt: skip
    assert {(word, phase) for word, lie in LIES.items() for kind in lie.kinds for phase in phases[kind]} == told


def test_the_page_on_failures_says_what_the_matrix_expects() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: .venv/bin/python -m docs.write_failures"


@pytest.mark.parametrize(("phase", "kind"), STAGES, ids=[f"{phase}-{kind.name}" for phase, kind in STAGES])
async def test_what_comes_of_a_lie_is_what_the_rules_say(tmp_path: Path, phase: Phase, kind: Kind) -> None:
    played = await play(tmp_path, cells(phase, kind))
    assert [fault for left in played.left for fault in faults(left)] == []
    assert played.honest.state == "succeeded", "the workers are alive and their pool is whole"
    assert played.strangers.heard == []
    assert [address for left in played.left for address in _called(left) if not _ours(address, left)] == []
    assert _files_that_hold_the_credential(tmp_path) == []


def _called(left: Left) -> list[str]:
    """Every address to which something went, as the ledger tells."""
    https = [getattr(entry.evidence, "http", None) for entry in left.entries]
    return [http.url for http in https if http is not None]


def _ours(address: str, left: Left) -> bool:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" == left.stage.provider.url and ipaddress.ip_address(str(parts.hostname)).is_loopback


def _files_that_hold_the_credential(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file() and file.parent != folder / "secrets"]
    assert files, "the ledger at least"
    return [str(file) for file in files if SECRET.encode() in file.read_bytes()]
