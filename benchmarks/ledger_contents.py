"""A ledger full of operations: one is written through the ledger itself, the others are that one under another id, chained anew.

Every row is what the ledger would have written: `verify` and `rebuild` find nothing in any of them.
"""

import asyncio
import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import asyncpg

from activities.ports import Opening, Owner
from adapters.sql_ledger import SqlLedger
from adapters.sql_projection import StreamRow
from domain.chain import entry_hash, first_prev
from domain.evidence import Commitment, Evidence, Opened, Ref, parse_evidence
from domain.facts import ContractFacts
from domain.fingerprint import canonical, commitment, sha256_hex

CONTRACT = "sim.reports.create"
OWNER = Owner("01a22cef-cc45-7df2-bc15-4383601c4c70", 2)
READINGS = 12
PIECE = 1000
_T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)
_STREAM, _JOB = f"{CONTRACT}-{0:026d}", f"job_{0:016x}"
_URL = "http://127.0.0.1:46809/v1"
_DIGEST = "9c2189f1c7d86fcf765d2f58b00fa83bb4c96010bf40ce8854d9d4bc5fbe24b9"
_ENTRIES = ("stream", "seq", "prev", "hash", "at", "actor", "kind", "body")
_PAYLOADS = ("digest", "stream", "size", "bytes")
_STREAMS = tuple(name.removesuffix("_json") for name in StreamRow.__slots__)


def stream_of(number: int) -> str:
    """The id of an operation. Ids grow with time, as real ones do."""
    return f"{CONTRACT}-{number:026d}"


def opening(stream: str, *, seconds: int = 0) -> Opening:
    """What opens an operation of the size that the demo's are of."""
    contract = canonical({"contract": CONTRACT, "version": 1, "about": "Renders a report. " * 200})
    salt = hashlib.sha256(stream.encode()).digest()
    kept = salt + canonical({"account": "acme", "from": "2026-01-01", "to": "2026-01-31", "format": "csv"})
    evidence = Opened(
        at=_T0 + timedelta(seconds=seconds), actor="human:ada", contract=CONTRACT, version=1, contract_digest=sha256_hex(contract),
        facts=ContractFacts(token=True, token_window_ms=86_400_000).model_dump(mode="json"), target={"server": _URL}, origin=_URL,
        credential={"name": "sim", "account": stream}, tenant="local", principal="ada", requesters=("ada",), reason="monthly report",
        trace_id="423713ef5a1d10d5dff8ca743eb91776", fingerprint=sha256_hex(kept), salt=Ref(digest=sha256_hex(salt), size=len(salt)),
        input=Commitment(commit=commitment(kept), ref=sha256_hex(kept), size=len(kept)),
        effect={
            "class": "external_write", "resource": "account/acme", "summary": "Render a csv report of acme, 2026-01-01 to 2026-01-31",
            "cost": {"currency": "EUR", "minor": 12}, "data_leaving": ["account id", "date range"],
            "fields": {"from": "2026-01-01", "to": "2026-01-31"}, "after_cancel": "A cancelled report leaves nothing behind.",
        },
    )  # fmt: skip
    return Opening(stream=stream, evidence=evidence, contract=contract, payloads=(salt, kept))


def said(kind: str, seconds: int, **body: object) -> Evidence:
    """Evidence as a worker records it."""
    at = (_T0 + timedelta(seconds=seconds)).isoformat()
    return parse_evidence(at=at, actor="worker:2651@host", kind=kind, body=body)  # pyright: ignore[reportArgumentType]


def reading(seconds: int, meaning: str = "going", **more: object) -> Evidence:
    """A status read."""
    return said("reading", seconds, meaning=meaning, began=_text(seconds), http=_http("GET", 200, seconds), provider_at=_text(seconds),
        remote_state="running", word="running", turn=4, next_at=_text(seconds + 1), progress={"completed": seconds, "total": 500}, **more,
    )  # fmt: skip


def story() -> list[tuple[list[Evidence], list[bytes]]]:
    """What follows the opening of an operation that succeeds: one item per transaction, with the payloads kept in it."""
    asked, seen = b"POST /v1/reports\n" + b"x" * 300, b"{" + b"y" * 700 + b"}"
    policy = {"meaning": "unattended", "action_hash": _DIGEST, "bundle": _DIGEST, "policies": ["human-started-external-writes"]}
    request = {"method": "POST", "url": f"{_URL}/reports", "body_sha256": _DIGEST, "body_bytes": 131, "ref": sha256_hex(asked)}
    end = READINGS + 4
    checks = [{"check": name, "verdict": "ok", "expected": _DIGEST, "found": _DIGEST} for name in ("sha256", "size")]
    output = {"name": "report.csv", "key": f"local/{_STREAM}/{_DIGEST}", "sha256": _DIGEST, "size": 14_000, "media": "text/csv",
              "records": 500, "checks": checks}  # fmt: skip
    return [
        ([said("policy", 1, **policy)], []),
        ([said("policy", 2, **policy), said("intent", 2, meaning="create", request=request, send_until=_text(9))], [asked]),
        ([said("exchange", 3, meaning="accepted", word="accepted", job={"id": _JOB}, http=_http("POST", 202, 3), next_at=_text(4))], []),
        *(([reading(second)], []) for second in range(4, READINGS + 3)),
        ([reading(end - 1, "terminal", verdict="succeeded", observed={"digest": sha256_hex(seen), "size": len(seen)})], [seen]),
        ([said("intent", end, meaning="collect", staging=f"local/{_STREAM}/collect-1")], []),
        ([said("result", end, meaning="verified", word="csv", outcome="whole", outputs=[output], http=_http("GET", 200, end))], []),
    ]


