"""A provider that counts or throttles says nothing of the contract: the probe waits, as an operation would, and asks the same again."""

from pathlib import Path

import pytest

from simulator import lies
from simulator.answer import Answer, Call, Json
from simulator.provider import Provider
from tests.probing.ground import Told, probing

QUOTA = {"quota": {"remaining": "headers.x_ratelimit_remaining", "reset": "headers.x_ratelimit_reset"}}
QUICK = {"poll": {"first": "10ms", "floor": "10ms"}}


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
