"""The tables of the ledger, as every statement sees them. `migrations/` makes them; a test holds the two together.

* `entries`, `contracts` and `ledger` are append-only, and a payload can only lose its bytes: by triggers that the migration makes.
* Instants are text, RFC 3339 in UTC with milliseconds: they sort as they read, on both databases.
* Every text is compared by its bytes (collation C on PostgreSQL, BINARY on SQLite).
* `entries` and `contracts` have no rowid on SQLite: a row that has one can be replaced under another key by naming its rowid.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()
Plain = Text().with_variant(Text(collation="C"), "postgresql")

ledger = Table(
    "ledger",
    metadata,
    Column("one", Integer, CheckConstraint("one = 1", name="ledger_has_one_row"), primary_key=True, autoincrement=False),
    Column("ledger_id", Plain, nullable=False),
    Column("made_at", Plain, nullable=False),
)

streams = Table(
    "streams",
    metadata,
    Column("stream", Plain, primary_key=True),
    Column("tenant", Plain, nullable=False),
    Column("contract", Plain, nullable=False),
    Column("version", Integer, nullable=False),
    Column("contract_digest", Plain, nullable=False),
    Column("key", Plain),
    Column("principal", Plain, nullable=False),
    Column("fingerprint", Plain, nullable=False),
    Column("trace_id", Plain, nullable=False),
    Column("state", Plain, nullable=False),
    Column("attention_since", Plain),
    Column("created_at", Plain, nullable=False),
    Column("updated_at", Plain, nullable=False),
    Column("next_at", Plain),
    Column("deadline", Plain),
    Column("epoch", BigInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("owner", Plain),
    Column("seq", BigInteger, nullable=False),
    Column("head", Plain, nullable=False),
    Column("job", Plain),
    Column("job_scope", Plain),
    Column("standing", Plain, nullable=False),
    UniqueConstraint("tenant", "contract", "key", name="streams_one_per_key"),
    Index("streams_one_per_job", "job_scope", unique=True),
    Index("streams_by_updated", "updated_at", "stream"),
    Index("streams_by_state", "state", "updated_at", "stream"),
    Index("streams_by_tenant", "tenant", "updated_at", "stream"),
    Index(
        "streams_by_attention",
        "updated_at",
        "stream",
        sqlite_where=text("attention_since IS NOT NULL"),
        postgresql_where=text("attention_since IS NOT NULL"),
    ),
)
"""The projection. `job_scope` is a digest of (contract, origin, account, job id): the id itself may be too long for an index."""

entries = Table(
    "entries",
    metadata,
    Column("stream", Plain, ForeignKey("streams.stream"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("prev", Plain, nullable=False),
    Column("hash", Plain, nullable=False),
    Column("at", Plain, nullable=False),
    Column("actor", Plain, nullable=False),
    Column("kind", Plain, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("stream", "seq"),
    sqlite_with_rowid=False,
)

payloads = Table(
    "payloads",
    metadata,
    Column("digest", Plain, nullable=False),
    Column("stream", Plain, ForeignKey("streams.stream"), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("bytes", LargeBinary),
    Column("erased_at", Plain),
    PrimaryKeyConstraint("digest", "stream"),
    Index("payloads_by_stream", "stream"),
)
"""Each stream keeps its own copy: what one tenant erases is gone, whatever another holds, and none can tell what another has."""

contracts = Table(
    "contracts",
    metadata,
    Column("digest", Plain, primary_key=True),
    Column("name", Plain, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(
        "contracts_pinned",
        "name",
        "version",
        unique=True,
        sqlite_where=text("version > 0"),
        postgresql_where=text("version > 0"),
    ),
    sqlite_with_rowid=False,
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("scope", Plain, nullable=False),
    Column("delivery", Plain, nullable=False),
    Column("stream", Plain, nullable=False),
    Column("at", Plain, nullable=False),
    PrimaryKeyConstraint("scope", "delivery"),
)
