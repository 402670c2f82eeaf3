"""What a probe finds out: a closed list of questions, one verdict each, and the exchanges that the verdict stands on.

* A question has a verdict from the beginning, `not_tried`. Of several verdicts on one question the gravest counts.
* `not_offered`: the contract claims nothing here, or the provider offers nothing that could be compared.
* The words of a provider are bounded and printable. No exchange holds a body, a query or a secret.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from pydantic import JsonValue

from domain.evidence import bounded

Verdict = Literal["ok", "differs", "not_offered", "not_tried"]
Change = Literal["set", "add", "drop", "append"]
_GRAVITY: Final[Mapping[Verdict, int]] = {"not_tried": 0, "not_offered": 1, "ok": 2, "differs": 3}
MAX_TEXT: Final = 600
UNHEARD: Final = "the probe did not get so far"

QUESTIONS: Final[Mapping[str, str]] = {
    "create.taken": "the create is taken, and its answer names the job",
    "create.token": "the same request under the same token is the same job",
    "create.replayed": "an answer that is given again is recognised by token.replayed",
    "create.other_body": "another body under the same token makes nothing",
    "create.window": "the token still stands for its job when that has ended",
    "create.compare": "the job that an earlier sending made is the one that was asked for",
    "mark": "our mark is shown where the contract looks for it",
    "lookup.finds": "reconcile finds the job, and no other, within visible_within",
    "lookup.absent": "reconcile finds nothing where nothing was made",
    "status.known": "the status knows the job within appears_within, and as long as it is probed",
    "status.same": "the status is about the job that was asked for",
    "status.states": "every state that is shown is mapped",
    "status.progress": "what is done does not become less",
    "status.ends": "the job ends within deadlines.result",
    "status.final": "a state that ends a job is the last",
    "status.unknown": "a job that there is not is read as gone or rejected",
    "result.there": "the result is there once the job has ended, and can be fetched",
    "result.again": "the result can be fetched again",
    "result.format": "the result is of its format",
    "result.content_type": "the content type is the one that is verified",
    "result.bytes": "the length is the one that is stated",
    "result.sha256": "the SHA-256 is the one that is stated",
    "result.records": "the count of records is the one that is stated",
    "result.schema": "the result fits the contract's schema",
    "result.pages": "the pages lead to an end, and hold what they say",
    "cancel.acknowledged": "a cancel is acknowledged",
    "cancel.repeatable": "a cancel that is sent twice is taken like one",
    "cancel.confirmed": "a state confirms an acknowledged cancel within deadlines.cancel",
    "cancel.finished": "a cancel leaves a finished job as it is",
    "addresses": "every address that is given is of a host that the contract lists",
    "hints": "hints of when to come back can be read, and keep to the deadlines",
}


@dataclass(slots=True)
class Seen:
    """One exchange as it is reported."""

    n: int
    call: str
    method: str
    url: str
    began: str
    took_ms: int
    status: int | None = None
    no_answer: str | None = None
    body_sha256: str | None = None
    body_bytes: int | None = None
    fault: str | None = None
    word: str | None = None


@dataclass(frozen=True, slots=True)
class Mend:
    """One change of the contract's file. `text` is YAML in one line; `note` is what a person has to know of it."""

    change: Change
    path: tuple[str | int, ...]
    text: str = ""
    note: str = ""


@dataclass(slots=True)
class Check:
    """One question with its verdict."""

    name: str
    verdict: Verdict = "not_tried"
    says: str = ""
    did: str = UNHEARD
    exchanges: list[int] = field(default_factory=list[int])
    mends: list[Mend] = field(default_factory=list[Mend])

    def to_json(self) -> dict[str, object]:
        """As it is reported."""
        return {
            "name": self.name,
            "question": QUESTIONS[self.name],
            "verdict": self.verdict,
            "contract_says": self.says,
            "provider_did": self.did,
            "exchanges": sorted(set(self.exchanges)),
        }


class Findings:
    """The checks of one probe, in the order of the questions, and all exchanges."""

    def __init__(self) -> None:
        self.checks: dict[str, Check] = {name: Check(name) for name in QUESTIONS}
        self.exchanges: list[Seen] = []
        self.states: dict[tuple[str, str], int] = {}
        self.advice: list[Mend] = []

    def say(
        self, name: str, verdict: Verdict, *, says: str = "", did: str = "", seen: Iterable[Seen | None] = (), mends: Iterable[Mend] = ()
    ) -> None:
        """One verdict on a question. A graver one replaces what was said; an equal one is added to it."""
        check = self.checks[name]
        numbers = [one.n for one in seen if one is not None]
        if _GRAVITY[verdict] < _GRAVITY[check.verdict]:
            return
        if verdict != check.verdict or verdict in ("not_tried", "not_offered"):
            check.verdict, check.says, check.did = verdict, bounded(says, MAX_TEXT), bounded(did, MAX_TEXT)
            check.exchanges, check.mends = numbers, list(mends)
            return
        check.says = check.says or bounded(says, MAX_TEXT)
        if did not in check.did:
            check.did = bounded(f"{check.did}; {did}" if check.did else did, MAX_TEXT)
        check.exchanges += numbers
        check.mends += [mend for mend in mends if mend not in check.mends]

    @property
    def newest(self) -> Seen | None:
        """The newest exchange."""
        return self.exchanges[-1] if self.exchanges else None

    def verdict(self, name: str) -> Verdict:
        """The verdict as it stands."""
        return self.checks[name].verdict

    def heard_of(self, name: str) -> bool:
        """Whether anything was said on a question."""
        return self.checks[name].did != UNHEARD

    def state(self, shown: str, word: str) -> None:
        """A state that a status answer showed, and how it is mapped."""
        key = (bounded(shown, 64), word)
        self.states[key] = self.states.get(key, 0) + 1

    @property
    def differs(self) -> bool:
        """Whether the contract and the provider differ in anything."""
        return any(check.verdict == "differs" for check in self.checks.values())

    def mends(self) -> list[Mend]:
        """Everything that can be mended mechanically, differences first."""
        wanted = [mend for check in self.checks.values() if check.verdict == "differs" for mend in check.mends]
        return list(dict.fromkeys([*wanted, *self.advice]))

    def to_json(self) -> dict[str, object]:
        """Checks, states and exchanges, as they are reported."""
        return {
            "checks": [check.to_json() for check in self.checks.values()],
            "states": [{"state": shown, "is": word, "times": times} for (shown, word), times in self.states.items()],
            "exchanges": [asdict(one) for one in self.exchanges],
        }


def plain(value: JsonValue) -> str:
    """A value in the words of a report."""
    return bounded(value if isinstance(value, str) else str(value), 120)
