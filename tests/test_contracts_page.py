"""docs/contracts.md teaches by contracts that are safe and do what they say; it leaves out no key and no word; its commands exist."""

import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest
import pytest_asyncio
from pydantic import BaseModel

from adapters.contract_files import cases_beside, check_file, load_cases
from docs.write_contracts import PAGE as LIBRARY
from docs.write_contracts import written
from domain import contract
from domain.cases.models import Cases
from domain.language import calls, connection, stages
from domain.language.checks import ROOTS
from domain.language.findings import ADVICE, FINDINGS
from domain.language.functions import Functions
from tests.providers.relocating import written as contract_written
from tests.providers.staging import Stages, stages_for

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "contracts.md").read_text("utf-8")
EXAMPLES = sorted(path for path in (ROOT / "docs" / "contracts").glob("*.yaml") if not path.name.endswith(".cases.yaml"))
STORIES = [(path, story.name) for path in EXAMPLES for story in load_cases(cases_beside(path)).stories]
TODAY = date(2026, 12, 1)
SHOWN = re.compile(r"\[`(contracts/[a-z.]+\.yaml)`\]\(\1\)[^\n]*\n\n```yaml\n(.*?)```", re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
WORDS = (
    calls.CommonWord,
    calls.StepWord,
    calls.CreateWord,
    calls.StateWord,
    calls.CancelWord,
    calls.SourceWord,
    calls.LookupWord,
    calls.ItemWord,
)


def test_a_file_that_the_page_shows_is_the_file() -> None:
    shown = SHOWN.findall(PAGE)
    assert {name for name, _ in shown} >= {f"contracts/{path.name}" for path in EXAMPLES}
    assert all((ROOT / "docs" / name).read_text("utf-8") == text for name, text in shown)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_whole_safe_and_every_entry_of_it_has_a_case(path: Path) -> None:
    assert [f"{finding} [{finding.code}]" for finding in check_file(path, TODAY).findings] == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stages]:
    async with stages_for(tmp_path_factory, "page") as made:
        yield made


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("path", "name"), STORIES, ids=[f"{path.stem}: {name}" for path, name in STORIES])
async def test_an_example_does_what_its_stories_say(on: Stages, path: Path, name: str) -> None:
    told = await on.tell(path, name, f"page-{STORIES.index((path, name))}")
    assert told.problems(contract_written(path).story(name)) == []


def _models(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """A model and all below it, each once."""
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        yield from _within(field.annotation, seen)


def _within(annotation: Any, seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from _models(annotation, seen)
    for part in get_args(annotation):
        yield from _within(part, seen)


def _keys(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for one in _models(model, set()) for name, field in one.model_fields.items()}


def _named() -> set[str]:
    """Every word that stands in code on the page."""
    return {word for text in CODE.findall(PAGE) for word in re.findall(r"[A-Za-z_0-9-]+", text)}


def test_every_key_of_the_language_is_on_the_page() -> None:
    assert _keys(contract.Contract) - _named() == set()


def test_every_key_of_cases_is_on_the_page() -> None:
    assert _keys(Cases) - _named() == set()


def test_every_word_root_and_function_is_on_the_page() -> None:
    words = {word for literal in WORDS for part in (get_args(literal)) for word in (get_args(part) or (part,))}
    roots = {root for _, known in ROOTS for root in known}
    ours = {name.removeprefix("_func_") for name, made in vars(Functions).items() if name.startswith("_func_") and callable(made)}
    schemes = set(stages.WEBHOOK_KEYS)
    assert (words | roots | ours | schemes | set(connection.KINDS)) - _named() == set()


def test_every_finding_is_on_the_page() -> None:
    assert {*FINDINGS, *ADVICE} - _named() == set()


def test_every_command_on_the_page_is_one() -> None:
    shown = re.findall(r"python starter\.py ((?:contracts )?[a-z]+)((?: --[a-z-]+)*)", PAGE)
    assert {command for command, _ in shown} >= {"run", "contracts check", "contracts new", "contracts probe"}
    for command in sorted({command for command, _ in shown}):
        found = subprocess.run([sys.executable, "starter.py", *command.split(), "--help"], cwd=ROOT, capture_output=True, check=False)
        assert found.returncode == 0, command


def test_a_command_of_the_page_that_needs_no_stack_runs_as_it_is_written() -> None:
    shown = re.findall(r"^ {4,}python starter\.py (contracts (?:check \S|new ).*)$", PAGE, re.MULTILINE)
    assert len(shown) >= 3
    for command in shown:
        found = subprocess.run([sys.executable, "starter.py", *shlex.split(command)], cwd=ROOT, capture_output=True, text=True, check=False)
        assert found.returncode == 0, (command, found.stdout, found.stderr)


def test_the_table_of_the_library_is_what_its_contracts_say() -> None:
    text = LIBRARY.read_text("utf-8")
    assert text == written(text), "run: .venv/bin/python -m docs.write_contracts"
