"""The ledger: its tables, the triggers that keep them append-only, and on PostgreSQL the roles.

The tables are written out here, not taken from `sql_tables.py`: a migration says what was made then, whatever the code says now.
"""

import secrets
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NO_ROWID = {"sqlite_with_rowid": False}

SQLITE_REFUSALS = {
    # BEFORE INSERT as well: INSERT OR REPLACE deletes the old row, and tells DELETE triggers only if recursive_triggers is on.
    "entries": "stream = NEW.stream AND seq = NEW.seq",
    "contracts": "digest = NEW.digest OR (NEW.version > 0 AND name = NEW.name AND version = NEW.version)",
    "ledger": "1",
}
PAYLOAD_MAY_CHANGE = (
    "NEW.bytes IS NULL AND NEW.erased_at IS NOT NULL AND OLD.erased_at IS NULL"
    " AND NEW.digest = OLD.digest AND NEW.stream = OLD.stream AND NEW.size = OLD.size"
)


def upgrade() -> None:
    _tables()
    if op.get_bind().dialect.name == "sqlite":
        _sqlite_triggers()
    else:
        _postgres_triggers()
        _postgres_roles()
    made = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    row = sa.table("ledger", sa.column("one"), sa.column("ledger_id"), sa.column("made_at"))
    op.execute(row.insert().values(one=1, ledger_id=secrets.token_hex(16), made_at=made))


def downgrade() -> None:
    raise RuntimeError("the ledger is append-only: nothing takes it back")


