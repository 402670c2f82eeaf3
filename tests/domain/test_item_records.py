"""Records are the same however the bytes are cut, and what is not made of records says so."""

import csv
import io
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.files import format_of
from domain.jsontext import NotReadable
from domain.results.counting import Limits
from domain.results.item_records import RecordFormat, Records, record_format

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r"), max_size=6)


def records(format: RecordFormat, data: bytes, cuts: Iterable[int] = (), limits: Limits | None = None) -> list[object]:
    reader, found, at = Records(format, limits), list[object](), 0
    for cut in [*sorted(cuts), len(data)]:
        found.extend(reader.feed(data[at : max(at, cut)]))
        at = max(at, cut)
    found.extend(reader.finish())
    return found


CUTS = st.lists(st.integers(0, 200), max_size=8)


@given(st.lists(VALUES, max_size=8), CUTS, st.sampled_from(["\n", "\n\n", "\r\n"]), st.booleans())
def test_lines_are_the_same_however_they_are_cut(values: list[object], cuts: list[int], end: str, last: bool) -> None:
    data = end.join(json.dumps(value) for value in values) + (end if last else "")
    assert records("jsonl", data.encode(), cuts) == values


@given(st.lists(VALUES, max_size=8), CUTS, st.sampled_from([None, 1]))
def test_elements_are_the_same_however_they_are_cut(values: list[object], cuts: list[int], indent: int | None) -> None:
    data = f"\ufeff {json.dumps(values, indent=indent, ensure_ascii=False)} ".encode("utf-8", "replace")
    assert records("json", data, cuts) == json.loads(data.decode().lstrip("\ufeff"))


@given(st.lists(st.tuples(FIELDS, FIELDS), max_size=6), CUTS, st.sampled_from(["\n", "\r\n"]))
def test_rows_are_the_same_however_they_are_cut(rows: list[tuple[str, str]], cuts: list[int], end: str) -> None:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    assert records("csv", written.getvalue().encode(), cuts) == [{"a": one, "b": other} for one, other in rows]


def test_blank_lines_are_no_records_and_a_field_may_have_lines() -> None:
    assert records("csv", b'a,b\n\n"x\ny",2\n\n', [7, 8, 9]) == [{"a": "x\ny", "b": "2"}]
    assert records("csv", b"a,a\n1,2") == [{"a": "2"}], "the last of two columns of one name counts"
    assert records("csv", b"") == []
    assert records("jsonl", b" \n\n1") == [1]


def test_a_number_that_was_cut_is_one_number() -> None:
    assert records("json", b"[12345, 6]", [3]) == [12345, 6]


@pytest.mark.parametrize(
    ("format", "data", "says"),
    [
        ("jsonl", b"{}\nnope\n", "a line is not JSON"),
        ("jsonl", b"\xff\n", "not UTF-8"),
        ("jsonl", b"1\n\xc3", "not UTF-8"),
        ("csv", b"a,b\n1\n", "a row has 1 fields, the header has 2"),
        ("csv", b'a\n"x"y\n', "expected"),
        ("csv", b'a\n"x', "end of data"),
        ("json", b"{}", "not one JSON array"),
        ("json", b"", "does not end"),
        ("json", b"[1", "does not end"),
        ("json", b"[1,", "does not end"),
        ("json", b"[1 2]", "comma"),
        ("json", b"[1,]", "not JSON"),
        ("json", b"[nope]", "not JSON"),
        ("json", b"[NaN]", "NaN is not JSON"),
        ("json", b"[] 1", "comma"),
        ("json", b"[" * 100_000, "nested too deeply"),
        ("json", b"[" * 80 + b"]" * 80, "an element is nested or wide beyond what is read"),
    ],
)
def test_what_is_not_made_of_records_says_so(format: RecordFormat, data: bytes, says: str) -> None:
    with pytest.raises(NotReadable, match=says):
        records(format, data)


@pytest.mark.parametrize(
    ("format", "data"),
    [("jsonl", b'"' + b"x" * 80), ("csv", b'a\n"' + b"x" * 80), ("json", b'["' + b"x" * 80)],
)
def test_a_record_that_never_ends_is_not_gathered_for_ever(format: RecordFormat, data: bytes) -> None:
    with pytest.raises(NotReadable, match="more than 50 characters"):
        records(format, data, range(0, 90, 5), Limits(record=50))


@pytest.mark.parametrize(
    ("media", "format"),
    [("application/x-jsonlines; charset=utf-8", "jsonl"), ("Text/CSV", "csv"), ("application/vnd.x+json", "json"), ("image/png", None)],
)
def test_the_media_type_says_how_records_are_read(media: str, format: str | None) -> None:
    assert record_format(format_of(media)) == format


def test_text_and_bytes_have_no_records() -> None:
    assert [record_format(one) for one in ("json", "jsonl", "csv", "text", "binary")] == ["json", "jsonl", "csv", None, None]
