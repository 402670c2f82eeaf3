"""What must come of a lie, derived: what it does to the truth, what it lets be known, and what the contract can promise.

1. What was shown decides what may be concluded; what may not be concluded is asked for again, or left to a human.
2. Only what cannot make a second job is sent again: a token's bytes, or a new generation once absence is proven.
3. A state is a fact: `succeeded` with the verified bytes, `cancelled` and `failed` where the books say so or nothing was made.
4. A lie that breaks the very promise a contract rests on (a forgotten token, a list that hides what it promised to show) may cost
   a second job; it is the provider's, and no rule of ours could know.
5. Told once, a lie costs time. Told until the deadline of its phase, it costs a human's attention.

Pure: a cell goes in, an expectation comes out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.matrix.kinds import Kind
from tests.matrix.words import WORDS, Word

Phase = Literal["create", "lookup", "observe", "cancel", "collect"]
Learned = Literal["all", "done", "later", "refused", "waiting", "nothing"]
PHASES: tuple[Phase, ...] = ("create", "lookup", "observe", "cancel", "collect")


@dataclass(frozen=True)
class Cell:
    """One lie in one form, told once or always, in one phase of an operation of one kind."""

    word: str
    form: str
    always: bool
    phase: Phase
    kind: Kind

    @property
    def row(self) -> Word:
        """The lie's row."""
        return WORDS[self.word]

    @property
    def name(self) -> str:
        """How it is called, in an id's letters."""
        form = f"_{self.form.replace(' ', '_')}" if self.form else ""
        return f"{self.phase}-{self.word}{form}-{'always' if self.always else 'once'}-{self.kind.name.replace('.', '_')}"


@dataclass(frozen=True)
class Expected:
    """Where it ends, how many jobs the provider's books may show, how many creates may be sent, and what Sakshi does."""

    state: str
    does: str
    jobs: int = 1
    least_sent: int = 1
    most_sent: int | None = 1

    @property
    def human(self) -> bool:
        """Nothing more happens by itself."""
        return self.state not in {"succeeded", "failed", "cancelled"}


def expected(cell: Cell) -> Expected:
    """What must come of it."""
    return _PHASES[cell.phase](cell)


# --- creating -----------------------------------------------------------------------------------------------------------


def _create(cell: Cell) -> Expected:
    word, kind = cell.row, cell.kind
    if word.after:
        return _known_token(cell)
    match _learned_of_create(cell):
        case "all" | "done":
            return _made(cell)
        case "refused":
            return Expected("failed", "says what the provider said", jobs=0)
        case "later" if cell.always or cell.form == "hour":
            return Expected("failed", "sends again when asked to, until the create deadline", jobs=0, most_sent=None)
        case "later":
            return Expected("succeeded", "sends again when asked to", least_sent=2, most_sent=2, jobs=_jobs(kind))
        case _:
            return _uncertain(cell)


def _learned_of_create(cell: Cell) -> Learned:
    word, kind = cell.row, cell.kind
    match word.status:
        case "later":
            return "later"
        case "refused":
            return "refused"
        case "two_hundred" if not kind.at_once:
            return "nothing"  # a success that this contract does not know
        case "own" | "two_hundred":
            readable = word.body == "whole" or kind.nameless
            return "all" if readable else ("done" if kind.id_without_body else "nothing")
        case _:
            return "nothing"


def _made(cell: Cell) -> Expected:
    word, kind = cell.row, cell.kind
    if word.twist == "twice":
        if kind.nameless:
            return Expected("create_unknown", "finds two jobs under its mark and shows both", jobs=2)
        return Expected("succeeded", "follows the job that it was told of", jobs=2)
    if word.truth:
        return Expected(word.truth, "reads what became of the job")
    if word.twist == "moved" and kind.status_address_told:
        return Expected("result_timed_out", "sends nothing to that address, until the result deadline")
    return Expected("succeeded", "takes the job", jobs=_jobs(kind))


def _known_token(cell: Cell) -> Expected:
    """The answer to the first sending is lost, though the job was made; the lie waits for the second."""
    kind = cell.kind
    if not kind.resends:
        return _uncertain(Cell("drop_after_accepting", "", False, "create", kind))
    if cell.row.twist == "forgotten" and kind.remembered:
        return Expected("succeeded", "sends the same bytes again; the provider has broken its promise", jobs=2, least_sent=2, most_sent=2)
    return Expected("succeeded", "sends the same bytes again and follows the id that it is told", least_sent=2, most_sent=2)


def _uncertain(cell: Cell) -> Expected:
    kind, carried = cell.kind, cell.row.carried
    if kind.resends:
        return _sent_again(cell)
    match kind.certainty:
        case "exact" if carried:
            return Expected("succeeded", "looks the job up by our mark and takes it")
        case "exact" if cell.always:
            return Expected(
                "failed", "proves that nothing was made and sends anew, until the create deadline", jobs=0, least_sent=2, most_sent=None
            )
        case "exact":
            return Expected("succeeded", "proves that nothing was made and sends anew", least_sent=2, most_sent=2)
        case "heuristic":
            does = "shows a human the jobs that it could be" if carried else "finds nothing, which proves nothing"
            return Expected("create_unknown", does, jobs=int(carried))
        case _:
            return Expected("create_unknown", "stops: a second sending could be a second job", jobs=int(carried and not kind.at_once))


