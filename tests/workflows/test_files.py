"""Big inputs: stored before anything is opened, sent as they were stored, the same on every sending, or not sent at all."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.sealing import request_facts, sealed
from domain.contract import Contract
from domain.errors import BadInput, RenderError
from domain.evidence import Intent, file_key
from domain.exchange import Request, StoredPart
from domain.fingerprint import sha256_hex
from tests.workflows.stage import REPORT, Stage, stage, variant

DATA = json.dumps(REPORT).encode()
FILES = {"report": DATA}


def filed(*, pace: str = "200ms", **create: Any) -> Contract:
    """The sample with its body in a file."""
    request = {"json": None, "file": "report"} | create
    return variant(
        "sim.reports.create",
        {
            "files": {"report": {"media": "application/json", "max_bytes": "1MiB"}},
            "effect": {"summary": "Render what ${files.report.bytes} bytes ask for"},
            "create": {"request": request},
            "observe": {"poll": {"first": pace, "cap": "60s"}},
        },
    )


def lost(on: Stage, data: bytes = DATA) -> None:
    (on.folder / "results" / file_key("t1", sha256_hex(data))).unlink()


async def intent(on: Stage) -> Intent:
    found = (await on.entries("intent"))[0].evidence
    assert isinstance(found, Intent)
    return found


async def test_a_file_is_the_body_and_stands_in_entry_0_in_the_fingerprint_and_in_the_effect(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        assert (await (await on.start(filed(), files=FILES)).result()).state == "succeeded"
        opened = (await on.standing()).opened
        assert opened.files["report"].sha256 == sha256_hex(DATA)
        assert opened.effect["summary"] == f"Render what {len(DATA)} bytes ask for"
        facts = (await intent(on)).request
        assert facts is not None
        assert (facts.body_sha256, facts.body_bytes) == (sha256_hex(DATA), len(DATA))
        [asked] = on.books.requests("create")
        assert asked.body_digest == sha256_hex(DATA)
        other = await on.open(filed(), files={"report": DATA + b" "}, stream="op-2")
        assert other.standing.opened.fingerprint != opened.fingerprint
        await on.verified()


async def test_a_lost_answer_is_followed_by_the_same_bytes_out_of_the_store(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        assert (await (await on.start(filed(), files=FILES)).result()).state == "succeeded"
        first, second = on.books.requests("create")
        assert first.body_digest == second.body_digest == sha256_hex(DATA)
        assert len(on.books.jobs()) == 1
        await on.verified()


async def test_a_multipart_body_is_the_same_on_every_sending_boundary_included(tmp_path: Path) -> None:
    body = {"purpose": "batch", "up": {"file": "report", "filename": "report.json"}}
    async with stage(tmp_path) as on:
        on.books.lie("create", "status_503", nth=1)
        on.books.lie("create", "reject", nth=2)
        await (await on.start(filed(file=None, multipart=body), files=FILES)).result()
        first, second = on.books.requests("create")
        facts = (await intent(on)).request
        assert facts is not None
        assert first.body_digest == second.body_digest == facts.body_sha256
        assert first.body_size == facts.body_bytes > len(DATA)
        await on.verified()


async def test_a_file_that_was_erased_before_the_first_sending_is_failed_and_nothing_was_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        record = await on.open(filed(), files=FILES)
        lost(on)
        assert (await (await on.tell(record)).result()).state == "failed"
        standing = await on.standing()
        assert "no longer in the result store; nothing was sent" in str(standing.why)
        assert standing.effect == "none"
        assert on.books.requests("create") == []
        await on.verified()


async def test_a_file_that_is_another_than_was_stored_is_not_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        record = await on.open(filed(), files=FILES)
        (on.folder / "results" / file_key("t1", sha256_hex(DATA))).write_bytes(DATA.replace(b"a-1", b"a-2"))
        assert (await (await on.tell(record)).result()).state == "failed"
        assert "is not what was stored" in str((await on.standing()).why)
        assert on.books.requests("create") == []


async def test_a_file_that_is_lost_after_an_answer_that_was_lost_leaves_it_to_a_human(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "drop_after_accepting", nth=1)
        await on.start(filed(pace="50s"), files=FILES)
        await on.soon(lambda one: one.standing.attempts == 1 and one.standing.open_attempt is None)
        lost(on)
        record = await on.until(lambda one: one.standing.attention)
        assert record.standing.state == "create_unknown"
        assert len(on.books.requests("create")) == 1
        assert any("no longer in the result store" in str(entry.body) for entry in await on.entries("exchange"))
        await on.verified()


async def test_what_a_list_of_the_input_makes_is_sent_as_a_file(tmp_path: Path) -> None:
    contract = variant(
        "sim.reports.create",
        {
            "files": {"rows": {"media": "text/csv", "max_bytes": "1MiB", "max_records": 2, "from": "[{b: input.account, a: input.rows}]"}},
            "create": {"request": {"json": None, "file": "rows"}},
        },
    )
    async with stage(tmp_path) as on:
        on.books.lie("create", "reject", nth=1)
        await (await on.start(contract)).result()
        [asked] = on.books.requests("create")
        assert asked.body_digest == sha256_hex(b"b,a\r\na-1,5\r\n")
        assert (await on.standing()).opened.files["rows"].records == 1


async def test_a_body_that_is_read_through_has_the_digest_of_the_whole(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        await on.open(filed(), files=FILES)
        part = StoredPart(file_key("t1", sha256_hex(DATA)), len(DATA), sha256_hex(DATA))
        asked = Request("POST", "https://x.example/", parts=(b"head", part, b"tail"))
        with pytest.raises(ValueError, match="sealed before"):
            request_facts(asked)
        whole = await sealed(on.world, asked)
        assert whole.body_sha256 == sha256_hex(b"head" + DATA + b"tail")
        assert await sealed(on.world, whole) == whole
        facts, payload = request_facts(whole)
        assert (facts.body_sha256, facts.body_bytes) == (whole.body_sha256, len(DATA) + 8)
        assert Request.from_json(json.loads(payload)) == whole
        with pytest.raises(RenderError, match="not the one that was recorded"):
            await sealed(on.world, replace(whole, whole_sha256="0" * 64))
        plain = Request("GET", "https://x.example/")
        assert await sealed(on.world, plain) is plain


async def test_a_story_that_gives_no_file_where_one_is_due_opens_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        with pytest.raises(BadInput, match="needs the file report"):
            await on.open(filed())
