"""What a provider counts and lists, at its worst: sums that no entry holds, figures of another type, keys that act on a terminal."""

import json
import tracemalloc
from typing import Any, cast

import pytest

from activities import itemising
from domain.counts import complete, read_counts
from domain.evidence import Observation, parse_evidence
from domain.jsontext import NotReadable
from domain.language import calls
from domain.language.calls import ItemRead, ItemWord
from domain.language.expressions import Scope
from domain.language.stages import Counts
from domain.results.counting import Format
from domain.results.item_keys import Keys
from domain.results.item_records import WIDEST, RecordFormat, Records
from domain.results.itemising import ItemCounter, Tally
from domain.results.measuring import Measurer
from domain.results.outcomes import ProviderCounts, Said, SubmittedFacts, weigh
from tests.domain.growing import at, said

LARGEST = 2**53 - 1
READ = ItemRead.model_validate({"output": "results", "key": "item.id", "states": [{"is": "failed"}], "error": "item.error"})


@pytest.mark.parametrize(
    "given",
    [
        {"succeeded": LARGEST, "failed": LARGEST},
        {"succeeded": LARGEST, "failed": 1},
        {"done": LARGEST, "unprocessed": LARGEST},
        {"succeeded": 1, "failed": LARGEST, "unprocessed": 1},
    ],
)
def test_counts_whose_sum_no_entry_can_hold_claim_nothing_and_can_be_recorded(given: dict[str, int]) -> None:
    found = complete(given, named=tuple(given))
    assert found.counts == {}
    assert found.problem is not None
    assert "2^53" in found.problem
    reading = said("reading.terminal", counts=found.counts or None, counts_problem=found.problem)
    assert isinstance(reading, Observation)


def test_counts_of_any_type_give_an_entry_that_can_be_read_back() -> None:
    values = [0, 1, -1, 2**60, 10**400, 2.0, 2.5, -0.0, 1e300, LARGEST, float(LARGEST), "7", True, None, [], {}]
    wanted = Counts.model_validate({"succeeded": "body.a", "failed": "body.b", "total": "body.c"})
    for first in values:
        for second in values:
            for third in (None, 3, LARGEST):
                found = read_counts(wanted, Scope(body={"a": first, "b": second, "c": third}))
                body: dict[str, Any] = {
                    "began": at(1).isoformat(),
                    "meaning": "going",
                    "counts": found.counts or None,
                    "counts_problem": found.problem,
                }
                assert parse_evidence(at=at(1).isoformat(), actor="worker:w-1", kind="reading", body=body)
                assert not (found.counts and found.problem)


def test_a_listed_item_is_one_line_of_json_that_acts_on_nothing_and_comes_back_as_it_was() -> None:
    hostile = ["\x9b31mred", "\x1b]0;title\x07", "a\u202eb", "=HYPERLINK()", "\u2028", "\U000e0041", "plain ä 文"]
    keys = Keys(b"salt" * 8)
    keys.close()
    counter = ItemCounter([READ], Scope(), keys)
    sink = counter.open("results", "jsonl")
    sink.feed("".join(json.dumps({"id": key, "error": key}) + "\n" for key in hostile).encode())
    sink.finish()
    written = counter.lines().decode()
    assert all(letter.isprintable() or letter == "\n" for letter in written)
    assert [json.loads(line)["key"] for line in written.splitlines()] == hostile
    assert "plain ä 文" in written


def _peak(format: RecordFormat, data: bytes, *, piece: int = 1024 * 1024) -> tuple[int, int | str]:
    """Bytes that reading took at most, and how many records there were, or why they can't be read."""
    records, count = Records(format), 0
    tracemalloc.start()
    try:
        for start in range(0, len(data), piece):
            for _ in records.feed(data[start : start + piece]):
                count += 1
        for _ in records.finish():
            count += 1
    except NotReadable as error:
        return tracemalloc.get_traced_memory()[1], str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, count


NODES = b"[" + b"[]," * 2_000_000 + b"[]]"


@pytest.mark.parametrize(
    ("format", "data", "found"),
    [
        ("csv", b'a,b\n"' + b"x\n" * 500_000 + b'",2\n', 1),
        ("csv", b",".join(b"%d" % number for number in range(600_000)) + b"\n" + b"," * 599_999 + b"\n", "wide"),
        ("jsonl", NODES + b"\n", "wide"),
        ("json", b"[" + NODES + b"]", "wide"),
        ("json", b'["' + b"[,{" * 1_500_000 + b'"]', 1),
        ("jsonl", b'{"a":"' + b'\\"[' * 1_500_000 + b'"}', 1),
    ],
)
def test_one_record_of_many_parts_takes_memory_by_its_length_and_not_by_its_parts(
    format: RecordFormat, data: bytes, found: int | str
) -> None:
    peak, count = _peak(format, data)
    assert count == found if isinstance(found, int) else found in str(count)
    # The lines of one long field, as a list, would take thirty times their length.
    assert peak < min(20 * len(data), 90_000_000), (peak, len(data))


