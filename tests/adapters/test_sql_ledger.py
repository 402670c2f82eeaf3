import asyncio
from collections.abc import Sequence

import pytest

from activities.ports import Owner
from adapters.sql_books import LedgerBooks
from adapters.sql_ledger import SqlLedger
from domain.chain_verifying import Stored, verify_chain
from domain.errors import EvidenceError, LedgerRegressed, NotFound, NotPermitted, Refused, StaleOwner, Tampered, UnknownStream
from domain.evidence import Callback, Evidence, Late, Lookup
from domain.fingerprint import sha256_hex
from domain.messages import Known
from domain.standing import Standing
from tests.adapters.sql_ledger_cases import (
    FIRST,
    HASH,
    NOW,
    answer,
    created,
    decision,
    drop_triggers,
    intent,
    opening,
    policy,
    reading,
    said,
    sql,
)


async def causes(ledger: SqlLedger, stream: str = "op-1") -> list[tuple[str, str]]:
    return [(entry.role, entry.cause) for entry in await ledger.entries(stream)]


async def sound(ledger: SqlLedger, stream: str = "op-1") -> bool:
    books = LedgerBooks(ledger)
    return (await books.verify(stream)).ok and await books.rebuild(stream) == []


async def test_a_stream_grows_by_linked_entries_and_reads_back_as_it_stands(ledger: SqlLedger) -> None:
    await created(ledger)
    record = await ledger.record("op-1")
    entries = await ledger.entries("op-1")
    assert [entry.cause for entry in entries] == [
        "opened.opened", "owner.claimed", "policy.unattended", "policy.unattended", "intent.create", "exchange.accepted",
    ]  # fmt: skip
    assert (record.standing.state, record.standing.job, record.seq) == ("accepted", {"id": "job-1"}, 5)
    rows = [Stored(e.seq, e.prev, e.hash, e.at, e.actor, e.kind, e.raw) for e in entries]
    assert verify_chain(ledger.ledger_id, "op-1", rows, head=(record.seq, record.hash)) is None
    assert await ledger.entries("op-1", after=3, limit=1) == entries[4:5]
    assert await sound(ledger)


# --- opening ------------------------------------------------------------------------------------------------------------


async def test_asking_again_for_the_same_returns_the_stream_that_is_there(ledger: SqlLedger) -> None:
    first = await ledger.open(opening(key="k"))
    for again in (opening(key="k"), opening("op-2", key="k"), opening()):
        opened = await ledger.open(again)
        assert (opened.created, opened.record) == (False, first.record)
    assert first.created
    assert len(await ledger.entries("op-1")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "other"},
        {"principal": "bob"},
        {"principal": "bob", "asked": "another report"},
        {"principal": "bob", "stream": "op-2", "version": 2},
        {"tenant": "other", "contract": "sim.other"},
    ],
    ids=str,
)
async def test_an_id_or_key_of_another_is_refused_in_the_same_words_whatever_differs(ledger: SqlLedger, other: dict[str, object]) -> None:
    await ledger.open(opening(key="k"))
    with pytest.raises(Refused) as refused:
        await ledger.open(opening(**{"key": "k", **other}))  # pyright: ignore[reportArgumentType]
    assert (refused.value.message, refused.value.hint) == ("this id or key is taken", "use another, or none")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"asked": "another"}, "the id op-1 is taken, with another input"),
        ({"stream": "op-2", "asked": "another"}, "the key k is of op-1, with another input"),
        ({"stream": "op-2", "version": 2}, "the key k is of op-1, with another text of the contract (its version was 1)"),
        ({"contract": "sim.other"}, "the id op-1 is taken, with another contract"),
        ({"key": "l", "stream": "op-9"}, "the id op-9 is taken and the key l is of op-8"),
    ],
    ids=str,
)
async def test_whose_own_it_is_learns_what_has_the_id_or_key(ledger: SqlLedger, other: dict[str, object], told: str) -> None:
    for stream, key in (("op-1", "k"), ("op-8", "l"), ("op-9", None)):
        await ledger.open(opening(stream, key=key))
    with pytest.raises(Refused) as refused:
        await ledger.open(opening(**{"key": "k", **other}))  # pyright: ignore[reportArgumentType]
    assert sorted(refused.value.message.split(" and ")) == sorted(told.split(" and "))
    assert refused.value.hint.startswith("python starter.py status op-")


