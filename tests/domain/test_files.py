"""Big inputs: what a contract may say of them, what is made of a list, and how a body with a file is framed."""

import csv
import json
import re
from dataclasses import replace
from email import message_from_bytes
from io import StringIO
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.contract import File
from domain.errors import BadInput, RenderError
from domain.evidence import FileFacts, file_key
from domain.exchange import Request, StoredPart
from domain.files import files_root, format_of, made_from
from domain.fingerprint import sha256_hex
from domain.language.expressions import Scope
from domain.multipart import FileField, boundary_of, multipart
from domain.rendering import render
from domain.results.measuring import Measurer
from tests.domain.sample_contract import problems, sample

ROWS = File.model_validate({"media": "application/jsonl", "max_bytes": "1MiB", "from": "input.rows"})
TABLE = File.model_validate({"media": "text/csv; charset=utf-8", "max_bytes": "1MiB", "from": ["input.rows", "input.others"]})
FACTS = FileFacts(sha256="ab" * 32, bytes=5, media="application/jsonl", records=2)
STORED = StoredPart(file_key("t1", FACTS.sha256), 5, FACTS.sha256)
SCOPE = Scope(
    input={"name": "x"}, operation={"tenant": "t1"}, files=files_root({"requests": FACTS}), mark="m" * 30, call_id="op-1.create.1",
    trace_id="t",
)  # fmt: skip
FILES = {"requests": {"media": "application/jsonl", "max_bytes": "1MiB"}}


def made(file: File, rows: Any, **more: Any) -> bytes | None:
    return made_from("rows", file, Scope(input={"rows": rows, **more}))


@pytest.mark.parametrize(
    ("media", "format"),
    [
        ("application/jsonl", "jsonl"),
        ("application/x-ndjson", "jsonl"),
        ("text/jsonl", "jsonl"),
        ("Application/NDJSON; charset=utf-8", "jsonl"),
        ("text/csv", "csv"),
        ("text/csv;header=present", "csv"),
        ("application/json", "json"),
        ("application/vnd.x+json", "json"),
        ("text/plain", "binary"),
        ("text/json", "binary"),
        ("application/octet-stream", "binary"),
        ("", "binary"),
    ],
)
def test_the_media_says_how_records_are_counted(media: str, format: str) -> None:
    assert format_of(media) == format


def test_a_list_becomes_json_lines_with_keys_as_they_stand_in_the_input() -> None:
    rows = [{"b": 1, "a": "é\n"}, [1.5, None], "x"]
    assert made(ROWS, rows) == '{"b":1,"a":"é\\n"}\n[1.5,null]\n"x"\n'.encode()
    assert made(ROWS, []) == b""


def test_a_list_of_maps_becomes_csv_with_columns_in_the_order_in_which_they_occur() -> None:
    rows = [{"b": 'say "hi", you', "a": 1}, {"c": True, "a": None}, {"b": "two\r\nlines", "c": 0.5}]
    assert made(TABLE, rows) == b'b,a,c\r\n"say ""hi"", you",1,\r\n,,true\r\n"two\r\nlines",,0.5\r\n'
    assert made(TABLE, None, others=[{"a": "only"}]) == b"a\r\nonly\r\n"


@given(st.lists(st.fixed_dictionaries({"a": st.text(), "b": st.text()}), min_size=1, max_size=5))
def test_what_stands_in_csv_is_read_back_as_it_was_and_counted(rows: list[dict[str, str]]) -> None:
    written = made(TABLE, rows)
    assert written is not None
    assert list(csv.DictReader(StringIO(written.decode(), newline=""))) == rows
    measurer = Measurer("csv")
    measurer.feed(written)
    assert measurer.finish().records == len(rows)


def test_a_single_empty_column_is_a_row_too() -> None:
    written = made(TABLE, [{"a": ""}, {}])
    assert written == b'a\r\n""\r\n""\r\n'
    measurer = Measurer("csv")
    measurer.feed(written)
    assert measurer.finish().records == 2


