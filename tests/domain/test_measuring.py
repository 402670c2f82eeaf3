"""What is measured of any bytes, however they are cut."""

import csv
import hashlib
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.jsontext import MAX_DEPTH
from domain.results.measuring import Format, Limits, Measured, Measurer

FORMATS: tuple[Format, ...] = ("json", "jsonl", "csv", "text", "binary")
SMALL = Limits(window=8)


def measure(format: Format, data: bytes, *, piece: int = 5, limits: Limits = SMALL) -> Measured:
    measurer = Measurer(format, limits)
    for start in range(0, len(data), piece):
        measurer.feed(data[start : start + piece])
        assert measurer.size == min(start + piece, len(data))
    return measurer.finish()


@given(format=st.sampled_from(FORMATS), data=st.binary(max_size=300), piece=st.integers(1, 50), window=st.integers(1, 50))
def test_any_bytes_give_size_and_digest(format: Format, data: bytes, piece: int, window: int) -> None:
    found = measure(format, data, piece=piece, limits=Limits(window=window))
    assert (found.size, found.sha256, found.head) == (len(data), hashlib.sha256(data).hexdigest(), data[:16])
    assert found.well_formed == (found.problem is None)
    assert found.well_formed or (found.records is None and not found.value_read)


TEXTS = st.text(alphabet=st.sampled_from('",\n\r;{}[]:01-e.ab \\\ufeffé\0'), max_size=60)


@given(format=st.sampled_from(FORMATS), text=TEXTS, one=st.integers(1, 20), other=st.integers(1, 20), window=st.integers(1, 30))
def test_how_the_bytes_are_cut_changes_nothing(format: Format, text: str, one: int, other: int, window: int) -> None:
    data = text.encode()
    first = measure(format, data, piece=one, limits=Limits(window=window))
    second = measure(format, data, piece=other, limits=Limits())
    assert (first.well_formed, first.records, first.value, first.value_read) == (
        second.well_formed,
        second.records,
        second.value,
        second.value_read,
    )


PLAIN = (
    *('{"a":1}', '{"a":{"b":[1,"x"]}}', '{"a":"{[,"}', "{}", '{"a":"\\ud800"}', '{"a":1,"a":2}', '{"a":1e999}', '{"a":' + "1" * 5000 + "}"),
    *('{"a":' * 40 + "[" * 24 + "]" * 24 + "}" * 40, '{"a":' * 40 + "[" * 25 + "]" * 25 + "}" * 40),
    *('{"a":NaN}', '{"a":-Infinity}', '{"a":01}', '{"a":"\t"}', '{"a":1', '"b":2}', '{"a":1} {}', "[1]", "NaN", "1,2", '"a"'),
    *("a,b", '"a,b",c', '"a', 'b"', ",", "é,é", "a\rb", "", "\r", " "),
)


