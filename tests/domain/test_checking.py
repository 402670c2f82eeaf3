"""Each check of a result, and what it says when something is missing on one side."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.evidence import Check
from domain.results.checking import check
from domain.results.expectations import Expectations
from domain.results.measuring import Format, Limits, Measured, Measurer

CSV = b"id,name\n1,ana\n2,ben\n"
SHA = hashlib.sha256(CSV).hexdigest()
ORDER = ["format", "content_type", "bytes", "sha256", "records", "schema"]


def measured(data: bytes = CSV, format: Format = "csv", limits: Limits | None = None) -> Measured:
    measurer = Measurer(format, limits)
    measurer.feed(data)
    return measurer.finish()


def verdicts(checks: tuple[Check, ...]) -> dict[str, str]:
    assert [one.check for one in checks] == ORDER
    return {one.check: one.verdict for one in checks}


def test_what_was_promised_and_came_is_ok() -> None:
    expected = Expectations(content_type="text/csv", bytes=len(CSV), sha256=SHA, records=2)
    said = verdicts(check(expected, measured(), "text/csv; charset=utf-8"))
    assert said == dict.fromkeys(ORDER, "ok") | {"schema": "not_offered"}


def test_what_was_not_offered_says_so() -> None:
    checks = check(Expectations(), measured(), "text/csv")
    assert verdicts(checks) == dict.fromkeys(ORDER, "not_offered") | {"format": "ok"}
    assert all(one.expected is None and one.found is None for one in checks[1:])


@pytest.mark.parametrize("name", ["content_type", "bytes", "sha256", "records", "schema"])
def test_what_is_required_and_not_offered_differs(name: Any) -> None:
    for expected in (Expectations(required=(name,)), Expectations(not_offered=(name,))):
        checks = check(expected, measured(), "text/csv")
        assert [one.check for one in checks if one.verdict == "differs"] == [name]
        assert next(one for one in checks if one.check == name).found == "not offered"


@pytest.mark.parametrize("name", ["content_type", "bytes", "sha256", "records"])
def test_a_promise_that_can_not_be_read_says_what_was_found(name: Any) -> None:
    (differs,) = [one for one in check(Expectations(malformed=(name,)), measured(), "text/csv") if one.verdict == "differs"]
    assert differs.found == {"bytes": str(len(CSV)), "sha256": measured().sha256, "records": "2", "content_type": "text/csv"}[name]


@pytest.mark.parametrize("name", ["content_type", "bytes", "sha256", "records"])
def test_a_promise_that_can_not_be_read_differs(name: Any) -> None:
    checks = check(Expectations(malformed=(name,)), measured(), "text/csv")
    assert [one.check for one in checks if one.verdict == "differs"] == [name]


WRONG: list[tuple[str, Expectations, str, str]] = [
    ("content_type", Expectations(content_type="text/csv"), "text/csv", "application/json"),
    ("bytes", Expectations(bytes=19), "19", "20"),
    ("bytes", Expectations(bytes=0), "0", "20"),
    ("sha256", Expectations(sha256="0" * 64), "0" * 64, SHA),
    ("records", Expectations(records=3), "3", "2"),
    ("records", Expectations(records=0), "0", "2"),
]


@pytest.mark.parametrize(("name", "expected", "wanted", "found"), WRONG)
def test_what_differs_says_what_was_expected_and_what_was_found(name: str, expected: Expectations, wanted: str, found: str) -> None:
    checks = check(expected, measured(), "application/json")
    (differs,) = [one for one in checks if one.verdict == "differs"]
    assert (differs.check, differs.expected, differs.found) == (name, wanted, found)


@pytest.mark.parametrize(
    ("wanted", "came", "verdict"),
    [
        ("text/csv", "Text/CSV;charset=utf-8", "ok"),
        ("TEXT/CSV; header=present", "text/csv", "ok"),
        ("text/csv", " text/csv ", "ok"),
        ("text/csv", "text/csv2", "differs"),
        ("text/csv", "", "differs"),
        ("text/csv", None, "differs"),
    ],
)
def test_content_types_are_compared_by_media_type(wanted: str, came: str | None, verdict: str) -> None:
    assert verdicts(check(Expectations(content_type=wanted), measured(), came))["content_type"] == verdict


def test_a_digest_is_compared_without_regard_to_case() -> None:
    assert verdicts(check(Expectations(sha256=SHA.upper()), measured(), None))["sha256"] == "ok"


@pytest.mark.parametrize(("data", "format"), [(b"abc", "binary"), (b"abc", "text"), (b"{}", "json"), (b"a,b\n1\n", "csv")])
def test_records_of_what_has_none_that_can_be_counted_differ(data: bytes, format: Format) -> None:
    checks = check(Expectations(records=1), measured(data, format), None)
    assert next(one for one in checks if one.check == "records") == Check(
        check="records", verdict="differs", expected="1", found="nothing that can be counted"
    )


def test_what_is_not_what_its_format_says_differs() -> None:
    first = check(Expectations(), measured(b"<html>", "json"), None)[0]
    assert (first.check, first.verdict, first.expected) == ("format", "differs", "json")
    assert first.found is not None
    assert first.found.startswith("not json: ")


def test_binary_has_no_format_to_check() -> None:
    assert check(Expectations(), measured(b"\xff", "binary"), None)[0].verdict == "not_offered"


SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "s": {"pattern": "^(a+)+$"}}}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"n": 1}, None),
        ({"n": 1, "s": "aaa"}, None),
        ({}, '$: "n" is a required property'),
        ({"n": "swordfish"}, '$.n: the value is not of type "integer"'),
        (None, '$: the value is not of type "object"'),
        ({"n": 1, "s": "a" * 100_000 + "b"}, '$.s: the value does not match "^(a+)+$"'),
    ],
)
def test_a_schema_is_applied_to_the_value_and_its_words_name_no_value(value: Any, found: str | None) -> None:
    said = check(Expectations(schema=SCHEMA), measured(json.dumps(value).encode(), "json"), None)[-1]
    assert (said.verdict, said.found) == ("ok" if found is None else "differs", found)


def test_a_place_in_an_array_is_named() -> None:
    said = check(Expectations(schema={"items": {"type": "integer"}}), measured(b'[1,"x"]', "json"), None)[-1]
    assert said.found == '$[1]: the value is not of type "integer"'


@pytest.mark.parametrize(
    "found",
    [
        measured(b'{"n":1}', "json", Limits(value=3)),
        measured(b"{", "json"),
        measured(b'{"n":1}', "jsonl"),
        measured(b'{"n":1}', "binary"),
    ],
    ids=["too large", "broken", "lines", "binary"],
)
def test_a_schema_that_can_not_be_applied_is_not_fulfilled(found: Measured) -> None:
    assert check(Expectations(schema=SCHEMA), found, None)[-1].verdict == "differs"


@pytest.mark.parametrize("schema", [{"$ref": "https://schemas.example/x"}, {"type": "nope"}, {"pattern": "(?=a)"}])
def test_a_schema_that_can_not_be_used_is_not_fulfilled(schema: dict[str, Any]) -> None:
    said = check(Expectations(schema=schema), measured(b"1", "json"), None)[-1]
    assert said.verdict == "differs"
    assert said.found is not None
    assert said.found.startswith("could not be checked")


@given(
    data=st.binary(max_size=200), came=st.none() | st.text(max_size=40), format=st.sampled_from(["json", "jsonl", "csv", "text", "binary"])
)
def test_any_bytes_and_any_content_type_are_checked(data: bytes, came: str | None, format: Format) -> None:
    expected = Expectations(content_type="text/csv", bytes=3, sha256=SHA, records=1, schema=SCHEMA)
    checks = check(expected, measured(data, format), came)
    assert verdicts(checks)["sha256"] == "differs"
    for one in checks:
        assert one.found is None or len(one.found) <= 1024
