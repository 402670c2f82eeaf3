"""The quick reading of an entry says what the slow one says, or nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from domain.chain import first_prev, make_entry, read_entry
from domain.evidence import Commitment, Evidence, Frozen, Opened, Ref, parse_evidence
from domain.fingerprint import canonical
from domain.references import references
from domain.whole_entries import read_whole
from tests.domain.growing import KEYS, LEDGER, STREAM, at, said, told

HTTP = {"method": "GET", "url": "https://api.example", "began": at(1).isoformat(), "ended": at(2).isoformat(), "headers": {"date": "é"}}
REQUEST = {"method": "POST", "url": "https://api.example", "body_sha256": "1" * 64, "body_bytes": 3, "ref": "2" * 64}
NAMING = {"observed": Ref(digest="3" * 64, size=1), "saved": Ref(digest="4" * 64, size=1), "request": REQUEST, "http": HTTP}


def entry(evidence: Evidence) -> bytes:
    return make_entry(
        evidence, ledger_id=LEDGER, stream=STREAM, seq=3, prev=first_prev(LEDGER, STREAM), role="note", epoch=1, turn=2,
        from_="observing", to="observing",
    ).raw  # fmt: skip


def named_slowly(value: object) -> set[str]:
    """Every digest under a name that only what is kept has, wherever it stands in dumped evidence."""
    match value:
        case dict():
            mine = {value[name] for name in ("digest", "ref") if name in value and "size" in value | {"size": value.get("body_bytes")}}
            return mine.union(*map(named_slowly, value.values()))
        case list() | tuple():
            return set[str]().union(*map(named_slowly, value))
        case _:
            return set()


@pytest.mark.parametrize("key", KEYS)
def test_every_kind_and_meaning_is_read_as_it_is_read_slowly(key: str) -> None:
    kind = key.partition(".")[0]
    fields: dict[str, Any] = {name: value for name, value in NAMING.items() if name in said(key).__class__.model_fields}
    raw = entry(said(key) if kind == "opened" else said(key, **fields))
    whole, slow = read_whole(raw), read_entry(prev="0" * 64, hash="0" * 64, raw=raw)
    assert whole is not None
    assert (whole.seq, whole.at, whole.actor, whole.kind, whole.role, whole.epoch, whole.turn, whole.from_, whole.to, whole.cause) == (
        slow.seq, slow.at, slow.actor, slow.kind, slow.role, slow.epoch, slow.turn, slow.from_, slow.to, slow.cause,
    )  # fmt: skip
    assert dict(whole.body) == {name: value for name, value in dict(slow.evidence).items() if name not in {"at", "actor", "kind"}}
    assert set(references(whole.body)) == set(references(slow.evidence)) == named_slowly(slow.evidence.model_dump(mode="json"))


WRONG: tuple[dict[str, Any], ...] = (
    {"v": 2}, {"v": "1"}, {"kind": "unheard"}, {"seq": "3"}, {"seq": 3.5}, {"at": "yesterday"}, {"at": "2026-13-01T00:00:00.000Z"},
    {"actor": 7}, {"body": {}}, {"body": []}, {"body": {"meaning": "unheard", "began": "2026-01-01T00:00:00Z"}}, {"body": None},
)  # fmt: skip


@pytest.mark.parametrize("change", WRONG)
def test_what_is_no_entry_of_this_version_is_left_to_the_slow_reading(change: dict[str, Any]) -> None:
    raw = entry(said("reading.going"))
    assert read_whole(raw) is not None
    assert read_whole(canonical(json.loads(raw) | change)) is None


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b"7", b"\xff", b"[" * 200_000, b'{"v":1', b"null"])
def test_bytes_that_are_no_entry_are_left_to_the_slow_reading(raw: bytes) -> None:
    assert read_whole(raw) is None


@pytest.mark.parametrize(
    "missing", ["v", "ledger_id", "stream", "seq", "at", "actor", "kind", "role", "epoch", "turn", "from", "to", "cause", "body"]
)
def test_an_entry_without_one_of_its_parts_is_left_to_the_slow_reading(missing: str) -> None:
    value = json.loads(entry(said("reading.going")))
    del value[missing]
    assert read_whole(canonical(value)) is None


def test_of_a_name_that_stands_twice_both_readings_take_the_last() -> None:
    raw = entry(said("reading.going"))
    for doubled in (raw.replace(b'{"actor":', b'{"actor":"human:eve","actor":', 1), raw.replace(b'"kind":', b'"kind":"opened","kind":', 1)):
        whole, slow = read_whole(doubled), read_entry(prev="0" * 64, hash="0" * 64, raw=doubled)
        assert whole is not None
        assert (whole.actor, whole.kind) == (slow.actor, slow.kind) == ("worker:w-1", "reading")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["digest", "size", "ref", "commit", "at", "kind", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.sampled_from(["reading", "exchange", "intent", "opened", "result", "step", "erased"]),
    st.dictionaries(
        st.sampled_from(
            [
                "meaning",
                "observed",
                "saved",
                "request",
                "salt",
                "http",
                "words",
                "next_at",
                "refs",
                "began",
                "outputs",
                "turn",
                "progress",
                "at",
            ]
        ),
        JSON,
    ),
)
def test_what_is_accepted_quickly_is_accepted_slowly_and_is_the_same(kind: str, body: dict[str, Any]) -> None:
    value = json.loads(entry(said("reading.going"))) | {"kind": kind}
    value["body"] |= body
    whole = read_whole(canonical(value))
    if whole is None:
        return
    slow: BaseModel = parse_evidence(at=value["at"], actor=value["actor"], kind=kind, body=value["body"])
    assert {**dict(slow), **dict(whole.body)} == dict(slow)


def test_a_whole_stream_names_what_its_evidence_names() -> None:
    stream = told("policy.unattended", ("intent.create", {"request": REQUEST}))
    found = [read_whole(one.raw) for one in stream.entries]
    opened = stream.entries[0].evidence
    assert isinstance(opened, Opened)
    named = {digest for one in found if one is not None for digest in references(one.body)}
    assert named == {opened.salt.digest, opened.input.ref, REQUEST["ref"]}


class Page(Frozen):
    title: str = ""
    picture: Ref | None = None


class Book(Frozen):
    """Evidence may nest what it names, and name many."""

    cover: Page
    pages: tuple[Page, ...]
    loose: tuple[Ref, ...]
    input: Commitment
    bound: Page | None = None


def test_what_is_named_is_found_however_deep_it_stands_and_in_order() -> None:
    one, two, three, four = (Ref(digest=digit * 64, size=1) for digit in "1234")
    book = Book(
        cover=Page(title="a", picture=one),
        pages=(Page(picture=two), Page()),
        loose=(three, four),
        input=Commitment(commit="8" * 64, ref="9" * 64, size=1),
    )
    assert list(references(book)) == [ref.digest for ref in (one, two, three, four)] + ["9" * 64]
    assert list(references(Page(title="nothing"))) == []