async def test_what_is_partly_of_another_tells_nothing_of_the_rest(ledger: SqlLedger) -> None:
    await ledger.open(opening("op-1", key="k"))
    await ledger.open(opening("op-2", principal="bob"))
    with pytest.raises(Refused) as refused:
        await ledger.open(opening("op-2", key="k"))
    assert refused.value.message == "this id or key is taken"


async def test_a_key_is_free_for_another_tenant_or_contract(ledger: SqlLedger) -> None:
    await ledger.open(opening(key="k"))
    assert (await ledger.open(opening("op-2", key="k", tenant="other"))).created
    assert (await ledger.open(opening("op-3", key="k", contract="sim.other"))).created


async def test_an_id_and_a_key_of_two_streams_open_neither(ledger: SqlLedger) -> None:
    await ledger.open(opening("op-1", key="k"))
    await ledger.open(opening("op-2", key="l"))
    with pytest.raises(Refused):
        await ledger.open(opening("op-1", key="l"))


async def test_of_many_that_open_at_once_one_creates_and_all_get_its_stream(ledger: SqlLedger) -> None:
    opened = await asyncio.gather(*(ledger.open(opening(f"op-{number}", key="k")) for number in range(8)))
    assert [one.created for one in opened].count(True) == 1
    assert len({one.record.hash for one in opened}) == 1
    assert len(await sql(ledger, "SELECT stream FROM streams")) == 1


async def test_whoever_lost_the_race_with_a_salt_of_its_own_gets_the_winners_salt(ledger: SqlLedger) -> None:
    async def open_with(salt: bytes) -> bool | str:
        try:
            return (await ledger.open(opening(key="k", salt=salt))).created
        except Refused:
            found = await ledger.salt_for(stream="op-1", tenant="acme", contract="sim.reports.create", key="k")
            assert found is not None
            return "found" if not (await ledger.open(opening(key="k", salt=found))).created else "created twice"

    assert sorted(map(str, await asyncio.gather(open_with(b"a" * 32), open_with(b"b" * 32)))) == ["True", "found"]


async def test_the_salt_of_a_stream_is_found_by_id_or_key_and_never_replaced(ledger: SqlLedger) -> None:
    await ledger.open(opening(key="k"))
    asked = {"tenant": "acme", "contract": "sim.reports.create"}
    assert await ledger.salt_for(stream="op-1", key=None, **asked) == b"s" * 32
    assert await ledger.salt_for(stream="op-9", key="k", **asked) == b"s" * 32
    assert await ledger.salt_for(stream="op-9", key="other", **asked) is None
    assert await ledger.salt_for(stream="op-9", key=None, **asked) is None
    with pytest.raises(Refused):
        await ledger.open(opening(key="k", salt=b"t" * 32))
    assert await ledger.salt_for(stream="op-1", key="k", **asked) == b"s" * 32


async def test_a_contract_version_that_was_used_keeps_its_content_and_a_draft_does_not(ledger: SqlLedger) -> None:
    first = opening()
    await ledger.open(first)
    with pytest.raises(Refused):
        await ledger.open(opening("op-2", about="Renders something else."))
    with pytest.raises(UnknownStream):
        await ledger.record("op-2")
    assert (await ledger.open(opening("op-2", about="Renders something else.", version=2))).created
    assert (await ledger.open(opening("op-3", version=0))).created
    assert (await ledger.open(opening("op-4", version=0, about="A changed draft."))).created
    assert await ledger.contract(first.evidence.contract_digest) == first.contract


async def test_of_two_contents_for_one_contract_version_at_once_one_is_pinned(ledger: SqlLedger) -> None:
    opened = await asyncio.gather(
        ledger.open(opening("op-1", about="one")), ledger.open(opening("op-2", about="other")), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in opened) == ["OpenedStream", "Refused"]


