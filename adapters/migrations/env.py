"""Alembic's entry: runs the migrations in the transaction that `adapters/sql_schema.py` has begun and will commit."""

from alembic import context
from sqlalchemy import Connection

from adapters.sql_tables import metadata

connection = context.config.attributes["connection"]
assert isinstance(connection, Connection), "migrations are run by adapters.sql_schema.migrate"
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
