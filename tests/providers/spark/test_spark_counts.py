"""Frames of whole versions are counted without a job of Spark's; all others by Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.providers.spark import read
from rowsieve.providers.spark.reads.routes import ALL_ROUTES

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """109 rows: one is deleted, and one of 11 others replaces a row."""
    rows = pa.table({"id": range(100), "s": [f"text {i}" for i in range(100)]})
    made = rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    made.delete(keys=pa.table({"id": [50]}))
    made.upsert(pa.table({"id": range(99, 110), "s": ["new"] * 11}))
    return made


def jobs_of(spark: Any, work: Callable[[], object]) -> tuple[object, int]:
    """The result, and the number of jobs that Spark ran for it."""
    group, context = uuid.uuid4().hex, spark.sparkContext
    context.setJobGroup(group, "")
    try:
        return work(), len(context.statusTracker().getJobIdsForGroup(group))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("allowed", [ALL_ROUTES, ("bitmap",), ("native",)])
def test_a_whole_version_is_counted_without_a_job(
    spark: Any, table: rs.Table, allowed: tuple[str, ...]
) -> None:  # invariant 26
    frame = read(spark, table.uri, routes=allowed)
    assert jobs_of(spark, frame.count) == (109, 0)
    table.delete(keys=pa.table({"id": [1, 2]}))
    assert jobs_of(spark, frame.count) == (109, 0)
    assert jobs_of(spark, table.to_spark(spark, columns=["s"]).count) == (107, 0)
    assert read(spark, table.uri, version=0).count() == 100


def test_hidden_parts_count_nothing(spark: Any, table: rs.Table) -> None:
    table.upsert(pa.table({"id": range(110), "s": ["newer"] * 110}))
    assert jobs_of(spark, table.to_spark(spark).count) == (110, 0)
    table.delete(keys=pa.table({"id": range(4, 110)}))  # most rows of each part are hidden
    frame = table.to_spark(spark)
    assert frame.count() == len(frame.collect()) == 4


def test_other_frames_are_counted_by_spark(spark: Any, table: rs.Table) -> None:
    frame = table.to_spark(spark)
    for other, count in (
        (table.to_spark(spark, where="id > 100"), 9),
        (table.to_spark(spark, where=pc.field("id") > 100), 9),
        (frame.filter("id > 100"), 9),
        (frame.select("s").distinct(), 99),
        (frame.unionAll(frame), 218),
        (frame.alias("a").limit(7), 7),
        (read(spark, table.uri, routes=["source"]), 109),
    ):
        found, jobs = jobs_of(spark, other.count)
        assert found == count
        assert jobs > 0


def test_counting_a_cached_frame_fills_the_cache(spark: Any, table: rs.Table) -> None:
    frame = table.to_spark(spark).cache()
    try:
        found, jobs = jobs_of(spark, frame.count)
        assert (found, jobs > 0) == (109, True)
    finally:
        frame.unpersist()
    assert jobs_of(spark, frame.count) == (109, 0)


def test_a_missing_file_is_an_error(spark: Any, table: rs.Table) -> None:
    frame = table.to_spark(spark)
    files = Path(table.uri.removeprefix("file://")).glob("data/*")
    max(files, key=lambda path: path.stat().st_size).unlink()
    with pytest.raises(CorruptData, match="is missing: data/"):
        frame.count()