@pytest.mark.parametrize(
    ("file", "rows", "words"),
    [
        (ROWS, {"a": 1}, "made of a list"),
        (ROWS, "text", "made of a list"),
        (ROWS, [float("inf")], "not finite"),
        (ROWS, ["\ud800"], "not UTF-8"),
        (TABLE, ["a"], "element 1"),
        (TABLE, [{"a": 1}, [2]], "element 2"),
        (TABLE, [{"a": 1}, {"b": {"c": 1}}], "b of element 2"),
        (TABLE, [{"a": [1]}], "a of element 1"),
        (TABLE, [], "without columns"),
        (TABLE, [{}], "without columns"),
    ],
)
def test_what_no_line_or_row_can_hold_is_refused(file: File, rows: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        made(file, rows)


def test_what_is_more_than_may_be_evaluated_is_to_be_given_as_a_file() -> None:
    greedy = ROWS.model_copy(update={"source": ("input.rows[*].[@, @, @, @, @, @, @, @][]",)})
    with pytest.raises(BadInput, match="more than may be evaluated") as refused:
        made(greedy, [0] * 100_000)
    assert refused.value.hint == "give it as a file: --file rows=PATH"


def test_without_a_value_nothing_is_made() -> None:
    assert made(ROWS, None) is None


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"files": {"f": {"media": "application/json", "max_bytes": "1B", "from": "input.name"}}}, "files.f.from", "JSON Lines or CSV"),
        ({"files": {"f": {"media": "image/png", "max_bytes": "1B", "max_records": 2}}}, "files.f.max_records", "no max_records"),
        ({"files": {"f": {"media": "jsonl", "max_bytes": "1B"}}}, "files.f.media", "a media type"),
        ({"files": {"f": {"media": "a/b\r\nX: y", "max_bytes": "1B"}}}, "files.f.media", "a media type"),
        ({"files": FILES, "observe__request": {"method": "POST", "path": "/", "file": "other"}}, "observe.request.file", "requests"),
        ({"observe__request": {"method": "POST", "path": "/", "file": "other"}}, "observe.request.file", "none"),
        (
            {"observe__request": {"method": "POST", "path": "/", "multipart": {"up": {"file": "other"}}}},
            "observe.request.multipart.up.file",
            "the name of a file",
        ),
        ({"observe__request": {"method": "POST", "path": "/", "multipart": {}}}, "observe.request.multipart", "at least one"),
        ({"observe__request": {"method": "POST", "path": "/", "multipart": {"a\n": "x"}}}, "observe.request.multipart.a\n", "control"),
        (
            {"observe__request": {"method": "POST", "path": "/", "multipart": {"a": "x"}, "headers": {"content-type": "a/b"}}},
            "observe.request.headers.content-type",
            "boundary",
        ),
        (
            {"observe__request": {"method": "POST", "path": "/", "multipart": {"a": "${nothing}"}}},
            "observe.request.multipart.a",
            "nothing is not known here",
        ),
    ],
)
def test_what_a_contract_may_not_say_of_files_is_found_where_it_stands(changes: dict[str, Any], key: str, words: str) -> None:
    found = [(place, wanted) for place, wanted in problems(**changes) if place == key]
    assert found, problems(**changes)
    assert words in found[0][1]


def test_files_that_are_whole_are_nothing_to_find() -> None:
    files = FILES | {"rows": {"media": "text/csv", "max_bytes": "1GiB", "max_records": 5, "from": "input.nested.rows"}}
    request = {
        "method": "POST",
        "path": "/",
        "multipart": {"purpose": "batch", "up": {"file": "requests", "filename": "${input.name}.jsonl"}},
    }
    assert problems(files=files, create__request=request | {"headers": {"Idempotency-Key": "${token}"}}) == []
    assert problems(files=files, observe__request={"method": "POST", "path": "/", "file": "rows"}) == []


def built(scope: Scope = SCOPE, **request: Any) -> Request:
    contract = sample(observe__request={"method": "POST", "path": "/up", **request}, files=FILES, input__properties__note={})
    assert contract.observe is not None
    return render(contract, contract.observe.request, scope)


def test_a_file_is_a_body_by_reference_with_its_own_media_type() -> None:
    request = built(file="requests")
    assert (request.body, request.parts) == (b"", (STORED,))
    assert ("Content-Type", "application/jsonl") in request.headers
    assert (request.body_bytes, request.body_sha256) == (5, FACTS.sha256)
    assert ("Content-Type", "text/x") in built(file="requests", headers={"Content-Type": "text/x"}).headers


