"""A load by Spark plans once, where its partitions are made; what is wrong is refused before.

The driver resolves the plan, and tasks only read.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, UnknownColumn
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from tests.planner.test_one_form import calls_of
from tests.small_tables import kv

source = pytest.importorskip("rowsieve.providers.spark.source", reason="needs pyspark")


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), kv((1, 10), (2, 20)), key=["k"])


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        found.append(options["predicate"])
        return plan_scan(*arguments, **options)

    monkeypatch.setattr(source, "plan_scan", counted)
    return found


@pytest.mark.parametrize("options", [{}, {"where": "v > 10"}, {"columns": "v"}])
def test_a_load_plans_once(table: rs.Table, planned: list[Any], options: dict[str, str]) -> None:
    loaded = source.RowsieveSource({"path": table.uri, **options})
    reader = loaded.reader(loaded.schema())
    assert len(planned) == 0
    assert len(reader.partitions()) == 1
    assert len(planned) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param({"where": "w > 10"}, UnknownColumn, id="condition"),
        pytest.param({"where": "v >"}, InvalidPredicate, id="text"),
        pytest.param({"columns": "w"}, UnknownColumn, id="columns"),
    ],
)
def test_a_load_refuses_before_it_plans(
    table: rs.Table, planned: list[Any], options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        source.RowsieveSource({"path": table.uri, **options}).schema()
    assert not planned


LOOK_UPS = ("find_candidates", "visible_rows", "read_deletion_vector", "PartSource.tombstones")
SESSION = {"spark.sql.execution.id": "1", "spark.sql.session.timeZone": "UTC"}


@pytest.fixture
def changed(tmp_path: Path) -> rs.Table:
    """Two parts with overlapping keys, and tombstones."""
    table = rs.create_table(str(tmp_path / "t"), kv(*((i, i % 7) for i in range(200))), key=["k"])
    table.upsert(kv(*((i, 1) for i in range(0, 200, 9))))
    table.delete("k BETWEEN 20 AND 29")
    return table


def loaded(table: rs.Table, **options: str) -> tuple[Any, list[Any]]:
    """A reader of the table and its partitions."""
    opened = source.RowsieveSource({"path": table.uri, **options})
    reader = opened.reader(opened.schema())
    return reader, reader.partitions()


@pytest.mark.parametrize("where", [None, "v = 3", "k < 90 AND v > 2", "k = 18"])
def test_the_driver_finds_the_rows_and_tasks_only_read(
    changed: rs.Table, where: str | None
) -> None:
    reader, partitions = loaded(
        changed, split_bytes="1", **({} if where is None else {"where": where})
    )
    found: list[pa.RecordBatch] = []
    calls = calls_of(lambda: found.extend(b for each in partitions for b in reader.read(each)))
    assert calls["read_rows"]
    assert not any(calls[name] for name in LOOK_UPS)
    expected = changed.scan(where).to_arrow()
    assert (
        pa.Table.from_batches(found).sort_by("k").to_pydict() == expected.sort_by("k").to_pydict()
    )


def test_a_split_without_rows_is_no_partition(table: rs.Table) -> None:
    table.upsert(kv((1, 30), (2, 40)))  # hides every row of the first part
    _, (partition,) = loaded(table, split_bytes="1", where="v > 0")
    (part,) = ScanPlan.from_bytes(partition.value).resolved or ()
    assert len(part.rows) == 2


def test_conditions_that_need_a_session_prune_in_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = {"k": [*range(64)], "t": [start + timedelta(hours=i) for i in range(64)]}
    data = pa.table(rows, pa.schema([("k", pa.int64()), ("t", pa.timestamp("us", "UTC"))]))
    table = rs.create_table(str(tmp_path / "t"), data, key=["k"])
    table.delete("k < 8")
    where = "t < timestamp'2024-01-01 10:00:00'"
    reader, (partition,) = loaded(table, where=where)
    monkeypatch.setattr("rowsieve.providers.spark.task_properties.TaskContext", _Task)
    found: list[pa.RecordBatch] = []
    calls = calls_of(lambda: found.extend(reader.read(partition)))
    assert (calls["find_candidates"], calls["visible_rows"]) == (1, 0)
    assert sorted(pa.Table.from_batches(found).column("k").to_pylist()) == [8, 9]


class _Task:
    """A Spark task with a session whose time zone is UTC."""

    @classmethod
    def get(cls) -> _Task:
        return cls()

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
        return SESSION.get(name)


@pytest.mark.parametrize(
    ("options", "is_warned"),
    [({}, True), ({"columns": "v"}, True), ({"where": "v > 10"}, False), ({"parts": "a"}, False)],
)
def test_a_large_read_without_a_condition_is_warned_of(
    table: rs.Table,
    options: dict[str, str],
    is_warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(source, "LARGE_BYTES", 10)
    loaded = source.RowsieveSource({"path": table.uri, **options})
    reader = loaded.reader(loaded.schema())
    assert not caplog.messages
    reader.partitions()
    assert len(caplog.messages) == is_warned
    assert all("read with Table.to_spark" in each for each in caplog.messages)