def _tables() -> None:
    op.create_table(
        "ledger",
        sa.Column("one", sa.Integer, sa.CheckConstraint("one = 1", name="ledger_has_one_row"), primary_key=True, autoincrement=False),
        sa.Column("ledger_id", PLAIN, nullable=False),
        sa.Column("made_at", PLAIN, nullable=False),
    )
    op.create_table(
        "streams",
        sa.Column("stream", PLAIN, primary_key=True),
        *(sa.Column(name, PLAIN, nullable=False) for name in ("tenant", "contract")),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("contract_digest", PLAIN, nullable=False),
        sa.Column("key", PLAIN),
        *(sa.Column(name, PLAIN, nullable=False) for name in ("principal", "fingerprint", "trace_id", "state")),
        sa.Column("attention_since", PLAIN),
        *(sa.Column(name, PLAIN, nullable=False) for name in ("created_at", "updated_at")),
        *(sa.Column(name, PLAIN) for name in ("next_at", "deadline")),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("epoch", "turn")),
        sa.Column("owner", PLAIN),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("head", PLAIN, nullable=False),
        *(sa.Column(name, PLAIN) for name in ("job", "job_scope")),
        sa.Column("standing", PLAIN, nullable=False),
        sa.UniqueConstraint("tenant", "contract", "key", name="streams_one_per_key"),
    )
    op.create_index("streams_one_per_job", "streams", ["job_scope"], unique=True)
    op.create_index("streams_by_updated", "streams", ["updated_at", "stream"])
    op.create_index("streams_by_state", "streams", ["state", "updated_at", "stream"])
    op.create_index("streams_by_tenant", "streams", ["tenant", "updated_at", "stream"])
    waiting = sa.text("attention_since IS NOT NULL")
    op.create_index("streams_by_attention", "streams", ["updated_at", "stream"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_table(
        "entries",
        sa.Column("stream", PLAIN, sa.ForeignKey("streams.stream"), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        *(sa.Column(name, PLAIN, nullable=False) for name in ("prev", "hash", "at", "actor", "kind")),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("stream", "seq"),
        **NO_ROWID,
    )
    op.create_table(
        "payloads",
        sa.Column("digest", PLAIN, nullable=False),
        sa.Column("stream", PLAIN, sa.ForeignKey("streams.stream"), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.LargeBinary),
        sa.Column("erased_at", PLAIN),
        sa.PrimaryKeyConstraint("digest", "stream"),
    )
    op.create_index("payloads_by_stream", "payloads", ["stream"])
    op.create_table(
        "contracts",
        sa.Column("digest", PLAIN, primary_key=True),
        sa.Column("name", PLAIN, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        **NO_ROWID,
    )
    pinned = sa.text("version > 0")
    op.create_index("contracts_pinned", "contracts", ["name", "version"], unique=True, sqlite_where=pinned, postgresql_where=pinned)
    op.create_table(
        "deliveries",
        *(sa.Column(name, PLAIN, nullable=False) for name in ("scope", "delivery", "stream", "at")),
        sa.PrimaryKeyConstraint("scope", "delivery"),
    )


def _sqlite_triggers() -> None:
    def refuse(name: str, event: str, table: str, words: str, when: str = "") -> None:
        op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} {when} BEGIN SELECT RAISE(ABORT, '{words}'); END")

    for table, taken in SQLITE_REFUSALS.items():
        words = f"{table}: what is written stays"
        refuse(f"{table}_no_update", "UPDATE", table, words)
        refuse(f"{table}_no_delete", "DELETE", table, words)
        there = f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {taken})"  # noqa: S608 - from the table above
        refuse(f"{table}_no_replace", "INSERT", table, words, there)
    words = "payloads: only erase takes bytes away"
    taken = "(digest = NEW.digest AND stream = NEW.stream) OR rowid = NEW.rowid"
    refuse("payloads_erase_only", "UPDATE", "payloads", words, f"WHEN NOT ({PAYLOAD_MAY_CHANGE})")
    refuse("payloads_no_delete", "DELETE", "payloads", words)
    refuse("payloads_no_replace", "INSERT", "payloads", words, f"WHEN EXISTS (SELECT 1 FROM payloads WHERE {taken})")  # noqa: S608


def _postgres_triggers() -> None:
    op.execute(
        "CREATE FUNCTION sakshi_refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION '%: what is written stays', TG_TABLE_NAME USING ERRCODE = '23001'; END $$"
    )
    op.execute(
        "CREATE FUNCTION sakshi_erase_only() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN IF {PAYLOAD_MAY_CHANGE} THEN RETURN NEW; END IF;"
        " RAISE EXCEPTION 'payloads: only erase takes bytes away' USING ERRCODE = '23001'; END $$"
    )
    for table in ("entries", "contracts", "ledger", "payloads"):
        events = "DELETE" if table == "payloads" else "UPDATE OR DELETE"
        op.execute(f"CREATE TRIGGER {table}_stays BEFORE {events} ON {table} FOR EACH ROW EXECUTE FUNCTION sakshi_refuse()")
        op.execute(f"CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION sakshi_refuse()")
    op.execute("CREATE TRIGGER payloads_erase_only BEFORE UPDATE ON payloads FOR EACH ROW EXECUTE FUNCTION sakshi_erase_only()")


def _postgres_roles() -> None:
    """Roles to grant to logins: `sakshi_owner` migrates, `sakshi_appender` is what a worker needs, `sakshi_reader` looks.

    Roles belong to the whole server. Where this login may not make or grant them, the ledger works without.
    """
    for role in ("sakshi_owner", "sakshi_appender", "sakshi_reader"):
        # Another database of the same server may be making the same role at this moment.
        _if_allowed(f"CREATE ROLE {role} NOLOGIN", "duplicate_object OR unique_violation")
    _if_allowed("GRANT sakshi_reader TO sakshi_appender")
    tables = "ledger, streams, entries, payloads, contracts, deliveries"
    _if_allowed(f"GRANT SELECT ON {tables}, alembic_version TO sakshi_reader")
    _if_allowed("GRANT INSERT ON streams, entries, payloads, contracts, deliveries TO sakshi_appender")
    _if_allowed("GRANT UPDATE ON streams TO sakshi_appender")
    _if_allowed("GRANT UPDATE (bytes, erased_at) ON payloads TO sakshi_appender")
    _if_allowed(
        "EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO sakshi_owner', current_schema());"
        " EXECUTE format('GRANT USAGE ON SCHEMA %I TO sakshi_reader', current_schema());"
        " GRANT sakshi_owner TO CURRENT_USER"
    )
    for table in (*tables.split(", "), "alembic_version"):
        _if_allowed(f"ALTER TABLE {table} OWNER TO sakshi_owner")


def _if_allowed(statement: str, also: str = "undefined_object") -> None:
    op.execute(f"DO $$ BEGIN {statement}; EXCEPTION WHEN insufficient_privilege OR undefined_object OR {also} THEN NULL; END $$")
