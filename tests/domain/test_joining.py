"""Pages become one object, the same one however their bytes are cut."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.results.counting import Format
from domain.results.joining import MAX_HEADER, Joiner

BOM = b"\xef\xbb\xbf"


def joined(format: Format, pages: list[bytes], step: int = 10_000) -> tuple[bytes, str | None]:
    joiner = Joiner(format)
    parts: list[bytes] = []
    for page in pages:
        joiner.begin()
        parts += [joiner.feed(page[at : at + step]) for at in range(0, len(page), step)]
        parts.append(joiner.end())
    return b"".join(parts), joiner.problem


@pytest.mark.parametrize("step", [1, 2, 3, 10_000])
@pytest.mark.parametrize(
    ("format", "pages", "whole"),
    [
        ("csv", [b"a,b\n1,2\n", b"a,b\n3,4\n"], b"a,b\n1,2\n3,4\n"),
        ("csv", [b"a,b\n1,2", b"a,b\n3,4"], b"a,b\n1,2\n3,4"),
        ("csv", [b"a,b\r\n1,2\r\n", b"a,b\r\n3,4\r\n"], b"a,b\r\n1,2\r\n3,4\r\n"),
        ("csv", [BOM + b"a,b\n1,2\n", BOM + b"a,b\n3,4\n"], BOM + b"a,b\n1,2\n3,4\n"),
        ("csv", [b'"a\nx",b\n1,2\n', b'"a\nx",b\n3,4\n'], b'"a\nx",b\n1,2\n3,4\n'),
        ("csv", [b"a,b\n1,2\n", b"a,b", b"a,b\n5,6\n"], b"a,b\n1,2\n5,6\n"),
        ("csv", [b"", b"a,b\n1,2\n", b"", b"a,b\n3,4\n"], b"a,b\n1,2\n3,4\n"),
        ("csv", [b"a,b\n", b"\n"], b"a,b\n\n"),
        ("jsonl", [b"1\n2", b"3\n", b"", BOM + b"4"], b"1\n2\n3\n4"),
        ("text", [b"a", b"b", BOM + b"c"], b"abc"),
        ("binary", [b"a", BOM + b"b"], b"a" + BOM + b"b"),
    ],
)
def test_pages_are_one_object(format: Format, pages: list[bytes], whole: bytes, step: int) -> None:
    assert joined(format, pages, step) == (whole, None)


def test_a_page_with_other_columns_is_a_problem() -> None:
    assert joined("csv", [b"a,b\n1,2\n", b"b,a\n2,1\n", b"c\n1\n"])[1] == "page 2 has another header row than the first"


def test_a_header_without_end_is_not_held() -> None:
    assert joined("csv", [b"a" * (MAX_HEADER + 10), b"b"], 4096)[1] == f"the header row of page 1 is longer than {MAX_HEADER} bytes"


ROWS = st.lists(st.tuples(st.text(), st.text()), max_size=5)


@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(1, 7))
def test_a_table_in_pages_has_the_rows_of_all(tables: list[list[tuple[str, str]]], step: int) -> None:
    head = ("one", 'tw"o\n')
    pages: list[bytes] = []
    for rows in tables:
        page = io.StringIO(newline="")
        csv.writer(page, quoting=csv.QUOTE_ALL).writerows([head, *rows])
        pages.append(page.getvalue().encode("utf-8", "replace"))
    whole, problem = joined("csv", pages, step)
    assert problem is None
    found = list(csv.reader(io.StringIO(whole.decode(), newline=""), strict=True))
    written = [[part.encode("utf-8", "replace").decode() for part in row] for rows in tables for row in rows]
    assert found == [list(head), *written]
