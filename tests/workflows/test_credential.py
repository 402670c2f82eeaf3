"""A credential is sent to its provider and is nowhere else: not in a history, the ledger, a result, a log line or an error."""

import base64
import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator import lies
from simulator.answer import Answer, Call, Json, told
from simulator.provider import Provider
from tests.replay.stories import histories
from tests.workflows.stage import REPORT, SECRET, Stage, stage, variant


def needles() -> Iterator[bytes]:
    """The credential as it stands, and as it stands inside base64, at each of the three alignments."""
    yield SECRET.encode()
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + SECRET.encode()).rstrip(b"=")
        yield coded[(0, 2, 3)[before] : -1]


def echoed(call: Call, _args: dict[str, Json], _provider: Provider) -> Answer:
    """A provider that tells everybody what it was sent."""
    said = call.headers.get("authorization", "")
    status = 422 if call.kind == "create" else 500
    return told(
        status, {"error": said, "message": f"you sent {said}"}, ("x-request-id", said), ("location", f"/{said}"), ("retry-after", said)
    )


def echoed_well(call: Call, _args: dict[str, Json], provider: Provider) -> Answer:
    """The same inside an answer that is taken."""
    honest = provider.answer(call)
    fields = honest.fields() or {}
    said = call.headers.get("authorization", "")
    return told(honest.status, {**fields, "reference": said, "updated_at": said, "note": said}, ("x-request-id", said))


async def everything(on: Stage) -> dict[str, bytes]:
    """All that is kept anywhere, by where it is kept."""
    found = {f"history {number}": history.to_json().encode() for number, history in enumerate(await histories(on))}
    for number, history in enumerate(await histories(on)):
        found[f"events {number}"] = b"".join(event.SerializeToString() for event in history.events)
    handle = on.client.get_workflow_handle("op-1")
    found["description"] = (await handle.describe()).raw_description.SerializeToString()
    for path in on.folder.rglob("*"):
        if path.is_file() and path.parent.name != "secrets":
            found[path.name] = path.read_bytes()
    return found


FAILINGS: dict[str, tuple[str, str, str]] = {
    "nothing": ("observe", "", "succeeded"),
    "a create that is not authorized": ("create", "unauthorized", "failed"),
    "a dropped create": ("create", "drop_after_accepting", "create_unknown"),
    "a create that is redirected elsewhere": ("create", "redirect_elsewhere", "create_unknown"),
    "a create that echoes": ("create", "echoed", "failed"),
    "a created job that echoes": ("create", "echoed_well", "succeeded"),
    "readings that are not authorized": ("observe", "unauthorized", "result_timed_out"),
    "readings that are redirected elsewhere": ("observe", "redirect_elsewhere", "result_timed_out"),
    "readings that echo": ("observe", "echoed", "result_timed_out"),
    "readings that echo and are taken": ("observe", "echoed_well", "succeeded"),
    "a result that echoes": ("collect", "echoed", "result_unavailable"),
    "a result that is redirected elsewhere": ("collect", "redirect_elsewhere", "result_unavailable"),
    "a result at another address": ("observe", "location_elsewhere", "result_validation_failed"),
}


@pytest.mark.parametrize("failing", list(FAILINGS))
async def test_a_credential_is_nowhere_but_at_its_provider(
    tmp_path: Path, failing: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    for name, act in (("echoed", echoed), ("echoed_well", echoed_well)):
        monkeypatch.setitem(lies.LIES, name, lies.Lie("Tells what it was sent.", lies.ANY, instead=act))
    kind, lie, end = FAILINGS[failing]
    changes = {"observe": {"poll": {"first": "30s", "cap": "30m"}}, "create": {"token": {"window": "5m"}}}
    async with stage(tmp_path, work=False) as on:
        if lie:
            on.books.lie(kind, lie)  # pyright: ignore[reportArgumentType]  # one of its kinds
        async with on.working():
            await on.start(variant("sim.reports.create", changes), REPORT)
            await on.until_state(end, step=60)
            await on.shown()
        sent = {one.authorization for one in on.books.seen}
        assert sent == {hashlib.sha256(f"Bearer {SECRET}".encode()).hexdigest()}
        await on.verified()
        kept = await everything(on)
        kept["logs"] = "\n".join(f"{one.getMessage()} {one.exc_text} {one.__dict__}" for one in caplog.records).encode()
    assert {"history 0", "ledger.db", "logs"} <= set(kept)
    for where, data in kept.items():
        for needle in needles():
            assert needle not in data, where
