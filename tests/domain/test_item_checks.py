"""What a contract reads of items must exist and be readable, and an ended job must have something to decide by."""

from typing import Any

import pytest

from tests.domain.sample_contract import document, problems, sample

ENDED: dict[str, Any] = {
    "observe__states": [{"when": {"body.state": "over"}, "is": "ended"}],
    "collect__partial": "failed",
}
READ: dict[str, Any] = {"output": "output", "states": [{"is": "succeeded"}]}
FILES = {"rows": {"media": "text/csv", "max_bytes": "1MiB"}, "picture": {"media": "image/png", "max_bytes": "1MiB"}}
OUTPUTS = {
    "lines": {"from": {"request": {"method": "GET", "path": "/lines"}}, "format": "jsonl"},
    "raw": {"from": {"request": {"method": "GET", "path": "/raw"}}, "verify": {"bytes": "${observed.body.size}"}},
}


def items(submitted: dict[str, Any], *read: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    return problems(collect__items={"submitted": submitted, "read": [*read] or [READ]}, files=FILES, **more)


@pytest.mark.parametrize(
    "submitted", [{"count": "length(input.name)"}, {"file": "rows"}, {"file": "rows", "key": "item.id"}], ids=["a count", "a file", "keys"]
)
def test_items_of_what_is_there_are_right(submitted: dict[str, Any]) -> None:
    assert items(submitted, {**READ, "key": "item.id"}) == []


@pytest.mark.parametrize(
    ("submitted", "key", "expected"),
    [
        ({}, "collect.items.submitted", "exactly one of file and count"),
        ({"file": "rows", "count": "length(input.name)"}, "collect.items.submitted", "exactly one of file and count"),
        ({"count": "length(input.name)", "key": "item.id"}, "collect.items.submitted.key", "a key only beside file"),
        ({"file": "lines"}, "collect.items.submitted.file", "a name that stands under files; there are rows, picture"),
        ({"file": "picture"}, "collect.items.submitted.file", "a file of JSON Lines, CSV or JSON"),
    ],
)
def test_what_was_submitted_must_be_there_and_be_countable(submitted: dict[str, Any], key: str, expected: str) -> None:
    assert [(where, said) for where, said in items(submitted, {**READ, "key": "item.id"}) if where == key and said.startswith(expected)]


def test_a_file_that_no_file_is_declared_for_says_so() -> None:
    found = problems(collect__items={"submitted": {"file": "rows"}, "read": [READ]})
    assert ("collect.items.submitted.file", "a name that stands under files; there are none") in found


@pytest.mark.parametrize(
    ("read", "key", "expected"),
    [
        ([{"output": "nothing"}], "collect.items.read.0.output", "the name of an output; there are lines, raw"),
        ([{"output": "raw"}], "collect.items.read.0.output", "an output of format jsonl, csv or json"),
        ([{"output": "lines"}, {"output": "lines"}], "collect.items.read.1.output", "each output once; lines is read above"),
    ],
)
def test_what_is_read_must_be_an_output_of_records_and_stand_once(read: list[dict[str, Any]], key: str, expected: str) -> None:
    changed = {
        "outputs": OUTPUTS,
        "items": {"submitted": {"count": "length(input.name)"}, "read": [{**one, "states": READ["states"]} for one in read]},
    }
    assert [(where, said) for where, said in problems(collect=changed) if where == key and said.startswith(expected)]


def test_keys_are_compared_with_keys() -> None:
    assert ("collect.items.read.0", "a key, to compare with those that were submitted") in items({"file": "rows", "key": "item.id"})


def test_an_entry_of_an_item_that_is_never_reached_is_an_error() -> None:
    read = {"output": "output", "states": [{"is": "failed"}, {"when": {"item.ok": True}, "is": "succeeded"}]}
    assert [where for where, _ in items({"count": "length(input.name)"}, read)] == ["collect.items.read.0.states.1"]


@pytest.mark.parametrize(
    "counts",
    [None, {"total": "body.n"}, {"total": "body.n", "done": "body.d"}, {"succeeded": "body.ok"}, {"failed": "body.bad"}],
)
def test_an_ended_job_of_which_nothing_could_decide_is_an_error(counts: dict[str, str] | None) -> None:
    changed = ENDED | ({"observe__counts": counts} if counts else {})
    assert [where for where, _ in problems(**changed)] == ["observe.states"]
    with_items = {"submitted": {"count": "length(input.name)"}, "read": [READ]}
    assert problems(**changed, collect__items=with_items) == []


@pytest.mark.parametrize(
    "counts",
    [
        {"total": "body.n", "succeeded": "body.ok"},
        {"done": "body.d", "failed": "body.bad"},
        {"succeeded": "body.ok", "failed": "body.bad", "expired": "body.late"},
        {name: f"body.{name}" for name in ("succeeded", "failed", "cancelled", "expired", "unprocessed")},
    ],
)
def test_counts_from_which_success_and_total_follow_decide(counts: dict[str, str]) -> None:
    assert problems(**ENDED, observe__counts=counts) == []


def test_an_ended_job_without_a_result_is_decided_by_counts() -> None:
    counts = {"total": "body.n", "succeeded": "body.ok"}
    assert problems(observe__states=ENDED["observe__states"], observe__counts=counts, collect="none") == []
    assert [where for where, _ in problems(observe__states=ENDED["observe__states"], collect="none")] == ["observe.states"]


def test_partial_must_be_said_where_a_job_can_have_ended() -> None:
    counts = {"total": "body.n", "succeeded": "body.ok"}
    found = problems(observe__states=ENDED["observe__states"], observe__counts=counts)
    assert ("collect", "partial, because a state of observe can be partial") in found
    assert sample(**ENDED, observe__counts=counts).facts().partial == "failed"
    assert document()["collect"].get("partial") is None
