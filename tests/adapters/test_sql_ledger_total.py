"""Whatever a provider says can be recorded: it reads back, the chain holds, and the row can be rebuilt."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.evidence import Evidence, parse_evidence
from tests.adapters.sql_ledger_cases import FIRST, NOW, created, opening, said, sql

HOSTILE = st.one_of(
    st.text(),
    st.text(st.characters(categories=["Cs", "Cc", "Cn", "Co"]), max_size=8),
    st.sampled_from(["\0", "\ud800", "a\0b", "\u202e", "\U0010ffff", "1e400", "{}", "'; DROP TABLE entries; --", "x" * 5000]),
    st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")),
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([2**53, -(2**53), 2**64, 10**1000, 1e20, 1e308, -0.0]))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, HOSTILE),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(HOSTILE, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(HOSTILE, JSON, max_size=4)
JOBS = st.one_of(OBJECTS, st.builds(lambda job, more: {**more, "id": job}, st.one_of(HOSTILE, JSON), OBJECTS))
WORDS = st.fixed_dictionaries({name: st.none() | HOSTILE for name in ("reason", "code", "message", "request_id")})
HTTP = st.fixed_dictionaries(
    {
        "method": st.just("GET"),
        "url": HOSTILE,
        "began": st.just(NOW),
        "ended": st.just(NOW),
        "status": st.none() | st.integers(0, 999),
        "headers": st.dictionaries(HOSTILE, HOSTILE, max_size=3),
    }
)
COMMON = {"word": HOSTILE, "words": WORDS, "http": st.none() | HTTP, "violation": st.none() | OBJECTS}
KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "exchange": st.fixed_dictionaries(
        {**COMMON, "meaning": st.sampled_from(["accepted", "finished", "unnamed", "violation"]), "job": st.none() | JOBS}
    ),
    "late": st.fixed_dictionaries({**COMMON, "meaning": st.sampled_from(["accepted", "ambiguous"]), "job": st.none() | JOBS}),
    "reading": st.fixed_dictionaries(
        {
            **COMMON,
            "meaning": st.sampled_from(["going", "held", "terminal", "failed", "violation"]),
            "began": st.just(NOW),
            "remote_state": st.none() | HOSTILE,
            "provider_at": st.none() | HOSTILE,
            "progress": st.none() | OBJECTS,
            "counts": st.none() | st.dictionaries(HOSTILE, st.integers(0, 2**53 - 1), max_size=3),
        }
    ),
    "lookup": st.fixed_dictionaries(
        {
            "word": HOSTILE,
            "words": WORDS,
            "meaning": st.sampled_from(["found", "candidates", "none"]),
            "job": st.none() | JOBS,
            "candidates": st.lists(OBJECTS, max_size=3),
        }
    ),
    "result": st.fixed_dictionaries(
        {
            "meaning": st.sampled_from(["verified", "invalid", "gone"]),
            "items": st.none() | OBJECTS,
            "problems": st.lists(HOSTILE, max_size=3),
            "words": WORDS,
        }
    ),
}


@st.composite
def said_by_a_provider(draw: st.DrawFn) -> Evidence:
    kind = draw(st.sampled_from(sorted(KINDS)))
    return parse_evidence(at=NOW.isoformat(), actor="provider:sim", kind=kind, body=draw(KINDS[kind]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(evidence=st.lists(said_by_a_provider(), min_size=1, max_size=4), owned=st.booleans())
async def test_whatever_a_provider_says_can_be_recorded(ledger: SqlLedger, evidence: list[Evidence], owned: bool) -> None:
    stream = f"s-{len(await sql(ledger, 'SELECT stream FROM streams'))}"
    await created(ledger, stream, job=None)
    record = await ledger.append(stream, said(*evidence), owner=FIRST if owned else None)
    entries = await ledger.entries(stream, after=4)
    assert len(entries) == len(evidence)
    assert [entry.evidence.key.partition(".")[0] for entry in entries] == [one.kind for one in evidence]
    assert await ledger.record(stream) == record
    books = LedgerBooks(ledger)
    assert (await books.verify(stream)).ok
    assert await books.rebuild(stream) == []


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(names=st.fixed_dictionaries(dict.fromkeys(("key", "tenant", "principal"), HOSTILE)))
async def test_whatever_someone_is_called_opens_one_stream_that_verifies(ledger: SqlLedger, names: dict[str, str]) -> None:
    stream = f"s-{len(await sql(ledger, 'SELECT stream FROM streams'))}"
    key, tenant, principal = (f"{stream}{name}"[:200] for name in names.values())
    asked = opening(stream, key=key, tenant=tenant, principal=principal)
    assert (await ledger.open(asked)).created
    assert not (await ledger.open(asked)).created
    assert await ledger.salt_for(stream="another", tenant=tenant, contract="sim.reports.create", key=key) == b"s" * 32
    assert (await LedgerBooks(ledger).verify(stream)).ok
    assert await LedgerBooks(ledger).rebuild(stream) == []
