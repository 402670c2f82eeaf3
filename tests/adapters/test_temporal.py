import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import WorkflowRunner
from temporalio.workflow import _Definition  # the runner prepares definitions, as Worker() does

from adapters.settings import load_settings
from adapters.temporal import (
    DATA_CONVERTER,
    SEARCH_ATTRIBUTES,
    connect,
    connect_to,
    policed_runner,
    production_runner,
    sandboxed_runner,
    search_attribute_keys,
)
from domain.errors import Unreachable
from workflows.operation import OperationWorkflow


def failure_of(error: ApplicationError) -> Failure:
    try:
        raise error from ValueError("the cause")
    except ApplicationError as raised:
        failure = Failure()
        DATA_CONVERTER.failure_converter.to_failure(raised, DATA_CONVERTER.payload_converter, failure)
        return failure


def test_a_benign_failure_is_one_line_without_stack_trace_and_keeps_its_details():
    failure = failure_of(ApplicationError("running 3/9", {"seq": 4}, type="NotYet", category=ApplicationErrorCategory.BENIGN))
    assert failure.message == "running 3/9"
    assert failure.stack_trace == ""
    assert not failure.HasField("cause")
    assert failure.application_failure_info.details.payloads[0].data == b'{"seq":4}'


def test_any_other_failure_keeps_its_stack_trace():
    failure = failure_of(ApplicationError("a bug", type="Bug"))
    assert "failure_of" in failure.stack_trace
    assert failure.cause.message == "the cause"


@pytest.mark.parametrize("runner", [production_runner(), sandboxed_runner(), policed_runner()], ids=["production", "sandboxed", "policed"])
async def test_the_workflow_loads_under_all_runners(runner: WorkflowRunner):
    runner.prepare_workflow(_Definition.must_from_class(OperationWorkflow))


def test_our_search_attributes_are_the_five_that_the_ui_shows():
    assert {key.name for key in search_attribute_keys()} == set(SEARCH_ATTRIBUTES)
    assert SEARCH_ATTRIBUTES["SakshiAttention"] == "Bool"


async def test_a_temporal_that_does_not_answer_is_said_with_what_to_do():
    with pytest.raises(Unreachable, match="does not answer") as refused:
        await connect_to("127.0.0.1:1")
    assert refused.value.exit_code == 4
    assert "starter.py dev" in refused.value.hint


async def test_an_embedded_stack_that_does_not_run_is_said_with_what_to_do(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TEMPORAL_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(Unreachable, match="no embedded stack is running"):
        await connect(load_settings(home=tmp_path / "home"))


async def test_an_external_temporal_that_does_not_answer_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 does not answer"):
        await connect(load_settings(home=tmp_path / "home"))
