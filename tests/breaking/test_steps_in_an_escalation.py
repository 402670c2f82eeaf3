"""An escalation tells every request that was sent, the steps' among them, and claims nothing of those that were."""

from dataclasses import replace
from pathlib import Path

import pytest

from activities.authority import AuthorityActivities
from activities.provider import ProviderActivities
from adapters.escalation import dossier_of
from adapters.showing.exchanges import Shown, exchanges_of
from adapters.showing.knowledge import known
from adapters.showing.story import sentence, timeline
from adapters.showing.support import readme
from domain.messages import StepInput
from tests.breaking.test_steps_that_come_late import Refuses
from tests.workflows.stage import PLAIN, acting_for, stage, variant
from tests.workflows.test_steps import plain, upload

NOTHING = "nothing of this operation reached the provider"


def told(one: Shown) -> tuple[object, object, object]:
    read_as = one["read_as"]
    assert isinstance(read_as, dict)
    return one["call"], one["method"], read_as["meaning"]


async def test_a_step_whose_answer_was_never_recorded_is_told_as_sent_and_without_outcome(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.open(plain(upload()))
        worker = acting_for("run-1")
        await worker.run(AuthorityActivities(on.world).judge, StepInput(id="op-1", turn=1))
        fails = replace(on.world, ledger=Refuses(on.ledger, 2, written=False))
        with pytest.raises(ConnectionError):
            await worker.run(ProviderActivities(fails).create, StepInput(id="op-1", turn=2))
        assert len(on.books.uploads()) == 1
        told_of = exchanges_of(await on.entries())
        assert [told(one) for one in told_of] == [("step", "POST", "open")]
        dossier = await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now())
        sentences = " ".join(known(dossier))
        assert NOTHING not in sentences
        assert "Requests ahead of it were: 1" in sentences
        on.books.lie("create", "reject")
        await worker.run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=3))
        await worker.run(ProviderActivities(on.world).undo, StepInput(id="op-1", turn=4))
        told_of = exchanges_of(await on.entries())
        assert [told(one) for one in told_of] == [
            ("step", "POST", "done"), ("create", "POST", "refused"), ("step", "DELETE", "undone"), ("step", "POST", "open")
        ]  # fmt: skip


async def test_at_the_create_deadline_the_undo_that_follows_is_told_and_nothing_is_said_against_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        slow = upload("second", undo=None)
        on.books.lie("upload", {"word": "status_503", "args": {"seconds": 20}}, nth=2, times=None)
        head = await (await on.start(plain(upload(), slow, deadlines={"create": "10s"}))).result()
        assert head.state == "failed"
        assert [one.removed for one in on.books.uploads()] == [True]
        dossier = await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now())
        page = readme(dossier, ()) + timeline(dossier.entries)
        assert "nothing more is sent" not in page
        assert sentence("clock.create") in page
        ahead = sum(one["call"] == "step" and one["method"] == "POST" for one in dossier.exchanges)
        assert f"Requests ahead of it were: {ahead}, in `exchanges.json`. Requests to take back what these left: 1, there too." in page
        story = await on.story()
        assert story.index("clock.create") < story.index("step.undone")


async def test_nothing_reached_the_provider_is_said_where_no_step_was_sent_either(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.open(plain(upload()))
        dossier = await dossier_of(on.ledger, on.ledger_books, "op-1", on.clocks.now())
        assert NOTHING in " ".join(known(dossier))


async def test_the_steps_of_a_reading_are_told_before_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await (await on.start(variant("sim.plain.create", {"observe": {"before": [upload("ticket", undo=None)]}}), PLAIN)).result()
        called = [one["call"] for one in exchanges_of(await on.entries())]
        assert called[:5] == ["create", "step", "status", "step", "status"]
        assert len([one for one in called if one == "step"]) == len(on.books.uploads())
