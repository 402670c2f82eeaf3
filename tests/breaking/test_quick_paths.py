"""What was made faster keeps its promises: readings that hang starve nobody, and quick readings say what slow ones say."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio import activity
from temporalio.testing import ActivityEnvironment

from activities.beating import beating
from activities.ports import Record
from adapters.settings import load_settings
from adapters.sql_ledger import SqlLedger
from domain.chain import entry_hash, first_prev, make_entry
from domain.chain_verifying import Stored, _read, _wrong, evidence_of, verify_chain
from domain.errors import BadInput, Unreachable
from domain.fingerprint import canonical
from domain.references import references
from tests.domain.growing import KEYS, LEDGER, STREAM, said
from tests.workflows.stage import Stage, development_server, stage, variant
from worker import workers_of

SLOTS, OPERATIONS = 2, 5
LONG_BEFORE_A_READING_ENDS = 100.0
"""Of the five minutes that a reading may hang."""
PATIENT = variant("sim.reports.create", {"http": {"timeouts": {"total": "5m"}}, "observe": {"poll": {"first": "1s", "cap": "1s"}}})


@asynccontextmanager
async def hanging(folder: Path) -> AsyncGenerator[Stage]:
    """The workers of a worker, every slot of its readings taken by one that hangs, and more of them waiting for a place."""
    async with await development_server() as env, stage(folder, env=env, work=False) as on, AsyncExitStack() as stack:
        told = load_settings(home=folder / "home", slots_reads=SLOTS, slots_effects=SLOTS, drain=1.0)
        for worker in workers_of(told, on.client, on.world):
            await stack.enter_async_context(worker)
        stack.callback(on.release)
        on.books.lie("observe", "hold")
        for stream in streams():
            await on.start(PATIENT, stream=stream)
        for _ in range(2400):
            if on.provider.app.gate.holding == SLOTS and await _waiting(on):
                break
            await asyncio.sleep(0.05)
        assert on.provider.app.gate.holding == SLOTS
        yield on


def streams() -> list[str]:
    return [f"op-{number}" for number in range(OPERATIONS)]


async def _waiting(on: Stage) -> list[str]:
    """Operations whose reading is due and has no place."""
    found: list[str] = []
    for stream in streams():
        pending = (await on.client.get_workflow_handle(stream).describe()).raw_description.pending_activities
        now = on.world.clocks.now().timestamp()
        if any(one.activity_type.name == "observe" and one.state == 1 and one.scheduled_time.ToSeconds() < now for one in pending):
            found.append(stream)
    return found


async def ask_to_cancel(on: Stage, stream: str) -> None:
    message = {"request_id": f"c-{stream}", "by": "local", "reason": "no longer needed"}
    await on.client.get_workflow_handle(stream).signal("cancel", message)


async def cancelled(on: Stage, stream: str) -> None:
    """Wait until the decision is recorded, the cancel was sent, and its answer is recorded."""
    await on.soon(lambda one: one.standing.state in {"cancelling", "cancelled"}, stream)
    assert await on.entries("cancel_answer", stream)
    assert (await on.answered(f"c-{stream}", stream)).accepted


async def test_while_readings_hang_in_every_slot_cancels_and_creates_get_out_meanwhile(tmp_path: Path) -> None:
    async with hanging(tmp_path) as on:
        for stream in streams():
            await ask_to_cancel(on, stream)
        await on.start(PATIENT, stream="op-new")
        async with asyncio.timeout(LONG_BEFORE_A_READING_ENDS):
            await asyncio.gather(*(cancelled(on, stream) for stream in streams()))
            await on.soon(lambda one: one.standing.job is not None, "op-new")
        assert {(await on.story(stream)).count("intent.cancel") for stream in streams()} == {1}


async def test_a_decision_that_could_not_be_recorded_locally_does_not_wait_for_readings_that_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SqlLedger.append

    async def append(ledger: SqlLedger, *args: Any, **named: Any) -> Record:
        if activity.in_activity() and activity.info().is_local:
            raise Unreachable("for a moment")
        return await real(ledger, *args, **named)

    async with hanging(tmp_path) as on:
        monkeypatch.setattr(SqlLedger, "append", append)
        stream = (await _waiting(on))[0]
        await ask_to_cancel(on, stream)
        async with asyncio.timeout(LONG_BEFORE_A_READING_ENDS):
            await cancelled(on, stream)


# --- heartbeats -----------------------------------------------------------------------------------------------------------


async def test_an_answer_that_is_long_in_being_recorded_is_heartbeated_and_one_that_was_recorded_is_not() -> None:
    env = ActivityEnvironment()
    beats: asyncio.Queue[Any] = asyncio.Queue()
    env.on_heartbeat = beats.put_nowait

    async def create(until: Coroutine[Any, Any, Any]) -> None:
        async with beating() as pulse:
            pulse.witness(3, "ab")
            pulse.answered({"attempt": 1, "meaning": "accepted"})
            await until

    await env.run(create, asyncio.sleep(0))
    said: list[Any] = []

    async def hear() -> None:
        said.append(await beats.get())

    async with asyncio.timeout(30):
        await env.run(create, hear())
    assert said == [{"seq": 3, "hash": "ab", "answer": {"attempt": 1, "meaning": "accepted"}}]
    assert beats.empty(), "of the one that was recorded at once nothing was heard, then or later"


# --- canonical bytes ------------------------------------------------------------------------------------------------------

_HARD = '\ud800\udfff\ue000\uffff\U00010000\U0010ffff\0\x1f\x7f\x80\u2028"\\/\n\r\t\b\fa'
_TEXT = st.text(st.characters(), max_size=8) | st.text(st.sampled_from(_HARD), max_size=6)
_EDGES = (2**53, 2**53 - 1, -(2**53), 1 - 2**53, 10**400, -0.0, 1e3, 1.0, 1e20, 1e21, 1e-7, 5e-324, 2.0**53, float("inf"), float("nan"))
_NUMBERS = st.integers(-(2**60), 2**60) | st.sampled_from(_EDGES) | st.floats()
_VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


@settings(max_examples=500)
@given(_VALUES)
def test_canonical_bytes_are_those_of_rfc_8785_or_bad_input_where_there_are_none(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        with pytest.raises(BadInput):
            canonical(value)
    else:
        assert canonical(value) == expected


@pytest.mark.parametrize("depth", [200, 254, 255, 256, 300, 100_000])
def test_nested_values_have_their_canonical_bytes_or_are_bad_input(depth: int) -> None:
    value: object = 1
    for _ in range(depth):
        value = [value]
    try:
        assert canonical(value) == b"[" * depth + b"1" + b"]" * depth
    except BadInput:
        assert depth > 300


# --- entries --------------------------------------------------------------------------------------------------------------

_PREV = first_prev(LEDGER, STREAM)
_MARK = "@@here@@"
_ODD = (
    b"1e3", b"1.0", b"-0", b"0.0", b"1e400", b"NaN", b"-Infinity", b"9" * 30, b"9" * 5000, b"true", b"null", b"01", b"10e-1", b'""', b'"0"',
    b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\xff"', b'"\xed\xa0\x80"', b"[" * 300 + b"]" * 300, b"[" * 100_000, b"{}", b"[]",
    b'"2026-11-30T12:01:00.000Z"', b'"2026-11-30T12:01:00Z"',
)  # fmt: skip


def _entry(key: str) -> bytes:
    return make_entry(
        said(key), ledger_id=LEDGER, stream=STREAM, seq=0, prev=_PREV, role="note", epoch=1, turn=2, from_="observing", to="observing"
    ).raw


_ENTRIES = [_entry(key) for key in KEYS]


def _instead(raw: bytes, name: str, odd: bytes, *, body: bool = False) -> bytes:
    value = json.loads(raw)
    (value["body"] if body else value)[name] = _MARK
    return json.dumps(value).encode().replace(json.dumps(_MARK).encode(), odd)


_WAYS: tuple[Callable[[bytes, str, bytes, int], bytes], ...] = (
    lambda raw, name, odd, at: _instead(raw, name, odd),
    lambda raw, name, odd, at: _instead(
        raw, ("next_at", "turn", "attempt", "observed", "words", "http", "meaning")[at % 7], odd, body=True
    ),
    lambda raw, name, odd, at: _instead(raw, "unheard", odd, body=at % 2 == 0),
    lambda raw, name, odd, at: raw[:-1] + b',"' + name.encode() + b'":' + odd + b"}",
    lambda raw, name, odd, at: b'{"' + name.encode() + b'":' + odd + b"," + raw[1:],
    lambda raw, name, odd, at: raw[: at % len(raw)] + odd[:3] + raw[at % len(raw) :],
    lambda raw, name, odd, at: raw[: at % len(raw)] + bytes([at % 256]) + raw[at % len(raw) + 1 :],
    lambda raw, name, odd, at: raw[: at % len(raw)],
    lambda raw, name, odd, at: raw.decode().encode(("utf-16", "utf-16-le", "utf-32", "utf-8-sig")[at % 4]),
    lambda raw, name, odd, at: b" \n" + raw + b"\t ",
)


@settings(max_examples=800)
@given(st.sampled_from(_ENTRIES), st.sampled_from(_WAYS), st.sampled_from(_ODD), st.integers(0, 10**6), st.data())
def test_both_readings_of_changed_bytes_find_the_same_fault_and_neither_falls(
    raw: bytes, way: Callable[[bytes, str, bytes, int], bytes], odd: bytes, at: int, data: st.DataObject
) -> None:
    value = json.loads(raw)
    changed = way(raw, data.draw(st.sampled_from(sorted(value))), odd, at)
    row = Stored(0, _PREV, entry_hash(_PREV, changed), value["at"], value["actor"], value["kind"], changed)
    wrong, evidence = _read(LEDGER, STREAM, row)
    slowly = None if (wrong_slowly := _wrong(LEDGER, STREAM, row)) else evidence_of(row)
    assert (wrong, evidence is None) == (wrong_slowly, slowly is None)
    if evidence is not None and slowly is not None:
        assert [*references(evidence)] == [*references(slowly)]
    if changed != raw:
        fault = verify_chain(LEDGER, STREAM, [row._replace(hash=entry_hash(_PREV, raw))])
        assert fault is not None
        assert fault.what == "hash differs from the stored bytes"
