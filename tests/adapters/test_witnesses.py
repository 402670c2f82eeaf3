import json

import pytest
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo

from adapters.witnesses import Witness, escaped, remembered

HASH = "ab" * 32


def payload(value: object) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())


def test_a_head_is_found_in_the_input_of_a_workflow():
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)
    event.workflow_execution_started_event_attributes.input.payloads.append(payload({"id": "x", "known": {"seq": 0, "hash": HASH}}))
    assert set(remembered(event)) == {Witness(0, HASH)}


def test_a_head_is_found_in_the_marker_of_a_local_activity():
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_MARKER_RECORDED)
    event.marker_recorded_event_attributes.details["result"].CopyFrom(
        Payloads(payloads=[payload({"state": "approved", "seq": 2, "hash": HASH})])
    )
    assert set(remembered(event)) == {Witness(2, HASH)}


def test_heads_are_found_in_heartbeats_and_in_the_last_failure_of_a_pending_activity():
    pending = PendingActivityInfo()
    pending.heartbeat_details.payloads.append(payload({"seq": 5, "hash": HASH}))
    pending.last_failure.application_failure_info.details.payloads.append(payload([{"seq": 6, "hash": HASH}]))
    assert set(remembered(pending)) == {Witness(5, HASH), Witness(6, HASH)}


@pytest.mark.parametrize("data", [b"", b"not json", b"[" * 5000, b'{"seq": "1", "hash": "x"}', b'{"seq": 1, "hash": "short"}', b"\xff"])
def test_what_holds_no_head_is_passed_over(data: bytes):
    assert list(remembered(Payload(data=data))) == []


def test_an_id_cannot_end_the_quotes_of_a_query():
    assert escaped("a' OR 'x'='x\\") == "a\\' OR \\'x\\'=\\'x\\\\"


def test_a_signal_that_anyone_may_send_is_no_witness():
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
    event.workflow_execution_signaled_event_attributes.input.payloads.append(payload({"seq": 9, "hash": HASH}))
    assert list(remembered(event)) == []


def test_what_a_provider_answered_is_no_witness():
    answer = {"job": {"seq": 9, "hash": HASH}}
    assert set(remembered(payload({"seq": 5, "hash": HASH, "answer": answer}))) == {Witness(5, HASH)}
