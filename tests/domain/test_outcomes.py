"""What a job came to: the weaker of what is said and what was counted, and every contradiction in words."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.counts import complete
from domain.results.itemising import Tally
from domain.results.outcomes import ProviderCounts, Said, SubmittedFacts, Weighed, weigh

WORDS = ("succeeded", "failed", "cancelled", "expired", "unprocessed")


def tally(*, missing: int | None = None, unread: int = 0, double: int = 0, unknown: int = 0, **words: int) -> Tally:
    made = Tally(unread=unread, double=double, unknown=unknown, missing=missing)
    made.words.update(cast("Any", words))
    return made


def stated(**given: int) -> ProviderCounts:
    return ProviderCounts(complete(given, named=tuple(given)).counts, tuple(given))


NO_COUNTS = ProviderCounts()


def items(said: Said, submitted: int | None, counts: ProviderCounts = NO_COUNTS, /, **found: Any) -> Weighed:
    return weigh(said, counts, tally(**found), SubmittedFacts(submitted))


@pytest.mark.parametrize(
    ("said", "found", "outcome", "disagrees"),
    [
        ("succeeded", {"succeeded": 5}, "whole", False),
        ("succeeded", {"succeeded": 3, "failed": 2}, "partial", False),
        ("succeeded", {"failed": 5}, "none", True),
        ("partial", {"succeeded": 5}, "partial", True),
        ("partial", {"succeeded": 4, "expired": 1}, "partial", False),
        ("partial", {"cancelled": 5}, "none", True),
        ("ended", {"succeeded": 5}, "whole", False),
        ("ended", {"succeeded": 1, "unprocessed": 4}, "partial", False),
        ("ended", {"failed": 5}, "none", False),
        ("failed", {"succeeded": 2, "failed": 3}, "partial", False),
        ("cancelled", {"unprocessed": 5}, "none", False),
    ],
)
def test_counted_items_decide_and_the_weaker_claim_wins(said: Said, found: dict[str, int], outcome: str, disagrees: bool) -> None:
    weighed = items(said, 5, NO_COUNTS, **found)
    assert (weighed.outcome, weighed.disagrees) == (outcome, disagrees)


@pytest.mark.parametrize(
    ("said", "counts", "outcome", "disagrees"),
    [
        ("succeeded", NO_COUNTS, "whole", False),
        ("succeeded", stated(total=5, succeeded=3), "partial", False),
        ("succeeded", stated(total=5, succeeded=0), "none", True),
        ("succeeded", ProviderCounts(None, ("total",), "the count total is no number"), "whole", False),
        ("partial", NO_COUNTS, "partial", False),
        ("partial", stated(total=5, succeeded=5), "partial", True),
        ("ended", NO_COUNTS, "partial", True),
        ("ended", ProviderCounts(None, ("total",), "the count total is no number"), "partial", True),
        ("failed", NO_COUNTS, "whole", False),
    ],
)
def test_without_items_the_counts_decide_and_without_counts_the_word(
    said: Said, counts: ProviderCounts, outcome: str, disagrees: bool
) -> None:
    weighed = weigh(said, counts)
    assert (weighed.outcome, weighed.disagrees) == (outcome, disagrees)
    assert (weighed.items is None) is (not weighed.disagreements)
    if counts.problem:
        assert counts.problem in weighed.disagreements


@pytest.mark.parametrize(
    ("submitted", "found", "says"),
    [
        (5, {"succeeded": 4}, "1 of 5 submitted items have no outcome"),
        (5, {"succeeded": 4, "missing": 1}, "1 of 5 submitted items have no outcome"),
        (5, {"succeeded": 6}, "6 outcomes of 5 submitted items"),
        (5, {"succeeded": 4, "unread": 1}, "1 records say nothing that the contract reads"),
        (5, {"succeeded": 5, "missing": 0, "double": 2}, "2 outcomes are of items that had one"),
        (5, {"succeeded": 5, "missing": 0, "unknown": 3}, "3 outcomes are of items that were never submitted"),
        (None, {"succeeded": 5}, "how many items were submitted is not known"),
    ],
)
def test_outcomes_that_do_not_add_up_to_what_was_submitted_are_said(submitted: int | None, found: dict[str, int], says: str) -> None:
    weighed = items("succeeded", submitted, NO_COUNTS, **found)
    assert weighed.disagreements == (says,)
    assert weighed.disagrees
    assert weighed.items is not None
    assert weighed.items["disagreements"] == [says]


def test_what_is_missing_or_unread_is_not_known_to_have_failed() -> None:
    assert items("ended", 5, failed=4).outcome == "partial"
    assert items("ended", 5, failed=4, unread=1).outcome == "partial"
    assert items("ended", 5, failed=5).outcome == "none"


def test_what_has_no_outcome_is_unprocessed_where_the_provider_counts_just_as_many_as_that() -> None:
    weighed = items("cancelled", 100, stated(total=100, succeeded=50, failed=2), succeeded=50, failed=2, missing=48)
    assert weighed.disagreements == ()
    assert weighed.items is not None
    assert (weighed.items["unprocessed"], weighed.items["missing"]) == (48, 0)
    other = items("cancelled", 100, stated(total=100, succeeded=50, failed=3), succeeded=50, failed=2, missing=48)
    assert other.disagreements == ("48 of 100 submitted items have no outcome", "the provider counts 3 failed, its results show 2")


SIX = ["the provider counts 6 total, we submitted 5", "the provider counts 6 succeeded, its results show 5"]


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (stated(total=6, succeeded=6), SIX),
        (stated(done=4, failed=0), ["the provider counts 4 done, its results show 5"]),
        (ProviderCounts(None, ("total",), "the count total is no number"), ["the count total is no number"]),
        (ProviderCounts(None, ("total",)), []),
    ],
)
def test_counts_of_the_provider_are_compared_where_the_contract_reads_them(counts: ProviderCounts, says: list[str]) -> None:
    assert list(items("succeeded", 5, counts, succeeded=5).disagreements) == says


def test_a_total_is_compared_with_the_results_where_nobody_knows_what_was_submitted() -> None:
    weighed = items("succeeded", None, stated(total=6, succeeded=5, failed=1), succeeded=5)
    assert "the provider counts 6 total, its results show 5" in weighed.disagreements


def test_what_was_amiss_with_the_submission_is_said() -> None:
    weighed = weigh("succeeded", NO_COUNTS, tally(succeeded=4, missing=0), SubmittedFacts(6, twice=1, unkeyed=1, problems=("cut short",)))
    assert weighed.disagreements == ("cut short", "1 submitted keys are not the first of their kind", "1 submitted items have no key")
    unread = tally(succeeded=4)
    unread.problems.append("results can't be read")
    assert weigh("succeeded", NO_COUNTS, unread, SubmittedFacts(4)).disagreements == ("results can't be read",)
    assert weigh("succeeded", NO_COUNTS, unread, SubmittedFacts(4)).outcome == "partial"


@given(st.tuples(*[st.integers(0, 30)] * 5), st.integers(0, 3), st.integers(0, 3))
def test_what_adds_up_agrees_and_what_does_not_add_up_never_does(numbers: tuple[int, ...], more: int, unread: int) -> None:
    found = dict(zip(WORDS, numbers, strict=True))
    total = sum(numbers)
    weighed = items("ended", total + more, stated(**found), **found, unread=unread)
    assert weighed.disagrees is bool(more or unread)
    assert weighed.outcome == ("whole" if not any(numbers[1:]) and not more and not unread else weighed.outcome)
    assert weighed.items is not None
    accounted = sum(cast("int", weighed.items[word]) for word in (*WORDS, "missing", "unread"))
    assert accounted == max(total + more, total + unread)
