"""What reads the ledger, as plain functions of a connection: bytes by digest, entries in order.

Nothing that is read is believed: bytes are hashed again, and what is not an entry is `Tampered`.
"""

from sqlalchemy import Connection, bindparam, select

from adapters.sql_projection import plain, unknown_stream
from adapters.sql_tables import contracts, entries, payloads, streams
from adapters.sql_writing import taken_by
from domain.chain import Entry, read_entry
from domain.errors import NotFound, Tampered
from domain.fingerprint import sha256_hex

_ENTRIES = (
    select(entries.c.prev, entries.c.hash, entries.c.body)
    .where(entries.c.stream == bindparam("stream"), entries.c.seq > bindparam("after"))
    .order_by(entries.c.seq)
)
_PAYLOAD = select(payloads.c.bytes).where(payloads.c.digest == bindparam("digest")).order_by(payloads.c.erased_at.is_not(None))
_CONTRACT = select(contracts.c.body).where(contracts.c.digest == bindparam("digest"))
_KNOWN = select(streams.c.stream).where(streams.c.stream == bindparam("stream"))


def salt_for(connection: Connection, *, stream: str, tenant: str, contract: str, key: str | None) -> bytes | None:
    """The salt of the stream that has this id, else of the one that has this key for that tenant and contract."""
    there = taken_by(connection, stream=plain(stream), tenant=plain(tenant), contract=plain(contract), key=plain(key))
    if not there:
        return None
    row = next((row for row in there if row.stream == stream), there[0])
    found = connection.execute(_PAYLOAD, {"digest": row.standing.opened.salt.digest}).scalar()
    return None if found is None else bytes(found)


def payload(connection: Connection, digest: str) -> bytes:
    """Bytes kept under a digest. Raises NotFound, Tampered."""
    found = connection.execute(_PAYLOAD, {"digest": plain(digest)}).scalar()
    if found is None:
        raise NotFound(f"no bytes are kept under {digest[:64]}", hint="they may have been erased; the evidence says so")
    return _whole("a payload", digest, bytes(found))


def contract(connection: Connection, digest: str) -> bytes:
    """The canonical contract of that digest. Raises NotFound, Tampered."""
    found = connection.execute(_CONTRACT, {"digest": plain(digest)}).scalar()
    if found is None:
        raise NotFound(f"no operation has used a contract of digest {digest[:64]}")
    return _whole("a contract", digest, bytes(found))


def entries_of(connection: Connection, stream: str, *, after: int = -1, limit: int | None = None) -> list[Entry]:
    """Entries in order, from the one after `after`. Raises UnknownStream, Tampered."""
    rows = connection.execute(_ENTRIES.limit(limit), {"stream": plain(stream), "after": after}).all()
    if not rows and connection.execute(_KNOWN, {"stream": plain(stream)}).first() is None:
        raise unknown_stream()
    try:
        return [read_entry(prev=prev, hash=digest, raw=bytes(raw)) for prev, digest, raw in rows]
    except (ValueError, KeyError, TypeError):
        raise Tampered(f"{stream} holds bytes that are not an entry", hint=f"python starter.py verify {stream}") from None


def _whole(what: str, digest: str, data: bytes) -> bytes:
    if sha256_hex(data) != digest:
        raise Tampered(f"{what} is not what was stored under {digest[:64]}")
    return data
