"""Any changed, dropped, swapped or inserted entry is found, and a cut tail by whoever remembers a later one."""

import hashlib
import json
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from domain.chain import VERSION, Entry, entry_hash, first_prev, make_entry, read_entry
from domain.chain_verifying import Fault, Stored, verify_chain
from domain.fingerprint import canonical
from tests.domain.growing import LEDGER, STREAM, Stream, at, said, told

QUIET = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def stored(entry: Entry) -> Stored:
    return Stored(entry.seq, entry.prev, entry.hash, entry.at, entry.actor, entry.kind, entry.raw)


def whole_stream() -> Stream:
    return told(
        "policy.unattended", "policy.unattended", "intent.create", ("exchange.accepted", {"job": {"id": "job-1"}}), "reading.going",
        "reading.going", ("reading.terminal", {"verdict": "succeeded"}), "intent.collect", "result.verified",
    )  # fmt: skip


ROWS = [stored(entry) for entry in whole_stream().entries]
HEAD = (ROWS[-1].seq, ROWS[-1].hash)
places = st.integers(0, len(ROWS) - 1)


def rehashed(rows: list[Stored]) -> list[Stored]:
    """What someone with the database can do: link and hash everything anew from the first change on."""
    prev, forged = first_prev(LEDGER, STREAM), list[Stored]()
    for seq, row in enumerate(rows):
        raw = canonical(json.loads(row.raw) | {"seq": seq})
        forged.append(row._replace(seq=seq, prev=prev, raw=raw, hash=entry_hash(prev, raw)))
        prev = forged[-1].hash
    return forged


def edited(row: Stored, **fields: Any) -> Stored:
    return row._replace(raw=canonical(json.loads(row.raw) | fields))


def test_a_whole_stream_verifies_with_every_witness_of_it() -> None:
    assert verify_chain(LEDGER, STREAM, ROWS) is None
    assert all(verify_chain(LEDGER, STREAM, ROWS, head=(row.seq, row.hash)) is None for row in ROWS)


def test_the_hash_is_the_one_that_is_documented() -> None:
    prev = hashlib.sha256(b"sakshi/stream/v1\0" + LEDGER.encode() + b"\0" + STREAM.encode()).hexdigest()
    for row in ROWS:
        assert row.prev == prev
        value = json.loads(row.raw)
        assert row.hash == hashlib.sha256(b"sakshi/entry/v1\0" + bytes.fromhex(prev) + canonical(value)).hexdigest()
        assert {"v", "ledger_id", "stream", "seq", "at", "actor", "kind", "role", "epoch", "turn", "from", "to", "cause", "body"} == set(
            value
        )
        assert (value["v"], value["ledger_id"], value["stream"], value["seq"]) == (VERSION, LEDGER, STREAM, row.seq)
        prev = row.hash


@QUIET
@given(places, st.data())
def test_any_changed_byte_is_found(place: int, data: st.DataObject) -> None:
    raw = bytearray(ROWS[place].raw)
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    rows = [*ROWS[:place], ROWS[place]._replace(raw=bytes(raw)), *ROWS[place + 1 :]]
    assert verify_chain(LEDGER, STREAM, rows) == Fault(place, "hash differs from the stored bytes")


@QUIET
@given(places, st.sampled_from(["seq", "prev", "hash", "at", "actor", "kind"]), st.data())
def test_any_changed_column_is_found(place: int, column: str, data: st.DataObject) -> None:
    other: object = data.draw(st.integers(0, 99)) if column == "seq" else data.draw(st.text("0123456789abcdef", min_size=64, max_size=64))
    assume(other != getattr(ROWS[place], column))
    rows = [*ROWS[:place], ROWS[place]._replace(**cast("dict[str, Any]", {column: other})), *ROWS[place + 1 :]]
    fault = verify_chain(LEDGER, STREAM, rows)
    assert fault is not None
    assert fault.seq in {place, place + 1}


@QUIET
@given(places)
def test_a_dropped_entry_is_found(place: int) -> None:
    rows = [*ROWS[:place], *ROWS[place + 1 :]]
    assert verify_chain(LEDGER, STREAM, rows, head=HEAD) is not None
    if place < len(ROWS) - 1:
        assert verify_chain(LEDGER, STREAM, rows) == Fault(place, f"entry {place} is missing (found {place + 1})")


@QUIET
@given(places, places)
def test_swapped_entries_are_found(one: int, other: int) -> None:
    assume(one != other)
    rows = list(ROWS)
    rows[one], rows[other] = rows[other], rows[one]
    assert verify_chain(LEDGER, STREAM, rows) is not None
    renumbered = [row._replace(seq=seq) for seq, row in enumerate(rows)]
    assert verify_chain(LEDGER, STREAM, renumbered) is not None