def test_a_multipart_body_has_its_texts_first_each_in_the_order_of_their_names() -> None:
    named = {"file": "requests", "filename": '${input.name} "é".jsonl'}
    request = built(
        replace(SCOPE, input={"name": "x", "note": True}),
        multipart={"b": {"file": "requests"}, "z": "${input.note}", "a": named, "c": "é"},
    )
    boundary = boundary_of("m" * 30, "op-1.create.1")
    assert ("Content-Type", f"multipart/form-data; boundary={boundary}") in request.headers
    head, first, between, second, tail = request.parts
    assert first == second == STORED
    assert (
        head
        == (
            f'--{boundary}\r\nContent-Disposition: form-data; name="c"\r\n\r\né\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="z"\r\n\r\ntrue\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="a"; filename="x %22é%22.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        ).encode()
    )
    assert (
        between
        == (
            f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="b"; filename="requests"\r\nContent-Type: application/jsonl\r\n\r\n'
        ).encode()
    )
    assert tail == f"\r\n--{boundary}--\r\n".encode()
    assert request.body_bytes == sum(map(len, (head, between, tail))) + 10  # pyright: ignore[reportArgumentType]
    assert request.body_sha256 is None


def test_the_boundary_belongs_to_one_call_and_is_the_same_on_every_resending() -> None:
    assert built(multipart={"a": "x"}) == built(multipart={"a": "x"})
    others = {boundary_of("m", "c"), boundary_of("m", "d"), boundary_of("n", "c"), boundary_of("mc", "")}
    assert len(others) == 4
    assert all(re.fullmatch(r"[a-z0-9-]{1,70}", boundary) for boundary in others)


def test_a_field_without_a_value_is_left_out_and_a_body_without_files_is_bytes() -> None:
    request = built(multipart={"a": "${input.note}", "b": "x"})
    assert request.parts == ()
    assert b'name="b"' in request.body
    assert b'name="a"' not in request.body


def test_a_filename_without_a_value_is_the_name_of_the_file() -> None:
    request = built(multipart={"a": {"file": "requests", "filename": "${input.note}"}})
    assert b'filename="requests"' in request.parts[0]  # pyright: ignore[reportOperatorIssue]


@pytest.mark.parametrize(
    ("scope", "multipart"),
    [
        (SCOPE, {"a": "${input}"}),
        (SCOPE, {"a": "${input.name}"}),
        (SCOPE, {"a": {"file": "requests", "filename": "${input.name}"}}),
        (replace(SCOPE, input={"name": "\ud800"}), {"a": "${input.name}"}),
        (replace(SCOPE, input={"name": "x" * 300}), {"a": {"file": "requests", "filename": "${input.name}"}}),
        (replace(SCOPE, mark=None, input={"name": "x"}), {"a": "${input.name}"}),
        (replace(SCOPE, call_id=None, input={"name": "x"}), {"a": "${input.name}"}),
        (replace(SCOPE, files={}), {"a": {"file": "requests"}}),
        (replace(SCOPE, operation=None), {"a": {"file": "requests"}}),
    ],
)
def test_what_cannot_be_framed_is_not_sent(scope: Scope, multipart: dict[str, Any]) -> None:
    hostile = replace(scope, input={"name": f"a{boundary_of('m' * 30, 'op-1.create.1')}\n"}) if scope is SCOPE else scope
    with pytest.raises(RenderError):
        built(hostile, multipart=multipart)


@given(
    st.dictionaries(st.text("abcé \"'=;", min_size=1), st.text(), max_size=3),
    st.dictionaries(st.text("xyzü\"'", min_size=1), st.binary(max_size=50), max_size=3),
)
def test_the_framing_is_byte_for_byte_that_of_a_kept_library(texts: dict[str, str], files: dict[str, bytes]) -> None:
    kept = {sha256_hex(data): data for data in files.values()}
    fields = [FileField(name, f"{name}.bin", "a/b", StoredPart("k", len(data), sha256_hex(data))) for name, data in files.items()]
    parts = multipart(texts.items(), fields, "limit-7")
    ours = b"".join(kept[part.sha256] if isinstance(part, StoredPart) else part for part in parts)
    theirs = httpx.Request(
        "POST",
        "https://x.example",
        data={name: texts[name] for name in sorted(texts)},
        files=[(name, (f"{name}.bin", files[name], "a/b")) for name in sorted(files)],
        headers={"content-type": "multipart/form-data; boundary=limit-7"},
    )
    if files:
        assert ours == theirs.read()
    parsed = message_from_bytes(b"Content-Type: multipart/form-data; boundary=limit-7\r\n\r\n" + ours)
    assert len(parsed.get_payload()) == len(texts) + len(files) or not (texts or files)


def test_a_stored_request_with_parts_comes_back_as_it_was_and_an_earlier_one_is_read_still() -> None:
    request = replace(built(multipart={"b": {"file": "requests"}, "a": "x"}), whole_sha256="cd" * 32)
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request
    assert request.body_sha256 == "cd" * 32
    unread = replace(request, whole_sha256=None)
    assert Request.from_json(json.loads(json.dumps(unread.to_json()))) == unread
    earlier = {"method": "POST", "url": "https://x.example/", "headers": [["A", "b"]], "body": "eA==", "redirects": 0}
    plain = Request("POST", "https://x.example/", (("A", "b"),), b"x")
    assert Request.from_json(dict(earlier)) == plain
    assert plain.to_json() == earlier
    assert (plain.body_bytes, plain.body_sha256) == (1, sha256_hex(b"x"))
