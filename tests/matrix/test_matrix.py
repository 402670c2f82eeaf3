"""The matrix is whole, and the page that tells of it is current. The files beside this one play it, a phase each."""

from pathlib import Path

from docs.write_failures import PAGE, page
from simulator.lies import LIES
from tests.matrix.cells import every_cell
from tests.matrix.oracle import PHASES, Phase
from tests.matrix.words import FORMS_OF_RETRY_AFTER, WORDS


def test_the_matrix_has_every_word_that_the_simulator_knows_and_no_other() -> None:
    assert set(WORDS) == set(LIES)
    assert {cell.word for cell in every_cell()} == set(LIES)


def test_every_form_of_retry_after_is_told() -> None:
    assert {cell.form for cell in every_cell() if cell.word in {"status_429", "status_503"}} == FORMS_OF_RETRY_AFTER


def test_every_word_is_told_in_every_phase_that_it_is_about() -> None:
    told = {(cell.word, cell.phase) for cell in every_cell()}
    phases: dict[str, tuple[Phase, ...]] = {
        "create": ("create",), "read": ("create",), "observe": ("observe",), "cancel": ("cancel",), "collect": ("collect",),
        "list": ("lookup",), "upload": (), "remove": (),  # steps have stories of their own, in tests/workflows/test_steps.py
    }  # fmt: skip
    assert {(word, phase) for word, lie in LIES.items() for kind in lie.kinds for phase in phases[kind]} == told


def test_the_page_on_failures_says_what_the_matrix_expects() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: .venv/bin/python -m docs.write_failures"


def test_every_phase_of_the_matrix_is_played() -> None:
    assert {path.stem for path in Path(__file__).parent.glob("test_*.py")} == {"test_matrix", *(f"test_{phase}" for phase in PHASES)}