def _sent_again(cell: Cell) -> Expected:
    word, kind = cell.row, cell.kind
    carried = word.carried
    if word.twist == "stored" and kind.remembered:
        made = int(cell.form == "made")
        return Expected("create_unknown", "stops: the stored error would be given again", jobs=made, least_sent=2, most_sent=2)
    held = word.twist == "busy" and kind.knows_in_flight and word.status == "none"
    if not cell.always and not held:
        return Expected("succeeded", "sends the same bytes again", least_sent=2, most_sent=2)
    if not kind.looks_up:
        return Expected(
            "create_unknown", "sends the same bytes again, until the create deadline", jobs=int(carried), least_sent=2, most_sent=None
        )
    if carried:
        return Expected("succeeded", "sends the same bytes again, then asks for the job by its name", least_sent=2, most_sent=None)
    return Expected(
        "failed", "sends the same bytes until the create deadline, then proves that nothing was made", jobs=0, least_sent=2, most_sent=None
    )


def _jobs(kind: Kind) -> int:
    return int(not kind.at_once)


# --- looking up -----------------------------------------------------------------------------------------------------------


def _lookup(cell: Cell) -> Expected:
    word, kind = cell.row, cell.kind
    if word.twist == "unseen" and cell.always:
        return _hidden(kind)
    if cell.always and not _readable(word):
        return Expected("create_unknown", "asks again, until the lookup's deadline")
    if kind.certainty == "heuristic":
        return Expected("create_unknown", "shows a human the jobs that it could be")
    return Expected("succeeded", "takes the job that it finds" if _readable(word) else "asks again and takes the job that it finds")


def _hidden(kind: Kind) -> Expected:
    first = kind.contract.reconcile[0]
    proves = first.by == "get" or first.proves_absence
    if proves and not kind.nameless:
        return Expected(
            "succeeded", "sends anew; the provider has broken its promise to show what there is", jobs=2, least_sent=2, most_sent=2
        )
    return Expected("create_unknown", "finds nothing, which proves nothing")


def _readable(word: Word) -> bool:
    return word.status in {"own", "two_hundred"} and word.body == "whole"


# --- observing ----------------------------------------------------------------------------------------------------------


def _observe(cell: Cell) -> Expected:
    word, kind = cell.row, cell.kind
    match word.twist:
        case "gone":
            return Expected("result_unavailable", "says that the provider no longer knows the job")
        case "moved" if cell.always and kind.result_address_told:
            return Expected("result_validation_failed", "sends nothing to that address, and says why no result is there")
        case "goes_on" | "unseen":
            learned = False
        case _:
            learned = _readable(word)
    if word.truth:
        return Expected(word.truth, "believes what the status shows")
    if learned:
        return Expected("succeeded", "reads on to the end")
    if cell.always:
        return Expected("result_timed_out", "reads again, until the result deadline")
    return Expected("succeeded", "reads again")


# --- cancelling -----------------------------------------------------------------------------------------------------------

_UNCONFIRMED = Expected("cancellation_unconfirmed", "reads the status until the cancel deadline; no reading shows a cancel")


def _cancel(cell: Cell) -> Expected:
    word, kind = cell.row, cell.kind
    if word.truth:
        return Expected(word.truth, "reads what became of the job")
    if word.twist == "late_success":
        return Expected("succeeded", "reads on and keeps the late success")
    if word.twist == "only_words":
        return _UNCONFIRMED
    match word.status:
        case "refused":
            return Expected("succeeded", "says that the cancel was refused, and the job goes on")
        case "later" if cell.always:
            return Expected("cancellation_unconfirmed", "asks again when asked to, until the cancel deadline")
        case "later":
            return Expected("cancelled", "asks again when asked to")
        case "own":
            return Expected("cancelled", "reads the status until it shows the cancel")
        case _ if kind.cancels_again and not cell.always:
            return Expected("cancelled", "asks again, and reads the status until it shows the cancel")
        case _ if kind.cancels_again:
            state = "cancelled" if word.carried else "cancellation_unconfirmed"
            return Expected(state, "asks again until the cancel deadline, and reads the status once more")
        case _:
            return Expected("cancelled", "asks once, and reads the status until it shows the cancel") if word.carried else _UNCONFIRMED


# --- collecting -----------------------------------------------------------------------------------------------------------


def _collect(cell: Cell) -> Expected:
    word = cell.row
    answered = word.status in {"own", "two_hundred"}
    if word.twist == "gone":
        return Expected("result_unavailable", "says that the provider no longer has the result")
    if word.twist == "spoiled" or (answered and word.body == "other"):
        if cell.always:
            return Expected("result_validation_failed", "fetches twice; what breaks the contract is never shown as a result")
        return Expected("succeeded", "fetches again; what breaks the contract is never shown as a result")
    if answered and word.body == "whole":
        return Expected("succeeded", "verifies the result and keeps it")
    if cell.always:
        return Expected("result_unavailable", "fetches again, until the collect deadline")
    return Expected("succeeded", "fetches again")


_PHASES: dict[Phase, Callable[[Cell], Expected]] = {
    "create": _create,
    "lookup": _lookup,
    "observe": _observe,
    "cancel": _cancel,
    "collect": _collect,
}