# --- owners, turns and notes --------------------------------------------------------------------------------------------


async def test_a_run_that_the_stream_has_not_seen_claims_it_before_its_first_move(ledger: SqlLedger) -> None:
    await created(ledger)
    record = await ledger.append("op-1", said(reading()), owner=Owner("run-2", 3))
    assert (record.standing.epoch, record.standing.turn, record.standing.owners) == (2, 3, {"run-1": 1, "run-2": 2})
    claimed, moved = (await ledger.entries("op-1"))[-2:]
    assert (claimed.kind, claimed.epoch, claimed.turn) == ("owner", 2, 0)
    assert (moved.role, moved.epoch, moved.turn, moved.from_, moved.to) == ("move", 2, 3, "accepted", "observing")
    assert (await LedgerBooks(ledger).row("op-1")).owner == "run-2"


async def test_an_older_owner_or_turn_writes_nothing_that_moves_or_stays(ledger: SqlLedger) -> None:
    await created(ledger)
    await ledger.append("op-1", said(reading()), owner=Owner("run-1", 5))
    before = await ledger.record("op-1")
    with pytest.raises(StaleOwner):
        await ledger.append("op-1", said(decision("refused"), reading()), owner=Owner("run-1", 4), payloads=[b"unseen"])
    assert await ledger.record("op-1") == before
    await ledger.append("op-1", said(reading()), owner=Owner("run-2", 1))
    with pytest.raises(StaleOwner):
        await ledger.append("op-1", said(reading()), owner=Owner("run-1", 99))
    with pytest.raises(NotFound):
        await ledger.payload(sha256_hex(b"unseen"))
    assert await sound(ledger)


async def test_notes_pass_from_a_fenced_owner_and_from_nobody_and_claim_nothing(ledger: SqlLedger) -> None:
    await created(ledger, job=None)
    await ledger.claim("op-1", Owner("run-2", 0))
    late = Late.model_validate({"at": NOW, "actor": "provider:sim", "meaning": "accepted", "job": {"id": "job-1"}})
    record = await ledger.append("op-1", said(late), owner=None)
    assert (record.standing.state, record.standing.job, record.standing.unread_late) == ("create_pending", None, (record.seq,))
    for owner in (Owner("run-1", 0), Owner("run-3", 0)):
        record = await ledger.append("op-1", said(decision("refused")), owner=owner)
    assert (record.standing.epoch, record.standing.owners) == (2, {"run-1": 1, "run-2": 2})
    assert [role for role, _ in await causes(ledger)][-3:] == ["note"] * 3


async def test_a_claim_takes_the_next_epoch_also_for_a_run_that_was_fenced(ledger: SqlLedger) -> None:
    await created(ledger)
    await ledger.claim("op-1", Owner("run-2", 7))
    record = await ledger.claim("op-1", FIRST)
    assert (record.standing.epoch, record.standing.turn, record.standing.owners["run-1"]) == (3, 0, 3)
    assert (await ledger.append("op-1", said(reading()), owner=FIRST)).standing.state == "observing"


async def test_a_final_stream_takes_notes_and_no_owner(ledger: SqlLedger) -> None:
    await ledger.open(opening())
    await ledger.append("op-1", said(policy("no")), owner=FIRST)
    before = await ledger.record("op-1")
    assert before.standing.state == "denied"
    assert await ledger.claim("op-1", Owner("run-2", 0)) == before
    after = await ledger.append("op-1", said(reading()), owner=Owner("run-2", 1))
    assert (after.standing.state, after.standing.epoch) == ("denied", 1)
    with pytest.raises(EvidenceError):
        await ledger.append("op-1", said(intent()), owner=FIRST)


async def test_two_owners_at_once_leave_one_chain_and_one_of_them_fenced(ledger: SqlLedger) -> None:
    await created(ledger)
    owners = [Owner(f"run-{number}", 1) for number in range(2, 8)]
    await asyncio.gather(*(ledger.append("op-1", said(reading()), owner=owner) for owner in owners))
    record = await ledger.record("op-1")
    assert record.standing.epoch == 7
    results = await asyncio.gather(*(ledger.append("op-1", said(reading()), owner=owner) for owner in owners), return_exceptions=True)
    assert [type(one) for one in results].count(StaleOwner) == 5
    assert await sound(ledger)


