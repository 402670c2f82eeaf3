"""A hole of a draft: found wherever it stands, and with it only what does not hang on it."""

import copy

import pytest
from pydantic import JsonValue

from domain.language.holes import holes
from domain.language.loading import holes_in
from tests.domain.sample_contract import SAMPLE


def test_a_hole_is_a_text_that_is_just_a_question_mark():
    document: JsonValue = {"a": "?", "b": ["x", {"?": "?"}, "??", " ?"], "c": None, "d": 1}
    assert [problem.path for problem in holes(document)] == [("a",), ("b", 1, "?")]


def test_a_file_without_holes_has_none_whatever_else_it_is():
    assert holes_in({"nothing": "of a contract"}, file="f", positions={}) == []


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({"version": "?"}, {"version"}),
        ({"version": 1, "cretae": "?"}, {"cretae"}),
        ({"version": "one", "about": "?"}, {"about", "version"}),
        ({"http": {"auth": "?", "bsae": "x"}}, {"http.auth", "http.bsae"}),
        ({"effect": {"class": "?", "cost": "dear"}}, {"effect.class", "effect.cost"}),
    ],
)
def test_what_does_not_hang_on_a_hole_is_said_beside_it(document: JsonValue, keys: set[str]):
    found = holes_in(document, file="f", positions={})
    assert keys <= {finding.key for finding in found}
    assert sum(1 for finding in found if finding.code == "hole") == 1
    assert all(finding.expected == "a hole that a person has to fill" for finding in found if finding.code == "hole")


def test_a_contract_that_is_right_but_for_its_holes_has_nothing_beside_them():
    document = copy.deepcopy(SAMPLE) | {"about": "?"}
    assert [(one.key, one.code) for one in holes_in(document, file="f", positions={})] == [("about", "hole")]


def test_findings_stand_in_the_order_of_the_file():
    positions: dict[tuple[str | int, ...], tuple[int, int]] = {("about",): (9, 1), ("version",): (2, 1), ("bad",): (5, 1)}
    found = holes_in({"about": "?", "version": "?", "bad": 1}, file="f", positions=positions)
    places = [(finding.line, finding.key) for finding in found if finding.line > 1]
    assert places == [(2, "version"), (5, "bad"), (9, "about")]


def test_what_no_json_carries_is_said_beside_a_hole_unless_it_is_around_one():
    found = holes_in({"about": "?", "input": {"x": 2**60}}, file="f", positions={})
    assert [(finding.key, finding.code) for finding in found] == [("about", "hole"), ("input.x", "invalid")]
    around = holes_in({"about": {"\ud800": "?"}}, file="f", positions={})
    assert [finding.key for finding in around] == ["about.\ud800"]
