"""The benchmarks' arithmetic: ratios, verdicts, medians, clocks and the page that they are written into. They measure in `make bench`."""

import os
import re
import time
from pathlib import Path

import pytest

from benchmarks import processes, report
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.rounds import Score, Turn, scores
from benchmarks.contest.scoring import PROMISES, events_hold, holds, score_tables
from benchmarks.contest.work import report as asked
from benchmarks.latency import quantile
from benchmarks.table import Table
from simulator.serve import running

PAGE = f"# Title\n\nProse.\n\n{report.BEGIN}\n\n## Latency\n\nold\n\n{report.END}\n\nMore prose.\n"


def score(name: str, polls: int, per_second: float, cpu: float, events: float | None = None) -> Score:
    return Score(name, polls, per_second, {"worker": cpu}, events, None)


def everyone(*, ours: float) -> dict[tuple[str, int], Score]:
    """All that is promised about, each peer at 10/s for 100 ms, and ours `ours` times as good."""
    found = {(one.peer, one.polls): score(one.peer, one.polls, 10.0, 100.0) for one in PROMISES}
    return found | {(one.ours, one.polls): score(one.ours, one.polls, 10.0 * ours, 100.0 / ours, 30) for one in PROMISES}


def turn(per_second: float, cpu: float) -> Turn:
    return Turn("b", 3, 100, 100 / per_second, {"worker": cpu}, 23, 3500)


def test_a_score_is_the_median_of_the_turns():
    (found,) = scores([turn(10, 1.0), turn(50, 9.0), turn(20, 2.0)]).values()
    assert round(found.per_second) == 20
    assert found.cpu["worker"] == 20.0
    assert found.total == 20.0


@pytest.mark.parametrize(
    ("speed", "cpu", "verdict"),
    [(0.9, 0.9, "yes"), (0.89, 0.9, "throughput NO, CPU yes"), (0.9, 0.89, "throughput yes, CPU NO"), (0.1, 0.1, "NO")],
)
def test_a_promise_holds_only_if_throughput_and_cpu_both_do(speed: float, cpu: float, verdict: str):
    assert holds(speed, cpu, 0.9) == verdict


def test_every_promise_is_judged_in_the_table_of_ratios():
    *_, good = score_tables(everyone(ours=2.6))
    *_, bad = score_tables(everyone(ours=0.1))
    assert len(good.rows) == len(PROMISES)
    assert {row[-1] for row in good.rows} == {"yes"}
    assert {row[-1] for row in bad.rows} == {"NO"}


def test_a_contestant_that_did_not_compete_is_judged_nowhere():
    assert [table.title for table in score_tables({("b", 3): score("b", 3, 10, 100)})] == ["3 polls"]


def test_histories_over_the_bound_are_noticed():
    assert events_hold({("sakshi-sqlite", 3): score("sakshi-sqlite", 3, 1, 1, 32), ("a", 3): score("a", 3, 1, 1, 208)})
    assert not events_hold({("sakshi-sqlite", 3): score("sakshi-sqlite", 3, 1, 1, 33)})


def test_promises_are_about_contestants_on_the_same_database():
    for one in PROMISES:
        peer = CONTESTANTS[one.peer].database
        assert peer in (None, CONTESTANTS[one.ours].database)


def test_a_quantile_is_a_value_that_was_measured():
    values = [float(one) for one in range(1, 101)]
    assert (quantile(values, 0.5), quantile(values, 0.99), quantile(values, 1.0)) == (50.0, 99.0, 100.0)
    assert quantile([7.0], 0.5) == 7.0


def test_the_processor_time_of_a_process_includes_its_work():
    before = processes.cpu_seconds([os.getpid()])
    last = time.process_time() + 0.1
    while time.process_time() < last:
        pass
    assert 0.05 < processes.cpu_seconds([os.getpid()]) - before < 5


def test_a_table_is_markdown_and_goes_through_json_unchanged():
    table = Table("Title", ("a", "b"), (("1", "x|y"),), notes=("why",))
    assert table.markdown() == "### Title\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |\n\n- why\n"
    assert report.table_of({"title": "Title", "head": ["a", "b"], "rows": [["1", "x|y"]], "notes": ["why"]}) == table


def test_a_section_is_written_between_the_marks_and_the_rest_of_the_page_stays():
    once = report.merged(PAGE, {"contest": report.section("contest", [Table("T", ("a",), (("1",),))], facts="Today.")})
    assert once.startswith("# Title\n\nProse.\n\n")
    assert once.endswith(f"{report.END}\n\nMore prose.\n")
    assert re.findall("^## (.*)", once, re.MULTILINE) == ["The contest", "Latency"]
    assert "old" in once
    again = report.merged(once, {"latency": "## Latency\n\nnew"})
    assert "old" not in again
    assert report.merged(again, {}) == again


def test_a_page_without_marks_is_left_alone():
    with pytest.raises(ValueError, match="marks"):
        report.merged("# Title\n", {})


def test_the_page_of_this_house_has_its_marks():
    assert report.merged(report.PAGE.read_text("utf-8"), {})


def test_every_measurement_is_in_the_report_and_in_the_readme():
    folder = Path(report.__file__).parent
    measuring = {path.stem for path in folder.glob("*.py") if "\ndef tables(" in path.read_text("utf-8")} | {"contest"}
    assert measuring <= set(report.MODULES) == set(report.TITLES)
    described = set(re.findall(r"^\| `(\w+)` \|", (folder / "README.md").read_text("utf-8"), re.MULTILINE))
    assert measuring <= described


async def test_the_provider_by_hand_creates_once_reads_and_fetches_the_whole_result():
    from benchmarks.contest.provider import Reports

    async with running() as sim:
        reports = Reports(sim.url)
        job = await reports.create("token", asked(polls=1))
        assert await reports.create("token", asked(polls=1)) == job
        assert await reports.result_url(job) is None
        url = await reports.result_url(job)
        assert url is not None
        assert await reports.fetch(url) > 0
        await reports.aclose()
        assert len(sim.books.jobs()) == 1
        assert sim.books.downloads(job) == 1
