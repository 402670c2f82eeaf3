"""A contract's text, changed where a finding says, in the style in which it is written."""

import pytest

from adapters.contract_files import parse_yaml
from adapters.drafting.text import scalar
from adapters.probing.findings import Mend
from adapters.probing.mending import suggested

TEXT = """\
create:
  token: {format: uuid, window: 24h}   # kept for a day
  job: {id: body.id}
observe:
  states:
    - {when: {body.state: done}, is: succeeded}
    # nothing else is known

  poll: {first: 1s}
cancel:
  repeatable: true
collect:
  verify:
    bytes: "${observed.body.size}"
    required:
      - bytes
      - sha256
    sha256: "${observed.body.sum}"      # hexadecimal
reconcile:
  - by: get
    job: {id: token}
http: {base: "https://a.example", auth: none}
"""


def diff_of(*mends: Mend) -> tuple[list[str], list[str]]:
    """Lines that went, and lines that came."""
    lines = suggested("x.yaml", TEXT, mends).splitlines()[2:]
    return [line[1:] for line in lines if line.startswith("-")], [line[1:] for line in lines if line.startswith("+")]


@pytest.mark.parametrize(
    ("mend", "gone", "come"),
    [
        (
            Mend("set", ("create", "token"), "none"),
            ["  token: {format: uuid, window: 24h}   # kept for a day"],
            ["  token: none   # kept for a day"],
        ),
        (
            Mend("set", ("create", "token", "window"), "5s"),
            ["  token: {format: uuid, window: 24h}   # kept for a day"],
            ["  token: {format: uuid, window: 5s}   # kept for a day"],
        ),
        (Mend("set", ("cancel", "repeatable"), "false"), ["  repeatable: true"], ["  repeatable: false"]),
        (Mend("set", ("cancel", "destroys_finished_jobs"), "true"), [], ["  destroys_finished_jobs: true"]),
        (Mend("set", ("observe", "terminal_is_final"), "false"), [], ["  terminal_is_final: false"]),
        (Mend("append", ("observe", "states"), '{is: "?"}'), [], ['    - {is: "?"}']),
        (Mend("drop", ("collect", "verify", "bytes")), ['    bytes: "${observed.body.size}"'], []),
        (Mend("drop", ("collect", "verify", "sha256")), ['    sha256: "${observed.body.sum}"      # hexadecimal'], []),
        (
            Mend("set", ("collect", "verify", "required"), "[bytes]"),
            ["    required:", "      - bytes", "      - sha256"],
            ["    required: [bytes]"],
        ),
        (Mend("set", ("reconcile", 0, "visible_within"), "9s"), [], ["    visible_within: 9s"]),
        (
            Mend("add", ("http", "hosts", "https://b.example"), "none"),
            ['http: {base: "https://a.example", auth: none}'],
            ['http: {base: "https://a.example", auth: none, hosts: {https://b.example: none}}'],
        ),
        (Mend("drop", ("create", "job", "id")), ["  job: {id: body.id}"], []),
        (
            Mend("drop", ("create", "token", "format")),
            ["  token: {format: uuid, window: 24h}   # kept for a day"],
            ["  token: {window: 24h}   # kept for a day"],
        ),
        (
            Mend("drop", ("create", "token", "window")),
            ["  token: {format: uuid, window: 24h}   # kept for a day"],
            ["  token: {format: uuid}   # kept for a day"],
        ),
    ],
    ids=lambda value: f"{value.change} {'.'.join(map(str, value.path))}" if isinstance(value, Mend) else "",
)
def test_only_the_lines_of_a_finding_change(mend: Mend, gone: list[str], come: list[str]):
    assert diff_of(mend) == (gone, come)


def test_what_cannot_be_changed_is_left_as_it_is():
    for mend in (Mend("append", ("nothing",), "x"), Mend("drop", ("a", "b")), Mend("set", ("create", "token", "window"), "{")):
        assert diff_of(mend) == ([], [])


def test_several_changes_are_one_diff_that_leaves_a_file_that_parses():
    mends = [Mend("set", ("cancel", "repeatable"), "false"), Mend("append", ("observe", "states"), '{is: "?"}')]
    assert diff_of(*mends) == (["  repeatable: true"], ['    - {is: "?"}', "  repeatable: false"])


@pytest.mark.parametrize("value", ["a b", "yes", "\u202e", "x: y", "#", "${a}", "-1", 'a"b', "", "\n", "null", "1e3", "https://x.example"])
def test_a_word_of_a_provider_is_one_scalar_and_nothing_else(value: str):
    assert parse_yaml(f"{{k: {scalar(value)}}}".encode(), "x").document == {"k": value}
