"""Every contract that ships: its cases mean what they say, and its stories end where they say, told by production's own code.

`make stories DIR=FOLDER` does the same for contracts of another folder, of which less is asked: advice is no fault there.
"""

import os
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.contract_files import cases_beside, check_file, load, load_cases
from domain.cases.calls import calls_of
from domain.cases.models import Cases, Story
from domain.contract import Contract
from domain.errors import BadContract, NotFound
from domain.language.findings import ADVICE
from tests.providers.relocating import written
from tests.providers.staging import Stages, stages_for

ELSEWHERE = os.environ.get("STORIES_IN")
FOLDER = Path(ELSEWHERE) if ELSEWHERE else Path(__file__).parents[2] / "contracts"
SHIPPED = sorted(path for path in FOLDER.glob("*.yaml") if not path.name.endswith(".cases.yaml"))
TODAY = datetime.now(UTC).date() if ELSEWHERE else date(2026, 12, 1)
if not SHIPPED:
    raise pytest.UsageError(f"no contract in {FOLDER.absolute()}")


def _stories() -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for path in SHIPPED:
        try:
            found += [(path, story.name) for story in load_cases(cases_beside(path)).stories]
        except (BadContract, NotFound):  # said by the test of that contract below
            continue
    return found


STORIES = _stories()


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_contract_is_whole_safe_and_every_case_means_what_it_says(path: Path) -> None:
    taken = ADVICE if ELSEWHERE else ()
    found = [f"{finding} [{finding.code}]" for finding in check_file(path, TODAY).findings if finding.code not in taken]
    assert not found, "\n".join(found)


def _calls(contract: Contract, cases: Cases, story: Story) -> set[str]:
    calls = calls_of(contract)
    return {calls[cases.named(name).call].kind for name in story.exchanges}


@pytest.mark.skipif(bool(ELSEWHERE), reason="asked of contracts that ship")
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_contract_has_a_story_that_goes_all_the_way_and_one_that_is_cancelled(path: Path) -> None:
    contract, cases = load(path), load_cases(cases_beside(path))
    told = [(story, _calls(contract, cases, story)) for story in cases.stories]
    asks = contract.collect is not None and any(source.request for output in contract.collect.every.values() for source in output.source)
    whole = {"create"} | ({"observe"} if contract.observe else set()) | ({"collect"} if asks else set())
    assert any(whole <= calls for _, calls in told), f"no story has all of {sorted(whole)}"
    assert contract.cancel is None or any("cancel" in calls and story.cancel_after for story, calls in told), "no story is cancelled"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stages]:
    """The same stage for many stories: each has an operation, a double and credentials of its own."""
    async with stages_for(tmp_path_factory, "library") as made:
        yield made


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("path", "name"), STORIES, ids=[f"{path.stem}: {name}" for path, name in STORIES])
async def test_a_story_ends_as_it_says(on: Stages, path: Path, name: str) -> None:
    told = await on.tell(path, name, f"op-{STORIES.index((path, name))}")
    if problems := told.problems(written(path).story(name)):
        pytest.fail("\n".join(problems), pytrace=False)