@QUIET
@given(st.integers(0, len(ROWS)), places)
def test_an_inserted_entry_is_found(where: int, copied: int) -> None:
    rows = [*ROWS[:where], ROWS[copied], *ROWS[where:]]
    if where < len(ROWS) or copied != len(ROWS) - 1:
        assert verify_chain(LEDGER, STREAM, rows) is not None
    renumbered = [row._replace(seq=seq) for seq, row in enumerate(rows)]
    assert verify_chain(LEDGER, STREAM, renumbered) is not None


@QUIET
@given(places)
def test_a_cut_tail_is_found_by_whoever_remembers_a_later_entry(length: int) -> None:
    fault = verify_chain(LEDGER, STREAM, ROWS[:length], head=HEAD)
    assert fault == (Fault(HEAD[0], "entries are missing after the last one") if length else Fault(0, "the stream has no entries"))
    if length:
        assert verify_chain(LEDGER, STREAM, ROWS[:length]) is None, "a cut alone leaves a whole, shorter stream"


@QUIET
@given(places, st.sampled_from(["edit", "drop", "swap"]))
def test_a_chain_that_was_made_anew_is_found_by_a_witness(place: int, how: str) -> None:
    rows = list(ROWS)
    match how:
        case "edit":
            rows[place] = edited(rows[place], actor="human:mallory")
            rows[place] = rows[place]._replace(actor="human:mallory")
        case "drop":
            assume(place > 0)
            del rows[place]
        case _:
            assume(0 < place < len(rows) - 1)
            rows[place], rows[place + 1] = rows[place + 1], rows[place]
    forged = rehashed(rows)
    assume(forged != ROWS)
    assert verify_chain(LEDGER, STREAM, forged, head=HEAD) is not None


def test_another_entry_where_a_witness_knows_one_is_said_so() -> None:
    forged = rehashed([*ROWS[:-1], edited(ROWS[-1], turn=99)])
    assert verify_chain(LEDGER, STREAM, forged) is None
    assert verify_chain(LEDGER, STREAM, forged, head=HEAD) == Fault(HEAD[0], "another entry stands where a witness knows one")


def test_a_stream_cannot_be_carried_to_another_ledger_or_another_name() -> None:
    assert verify_chain("0" * 32, STREAM, ROWS) == Fault(0, "does not link to the entry before")
    assert verify_chain(LEDGER, "reports-2", ROWS) == Fault(0, "does not link to the entry before")
    moved = rehashed([edited(row, ledger_id="0" * 32) for row in ROWS])
    assert verify_chain(LEDGER, STREAM, moved) == Fault(0, "column ledger_id differs from the entry")


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"{}", "bytes are not an entry"), (b"[]", "bytes are not an entry"), (b"7", "bytes are not an entry"),
        (b"\xff", "bytes are not an entry"), (b'{"v":1}', "bytes are not an entry"), (b"[" * 200_000, "bytes are not an entry"),
        (b'{"v":2}', "unknown entry version 2"), (b'{"v":"1"}', "unknown entry version '1'"),
    ],
)  # fmt: skip
def test_what_is_no_entry_of_this_version_fails_and_never_raises(raw: bytes, what: str) -> None:
    prev = first_prev(LEDGER, STREAM)
    assert verify_chain(LEDGER, STREAM, [ROWS[0]._replace(raw=raw, hash=entry_hash(prev, raw))]) == Fault(0, what)


@pytest.mark.parametrize("change", [{"kind": "unheard"}, {"body": {"meaning": "unheard"}}, {"body": []}])
def test_an_entry_of_a_later_version_holds_the_chain_and_is_told_apart(change: dict[str, Any]) -> None:
    later = edited(ROWS[4], **change)._replace(kind=change.get("kind", ROWS[4].kind))
    rows = rehashed([*ROWS[:4], later, *ROWS[5:]])
    heard = dict[int, tuple[str, bool]]()
    assert verify_chain(LEDGER, STREAM, rows, heard=lambda seq, kind, evidence: heard.update({seq: (kind, evidence is not None)})) is None
    assert heard == {row.seq: (row.kind, row.seq != 4) for row in rows}
    assert verify_chain(LEDGER, STREAM, rows, head=HEAD) == Fault(HEAD[0], "another entry stands where a witness knows one")


def test_an_empty_stream_is_no_stream() -> None:
    assert verify_chain(LEDGER, STREAM, []) == Fault(0, "the stream has no entries")


def test_an_entry_is_read_from_its_bytes_alone() -> None:
    made = make_entry(
        said("reading.going", at(3), progress={"percent": 40}), ledger_id=LEDGER, stream=STREAM, seq=4, prev="ab" * 32, role="stay",
        epoch=2, turn=9, from_="observing", to="observing",
    )  # fmt: skip
    assert read_entry(prev=made.prev, hash=made.hash, raw=made.raw) == made
    assert (made.epoch, made.turn, made.from_, made.to, made.cause) == (2, 9, "observing", "observing", "reading.going")
    with pytest.raises(KeyError):
        read_entry(prev=made.prev, hash=made.hash, raw=b"{}")
