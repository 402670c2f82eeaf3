"""The result store keeps its port's promise, in a folder and in memory, and gives out only what was recorded."""

import asyncio
import hashlib
import io
import json
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from activities.ports import ResultStore, staged_below
from adapters.result_store import ObstoreResults, write_out
from domain.errors import BadInput, NotFound, Tampered, Unreachable
from domain.evidence import Check, Output

DATA = b"id,name\n1,ana\n" * 1000
SHA = hashlib.sha256(DATA).hexdigest()
KEY = f"local/op-1/{SHA}"
STAGING = "op-1/7"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture(params=["folder", "file-url", "memory"])
def store(request: pytest.FixtureRequest, root: Path) -> ResultStore:
    return ObstoreResults({"folder": root, "file-url": root.as_uri(), "memory": "memory:///"}[request.param])


async def seal(store: ResultStore, staging: str = STAGING, data: bytes = DATA) -> None:
    async with store.stage(staging) as staged:
        for start in range(0, len(data), 1000):
            await staged.write(data[start : start + 1000])
        await staged.seal()


async def publish(store: ResultStore, data: bytes, operation: str = "op-1", **more: object) -> Output:
    digest = hashlib.sha256(data).hexdigest()
    key = f"local/{operation}/{digest}"
    await seal(store, f"{operation}/1", data)
    await store.publish(f"{operation}/1", key)
    return Output.model_validate({"name": "output", "key": key, "sha256": digest, "size": len(data)} | more)


