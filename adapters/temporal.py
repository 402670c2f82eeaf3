"""Temporal: how it is reached, what its payloads and failures look like, and how workflow code is loaded.

* Where Temporal is, the environment says (`TEMPORAL_ADDRESS`, profiles, API key, TLS: temporalio.envconfig). If it says nothing,
  it is the embedded one, and `.sakshi/stack.json` says where.
* A benign failure is an expected "not yet": its one line is shown for days in the Temporal UI, and carries no stack trace.
* Workflow code is loaded once in production, outside the SDK's sandbox, which would load it anew for every operation and enter it for
  every payload: a quarter of a worker's time. What the sandbox would find is found before: every story is told in it, and the
  histories are replayed with `domain` and `activities` policed too (docs/decisions/0006).
* The list of modules that pass through the sandbox stands here and nowhere else. `domain` and `activities` pass together or not at
  all: half of it would make two copies of each class.
"""

from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.failure.v1 import Failure
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.envconfig import ClientConfigProfile
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from adapters.settings import Settings
from adapters.stack_file import running_stack
from domain.errors import Unreachable
from domain.messages import WakeHint

NAMESPACE = "default"
RPC_TIMEOUT = timedelta(seconds=10)
POLLED_WITHIN = timedelta(seconds=75)
"""A worker asks for work at least once a minute."""

SEARCH_ATTRIBUTES: dict[str, str] = {
    "SakshiState": "Keyword",
    "SakshiContract": "Keyword",
    "SakshiTenant": "Keyword",
    "SakshiJob": "Keyword",
    "SakshiAttention": "Bool",
}

_NOT_POLICED = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")
_EXTENSIONS = ("rfc8785", "jmespath", "re2", "_re2", "jsonschema_rs", "google")
PASSED_THROUGH = ("domain", "activities", *_NOT_POLICED, *_EXTENSIONS)
"""What the stories load once for all workflows. Libraries that `domain` uses keep no state between calls."""


def production_runner() -> WorkflowRunner:
    """Workflow code as it is imported."""
    return UnsandboxedWorkflowRunner()


def sandboxed_runner() -> SandboxedWorkflowRunner:
    """Workflow files are policed; `domain` and `activities` are loaded once."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


def policed_runner() -> SandboxedWorkflowRunner:
    """`domain` and `activities` are loaded into the sandbox too, and policed: a clock or a random number there is an error."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*_NOT_POLICED, *_EXTENSIONS))


class QuietFailures(DefaultFailureConverter):
    """The SDK's converter, without the stack trace of what is expected."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        if isinstance(exception, ApplicationError) and exception.category is ApplicationErrorCategory.BENIGN:
            failure.stack_trace = ""
            failure.ClearField("cause")


DATA_CONVERTER = DataConverter(payload_converter_class=PydanticPayloadConverter, failure_converter_class=QuietFailures)


async def connect(settings: Settings, *, identity: str | None = None) -> Client:
    """A client. Raises Unreachable, with what to do about it."""
    if settings.temporal_address is None:
        stack = running_stack(settings.home)
        if stack is None:
            raise Unreachable(f"no embedded stack is running under {settings.home}", hint="start it: python starter.py dev")
        return await connect_to(stack.temporal, identity=identity)
    config = ClientConfigProfile.load().to_client_connect_config()
    config.setdefault("namespace", NAMESPACE)
    try:
        return await Client.connect(**config, data_converter=DATA_CONVERTER, identity=identity)
    except (RuntimeError, ValueError, RPCError):
        raise Unreachable(
            f"Temporal at {settings.temporal_address} does not answer", hint="see TEMPORAL_ADDRESS, and whether it runs"
        ) from None


async def connect_to(address: str, *, identity: str | None = None) -> Client:
    """A client of the embedded server at `address`."""
    try:
        return await Client.connect(address, namespace=NAMESPACE, data_converter=DATA_CONVERTER, identity=identity)
    except (RuntimeError, ValueError, RPCError):
        raise Unreachable(f"Temporal at {address} does not answer", hint="start the embedded stack: python starter.py dev") from None


async def missing_search_attributes(client: Client) -> dict[str, str]:
    """Those of ours that the namespace lacks, with their kinds. Raises Unreachable."""
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
        )
    except RPCError as error:
        raise Unreachable(f"Temporal does not list its search attributes ({error.status.name.lower()})") from None
    return {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in listed.custom_attributes}


async def register_search_attributes(client: Client) -> tuple[str, ...]:
    """Make those of ours that the namespace lacks; which ones it lacked. Raises Unreachable."""
    missing = await missing_search_attributes(client)
    kinds = {name: IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}") for name, kind in missing.items()}
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=kinds)
    try:
        if missing:
            await client.operator_service.add_search_attributes(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        raise Unreachable(
            f"Temporal does not let search attributes be registered ({error.status.name.lower()})",
            hint="have an operator make " + ", ".join(f"{name} ({kind})" for name, kind in missing.items()),
        ) from None
    return tuple(missing)


def search_attribute_keys() -> list[SearchAttributeKey[str] | SearchAttributeKey[bool]]:
    """Our search attributes as test servers take them."""
    keys = {"Bool": SearchAttributeKey.for_bool, "Keyword": SearchAttributeKey.for_keyword}
    return [keys[kind](name) for name, kind in SEARCH_ATTRIBUTES.items()]


async def live_workers(client: Client, queue: str) -> int:
    """How many workers have asked for work of a queue within the last minute or so. Raises Unreachable."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    )
    try:
        described = await client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        raise Unreachable(f"Temporal can't describe its queues ({error.status.name.lower()})") from None
    since = datetime.now(UTC) - POLLED_WITHIN
    return len({poller.identity for poller in described.pollers if poller.last_access_time.ToDatetime(tzinfo=UTC) >= since})


async def described(client: Client, stream: str) -> WorkflowExecutionDescription | None:
    """The newest workflow of a stream, running or closed; None if Temporal knows none. Raises Unreachable."""
    try:
        return await client.get_workflow_handle(stream).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise Unreachable(f"Temporal can't tell whether {stream} runs ({error.status.name.lower()})") from None


async def run_of(client: Client, stream: str) -> str | None:
    """Run id of the workflow of a stream that runs; None if none does. Raises Unreachable."""
    found = await described(client, stream)
    return None if found is None or found.status is not WorkflowExecutionStatus.RUNNING else found.run_id


class TemporalRuns:
    """The port `Runs`: which run of an operation is the current one, and waking it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def current_run(self, stream: str) -> str | None:
        return await run_of(self._client, stream)

    async def wake(self, stream: str, source: str) -> None:
        try:
            await self._client.get_workflow_handle(stream).signal("wake", WakeHint(source=source[:128]), rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise Unreachable(f"Temporal does not take a wake ({error.status.name.lower()})") from None
