"""What an escalation tells, for each state that waits for a human: made by real operations against the lying simulator."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.escalation import Escalated, dossier_of, escalate
from adapters.verifying import verified
from domain.errors import BadInput
from domain.evidence import Json
from tests.workflows.losing import one_clock
from tests.workflows.stage import REPORT, SECRET, Stage, stage, variant

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
KEEP: dict[str, Json] = {"record": {"bodies": "keep"}}
ANOTHER: dict[str, Json] = {"observe": {"same": {"body.job_id": "another"}}}
EVERY_MINUTE: dict[str, Json] = {"observe": {"poll": {"first": "1m", "cap": "10m"}}}


async def create_unknown(on: Stage) -> None:
    on.books.lie("create", "drop_after_accepting")
    await on.start(variant("sim.plain.create", KEEP))
    await on.until_state("create_unknown")


async def contract_violation(on: Stage) -> None:
    await on.start(variant("sim.reports.create", KEEP | ANOTHER))
    await on.until_state("contract_violation")


async def result_timed_out(on: Stage) -> None:
    await on.start(variant("sim.reports.create", KEEP | EVERY_MINUTE), {**REPORT, "polls": 100_000})
    await on.until_state("result_timed_out", step=300.0)


async def cancellation_unconfirmed(on: Stage) -> None:
    on.books.lie("cancel", "cancel_acknowledged_and_ignored")
    await on.start(variant("sim.reports.create", KEEP | EVERY_MINUTE), {**REPORT, "polls": 100_000})
    await on.until_state("observing")
    await on.cancel()
    await on.until_state("cancellation_unconfirmed", step=30.0)


async def searched(on: Stage) -> None:
    one_clock(on)
    on.books.lie("create", "drop_after_accepting")
    await on.start(variant("sim.searched.create", KEEP))
    await on.until(lambda one: one.standing.attention)


async def refused(on: Stage) -> None:
    on.books.lie("create", "reject")
    await (await on.start(variant("sim.reports.create", KEEP))).result()


async def remote_failure(on: Stage) -> None:
    await (await on.start(variant("sim.reports.create", KEEP), {**REPORT, "fail": True})).result()


async def result_unavailable(on: Stage) -> None:
    on.books.lie("collect", "result_expired")
    await on.start(variant("sim.reports.create", KEEP))
    await on.until_state("result_unavailable")


async def job_gone(on: Stage) -> None:
    on.books.lie("observe", "job_gone", nth=3)
    await on.start(variant("sim.reports.create", KEEP), {**REPORT, "polls": 9})
    await on.until_state("result_unavailable")


async def result_validation_failed(on: Stage) -> None:
    on.books.lie("collect", "wrong_result_bytes", times=2)
    await on.start(variant("sim.reports.create", KEEP))
    await on.until_state("result_validation_failed")


async def outcome_undecided(on: Stage) -> None:
    states: list[Json] = [
        {"when": {"body.state": "succeeded"}, "is": "partial"},
        {"when": {"body.state": ["queued", "running"]}, "is": "running"},
    ]
    changes: dict[str, Json] = {"observe": {"states": states}, "collect": {"partial": "attention"}}
    await on.start(variant("sim.reports.create", KEEP | changes))
    await on.until_state("outcome_undecided")


CASES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    one.__name__: one
    for one in (
        create_unknown, searched, refused, remote_failure, contract_violation, result_timed_out, cancellation_unconfirmed,
        result_unavailable, job_gone, result_validation_failed, outcome_undecided,
    )
}  # fmt: skip


async def escalated(on: Stage, folder: Path, **more: Any) -> Escalated:
    return await escalate(await dossier_of(on.ledger, on.ledger_books, "op-1", AT), on.results, folder, **more)


TOLD: dict[str, tuple[str, ...]] = {
    "create_unknown": (
        "have no answer that shows whether it was carried out", "Did you receive the request", "the connection broke before an answer",
        "Whether the create request of attempt 1 (generation 1) was carried out", "(`adopt`)", "our reference",
        "Z, sent within 5 s of that or not at all",
    ),
    "searched": (
        "Was one of the jobs under *Jobs that may be this one* made by it?",
        "## Jobs that may be this one", "We looked for the job in exchange",
        "(`retry_create`)",
    ),
    "refused": ("You refused our request, and we know of no job that it made.", "Why did you refuse it", "`we do not do this`"),
    "remote_failure": ("You showed the job as failed.", "Why did it fail", "`the report could not be rendered`"),
    "contract_violation": (
        "contradict each other", "the status shows something else than was asked for", "Which of these jobs do you charge",
        '`{"body.job_id": "another"}`',
    ),
    "result_timed_out": (
        "did not end before our deadline", "still being worked on?", "`running`", "Our deadline for the job to end was", "(`resume`)",
    ),
    "cancellation_unconfirmed": (
        "no status that we read since then shows it cancelled", "Was job `job_", "The cancel was sent in exchange", "`no longer needed`",
        "The cancel was acknowledged; whether the job was ended by it",
    ),
    "result_unavailable": (
        "its result can't be fetched", "`the job has ended, and the result cannot be had`",
        "until when can it be fetched?", "HTTP 410", "`the result has expired`", "(`recollect`)",
    ),
    "job_gone": (
        "no longer showed it to us", "In what state is it, or how did it end?", "`no job has this id`", "named the state `running`",
        "HTTP 404: no longer there", "`the provider no longer knows the job: no job has this id`",
    ),
    "result_validation_failed": (
        "is not what was said of it", "which is right", "HTTP 200: not as promised", "sha256: expected", "What was delivered: ",
    ),
    "outcome_undecided": (
        "does not tell whether that is success", "succeed as a whole?", "in our words: `partial`", "done in part only", "(`accept failed`)",
    ),
}  # fmt: skip
FILES = {"README.md", "timeline.md", "exchanges.json", "chain.jsonl", "manifest.json"}


@pytest.mark.parametrize("case", CASES)
async def test_each_state_that_waits_tells_what_happened_and_what_is_asked_and_holds_no_secret(tmp_path: Path, case: str) -> None:
    async with stage(tmp_path) as on:
        await CASES[case](on)
        written = await escalated(on, tmp_path / "out")
        page = (tmp_path / "out" / "README.md").read_text()
        standing = await on.standing()
        for words in (*TOLD[case], "Render a", standing.opened.trace_id, "What we ask of you", on.provider.url):
            assert words in page, words
        if standing.job is not None:
            assert f"Job id at your side: `{standing.job['id']}`" in page
        for job in on.books.jobs():
            assert job.token is None or job.token in page, "support finds the job by its token"
        assert written.faults == ()
        everything = list(files_of(tmp_path / "out").values())
        with zipfile.ZipFile(written.zip) as packed:
            everything += [packed.read(name) for name in packed.namelist()]
        assert not any(SECRET.encode() in data for data in everything)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_folder_and_zip_hold_the_same_files_for_their_owner_only_and_the_manifest_has_their_digests(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await result_validation_failed(on)
        written = await escalated(on, tmp_path / "out")
        files = files_of(tmp_path / "out")
        assert {name for name in files if "/" not in name} == FILES
        assert set(files) == set(written.files)
        with zipfile.ZipFile(written.zip) as packed:
            assert {name: packed.read(name) for name in packed.namelist()} == files
        manifest = json.loads(files.pop("manifest.json"))
        assert manifest["files"] == {name: {"sha256": sha(data), "bytes": len(data)} for name, data in files.items()}
        record = await on.ledger.record("op-1")
        assert manifest["head"] == {"seq": record.seq, "hash": record.hash}
        made = [tmp_path / "out" / name for name in written.files] + [written.zip]
        assert {path.stat().st_mode & 0o777 for path in made} == {0o600}
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out", tmp_path / "out" / "bodies")} == {0o700}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def test_the_check_that_the_page_shows_finds_a_changed_entry_and_a_changed_file(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await create_unknown(on)
        await escalated(on, tmp_path / "out")
    check = (tmp_path / "out" / "README.md").read_text().split("```python\n")[1].split("```")[0]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-I", "-c", check], cwd=tmp_path / "out", capture_output=True, text=True, check=False)

    assert (run().returncode, run().stdout) == (0, "whole\n")
    chain, manifest = tmp_path / "out" / "chain.jsonl", tmp_path / "out" / "manifest.json"
    kept = chain.read_text()
    chain.write_text(kept.replace("broken", "bright"))
    assert "chain.jsonl" in run().stderr
    told = json.loads(manifest.read_text())
    told["files"]["chain.jsonl"]["sha256"] = sha(chain.read_bytes())
    manifest.write_text(json.dumps(told))
    assert "AssertionError: 5" in run().stderr
    chain.write_text("".join(kept.splitlines(keepends=True)[:-1]))
    told["files"]["chain.jsonl"]["sha256"] = sha(chain.read_bytes())
    manifest.write_text(json.dumps(told))
    assert "the end was cut" in run().stderr


async def test_the_same_record_gives_the_same_files_but_for_the_time(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await job_gone(on)
        first = await escalated(on, tmp_path / "one" / "out")
        second = await escalated(on, tmp_path / "two" / "out")
        assert files_of(first.folder) == files_of(second.folder)
        assert first.zip.read_bytes() == second.zip.read_bytes()
        later = replace(await dossier_of(on.ledger, on.ledger_books, "op-1", AT), made_at=datetime(2027, 1, 1, tzinfo=UTC))
        third = files_of((await escalate(later, on.results, tmp_path / "three")).folder)
        differ = {name for name, data in files_of(first.folder).items() if third[name] != data}
        assert differ == {"README.md", "manifest.json"}


async def test_bodies_are_there_only_where_the_contract_keeps_them_and_are_the_answers_byte_for_byte(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await result_validation_failed(on)
        await escalated(on, tmp_path / "out")
        listed = json.loads((tmp_path / "out" / "exchanges.json").read_text())["exchanges"]
        bodies = {one["call"]: one["answer"]["body"] for one in listed}
        assert bodies["collect"]["stated_type"] == "text/csv"
        delivered = (tmp_path / "out" / bodies["collect"]["file"]).read_bytes()
        assert sha(delivered) == bodies["collect"]["sha256"]
        assert delivered.startswith(b"line,account,day,amount")
        status = json.loads((tmp_path / "out" / bodies["status"]["file"]).read_bytes())
        assert status["state"] == "succeeded"
        assert all(name.endswith(".bin") for name in os.listdir(tmp_path / "out" / "bodies"))
    async with stage(fresh(tmp_path)) as on:
        on.books.lie("collect", "result_expired")
        await on.start("sim.reports.create")
        await on.until_state("result_unavailable")
        await escalated(on, tmp_path / "digests")
        assert set(files_of(tmp_path / "digests")) == FILES
        assert "the contract keeps digests of answers, not their bodies" in (tmp_path / "digests" / "README.md").read_text()
        assert not list((on.folder / "results").rglob("*.bin"))


def fresh(folder: Path) -> Path:
    made = folder / "another"
    made.mkdir()
    return made


async def test_a_kept_body_that_is_missing_or_altered_is_told_by_verify_and_by_escalate_and_is_not_handed_out(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await result_unavailable(on)

        async def faults() -> list[str]:
            item = await verified(on.ledger, on.ledger_books, await on.ledger_books.verify("op-1"), results=on.results)
            return [str(fault["what"]) for fault in cast("list[dict[str, Json]]", item["faults"])]

        assert await faults() == []
        kept = sorted((on.folder / "results" / "t1" / "op-1").iterdir())
        assert len(kept) > 2
        kept[0].write_bytes(b"another body")
        kept[1].unlink()
        told = {f"the kept body {kept[0].name[:12]} is altered", f"the kept body {kept[1].name[:12]} is missing"}
        assert set(await faults()) == told
        written = await escalated(on, tmp_path / "out")
        assert set(written.faults) == told
        assert not {f"bodies/{kept[0].name}.bin", f"bodies/{kept[1].name}.bin"} & set(written.files)
        assert "**Not as recorded:" in (tmp_path / "out" / "README.md").read_text()


async def test_a_result_store_that_fails_costs_the_body_and_never_the_record(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        (on.folder / "results" / "t1").write_text("in the way of every kept body")
        on.books.lie("create", "reject")
        await on.start(variant("sim.reports.create", KEEP))
        await on.until_state("failed")
        (answer,) = await on.entries("exchange")
        assert "body_kept" not in cast("dict[str, Json]", answer.body["http"])
        written = await escalated(on, tmp_path / "out")
        assert written.faults == ()


async def test_nothing_is_replaced_unless_asked_and_no_link_is_followed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await create_unknown(on)
        out = tmp_path / "out"
        await escalated(on, out)
        with pytest.raises(BadInput, match="is there already"):
            await escalated(on, out)
        stale = out / "bodies" / f"{'0' * 64}.bin"
        stale.parent.mkdir()
        stale.write_bytes(b"of an earlier escalation")
        mine, elsewhere = out / "bodies" / "mine.txt", tmp_path / "elsewhere"
        mine.write_text("not ours to remove")
        elsewhere.write_text("untouched")
        (out / "README.md").unlink()
        (out / "README.md").symlink_to(elsewhere)
        await escalated(on, out, force=True)
        assert (stale.exists(), mine.exists()) == (False, True)
        assert elsewhere.read_text() == "untouched"
        assert not (out / "README.md").is_symlink()
        (tmp_path / "link").symlink_to(out)
        with pytest.raises(BadInput, match="link"):
            await escalated(on, tmp_path / "link", force=True)
        with pytest.raises(BadInput, match="no name for a folder"):
            await escalated(on, Path("."))
        (tmp_path / "taken.zip").write_text("someone's")
        with pytest.raises(BadInput, match="is there already"):
            await escalated(on, tmp_path / "taken")


async def test_what_a_provider_wrote_acts_on_nothing(tmp_path: Path) -> None:
    nasty = "](javascript:alert(1)) <img src=x onerror=alert(1)> `whoami` | cell | # heading \u202etxt.exe\x1b[31m https://evil.example"
    async with stage(tmp_path) as on:
        on.books.lie("create", "reject")
        await on.start("sim.reports.create", {**REPORT, "account": nasty[:64]})
        await on.until_state("failed")
        await escalated(on, tmp_path / "out")
        for name in ("README.md", "timeline.md"):
            text = (tmp_path / "out" / name).read_text()
            prose = text.split("```python")[0]
            for line in prose.splitlines():
                assert line.count("`") % 2 == 0, line
                between = "".join(line.split("`")[::2])
                assert not any(sign in between for sign in ("<", "javascript", "http:", "https:", "onerror")), line
            assert "\u202e" not in text
        raw = (tmp_path / "out" / "exchanges.json").read_bytes()
        assert all(byte == 10 or 32 <= byte < 127 for byte in raw)


async def test_a_broken_record_is_written_down_as_broken(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await create_unknown(on)
        dossier = await dossier_of(on.ledger, on.ledger_books, "op-1", AT)
        written = await escalate(replace(dossier, fault="entry 3: hash differs from the stored bytes"), on.results, tmp_path / "out")
        assert written.faults == ("entry 3: hash differs from the stored bytes",)
        assert "**The record does not verify: `entry 3: hash differs" in (tmp_path / "out" / "README.md").read_text()


async def test_an_operation_of_which_nothing_was_sent_asks_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.open("sim.reports.create")
        await escalated(on, tmp_path / "out")
        page = (tmp_path / "out" / "README.md").read_text()
        assert "Nothing at present: this page informs." in page
        assert "nothing of this operation reached the provider" in page


async def test_nothing_is_asked_about_what_the_page_does_not_show(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await outcome_undecided(on)
        await escalated(on, tmp_path / "out")
        assert "Do the counts" not in (tmp_path / "out" / "README.md").read_text()


async def test_a_contradiction_is_told_on_its_line_of_the_timeline(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await contract_violation(on)
        await escalated(on, tmp_path / "out")
        line = next(one for one in (tmp_path / "out" / "timeline.md").read_text().splitlines() if "→ contract_violation" in one)
        assert "the status shows something else than was asked for: body.job_id is job_" in line
        assert "where another is due" in line


async def test_an_attempt_without_an_outcome_is_told_as_one_that_may_be_under_way(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.intend_and_die()
        await escalated(on, tmp_path / "out")
        page = (tmp_path / "out" / "README.md").read_text()
        assert "no outcome yet" in page
        assert "Whether the create request of attempt 1 (generation 1) was carried out" in page
