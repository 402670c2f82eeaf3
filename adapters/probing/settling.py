"""Sending one create until it is decided what it came to.

* A lost answer is followed by the same bytes only where the contract has a token; else what it made is unknown.
* The first request of a token that is answered as if there had been an earlier one is a difference, and is asked again.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.probing.findings import Seen
from adapters.probing.talking import Talk
from domain.exchange import Answer, NoAnswer, Request
from domain.language.expressions import Scope
from domain.reading import Reading, read_create

TRIES: Final = 6
_USELESS: Final = frozenset({"credential", "address", "unsendable"})
"""Why nothing was sent, where asking again sends nothing either."""
_WAITS: Final = frozenset({"in_flight", "not_executed", "ambiguous"})


@dataclass(frozen=True, slots=True)
class Settled:
    """What sending a create came to. `reading` is None where no answer came; `lost`: it may have made something."""

    seen: tuple[Seen, ...]
    at: datetime
    reading: Reading | None = None
    answer: Answer | None = None
    lost: bool = False
    why: str = ""

    @property
    def meaning(self) -> str:
        """What the last answer means."""
        return "no answer" if self.reading is None else self.reading.meaning

    @property
    def shown(self) -> str:
        """In the words of a report."""
        if self.reading is None:
            return self.why
        said = self.reading.message or self.reading.reason or ""
        return f"{_WORDS.get(self.reading.meaning, self.reading.word)} ({self.answer.status if self.answer else '-'}) {said}".strip()


_WORDS: Final = {
    "ambiguous": "an answer that decides nothing",
    "stuck": "a 5xx that is stored under the token",
    "not_executed": "not executed",
    "violation": "mismatch",
}


async def settle(talk: Talk, call: str, request: Request, scope: Scope, *, first: bool = False) -> Settled:
    """Send the same bytes until an answer decides, or no more may be sent."""
    seen: list[Seen] = []
    lost, reading, answer, why, attempt = False, None, None, "", 0
    end = asyncio.get_running_loop().time() + talk.span("create").total_seconds()
    while True:
        attempt += 1
        said = await talk.ask(call, request, "create", scope)
        seen.append(said.seen)
        delay: int | None
        if isinstance(said.outcome, NoAnswer):
            reading, answer, delay = None, None, said.outcome.wait_ms
            why = f"no answer came ({said.outcome.word})" if said.outcome.sent else f"nothing was sent ({said.outcome.word})"
            lost = lost or said.outcome.sent
        else:
            answer = said.outcome
            reading = read_create(talk.contract, answer, scope, said.now)
            said.seen.word, delay = reading.word, reading.delay_ms
            lost = reading.meaning == "ambiguous" or (lost and reading.meaning in ("not_executed", "in_flight", "refused"))
            if reading.meaning == "in_flight" and first and attempt == 1:
                did = "the first request of a token is answered as if an earlier one were being worked on"
                talk.findings.say("create.taken", "differs", says="in_flight: an earlier sending is worked on", did=did, seen=seen)
        useless = isinstance(said.outcome, NoAnswer) and said.outcome.word in _USELESS
        over = useless if reading is None else reading.meaning not in _WAITS
        stuck = lost and not talk.contract.create.token
        if over or stuck or attempt >= TRIES or not await talk.pause(attempt, delay, end=end):
            unproven = lost and (reading is None or reading.meaning in (*_WAITS, "refused"))
            return Settled(tuple(seen), said.now, reading, answer, unproven, why)
