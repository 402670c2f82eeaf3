"""The workflow of an operation as someone changed it who forgot that yesterday's runs are still alive."""

from temporalio import workflow

from domain.messages import OPERATION_WORKFLOW, Head, OperationInput
from workflows.operation import OperationWorkflow


@workflow.defn(name=OPERATION_WORKFLOW)
class ChangedOperationWorkflow(OperationWorkflow):
    """One more sleep."""

    @workflow.init
    def __init__(self, start: OperationInput) -> None:
        super().__init__(start)

    @workflow.run
    async def run(self, start: OperationInput) -> Head:
        await workflow.sleep(1)
        return await super().run(start)
