import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.service import RPCError, RPCStatusCode

from activities.ports import Owner
from adapters.client import Sakshi, Started, sakshi
from adapters.contract_files import ContractFolder, parse_yaml
from adapters.settings import Settings
from domain.errors import BadInput, InputInvalid, NotFound, Refused, Unreachable
from domain.evidence import Decision, Json, Policy, file_key
from domain.language.loading import parse_contract
from domain.messages import Resolution
from domain.opening import Asked

CONTRACTS = Path(__file__).parents[2] / "contracts"
INPUT: dict[str, Json] = {"account": "acct-7", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv"}


class Handle:
    def __init__(self, temporal: "Temporal", id: str):
        self.temporal, self.id = temporal, id

    async def signal(self, name: str, payload: Any, **_: Any) -> None:
        if self.temporal.gone:
            raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
        if self.temporal.down:
            raise RPCError("down", RPCStatusCode.UNAVAILABLE, b"")
        self.temporal.signals.append((self.id, name, payload))
        await self.temporal.on_signal(self.id, payload)


class Temporal:
    """Takes starts and signals, and remembers them."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Any]] = []
        self.signals: list[tuple[str, str, Any]] = []
        self.gone = self.down = False

    async def start_workflow(self, name: str, argument: Any, *, id: str, **_: Any) -> None:
        if self.down:
            raise RPCError("down", RPCStatusCode.UNAVAILABLE, b"")
        self.started.append((id, argument))

    def get_workflow_handle(self, id: str) -> Handle:
        return Handle(self, id)

    async def on_signal(self, id: str, payload: Any) -> None:
        """What a worker would do with it: nothing."""


@pytest.fixture
async def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sakshi]:
    for name in ("TEMPORAL_ADDRESS", "SAKSHI_LEDGER_URL", "SAKSHI_RESULTS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    async with sakshi(Settings(home=tmp_path / "home", local_user="ada")) as opened:
        opened._client = Temporal()  # pyright: ignore[reportAttributeAccessIssue]
        yield opened


def temporal(there: Sakshi) -> Temporal:
    return there._client  # pyright: ignore[reportReturnType]


def asked(**changes: Any) -> Asked:
    given = Asked(ContractFolder(CONTRACTS).get("sim.reports.create"), INPUT, {"server": "http://127.0.0.1:1"}, "local", "ada")
    return replace(given, **changes)


async def moved(there: Sakshi, stream: str, meaning: str) -> None:
    """One step of a worker: policy says something."""
    policy = Policy(at=there._clocks.now(), actor="worker:w", meaning=meaning, bundle="b")  # pyright: ignore[reportArgumentType]
    await there.ledger.append(stream, lambda _: [policy], owner=Owner("run-1", 1))


async def test_an_operation_is_opened_before_its_workflow_is_started_with_its_head_as_a_witness(there: Sakshi):
    started = await there.open_and_start(asked())
    record = await there.ledger.record(started.id)
    (one,) = temporal(there).started
    assert one[0] == started.id
    assert (one[1].known.seq, one[1].known.hash) == (record.seq, record.hash)
    assert started.created
    assert started.id.startswith("sim.reports.create-")


async def test_the_same_key_is_the_same_operation_and_its_workflow_is_asked_for_again(there: Sakshi):
    first = await there.open_and_start(asked(key="k"))
    again = await there.open_and_start(asked(key="k", reason="other words"))
    assert again == Started(first.id, created=False)
    assert [one[0] for one in temporal(there).started] == [first.id, first.id]
    assert len((await there.list())["items"]) == 1  # pyright: ignore[reportArgumentType]


async def test_the_same_id_is_the_same_operation(there: Sakshi):
    first = await there.open_and_start(asked(), id="mine")
    assert await there.open_and_start(asked(), id="mine") == Started(first.id, created=False)


OTHERS: list[dict[str, Any]] = [{"input": INPUT | {"account": "acct-8"}}, {"principal": "eve"}, {"tenant": "other"}]


@pytest.mark.parametrize(("how", "other"), [*(("id", other) for other in OTHERS), *(("key", other) for other in OTHERS[:2])])
async def test_another_ask_under_a_taken_key_or_id_is_refused_and_told_nothing(there: Sakshi, other: dict[str, Any], how: str):
    given = {"key": "k"} if how == "key" else {}
    id = "mine" if how == "id" else None
    first = await there.open_and_start(asked(reason="secret-reason", **given), id=id)
    with pytest.raises(Refused) as refused:
        await there.open_and_start(asked(**given, **other), id=id)
    told = refused.value.message + refused.value.hint
    fingerprint = (await there.status(first.id))["fingerprint"]
    assert not any(part in told for part in ("acct-7", "ada", "secret-reason", str(fingerprint), "proposed"))
    assert len(temporal(there).started) == 1


async def test_a_key_of_another_tenant_is_another_operation(there: Sakshi):
    first = await there.open_and_start(asked(key="k"))
    other = await there.open_and_start(asked(key="k", tenant="other"))
    assert other.created
    assert other.id != first.id


async def test_of_many_who_open_the_same_at_once_one_creates_and_all_get_its_id(there: Sakshi):
    all_started = await asyncio.gather(*(there.open_and_start(asked(key="k")) for _ in range(8)))
    assert len({one.id for one in all_started}) == 1
    assert [one.created for one in all_started].count(True) == 1


async def test_a_temporal_that_cannot_be_reached_leaves_nothing_opened(there: Sakshi):
    there._client = None
    with pytest.raises(Unreachable, match="no embedded stack"):
        await there.open_and_start(asked())
    assert (await there.list())["items"] == []


async def test_a_start_that_temporal_does_not_take_can_be_repeated_by_the_same_command(there: Sakshi):
    temporal(there).down = True
    with pytest.raises(Unreachable, match="recorded and not started"):
        await there.open_and_start(asked(key="k"))
    temporal(there).down = False
    again = await there.open_and_start(asked(key="k"))
    assert not again.created
    assert [one[0] for one in temporal(there).started] == [again.id]


async def test_what_cannot_be_asked_opens_nothing(there: Sakshi):
    with pytest.raises(InputInvalid, match="account"):
        await there.open_and_start(asked(input={"format": "csv"}))
    with pytest.raises(BadInput, match="an id"):
        await there.open_and_start(asked(), id="with.dot")
    assert (await there.list())["items"] == []


async def test_a_draft_runs_only_where_the_settings_allow_it(there: Sakshi):
    text = (CONTRACTS / "sim.reports.create.yaml").read_text("utf-8").replace("version: 1\n", "version: 0\n", 1)
    parsed = parse_yaml(text.encode(), "draft.yaml")
    draft = parse_contract(parsed.document, file="draft.yaml", positions=parsed.positions)
    with pytest.raises(Refused, match="draft"):
        await there.open_and_start(asked(contract=draft))
    there.settings = there.settings.model_copy(update={"drafts": True})
    assert (await there.open_and_start(asked(contract=draft))).created


async def test_an_operation_that_has_ended_is_not_started_again(there: Sakshi):
    first = await there.open_and_start(asked(key="k"))
    await moved(there, first.id, "no")
    assert not (await there.open_and_start(asked(key="k"))).created
    assert len(temporal(there).started) == 1


async def test_a_unique_beginning_of_an_id_is_enough_and_an_ambiguous_one_is_not(there: Sakshi):
    await there.open_and_start(asked(), id="alpha-1")
    await there.open_and_start(asked(), id="alpha-2")
    assert await there.find("alpha-1") == "alpha-1"
    with pytest.raises(BadInput, match="several"):
        await there.find("alpha")
    with pytest.raises(NotFound):
        await there.find("beta")


async def test_waiting_ends_with_the_time_and_says_how_it_stands(there: Sakshi):
    started = await there.open_and_start(asked())
    found = await there.wait([started.id], timeout=timedelta(milliseconds=50))
    assert found[started.id]["state"] == "proposed"


async def test_waiting_ends_when_the_operation_does(there: Sakshi):
    started = await there.open_and_start(asked())
    waiting = asyncio.create_task(there.wait([started.id]))
    await moved(there, started.id, "no")
    assert (await waiting)[started.id]["state"] == "denied"


async def test_a_cancel_is_sent_and_its_recorded_verdict_waited_for(there: Sakshi):
    started = await there.open_and_start(asked())

    async def record(id: str, payload: Any) -> None:
        cancel = Decision(
            at=there._clocks.now(), actor="human:ada", meaning="cancel", verb="cancel", request_id=payload.request_id, by=payload.by
        )  # fmt: skip
        await there.ledger.append(id, lambda _: [cancel], owner=Owner("run-1", 1))

    temporal(there).on_signal = record
    verdict = await there.cancel(started.id, by="ada", reason="no longer needed")
    assert verdict.accepted
    assert (await there.status(started.id))["state"] == "cancelled"
    ((_, name, payload),) = temporal(there).signals
    assert (name, payload.by, payload.reason) == ("cancel", "ada", "no longer needed")


FILED = (
    "contract: sim.reports.create",
    """files:
  rows: {media: application/jsonl, max_bytes: 1MiB, max_records: 2}
contract: sim.reports.create""",
)


def filed(**changes: Any) -> Asked:
    """An ask under a contract that takes a file."""
    text = (CONTRACTS / "sim.reports.create.yaml").read_text("utf-8").replace(*FILED, 1)
    return asked(contract=parse_contract(parse_yaml(text.encode(), "filed.yaml").document, file="filed.yaml", positions={}), **changes)


def rows(folder: Path, data: bytes = b'{"a": 1}\n', name: str = "rows") -> dict[str, Path]:
    path = folder / name
    path.write_bytes(data)
    return {"rows": path}


def stored(there: Sakshi) -> list[str]:
    return sorted(str(path.relative_to(there.settings.results)) for path in Path(there.settings.results).rglob("*") if path.is_file())


def lose(there: Sakshi, sha256: str) -> None:
    Path(there.settings.results, file_key("local", sha256)).unlink()


async def test_a_file_is_stored_before_the_operation_is_opened_and_entry_0_names_it(there: Sakshi, tmp_path: Path):
    started = await there.open_and_start(filed(), paths=rows(tmp_path))
    opened = (await there.ledger.record(started.id)).standing.opened
    facts = opened.files["rows"]
    assert (facts.bytes, facts.records, facts.media) == (9, 1, "application/jsonl")
    assert stored(there) == [file_key("local", facts.sha256)]
    assert (await there.books.verify(started.id)).ok


async def test_the_same_key_with_the_same_file_is_the_same_operation_and_with_another_it_is_refused(there: Sakshi, tmp_path: Path):
    first = await there.open_and_start(filed(key="k"), paths=rows(tmp_path))
    before = stored(there)
    assert await there.open_and_start(filed(key="k"), paths=rows(tmp_path, name="copy")) == Started(first.id, created=False)
    with pytest.raises(Refused):
        await there.open_and_start(filed(key="k"), paths=rows(tmp_path, b'{"a": 2}\n'))
    assert stored(there) == before


@pytest.mark.parametrize(("data", "words"), [(b"{broken\n", "line 1"), (b"1\n2\n3\n", "3 records"), (b"x" * 2**21, "1048576 bytes")])
async def test_a_file_that_is_not_as_the_contract_says_opens_nothing_and_leaves_nothing(
    there: Sakshi, tmp_path: Path, data: bytes, words: str
):
    with pytest.raises(BadInput, match=words):
        await there.open_and_start(filed(), paths=rows(tmp_path, data))
    with pytest.raises(BadInput, match="needs the file rows"):
        await there.open_and_start(filed())
    assert stored(there) == []
    assert (await there.list())["items"] == []


async def test_an_operation_that_is_repeated_takes_the_same_files_as_long_as_they_are_there(there: Sakshi, tmp_path: Path):
    first = await there.open_and_start(filed(), paths=rows(tmp_path))
    files = (await there.ledger.record(first.id)).standing.opened.files
    (tmp_path / "rows").unlink()
    again = await there.open_and_start(filed(files=files))
    assert again.id != first.id
    assert (await there.ledger.record(again.id)).standing.opened.files == files
    lose(there, files["rows"].sha256)
    with pytest.raises(NotFound, match="no longer in the result store"):
        await there.open_and_start(filed(files=files))
    assert len((await there.list())["items"]) == 2  # pyright: ignore[reportArgumentType]


async def test_a_decision_that_no_worker_records_in_time_has_no_verdict_yet(there: Sakshi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adapters.client.VERDICT_WITHIN", timedelta(milliseconds=30))
    started = await there.open_and_start(asked())
    verdict = await there.cancel(started.id, by="ada", reason="x")
    assert verdict.accepted is None


async def test_a_decision_about_what_has_ended_is_refused_and_kept_as_a_note(there: Sakshi):
    started = await there.open_and_start(asked())
    await moved(there, started.id, "no")
    with pytest.raises(Refused, match="has ended: denied"):
        await there.resolve(started.id, Resolution(request_id="r-1", by="eve", choice="abandon", reason="why not"))
    last = (await there.ledger.entries(started.id))[-1]
    assert (last.role, last.cause, last.body["verb"], last.body["by"]) == ("note", "decision.refused", "abandon", "eve")
    assert temporal(there).signals == []
    assert (await there.books.verify(started.id)).ok


async def test_a_decision_without_a_workflow_is_refused_and_kept_as_a_note(there: Sakshi):
    started = await there.open_and_start(asked())
    temporal(there).gone = True
    with pytest.raises(Refused, match="workflow is not there"):
        await there.cancel(started.id, by="ada", reason="x")
    assert (await there.ledger.entries(started.id))[-1].cause == "decision.refused"


async def test_a_decision_that_temporal_cannot_take_is_unreachable_and_leaves_no_trace(there: Sakshi):
    started = await there.open_and_start(asked())
    temporal(there).down = True
    with pytest.raises(Unreachable):
        await there.cancel(started.id, by="ada", reason="x")
    assert len(await there.ledger.entries(started.id)) == 1


async def test_two_operations_are_linked_both_ways_and_only_once(there: Sakshi):
    old = await there.open_and_start(asked())
    new = await there.open_and_start(asked(retry_of=old.id))
    await there.link(old.id, new.id)
    await there.link(old.id, new.id)
    assert (await there.status(old.id))["retried_by"] == new.id
    assert (await there.status(new.id))["retry_of"] == old.id
    assert len(await there.ledger.entries(old.id)) == 2


async def test_the_account_of_a_credential_is_known_where_its_record_is(there: Sakshi):
    assert there.account(None) is None
    assert there.account("sim") is None
    there.settings.secrets.mkdir(parents=True)
    (there.settings.secrets / "sim").write_text(
        '{"value": "hunter2", "scheme": "bearer", "account": "prod", "origins": ["https://x.example"], "tenants": "*"}'
    )
    assert there.account("sim") == "prod"
