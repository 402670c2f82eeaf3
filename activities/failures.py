"""Our errors as Temporal's: retryable? when? benign?

* "Not yet" is expected: it is benign, says one line, carries the delay until the next attempt and the newest head.
* An error's text is ours and holds no secret; its type is the name of our class, so that a workflow can tell them apart.
"""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from domain.errors import LedgerRegressed, NotPermitted, SakshiError, StaleOwner, Tampered, UnknownStream
from domain.messages import Head, Known

NOT_YET = "NotYet"
LEDGER_BROKEN = frozenset({LedgerRegressed.__name__, UnknownStream.__name__, Tampered.__name__})
"""The ledger is not what it was: nothing is to be sent before a human has looked."""

# What trying again cannot mend. All else is retried under the table of options.
_FINAL: tuple[type[SakshiError], ...] = (LedgerRegressed, StaleOwner, NotPermitted, UnknownStream, Tampered)


def not_yet(line: str, head: Head, delay: timedelta) -> ApplicationError:
    """Come back after `delay`; `line` is what a person reads in the Temporal UI meanwhile."""
    return ApplicationError(
        line,
        {"state": head.state, "seq": head.seq, "hash": head.hash},
        type=NOT_YET,
        category=ApplicationErrorCategory.BENIGN,
        next_retry_delay=max(delay, timedelta(milliseconds=1)),
    )


def regressed(error: LedgerRegressed, missing: Known) -> ApplicationError:
    """The ledger lacks `missing`, of which only this activity knew: the workflow must know what to ask for."""
    return ApplicationError(error.message, missing.model_dump(), type=LedgerRegressed.__name__, non_retryable=True)


def missing_in(error: ApplicationError) -> Known | None:
    """The entry that the ledger lacks, if the failure says which."""
    match error.details:
        case ({"seq": int(seq), "hash": str(hash)}, *_) if error.type == LedgerRegressed.__name__:
            return Known(seq=seq, hash=hash)
        case _:
            return None


@contextmanager
def as_failures() -> Generator[None]:
    """Turn errors of our tree into application errors. Anything else is a bug and travels as it is."""
    try:
        yield
    except SakshiError as error:
        raise ApplicationError(
            f"{error.message}{' - ' + error.hint if error.hint else ''}",
            type=type(error).__name__,
            non_retryable=isinstance(error, _FINAL),
        ) from None
