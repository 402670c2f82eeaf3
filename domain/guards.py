"""The guards of the tables: a name, what it means in words, how it is asked of standing and evidence.

Pure and total: a guard answers yes or no for every standing and every piece of evidence, and changes nothing.
"""

from collections.abc import Callable
from datetime import datetime
from typing import cast

from domain.evidence import Evidence, Json, Observation
from domain.standing import Standing


def _field(evidence: Evidence, name: str) -> object:
    return cast("object", getattr(evidence, name, None))


def _attempt_of(evidence: Evidence) -> tuple[object, object]:
    return (_field(evidence, "generation"), _field(evidence, "attempt"))


def _job_id(job: object) -> object:
    return cast("dict[str, Json]", job).get("id") if isinstance(job, dict) else None


def _all_proven(standing: Standing, evidence: Evidence) -> bool:
    this = _attempt_of(evidence)
    opened = standing.open_attempt
    still_open = opened is not None and (opened.generation, opened.attempt) != this
    return not still_open and all(one == this for one in standing.unproven) and not standing.unnamed


def _earlier_proven(standing: Standing, _: Evidence) -> bool:
    opened = standing.open_attempt
    open_earlier = opened is not None and opened.generation < standing.generation
    return not open_earlier and all(one[0] >= standing.generation for one in standing.unproven)


def _generation_proven(standing: Standing, _: Evidence) -> bool:
    return standing.open_attempt is None and not any(one[0] == standing.generation for one in standing.unproven)


def replayable(standing: Standing, at: datetime) -> bool:
    """May the same token and bytes be sent again: token, window, deadline, and no cancel wanted."""
    until, deadline = standing.token_until, standing.deadlines.get("create")
    open_window = until is not None and at < until and not standing.unnamed
    return open_window and (deadline is None or at < deadline) and not standing.cancel_wanted


def verdict_of(standing: Standing, evidence: Evidence) -> str | None:
    """The verdict that evidence brings, else the one that is known."""
    said = _field(evidence, "verdict")
    return str(said) if said else (standing.verdict.verdict if standing.verdict else None)


def _contradicts(standing: Standing, evidence: Evidence) -> bool:
    first = standing.verdict
    if first is None or not isinstance(evidence, Observation) or not standing.facts.terminal_is_final:
        return False
    if evidence.undecided or (first.undecided and evidence.word == "ended"):
        return False  # that it has ended is said twice, and how was left to its items
    # In the same millisecond nobody can say which came first, and a false contradiction parks a good job.
    return evidence.began > first.at and evidence.verdict != first.verdict


def _partial_is(word: str) -> "Callable[[Standing, Evidence], bool]":
    return lambda standing, evidence: _field(evidence, "outcome") == "partial" and (standing.facts.partial or "attention") == word


def _deadline_over(standing: Standing, evidence: Evidence) -> bool:
    deadline = standing.deadlines.get("create")
    return deadline is not None and evidence.at >= deadline


GUARDS: dict[str, tuple[str, Callable[[Standing, Evidence], bool]]] = {
    "clean": ("no attempt of any generation is unproven and no job is known", lambda s, _: s.clean),
    "all proven": (
        "no other attempt of any generation is unproven, and none was taken without an id",
        _all_proven,
    ),
    "generation proven": ("every attempt of this generation is proven", _generation_proven),
    "earlier proven": ("every attempt of the generations before is proven", _earlier_proven),
    "R": ("replayable: token, window, deadline, no cancel wanted", lambda s, e: replayable(s, e.at)),
    "W": ("a cancel is wanted", lambda s, _: s.cancel_wanted),
    "attempt open": ("an intent has no outcome yet", lambda s, _: s.open_attempt is not None),
    "deadline over": ("the create deadline has passed", _deadline_over),
    "names a job": ("it names a job", lambda _, e: bool(_field(e, "job"))),
    "other job": (
        "it names another job than the one known",
        lambda s, e: s.job is not None and _job_id(_field(e, "job")) not in (None, _job_id(s.job)),
    ),
    "failed": ("the verdict is failed", lambda s, e: verdict_of(s, e) == "failed"),
    "ends without result": ("the verdict is failed or cancelled", lambda s, e: verdict_of(s, e) in {"failed", "cancelled"}),
    "collected after": ("the contract collects after this verdict", lambda s, e: verdict_of(s, e) in s.facts.collect_after),
    "contradicts": ("begun after the verdict, says otherwise, and terminal is final", _contradicts),
    "repeatable": ("the contract's cancel may be re-sent", lambda s, _: s.facts.cancel_repeatable),
    "sent by force": ("what was sent is the contract's force call", lambda s, _: s.facts.cancel_force and s.cancel_forced),
    "forced": ("--force, and the contract has a force call", lambda s, e: s.facts.cancel_force and bool(_field(e, "force"))),
    "entries left": (
        "a reconcile entry is left",
        lambda s, e: s.reconcile_left > (1 if _field(e, "exhausted") or e.key == "lookup.candidates" else 0),
    ),
    "leftover": ("the verdict was failed or cancelled", lambda s, _: s.ends_without_result),
    "none succeeded": ("no item succeeded", lambda _, e: _field(e, "outcome") == "none"),
    "partial: failed": ("the outcome is partial and the contract takes it as failure", _partial_is("failed")),
    "partial: attention": ("the outcome is partial and the contract leaves it to a human", _partial_is("attention")),
    "disagrees": (
        "counts disagree and the contract wants attention",
        lambda s, e: bool(_field(e, "disagrees")) and s.facts.disagreement == "attention",
    ),
    "once before": ("fetched twice, or fetchable only once", lambda s, _: s.invalid_results >= 1 or s.facts.one_time),
    "cut one-time": ("a one-time result was cut", lambda s, e: bool(_field(e, "cut")) and s.facts.one_time),
    "has verdict": ("a terminal observation is known", lambda s, _: s.verdict is not None),
    "entries lost": ("the ledger lost entries that may have been attempts", lambda s, _: s.entries_lost),
    "has lookups": ("the contract says how to look a job up", lambda s, _: s.facts.reconcile_entries > 0),
    "unnamed": ("the provider took it without giving an id", lambda s, _: s.unnamed),
    "absence provable": ("it was not taken without an id, and no entries are lost", lambda s, _: s.absence_provable),
    "undo due": ("a step of a generation that is over and made nothing can be undone", lambda s, _: bool(s.undo_due)),
    "window open": ("the token's window is open", lambda s, e: s.token_until is not None and e.at < s.token_until and not s.unnamed),
}
