import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.ports import Record
from adapters.contract_files import ContractFolder
from adapters.showing.entries import folded
from adapters.showing.live import line_of
from adapters.showing.status import effect_is_over, exit_code_of, safe_to_run_again, settled, status_of
from adapters.showing.text import evidence_text, inert, list_text, result_text, said, status_text
from domain.chain import first_prev, make_entry
from domain.evidence import Fact, Observation, Opened, Output
from domain.folding import opened_standing
from domain.lifecycle import UNSENT
from domain.opening import Asked, Drawn, opening
from domain.standing import Attempt, Flag, Standing, Verdict

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ID = "sim.reports.create-01"
FIELDS = """id, key, state, final, outcome, items, attention, effect, safe_to_run_again, waiting_for, why, next, remote_state,
remote_job_id, contract, version, fingerprint, tenant, principal, trace_id, reason, next_poll_at, deadlines, progress, result,
retry_of, flags, head""".replace("\n", " ").split(", ")


def opened() -> Opened:
    contract = ContractFolder(Path(__file__).parents[2] / "contracts").get("sim.reports.create")
    value: Any = {"account": "acct-7", "range": {"start": "2026-01-01", "end": "2026-01-31"}, "format": "csv"}
    asked = Asked(contract, value, {"server": "http://127.0.0.1:8090"}, "local", "ada", key="k", reason="month end")
    return opening(asked, Drawn(b"s" * 32, b"i" * 32, "0" * 32), at=AT)[0]


def standing(**changes: Any) -> Standing:
    return opened_standing(opened()).model_copy(update=changes)


def shown(at: datetime = AT, last: datetime = AT, **changes: Any) -> dict[str, Any]:
    return status_of(Record(ID, 7, "ab" * 32, standing(**changes)), at=at, last_entry=last, by="ada")


def verdict(word: str) -> Verdict:
    return Verdict(verdict=word, at=AT, began=AT, call="observe", seq=5)  # pyright: ignore[reportArgumentType]


OUTPUT = Output(name="output-001", key=f"local/{ID}/{'c' * 64}", sha256="c" * 64, size=9, records=1)


def test_every_field_of_the_status_is_there_in_every_state():
    each: tuple[dict[str, Any], ...] = (
        {},
        {"state": "observing"},
        {"state": "succeeded", "outcome": "whole"},
        {"state": "contract_violation"},
    )
    for changes in each:
        assert set(FIELDS) <= shown(**changes).keys()


def test_a_succeeded_operation_says_where_its_result_is():
    status = shown(state="succeeded", outcome="whole", outputs=(OUTPUT,), verdict=verdict("succeeded"), job={"id": "j1"})
    assert (status["final"], status["outcome"], status["effect"], status["waiting_for"]) == (True, "whole", "made", None)
    assert status["result"]["outputs"][0]["sha256"] == "c" * 64
    assert status["next"][0].startswith("python starter.py result ")
    assert exit_code_of(status) == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"state": "succeeded", "outcome": "partial"}, 6),
        ({"state": "failed"}, 1),
        ({"state": "denied"}, 1),
        ({"state": "result_timed_out"}, 7),
        ({"state": "awaiting_approval"}, 7),
        ({"state": "create_unknown"}, 7),
        ({"state": "observing"}, 8),
    ],
)
def test_the_exit_code_of_waiting_says_how_it_stands(changes: dict[str, Any], code: int):
    status = shown(**changes)
    assert exit_code_of(status) == code
    assert settled(status) == (code != 8)


