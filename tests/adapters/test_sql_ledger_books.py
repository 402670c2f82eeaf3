import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from adapters import sql_verifying
from adapters.result_store import ObstoreResults
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from adapters.sql_projection import StreamRow
from adapters.sql_tables import streams
from adapters.verifying import verified
from domain import chain_verifying
from domain.chain import Entry, first_prev, make_entry, read_entry
from domain.errors import BadInput, NotFound, Refused, Tampered, UnknownStream
from domain.evidence import Erased, Ref
from domain.fingerprint import sha256_hex
from domain.language.loading import contract_from_canonical
from domain.messages import Known
from tests.adapters.sql_ledger_cases import FIRST, NOW, created, decision, drop_triggers, opening, policy, reading, said, sql


async def test_an_id_is_found_by_any_prefix_that_only_it_has(ledger: SqlLedger) -> None:
    books = LedgerBooks(ledger)
    for stream in ("job", "job-a", "job-b", "JOB-C", "other_1"):
        await ledger.open(opening(stream))
    assert await books.find("job-") == ["job-a", "job-b"]
    assert await books.find("job") == ["job"]
    assert await books.find("oth") == ["other_1"]
    assert await books.find("JOB") == ["JOB-C"]
    for unknown in ("x", "other%", "job-\0", "\ud800"):
        assert await books.find(unknown) == []


async def test_a_row_shows_what_its_entries_lead_to(ledger: SqlLedger) -> None:
    await created(ledger)
    row = await LedgerBooks(ledger).row("op-1")
    record = await ledger.record("op-1")
    assert (row.state, row.job, row.owner, row.seq, row.head) == ("accepted", "job-1", "run-1", record.seq, record.hash)
    assert (row.created_at, row.deadline) == ("2026-11-30T12:00:00.123Z", "2026-11-30T13:00:00.123Z")
    assert (row.standing, row.attention) == (record.standing, False)
    with pytest.raises(UnknownStream):
        await LedgerBooks(ledger).row("op-9")


async def test_a_contract_that_this_version_does_not_read_is_no_obstacle_to_verifying(ledger: SqlLedger, tmp_path: Path) -> None:
    await created(ledger)
    with pytest.raises(BadInput):
        contract_from_canonical(await ledger.contract((await ledger.record("op-1")).standing.opened.contract_digest))
    books = LedgerBooks(ledger)
    item = await verified(ledger, books, await books.verify("op-1"), results=ObstoreResults(tmp_path / "results"), rebuild=True)
    assert (item["ok"], item["bodies"], item["faults"]) == (True, 0, [])


def test_a_rows_fields_are_the_columns_in_their_order() -> None:
    assert [name.removesuffix("_json") for name in StreamRow.__slots__] == [column.name for column in streams.columns]


async def test_lists_show_what_changed_last_first_and_go_on_where_they_ended(ledger: SqlLedger) -> None:
    books = LedgerBooks(ledger)
    for number in range(5):
        await ledger.open(opening(f"op-{number}", tenant="acme" if number % 2 else "other"))
    later = reading().model_copy(update={"at": NOW + timedelta(minutes=1)})
    await ledger.append("op-2", said(later), owner=None)
    first, mark = await books.list(limit=2)
    rest, end = await books.list(limit=50, after=mark)
    assert ([row.stream for row in first], [row.stream for row in rest]) == (["op-2", "op-4"], ["op-3", "op-1", "op-0"])
    assert (mark is None, end) == (False, None)
    assert [row.stream for row in (await books.list(tenant="acme"))[0]] == ["op-3", "op-1"]
    assert (await books.list(after="nonsense"))[1] is None


