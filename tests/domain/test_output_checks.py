"""What is wrong with the outputs of a contract is named, with what was expected."""

from typing import Any

import pytest

from domain.contract import Contract
from domain.language.output_checks import check_outputs
from tests.domain.sample_contract import document

REQUEST: dict[str, Any] = {"method": "GET", "path": "/x"}
FROM: dict[str, Any] = {"from": {"request": REQUEST}}


def paged(pages: dict[str, Any], format: str = "jsonl") -> dict[str, Any]:
    return {"collect": {"from": {"request": REQUEST, "pages": pages}, "format": format}}


def wrong(**changes: Any) -> list[tuple[tuple[str | int, ...], str]]:
    return list(check_outputs(Contract.model_validate(document(**changes))))


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"collect": {"outputs": {"a": {}}}}, ("collect", "outputs", "a", "from"), "where the output comes from"),
        ({"collect": {**FROM, "name": "x"}}, ("collect", "name"), "no name without each"),
        ({"collect": {"outputs": {"a": FROM}, "one_time": True}}, ("collect",), "an output within outputs"),
        ({"collect": {**FROM, "verify": {"schema": {"type": 5}}}}, ("collect", "verify", "schema"), "a JSON Schema"),
        ({"collect": {**FROM, "verify": {"bytes": "observed.body.a"}}}, ("collect", "verify", "bytes"), 'mean "${observed.body.a}"?'),
        ({"collect": {**FROM, "verify": {"bytes": "a b"}}}, ("collect", "verify", "bytes"), "a number, or a template that gives it"),
        ({"collect": {**FROM, "verify": {"records": 1.5}}}, ("collect", "verify", "records"), "a number, or a template that gives it"),
        ({"collect": {**FROM, "verify": {"sha256": "abc"}}}, ("collect", "verify", "sha256"), "a SHA-256"),
        (paged({"next": "body.a", "count": "body.b"}), ("collect", "from", 0, "pages"), "at most one of"),
        (paged({"items": "body.a"}), ("collect", "from", 0, "pages"), "how a page leads on"),
        (paged({"next": "body.a", "items": "body.b"}, "csv"), ("collect", "from", 0, "pages", "items"), "format: jsonl"),
        (paged({"next": "body.a"}, "json"), ("collect", "from", 0, "pages"), "can't be joined"),
        (paged({"next": "body.a", "records": "body.b"}, "text"), ("collect", "from", 0, "pages", "records"), "format: csv or jsonl"),
    ],
)
def test_a_wrong_output_is_named(changes: dict[str, Any], path: tuple[str | int, ...], said: str) -> None:
    found = wrong(**changes)
    assert [(where, said in expected) for where, expected in found] == [(path, True)]


def test_an_address_that_nothing_could_renew_is_an_error() -> None:
    completed = {"observe": "none", "cancel": "none", "create__answers": [{"when": {"status": 200}, "is": "completed"}]}
    found = wrong(collect={**FROM, "refresh": "observe"}, **completed)
    assert [path for path, _ in found] == [("collect", "refresh")]


@pytest.mark.parametrize(
    "collect",
    [
        "none",
        {**FROM, "each": "observed.body.l", "name": "${each}"},
        {"outputs": {"a": FROM, "b": {**FROM, "refresh": "observe"}}},
        {"from": [{"inline": "observed.body"}, {"request": REQUEST, "pages": {"more": {"body.more": True}}}], "format": "csv"},
        {"from": {"request": REQUEST, "pages": {"next": "body.n", "items": "body.i", "records": "body.r"}}, "format": "jsonl"},
    ],
)
def test_what_is_right_is_taken(collect: Any) -> None:
    assert wrong(collect=collect) == []


@pytest.mark.parametrize(
    "verify",
    [{"bytes": 5, "records": "12"}, {"sha256": "sha256:" + "a" * 64}, {"sha256": "${observed.body.a}", "bytes": "${observed.body.b}"}],
)
def test_a_constant_that_a_result_can_have_and_a_template_are_fine(verify: dict[str, Any]) -> None:
    assert wrong(collect={**FROM, "verify": verify}) == []
