"""Where the books are kept if they are to outlive the process: one SQLite file with the values as JSON.

Written once for each request, before its answer leaves, so that a killed simulator has lost nothing that anyone was told.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, cast

from simulator.answer import Json

What = Literal["job", "token", "seen", "script", "upload"]


class State:
    """Values by what they are and their key, read back in the order in which they first came."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = OFF")  # it has to outlive the process, not the machine
        self._db.execute("CREATE TABLE IF NOT EXISTS kept (n INTEGER PRIMARY KEY, what TEXT, key TEXT, value TEXT, UNIQUE (what, key))")

    def read(self, what: What) -> Iterator[tuple[str, Json]]:
        """All values of this kind."""
        for key, value in self._db.execute("SELECT key, value FROM kept WHERE what = ? ORDER BY n", (what,)):
            yield str(key), cast("Json", json.loads(value))

    def write(self, values: Iterable[tuple[What, str, Json]]) -> None:
        """Keeps these values, all or none; None takes one away."""
        self._db.execute("BEGIN IMMEDIATE")
        for what, key, value in values:
            if value is None:
                self._db.execute("DELETE FROM kept WHERE what = ? AND key = ?", (what, key))
            else:
                self._db.execute(
                    "INSERT INTO kept (what, key, value) VALUES (?, ?, ?) ON CONFLICT (what, key) DO UPDATE SET value = excluded.value",
                    (what, key, json.dumps(value)),
                )
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Gives the file back."""
        self._db.close()
