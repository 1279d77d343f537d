"""Pruning, audits and reports of reads through Spark."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.config import current
from rowsieve.errors import InvalidInput, UnsoundPruning
from rowsieve.planner.plan import ScanPlan
from rowsieve.providers.spark.reads import audited
from rowsieve.providers.spark.reads.audited import audited_plan, reported_rows, reporter_of
from rowsieve.providers.spark.source import plan_read
from rowsieve.providers.spark.source_options import ReadOptions
from tests.executor.planted import lie
from tests.providers.spark.spark_reporter import FileReporter, RaisingReporter

REPORTER, RAISING = "file", "raising"  # also entry points, in `tests/spark_workers`
REGISTERED = rs.Config(reporters={REPORTER: FileReporter(), RAISING: RaisingReporter()})


pytestmark = pytest.mark.usefixtures("former_config")


def made(path: Path, **properties: str) -> rs.Table:
    rows = [pa.table({"id": [i * 10, i * 10 + 1], "v": [i * 100, i * 100 + 1]}) for i in range(4)]
    table = rs.create_table(str(path / "t"), rows[0], key=["id"], properties=properties)
    for each in rows[1:]:
        table.upsert(each)
    return table


def planned(table: rs.Table, **given: str) -> ScanPlan:
    """The plan of a read with these options, as the process that plans makes it."""
    options = ReadOptions.parse({"path": table.uri, "where": "v >= 200", **given})
    snapshot = table.handle.pinned
    plan = partial(plan_read, options, snapshot, table.uri, 0)
    settings = options.switches.settings(snapshot.table)
    reporter = reporter_of(options.reporter)
    return audited_plan(plan, partial(plan, pruning=False), settings, table.handle.store, reporter)


def rows(table: rs.Table, plan: ScanPlan) -> list[int]:
    batches = reported_rows(plan, table.handle.store, None)
    return sorted(i for batch in batches for i in batch.column("id").to_pylist())


def test_a_spark_plan_is_audited_by_its_options(tmp_path: Path) -> None:
    table = lie(lie(made(tmp_path), "stats.2.upper", 150), "stats.2.lower", 0)
    assert rows(table, planned(table)) == []  # the lie is believed
    assert rows(table, planned(table, pruning="off")) == [20, 21, 30, 31]
    for options in ({"audit": "100"}, {"pruning": "soft"}):
        with pytest.raises(UnsoundPruning):
            planned(table, **options)
        plan = planned(table, **options, on_violation="report")
        assert rows(table, plan) == [20, 21, 30, 31]


def test_the_option_beats_the_property_which_beats_the_config(tmp_path: Path) -> None:
    rs.configure(replace(current(), pruning="off"))
    assert not planned(made(tmp_path / "a")).pruning
    on = made(tmp_path / "b", pruning="on")
    assert planned(on).pruning
    assert not planned(on, pruning="soft").pruning


@pytest.mark.parametrize(
    "options",
    [
        {"pruning": "maybe"},
        {"audit": "all"},
        {"audit": "101"},
        {"audit": "nan"},
        {"on_violation": "ignore"},
    ],
)
def test_a_switch_that_cannot_be_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        ReadOptions.parse({"path": "t", **options})


@pytest.mark.parametrize(
    "name",
    ["", "json", "json:dumps", "tests.providers.spark.spark_reporter:FileReporter", "this:d"],
)
def test_an_option_selects_only_registered_reporters(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option may come from whoever writes a query: it imports and calls nothing."""
    monkeypatch.delitem(sys.modules, "this", raising=False)
    rs.configure(REGISTERED)
    with pytest.raises(InvalidInput, match=r"no reporter is registered as .*: file, raising"):
        reporter_of(name)
    assert "this" not in sys.modules


def test_reporters_that_cannot_report_are_refused() -> None:
    for reporters in ({"a": object()}, [FileReporter()]):
        with pytest.raises(InvalidInput, match="Config: reporters"):
            rs.Config(reporters=reporters)  # type: ignore[arg-type] # so may callers


ENTRY_POINTS = {
    "made": ("tests.providers.spark.spark_reporter:FileReporter", None),
    "missing": ("no.such:thing", "cannot be loaded: ModuleNotFoundError"),
    "wrong": ("json:dumps", "cannot be loaded: TypeError"),
    "module": ("json:JSONDecoder", "has no method report"),
}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_a_package_registers_reporters_by_entry_points(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [EntryPoint(n, value, audited.REPORTERS) for n, (value, _) in ENTRY_POINTS.items()]
    monkeypatch.setattr(audited, "entry_points", lambda group: [p for p in points if group])
    audited._of_entry_point.cache_clear()
    if (message := ENTRY_POINTS[name][1]) is None:
        assert isinstance(reporter_of(name), FileReporter)
        return
    with pytest.raises(InvalidInput, match=f"entry point {name} = .*{message}"):
        reporter_of(name)


@pytest.mark.spark
def test_a_read_through_spark_is_switched_and_reported(spark: Any, tmp_path: Path) -> None:
    table = made(tmp_path)

    def read(**options: str) -> tuple[int, dict[str, Any]]:
        Path(tmp_path / "t.reports").unlink(missing_ok=True)
        reader = spark.read.format("rowsieve").options(**options, reporter=REPORTER)
        count = len(reader.option("where", "v >= 200").load(table.uri).collect())
        lines = [json.loads(line) for line in (tmp_path / "t.reports").read_text().splitlines()]
        names = ("parts_considered", "parts_pruned", "rows_returned", "audited", "bytes_read")
        assert all((line["engine"], line["error"]) == ("spark", None) for line in lines)
        return count, {name: sum(line[name] for line in lines) for name in names}

    count, found = read()
    assert count == 4
    assert (found["parts_considered"], found["parts_pruned"]) == (4, 2)
    assert (found["rows_returned"], found["audited"]) == (4, 0)
    assert found["bytes_read"] > 0
    assert read(audit="100")[1]["audited"] > 0
    assert read(pruning="off")[1]["parts_pruned"] == 0
    raising = spark.read.format("rowsieve").options(reporter=RAISING, audit="100")
    assert len(raising.option("where", "v >= 200").load(table.uri).collect()) == 4


def test_a_reporter_that_raises_changes_no_row_of_a_spark_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rs.configure(REGISTERED)
    table = made(tmp_path)
    plan = planned(table, reporter=RAISING, audit="100")
    batches = reported_rows(plan, table.handle.store, reporter_of(RAISING))
    assert sum(batch.num_rows for batch in batches) == 4
    told = [record.message.split()[0] for record in caplog.records]
    assert told == ["RaisingReporter", "RaisingReporter"]


def test_an_audit_that_fails_a_spark_read_is_reported(tmp_path: Path) -> None:
    table = lie(lie(made(tmp_path), "stats.2.upper", 150), "stats.2.lower", 0)
    rs.configure(REGISTERED)
    with pytest.raises(UnsoundPruning):
        planned(table, reporter=REPORTER, audit="100")
    lines = [json.loads(line) for line in (tmp_path / "t.reports").read_text().splitlines()]
    assert [line["error"] for line in lines] == ["UnsoundPruning"]
    assert 0 < lines[0]["elapsed_s"] < 60


@pytest.mark.spark
def test_to_spark_passes_on_the_settings_of_this_process(spark: Any, tmp_path: Path) -> None:
    rs.configure(replace(current(), pruning="off"))
    made(tmp_path / "a")
    table = rs.open_table(str(tmp_path / "a" / "t"))
    assert table.to_spark(spark, where="v >= 200").count() == 4
