"""The bars run at tiny sizes and refuse wrong answers; nothing here looks at the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks import data
from benchmarks.bars import (
    answers,
    checkpoint,
    clustering,
    full_scan,
    merged,
    opening,
    peers,
    processes,
    race,
    sizes,
    upsert,
)
from benchmarks.bars.__main__ import BARS, measured
from benchmarks.bars.__main__ import main as run_bars
from benchmarks.bars.merged_table import base, changed
from benchmarks.installed import installations
from benchmarks.measure import Sample, Series, sampled, take_turns
from benchmarks.peers import (
    datafusion_window,
    duckdb_qualify,
    environments,
    part_files,
    streams,
)
from benchmarks.report import print_bars
from benchmarks.result import Bar, Case, WrongAnswer
from benchmarks.suite.runners import InProcess
from tests import profiles
from tests.daily import is_due

pytestmark = pytest.mark.usefixtures("no_old_garbage")


STARTS_SPARK = {"procedure_engines"}


def in_this_process(module: str, arguments: Sequence[str], kind: type) -> Any:
    """What `isolate.in_own_process` does, without a process: one takes a second to import."""
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{module}.write_result", lambda result, path: found.append(result))
        import_module(module).main([*arguments, "--write", "nowhere"])
    assert isinstance(found[0], kind)
    return found[0]


def tiny(name: str, monkeypatch: pytest.MonkeyPatch) -> sizes.Sizes:
    """The sizes of a bar in the tests; the small profile starts few processes and asks less."""
    if profiles.IS_DEEP:
        return sizes.TINY
    monkeypatch.setattr(checkpoint, "in_own_process", in_this_process)
    monkeypatch.setattr(clustering, "BOXES", 5)
    return replace(sizes.TINY, repeats=1) if name == "imports" else sizes.TINY


@pytest.mark.parametrize(
    "name", [name for name in BARS if profiles.IS_DEEP or name not in STARTS_SPARK]
)
def test_a_bar_is_measured(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_due(list(BARS).index(name), 3):
        pytest.skip("has its turn on another day")
    monkeypatch.setattr(race, "START", InProcess)
    monkeypatch.setattr(environments, "CACHE", tmp_path / "none")
    bars = measured(name, tiny(name, monkeypatch), tmp_path)
    assert not list(tmp_path.iterdir())
    for bar in bars:
        assert bar.found
        assert all(series.samples for case in bar.cases for series in case.series)
    again = msgspec.json.decode(msgspec.json.encode(bars), type=list[Bar])
    assert [bar.cases for bar in again] == [bar.cases for bar in bars]
    console = Console(width=160, record=True)
    print_bars(bars, console)
    assert all(bar.name in console.export_text(clear=False) for bar in bars)


def test_a_bar_runs_in_its_own_process_and_is_saved(tmp_path: Path) -> None:
    run_bars(["--only", "answers", "--sizes", "tiny", "--results", str(tmp_path)])
    saved = msgspec.json.decode((tmp_path / "bars.json").read_bytes())
    assert [bar["name"] for bar in saved["found"]] == ["right answers"]
    assert saved["sizes"]["queries"] == sizes.TINY.queries
    assert saved["machine"]["versions"]["pyarrow"] == pa.__version__


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


def test_a_changed_table_leaves_the_one_it_was_made_from(tmp_path: Path) -> None:
    clean = base(tmp_path / "clean", 1_000, 3, wide=True)
    half = changed(clean, tmp_path / "half", 0.5, 4)
    assert (half.input_rows, half.base_rows) == (1_500, 1_000)
    for table in (clean, half):
        assert _streamed(streams.Rowsieve, table.folder) == table.digest
        assert _streamed(duckdb_qualify.Qualify, table.folder) == table.digest
        assert _streamed(datafusion_window.Window, table.folder) == table.digest
        decoded = _streamed(streams.VerifiedDecode, table.folder)
        assert decoded["n"] == table.input_rows
    assert clean.digest != half.digest
    assert np.count_nonzero(clean.quantities != half.quantities) > 300


def _streamed(kind: type, folder: Path) -> dict[str, int]:
    system = kind(folder)
    system.open()
    found: dict[str, int] = system.digest()
    return found


def test_a_stream_that_loses_rows_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "START", InProcess)
    monkeypatch.setattr(duckdb_qualify, "newest_sql", _without_the_newest)
    with pytest.raises(WrongAnswer, match="DuckDB QUALIFY"):
        merged.measure(sizes.TINY, tmp_path)


def _without_the_newest(files: list[tuple[str, int]], columns: list[str], from_file: str) -> str:
    return part_files.newest_sql(files[:-1], columns, from_file)


@pytest.mark.parametrize(
    ("ratios", "met"),
    [
        ({"cold": (0.6, 0.55), "checked": (0.1, None)}, True),
        ({"cold": (0.5, 0.55), "DuckDB": (None, 3.0)}, False),
        ({"cold": (0.6, 0.55), "DuckDB": (None, 3.0)}, None),
    ],
)
def test_a_merged_read_without_its_peer_is_not_measured(
    ratios: dict[str, tuple[float | None, float | None]], met: bool | None
) -> None:
    assert merged._met(ratios) is met


@pytest.mark.parametrize(("written", "behind"), [(50, False), (5_000, True)])
def test_a_compaction_that_writes_nothing_is_not_compared(written: int, behind: bool) -> None:
    one = Series("rowsieve", samples=[Sample(1.0, 1.0, 0, 10_000)])
    two = Series("deltalake", samples=[Sample(0.1, 0.1, 0, written)])
    assert bool(peers._behind(Case("compaction after 50%", [one, two]))) is behind
    assert peers._behind(Case("full scan", [one, two]))


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


def test_the_installed_core_is_smaller_than_any_extra_of_it() -> None:
    core, *extras = installations()
    assert {"pyarrow", "sqlglot"} <= set(core.sizes_bytes)
    assert not {"datafusion", "typer", "rich", "pandas"} & set(core.sizes_bytes)
    assert core.size_bytes > 0
    assert not core.missing
    for extra in extras:
        assert set(core.sizes_bytes) < set(extra.sizes_bytes)
        assert core.size_bytes <= extra.size_bytes
    everything = next(one for one in extras if one.name == "rowsieve[all]")
    assert {"datafusion", "pyspark", "polars", "typer"} <= set(everything.sizes_bytes)
