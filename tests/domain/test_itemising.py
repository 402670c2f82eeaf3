"""Every record of a result counts once, as what it says and nothing more; what did not succeed is listed with its key."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.language.calls import ItemRead
from domain.language.expressions import Scope
from domain.results import itemising
from domain.results.item_keys import MAX_KEY, Keys, key_text
from domain.results.itemising import ItemCounter, SubmittedKeys, Tally

READ = ItemRead.model_validate(
    {
        "output": "results",
        "key": "item.id",
        "states": [
            {"when": {"item.ok": True}, "is": "succeeded"},
            {"when": {"item.ok": False, "item.code": "late"}, "is": "expired", "reason": "item.code"},
            {"when": {"item.ok": False}, "is": "failed"},
        ],
        "error": "item.error",
    }
)
SCOPE = Scope(input={"a": 1})
TOO_MUCH = "item" + " | [@, @]" * 40


def submitted(*keys: Any, most: int = itemising.MAX_ITEMS) -> SubmittedKeys:
    noted = SubmittedKeys(("item.id",), SCOPE, b"salt" * 8, most=most)
    noted.note({"id": key} for key in keys)
    if noted.keys is not None:
        noted.keys.close()
    return noted


def counted(*records: Any, keys: Keys | None = None, read: ItemRead = READ, most: int = itemising.MAX_ITEMS) -> ItemCounter:
    counter = ItemCounter([read], SCOPE, keys, most=most)
    sink = counter.open("results", "jsonl")
    sink.feed("".join(json.dumps(record) + "\n" for record in records).encode())
    sink.finish()
    return counter


def listed(counter: ItemCounter) -> list[dict[str, Any]]:
    return [json.loads(line) for line in counter.lines().decode().splitlines()]


def test_each_record_counts_as_the_first_entry_that_fits_says() -> None:
    counter = counted({"id": 1, "ok": True}, {"id": 2, "ok": False, "error": "no\u0007"}, {"id": 3, "ok": False, "code": "late"}, {"id": 4})
    assert counter.tally.words == {"succeeded": 1, "failed": 1, "cancelled": 0, "expired": 1, "unprocessed": 0}
    assert counter.tally.unread == 1
    assert listed(counter) == [
        {"key": "2", "outcome": "failed", "error": "no\ufffd", "output": "results", "record": 2},
        {"key": "3", "outcome": "expired", "error": "late", "output": "results", "record": 3},
        {"key": "4", "outcome": "unread", "error": None, "output": "results", "record": 4},
    ]
    assert listed(counter) == [], "what was written down is handed out once"
    assert counter.outputs == {"results"}


def test_with_keys_what_is_double_unknown_or_without_one_counts_as_nothing_and_is_listed() -> None:
    noted = submitted("a", "b", "c", "d")
    counter = counted(
        {"id": "a", "ok": True}, {"id": "a", "ok": False}, {"id": "x", "ok": True}, {"ok": True}, {"id": ["b"], "ok": True}, {"id": "c"},
        keys=noted.keys,
    )  # fmt: skip
    assert counter.tally.words["succeeded"] == 1
    assert (counter.tally.double, counter.tally.unknown, counter.tally.unread) == (1, 1, 3)
    assert [(one["key"], one["outcome"]) for one in listed(counter)] == [
        ("a", "double"), ("x", "unknown"), (None, "unread"), (None, "unread"), ("c", "unread"),
    ]  # fmt: skip
    assert noted.keys is not None
    assert noted.keys.absent == 2
    assert noted.missing([{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}, {"id": "d"}, {}]) == ["b", "d"]
    assert noted.keys.absent == 0


def test_a_key_is_text_or_a_whole_number_of_a_length_that_can_be_held() -> None:
    assert [key_text(value) for value in (7, "7", "x" * MAX_KEY)] == ["7", "7", "x" * MAX_KEY]
    assert [key_text(value) for value in (True, None, 1.5, [], {}, "", "x" * (MAX_KEY + 1), 10**600)] == [None] * 8


def test_keys_that_were_submitted_twice_or_not_at_all_are_told() -> None:
    noted = submitted("a", "a", None, "b", "a")
    assert noted.keys is not None
    assert (noted.records, noted.unkeyed, noted.keys.submitted, noted.keys.doubles, noted.keys.absent) == (5, 1, 4, 2, 2)


@given(st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40)))
def test_keys_find_what_sets_would_find(sent: list[int], came: list[int]) -> None:
    noted = submitted(*sent)
    assert noted.keys is not None
    seen = [noted.keys.seen(str(key)) for key in came]
    assert [one is None for one in seen] == [key not in sent for key in came]
    assert sum(one == 0 for one in seen) == len(set(sent) & set(came))
    assert noted.keys.absent == len(set(sent) - set(came))


def test_the_same_keys_under_another_salt_stand_elsewhere() -> None:
    one, other = Keys(b"1" * 32), Keys(b"2" * 32)
    assert one._number("a") != other._number("a")


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([True, False, None]))))
def test_every_record_is_counted_once_and_all_but_successes_are_listed(records: list[tuple[str, bool | None]]) -> None:
    counter = counted(*({"id": key, "ok": ok} for key, ok in records), keys=submitted("a", "b", "c", "d", "e").keys)
    tally = counter.tally
    assert sum(tally.words.values()) + tally.unread + tally.double + tally.unknown == len(records)
    assert tally.listed == len(records) - tally.words["succeeded"] == len(listed(counter))


def test_more_items_than_are_counted_is_said() -> None:
    counter = counted(*({"id": n, "ok": True} for n in range(5)), most=3)
    assert counter.tally.words["succeeded"] == 3
    assert counter.tally.problems == ["there are more than 3 items: they were not all counted"]
    noted = submitted(*range(5), most=3)
    assert (noted.records, noted.keys) == (5, None)
    assert noted.missing([{"id": 1}]) == []


def test_an_output_that_is_not_made_of_records_is_said_with_what_was_read_of_it() -> None:
    counter = ItemCounter([READ], SCOPE)
    sink = counter.open("results", "jsonl")
    sink.feed(b'{"id": 1, "ok": true}\n{broken\n')
    sink.feed(b'{"id": 2, "ok": true}\n')
    sink.finish()
    assert counter.tally.words["succeeded"] == 1
    assert len(counter.tally.problems) == 1
    assert counter.tally.problems[0].startswith("results can't be read as items after 1 of them: ")


@pytest.mark.parametrize("where", ["key", "when", "error"])
def test_an_item_that_costs_too_much_to_read_is_unread(where: str) -> None:
    parts: dict[str, Any] = {"output": "results", "states": [{"is": "failed"}]}
    if where == "when":
        parts["states"] = [{"when": {TOO_MUCH: 1}, "is": "failed"}]
    else:
        parts[where] = TOO_MUCH
    counter = counted({"id": 1}, read=ItemRead.model_validate(parts))
    (one,) = listed(counter)
    assert (one["key"], one["error"]) == (None, None)
    assert one["outcome"] == ("unread" if where == "when" else "failed")


def test_what_the_record_shows_is_bounded_and_the_list_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(itemising, "MAX_LISTED", 30)
    counter = counted(*({"id": "k" * 500, "ok": False, "error": "e" * 5_000} for _ in range(40)))
    assert (counter.tally.listed, counter.tally.unlisted, len(counter.tally.shown)) == (30, 10, 20)
    assert all(len(str(one["key"])) <= 128 and len(str(one["error"])) <= 240 for one in counter.tally.shown)
    assert all(len(one["error"]) <= 1024 for one in listed(counter))


def test_the_list_is_bounded_in_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(itemising, "MAX_LISTED_BYTES", 100)
    counter = counted(*({"id": n, "ok": False} for n in range(5)))
    assert (counter.tally.listed, counter.tally.unlisted) == (1, 4)


def test_thirty_thousand_items_and_their_keys_take_less_memory_than_one_of_their_pieces() -> None:
    pieces = [range(first, first + 500) for first in range(0, 30_000, 500)]
    tracemalloc.start()
    noted = SubmittedKeys(("item.id",), SCOPE, b"salt" * 8)
    assert noted.keys is not None
    for piece in pieces:
        noted.note({"id": f"a-key-of-some-length-{number}"} for number in piece)
    noted.keys.close()
    counter = ItemCounter([READ], SCOPE, noted.keys)
    sink = counter.open("results", "jsonl")
    for piece in pieces:
        sink.feed("".join(f'{{"id": "a-key-of-some-length-{n}", "ok": {str(n % 9 > 0).lower()}}}\n' for n in piece).encode())
        counter.lines()
    sink.finish()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (counter.tally.words["succeeded"], counter.tally.words["failed"], noted.keys.absent) == (26_666, 3_334, 0)
    assert most < 2 * 1024 * 1024


def test_a_tally_begins_with_nothing() -> None:
    assert Tally().words == {"succeeded": 0, "failed": 0, "cancelled": 0, "expired": 0, "unprocessed": 0}
