"""Who takes part. A contestant is a starter, a worker, and what stands behind them."""

from dataclasses import dataclass
from typing import Literal

Database = Literal["sqlite", "postgresql"]


@dataclass(frozen=True)
class Contestant:
    """One way to have the job done. `workflow` is the one of those written by hand."""

    name: str
    title: str
    kind: Literal["temporal", "sakshi", "dbos"]
    database: Database | None = None
    workflow: str = ""
    evidence: bool = False


CONTESTANTS = {
    one.name: one
    for one in (
        Contestant("a", "by hand, timer loop", "temporal", workflow="TimerLoop"),
        Contestant("b", "by hand, retry poll", "temporal", workflow="RetryPoll"),
        Contestant("b2", "by hand, one long activity", "temporal", workflow="LongActivity"),
        Contestant("dbos-sqlite", "DBOS, SQLite", "dbos", "sqlite"),
        Contestant("dbos-postgresql", "DBOS, PostgreSQL", "dbos", "postgresql"),
        Contestant("sakshi-sqlite", "Sakshi, SQLite", "sakshi", "sqlite", evidence=True),
        Contestant("sakshi-postgresql", "Sakshi, PostgreSQL", "sakshi", "postgresql", evidence=True),
    )
}