@given(
    format=st.sampled_from(("csv", "jsonl")),
    lines=st.lists(st.sampled_from(PLAIN), max_size=12),
    times=st.integers(1, 3),
    end=st.sampled_from(["\n", "\r\n"]),
    whole=st.booleans(),
    piece=st.integers(1, 200),
)
def test_many_lines_at_once_are_what_they_are_one_by_one(
    format: Format, lines: list[str], times: int, end: str, whole: bool, piece: int
) -> None:
    data = (end.join(lines * times) + (end if whole else "")).encode()
    at_once = measure(format, data, piece=piece, limits=Limits(window=64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("domain.results.counting._MANY", -1)
        assert measure(format, data, piece=piece, limits=Limits(window=64)) == at_once


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth + b"\n"


LINES: list[tuple[str, bytes, int | None]] = [
    ("nothing", b"", 0),
    ("one line", b'{"a":1}', 1),
    ("an end of line at the end", b'{"a":1}\n', 1),
    ("blank lines", b'\n\n{"a":1}\n  \n\t\r\n[2]\n\n', 2),
    ("carriage returns", b"1\r\n2\r\n", 2),
    ("a byte order mark", b"\xef\xbb\xbf1\n2", 2),
    ("scalars", b'1\n"x"\nnull\n', 3),
    ("text with an escaped end of line", b'"a\\nb"\n', 1),
    ("text beyond ASCII", '"é€😀"\n'.encode(), 1),
    ("a number of many digits", b"1" + b"0" * 6000 + b"\n", 1),
    ("NaN", b"1\nNaN\n", None),
    ("two values in one line", b"1 2\n", None),
    ("a value over two lines", b"[1,\n2]\n", None),
    ("a cut end", b'{"a":1}\n{"a":', None),
    ("bytes that are not UTF-8", b'1\n"\xff"\n', None),
    ("a cut character", b'1\n"\xc3', None),
    ("a second byte order mark", b"\xef\xbb\xbf\xef\xbb\xbf1", None),
    ("another encoding", '{"a":1}'.encode("utf-16"), None),
    ("an HTML page", b"<html>\n</html>\n", None),
    ("depth without end", b"[" * 100_000, None),
    ("many of the deepest that may be", nested(MAX_DEPTH) * 3, 3),
    ("one that is too deep among others", nested(1) * 3 + nested(MAX_DEPTH + 1), None),
]


@pytest.mark.parametrize("piece", [1, 3, 100_000])
@pytest.mark.parametrize(("data", "records"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_json_lines_are_counted_and_each_is_json(data: bytes, records: int | None, piece: int) -> None:
    found = measure("jsonl", data, piece=max(piece, len(data) // 200))
    assert (found.records, found.well_formed) == (records, records is not None)


def test_a_problem_names_its_line_and_shows_nothing_of_it() -> None:
    assert measure("jsonl", b'1\n\n{"secret": swordfish}\n').problem == "not jsonl: line 3: Expecting value at character 12"
    assert measure("text", b"abc\xff").problem == "not UTF-8 (invalid start byte, after 0 characters)"
    assert measure("csv", b"a,b\n1,2\n1,2,3\n").problem == "not csv: the row that ends in line 3 has 3 fields, the header has 2"


def test_long_lines_are_read_as_streams() -> None:
    line = json.dumps(["x" * 100] * 12_000).encode()
    assert len(line) > 1024 * 1024
    found = measure("jsonl", line + b"\n1\n" + line, piece=50_000, limits=Limits())
    assert found.records == 3
    found = measure("jsonl", b"1\n" + line[:-1] + b"\n", piece=50_000, limits=Limits())
    assert found.problem is not None
    assert found.problem.startswith("not jsonl: line 2: it ends in the middle")


@pytest.mark.parametrize(
    ("format", "data", "where"),
    [
        ("jsonl", b'1\n"' + b"x" * 500, "line 2 has more than 100 characters"),
        ("csv", b'a\n"' + b"x\n" * 500, "line 2: a row of more than 100 characters"),
        ("csv", b"a\n" + b"x" * 500, "line 2: a row of more than 100 characters"),
        ("json", b'"' + b"x" * 500, "a value of more than 100 characters"),
    ],
)
def test_a_record_longer_than_may_be_held_is_a_problem(format: Format, data: bytes, where: str) -> None:
    found = measure(format, data, limits=Limits(window=8, record=100))
    assert found.problem is not None
    assert where in found.problem
    assert found.size == len(data)


ROWS: list[tuple[str, bytes, int | None]] = [
    ("nothing", b"", 0),
    ("a header alone", b"id,name\n", 0),
    ("rows", b"id,name\n1,ana\n2,ben\n", 2),
    ("no end of line at the end", b"id,name\n1,ana\n2,ben", 2),
    ("carriage returns", b"id,name\r\n1,ana\r\n2,ben\r\n", 2),
    ("a byte order mark", b'\xef\xbb\xbf"id","name"\n1,ana\n', 1),
    ("blank lines", b"\nid,name\n\n1,ana\n\n\n", 1),
    ("quoted commas", b'id,name\n1,"ana, b"\n', 1),
    ("quoted ends of line", b'id,name\n1,"a\nb\r\n\nc"\n2,x\n', 2),
    ("doubled quotes", b'id,name\n1,"say ""hi"",\n"\n2,x\n', 2),
    ("a quote inside a bare field", b'id,name\n1,5" pipe\n2,6" pipe\n3,x\n', 3),
    ("empty fields", b"id,name\n,\n", 1),
    ("one column", b"id\n1\n2\n", 2),
    ("a field of 200,000 characters", b'id,name\n1,"' + b"x" * 200_000 + b'"\n', 1),
    ("a row too short", b"id,name\n1\n", None),
    ("a row too long", b"id,name\n1,2,3\n", None),
    ("a quote that never ends", b'id,name\n1,"ana\n2,ben\n', None),
    ("text after a quoted field", b'id,name\n1,"ana"x\n', None),
    ("bare carriage returns", b"id,name\r1,ana\r", None),
    ("bytes that are not UTF-8", b"id,name\n1,\xff\n", None),
    ("a cut row", b"id,name\n1,ana\n2", None),
]


@pytest.mark.parametrize("piece", [1, 3, 100_000])
@pytest.mark.parametrize(("data", "records"), [case[1:] for case in ROWS], ids=[case[0] for case in ROWS])
def test_csv_rows_are_counted_without_the_header(data: bytes, records: int | None, piece: int) -> None:
    found = measure("csv", data, piece=max(piece, len(data) // 200))
    assert (found.records, found.well_formed) == (records, records is not None)


@given(
    rows=st.lists(st.lists(st.text(alphabet=st.sampled_from('a"\n,\r é'), max_size=6), min_size=2, max_size=2), min_size=1, max_size=12),
    end=st.sampled_from(["\n", "\r\n"]),
    piece=st.integers(1, 30),
    window=st.integers(1, 60),
)
def test_csv_that_a_writer_wrote_is_read(rows: list[list[str]], end: str, piece: int, window: int) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    found = measure("csv", file.getvalue().encode(), piece=piece, limits=Limits(window=window))
    assert (found.problem, found.records) == (None, len(rows) - 1)


DOCUMENTS: list[tuple[str, bytes, int | None, Any]] = [
    ("an array", b'[1,{"a":[2,3]},"x"]', 3, [1, {"a": [2, 3]}, "x"]),
    ("an empty array", b"[]", 0, []),
    ("an object", b'{"a":[1,2]}', None, {"a": [1, 2]}),
    ("null", b"null", None, None),
    ("a byte order mark", b"\xef\xbb\xbf[1]", 1, [1]),
]


@pytest.mark.parametrize(("data", "records", "value"), [case[1:] for case in DOCUMENTS], ids=[case[0] for case in DOCUMENTS])
def test_a_small_document_is_kept_as_a_value(data: bytes, records: int | None, value: Any) -> None:
    found = measure("json", data)
    assert (found.well_formed, found.records, found.value_read, found.value) == (True, records, True, value)


def test_a_lone_surrogate_is_kept_as_what_can_be_written() -> None:
    found = measure("json", b'["\\ud800"]')
    assert (found.well_formed, found.records, found.value_read) == (True, 1, True)
    assert json.dumps(found.value, ensure_ascii=False).encode()


def test_a_document_larger_than_is_kept_is_still_measured() -> None:
    data = json.dumps(list(range(1000))).encode()
    found = measure("json", data, limits=Limits(value=len(data) - 1, window=8))
    assert (found.well_formed, found.records, found.value_read, found.value) == (True, 1000, False, None)
    assert measure("json", data, limits=Limits(value=len(data), window=8)).value_read


def test_a_document_of_more_nodes_than_are_held_is_measured_and_not_kept() -> None:
    data = b"[" + b"0," * 300_000 + b"0]"
    found = measure("json", data, piece=50_000, limits=Limits())
    assert (found.well_formed, found.records, found.value_read) == (True, 300_001, False)


@pytest.mark.parametrize("data", [b"", b"[1", b"[1]]", b"{}{}", b"NaN", b'"\xff"', b"<html>", b"[" * 100_000, b'"\xed\xa0\x80"'])
def test_what_is_not_a_document_is_not_well_formed(data: bytes) -> None:
    found = measure("json", data, piece=max(3, len(data) // 200))
    assert (found.well_formed, found.records, found.value_read) == (False, None, False)


@pytest.mark.parametrize(
    ("data", "well_formed"),
    [(b"", True), ("é€😀".encode(), True), (b"a\0b", True), (b"\xc3", False), (b"\xc3(", False), ("é".encode("latin-1"), False)],
)
def test_text_is_utf_8(data: bytes, well_formed: bool) -> None:
    for piece in (1, 2, 100):
        found = measure("text", data, piece=piece, limits=Limits(window=1))
        assert (found.well_formed, found.records) == (well_formed, None)


def test_of_binary_nothing_is_asked() -> None:
    found = measure("binary", b"\xff\x00" * 100)
    assert (found.well_formed, found.records, found.size, found.problem) == (True, None, 200, None)
