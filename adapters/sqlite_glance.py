"""The row of one operation, straight out of an embedded ledger's file, over Python's own sqlite3.

* It exists for time alone: loading SQLAlchemy takes as long as all else that a status needs, and nothing is asked more often.
* It reads one row and changes nothing. It answers only where the answer is plain: an embedded ledger, its tables of this version,
  one operation that is meant. Anything else is None, and left to the ledger proper, which does what is to be done or says what is wrong.
"""

import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

from adapters.settings import Settings
from adapters.sql_projection import LAST, SCHEMA, StreamRow, plain

_BUSY_S = 1.0
_COLUMNS = ", ".join(f'"{one.name.removesuffix("_json")}"' for one in fields(StreamRow))
_VERSION = "SELECT version_num FROM alembic_version"
_ROWS = f"SELECT {_COLUMNS} FROM streams WHERE stream >= ? AND stream < ? ORDER BY stream LIMIT 2"  # noqa: S608 - names of ours


def glance(settings: Settings, prefix: str) -> StreamRow | None:
    """The operation that this id, or unique prefix of one, means; None where another has to answer. Raises BadInput for the home."""
    file = settings.home / "ledger.db"
    if settings.ledger_url is not None or plain(prefix) != prefix or not _is_there(file):
        return None
    settings.prepare_home()
    try:
        # `rw`, so that a file that is gone meanwhile is not made, and one that was cut can be recovered.
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=_BUSY_S, isolation_level=None)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            if connection.execute(_VERSION).fetchall() != [(SCHEMA,)]:
                return None
            rows = [StreamRow(*row) for row in connection.execute(_ROWS, (prefix, prefix + LAST))]
    except sqlite3.Error:
        return None
    return rows[0] if rows and (len(rows) == 1 or rows[0].stream == prefix) else None


def _is_there(file: Path) -> bool:
    """Whether it is a file, as far as we are let to see."""
    try:
        return file.is_file()
    except OSError:
        return False