async def test_lists_by_state_and_by_attention(ledger: SqlLedger) -> None:
    books = LedgerBooks(ledger)
    await created(ledger)
    await created(ledger, "op-2")
    await ledger.open(opening("op-3"))
    assert [row.stream for row in (await books.list(state="contract_violation"))[0]] == ["op-2"]
    assert [row.stream for row in (await books.list(attention=True))[0]] == ["op-2"]
    assert [row.stream for row in (await books.list(attention=False))[0]] == ["op-3", "op-1"]
    await ledger.append("op-2", said(decision("abandon")), owner=FIRST)
    assert (await books.list(attention=True))[0] == []


async def test_verify_counts_entries_and_names_the_head(ledger: SqlLedger) -> None:
    await created(ledger)
    record = await ledger.record("op-1")
    books = LedgerBooks(ledger)
    verified = await books.verify("op-1", Known(seq=record.seq, hash=record.hash))
    assert (verified.ok, verified.entries, verified.head) == (True, 6, Known(seq=5, hash=record.hash))
    with pytest.raises(UnknownStream):
        await books.verify("op-9")
    assert not (await books.verify("op-9", Known(seq=0, hash=record.hash))).ok


async def test_verify_reads_a_long_stream_in_pieces(ledger: SqlLedger) -> None:
    await created(ledger)
    await ledger.append("op-1", said(*(reading() for _ in range(700))), owner=FIRST)
    verified = await LedgerBooks(ledger).verify("op-1")
    assert (verified.ok, verified.entries) == (True, 706)
    assert await LedgerBooks(ledger).rebuild("op-1") == []


async def test_verify_all_goes_over_every_stream_and_finds_the_one(ledger: SqlLedger) -> None:
    for number in range(4):
        await ledger.open(opening(f"op-{number}"))
    await drop_triggers(ledger)
    await sql(ledger, "UPDATE entries SET actor = 'x' WHERE stream = 'op-2'")
    verified = [one async for one in LedgerBooks(ledger).verify_all()]
    assert [(one.stream, one.ok) for one in verified] == [("op-0", True), ("op-1", True), ("op-2", False), ("op-3", True)]


async def test_a_payload_that_an_entry_names_and_nobody_kept_is_missed(ledger: SqlLedger) -> None:
    await created(ledger)
    named = reading("terminal", verdict="succeeded", observed=Ref(digest=sha256_hex(b"answer"), size=6))
    await ledger.append("op-1", said(named), owner=FIRST)
    verified = await LedgerBooks(ledger).verify("op-1")
    assert verified.fault is not None
    assert verified.fault.seq == 6
    await ledger.put_payloads("op-1", [b"answer"])
    assert (await LedgerBooks(ledger).verify("op-1")).ok


async def test_what_was_erased_is_gone_and_said_to_be_erased_and_not_tampered_with(ledger: SqlLedger) -> None:
    await created(ledger)
    await ledger.open(opening("op-2"))
    kept = (await ledger.record("op-1")).standing.opened.input.ref
    erased = Erased(at=NOW, actor="human:ada", refs=(kept,), by="ada", reason="asked to")
    record = await ledger.erase("op-1", erased)
    verified = await LedgerBooks(ledger).verify("op-1")
    assert (verified.ok, verified.erased, record.standing.state) == (True, 1, "accepted")
    assert (await LedgerBooks(ledger).verify("op-2")).erased == 0
    await ledger.erase("op-2", erased)
    with pytest.raises(NotFound):
        await ledger.payload(kept)
    await ledger.put_payloads("op-1", [b"s" * 32])
    assert (await ledger.erase("op-1", erased)).seq == record.seq + 1


async def test_a_salt_that_was_erased_is_not_made_anew(ledger: SqlLedger) -> None:
    await ledger.open(opening())
    await ledger.erase("op-1", Erased(at=NOW, actor="human:ada", refs=(sha256_hex(b"s" * 32),), by="ada"))
    assert await ledger.salt_for(stream="op-1", tenant="acme", contract="c", key=None) is None
    with pytest.raises(Refused):
        await ledger.open(opening(salt=b"t" * 32))


