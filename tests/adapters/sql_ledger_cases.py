"""What the ledger's tests record: openings and evidence with everything filled in, and ways around the triggers."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from sqlalchemy import text

from activities.ports import Decide, Opening, Owner
from adapters.sql_ledger import SqlLedger
from domain.evidence import Commitment, CreateExchange, Evidence, Intent, Observation, Opened, Policy, Ref
from domain.fingerprint import canonical, commitment, fingerprint, sha256_hex

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
        fingerprint=fingerprint(
            salt, contract=contract, version=version, contract_digest=digest, target={}, origin="https://sim.example",
            credential="sim", input=asked, files={},
        ),  # fmt: skip
        salt=Ref(digest=sha256_hex(salt), size=len(salt)),
        input=Commitment(commit=commitment(kept), ref=sha256_hex(kept), size=len(kept)),
        effect={"class": "external_write"},
    )
    return Opening(stream=stream, evidence=opened, contract=body, payloads=(salt, kept))


def said(*evidence: Evidence) -> Decide:
    return lambda _: evidence


def policy(meaning: str = "unattended") -> Policy:
    return Policy(at=NOW, actor="worker:w", meaning=meaning, bundle=HASH)


def intent(attempt: int = 1) -> Intent:
    return Intent(at=NOW, actor="worker:w", meaning="create", attempt=attempt)


def answer(meaning: str = "accepted", job: str | None = "job-1", attempt: int = 1) -> CreateExchange:
    return CreateExchange(at=NOW, actor="provider:sim", meaning=meaning, attempt=attempt, job={"id": job} if job else None)


def reading(meaning: str = "going", **more: object) -> Observation:
    return Observation(at=NOW, actor="provider:sim", meaning=meaning, began=NOW, **more)


async def accepted(ledger: SqlLedger, stream: str = "op-1", *, job: str = "job-1", owner: Owner = FIRST, **more: str) -> None:
    """A stream up to the provider's acceptance."""
    await ledger.open(opening(stream, **more))
    await ledger.append(stream, said(policy()), owner=owner)
    await ledger.append(stream, said(policy(), intent()), owner=owner)
    await ledger.append(stream, said(answer(job=job)), owner=owner)


async def sql(ledger: SqlLedger, *statements: str | tuple[str, dict[str, object]]) -> Sequence[Sequence[object]]:
    """Raw SQL, in one transaction of the writing engine; the rows of the last statement."""
    rows: Sequence[Sequence[object]] = ()
    async with ledger.engines.writer.begin() as connection:
        for statement in statements:
            words, values = statement if isinstance(statement, tuple) else (statement, {})
            result = await connection.execute(text(words), values)
            rows = result.all() if result.returns_rows else ()
    return rows


async def drop_triggers(ledger: SqlLedger) -> None:
    """What somebody with the database in hand would do first."""
    if ledger.engines.embedded:
        names = await sql(ledger, "SELECT name FROM sqlite_master WHERE type = 'trigger'")
        await sql(ledger, *(f"DROP TRIGGER {name}" for (name,) in names))
    else:
        await sql(ledger, *(f"ALTER TABLE {table} DISABLE TRIGGER ALL" for table in ("entries", "payloads", "contracts", "ledger", "streams")))


Make = Callable[..., Evidence]
