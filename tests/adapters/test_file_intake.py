"""Big inputs are taken in whole, counted and within bounds, or not at all, and nothing is left behind."""

import asyncio
import hashlib
import json
import os
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.file_intake import PIECE, Intake, opened, taken_in
from adapters.result_store import ObstoreResults
from domain.contract import Contract
from domain.errors import BadInput, NotFound, Tampered
from domain.evidence import FileFacts, file_key
from tests.domain.sample_contract import sample
from tests.installation import WITHIN

LINES = b'{"a": 1}\n\n{"a": 2}\n'
MIB = 1024 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def store(root: Path) -> ObstoreResults:
    return ObstoreResults(root)


def contract(media: str = "application/jsonl", max_bytes: str = "1MiB", **more: Any) -> Contract:
    rows = {"type": "array"}
    return sample(files={"requests": {"media": media, "max_bytes": max_bytes, **more}}, input__properties__rows=rows)


async def take(
    store: ObstoreResults, chosen: Contract, path: Path | None = None, *, keep: bool = True, **input: Any
) -> dict[str, FileFacts]:
    paths = {} if path is None else {"requests": path}
    async with taken_in(store, chosen, tenant="t1", input={"name": "x", **input}, target={}, paths=paths, stored={}) as intake:
        if keep:
            await intake.keep()
        return intake.files


