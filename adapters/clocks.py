"""The port `Clocks`: this machine's clocks."""

import time
from datetime import UTC, datetime


class SystemClocks:
    """Wall clock and monotonic clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