async def test_what_is_decided_sees_the_standing_under_the_lock(ledger: SqlLedger) -> None:
    await created(ledger)
    seen: list[int] = []

    def decide(standing: Standing) -> Sequence[Evidence]:
        seen.append(standing.reads)
        return [reading()]

    await asyncio.gather(*(ledger.append("op-1", decide, owner=FIRST) for _ in range(10)))
    assert sorted(set(seen)) == list(range(10))
    assert (await ledger.record("op-1")).standing.reads == 10


async def test_deciding_nothing_writes_nothing_and_a_refusal_while_deciding_neither(ledger: SqlLedger) -> None:
    await created(ledger)
    before = await ledger.record("op-1")
    assert await ledger.append("op-1", said(), owner=Owner("run-9", 0), payloads=[b"unseen"]) == before

    def refuse(_: Standing) -> Sequence[Evidence]:
        raise NotPermitted("not now")

    with pytest.raises(NotPermitted):
        await ledger.append("op-1", refuse, owner=FIRST)
    assert await ledger.record("op-1") == before
    with pytest.raises(NotFound):
        await ledger.payload(sha256_hex(b"unseen"))


async def test_a_stream_that_is_not_there_is_unknown_whatever_is_asked(ledger: SqlLedger) -> None:
    for call in (
        ledger.record("op-9"),
        ledger.entries("op-9"),
        ledger.claim("op-9", FIRST),
        ledger.append("op-9\0", said(reading()), owner=None),
        ledger.put_payloads("op-9", [b"x"]),
    ):
        with pytest.raises(UnknownStream):
            await call


# --- the witness --------------------------------------------------------------------------------------------------------


async def test_a_witness_that_the_ledger_does_not_hold_stops_everything(ledger: SqlLedger) -> None:
    await created(ledger)
    record = await ledger.record("op-1")
    middle = (await ledger.entries("op-1"))[2]
    for held in (Known(seq=record.seq, hash=record.hash), Known(seq=2, hash=middle.hash)):
        assert await ledger.record("op-1", known=held) == record
        await ledger.append("op-1", said(), owner=FIRST, known=held)
    for lost in (Known(seq=record.seq + 1, hash=HASH), Known(seq=record.seq, hash=HASH), Known(seq=2, hash=HASH), Known(seq=-1, hash=HASH)):
        with pytest.raises(LedgerRegressed):
            await ledger.record("op-1", known=lost)
        with pytest.raises(LedgerRegressed):
            await ledger.append("op-1", said(reading()), owner=FIRST, known=lost)
    assert await ledger.record("op-1") == record


# --- one job, one operation ---------------------------------------------------------------------------------------------


async def test_a_job_that_another_operation_has_is_recorded_as_a_violation(ledger: SqlLedger) -> None:
    await created(ledger)
    await created(ledger, "op-2")
    record = await ledger.record("op-2")
    assert (record.standing.state, record.standing.job) == ("contract_violation", None)
    assert record.standing.violation == {"why": "another operation has this job", "job": "job-1", "operation": "op-1"}
    assert await sound(ledger, "op-2")


async def test_the_other_operation_is_not_named_to_another_tenant(ledger: SqlLedger) -> None:
    await created(ledger)
    await created(ledger, "op-2", tenant="other")
    assert (await ledger.record("op-2")).standing.violation == {"why": "another operation has this job", "job": "job-1"}
    assert b"op-1" not in b"".join(entry.raw for entry in await ledger.entries("op-2"))


async def test_the_same_job_id_of_another_account_is_another_job(ledger: SqlLedger) -> None:
    await created(ledger)
    await created(ledger, "op-2", account="second")
    assert (await ledger.record("op-2")).standing.state == "accepted"