async def whole(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def files_below(folder: Path) -> list[str]:
    """Nothing where there is no folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


async def test_a_sealed_object_is_found_and_published(store: ResultStore) -> None:
    assert await store.staged_size(STAGING) is None
    await seal(store)
    assert await store.staged_size(STAGING) == len(DATA)
    assert await whole(store.read_staged(STAGING)) == DATA
    with pytest.raises(NotFound):
        await whole(store.read(KEY))
    await store.publish(STAGING, KEY)
    assert await whole(store.read(KEY)) == DATA
    assert await store.staged_size(STAGING) == len(DATA)
    await store.discard(STAGING)
    assert await store.staged_size(STAGING) is None
    assert await whole(store.read(KEY)) == DATA


async def test_what_is_sealed_remembers_the_media_type_it_came_as(store: ResultStore) -> None:
    async with store.stage(STAGING) as staged:
        await staged.write(DATA)
        await staged.seal("text/csv; charset=utf-8")
    assert await store.staged_media(STAGING) == "text/csv; charset=utf-8"
    await store.discard(STAGING)
    assert await store.staged_media(STAGING) is None
    await seal(store)
    assert await store.staged_media(STAGING) is None


async def test_publishing_again_is_harmless(store: ResultStore) -> None:
    await seal(store)
    await store.publish(STAGING, KEY)
    await store.publish(STAGING, KEY)
    await seal(store)
    await store.publish(STAGING, KEY)
    assert await whole(store.read(KEY)) == DATA


async def test_publishing_what_was_never_staged_is_an_error(store: ResultStore) -> None:
    with pytest.raises(NotFound):
        await store.publish(STAGING, KEY)


async def test_discarding_forgets_what_is_staged_below_too_and_nothing_beside_it(store: ResultStore) -> None:
    below, deep = staged_below(STAGING, "a"), staged_below(staged_below(STAGING, "a"), "000001")
    beside = "op-1/70"
    for key in (STAGING, below, deep, beside):
        await seal(store, key)
    await store.discard(below)
    assert [await store.staged_size(key) for key in (STAGING, below, deep, beside)] == [len(DATA), None, None, len(DATA)]
    await seal(store, deep)
    await store.discard(STAGING)
    assert [await store.staged_size(key) for key in (STAGING, below, deep, beside)] == [None, None, None, len(DATA)]


async def test_discarding_forgets_and_is_harmless_again(store: ResultStore) -> None:
    await seal(store)
    await store.discard(STAGING)
    await store.discard(STAGING)
    assert await store.staged_size(STAGING) is None
    with pytest.raises(NotFound):
        await whole(store.read_staged(STAGING))


async def test_leaving_without_a_seal_leaves_nothing(store: ResultStore) -> None:
    async with store.stage(STAGING) as staged:
        await staged.write(DATA)
    assert await store.staged_size(STAGING) is None


async def test_an_error_while_writing_leaves_nothing_and_comes_through(store: ResultStore, root: Path) -> None:
    async def break_off() -> None:
        async with store.stage(STAGING) as staged:
            await staged.write(b"x" * 20_000_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await break_off()
    assert await store.staged_size(STAGING) is None
    assert files_below(root) == []


async def test_a_cancelled_write_leaves_nothing(store: ResultStore, root: Path) -> None:
    started = asyncio.Event()

    async def write() -> None:
        async with store.stage(STAGING) as staged:
            await staged.write(b"x" * 20_000_000)
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.staged_size(STAGING) is None
    assert files_below(root) == []


async def test_staging_again_replaces_what_was_there_once_it_is_sealed(store: ResultStore) -> None:
    await seal(store, data=b"old")
    async with store.stage(STAGING) as staged:
        await staged.write(b"new")
        assert await whole(store.read_staged(STAGING)) == b"old"
        await staged.seal()
    assert await whole(store.read_staged(STAGING)) == b"new"


async def test_an_empty_object_is_an_object(store: ResultStore) -> None:
    await seal(store, data=b"")
    assert await store.staged_size(STAGING) == 0
    key = f"local/op-1/{hashlib.sha256(b'').hexdigest()}"
    await store.publish(STAGING, key)
    assert await whole(store.read(key)) == b""


async def test_an_object_of_many_parts_comes_back_whole(store: ResultStore) -> None:
    data = os.urandom(1_000_000) * 33
    await seal(store, data=data)
    digest = hashlib.sha256()
    async for chunk in store.read_staged(STAGING):
        digest.update(chunk)
    assert digest.digest() == hashlib.sha256(data).digest()


def run_apart(body: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run the body of a coroutine with `store` over `root` in a process of its own."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    script = f"""import asyncio, os, resource, signal, sys
from adapters.result_store import ObstoreResults
async def main():
    store = ObstoreResults(sys.argv[1])
{lines}
asyncio.run(main())
"""
    command = [sys.executable, "-c", script, str(root)]
    return subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=False)


def test_a_large_object_is_not_held_in_memory(root: Path) -> None:
    body = """
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
async with store.stage("op/1") as staged:
    for _ in range(300):
        await staged.write(b"x" * 1_000_000)
    await staged.seal()
size = 0
async for part in store.read_staged("op/1"):
    size += len(part)
print(size, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    size, grown_mib = map(int, run_apart(body, root).stdout.split())
    assert size == 300_000_000
    assert grown_mib < 150


BAD_SEGMENTS = ["", ".", "..", ".staging", ".x", "a b", "a\\b", "a%2e", "a#1", "a\0", "a\n", "ä", "~", "x" * 201]


@pytest.mark.parametrize("bad", BAD_SEGMENTS)
async def test_a_key_with_a_segment_that_could_lead_elsewhere_is_refused(store: ResultStore, bad: str) -> None:
    for staging in (bad, f"{bad}/1", f"op/{bad}"):
        with pytest.raises(BadInput):
            await store.staged_size(staging)
        with pytest.raises(BadInput):
            await store.discard(staging)
        with pytest.raises(BadInput):
            await seal(store, staging)
    await seal(store)
    for key in (f"{bad}/op/{SHA}", f"local/{bad}/{SHA}", f"/local/op/{SHA}", f"local/op/{SHA}/", bad):
        with pytest.raises(BadInput):
            await store.publish(STAGING, key)
        with pytest.raises(BadInput):
            await whole(store.read(key))
    assert await store.staged_size(STAGING) == len(DATA)


@pytest.mark.parametrize("key", [SHA, f"op/{SHA}", f"a/b/c/{SHA}", "local/op/short", f"local/op/{SHA.upper()}", f"local/op/{SHA}x"])
async def test_a_result_key_is_tenant_operation_and_digest(store: ResultStore, key: str) -> None:
    with pytest.raises(BadInput):
        await whole(store.read(key))


async def test_ids_that_sakshi_makes_are_keys(store: ResultStore) -> None:
    operation = "run-1.12.acme.reports.create@3"
    output = await publish(store, DATA, operation)
    assert await whole(store.read(output.key)) == DATA


def modes_below(folder: Path, *, folders: bool) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir() == folders}


async def test_a_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    store = ObstoreResults(tmp_path)
    await publish(store, DATA)
    await seal(store)
    assert modes_below(tmp_path, folders=True) == {0o700}
    assert modes_below(tmp_path, folders=False) == {0o600}
    staged = [f".staging/{STAGING}", f".staging/{STAGING}.media"]
    assert [name for name in files_below(tmp_path) if STAGING in name] == staged


def test_a_folder_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ObstoreResults(tmp_path)
    assert modes_below(tmp_path, folders=True) == {0o700}


async def test_a_folder_keeps_nothing_of_what_is_done(root: Path) -> None:
    store = ObstoreResults(root)
    staging = "op-2/1"
    await seal(store, staging)
    await store.publish(staging, KEY)
    await store.discard(staging)
    assert files_below(root) == [KEY]
    assert list((root / ".staging").iterdir()) == []


async def test_killed_writers_leave_nothing_visible_little_on_the_disk_and_nothing_in_the_end(root: Path) -> None:
    body = """
async with store.stage("op-1/7") as staged:
    await staged.write(b"x" * 30_000_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    for _ in range(3):
        assert run_apart(body, root).returncode == -9
    store = ObstoreResults(root)
    assert await store.staged_size(STAGING) is None
    await seal(store)
    assert len([name for name in files_below(root) if ".part" in name]) == 1
    await store.discard(STAGING)
    assert files_below(root) == []


async def test_a_seal_that_outlives_its_writer_is_found(root: Path) -> None:
    body = """
async with store.stage("op-1/7") as staged:
    await staged.write(b"whole")
    await staged.seal()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_apart(body, root).returncode == -9
    store = ObstoreResults(root)
    assert await store.staged_size(STAGING) == 5
    assert await whole(store.read_staged(STAGING)) == b"whole"


async def test_a_folder_that_is_tidied_away_while_it_is_made_is_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObstoreResults(root)
    tidied: list[Path] = []

    def tidy_once(path: Path) -> None:
        # What another object of the operation does that is given up in this moment: the folder is empty still.
        if path.name == "op-1" and not tidied:
            tidied.append(path)
            (path / "first").rmdir()
            path.rmdir()
        os.close(os.open(path, os.O_RDONLY))

    monkeypatch.setattr("adapters.result_store._sync", tidy_once)
    async with store.stage("op-1/first/second") as staged:
        await staged.write(DATA)
        await staged.seal()
    assert tidied
    assert await store.staged_size("op-1/first/second") == len(DATA)


async def test_a_seal_syncs_bytes_before_it_gives_the_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool]] = []
    real = os.fsync

    def spy(handle: int) -> None:
        seen.append((os.readlink(f"/proc/self/fd/{handle}"), (root / ".staging" / STAGING).exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", spy)
    await seal(ObstoreResults(root))
    (part, named), folder = seen[-2:]
    assert part.startswith(str(root / ".staging" / f"{STAGING}.part-"))
    assert not named
    assert folder == (str(root / ".staging" / "op-1"), True)


async def test_a_folder_that_can_not_be_made_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BadInput):
        ObstoreResults(tmp_path / "file" / "results")


@pytest.mark.parametrize("url", ["nonsense://user:secret@host/x?key=secret", "://", "s3://"])
async def test_a_url_that_no_store_knows_is_bad_input_and_tells_no_secret(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        ObstoreResults(url)
    assert "secret" not in refused.value.message


async def test_a_store_that_fails_is_unreachable_in_our_words(root: Path) -> None:
    store = ObstoreResults(root)
    (root / "local" / "op-1" / SHA).mkdir(parents=True)
    await seal(store)
    with pytest.raises(Unreachable) as failed:
        await store.publish(STAGING, KEY)
    assert str(root) not in failed.value.message
    assert await store.staged_size(STAGING) == len(DATA)


# --- on the way out ---------------------------------------------------------------------------------------------------


async def test_outputs_are_written_under_our_names_with_a_manifest(store: ResultStore, tmp_path: Path) -> None:
    first = await publish(store, DATA, name="../../etc/passwd\u202e", media="text/csv", records=7)
    second = await publish(store, b"two", checks=(Check(check="sha256", verdict="not_offered"),))
    folder = tmp_path / "deep" / "out"
    assert await write_out(store, [first, second], folder) == ("output-001", "output-002", "manifest.json")
    assert (folder / "output-001").read_bytes() == DATA
    assert (folder / "output-002").read_bytes() == b"two"
    text = (folder / "manifest.json").read_text("ascii")
    listed = json.loads(text)
    assert listed["schema"] == "sakshi.manifest/1"
    assert [item["file"] for item in listed["outputs"]] == ["output-001", "output-002"]
    assert listed["outputs"][0]["name"] == "../../etc/passwd\u202e"
    assert (listed["outputs"][0]["sha256"], listed["outputs"][0]["size"], listed["outputs"][0]["records"]) == (SHA, len(DATA), 7)
    assert files_below(folder) == ["manifest.json", "output-001", "output-002"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("there", ["output-001", "output-002", "manifest.json"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "folder"])
async def test_what_is_there_is_not_replaced(store: ResultStore, tmp_path: Path, there: str, kind: str) -> None:
    outputs = [await publish(store, DATA), await publish(store, b"two")]
    folder = tmp_path / "out"
    folder.mkdir()
    _occupy(folder / there, kind, tmp_path / "elsewhere")
    before = files_below(folder)
    with pytest.raises(BadInput) as refused:
        await write_out(store, outputs, folder)
    assert there in refused.value.message
    assert "--force" in refused.value.hint
    assert files_below(folder) == before
    assert (tmp_path / "elsewhere").read_bytes() == b"precious" if kind == "link" else True


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
async def test_force_replaces_a_link_and_not_what_it_leads_to(store: ResultStore, tmp_path: Path, kind: str) -> None:
    output = await publish(store, DATA)
    folder = tmp_path / "out"
    folder.mkdir()
    _occupy(folder / "output-001", kind, tmp_path / "elsewhere")
    await write_out(store, [output], folder, force=True)
    assert (folder / "output-001").read_bytes() == DATA
    assert not (folder / "output-001").is_symlink()
    assert not (tmp_path / "elsewhere").exists() or (tmp_path / "elsewhere").read_bytes() == b"precious"
    await write_out(store, [output], folder, force=True)
    assert files_below(folder) == ["manifest.json", "output-001"]


def _occupy(path: Path, kind: str, elsewhere: Path) -> None:
    match kind:
        case "file":
            path.write_bytes(b"mine")
        case "folder":
            path.mkdir()
        case "link":
            elsewhere.write_bytes(b"precious")
            path.symlink_to(elsewhere)
        case _:
            path.symlink_to(elsewhere)


async def test_force_over_a_folder_fails_and_leaves_nothing(store: ResultStore, tmp_path: Path) -> None:
    output = await publish(store, DATA)
    folder = tmp_path / "out"
    (folder / "output-001").mkdir(parents=True)
    with pytest.raises(BadInput, match="output-001"):
        await write_out(store, [output], folder, force=True)
    assert files_below(folder) == []


async def test_a_file_that_comes_to_be_there_meanwhile_stays(store: ResultStore, tmp_path: Path) -> None:
    outputs = [await publish(store, DATA), await publish(store, b"two")]
    folder = tmp_path / "out"

    class Racing:
        def read(self, key: str) -> AsyncIterator[bytes]:
            (folder / "output-002").write_bytes(b"mine")
            return store.read(key)

    with pytest.raises(BadInput, match=r"output-002 is there already"):
        await write_out(_as_store(Racing()), outputs, folder)
    assert files_below(folder) == ["output-002"]
    assert (folder / "output-002").read_bytes() == b"mine"


def _as_store(reader: object) -> ResultStore:
    """Only what is read from."""
    return cast("ResultStore", reader)


async def test_a_link_is_not_taken_for_a_folder(store: ResultStore, tmp_path: Path) -> None:
    output = await publish(store, DATA)
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_bytes(b"")
    for where in ("out", "file"):
        with pytest.raises(BadInput, match="not a folder"):
            await write_out(store, [output], tmp_path / where)
    assert files_below(tmp_path / "real") == []


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a changed byte": lambda data: data[:-1] + b"X",
    "a cut end": lambda data: data[:-1],
    "bytes added": lambda data: data + b"more",
    "nothing left": lambda _: b"",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_an_object_that_was_tampered_with_is_not_given_out(root: Path, tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    store = ObstoreResults(root)
    outputs = [await publish(store, b"one"), await publish(store, DATA)]
    (root / outputs[1].key).write_bytes(change(DATA))
    folder = tmp_path / "out"
    with pytest.raises(Tampered):
        await write_out(store, outputs, folder)
    assert files_below(folder) == []
    stdout = io.BytesIO()
    with pytest.raises(Tampered):
        await write_out(store, outputs[1:], "-", stdout=stdout)
    assert stdout.getvalue() == b""


async def test_an_object_that_is_gone_leaves_nothing(root: Path, tmp_path: Path) -> None:
    store = ObstoreResults(root)
    output = await publish(store, DATA)
    (root / output.key).unlink()
    with pytest.raises(NotFound):
        await write_out(store, [output], tmp_path / "out")
    assert files_below(tmp_path / "out") == []


async def test_a_full_disk_leaves_nothing(store: ResultStore, tmp_path: Path) -> None:
    output = await publish(store, DATA)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(BadInput, match="File too large"):
            await write_out(store, [output], tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files_below(tmp_path / "out") == []


async def test_stdout_takes_one_output(store: ResultStore) -> None:
    stdout = io.BytesIO()
    output = await publish(store, DATA)
    assert await write_out(store, [output], "-", stdout=stdout) == ()
    assert stdout.getvalue() == DATA
    wrong: list[list[Output]] = [[], [output, output]]
    for outputs in wrong:
        with pytest.raises(BadInput, match=re.escape(f"{len(outputs)} outputs")):
            await write_out(store, outputs, "-", stdout=stdout)


async def test_stdout_is_the_process_s_own_unless_told_otherwise(store: ResultStore, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    await write_out(store, [await publish(store, DATA)], "-")
    assert capfdbinary.readouterr().out == DATA
