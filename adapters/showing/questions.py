"""What has happened, by state, and what is asked of the provider's support. Tables of our own words; values are put in as code."""

from typing import cast

from adapters.showing.dossier import MOST_ITEMS, Dossier
from adapters.showing.exchanges import Shown
from adapters.showing.markdown import code
from domain.standing import State

_HAPPENED: dict[State, str] = {
    "create_unknown": "We sent you a request that makes a job, and have no answer that shows whether it was carried out. We have stopped: "
    "sending it again could make a second job.",
    "contract_violation": "Two things that we were told contradict each other. We have stopped acting on this job until we know which of "
    "them is true.",
    "result_timed_out": "You accepted the job, and it did not end before our deadline. We have stopped waiting. The job itself may go on.",
    "cancellation_unconfirmed": "We asked you to cancel the job, and no status that we read since then shows it cancelled, or ended in "
    "another way. We have stopped reading.",
    "result_unavailable": "You showed the job as ended, and its result can't be fetched.",
    "result_validation_failed": "You showed the job as done, and the result that we were given is not what was said of it. It was fetched "
    "again where that is possible. We have not used it.",
    "outcome_undecided": "The job has ended and its result is here, and what was said of it does not tell whether that is success.",
    "failed": "The operation has failed.",
    "cancelled": "The operation was cancelled.",
    "abandoned": "We gave the operation up. What you did for it is left as it is.",
    "succeeded": "The operation succeeded, and its result is verified.",
}
_JOB_GONE = "You accepted the job, and then no longer showed it to us. We never saw it end."
_GONE_HERE = (
    "Something that we need to go on with this is gone at our side, so we have stopped asking you about it. Nothing shows that you did "
    "anything wrong."
)
_REMOTE_FAILURE = "You showed the job as failed."
_REFUSED = "You refused our request, and we know of no job that it made."
_UNDER_WAY = "The operation is under way; nothing is known to be wrong with it."
_NEVER_SENT = "The operation ended before anything was sent."

_QUESTIONS: dict[State, tuple[str, ...]] = {
    "create_unknown": (
        "Did you receive the request that is described under *How to find it*?",
        "If it made a job: which id has that job, and in what state is it? If it made several: the ids of all.",
        "If it made none: please confirm that, and that it can't make one any more, so that we may ask again.",
    ),
    "contract_violation": (
        "Which of the statements under *Known* that contradict each other is true?",
        "How many jobs were made by the requests that are described under *How to find it*, with which ids and states?",
        "Which of these jobs do you charge for?",
    ),
    "result_timed_out": (
        "Is job {job} still being worked on? When will it end?",
        "If it hangs: can you end it, and will anything be charged or left behind?",
    ),
    "cancellation_unconfirmed": (
        "Was job {job} cancelled? Since when?",
        "If it was not: is it still running, or how did it end?",
        "Is anything charged for it or left behind?",
    ),
    "result_unavailable": (
        "Do you still have job {job}, and how did it end?",
        "Does its result still exist? Where, and until when can it be fetched?",
    ),
    "result_validation_failed": (
        "Of job {job}, which is right: the result as it was delivered, or what was said of it (size, checksum, count, type)?",
        "Please make the right result available under the same job, or tell us that there is none.",
    ),
    "outcome_undecided": ("Did job {job} succeed as a whole? If in part: which parts failed, and why?",),
    "failed": ("Why did it fail, and would the same request succeed now?",),
    "abandoned": ("Does anything of it still run or cost at your side? If so, please end it.",),
}
_STILL_THERE = (
    "In what state is job {job}, or how did it end?",
    "If it goes on: until when, and can you end it if we ask you to?",
    "If it has a result: where is it, and until when can it be fetched?",
)
_COUNTS = "Do the counts under *Known* or the delivered records tell the truth?"
_ITEMS = "What became of the items in `failed-items.jsonl`, and were they charged for?"
_CANDIDATES = "Was one of the jobs under *Jobs that may be this one* made by it?"
_WHY_REFUSED = "Why did you refuse it, and what has to be different for you to take it?"
_NOTHING = "Nothing at present: this page informs."


def happened(dossier: Dossier) -> str:
    """In two or three sentences."""
    state = dossier.standing.state
    if dossier.standing.final and not dossier.exchanges and state != "succeeded":
        return f"{_NEVER_SENT} State: {code(state)}."
    if dossier.standing.missing is not None:
        return _GONE_HERE
    if state == "result_unavailable" and dossier.standing.verdict is None:
        return _JOB_GONE
    if state == "failed" and _refused(dossier):
        return _REFUSED
    if state == "failed" and dossier.standing.verdict is not None and dossier.standing.verdict.verdict == "failed":
        return _REMOTE_FAILURE
    return _HAPPENED.get(state, _UNDER_WAY)


def _particular(dossier: Dossier) -> tuple[str, ...]:
    """What is asked only where the page shows what it is about."""
    match dossier.standing.state:
        case "outcome_undecided" if dossier.standing.counts or dossier.standing.disagreements:
            return (_COUNTS,) + ((_ITEMS,) if _lists_items(dossier) else ())
        case "create_unknown" if dossier.standing.candidates:
            return (_CANDIDATES,)
        case _:
            return ()


def _lists_items(dossier: Dossier) -> bool:
    listed = dossier.standing.failed_items
    return listed is not None and listed.size <= MOST_ITEMS


def _refused(dossier: Dossier) -> bool:
    """The last word to the create was a refusal."""
    creates = dossier.of_call("create")
    return dossier.job is None and bool(creates) and cast("Shown", creates[-1]["read_as"])["meaning"] == "refused"


def questions(dossier: Dossier) -> tuple[str, ...]:
    """What the provider's support can settle."""
    state = dossier.standing.state
    if state == "result_unavailable" and dossier.standing.missing is not None:
        asked = _STILL_THERE
    elif state == "result_unavailable" and dossier.standing.verdict is None:
        asked = ("Do you still have job {job}? In what state is it, or how did it end?", "If it was removed: when, and by whom or what?")
    elif not dossier.exchanges:
        asked = ()
    elif state == "failed" and _refused(dossier):
        asked = (_WHY_REFUSED,)
    else:
        asked = _QUESTIONS.get(state, ()) + _particular(dossier)
    return tuple(one.replace("{job}", code(dossier.job or "without an id")) for one in asked) or (_NOTHING,)
