"""No hostile answer makes a worker's memory grow past its contract's limits, ends it, or sends its credential to a stranger."""

from pathlib import Path

from benchmarks.hostile_memory import AWAY, HEAVY, measure, table

MOST_ABOVE_IDLE_MIB = 100.0


async def test_a_worker_process_outlives_every_heavy_answer_within_bounds_and_tells_strangers_nothing(tmp_path: Path) -> None:
    found = await measure(tmp_path, each=2)
    print(table(found).markdown())
    assert {row.lie for row in found.rows} == {*HEAVY, *AWAY}
    assert [row for row in found.rows if row.above_idle > MOST_ABOVE_IDLE_MIB] == []
    assert {state for row in found.rows for state in row.states} == {"succeeded"}
    assert found.survived
    assert found.heard == []
