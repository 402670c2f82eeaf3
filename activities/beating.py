"""Heartbeats while an activity works, so that Temporal knows within seconds that a worker is gone.

Every heartbeat carries the newest head that the activity knows (a witness for `verify --against-temporal`) and, once there is
one, the answer of the exchange in flight, so that the next attempt can close its intent as recovered. An attempt that ends the
step sooner sends none, since each costs the server a transaction: its result says the same. One that hands back a wait says the
newest head as its last word.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from temporalio import activity

from activities.options import HEARTBEAT_EVERY
from domain.evidence import Json
from domain.messages import Known

ANSWER_WITHIN_S = 0.5
"""An answer that is not in the ledger by then is heartbeated."""


@dataclass
class Pulse:
    """What the next heartbeat says. `beat()` says it at once."""

    details: dict[str, Json] = field(default_factory=dict[str, Json])
    soon: asyncio.TimerHandle | None = None

    def says(self, line: str) -> None:
        """Remember what a person should read at the activity."""
        self.details |= {"says": line}

    def witness(self, seq: int, hash: str) -> None:
        """Remember the newest head."""
        self.details |= {"seq": seq, "hash": hash}

    def answered(self, outcome: dict[str, Json]) -> None:
        """Remember an answer before it is appended, and say so unless the append is as quick as it should be."""
        self.details |= {"answer": outcome}
        self.soon = asyncio.get_running_loop().call_later(ANSWER_WITHIN_S, self.beat)

    def unread(self) -> int:
        """How many attempts in a row, this one too, could not read what they need. Attempts that waited for a due time are none of them."""
        tries = self.details.get("unread")
        unread = tries + 1 if isinstance(tries, int) else 1
        self.details |= {"unread": unread}
        self.beat()
        return unread

    def has_read(self) -> None:
        """The next that cannot is the first in its row."""
        self.details.pop("unread", None)

    def beat(self) -> None:
        """Heartbeat now; the SDK throttles."""
        activity.heartbeat(self.details)


@asynccontextmanager
async def beating() -> AsyncGenerator[Pulse]:
    """Heartbeat every HEARTBEAT_EVERY until left. What an earlier attempt said last is said until there is something newer."""
    pulse = Pulse(_last())

    async def beat() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_EVERY.total_seconds())
            pulse.beat()

    task = asyncio.create_task(beat())
    try:
        yield pulse
    finally:
        task.cancel()
        if pulse.soon is not None:
            pulse.soon.cancel()


def last_witness() -> Known | None:
    """The newest head that an earlier attempt of this activity heartbeated."""
    match _last():
        case {"seq": int(seq), "hash": str(hash)}:
            return Known(seq=seq, hash=hash)
        case _:
            return None


def last_answer() -> dict[str, Json] | None:
    """The answer that an earlier attempt of this activity heartbeated and may not have appended."""
    answer = _last().get("answer")
    return answer if isinstance(answer, dict) else None


def _last() -> dict[str, Json]:
    details = activity.info().heartbeat_details
    said = cast("object", details[0]) if details else None
    return cast("dict[str, Json]", said) if isinstance(said, dict) else {}
