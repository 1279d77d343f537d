"""The benchmarks run at tiny sizes and refuse wrong answers; nothing here looks at the clock."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks import data
from benchmarks.bars import answers, full_scan, opening, processes, sizes, upsert
from benchmarks.bars.__main__ import BARS
from benchmarks.bars.__main__ import main as run_bars
from benchmarks.measure import Series, sampled, take_turns
from benchmarks.report import print_bars, print_cases
from benchmarks.result import Bar, Case, WrongAnswer
from benchmarks.suite.cases import CASES, TINY
from benchmarks.suite.systems import Rowsieve


@pytest.mark.parametrize("name", list(BARS))
def test_a_bar_is_measured(name: str, tmp_path: Path) -> None:
    bar = BARS[name](sizes.TINY, tmp_path)
    assert bar.found
    assert all(series.samples for case in bar.cases for series in case.series)
    again = msgspec.json.decode(msgspec.json.encode(bar), type=Bar)
    assert again.cases == bar.cases
    console = Console(width=140, record=True)
    print_bars([bar], console)
    assert bar.name in console.export_text()


@pytest.mark.parametrize("name", list(CASES))
def test_a_group_of_the_suite_is_measured(name: str, tmp_path: Path) -> None:
    cases = CASES[name](TINY, tmp_path)
    assert cases
    assert {case.series[0].system for case in cases} == {"rowsieve"}
    print_cases(cases, Console(width=140, record=True))


def test_a_bar_runs_in_its_own_process_and_is_saved(tmp_path: Path) -> None:
    run_bars(["--only", "answers", "--sizes", "tiny", "--results", str(tmp_path)])
    saved = msgspec.json.decode((tmp_path / "bars.json").read_bytes())
    assert [bar["name"] for bar in saved["found"]] == ["right answers"]
    assert saved["sizes"]["queries"] == sizes.TINY.queries
    assert saved["machine"]["versions"]["pyarrow"] == pa.__version__


def test_a_wrong_answer_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Rowsieve.select
    monkeypatch.setattr(Rowsieve, "select", lambda self, where: honest(self, where).slice(1))
    with pytest.raises(WrongAnswer, match="rowsieve"):
        CASES["clean"](TINY, tmp_path)


def test_an_upsert_that_changes_nothing_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = upsert._rowsieve

    def lazy(folder: Path, base: pa.Table) -> tuple[upsert.Upsert, upsert.Read]:
        _, read = keeper(folder, base)
        return lambda rows: None, read

    monkeypatch.setattr(upsert, "_rowsieve", lazy)
    with pytest.raises(WrongAnswer, match="rowsieve does not hold"):
        upsert.measure(sizes.TINY, tmp_path)


def test_a_predicate_that_selects_other_rows_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "to_sql", lambda predicate, dialect: "id = 2")
    with pytest.raises(WrongAnswer, match="id = 2"):
        answers.measure(sizes.TINY, tmp_path)


@pytest.mark.parametrize(
    ("cpu_s", "peer_s", "met"), [(0.2, 2.1, True), (0.2, 1.9, False), (0.4, 9, False)]
)
def test_the_upsert_bar_has_two_conditions(cpu_s: float, peer_s: float, met: bool) -> None:
    series = [Series("rowsieve"), Series("deltalake merge")]
    for one, seconds in zip(series, (cpu_s, peer_s), strict=True):
        with sampled() as sample:
            pass
        sample.cpu_s = seconds
        one.samples.append(sample)
    assert upsert._bar(sizes.PROMISED, Case("upsert", series)).met is met
    assert upsert._bar(sizes.PROMISED, Case("upsert", series[:1])).met in (None, False)


def test_systems_take_turns() -> None:
    order: list[str] = []
    works = {name: partial(order.append, name) for name in "ab"}
    series = take_turns(works, 2, warm_up=False)
    assert order == ["a", "b", "b", "a"]
    assert [len(one.samples) for one in series] == [2, 2]


def test_replaced_rows_win_by_key() -> None:
    base, changed = data.rows(10), data.changes(10, 4, seed=3)
    found = data.replaced(base, changed)
    assert found.num_rows == 10
    assert not data.same_rows(base, found)
    wanted = {row["id"]: row for row in base.to_pylist()} | {
        r["id"]: r for r in changed.to_pylist()
    }
    assert {row["id"]: row for row in found.to_pylist()} == wanted


def test_the_modules_of_the_bars_promise_what_they_measure() -> None:
    assert (upsert.MOST_CPU_S, upsert.LEAST_RATIO) == (0.3, 10)
    assert (opening.MOST_WALL_S, full_scan.MOST_RATIO) == (0.050, 1.5)
    assert (sizes.PROMISED.processes, sizes.PROMISED.commits_each) == (8, 200)
    assert processes.ROWS_PER_COMMIT > 0
