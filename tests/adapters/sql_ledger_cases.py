"""What the ledger's tests record: openings and evidence with everything filled in, and ways around the triggers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, text

from activities.ports import Decide, Opening, Owner
from adapters.sql_ledger import SqlLedger
from domain.evidence import Commitment, CreateExchange, Decision, Evidence, Intent, Observation, Opened, Policy, Ref
from domain.fingerprint import canonical, commitment, sha256_hex

NOW = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
HASH = "0" * 64
FIRST = Owner("run-1", 1)


def opening(
    stream: str = "op-1",
    *,
    key: str | None = None,
    tenant: str = "acme",
    principal: str = "ada",
    salt: bytes = b"s" * 32,
    asked: object = "report",
    contract: str = "sim.reports.create",
    version: int = 1,
    about: str = "Renders a report.",
    account: str = "main",
) -> Opening:
    body = canonical({"contract": contract, "version": version, "about": about})
    digest = sha256_hex(body)
    kept = salt + canonical(asked)
    opened = Opened(
        at=NOW,
        actor=f"human:{principal}",
        key_=key,
        contract=contract,
        version=version,
        contract_digest=digest,
        facts={"token": True, "token_window_ms": 86_400_000, "reconcile_entries": 1},
        origin="https://sim.example",
        credential={"name": "sim", "account": account},
        tenant=tenant,
        principal=principal,
        requesters=(principal,),
        trace_id="ab" * 16,
        fingerprint=sha256_hex(salt + canonical([contract, version, digest, asked])),
        salt=Ref(digest=sha256_hex(salt), size=len(salt)),
        input=Commitment(commit=commitment(kept), ref=sha256_hex(kept), size=len(kept)),
        effect={"class": "external_write"},
    )
    return Opening(stream=stream, evidence=opened, contract=body, payloads=(salt, kept))


def said(*evidence: Evidence) -> Decide:
    return lambda _: evidence


def policy(meaning: str = "unattended") -> Evidence:
    return Policy.model_validate({"at": NOW, "actor": "worker:w", "meaning": meaning, "bundle": HASH})


def intent(attempt: int = 1) -> Evidence:
    return Intent(at=NOW, actor="worker:w", meaning="create", attempt=attempt)


def answer(meaning: str = "accepted", job: object = "job-1", attempt: int = 1) -> Evidence:
    said = {"meaning": meaning, "attempt": attempt, "job": None if job is None else {"id": job}}
    return CreateExchange.model_validate({"at": NOW, "actor": "provider:sim", **said})


def reading(meaning: str = "going", **more: object) -> Evidence:
    return Observation.model_validate({"at": NOW, "actor": "provider:sim", "meaning": meaning, "began": NOW, **more})


def decision(meaning: str, **more: object) -> Evidence:
    asked = {"at": NOW, "actor": "human:ada", "meaning": meaning, "verb": meaning, "by": "ada", "request_id": f"r-{meaning}"}
    return Decision.model_validate({**asked, **more})


async def created(
    ledger: SqlLedger, stream: str = "op-1", *, job: str | None = "job-1", owner: Owner = FIRST, tenant: str = "acme", account: str = "main"
) -> None:
    """A stream up to its first create: accepted with that job, or with None still without an answer."""
    await ledger.open(opening(stream, tenant=tenant, account=account))
    await ledger.append(stream, said(policy()), owner=owner)
    await ledger.append(stream, said(policy(), intent()), owner=owner)
    if job is not None:
        await ledger.append(stream, said(answer(job=job)), owner=owner)


async def sql(ledger: SqlLedger, *statements: str | tuple[str, Mapping[str, Any]]) -> Sequence[Sequence[object]]:
    """Raw SQL, in one transaction of the writing engine; the rows of the last statement."""

    def body(connection: Connection) -> Sequence[Sequence[object]]:
        rows: Sequence[Sequence[object]] = ()
        with connection.begin():
            for statement in statements:
                words, values = statement if isinstance(statement, tuple) else (statement, {})
                result = connection.execute(text(words), values)
                rows = result.all() if result.returns_rows else ()
        return rows

    return await ledger.engines.writing(body)


async def drop_triggers(ledger: SqlLedger) -> None:
    """What somebody with the database in hand would do first."""
    if ledger.engines.embedded:
        names = await sql(ledger, "SELECT name FROM sqlite_master WHERE type = 'trigger'")
        await sql(ledger, *(f"DROP TRIGGER {name}" for (name,) in names))
    else:
        await sql(
            ledger, *(f"ALTER TABLE {table} DISABLE TRIGGER ALL" for table in ("entries", "payloads", "contracts", "ledger", "streams"))
        )