@pytest.mark.parametrize(
    ("changes", "late", "whom"),
    [
        ({"state": "proposed"}, 1, "clock"),
        ({"state": "proposed"}, 31, "worker"),
        ({"state": "create_pending"}, 1, "provider"),
        ({"state": "create_pending", "next_at": AT + timedelta(hours=1)}, 1, "clock"),
        ({"state": "observing", "next_at": AT + timedelta(hours=1)}, 1, "provider"),
        ({"state": "observing", "next_at": AT + timedelta(hours=1)}, 3629, "provider"),
        ({"state": "observing", "next_at": AT + timedelta(hours=1)}, 3631, "worker"),
        ({"state": "create_pending", "open_attempt": Attempt(generation=1, attempt=1, seq=3, at=AT)}, 60, "provider"),
        ({"state": "create_pending", "open_attempt": Attempt(generation=1, attempt=1, seq=3, at=AT)}, 200, "worker"),
        ({"state": "awaiting_approval"}, 9999, "human"),
        ({"state": "result_timed_out"}, 9999, "human"),
        ({"state": "failed"}, 9999, None),
    ],
)
def test_whom_it_waits_for(changes: dict[str, Any], late: int, whom: str | None):
    assert shown(at=AT + timedelta(seconds=late), **changes)["waiting_for"] == whom


@pytest.mark.parametrize(
    ("changes", "safe", "over"),
    [
        ({"state": "observing"}, False, False),
        ({"state": "denied"}, True, True),
        ({"state": "failed"}, True, True),
        ({"state": "failed", "job": {"id": "j"}, "verdict": verdict("failed")}, True, True),
        ({"state": "cancelled", "job": {"id": "j"}, "verdict": verdict("cancelled")}, True, True),
        ({"state": "succeeded", "job": {"id": "j"}, "verdict": verdict("succeeded")}, False, True),
        ({"state": "abandoned", "job": {"id": "j"}}, False, True),
        ({"state": "abandoned", "unproven": ((1, 1),)}, False, False),
        ({"state": "failed", "job": {"id": "j"}, "verdict": verdict("partial")}, False, True),
    ],
)
def test_running_again_is_safe_only_where_it_cannot_double_an_effect(changes: dict[str, Any], safe: bool, over: bool):
    assert safe_to_run_again(standing(**changes)) is safe
    assert effect_is_over(standing(**changes)) is over


def test_attention_says_since_when_why_and_what_may_be_chosen():
    status = shown(state="result_timed_out", attention_since=AT)
    assert status["attention"]["since"] == "2026-11-30T12:00:00.000Z"
    assert "deadline" in status["attention"]["why"]
    assert status["attention"]["choices"] == ["resume", "cancel", "abandon"]
    assert shlex.split(status["next"][0])[2:5] == ["resolve", ID, "resume"]


def test_what_is_to_be_typed_next_is_quoted_for_a_shell():
    status = status_of(Record(ID, 0, "ab" * 32, standing(state="result_timed_out")), at=AT, last_entry=AT, by="ada; rm -rf")
    assert shlex.split(status["next"][0])[6] == "ada; rm -rf"  # type: ignore[index]


def test_a_violation_and_a_broken_result_say_what_is_wrong():
    assert "another job" in shown(state="contract_violation", violation={"why": "another job"})["why"]
    status = shown(state="result_validation_failed", problems=("sha256 differs",))
    assert "sha256 differs" in status["why"]
    assert status["result"] is None


def test_waiting_for_approval_offers_what_can_be_typed_and_a_late_worker_the_doctor():
    # Nobody can approve by command yet; what is printed to be typed is what can be typed.
    assert [command.split()[2] for command in shown(state="awaiting_approval")["next"]] == ["watch", "cancel"]
    late = shown(state="observing", at=AT + timedelta(hours=2))
    assert late["next"][0] == "python starter.py doctor"


def test_the_text_of_a_status_names_what_matters_and_leaves_out_what_is_not_there():
    flag = Flag(word="not_visible", since=AT, why="the job has not appeared yet")
    text = status_text(shown(state="observing", remote_state="running", progress={"completed": 3, "total": 9}, flags=(flag,)))
    assert "observing" in text
    assert "running 3/9" in text
    assert "has not appeared" in text
    assert "retry of" not in text


