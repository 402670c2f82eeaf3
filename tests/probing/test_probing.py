"""A probe finds nothing on an honest provider, and names each lie about the contract that is told."""

import asyncio
import json
from pathlib import Path

import pytest

from adapters.contract_files import parse
from adapters.probing.findings import QUESTIONS
from simulator.lies import LIES
from tests.probing.ground import SECRET, Told, probing
from tests.probing.lies import NAMED, NOT_ABOUT_THE_CONTRACT, REPORTS, TOLD_ONCE, Case

SIMS = ("sim.reports.create", "sim.plain.create", "sim.named.create", "sim.listed.create", "sim.searched.create", "sim.unnamed.create")


@pytest.mark.parametrize("name", [*SIMS, "sim.read.count"])
async def test_nothing_differs_at_an_honest_provider(name: str, tmp_path: Path):
    async with probing(name, tmp_path) as probed:
        assert probed.differs == set()
        assert (probed.report.left, probed.report.diff, probed.going) == ([], "", [])
        assert probed.verdict("create.taken") == "ok"


@pytest.mark.parametrize(
    ("polls", "verdict", "did"),
    [
        (0, "not_offered", "no progress was shown"),
        (1, "not_tried", "one value only was shown: 0 done"),
        (3, "ok", "2 done, then 4"),
    ],
)
async def test_progress_is_judged_by_two_values_and_one_is_told(tmp_path: Path, polls: int, verdict: str, did: str):
    async with probing(REPORTS, tmp_path, polls=polls) as probed:
        check = probed.report.findings.checks["status.progress"]
        assert (check.verdict, check.did) == (verdict, did)
        assert bool(check.exchanges) == (verdict != "not_offered")
        assert probed.differs == set()


def test_every_word_of_the_vocabulary_is_named_or_has_a_reason_why_not():
    named = {case.told.word for case in NAMED}
    assert named | NOT_ABOUT_THE_CONTRACT.keys() == set(LIES)
    assert not named & NOT_ABOUT_THE_CONTRACT.keys()


@pytest.mark.parametrize("case", NAMED, ids=lambda case: f"{case.told.word}-{case.told.kind}-{case.check}")
async def test_a_lie_about_the_contract_is_named(case: Case, tmp_path: Path):
    async with probing(case.contract, tmp_path, [case.told], changes=case.changes, replaced=case.replaced, **case.more) as probed:
        assert case.check in probed.differs, probed.report.to_json()
        check = probed.report.findings.checks[case.check]
        assert check.did
        assert check.exchanges, "what is said stands on an exchange"
        assert case.mend in probed.report.diff, probed.report.diff


@pytest.mark.parametrize("told", TOLD_ONCE, ids=lambda told: f"{told.word}-{told.kind}-{told.args.get('retry_after', '')}")
async def test_what_is_no_lie_about_the_contract_is_no_difference(told: Told, tmp_path: Path):
    async with probing(REPORTS, tmp_path, [told]) as probed:
        assert probed.differs == set(), probed.report.to_json()
        assert probed.going == []


def test_what_is_told_once_are_lies_with_a_reason_or_in_a_fair_form():
    assert {told.word for told in TOLD_ONCE} <= NOT_ABOUT_THE_CONTRACT.keys() | {"status_429"}


async def test_an_honest_provider_makes_two_jobs_and_one_is_cancelled(tmp_path: Path):
    async with probing(REPORTS, tmp_path) as probed:
        assert sorted(str(job.ended) for job in probed.books.jobs()) == ["cancelled", "succeeded"]
        assert (probed.report.consent.jobs, probed.report.consent.most) == (2, 5)
        bodies = {one.body_digest for one in probed.books.requests("create")}
        assert len(bodies) == 2, "the one that was asked for, and another under the same token"


async def test_no_more_jobs_are_made_than_was_agreed_to(tmp_path: Path):
    async with probing(REPORTS, tmp_path, [Told("create", "forget_token")]) as probed:
        assert len(probed.books.jobs()) <= probed.report.consent.most
        assert probed.going == [], "what a token that is not honoured made is cancelled"


