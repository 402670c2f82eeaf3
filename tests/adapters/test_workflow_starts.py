"""What Temporal is told of an operation when its workflow starts."""

from pathlib import Path

from adapters.workflow_starts import start
from tests.workflows.stage import REPORT, stage


async def test_a_summary_is_text_and_what_a_caller_wrote_in_it_no_markdown(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await start(on.client, on.ledger, await on.open(input={**REPORT, "account": "`[x](https://elsewhere.example)"}))
        handle = on.client.get_workflow_handle("op-1")
        await handle.result()
        summary = await (await handle.describe()).static_summary()
        assert summary == "`Render a csv report of '[x](https://elsewhere.example), 2026-01-01 to 2026-01-31`"
