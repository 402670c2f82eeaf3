"""What an ended job came to: whole, in part, or nothing of it; and whether what is said of it agrees.

* Counted items decide; where there are none, the provider's counts do; where neither is there, its word alone. The weaker claim
  wins: a job said to be done of which two items failed is done in part, and one said to be done in part is never whole.
* An outcome of every submitted item is asked for. One that has none is *missing*, unless the provider itself counts just as many
  as unprocessed: then that is what they are.
* What the contract reads from the provider's counts is compared word for word; what only follows is not, for it was never said.
* `none` needs an outcome of every item: of what was not read or is missing nobody knows that it failed. Where nobody knows how many
  items there were, the results alone show neither that all of them succeeded nor that none did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from domain.counts import OTHERS, WORDS, Outcome
from domain.counts import outcome_of as counted_outcome
from domain.evidence import Json
from domain.results.itemising import Tally

Said = Literal["succeeded", "partial", "failed", "cancelled", "ended"]
"""The verdict; `ended` where counts are to decide and could not."""


@dataclass(frozen=True, slots=True)
class ProviderCounts:
    """The counts of the answer that ended the waiting, those of them that the contract reads, and why there are none."""

    counts: Mapping[str, int] | None = None
    stated: Sequence[str] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SubmittedFacts:
    """How many items were submitted (None: not known), how many keys stood there twice, how many had none, and what else is amiss."""

    items: int | None = None
    twice: int = 0
    unkeyed: int = 0
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Weighed:
    """The outcome; what does not agree, in words; and whether that leaves the outcome open."""

    outcome: Outcome
    disagreements: tuple[str, ...]
    disagrees: bool
    items: dict[str, Json] | None = None


def unaccounted(tally: Tally, submitted: SubmittedFacts) -> int:
    """How many submitted items have no outcome."""
    if tally.missing is not None:
        return tally.missing
    return max(0, (submitted.items or 0) - sum(tally.words.values()) - tally.unread)


def explained(tally: Tally, submitted: SubmittedFacts, counts: ProviderCounts) -> bool:
    """Whether the provider counts as unprocessed just what has no outcome."""
    open_ = unaccounted(tally, submitted)
    return open_ > 0 and (counts.counts or {}).get("unprocessed") == tally.words["unprocessed"] + open_


def weigh(said: Said, counts: ProviderCounts, tally: Tally | None = None, submitted: SubmittedFacts | None = None) -> Weighed:
    """What it came to. Without a `tally` the contract reads no items."""
    if tally is None or submitted is None:
        found = counted_outcome(counts.counts or {})
        outcome, against = _with_verdict(said, found)
        reasons = [*([counts.problem] if counts.problem else []), *against]
        items: dict[str, Json] | None = {"disagreements": [*reasons]} if reasons else None
        # Counts that can't be read claim nothing: where nothing hangs on them, that is said and no more.
        return Weighed(outcome, tuple(reasons), bool(against), items)
    missing = unaccounted(tally, submitted)
    words: dict[str, int] = {**tally.words}
    if explained(tally, submitted, counts):
        words["unprocessed"] += missing
        missing = 0
    open_ = (said != "succeeded" or _others(words) > 0) and _is_open(tally, submitted, counts)
    doubt = open_ or bool(tally.unread or missing or tally.problems)
    outcome, against = _with_verdict(said, _outcome(words, doubt=doubt))
    reasons = (*_of_items(tally, submitted, missing), *_of_counts(words, submitted, counts), *against)
    return Weighed(outcome, reasons, bool(reasons), _summary(tally, submitted, words, missing, reasons))


def _outcome(words: Mapping[str, int], *, doubt: bool) -> Outcome:
    if not _others(words) and not doubt:
        return "whole"
    return "partial" if words["succeeded"] or doubt else "none"


def _others(words: Mapping[str, int]) -> int:
    return sum(words[word] for word in OTHERS)


def _is_open(tally: Tally, submitted: SubmittedFacts, counts: ProviderCounts) -> bool:
    """Whether nobody knows how many items there were."""
    return submitted.items is None and (counts.counts or {}).get("total") != sum(tally.words.values())


def _with_verdict(said: Said, found: Outcome | None) -> tuple[Outcome, list[str]]:
    """The weaker of what was said and what was found, and whether they contradict each other."""
    match said, found:
        case "ended", None:
            return "partial", ["the job has ended, and nothing says how many of its items succeeded"]
        case "succeeded", "none":
            return "none", ["the provider says that the job succeeded, and none of its items did"]
        case "partial", "none":
            return "none", ["the provider says that the job succeeded in part, and none of its items did"]
        case "partial", "whole":
            return "partial", ["the provider says that the job succeeded in part, and all of its items did"]
        case "partial", None:
            return "partial", []
        case _:
            return found or "whole", []


def _of_items(tally: Tally, submitted: SubmittedFacts, missing: int) -> list[str]:
    """What the items themselves leave open."""
    total = sum(tally.words.values()) + tally.unread
    over = submitted.items is not None and tally.missing is None and total > submitted.items
    found = {
        "how many items were submitted is not known": submitted.items is None,
        f"{submitted.twice} submitted keys are not the first of their kind": submitted.twice,
        f"{submitted.unkeyed} submitted items have no key": submitted.unkeyed,
        f"{missing} of {submitted.items} submitted items have no outcome": missing,
        f"{total} outcomes of {submitted.items} submitted items": over,
        f"{tally.unread} records say nothing that the contract reads": tally.unread,
        f"{tally.double} outcomes are of items that had one": tally.double,
        f"{tally.unknown} outcomes are of items that were never submitted": tally.unknown,
    }
    return [*submitted.problems, *tally.problems, *(words for words, is_so in found.items() if is_so)]


def _of_counts(words: Mapping[str, int], submitted: SubmittedFacts, counts: ProviderCounts) -> list[str]:
    """Where the provider's counts say something else than its results."""
    if counts.problem is not None:
        return [counts.problem]
    said = counts.counts or {}
    done = sum(words[word] for word in WORDS if word != "unprocessed")
    total = done + words["unprocessed"] if submitted.items is None else submitted.items
    shown: dict[str, int] = {**words, "done": done, "total": total}
    ours = "its results show" if submitted.items is None else "we submitted"
    return [
        f"the provider counts {said[name]} {name}, {ours if name == 'total' else 'its results show'} {shown[name]}"
        for name in counts.stated
        if name in said and said[name] != shown[name]
    ]


def _summary(tally: Tally, submitted: SubmittedFacts, words: Mapping[str, int], missing: int, reasons: Sequence[str]) -> dict[str, Json]:
    """What the record keeps of the items."""
    return {
        "submitted": submitted.items,
        **words,
        "unread": tally.unread,
        "missing": missing,
        "double": tally.double,
        "unknown": tally.unknown,
        "listed": tally.listed,
        "unlisted": tally.unlisted,
        "failed_items": [*tally.shown],
        "disagreements": [*reasons],
    }