async def test_the_second_job_of_one_request_is_cancelled_too(tmp_path: Path):
    async with probing("sim.listed.create", tmp_path, [Told("create", "accept_twice")]) as probed:
        assert len(probed.books.jobs()) == 4
        assert (probed.going, probed.report.left) == ([], [])


async def test_what_cannot_be_cancelled_is_said(tmp_path: Path):
    async with probing(REPORTS, tmp_path, [Told("cancel", "cancel_refused")], seconds=3.0, polls=1000) as probed:
        (left,) = probed.report.left
        assert left.job in probed.going
        assert "refused (403)" in left.why


async def test_a_job_that_does_not_end_in_the_time_of_the_probe_is_cancelled_and_that_is_no_difference(tmp_path: Path):
    async with probing("sim.plain.create", tmp_path, seconds=10.0, polls=1000) as probed:
        assert probed.differs == set()
        assert probed.verdict("status.ends") == "not_tried"
        assert probed.verdict("cancel.confirmed") == "ok"
        assert [job.ended for job in probed.books.jobs()] == ["cancelled"]


async def test_a_lost_create_without_a_token_is_not_sent_again(tmp_path: Path):
    async with probing("sim.plain.create", tmp_path, [Told("create", "drop_after_accepting")]) as probed:
        assert probed.differs == {"create.taken"}
        assert len(probed.books.requests("create")) == 1
        (left,) = probed.report.left
        assert "lost" in left.why


async def test_a_report_is_json_without_a_secret_a_body_or_a_query(tmp_path: Path):
    async with probing("sim.listed.create", tmp_path) as probed:
        text = json.dumps(probed.report.to_json())
        shown = json.loads(text)
        assert shown["schema"] == "sakshi.probe/1"
        assert {check["name"] for check in shown["checks"]} == set(QUESTIONS)
        assert {check["verdict"] for check in shown["checks"]} <= {"ok", "differs", "not_offered", "not_tried"}
        assert SECRET not in text
        assert "limit=50" not in text
        assert all(one["body_sha256"] for one in shown["exchanges"])


async def test_a_suggested_diff_is_of_the_file_and_leaves_one_that_parses(tmp_path: Path):
    lies = [Told("observe", "terminal_then_running"), Told("create", "forget_token"), Told("observe", "unknown_state", nth=2)]
    async with probing(REPORTS, tmp_path, lies, polls=3) as probed:
        (tmp_path / "suggested.diff").write_text(probed.report.diff)
        applied = await asyncio.create_subprocess_exec("git", "apply", "suggested.diff", cwd=tmp_path)
        assert await applied.wait() == 0
        mended = parse(tmp_path / "sim.reports.create.yaml").document
    assert isinstance(mended, dict)
    assert mended["create"]["token"] == "none"  # pyright: ignore
    assert mended["observe"]["terminal_is_final"] is False  # pyright: ignore
    assert mended["observe"]["states"][-1] == {"when": {"body.state": "percolating"}, "is": "?"}  # pyright: ignore


async def test_what_is_verified_beside_what_is_stated_is_suggested(tmp_path: Path):
    async with probing(REPORTS, tmp_path, changes={"collect": {"verify": {"sha256": None, "required": None}}}) as probed:
        assert probed.differs == set()
        assert "observed.body.checksum" in probed.report.diff


async def test_hostile_words_of_a_provider_are_bounded_and_inert(tmp_path: Path):
    state = {"state": "\u202e" + "x" * 5000 + "\n[red]"}
    async with probing(REPORTS, tmp_path, [Told("observe", "unknown_state", state, nth=2)]) as probed:
        from adapters.showing.probing import probe_text

        text = probe_text(probed.report.to_json())
        assert "\u202e" not in text
        assert max(len(check.did) for check in probed.report.findings.checks.values()) <= 700
