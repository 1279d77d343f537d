"""Ranges of keys between sampled bounds, for frames that select from files."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sql

import rowsieve as rs
from rowsieve.providers.spark import key_ranges
from rowsieve.providers.spark.key_ranges import in_key_ranges

pytestmark = pytest.mark.spark
COUNT = 300
DAY = datetime.date(1999, 12, 31)
NOON = datetime.datetime(2024, 3, 31, tzinfo=datetime.UTC)
COLUMNS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "n": (pa.int64(), lambda i: i - 100),
    "Odd `t.x`": (pa.string(), lambda i: f"${{user.name}} \U0001f600 {i:04}"),
    "b": (pa.binary(), lambda i: bytes([255, i % 256, i // 256])),
    "d": (pa.date32(), lambda i: DAY + datetime.timedelta(days=i)),
    "m": (pa.decimal128(38, 3), lambda i: Decimal(i - 100).scaleb(-3)),
    "at": (pa.timestamp("us", "UTC"), lambda i: NOON + datetime.timedelta(minutes=i)),
    "few": (pa.int32(), lambda i: i // 150),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of rows in random order."""
    found = tmp_path_factory.mktemp("rows")
    places = random.Random(5).sample(range(COUNT), COUNT)
    for number in range(2):
        cells = {
            name: pa.array([make(i) for i in places[number::2]], type_)
            for name, (type_, make) in COLUMNS.items()
        }
        pq.write_table(pa.table(cells), found / f"{number}.parquet")
    return found


@pytest.fixture
def frame(spark: Any, folder: Path) -> Any:
    return spark.read.parquet(str(folder))


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the samples that were taken, each of all rows."""
    sizes: list[int] = []
    monkeypatch.setattr(key_ranges, "_ROW_BYTES", 1_000_000)
    take = key_ranges._sample

    def counted(*arguments: Any) -> Any:
        found = take(*arguments)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(key_ranges, "_sample", counted)
    return sizes


def tasks_of(frame: Any) -> list[list[tuple[Any, ...]]]:
    """The rows of each task that has some, in its order."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in frame.withColumn("task", sql.spark_partition_id()).collect():
        found.setdefault(row.task, []).append(tuple(row)[:-1])
    return list(found.values())


@pytest.mark.parametrize(
    "key", [["n"], ["few", "odd `T.x`"], ["b"], ["d", "few"], ["m"], ["at"]], ids=str
)
def test_tasks_hold_disjoint_sorted_ranges(
    spark: Any, frame: Any, sampled: list[int], key: list[str]
) -> None:
    names = [name for each in key for name in COLUMNS if name.lower() == each.lower()]
    spark.conf.set(key_ranges._JOINS_SMALL[1], "false")
    try:
        tasks = tasks_of(in_key_ranges(frame, key).select(*map(key_ranges._quoted, names)))
    finally:
        spark.conf.unset(key_ranges._JOINS_SMALL[1])
    assert sampled == [COUNT]
    assert [len(task) for task in sorted(tasks)] == [100, 100, 100]
    assert all(task == sorted(task) for task in tasks)
    assert all(one[-1] < other[0] for one, other in pairwise(sorted(tasks)))


def test_small_neighbours_are_joined(frame: Any, sampled: list[int]) -> None:
    assert [len(task) for task in tasks_of(in_key_ranges(frame, ["n"]))] == [COUNT]
    assert sampled == [COUNT]


def test_a_sample_that_is_too_small_is_taken_again(
    frame: Any, folder: Path, sampled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = sum(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setattr(key_ranges, "_ROW_BYTES", 0.05 * size_bytes / COUNT)
    assert in_key_ranges(frame, ["n"]).count() == COUNT
    first, second = sampled
    assert first < 75 <= second


def test_the_rows_are_those_of_a_shuffle_by_spark(
    frame: Any, sampled: list[int], tmp_path: Path
) -> None:
    table = rs.create_table(str(tmp_path / "t"), frame.schema, key=["n"])
    commit = table.write_spark(frame, "upsert")
    assert (commit.parts_added, commit.rows_written, sampled) == (1, COUNT, [COUNT])
    read = table.scan(order_by_key=True).to_arrow()
    for name, (_, make) in COLUMNS.items():
        assert read.column(name).to_pylist() == [make(i) for i in range(COUNT)]


def test_spark_samples_where_it_has_the_keys_already(
    spark: Any, frame: Any, sampled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in (
        frame.join(frame.select("n"), "n"),
        frame.groupBy("n").count(),
        spark.range(9).toDF("n"),
        frame.selectExpr("double(n) AS n"),
    ):
        assert len(in_key_ranges(other, ["n"]).schema) > 0
    monkeypatch.setattr(key_ranges, "MOST_BYTES", 10)
    in_key_ranges(frame, ["n"])
    assert sampled == []


def test_keys_that_python_cannot_hold_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "far")
    spark.range(20).selectExpr("date_add(DATE '9999-12-25', int(id)) AS d").write.parquet(path)
    found = in_key_ranges(spark.read.parquet(path), ["d"])
    assert found.count() == 20


def test_keys_without_a_value_are_in_some_range(
    spark: Any, sampled: list[int], tmp_path: Path
) -> None:
    path = str(tmp_path / "null")
    spark.range(30).selectExpr("if(id % 3 = 0, NULL, id) AS n").write.parquet(path)
    tasks = tasks_of(in_key_ranges(spark.read.parquet(path), ["n"]))
    assert sorted(n for task in tasks for (n,) in task if n is not None) == [
        n for n in range(30) if n % 3
    ]
    assert sampled == [20]
