"""Messages grow without breaking and are bounded before anything is done with them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from domain import messages
from domain.messages import (
    MAX_REASON,
    ApprovalDecision,
    CancelRequest,
    Card,
    ClockInput,
    Head,
    JudgedDecision,
    JudgeDecisionInput,
    Known,
    Message,
    OperationInput,
    Received,
    Resolution,
    StepInput,
    WakeHint,
)  # fmt: skip

HEAD = {"state": "observing", "seq": 7, "hash": "a" * 64, "step": "observe"}
LEAST: list[tuple[type[Message], dict[str, Any]]] = [
    (Known, {"seq": 1, "hash": "a" * 64}),
    (OperationInput, {"id": "reports-1"}),
    (Card, {}),
    (Head, HEAD),
    (StepInput, {"id": "reports-1", "turn": 3}),
    (Received, {"kind": "cancel"}),
    (JudgeDecisionInput, {"id": "reports-1", "turn": 3, "received": {"kind": "cancel"}}),
    (JudgedDecision, {"head": HEAD, "accepted": True}),
    (ClockInput, {"id": "reports-1", "turn": 3, "clock": "approval"}),
    (CancelRequest, {"request_id": "r-1", "by": "asha"}),
    (ApprovalDecision, {"request_id": "r-1", "by": "asha", "decision": "approve", "action_hash": "0" * 64}),
    (Resolution, {"request_id": "r-1", "by": "asha", "choice": "abandon"}),
    (WakeHint, {}),
]
CANCEL = {"request_id": "r-1", "by": "asha"}


@pytest.mark.parametrize(("model", "fields"), LEAST, ids=[model.__name__ for model, _ in LEAST])
def test_a_message_is_tolerant_of_newer_fields_and_of_missing_ones_and_comes_back_whole(
    model: type[Message], fields: dict[str, Any]
) -> None:
    plain = model.model_validate(fields)
    assert model.model_validate({**fields, "added_later": {"deep": [1]}}) == plain
    assert model.model_validate_json(plain.model_dump_json()) == plain


def test_no_message_is_left_out_of_these_tests() -> None:
    defined = {value for value in vars(messages).values() if isinstance(value, type) and issubclass(value, Message)}
    assert defined - {Message} == {model for model, _ in LEAST}


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        CancelRequest.model_validate(CANCEL).by = "mallory"


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (CancelRequest, CANCEL | {"reason": "x" * (MAX_REASON + 1)}),
        (CancelRequest, CANCEL | {"request_id": ""}),
        (CancelRequest, CANCEL | {"request_id": "r" * 129}),
        (CancelRequest, CANCEL | {"request_id": "r 1"}),
        (CancelRequest, CANCEL | {"request_id": "-r"}),
        (CancelRequest, CANCEL | {"by": ""}),
        (CancelRequest, CANCEL | {"by": "a" * 129}),
        (CancelRequest, CANCEL | {"by": "asha\nroot"}),
        (CancelRequest, CANCEL | {"force": "perhaps"}),
        (CancelRequest, {"by": "asha"}),
        (ApprovalDecision, CANCEL | {"decision": "approve"}),
        (ApprovalDecision, CANCEL | {"decision": "perhaps", "action_hash": "0" * 64}),
        (ApprovalDecision, CANCEL | {"decision": "approve", "action_hash": "0" * 63}),
        (ApprovalDecision, CANCEL | {"decision": "approve", "action_hash": "latest"}),
        (Resolution, CANCEL | {"choice": "succeed"}),
        (Resolution, CANCEL | {"choice": "resume", "until": "soon"}),
        (WakeHint, {"source": "w" * 129}),
        (WakeHint, {"request_id": "r" * 129}),
        (Head, HEAD | {"step": "dance"}),
    ],
)
def test_what_is_out_of_bounds_is_refused(model: type[Message], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(fields)


def test_what_is_just_within_bounds_is_taken() -> None:
    taken = CancelRequest.model_validate({"request_id": "r" * 128, "by": "a" * 128, "reason": "x" * MAX_REASON})
    assert len(taken.reason) == MAX_REASON


@pytest.mark.parametrize(
    ("until", "why"),
    [
        ("2026-11-30T12:00:00", "an instant has a zone"),
        ("9000-01-01T00:00:00Z", "before the year 9000"),
        ("0001-01-01T00:00:00+14:00", "no instant"),
    ],
)
def test_a_moment_that_could_not_be_recorded_is_refused(until: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Resolution.model_validate(CANCEL | {"choice": "resume", "until": until})


def test_a_moment_of_another_zone_is_the_same_moment_in_utc_cut_to_milliseconds() -> None:
    taken = Resolution.model_validate(CANCEL | {"choice": "resume", "until": "2026-11-30T14:00:00.0019+02:00"})
    assert taken.until == datetime(2026, 11, 30, 12, microsecond=1000, tzinfo=UTC)


def test_a_head_says_whether_it_is_final_and_is_a_witness() -> None:
    head = Head.model_validate(HEAD)
    assert (head.final, head.known) == (False, Known(seq=7, hash="a" * 64))
    assert Head.model_validate(HEAD | {"step": "done"}).final
