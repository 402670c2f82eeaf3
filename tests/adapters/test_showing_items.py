"""What people see of counts and items: numbers in words, disagreements, and what a provider wrote shown as its words, inert."""

from typing import Any

from adapters.showing.entries import entry_shape
from adapters.showing.status import exit_code_of
from adapters.showing.text import disagreements, result_text, said, status_text
from domain.chain import first_prev, make_entry
from domain.evidence import Observation, Output, ResultOutcome
from domain.messages import Card
from tests.adapters.test_showing import AT, ID, OUTPUT, shown, verdict
from tests.workflows.test_card import HEAD
from workflows.card import details_of

ITEMS: dict[str, Any] = {
    "submitted": 500, "succeeded": 497, "failed": 2, "missing": 1, "listed": 3,
    "failed_items": [
        {"key": "row-7", "outcome": "failed", "error": "no such \u202egnp\u0007", "output": "results", "record": 7},
        {"key": None, "outcome": "failed", "error": None, "output": "results", "record": 9},
    ],
    "disagreements": ["1 of 500 submitted items have no outcome"],
}  # fmt: skip
LIST = Output(name="failed-items", key=f"local/{ID}/{'d' * 64}", sha256="d" * 64, size=90, records=3)
COUNTS = {"total": 500, "succeeded": 498, "failed": 2}


def entry(evidence: Any) -> dict[str, Any]:
    made = make_entry(
        evidence, ledger_id="5a" * 16, stream=ID, seq=0, prev=first_prev("5a" * 16, ID), role="stay", epoch=1, turn=1, from_="observing",
        to="observing",
    )  # fmt: skip
    return entry_shape(made)


def test_the_status_tells_items_and_what_does_not_agree_and_how_to_have_the_list() -> None:
    status = shown(
        state="outcome_undecided",
        outcome="partial",
        outputs=(OUTPUT,),
        items=ITEMS,
        failed_items=LIST,
        verdict=verdict("partial"),
        counts=COUNTS,
    )
    text = status_text(status)
    assert "497 succeeded, 2 failed, 1 missing of 500" in text
    assert "1 of 500 submitted items have no outcome" in text
    assert status["counts"] == COUNTS
    assert status["next"][0].endswith("--failed-items")
    assert status["result"]["failed_items"]["records"] == 3


def test_counts_of_the_provider_are_told_while_it_runs() -> None:
    assert "498 succeeded, 2 failed of 500" in status_text(shown(state="observing", counts=COUNTS))


def test_an_outcome_that_is_not_whole_is_told_by_the_exit_code_also_where_a_human_took_it_as_success() -> None:
    assert exit_code_of(shown(state="succeeded", outcome="none")) == 6
    assert exit_code_of(shown(state="succeeded", outcome="whole")) == 0


def test_a_result_of_which_nothing_was_stored_still_tells_its_items() -> None:
    status = shown(state="failed", outcome="none", items=ITEMS, verdict=verdict("failed"))
    assert status["result"]["outputs"] == []
    assert shown(state="failed", verdict=verdict("failed"))["result"] is None


def test_the_result_shows_the_first_items_with_the_providers_words_marked_and_inert() -> None:
    status = shown(state="succeeded", outcome="partial", outputs=(OUTPUT,), items=ITEMS, failed_items=LIST)
    text = result_text({"id": ID, "outcome": "partial", **status["result"]})
    assert "row-7  the provider says: no such \\u202egnp\\u0007" in text
    assert "results 9" in text
    assert f"and 1 more: result {ID} --failed-items" in text
    assert "failed-items" not in result_text({"id": ID, "outcome": "whole", **shown(outputs=(OUTPUT,))["result"]})


def test_entries_tell_counts_why_there_are_none_and_what_items_came_to() -> None:
    reading = Observation(at=AT, actor="w", meaning="going", began=AT, counts=COUNTS)
    assert "498 succeeded, 2 failed of 500" in said(entry(reading))
    wrong = Observation(at=AT, actor="w", meaning="terminal", began=AT, counts_problem="the count total is no number")
    assert "the count total is no number" in said(entry(wrong))
    result = ResultOutcome(at=AT, actor="w", meaning="verified", items=ITEMS)
    assert "497 succeeded, 2 failed, 1 missing of 500 1 of 500 submitted items have no outcome" in said(entry(result))


def test_what_is_no_list_of_disagreements_is_none() -> None:
    assert [disagreements(odd) for odd in (None, {}, {"disagreements": "x"}, 7)] == [[], [], [], []]


def test_the_card_tells_what_came_of_the_items() -> None:
    shown_card = details_of("op-1", HEAD.model_copy(update={"card": Card(remote_state="running", counts="498 succeeded, 2 failed of 500")}))
    assert "- items: 498 succeeded, 2 failed of 500" in shown_card