async def test_a_row_that_differs_from_its_entries_is_shown_and_repaired(ledger: SqlLedger) -> None:
    await created(ledger)
    books = LedgerBooks(ledger)
    before = await books.row("op-1")
    await sql(ledger, "UPDATE streams SET state = 'succeeded', job = NULL, epoch = 9, standing = '{}' WHERE stream = 'op-1'")
    with pytest.raises(Tampered):
        await ledger.record("op-1")
    differences = {one.column: (one.stored, one.rebuilt) for one in await books.rebuild("op-1")}
    assert differences.pop("standing")[0] == "{}"
    assert differences == {"state": ("succeeded", "accepted"), "job": (None, "job-1"), "epoch": ("9", "1")}
    assert len(await books.rebuild("op-1", repair=True)) == 4
    assert await books.rebuild("op-1") == []
    assert await books.row("op-1") == before


async def test_a_row_that_is_gone_is_rebuilt_from_its_entries(sqlite_ledger: SqlLedger) -> None:
    await created(sqlite_ledger)
    books = LedgerBooks(sqlite_ledger)
    before = await books.row("op-1")
    with sqlite3.connect(str(sqlite_ledger.engines.url.database)) as plain:
        plain.execute("DELETE FROM streams")
    plain.close()
    verified = [one async for one in books.verify_all()]
    assert [(one.stream, one.ok) for one in verified] == [("op-1", False)]
    await books.rebuild("op-1", repair=True)
    assert await books.row("op-1") == before
    assert (await books.verify("op-1")).ok


async def test_nothing_is_rebuilt_from_a_chain_that_does_not_hold(ledger: SqlLedger) -> None:
    await created(ledger)
    await drop_triggers(ledger)
    await sql(ledger, "UPDATE entries SET actor = 'x' WHERE seq = 5", "UPDATE streams SET state = 'succeeded'")
    with pytest.raises(Tampered):
        await LedgerBooks(ledger).rebuild("op-1", repair=True)
    assert (await LedgerBooks(ledger).row("op-1")).state == "succeeded"
    with pytest.raises(UnknownStream):
        await LedgerBooks(ledger).rebuild("op-9")


async def test_an_entry_is_read_once_to_fold_it(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    await created(ledger)
    read: list[int] = []

    def counted(*, prev: str, hash: str, raw: bytes) -> Entry:
        entry = read_entry(prev=prev, hash=hash, raw=raw)
        read.append(entry.seq)
        return entry

    monkeypatch.setattr(sql_verifying, "read_entry", counted)
    monkeypatch.setattr(chain_verifying, "read_entry", counted)
    assert await LedgerBooks(ledger).rebuild("op-1") == []
    assert read == [entry.seq for entry in await ledger.entries("op-1")]


async def test_nothing_is_rebuilt_from_a_chain_that_holds_and_opens_nothing(sqlite_ledger: SqlLedger) -> None:
    await created(sqlite_ledger)
    await drop_triggers(sqlite_ledger)
    prev = first_prev(sqlite_ledger.ledger_id, "op-1")
    entry = make_entry(
        policy(), ledger_id=sqlite_ledger.ledger_id, stream="op-1", seq=0, prev=prev, role="note", epoch=0, turn=0, from_=None, to=None
    )
    row = {"prev": entry.prev, "hash": entry.hash, "at": entry.at, "actor": entry.actor, "kind": entry.kind, "body": entry.raw}
    put = "INSERT INTO entries (stream, seq, prev, hash, at, actor, kind, body) VALUES ('op-1', 0, :prev, :hash, :at, :actor, :kind, :body)"
    await sql(sqlite_ledger, "DELETE FROM entries", (put, row))
    with pytest.raises(Tampered, match="entry 0: does not open the stream"):
        await LedgerBooks(sqlite_ledger).rebuild("op-1", repair=True)


async def test_the_ledger_answers_and_its_clock_is_ours(ledger: SqlLedger) -> None:
    books = LedgerBooks(ledger)
    await books.ping()
    assert abs(await books.clock_skew()) < timedelta(seconds=1)
