"""Heartbeats while an activity works, so that Temporal knows within seconds that a worker is gone.

Every heartbeat carries the newest head that the activity knows (a witness for `verify --against-temporal`) and, once there is
one, the answer of the exchange in flight, so that the next attempt can close its intent as recovered.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from temporalio import activity

from activities.options import HEARTBEAT_EVERY
from domain.evidence import Json


@dataclass
class Pulse:
    """What the next heartbeat says. `beat()` says it at once."""

    details: dict[str, Json] = field(default_factory=dict[str, Json])

    def says(self, line: str) -> None:
        """Remember what a person should read at the activity."""
        self.details |= {"says": line}

    def witness(self, seq: int, hash: str) -> None:
        """Remember the newest head."""
        self.details |= {"seq": seq, "hash": hash}

    def answered(self, outcome: dict[str, Json]) -> None:
        """Remember an answer before it is appended, and say so at once."""
        self.details |= {"answer": outcome}
        self.beat()

    def beat(self) -> None:
        """Heartbeat now; the SDK throttles."""
        activity.heartbeat(self.details)


@asynccontextmanager
async def beating() -> AsyncGenerator[Pulse]:
    """Heartbeat at once and then every HEARTBEAT_EVERY until left."""
    pulse = Pulse()

    async def beat() -> None:
        while True:
            pulse.beat()
            await asyncio.sleep(HEARTBEAT_EVERY.total_seconds())

    task = asyncio.create_task(beat())
    try:
        yield pulse
    finally:
        task.cancel()


def last_answer() -> dict[str, Json] | None:
    """The answer that an earlier attempt of this activity heartbeated and may not have appended."""
    details = activity.info().heartbeat_details
    said = cast("object", details[0]) if details else None
    answer = cast("dict[str, object]", said).get("answer") if isinstance(said, dict) else None
    return cast("dict[str, Json]", answer) if isinstance(answer, dict) else None
