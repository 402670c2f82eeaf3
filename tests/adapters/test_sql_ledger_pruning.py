"""What is sensitive is taken away in the transaction that makes an operation final, on both databases, and the record says so."""

from dataclasses import replace

import pytest

from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.errors import NotFound
from domain.evidence import Ref
from domain.fingerprint import sha256_hex
from tests.adapters.sql_ledger_cases import FIRST, answer, intent, opening, policy, reading, said

PAGE, LATER, SEEN = b"the page of hidden values", b"a page that came late", b"the whole answer"


def ref(payload: bytes) -> Ref:
    return Ref(digest=sha256_hex(payload), size=len(payload))


async def up_to_its_job(ledger: SqlLedger) -> None:
    given = opening()
    facts = {**given.evidence.facts, "sensitive": True}
    await ledger.open(replace(given, evidence=given.evidence.model_copy(update={"facts": facts})))
    await ledger.append("op-1", said(policy()), owner=FIRST)
    await ledger.append("op-1", said(policy(), intent()), owner=FIRST)
    named = answer().model_copy(update={"sensitive": ref(PAGE)})
    await ledger.append("op-1", said(named), owner=FIRST, payloads=[PAGE])


async def test_it_is_there_until_the_operation_is_final_and_then_it_is_gone(ledger: SqlLedger) -> None:
    await up_to_its_job(ledger)
    assert await ledger.payload(sha256_hex(PAGE)) == PAGE
    ended = reading("terminal", verdict="failed", observed=ref(SEEN).model_dump())
    record = await ledger.append("op-1", said(ended), owner=FIRST, payloads=[SEEN])
    assert (record.standing.state, record.standing.apart, record.standing.sensitive) == ("failed", (), ())
    for payload in (PAGE, SEEN):
        with pytest.raises(NotFound):
            await ledger.payload(sha256_hex(payload))
    last = (await ledger.entries("op-1"))[-1]
    assert (last.cause, last.role, last.body["refs"]) == ("pruned.pruned", "note", [sha256_hex(PAGE), sha256_hex(SEEN)])
    verification = await LedgerBooks(ledger).verify("op-1")
    assert (verification.fault, verification.erased) == (None, 2)
    assert await LedgerBooks(ledger).rebuild("op-1") == []


async def test_what_comes_after_the_end_is_taken_away_with_its_own_entry(ledger: SqlLedger) -> None:
    await up_to_its_job(ledger)
    await ledger.append("op-1", said(reading("terminal", verdict="failed")), owner=FIRST)
    late = reading("going").model_copy(update={"sensitive": ref(LATER)})
    record = await ledger.append("op-1", said(late), owner=None, payloads=[LATER])
    assert record.standing.apart == ()
    assert [entry.cause for entry in await ledger.entries("op-1")][-2:] == ["reading.going", "pruned.pruned"]
    with pytest.raises(NotFound):
        await ledger.payload(sha256_hex(LATER))
    assert (await LedgerBooks(ledger).verify("op-1")).fault is None
