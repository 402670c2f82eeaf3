import asyncio
from pathlib import Path
from tests.workflows.stage import stage
from tests.workflows.test_cancelling import LONG

async def test_dbg(tmp_path: Path):
    async with stage(tmp_path) as on:
        on.books.lie("create", "hold")
        handle = await on.start(input=LONG)
        await on.held()
        await on.cancel()
        await asyncio.sleep(0)
        on.release()
        try:
            async with asyncio.timeout(40):
                print((await handle.result()).state)
        except TimeoutError:
            print("HANG", await on.story())
            print([ (r.kind, r.at if hasattr(r,'at') else '') for r in on.books.requests()])
            h = await handle.fetch_history()
            for e in h.events[-14:]:
                print(e.event_id, e.event_time.ToDatetime(), e.event_type, str(e)[-700:] if e.event_type in (13,) else "")
            d = await handle.describe()
            print(d.raw_description.pending_activities)
            raise
