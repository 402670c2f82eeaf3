"""A job that its status does not know: neither an end nor a cancel is claimed of it, and it is named among what is left."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.probing.findings import Check
from adapters.probing.probe import Report
from adapters.showing.probing import probe_text
from tests.probing.ground import WITHIN, report_of
from tests.probing.printer import CONTRACT, Printer, printing

RIGHT, WRONG = "last_segment(headers.location)", "body.order"
GONE = "{status: 404}, is: gone"
AS_CANCELLED = {GONE: f"{{status: 404, phase: cancelling}}, is: cancelled}}\n    - {{when: {GONE}"}


@dataclass
class Printed:
    """What a probe of the printer came to."""

    report: Report
    printer: Printer

    def check(self, name: str) -> Check:
        return self.report.findings.checks[name]

    @property
    def differs(self) -> set[str]:
        return {name for name, check in self.report.findings.checks.items() if check.verdict == "differs"}

    @property
    def left(self) -> dict[str | None, str]:
        return {one.job: one.why for one in self.report.left}


@asynccontextmanager
async def probed(
    folder: Path, replaced: dict[str, str] | None = None, *, seconds: float = WITHIN, **printer: Any
) -> AsyncGenerator[Printed]:
    text, provider = CONTRACT, Printer(**printer)
    for old, new in (replaced or {}).items():
        assert old in text
        text = text.replace(old, new)
    async with printing(provider) as base:
        path = folder / "made.up.labels.print.yaml"
        path.write_text(text.replace("BASE", base))
        yield Printed(await report_of(path, {}, {"shop": "s-1", "labels": 3}, seconds), provider)


async def test_a_contract_that_names_the_job_rightly_is_true(tmp_path: Path):
    async with probed(tmp_path, takes=4) as made:
        assert (made.differs, made.left, made.printer.going) == (set(), {}, [])
        assert (made.report.reason, made.report.to_json()["ok"]) == (None, True)
        assert made.check("create.window").verdict == "ok"


async def test_a_number_where_the_address_needs_another_id_is_a_difference_at_the_first_reading(tmp_path: Path):
    async with probed(tmp_path, {RIGHT: WRONG}) as made:
        assert made.differs == {"status.known"}
        check = made.check("status.known")
        assert "the job was answered as gone (404 no such order) at the first reading, " in check.did
        assert "s after its create" in check.did
        assert "is 1 the id that its address needs?" in check.did
        (number,) = check.exchanges
        seen = made.report.findings.exchanges[number - 1]
        assert (seen.method, seen.status, seen.word) == ("GET", 404, "gone")
        assert seen.url.endswith("/orders/1")


async def test_of_a_job_that_is_not_known_no_end_is_claimed_and_no_cancel(tmp_path: Path):
    async with probed(tmp_path, {RIGHT: WRONG}) as made:
        for name in ("create.window", "status.ends", "status.final", "cancel.acknowledged", "cancel.confirmed", "cancel.repeatable"):
            check = made.check(name)
            assert (check.verdict, check.did) == ("not_tried", "its status could not be read (gone (404 no such order))"), name
        assert made.check("cancel.finished").verdict == "not_tried"
        assert len(made.printer.orders) == 1, "another job would be as unknown as the first"


async def test_a_job_that_is_not_known_and_could_not_be_cancelled_is_named_among_what_is_left(tmp_path: Path):
    async with probed(tmp_path, {RIGHT: WRONG}, takes=1000) as made:
        assert made.printer.going == ["000001"]
        assert set(made.left) == {"1"}
        why = made.left["1"]
        assert why == "its cancel: an answer that no entry fits (404); its status could not be read (gone (404 no such order))"
        assert "left at the provider:\n  1  the first job: its cancel" in probe_text(made.report.to_json())


async def test_a_cancel_that_anything_is_answered_with_ends_no_job_that_was_never_seen(tmp_path: Path):
    async with probed(tmp_path, {RIGHT: WRONG} | AS_CANCELLED, takes=1000, withdraws_anything=True) as made:
        assert made.printer.going == ["000001"]
        assert made.left == {"1": "its cancel: acknowledged (202), and its status could not be read (cancelled (404 no such order))"}
        assert made.report.reason is not None


async def test_a_probe_that_saw_no_job_to_its_own_end_is_not_ok_though_nothing_differs(tmp_path: Path):
    async with probed(tmp_path, seconds=1.0, takes=10_000) as made:
        assert (made.differs, made.left, made.printer.going) == (set(), {}, [])
        shown = made.report.to_json()
        assert (shown["ok"], shown["reason"]) == (False, "no job was seen to its end: the time of the probe was over before")
        assert probe_text(shown).endswith("not ok: no job was seen to its end: the time of the probe was over before")


async def test_a_job_that_is_answered_as_gone_until_it_is_shown_is_watched_from_there(tmp_path: Path):
    async with probed(tmp_path, hides=1, takes=5) as made:
        assert "status.known" in made.differs
        did = made.check("status.known").did
        assert "at the first reading" in did
        assert "until then, an entry with `phase: fresh` has to make it wait" in did
        assert made.check("status.ends").verdict == "ok"
        assert made.printer.going == []


async def test_a_job_that_was_seen_and_is_lost_is_cancelled_and_named(tmp_path: Path):
    async with probed(tmp_path, forgets_after=2, takes=1000) as made:
        assert "a job that was seen is answered as gone (404 no such order)" in made.check("status.known").did
        assert made.check("create.window").verdict == "not_tried"
        assert made.printer.going == []
        assert made.left["000001"] == ("its cancel: acknowledged (202), and its status could not be read (gone (404 no such order))"), (
            "that nobody shows it is no end of it"
        )


async def test_that_a_withdrawn_job_is_gone_confirms_its_cancel_where_the_contract_says_so(tmp_path: Path):
    async with probed(tmp_path, AS_CANCELLED, takes=4, forgets_withdrawn=True) as made:
        assert (made.differs, made.left, made.report.reason) == (set(), {}, None)
        assert made.check("cancel.confirmed").verdict == "ok"


async def test_that_a_withdrawn_job_is_gone_confirms_nothing_where_the_contract_does_not_say_so(tmp_path: Path):
    async with probed(tmp_path, takes=4, forgets_withdrawn=True) as made:
        assert made.differs == {"cancel.confirmed"}
        assert "an operation takes for a lost job and not for a cancelled one" in made.check("cancel.confirmed").did
        assert made.left == {"000002": "its cancel: acknowledged (202), and its status could not be read (gone (404 no such order))"}
