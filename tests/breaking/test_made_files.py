"""A file that is made of the input takes no more than it may have, and is refused where it would not come back as it was."""

import time
import tracemalloc
from typing import Any

import pytest

from domain import files
from domain.contract import File
from domain.errors import BadInput
from domain.files import made_from
from domain.language.expressions import Scope


def made(value: Any, *, source: str = "input.rows", media: str = "text/csv", most: str = "1MiB") -> bytes | None:
    return made_from("rows", File.model_validate({"media": media, "max_bytes": most, "from": source}), Scope(input={"rows": value}))


@pytest.mark.parametrize("media", ["text/csv", "application/jsonl"])
def test_rows_that_each_bring_a_column_of_their_own_never_become_more_than_the_file_may_have(media: str) -> None:
    rows = [{f"c{number}": number} for number in range(12_000)]
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(BadInput, match="more than 65536 bytes"):
            made(rows, media=media, most="64KiB")
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 10


@pytest.mark.parametrize("media", ["text/csv", "application/jsonl"])
@pytest.mark.parametrize("source", ['[{a: `"\\ud800"`}]', "[{a: to_number('1e999')}]", "[{a: to_number('-1e999')}]"])
def test_what_no_file_can_hold_as_it_is_is_bad_input(media: str, source: str) -> None:
    with pytest.raises(BadInput, match=r"files\.rows"):
        made([], source=source, media=media)


def test_a_file_that_may_be_large_is_made_of_the_input_up_to_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_MADE", 1000)
    assert made([{"a": "x" * 900}], most="1GiB") is not None
    with pytest.raises(BadInput, match="more than 1000 bytes, the most that is made of an input") as said:
        made([{"a": "x" * 1000}], most="1GiB")
    assert said.value.hint == "give it as a file: --file rows=PATH"


def test_a_file_of_just_the_most_that_is_taken_is_made() -> None:
    assert made([{"a": "x" * 7}], most="12B") == b"a\r\nxxxxxxx\r\n"
    with pytest.raises(BadInput, match="more than 11 bytes"):
        made([{"a": "x" * 7}], most="11B")
    assert made([{"a": "x"}], media="application/jsonl", most="10B") == b'{"a":"x"}\n'
    with pytest.raises(BadInput, match="more than 9 bytes"):
        made([{"a": "x"}], media="application/jsonl", most="9B")
