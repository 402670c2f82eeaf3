"""What a contract calls sensitive is used where it is needed, stands nowhere else, and is gone once the operation is final."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from activities import creating
from activities.beating import Pulse
from activities.loading import Cases
from activities.provider import ProviderActivities
from adapters.sql_ledger import SqlLedger
from adapters.sql_tables import entries, payloads, streams
from domain.errors import Unreachable
from domain.evidence import Json
from domain.messages import StepInput
from simulator import lies
from simulator.answer import Answer, Call, told
from simulator.provider import Provider
from tests.replay.stories import histories
from tests.workflows.stage import REPORT, Stage, acting_for, stage, variant

DOOR = "planted-door-key-0123456789"
MAIL = "ada.planted@example.org"
SIGNED = "https://files.example/planted-a?sig=planted-signature-01"
PLANTED = (DOOR, MAIL, "planted-signature-01", "ada.planted%40example.org")
PACE = {"poll": {"first": "30s", "cap": "30s"}}
CONTRACT: Mapping[str, object] = {
    "record": {"sensitive": ["body.door", "body.owner", "body.signed", "headers.x_request_id"]},
    "create": {"job": {"id": ["body.job_id"], "door": "body.door", "signed": "body.signed", "plain": "body.plain"}},
    "observe": {
        **PACE,
        "request": {"path": "/v1/jobs/${job.id}", "query": {"door": "${job.door}", "signed": "${job.signed}", "plain": "${job.plain}"}},
        "reason": "body.words",
        "at": "body.owner.mail",
    },
    "errors": {"message": "body.words", "code": "body.owner.mail", "request_id": "headers.x_request_id"},
}


def planted(call: Call, _args: dict[str, Json], provider: Provider) -> Answer:
    """The honest answer, with things in it that are nobody's business."""
    honest = provider.answer(call)
    fields = honest.fields() or {}
    more: dict[str, Json] = {"door": DOOR, "plain": "plain-value", "owner": {"mail": MAIL}, "signed": SIGNED}
    more["words"] = f"the job of {MAIL} opens with {DOOR}, see {SIGNED} and {'x' * 900} {MAIL}"
    return told(honest.status, {**fields, **more}, ("x-request-id", DOOR), ("location", f"/users/{MAIL}"))


def refused(call: Call, _args: dict[str, Json], _provider: Provider) -> Answer:
    """A refusal that talks too much."""
    return told(422, {"words": f"{MAIL} may not", "owner": {"mail": MAIL}, "door": DOOR}, ("x-request-id", DOOR))


@pytest.fixture(autouse=True)
def a_talkative_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, act in (("planted", planted), ("refused", refused)):
        monkeypatch.setitem(lies.LIES, name, lies.Lie("Tells what is nobody's business.", lies.ANY, instead=act))


async def recorded(on: Stage, stream: str = "op-1") -> str:
    """All that stands in the record and in Temporal, but what is kept apart."""

    def rows(connection: Connection) -> str:
        said = [repr(tuple(row)) for table in (entries, streams) for row in connection.execute(select(table))]
        return "\n".join(said)

    told_of = [await on.ledger.within(rows)]
    for history in await histories(on):
        told_of += [history.to_json(), str(b"".join(event.SerializeToString() for event in history.events))]
    description = await on.client.get_workflow_handle(stream).describe()
    return "\n".join([*told_of, str(description.raw_description)])


async def kept_apart(on: Stage) -> bytes:
    def rows(connection: Connection) -> bytes:
        return b"\n".join(data for (data,) in connection.execute(select(payloads.c.bytes)) if data is not None)

    return await on.ledger.within(rows)