@dataclass(frozen=True)
class Template:
    """The rows of one operation that a ledger wrote."""

    row: dict[str, str | int | None]
    entries: tuple[tuple[str, str, str, bytes], ...]
    payloads: tuple[tuple[str, int, bytes], ...]
    contract: tuple[str, str, int, bytes]
    ledger_id: str

    def copy(self, number: int, ledger_id: str) -> "Copy":
        """The same operation under another id in another ledger."""
        stream, job = stream_of(number), f"job_{number:016x}"

        def renamed(text: str) -> str:
            return text.replace(_STREAM, stream).replace(_JOB, job)

        names = [(_STREAM.encode(), stream.encode()), (_JOB.encode(), job.encode()), (self.ledger_id.encode(), ledger_id.encode())]
        prev = first_prev(ledger_id, stream)
        entries: list[tuple[object, ...]] = []
        for seq, (at, actor, kind, raw) in enumerate(self.entries):
            for old, new in names:
                raw = raw.replace(old, new)
            digest = entry_hash(prev, raw)
            entries.append((stream, seq, prev, digest, at, actor, kind, raw))
            prev = digest
        row = {name: renamed(value) if isinstance(value, str) else value for name, value in self.row.items()}
        row |= {"head": prev, "job_scope": sha256_hex(canonical([CONTRACT, _URL, stream, job]))}
        payloads: list[tuple[object, ...]] = [(digest, stream, size, data) for digest, size, data in self.payloads]
        return Copy(tuple(row[name] for name in _STREAMS), entries, payloads)


@dataclass(frozen=True)
class Copy:
    """Rows for `streams`, `entries` and `payloads`."""

    row: tuple[object, ...]
    entries: list[tuple[object, ...]]
    payloads: list[tuple[object, ...]]


async def template() -> Template:
    """Write one operation through a ledger of its own, and take its rows."""
    with tempfile.TemporaryDirectory(prefix="sakshi-bench-") as folder:
        file = Path(folder) / "ledger.db"
        ledger = await SqlLedger.connect(f"sqlite:///{file}")
        try:
            await ledger.open(opening(_STREAM))
            for evidence, payloads in story():
                await ledger.append(_STREAM, lambda _, evidence=evidence: evidence, owner=OWNER, payloads=payloads)
        finally:
            await ledger.aclose()
        with sqlite3.connect(file) as connection:
            connection.row_factory = sqlite3.Row
            row: Any = dict(connection.execute("SELECT * FROM streams").fetchone())
            entries: Any = connection.execute("SELECT at, actor, kind, body FROM entries ORDER BY seq").fetchall()
            payloads: Any = connection.execute("SELECT digest, size, bytes FROM payloads").fetchall()
            contract: Any = tuple(connection.execute("SELECT digest, name, version, body FROM contracts").fetchone())
        connection.close()
    return Template(row, tuple(entries), tuple(payloads), contract, ledger.ledger_id)


async def fill(ledger: SqlLedger, one: Template, start: int, stop: int) -> None:
    """Operations `start` up to `stop`, past all checks, in pieces."""
    if ledger.engines.embedded:
        await asyncio.to_thread(_fill_sqlite, str(ledger.engines.url.database), one, ledger.ledger_id, start, stop)
    else:
        await _fill_postgres(ledger, one, start, stop)


def _fill_sqlite(file: str, one: Template, ledger_id: str, start: int, stop: int) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        for pragma in ("synchronous = OFF", "cache_size = -200000", "wal_autocheckpoint = 50000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("INSERT OR IGNORE INTO contracts (digest, name, version, body) SELECT ?, ?, ?, ?"
            " WHERE NOT EXISTS (SELECT 1 FROM contracts)", one.contract)  # fmt: skip
        for piece in _pieces(one, ledger_id, start, stop):
            connection.execute("BEGIN IMMEDIATE")
            for table, names, rows in _tables(piece):
                marks = ", ".join("?" for _ in names)
                connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


async def _fill_postgres(ledger: SqlLedger, one: Template, start: int, stop: int) -> None:
    url = ledger.engines.url
    connection: Any = await cast("Any", asyncpg).connect(url.set(drivername="postgresql").render_as_string(hide_password=False))
    try:
        await connection.execute("INSERT INTO contracts (digest, name, version, body) SELECT $1, $2, $3, $4"
            " WHERE NOT EXISTS (SELECT 1 FROM contracts)", *one.contract)  # fmt: skip
        for piece in _pieces(one, ledger.ledger_id, start, stop):
            async with connection.transaction():
                for table, names, rows in _tables(piece):
                    await connection.copy_records_to_table(table, columns=list(names), records=rows)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def _pieces(one: Template, ledger_id: str, start: int, stop: int) -> Iterator[list[Copy]]:
    for first in range(start, stop, PIECE):
        yield [one.copy(number, ledger_id) for number in range(first, min(first + PIECE, stop))]


def _tables(piece: Sequence[Copy]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[object, ...]]]]:
    yield "streams", _STREAMS, [copy.row for copy in piece]
    yield "entries", _ENTRIES, [row for copy in piece for row in copy.entries]
    yield "payloads", _PAYLOADS, [row for copy in piece for row in copy.payloads]


def _text(seconds: int) -> str:
    return (_T0 + timedelta(seconds=seconds)).isoformat()


def _http(method: str, status: int, seconds: int) -> dict[str, object]:
    headers = {"content-length": "424", "content-type": "application/json", "date": "Mon, 30 Nov 2026 12:00:00 GMT"}
    return {"method": method, "url": f"{_URL}/jobs/{_JOB}", "began": _text(seconds), "ended": _text(seconds), "status": status,
            "headers": headers, "body_sha256": _DIGEST, "body_bytes": 424}  # fmt: skip
