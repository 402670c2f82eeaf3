"""What each contract of the simulator can promise, read from the contract itself, at the pace of the matrix.

* The pace: few readings, and deadlines that a provider's "come back in an hour" fits into, where the deadline is not about creating.
* What is promised is never said here by name: a new contract of the simulator is a new column without a change of this file.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Literal

from domain.contract import Contract
from domain.evidence import Json
from tests.workflows.stage import ROOT, variant

PACE: dict[str, Json] = {
    "deadlines": {"result": "6h", "cancel": "3h", "collect": "2h"},
    "observe": {"poll": {"first": "20s", "factor": 3, "cap": "1h", "floor": "1s"}},
}
HTTP: dict[str, Json] = {"limits": {"result_bytes": "256KiB"}}
PROMPT, PATIENT = ("10s", "20s"), ("2s", "4s")
"""How long an answer is waited for. The second is for the lie that keeps a caller waiting: that wait is real."""
UNREPEATED = {PROMPT: "85s", PATIENT: "69s"}
"""The window of a token that is over, less its margin, before a second sending is due: what was lost is looked up."""
Certainty = Literal["exact", "heuristic", "none"]


@dataclass(frozen=True)
class Kind:
    """One contract, and what follows from what it says."""

    name: str
    contract: Contract

    @property
    def at_once(self) -> bool:
        """The create's answer is the result."""
        return self.contract.observe is None

    @property
    def resends(self) -> bool:
        """The same bytes again make nothing new."""
        return self.contract.create.token is not None

    @property
    def remembered(self) -> bool:
        """The provider keeps a memory of tokens, which can fail it; where the token is the job's own name, the job is the memory."""
        return "${token}" in json.dumps(dict(self.contract.create.request.headers))

    @property
    def knows_in_flight(self) -> bool:
        """An answer may say that an earlier sending is being worked on."""
        return any(answer.word == "in_flight" for answer in self.contract.create.answers)

    @property
    def nameless(self) -> bool:
        """The create's honest answer tells no id, and has no body."""
        return any(answer.word == "accepted_unnamed" for answer in self.contract.create.answers)

    @property
    def id_without_body(self) -> bool:
        """The job's id is ours, or stands in a header as well."""
        return any("headers" in text or text == "token" for text in self.contract.create.job.get("id", ()))

    @property
    def status_address_told(self) -> bool:
        """The provider says where its status is."""
        return self.contract.observe is not None and self.contract.observe.request.url is not None

    @property
    def result_address_told(self) -> bool:
        """The provider says where its result is."""
        collect = self.contract.collect
        return collect is not None and any(source.request and source.request.url for source in collect.source)

    @property
    def cancels_again(self) -> bool:
        """A cancel may be re-sent after a lost answer."""
        return self.contract.cancel is not None and self.contract.cancel.repeatable

    @property
    def looks_up(self) -> bool:
        """A lost create can be asked about."""
        return bool(self.contract.reconcile)

    @property
    def certainty(self) -> Certainty:
        """How sure a match is."""
        if not self.contract.reconcile:
            return "none"
        first = self.contract.reconcile[0]
        return "exact" if first.by == "get" or first.strength == "exact" else "heuristic"

    @property
    def lookups_are(self) -> Literal["list", "observe"]:
        """Which calls of the simulator its lookups are."""
        return "observe" if self.contract.reconcile[0].by == "get" else "list"

    def said_of(self, phase: str) -> str:
        """What the contract says of a phase, as text: kinds that say the same behave the same."""
        match phase:
            case "observe":
                parts: list[object] = [self.contract.observe, self.contract.errors]
            case "cancel":
                parts = [self.contract.cancel, self.contract.errors]
            case "collect":
                parts = [self.contract.collect, self.contract.errors]
            case _:
                parts = [self.contract]
        return repr(parts)

    def paced(self, *, patient: bool, unrepeated: bool) -> Contract:
        """The contract at the pace of the matrix."""
        return _paced(self.name, self.at_once, patient, unrepeated)

    def input(self, **more: Json) -> dict[str, Json]:
        """What is asked for, as far as this contract knows it."""
        usual: dict[str, Json] = {"account": "a-1", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv", "rows": 5}
        schema = self.contract.input or {}
        known = schema["properties"]
        assert isinstance(known, dict)
        return {name: value for name, value in (usual | more).items() if name in known}


@cache
def _paced(name: str, at_once: bool, patient: bool, unrepeated: bool) -> Contract:
    pace = {key: value for key, value in PACE.items() if not (at_once and key == "observe")}
    read, total = times = PATIENT if patient else PROMPT
    http: dict[str, Json] = {**HTTP, "timeouts": {"read": read, "total": total}}
    token: dict[str, Json] = {"create": {"token": {"window": UNREPEATED[times]}}} if unrepeated else {}
    return variant(name, {**pace, **token, "http": http, "version": 3 if patient else 2})


@cache
def kinds() -> tuple[Kind, ...]:
    """Every contract of the simulator."""
    names = sorted(path.name.removesuffix(".yaml") for path in (ROOT / "contracts").glob("sim.*.yaml") if ".cases." not in path.name)
    return tuple(Kind(name, variant(name, {})) for name in names)
