"""The few statements that every operation runs many times, compiled once for each database and then given to the driver as text.

Running a statement through the compiler's cache costs more than the database takes for it. Only for statements whose values need no
conversion: text, integers and bytes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable
from sqlalchemy.sql import ClauseElement

Values = Mapping[str, object]


class Prepared:
    """One statement. Every run of it names the same values: they say which columns an INSERT or UPDATE sets."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[str, ...]]] = {}

    def run(self, connection: Connection, *values: Values) -> CursorResult[Any]:
        """Run it with these values; with several, once for each in one go."""
        text, names = self._compiled.get(connection.dialect.name) or self._compile(connection, values[0])
        rows = [tuple(one[name] for name in names) for one in values]
        return connection.exec_driver_sql(text, rows[0] if len(rows) == 1 else rows)

    def _compile(self, connection: Connection, names: Iterable[str]) -> tuple[str, tuple[str, ...]]:
        assert isinstance(self._statement, ClauseElement)
        compiled: Any = self._statement.compile(dialect=connection.dialect, column_keys=list(names))
        self._compiled[connection.dialect.name] = found = (str(compiled), tuple(compiled.positiontup))
        return found
