"""Everything that can go wrong, as one tree.

    SakshiError                 code, hint, retryable, exit_code stand on the class
    |- BadInput                 what a person or program handed in cannot be taken (exit 2)
    |  |- BadContract           a contract file breaks the language; holds findings with file, line, column
    |  |- InputInvalid          the operation's input breaks the contract's schema; holds JSON paths
    |  `- NotFound              no such operation, contract, file
    |     `- UnknownStream      the ledger holds no stream of that id
    |- Refused                  understood, and not allowed (exit 3)
    |  `- NotPermitted          the stream, policy or state does not permit this effect; raised before a credential is read
    |- Unreachable              Temporal, the ledger or the store did not answer (exit 4)
    |- Tampered                 a stored fact is not what was written (exit 5)
    |- RenderError              a template has no value where one is due; nothing was sent
    |- CredentialError          a credential is missing, malformed, or may not go where it is asked to go
    |- AddressError             an address breaks the rules of SECURITY.md S7; nothing was sent
    |- Unloadable               something that is kept for an operation, and that it needs, cannot be had; nothing was sent
    |- StaleOwner               a move or stay by an owner that the stream has moved on from
    |- LedgerRegressed          the ledger does not hold an entry that Temporal knows of
    `- EvidenceError            evidence of our own making that the tables do not allow: a bug, never data

An error says what happened, to what, and (`hint`) what to do next. No error text holds a secret or the words of an
HTTP library. Only `activities/failures.py` turns these into Temporal's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal


class SakshiError(Exception):
    """Root of the tree. `code` is a stable word for programs; `exit_code` is what the command line exits with."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadInput(SakshiError):
    """What was handed in cannot be taken as it stands."""

    code = "bad_input"
    exit_code = 2


@dataclass(frozen=True)
class Finding:
    """One thing wrong at one place of a file. Lines and columns count from 1. `remedy` says what to do about it."""

    file: str
    line: int
    column: int
    key: str
    expected: str
    code: str = "invalid"
    remedy: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (f"{self.file}:{self.line}:{self.column}", self.key, self.expected) if part)


class BadContract(BadInput):
    """A contract file breaks the language."""

    code = "bad_contract"

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = tuple(findings)


class InputInvalid(BadInput):
    """The input breaks the contract's schema; `problems` are `path: what was expected`."""

    code = "input_invalid"

    def __init__(self, problems: Sequence[str], *, hint: str = "") -> None:
        super().__init__("\n".join(problems), hint=hint)
        self.problems = tuple(problems)


class NotFound(BadInput):
    """No such thing."""

    code = "not_found"


class Refused(SakshiError):
    """Understood and not allowed."""

    code = "refused"
    exit_code = 3


class NotPermitted(Refused):
    """The stream does not permit this effect now. Raised before any credential is read."""

    code = "not_permitted"


class Unreachable(SakshiError):
    """A service we depend on did not answer."""

    code = "unreachable"
    exit_code = 4
    retryable = True


class Tampered(SakshiError):
    """A stored fact is not what was written."""

    code = "tampered"
    exit_code = 5


class RenderError(SakshiError):
    """A request cannot be made from these values. Nothing was sent."""

    code = "render_error"
    exit_code = 2


CredentialFault = Literal["absent", "record", "origin", "tenant", "scheme", "token"]
"""Why a credential can't be sent: it is not there, its record can't be used, the record has another origin, tenant or scheme than is
asked for, or no token is given for it."""


class CredentialError(SakshiError):
    """A credential is missing, malformed, or not allowed to go to an origin. `origin`: where it should have gone."""

    code = "credential"

    def __init__(self, message: str, *, hint: str = "", fault: CredentialFault = "record", origin: str = "") -> None:
        super().__init__(message, hint=hint)
        self.fault: CredentialFault = fault
        self.origin = origin


MissingFault = Literal["absent", "changed", "unreadable"]
"""Why something that was kept cannot be had: it is not there, is not what was kept, or is in a form that this worker does not know."""

_SAID_OF: Mapping[MissingFault, str] = MappingProxyType(
    {"absent": "is no longer kept", "changed": "is not what was kept", "unreadable": "cannot be read by this version"}
)


def missing_words(what: str, fault: MissingFault) -> str:
    """What is said of something that cannot be had."""
    return f"{what} {_SAID_OF[fault]}"


class Unloadable(SakshiError):
    """An operation can't be gone on with: `what` it needs, kept under `digest`, cannot be had. Nothing was sent."""

    code = "unloadable"
    exit_code = 3

    def __init__(self, what: str, fault: MissingFault, *, digest: str, hint: str = "") -> None:
        super().__init__(missing_words(what, fault), hint=hint)
        self.what = what
        self.fault: MissingFault = fault
        self.digest = digest


def fault_of(error: NotFound | Tampered | BadContract) -> MissingFault:
    """Why something that was kept cannot be had, by what reading it came to."""
    match error:
        case NotFound():
            return "absent"
        case Tampered():
            return "changed"
        case _:
            return "unreadable"


class AddressError(SakshiError):
    """An address is not one that may be called."""

    code = "address"


class StaleOwner(SakshiError):
    """Another owner, or a later turn of the same one, has moved the stream on."""

    code = "stale_owner"


class LedgerRegressed(SakshiError):
    """The ledger does not hold an entry that Temporal knows of: restored from an older copy, cut, or another ledger."""

    code = "ledger_regressed"
    exit_code = 5


class UnknownStream(NotFound):
    """The ledger holds no stream of that id."""

    code = "unknown_stream"


class EvidenceError(SakshiError):
    """Evidence of our own making that the tables do not allow."""

    code = "evidence"
