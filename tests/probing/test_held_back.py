"""A provider that counts or throttles says nothing of the contract: the probe waits, as an operation would, and asks the same again."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from adapters.contract_files import load
from adapters.probing.naming import Asked, Names, another
from simulator import lies
from simulator.answer import Answer, Call, Json
from simulator.provider import Provider
from tests.probing.ground import CONTRACTS, Told, probing

QUOTA = {"quota": {"remaining": "headers.x_ratelimit_remaining", "reset": "headers.x_ratelimit_reset"}}
QUICK = {"poll": {"first": "10ms", "floor": "10ms"}}
KILN = CONTRACTS.parent / "docs" / "contracts" / "kiln.renders.start.yaml"


def spent(call: Call, args: dict[str, Json], provider: Provider) -> Answer:
    """The honest answer, and the word that it was the last for a second."""
    honest = provider.answer(call)
    return Answer(honest.status, (*honest.headers, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1")), honest.body)


@pytest.mark.parametrize("kind", ["create", "list", "observe"])
async def test_a_quota_that_is_used_up_is_waited_for_and_is_no_difference(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(lies.LIES, "spent", lies.Lie("Says that nothing is left.", lies.ANY, instead=spent))
    changes = {"http": QUOTA, "observe": QUICK}
    async with probing("sim.listed.create", tmp_path, [Told(kind, "spent", nth=1)], changes=changes) as found:
        assert found.differs == set()
        assert found.report.reason is None
        assert found.verdict("lookup.absent") == "ok"


async def test_a_lookup_that_is_throttled_is_asked_again(tmp_path: Path) -> None:
    throttled = Told("list", "status_429", {"retry_after": "seconds", "seconds": 0}, times=2)
    async with probing("sim.listed.create", tmp_path, [throttled], changes={"observe": QUICK}) as found:
        assert found.differs == set()
        assert (found.verdict("lookup.finds"), found.verdict("lookup.absent")) == ("ok", "ok")


@dataclass(frozen=True)
class Change:
    """What a schema lets an input be, and what another one is then."""

    properties: dict[str, Any]
    input: dict[str, Any]
    other: dict[str, Any] | None = field(default=None)


@pytest.mark.parametrize(
    "change",
    [
        Change({"quality": {"enum": ["draft", "final"]}}, {"quality": "draft"}, {"quality": "final"}),
        Change({"look": {"type": "object", "properties": {"of": {"enum": ["a", "b"]}}}}, {"look": {"of": "b"}}, {"look": {"of": "a"}}),
        Change({"quality": {"enum": ["draft"]}}, {"quality": "draft"}),
    ],
)
def test_another_input_takes_another_word_of_those_that_the_schema_lists(change: Change) -> None:
    contract = load(CONTRACTS / "sim.reports.create.yaml").model_copy(update={"input": {"type": "object", "properties": change.properties}})
    found = another(
        contract, change.input, Names(Asked(contract, {"server": "http://sim"}, "local", "ada", change.input)).scope(1, "create")
    )
    assert found == change.other


def test_another_input_is_found_where_the_create_needs_what_a_step_saves() -> None:
    contract, input = load(KILN), dict[str, Any](title="teapot", frames=2)
    scope = Names(Asked(contract, {"studio": "acme"}, "local", "ada", input)).scope(1, "create")
    assert another(contract, input, scope) == {"title": "teapot", "frames": 1}