@pytest.mark.parametrize("end", ["succeeded", "cancelled"])
async def test_a_sensitive_value_is_sent_where_it_is_needed_and_recorded_nowhere(
    tmp_path: Path, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with stage(tmp_path) as on:
        for kind in ("create", "observe", "cancel"):
            on.books.lie(kind, "planted")
        handle = await on.start(variant("sim.reports.create", CONTRACT), {**REPORT, "polls": 3 if end == "succeeded" else 500})
        await on.until_state("observing")
        during = await recorded(on)
        assert DOOR.encode() in await kept_apart(on)
        if end == "cancelled":
            await on.cancel()
        assert (await handle.result()).state == end
        assert {one.query["door"] for one in on.books.requests("observe")} == {DOOR}
        assert {one.query["signed"] for one in on.books.requests("observe")} == {SIGNED}
        record, apart = await recorded(on), await kept_apart(on)
        await on.verified()
        standing = await on.standing()
    assert standing.job is not None
    assert standing.job["signed"] == "https://files.example/planted-a?..."
    assert (standing.job["plain"], str(standing.job["door"])[:7]) == ("plain-value", "sha256:")
    assert (standing.apart, standing.sensitive) == ((), ())
    logs = "\n".join(f"{one.getMessage()} {one.exc_text} {one.__dict__}" for one in caplog.records)
    for value in PLANTED:
        assert value not in during, value
        assert value not in record, value
        assert value not in logs, value
        assert value.encode() not in apart, value


async def test_once_final_what_was_kept_apart_is_pruned_on_the_record(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        for kind in ("create", "observe"):
            on.books.lie(kind, "planted")
        handle = await on.start(variant("sim.reports.create", CONTRACT))
        await handle.result()
        last = (await on.entries())[-1]
        assert (last.cause, last.role) == ("pruned.pruned", "note")
        refs = last.body["refs"]
        assert isinstance(refs, list)
        named = {entry.evidence.sensitive.digest for entry in await on.entries() if entry.evidence.sensitive is not None}
        assert named
        assert named <= set(refs)
        verification = await on.ledger_books.verify("op-1")
        assert (verification.fault, verification.erased) == (None, len(refs))
        assert await on.result_bytes()


async def test_a_refusal_that_talks_too_much_says_nothing_and_nothing_is_left(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        on.books.lie("create", "refused")
        handle = await on.start(variant("sim.reports.create", CONTRACT))
        assert (await handle.result()).state == "failed"
        record = await recorded(on)
        [refusal] = await on.entries("exchange")
        words = json.dumps(refusal.body["words"])
        assert words.count("sha256:") == 3
        assert " may not" in words
        for value in PLANTED:
            assert value not in record
            assert value.encode() not in await kept_apart(on)
        await on.verified()


@pytest.mark.parametrize("there", [True, False])
async def test_a_job_learned_from_a_heartbeat_has_its_hidden_values_or_is_asked_for_again(
    tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path, work=False) as on:
        for kind in ("create", "observe"):
            on.books.lie(kind, "planted")
        record = await on.intend_and_die(variant("sim.reports.create", CONTRACT), run_id="run-1")
        case = await Cases(on.world).load("op-1", None)
        assert record.standing.request is not None
        request = await creating.frozen_request(on.ledger, record.standing.request.digest)
        prepared = creating.Prepared(case, request, 1, 1, on.clocks.now(), on.world.clocks.monotonic() + 5)
        pulse = Pulse({"seq": record.seq, "hash": record.hash})
        with monkeypatch.context() as broken:
            broken.setattr(SqlLedger, "append", _dies)
            if not there:
                broken.setattr(SqlLedger, "put_payloads", _dies)
            with pytest.raises(Unreachable):
                await acting_for("run-1").run(creating.send, on.world, prepared, pulse, turn=2)
        if pulse.soon is not None:
            pulse.soon.cancel()
        assert all(value not in str(pulse.details) for value in PLANTED)
        next_attempt = acting_for("run-1", heartbeat_details=[pulse.details], attempt=2)
        head = await next_attempt.run(ProviderActivities(on.world).create, StepInput(id="op-1", turn=2))
        assert head.state == "accepted"
        closed = (await on.entries("exchange"))[0]
        assert closed.body["recovered"] == ("recovered" if there else "lost")
        assert len(on.books.jobs()) == 1
        job = (await Cases(on.world).load("op-1", None)).scope(call_id="x").job
        assert isinstance(job, dict)
        assert (job["door"], job["signed"]) == (DOOR, SIGNED)
        await on.verified()


async def _dies(*_: object, **__: object) -> None:
    raise Unreachable("the ledger does not answer")


async def test_a_worker_that_starts_anew_finds_what_was_hidden_and_hides_it_still(tmp_path: Path) -> None:
    async with stage(tmp_path, work=False) as on:
        for kind in ("create", "observe"):
            on.books.lie(kind, "planted")
        handle = await on.start(variant("sim.reports.create", CONTRACT))
        async with on.working():
            await on.soon_state("accepted")
        async with on.working():  # its memory is empty
            assert (await handle.result()).state == "succeeded"
        assert {one.query["door"] for one in on.books.requests("observe")} == {DOOR}
        record = await recorded(on)
        assert all(value not in record for value in PLANTED)
        hidden = {str(entry.body.get("words")) for entry in await on.entries("reading")}
        digests = {text.split("opens with ")[1][:71] for text in hidden if "opens with " in text}
        assert len(digests) == 1  # the same value, the same digest: it is one salt
        await on.verified()


async def test_kept_bodies_do_not_have_it_either(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        for kind in ("create", "observe"):
            on.books.lie(kind, "planted")
        contract = variant(
            "sim.reports.create", {**CONTRACT, "record": {"bodies": "keep", "sensitive": ["body.door", "body.owner", "body.signed"]}}
        )
        handle = await on.start(contract)
        assert (await handle.result()).state == "succeeded"
        for path in (tmp_path / "results").rglob("*"):
            if path.is_file():
                assert DOOR.encode() not in path.read_bytes()
        await on.verified()
