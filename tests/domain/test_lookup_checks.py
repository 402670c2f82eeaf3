"""Lookups that cannot do what they say are refused when the contract is read."""

from typing import Any

import pytest

from tests.domain.sample_contract import problems, sample
from tests.domain.test_lookups import GET, LIST

WEBHOOK: dict[str, Any] = {"by": "webhook", "match": {"body.mark": "${mark}"}, "wait": "10m"}
SIGNED: dict[str, Any] = {"scheme": "standard_webhooks", "secret": "sample", "job_id": "body.id"}


def without(lookup: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in lookup.items() if key not in keys}


@pytest.mark.parametrize("lookup", [GET, LIST, {**LIST, "proves_absence": True, "visible_within": "10s"}, without(GET, "same")])
def test_a_lookup_with_all_that_its_kind_needs_is_taken(lookup: dict[str, Any]) -> None:
    assert problems(reconcile=[lookup]) == []


def test_a_wait_for_a_call_needs_a_webhook() -> None:
    assert problems(reconcile=[WEBHOOK], webhook=SIGNED) == []
    assert problems(reconcile=[WEBHOOK]) == [("reconcile.0", "a webhook, where a lookup waits for one")]


@pytest.mark.parametrize(
    ("lookup", "key"),
    [
        (GET, "request"), (GET, "answers"), (GET, "job"), (LIST, "request"), (LIST, "pages"), (LIST, "match"), (LIST, "strength"),
        (LIST, "job"), (WEBHOOK, "match"), (WEBHOOK, "wait"),
    ],
)  # fmt: skip
def test_what_a_kind_needs_must_be_there(lookup: dict[str, Any], key: str) -> None:
    assert ("reconcile.0", f"{key}, which by: {lookup['by']} needs") in problems(reconcile=[without(lookup, key)], webhook=SIGNED)


@pytest.mark.parametrize(
    ("lookup", "extra"),
    [
        (GET, {"pages": {"items": "body"}}), (GET, {"match": {"body.x": 1}}), (GET, {"strength": "exact"}), (GET, {"proves_absence": True}),
        (GET, {"wait": "1m"}), (LIST, {"answers": GET["answers"]}), (LIST, {"same": {"body.x": 1}}), (LIST, {"wait": "1m"}),
        (WEBHOOK, {"strength": "exact"}), (WEBHOOK, {"request": GET["request"]}),
    ],
)  # fmt: skip
def test_what_belongs_to_another_kind_is_refused(lookup: dict[str, Any], extra: dict[str, Any]) -> None:
    [key] = extra
    assert (f"reconcile.0.{key}", f"no {key} beside by: {lookup['by']}") in problems(reconcile=[{**lookup, **extra}], webhook=SIGNED)


def test_a_get_needs_an_answer_that_says_something() -> None:
    answers = [{"when": {"status": 503}, "is": "throttled"}]
    assert problems(reconcile=[{**GET, "answers": answers}]) == [("reconcile.0.answers", "an answer that is found or absent")]


def test_a_list_says_where_it_stands_and_leads_on_in_one_way() -> None:
    assert problems(reconcile=[{**LIST, "pages": {"next": "body.next"}}]) == [
        ("reconcile.0.pages", "items: where the list stands in a page")
    ]
    both = {"items": "body.items", "next": "body.next", "next_url": "body.url"}
    assert problems(reconcile=[{**LIST, "pages": both}]) == [("reconcile.0.pages", "at most one of next, next_url, count")]


EXACT: list[dict[str, Any]] = [
    {"item.mark": "${mark}"}, {"item.note": "made by ${mark}"}, {"item.mark": ["${mark}", "x-${token}"]},
    {"contains(item.tags, mark)": True},
    {"item.kind": "report", "item.mark": "${mark}"}, {"mark": "${item.mark}"},
]  # fmt: skip
GUESSES: list[dict[str, Any]] = [
    {"item.name": "${input.name}"}, {"item.mark": ["${mark}", None]}, {"item.mark": {"not": "${mark}"}}, {"item.mark": []},
    {"contains(item.tags, mark)": False}, {"contains(item.tags, mark)": None}, {"item.count": 1}, {"item.at": {"min": "${mark}"}},
]  # fmt: skip


@pytest.mark.parametrize("match", EXACT)
def test_a_match_that_nothing_fits_without_a_value_of_ours_is_exact(match: dict[str, Any]) -> None:
    assert problems(reconcile=[{**LIST, "match": match}]) == []


@pytest.mark.parametrize("match", GUESSES)
def test_a_match_that_others_could_fit_is_heuristic(match: dict[str, Any]) -> None:
    wanted = "heuristic, or a match that nothing fits without one of mark, steps, token"
    assert ("reconcile.0.strength", wanted) in problems(reconcile=[{**LIST, "match": match}])
    assert ("reconcile.0.strength", wanted) not in problems(reconcile=[{**LIST, "match": match, "strength": "heuristic"}])


def test_every_way_of_learning_the_job_names_all_of_it() -> None:
    job = {"id": "body.id", "url": "body.url"}
    assert ("reconcile.0.job", "url, which create.job names too") in problems(create__job=job, reconcile=[LIST])
    assert problems(create__job=job, reconcile=[{**LIST, "job": {"id": "item.id", "url": "item.url"}}]) == []
    assert ("reconcile.0.job", "an id among the names of the job") in problems(reconcile=[{**LIST, "job": {"name": "item.name"}}])
    named = {**WEBHOOK, "job": {"name": "body.n"}}
    assert ("reconcile.0.job", "an id among the names of the job") in problems(reconcile=[named], webhook=SIGNED)


def test_where_the_create_names_no_job_its_lookups_do() -> None:
    unnamed: dict[str, Any] = {
        "request": {"method": "POST", "path": "/jobs", "json": {"mark": "${mark}"}},
        "token": None,
        "answers": [{"when": {"status": 204}, "is": "accepted_unnamed"}],
    }
    unnamed["token"] = "none"
    assert sample(create=unnamed, reconcile=[LIST]).job_names == ("id",)
    assert ("observe.request.path", "job has no id; it has nothing") in problems(create=unnamed)


def test_a_token_that_the_create_does_not_have_cannot_be_looked_for() -> None:
    create = {"token": "none", "request": {"method": "POST", "path": "/jobs", "json": "${input}"}}
    found = problems(create__token="none", create__request=create["request"], reconcile=[GET])
    assert ("reconcile.0.request.path", "no ${token} where create.token is none") in found