def written(folder: Path, data: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def left(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


async def whole(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@pytest.mark.parametrize(
    ("media", "data", "records"),
    [
        ("application/jsonl", LINES, 2),
        ("text/csv; charset=utf-8", b'id,name\r\n1,"two\r\nlines"\r\n', 1),
        ("application/json", b"[1, 2, 3]", 3),
        ("application/json", b'{"not": "countable"}', None),
        ("application/octet-stream", bytes(range(256)), None),
        ("application/jsonl", b"", 0),
    ],
)
async def test_a_file_stands_in_the_store_by_its_digest_with_its_records_counted(
    store: ObstoreResults, root: Path, tmp_path: Path, media: str, data: bytes, records: int | None
) -> None:
    facts = (await take(store, contract(media), written(tmp_path, data)))["requests"]
    digest = hashlib.sha256(data).hexdigest()
    assert facts == FileFacts(sha256=digest, bytes=len(data), media=media, records=records)
    assert left(root) == [f"t1/@files/{digest}"]
    assert await whole(store.read(file_key("t1", digest))) == data
    assert (root / f"t1/@files/{digest}").stat().st_mode & 0o777 == 0o600


async def test_what_is_not_kept_leaves_nothing(store: ObstoreResults, root: Path, tmp_path: Path) -> None:
    await take(store, contract(), written(tmp_path, LINES), keep=False)
    assert left(root) == []


async def test_the_same_file_twice_is_one_object(store: ObstoreResults, root: Path, tmp_path: Path) -> None:
    path = written(tmp_path, LINES)
    first, second = await asyncio.gather(take(store, contract(), path), take(store, contract(), path))
    assert first == second
    assert len(left(root)) == 1


async def test_a_list_of_the_input_becomes_the_file(store: ObstoreResults, root: Path) -> None:
    chosen = contract(**{"from": "input.rows"})
    facts = (await take(store, chosen, rows=[{"b": 1, "a": 2}, {}]))["requests"]
    assert await whole(store.read(file_key("t1", facts.sha256))) == b'{"b":1,"a":2}\n{}\n'
    assert facts.records == 2


@pytest.mark.parametrize(
    ("chosen", "data", "words"),
    [
        (contract(max_bytes="8B"), LINES, "more than 8 bytes"),
        (contract(max_records=1), LINES, "2 records"),
        (contract(media="application/json", max_records=1), b"{}", "no records that can be counted"),
        (contract(), b'{"a": 1}\n{broken\n', "line 2"),
        (contract(), b"\xff\n", "not UTF-8"),
        (contract("text/csv"), b"a,b\r\n1\r\n", "line 2"),
        (contract("application/json"), b"[1,", "not application/json"),
    ],
)
async def test_what_breaks_a_bound_or_is_not_what_it_claims_is_refused_and_leaves_nothing(
    store: ObstoreResults, root: Path, tmp_path: Path, chosen: Contract, data: bytes, words: str
) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        await take(store, chosen, written(tmp_path, data))
    assert "requests" in refused.value.message
    assert left(root) == []


async def test_what_the_input_makes_is_bounded_like_any_file(store: ObstoreResults, root: Path) -> None:
    with pytest.raises(BadInput, match="3 records"):
        await take(store, contract(max_records=2, **{"from": "input.rows"}), rows=[1, 2, 3])
    with pytest.raises(BadInput, match="more than 4 bytes"):
        await take(store, contract(max_bytes="4B", **{"from": "input.rows"}), rows=[1, 2, 3])
    assert left(root) == []


async def test_a_file_that_is_missing_given_twice_or_not_known_is_refused(store: ObstoreResults, root: Path, tmp_path: Path) -> None:
    path = written(tmp_path, LINES)
    with pytest.raises(BadInput, match=r"needs the file requests$") as missing:
        await take(store, contract())
    assert missing.value.hint == "--file requests=PATH"
    with pytest.raises(BadInput, match="in the input"):
        await take(store, contract(**{"from": "input.rows"}))
    with pytest.raises(BadInput, match="given twice"):
        await take(store, contract(**{"from": "input.rows"}), path, rows=[1])
    with pytest.raises(BadInput, match="takes no file requests") as unknown:
        await take(store, sample(), path)
    assert unknown.value.hint == "it takes none"
    assert left(root) == []


async def test_what_is_no_regular_file_or_cannot_be_read_is_said_at_once(store: ObstoreResults, root: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    cases = [
        (tmp_path / "pipe", "regular file"),
        (tmp_path, "regular file"),
        (Path("/dev/zero"), "regular file"),
        (tmp_path / "nowhere", "No such file"),
        (tmp_path / "round", "symbolic links"),
        (Path("\0"), "not a path"),
    ]
    for path, words in cases:
        async with asyncio.timeout(WITHIN):
            with pytest.raises(BadInput, match=words):
                await take(store, contract(), path)
    assert left(root) == []


@pytest.mark.parametrize("change", ["grows", "shrinks", "is rewritten"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, change: str) -> None:
    path = written(tmp_path, b"x" * 10)
    with opened("requests", path) as source:
        assert source.read(4) == b"xxxx"
        if change == "is rewritten":
            path.write_bytes(b"y" * 10)
            os.utime(path, ns=(1, 1))
        else:
            os.truncate(path, 12 if change == "grows" else 8)
        with pytest.raises(BadInput, match="changed while it was read"):
            list(iter(lambda: source.read(4), b""))


def test_a_disk_that_fails_while_a_file_is_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(handle: int, most: int) -> bytes:
        raise OSError(5, "Input/output error")

    with opened("requests", written(tmp_path, LINES)) as source:
        monkeypatch.setattr(os, "read", fails)
        with pytest.raises(BadInput, match="Input/output error"):
            source.read(4)


async def test_what_stands_under_the_name_already_and_is_something_else_is_found_before_it_is_relied_on(
    store: ObstoreResults, root: Path, tmp_path: Path
) -> None:
    facts = (await take(store, contract(), written(tmp_path, LINES)))["requests"]
    kept = root / file_key("t1", facts.sha256)
    kept.write_bytes(LINES.replace(b"2", b"3"))
    with pytest.raises(Tampered, match=facts.sha256):
        await take(store, contract(), written(tmp_path, LINES))


async def test_files_of_an_earlier_operation_are_looked_at_before_they_are_named_again(
    store: ObstoreResults, root: Path, tmp_path: Path
) -> None:
    stored = await take(store, contract(), written(tmp_path, LINES))
    async with taken_in(store, contract(), tenant="t1", input={"name": "x"}, target={}, paths={}, stored=stored) as intake:
        await intake.keep()
        assert intake.files == stored
        (root / file_key("t1", stored["requests"].sha256)).unlink()
        with pytest.raises(NotFound, match="requests is no longer in the result store"):
            await intake.keep()


async def test_what_a_crash_left_staged_is_forgotten_a_day_later(store: ObstoreResults, root: Path, tmp_path: Path) -> None:
    for name in ("old", "new"):
        folder = root / ".staging/@files" / name
        folder.mkdir(parents=True)
        (folder / "requests.part-1#1").write_bytes(LINES)
    os.utime(root / ".staging/@files/old", (1, 1))
    await take(store, contract(), written(tmp_path, LINES), keep=False)
    assert left(root) == [".staging/@files/new/requests.part-1#1"]


async def test_two_hundred_mebibytes_are_taken_in_and_never_held(store: ObstoreResults, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(200 * MIB)
    intake = Intake(store, contract("application/octet-stream", "1GiB"), "t1", {})
    tracemalloc.start()
    try:
        with opened("requests", path) as source:
            await intake.take("requests", source)
        await intake.keep()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    await intake.forget()
    assert intake.files["requests"].bytes == 200 * MIB
    # On a slow disk several pieces are on their way at once: a bounded number of them.
    assert peak < 64 * PIECE
    assert len(left(root)) == 1


def test_the_facts_of_a_file_are_json_that_an_entry_can_hold() -> None:
    facts = FileFacts(sha256="a", bytes=1, media="a/b")
    assert json.loads(facts.model_dump_json(exclude_none=True)) == {"sha256": "a", "bytes": 1, "media": "a/b"}
