"""What a probe draws by itself: another input under the same token, and the name of a job that is nobody's."""

from dataclasses import dataclass
from typing import Any

import pytest

from adapters.contract_files import load
from adapters.probing.naming import Asked, Names, another, nobodys
from domain.contract import Contract
from tests.probing.ground import CONTRACTS, input_of

KILN = CONTRACTS.parent / "docs" / "contracts" / "kiln.renders.start.yaml"


def changed(contract: Contract, input: Any, **target: Any) -> Any:
    """The other input of a probe."""
    asked = Asked(contract, target or {"server": "http://127.0.0.1:1"}, "local", "ada", input)
    return another(contract, input, Names(asked).scope(1, "create"))


@pytest.mark.parametrize("name", ["sim.reports.create", "sim.named.create"])
def test_another_input_differs_in_one_value_and_fits_the_schema(name: str) -> None:
    contract, input = load(CONTRACTS / f"{name}.yaml"), input_of(name)
    assert changed(contract, input) == input | {"rows": 5}


@dataclass(frozen=True)
class Change:
    """What a schema lets an input be, and what another one is then."""

    properties: dict[str, Any]
    input: dict[str, Any]
    other: dict[str, Any] | None = None


@pytest.mark.parametrize(
    "change",
    [
        Change({"quality": {"enum": ["draft", "final"]}}, {"quality": "draft"}, {"quality": "final"}),
        Change({"look": {"type": "object", "properties": {"of": {"enum": ["a", "b"]}}}}, {"look": {"of": "b"}}, {"look": {"of": "a"}}),
        Change({"quality": {"enum": ["draft"]}}, {"quality": "draft"}),
    ],
)
def test_another_input_takes_another_word_of_those_that_the_schema_lists(change: Change) -> None:
    schema = {"type": "object", "properties": change.properties}
    contract = load(CONTRACTS / "sim.reports.create.yaml").model_copy(update={"input": schema})
    assert changed(contract, change.input) == change.other


def test_another_input_is_found_where_the_create_needs_what_a_step_saves() -> None:
    found = changed(load(KILN), {"title": "teapot", "frames": 2}, studio="acme")
    assert found == {"title": "teapot", "frames": 1}


@pytest.mark.parametrize(
    "job", [{"id": "42"}, {"id": "job_1"}, {"id": "1234567890123"}, {}, {"id": "job_00aa11bb22", "url": "https://x.example/one"}]
)
def test_nobodys_job_is_not_guessed_where_it_could_be_somebodys(job: dict[str, Any]) -> None:
    assert nobodys(job) is None


@pytest.mark.parametrize("known", ["job_0123456789abcdef", "0b7a9d9e-6a0e-4a66-9d1c-2f51e3a1c0de", "01J9ZC5XQ1M8K4T2W7Y3B6N0PD"])
def test_nobodys_job_is_named_like_one(known: str) -> None:
    found = nobodys({"id": known, "url": f"https://x.example/jobs/{known}"})
    assert found is not None
    unknown = str(found["id"])
    assert unknown != known
    assert found["url"] == f"https://x.example/jobs/{unknown}"
    assert [letter.isalnum() for letter in unknown] == [letter.isalnum() for letter in known]
    assert len(unknown) == len(known)