@pytest.mark.parametrize("state", ["cancelled", "failed", "denied"])
def test_an_outcome_of_which_nothing_was_counted_is_not_shown_as_text(state: str):
    status = shown(state=state)
    assert status["outcome"] == "none"
    assert "outcome" not in status_text(status)
    counted: dict[str, Any] = status | {"items": {"submitted": 3, "succeeded": 0, "failed": 3}}
    assert "outcome" in status_text(counted)
    assert "outcome" in status_text(shown(state="succeeded", outcome="whole"))


def test_what_a_provider_wrote_acts_on_nothing():
    assert inert("a\x1b[31mb\u202ec\nd") == "a\\u001b[31mb\\u202ec\\u000ad"
    text = status_text(shown(state="observing", remote_state="[bold]\x1b[2J\u202e"))
    assert "[bold]\\u001b[2J\\u202e" in text


def entries(*readings: dict[str, Any]):
    stream = [Observation(at=AT + timedelta(seconds=n), actor="worker:w", began=AT, **one) for n, one in enumerate(readings)]
    made: list[Any] = []
    prev = first_prev("l", ID)
    pieces: list[Fact] = [opened(), *stream]
    for seq, evidence in enumerate(pieces):
        entry = make_entry(
            evidence, ledger_id="l", stream=ID, seq=seq, prev=prev, role="stay", epoch=1, turn=1, from_="observing", to="observing"  # pyright: ignore[reportArgumentType]
        )  # fmt: skip
        made.append(entry)
        prev = entry.hash
    return made


def test_runs_of_unchanged_readings_are_one_line_and_a_change_begins_another():
    going = {"meaning": "going", "word": "running", "remote_state": "running"}
    rows = folded(entries(going, going, going, going | {"progress": {"percent": 5}}, going | {"meaning": "failed"}, going))
    assert [(row["seq"], (row.get("folded") or {}).get("count")) for row in rows] == [(0, None), (1, 3), (4, None), (5, None), (6, None)]  # type: ignore[union-attr]


def test_evidence_lists_and_results_can_be_read_by_people():
    going = {"meaning": "going", "word": "running", "remote_state": "running"}
    text = evidence_text({"id": ID, "total": 3, "entries": folded(entries(going, going))})  # type: ignore[dict-item]
    assert "1-2" in text
    assert "(2 readings)" in text
    assert "--all shows unchanged readings" in text
    unfolded = evidence_text({"id": ID, "total": 3, "entries": folded(entries(going))})  # type: ignore[dict-item]
    assert "--all" not in unfolded, "nothing more would be shown"
    item = shown(state="observing") | {"updated_at": "2026"}
    assert ID in list_text({"items": [item], "next": "mark"})
    assert list_text({"items": [], "next": None}) == "no operations"
    assert "output-001" in result_text(shown(state="succeeded", outcome="whole", outputs=(OUTPUT,)) | shown(outputs=(OUTPUT,))["result"])


def test_a_status_fits_on_one_line():
    assert line_of(shown(state="observing", remote_state="running", progress={"percent": 4})).startswith("observing  running 4%  waits for")


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        ("intent", {"meaning": "step", "step": "upload"}, "upload"),
        ("step", {"meaning": "done", "step": "upload", "http": {"status": 201}}, "upload HTTP 201"),
        ("intent", {"meaning": "create"}, ""),
    ],
)
def test_an_entry_says_which_step_it_is_about(kind: str, body: dict[str, Any], says: str):
    assert said({"kind": kind, "role": "stay", "body": body}) == says


@pytest.mark.parametrize(
    ("state", "why", "said"),
    [
        ("succeeded", f"{UNSENT}: the provider's quota is used up until then", None),
        ("succeeded", "done with warnings", "done with warnings"),
        ("succeeded", None, None),
        ("observing", f"{UNSENT}: the provider's quota is used up until then", f"{UNSENT}: the provider's quota is used up until then"),
    ],
)
def test_what_held_a_result_back_is_no_reason_of_its_success(state: str, why: str | None, said: str | None):
    assert shown(state=state, why=why)["why"] == said