async def test_of_operations_that_learn_of_one_job_at_once_one_has_it(ledger: SqlLedger) -> None:
    names = [f"op-{number}" for number in range(6)]
    for name in names:
        await created(ledger, name, job=None)
    await asyncio.gather(*(ledger.append(name, said(answer()), owner=FIRST) for name in names))
    states = [(await ledger.record(name)).standing.state for name in names]
    assert (states.count("accepted"), states.count("contract_violation")) == (1, 5)


async def test_a_finished_answer_a_late_one_and_a_lookup_do_not_take_anothers_job(ledger: SqlLedger) -> None:
    await created(ledger)
    cases: dict[str, Evidence] = {
        "finished": answer("finished"),
        "late": Late.model_validate({"at": NOW, "actor": "provider:sim", "meaning": "accepted", "job": {"id": "job-1"}, "of": 5}),
        "found": Lookup(at=NOW, actor="provider:sim", meaning="found", job={"id": "job-1"}),
    }
    for name, evidence in cases.items():
        await created(ledger, name, job=None)
        if name != "finished":
            await ledger.append(name, said(answer("stuck", job=None)), owner=FIRST)
            await ledger.append(name, said(intent().model_copy(update={"meaning": "lookup"})), owner=FIRST)
        record = await ledger.append(name, said(evidence), owner=FIRST)
        assert (record.standing.state, record.standing.job) == ("contract_violation", None), name
        assert (await ledger.entries(name))[-1].body["meaning"] == "violation"
        assert await sound(ledger, name)


async def test_a_callback_that_names_anothers_job_moves_nothing(ledger: SqlLedger) -> None:
    await created(ledger)
    await created(ledger, "op-2", job=None)
    await ledger.append("op-2", said(answer("stuck", job=None)), owner=FIRST)
    callback = Callback(at=NOW, actor="provider:sim", job={"id": "job-1"}, delivery="d")
    record = await ledger.append("op-2", said(callback), owner=FIRST)
    assert record.standing.job is None


async def test_a_human_cannot_adopt_anothers_job(ledger: SqlLedger) -> None:
    await created(ledger)
    await created(ledger, "op-2", job=None)
    await ledger.append("op-2", said(answer("stuck", job=None)), owner=FIRST)
    before = await ledger.record("op-2")
    with pytest.raises(Refused):
        await ledger.append("op-2", said(decision("adopt", arguments={"id": "job-1"})), owner=FIRST)
    assert await ledger.record("op-2") == before
    adopted = await ledger.append("op-2", said(decision("adopt", arguments={"id": "job-2"})), owner=FIRST)
    assert adopted.standing.job == {"id": "job-2"}
    assert (await LedgerBooks(ledger).row("op-2")).job == "job-2"


# --- payloads -----------------------------------------------------------------------------------------------------------


async def test_payloads_are_kept_with_the_entry_or_ahead_of_it_and_hashed_when_read(ledger: SqlLedger) -> None:
    await created(ledger)
    await ledger.put_payloads("op-1", [b"ahead", b"ahead", b"\0\xff"])
    await ledger.put_payloads("op-1", [b"ahead"])
    await ledger.append("op-1", said(reading()), owner=FIRST, payloads=[b"with it", b"ahead"])
    for data in (b"ahead", b"\0\xff", b"with it"):
        assert await ledger.payload(sha256_hex(data)) == data
    with pytest.raises(NotFound):
        await ledger.payload(HASH)
    await drop_triggers(ledger)
    await sql(ledger, ("UPDATE payloads SET bytes = :new WHERE digest = :digest", {"new": b"x", "digest": sha256_hex(b"ahead")}))
    with pytest.raises(Tampered):
        await ledger.payload(sha256_hex(b"ahead"))


async def test_a_contract_is_hashed_when_read(ledger: SqlLedger) -> None:
    asked = opening()
    await ledger.open(asked)
    with pytest.raises(NotFound):
        await ledger.contract(HASH)
    await drop_triggers(ledger)
    await sql(ledger, ("UPDATE contracts SET body = :new", {"new": b"x"}))
    with pytest.raises(Tampered):
        await ledger.contract(asked.evidence.contract_digest)