def test_many_small_records_are_not_taken_for_one_wide_record() -> None:
    for format, data in (("json", b"[" + b"[1,2,3,4]," * 300_000 + b"[]]"), ("jsonl", b"[1,2,3,4]\n" * 300_000 + b"[]")):
        records = Records(cast("RecordFormat", format))
        assert sum(1 for _ in records.feed(data)) + sum(1 for _ in records.finish()) == 300_001


@pytest.mark.parametrize("parts", [WIDEST - 1, WIDEST])
@pytest.mark.parametrize("filling", [b"[]", b'",[{\\""', b"          7"])
def test_parts_are_counted_as_they_would_be_made(parts: int, filling: bytes) -> None:
    line = b"[" + filling + (b"," + filling) * (parts - 1) + b"]"
    assert len(line) > 500_000
    for format, data in (("jsonl", line), ("json", b"[" + line + b"]")):
        records, count = Records(cast("RecordFormat", format)), 0
        try:
            count += sum(1 for _ in records.feed(data))
            count += sum(1 for _ in records.finish())
        except NotReadable:
            count = -1
        assert count == (1 if parts < WIDEST else -1), format


@pytest.mark.parametrize("format", ["jsonl", "json", "csv"])
def test_the_same_record_takes_no_more_where_it_is_only_counted(format: Format) -> None:
    data = b'a\n"' + b"x\n" * 2_000_000 + b'"\n' if format == "csv" else NODES + b"\n"
    measurer = Measurer(format)
    tracemalloc.start()
    try:
        for start in range(0, len(data), 1024 * 1024):
            measurer.feed(data[start : start + 1024 * 1024])
        assert measurer.finish().well_formed
        assert tracemalloc.get_traced_memory()[1] < 90_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("said", "found", "total", "outcome"),
    [
        ("ended", {}, None, "partial"),
        ("ended", {"succeeded": 5}, None, "partial"),
        ("ended", {"failed": 5}, None, "partial"),
        ("succeeded", {"failed": 5}, None, "partial"),
        ("succeeded", {"succeeded": 5}, None, "whole"),
        ("ended", {"succeeded": 5}, 5, "whole"),
        ("ended", {"failed": 5}, 5, "none"),
        ("ended", {"succeeded": 5}, 6, "partial"),
    ],
)
def test_where_nobody_knows_how_many_items_there_were_neither_all_nor_none_is_claimed_of_them(
    said: Said, found: dict[ItemWord, int], total: int | None, outcome: str
) -> None:
    tally = Tally()
    tally.words |= found
    counts = ProviderCounts() if total is None else ProviderCounts({"total": total}, ("total",))
    weighed = weigh(said, counts, tally, SubmittedFacts(None))
    assert (weighed.outcome, weighed.disagrees) == (outcome, True)


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), (3.0, 3), (0, 0), (2.5, None), (-1, None), (2**60, None), (10**400, None), ("3", None), (True, None), (None, None)],
)
def test_a_number_of_submitted_items_is_read_as_any_count_is(value: Any, number: int | None) -> None:
    wanted = calls.Submitted.model_validate({"count": "steps.upload.count"})
    assert itemising.submitted_number(wanted, Scope(steps={"upload": {"count": value}})) == number


SPLIT = '[1.5, -2.25e-3, 1E+20, 10, {"a": 0.5}, "\\ud83d\\ude00,[", "ä", true, null, [1.0]]'


@pytest.mark.parametrize("at", range(1, len(SPLIT.encode())))
def test_a_record_is_the_same_wherever_its_bytes_are_cut(at: int) -> None:
    data = SPLIT.encode()
    records = Records("json")
    found = [*records.feed(data[:at]), *records.feed(data[at : at + 1]), *records.feed(data[at + 1 :]), *records.finish()]
    assert found == json.loads(SPLIT)
    measurer = Measurer("json")
    for piece in (data[:at], data[at : at + 1], data[at + 1 :]):
        measurer.feed(piece)
    assert measurer.finish().records == len(found)
