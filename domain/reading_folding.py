"""What a reading of the status changes of a standing.

* The first terminal observation is the verdict; a later one that agrees renews what the answer shows, its addresses, and nothing else.
* Counts on the way are the newest; once the job has ended, those of the first terminal observation.
* A flag lasts until a reading decides; what could not be had or taken back stays said.
"""

from datetime import timedelta

from domain.chain import Entry
from domain.evidence import Observation
from domain.standing import HELD_READS_BEFORE_FLAG, Flag, Renewed, Standing, Verdict


def observed(standing: Standing, reading: Observation, entry: Entry) -> dict[str, object]:
    """One reading, in its order."""
    decided = reading.meaning in {"going", "terminal", "gone"}
    change: dict[str, object] = {
        "reads": standing.reads + 1,
        "tries": 0 if reading.woken else standing.tries + 1,
        "next_at": reading.next_at,
        "last_reading_turn": reading.turn,
        "remote_read": reading.meaning,
        "held_run": standing.held_run + 1 if reading.meaning == "held" else 0,
    }
    if reading.meaning in {"going", "held", "terminal"}:
        change |= {
            "compare_due": False,
            "seen": True,
            "remote_state": reading.remote_state,
            "provider_at": reading.provider_at or standing.provider_at,
        }
        change |= {"progress": reading.progress or standing.progress, **_counts(standing, reading)}
    if decided:
        change["why"] = reading.words.reason or reading.words.message
    if reading.meaning == "terminal" and standing.verdict is None:
        change["verdict"] = Verdict(
            verdict=reading.verdict or "succeeded", at=reading.at, began=reading.began, call="observe", seq=entry.seq,
            observed=reading.observed, undecided=reading.undecided,
        )  # fmt: skip
    elif reading.observed is not None and standing.verdict is not None and _agrees(standing.verdict, reading):
        change["renewed"] = Renewed(began=reading.began, observed=reading.observed)
    if reading.violation is not None:
        change["violation"] = reading.violation
    return change | {"flags": _flags(standing, reading, decided=decided)}


def _agrees(verdict: Verdict, reading: Observation) -> bool:
    """Whether a later reading shows the same end; of one that was left to the items, any."""
    return verdict.undecided or reading.undecided or verdict.verdict == reading.verdict


def _counts(standing: Standing, reading: Observation) -> dict[str, object]:
    """The newest counts on the way; once the job has ended, those of the first terminal observation and no others."""
    if standing.verdict is not None:
        return {}
    if reading.meaning == "terminal":
        return {"counts": reading.counts, "counts_problem": reading.counts_problem}
    return {"counts": reading.counts or standing.counts}


def _flags(standing: Standing, reading: Observation, *, decided: bool) -> tuple[Flag, ...]:
    flags = tuple(flag for flag in standing.flags if flag.word == "leftovers") if decided else standing.flags
    raised: tuple[str, str] | None = None
    if reading.meaning == "held" and standing.held_run + 1 >= HELD_READS_BEFORE_FLAG:
        raised = ("unknown_state", f"the provider says {reading.remote_state!r}, which the contract does not know")
    elif reading.word == "needs_input" and reading.meaning == "going":
        raised = ("needs_input", reading.words.reason or "the job waits for input at the provider")
    elif reading.meaning == "refused":
        raised = ("read_rejected", reading.words.message or "the provider refuses to show the job")
    elif reading.meaning == "not_visible" and not standing.seen and standing.job_at is not None:
        appears = standing.job_at + timedelta(milliseconds=standing.facts.appears_within_ms)
        raised = ("not_visible", "the job has not appeared yet") if reading.at > appears else None
    if raised is None or any(flag.word == raised[0] for flag in flags):
        return flags
    return (*flags, Flag(word=raised[0], since=reading.at, why=raised[1]))
