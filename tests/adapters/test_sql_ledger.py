from adapters.sql_ledger import SqlLedger
from domain.chain import Stored, verify_chain
from tests.adapters.sql_ledger_cases import accepted


async def test_a_stream_grows_by_linked_entries_and_reads_back_as_it_stands(ledger: SqlLedger) -> None:
    await accepted(ledger)
    record = await ledger.record("op-1")
    entries = await ledger.entries("op-1")
    assert [entry.cause for entry in entries] == [
        "opened.opened", "owner.claimed", "policy.unattended", "policy.unattended", "intent.create", "exchange.accepted",
    ]  # fmt: skip
    assert (record.standing.state, record.standing.job, record.seq) == ("accepted", {"id": "job-1"}, 5)
    rows = [Stored(e.seq, e.prev, e.hash, e.at, e.actor, e.kind, e.raw) for e in entries]
    assert verify_chain(ledger.ledger_id, "op-1", rows, head=(record.seq, record.hash)) is None
