"""`write_spark` in one pass, if the tasks hold disjoint ranges of keys or their files look so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sql

import rowsieve as rs
from rowsieve.errors import InvalidInput, KeyViolation
from rowsieve.providers.spark.plans import files_of_tasks
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.input_order import _are_disjoint, _ranges, tasks_are_in_order

pytestmark = pytest.mark.spark
BATCH = 10_000  # Spark's rows of a batch
COUNT = 4 * BATCH


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), rows_of(np.arange(3)), key=["id"])


def rows_of(keys: Any) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int64()), "n": pa.array(keys * 2, pa.int64())})


def in_two_tasks(spark: Any, folder: Path, *keys: Any) -> Any:
    """A frame of two files with these keys, each read by a task of its own."""
    folder.mkdir()
    for number, each in enumerate(keys):
        pq.write_table(rows_of(each), folder / f"{number}.parquet")
    found = spark.read.parquet(str(folder))
    assert found.rdd.getNumPartitions() == len(keys) == 2
    return found


def files_of(table: rs.Table) -> set[str]:
    return {path.name for path in (Path(table.uri.removeprefix("file://")) / "data").iterdir()}


def listed(table: rs.Table) -> set[str]:
    parts = table.handle.pinned.parts
    files = [*parts.files("data"), *parts.files("deletes")]
    return {file.path.removeprefix("data/") for file in files if file is not None}


def keys_in(table: rs.Table) -> list[int]:
    found: list[int] = table.scan(order_by_key=True).to_arrow().column("id").to_pylist()
    return found


def is_shuffled(commit: Any) -> bool:
    """Whether a write of two tasks was shuffled: small partitions are joined then."""
    return bool(commit.parts_added == 1)


def test_disjoint_sorted_tasks_write_in_one_pass(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    low, high = np.arange(COUNT), np.arange(COUNT, 2 * COUNT)
    commit = table.write_spark(
        in_two_tasks(spark, tmp_path / "in", low, high), "upsert", presorted=True
    )
    assert not is_shuffled(commit)
    assert commit.rows_written == 2 * COUNT
    assert keys_in(table) == list(range(2 * COUNT))
    assert table.version == 1


@pytest.mark.parametrize("order", ["shuffled", "interleaved"])
def test_overlapping_tasks_are_shuffled_and_leave_no_files(
    spark: Any, table: rs.Table, tmp_path: Path, order: str
) -> None:
    keys = np.arange(2 * COUNT)
    if order == "shuffled":
        keys = np.random.default_rng(1).permutation(keys)
    halves = (keys[::2], keys[1::2])
    commit = table.write_spark(
        in_two_tasks(spark, tmp_path / "in", *halves), "upsert", presorted=True
    )
    assert is_shuffled(commit)
    assert keys_in(table) == list(range(2 * COUNT))
    assert table.version == 1
    assert len(table.history()) == 2
    before = rs.open_table(table.uri, version=0)
    assert files_of(table) == listed(table) | listed(before)


def test_a_key_in_two_sorted_tasks_is_refused(spark: Any, table: rs.Table, tmp_path: Path) -> None:
    written = in_two_tasks(spark, tmp_path / "in", np.arange(5), np.arange(4, 9))
    before = files_of(table)
    with pytest.raises(KeyViolation, match=r"have the key \{'id': 4\}"):
        table.write_spark(written, "upsert", presorted=True)
    assert rs.open_table(table.uri).version == 0
    deleted = table.write_spark(written.select("id"), "delete", presorted=True)
    assert deleted.version == 1
    assert keys_in(table) == []
    assert len(files_of(table) - before) <= 2  # of the failed task, and of the delete


def test_a_frame_computed_again_with_other_rows_is_committed_once(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    keys = np.arange(COUNT)
    random = in_two_tasks(spark, tmp_path / "in", keys[::2], keys[1::2]).where("rand() < 0.5")
    commit = table.write_spark(random, "upsert", presorted=True)
    assert commit.version == 1
    kept = keys_in(table)
    assert len(set(kept)) == len(kept)
    assert len(set(kept) - {0, 1, 2}) <= commit.rows_written <= len(kept)


@pytest.mark.parametrize("order", ["in order", "unsorted inside", "interleaved"])
def test_files_whose_footers_show_disjoint_ranges_are_written_in_one_pass(
    spark: Any, table: rs.Table, tmp_path: Path, order: str
) -> None:
    low, high = np.arange(COUNT), np.arange(COUNT, 2 * COUNT)
    if order == "unsorted inside":
        low, high = low[::-1], high[::-1]
    elif order == "interleaved":
        low, high = np.arange(0, 2 * COUNT, 2), np.arange(1, 2 * COUNT, 2)
    frame = in_two_tasks(spark, tmp_path / "in", low, high)
    assert tasks_are_in_order(frame, ["id"]) == (order != "interleaved")
    commit = table.write_spark(frame, "upsert")
    assert is_shuffled(commit) == (order != "in order")
    assert (commit.version, commit.rows_written) == (1, 2 * COUNT)
    assert keys_in(table) == list(range(2 * COUNT))


@pytest.mark.parametrize(
    ("changed", "known"),
    [
        pytest.param("where id > 5 and rand() < 2", True, id="filtered"),
        pytest.param("order by id", False, id="sorted by Spark"),
        pytest.param("limit 10", False, id="limited"),
    ],
)
def test_ranges_are_known_while_rows_are_only_selected(
    spark: Any, tmp_path: Path, changed: str, known: bool
) -> None:
    frame = in_two_tasks(spark, tmp_path / "in", np.arange(9), np.arange(9, 20))
    assert tasks_are_in_order(spark.sql(f"select * from {{t}} {changed}", t=frame), ["ID"]) == known


def test_computed_keys_and_other_inputs_have_no_known_ranges(spark: Any, tmp_path: Path) -> None:
    frame = in_two_tasks(spark, tmp_path / "in", np.arange(9), np.arange(9, 20))
    assert tasks_are_in_order(frame.selectExpr("id", "n + 1 as n"), ["id"])
    for other in (
        frame.selectExpr("-id as id"),
        frame.selectExpr("n as id"),
        frame.union(frame),
        frame.join(frame.withColumnRenamed("n", "m"), "id"),
        spark.range(9),
        spark.createDataFrame([(1,)], "id long"),
    ):
        assert not tasks_are_in_order(other, ["id"])
    assert not tasks_are_in_order(object(), ["id"])  # a frame of Spark Connect has no plan


def test_row_groups_belong_to_the_tasks_that_read_them(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "a b%20.parquet"
    pq.write_table(rows_of(np.arange(50_000)), path, row_group_size=3_000)
    split = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(split)
    try:
        spark.conf.set(split, str(path.stat().st_size // 5))
        frame = spark.read.parquet(f"file:{str(tmp_path).replace('%', '%25')}")
        found = files_of_tasks(frame, "id", 100)
        by_task = frame.groupBy(sql.spark_partition_id().alias("task"))
        read = by_task.agg(sql.min("id"), sql.max("id")).orderBy("task").collect()
    finally:
        spark.conf.set(split, before)
    assert found is not None
    assert files_of_tasks(frame, "id", 3) is None  # too many files to ask for
    column, tasks = found
    ranges = [_ranges(task, column) for task in tasks]
    assert len(tasks) > 3
    assert [(each[0][0], each[-1][1]) for each in ranges if each] == [
        (low, high) for _, low, high in read
    ]


def test_ranges_ascend_without_a_common_value_but_their_ends() -> None:
    assert _are_disjoint([[(0, 1), (1, 3)], [(7, 9)], [], [(3, 7)]])
    assert not _are_disjoint([[(0, 4), (3, 6)]])
    assert not _are_disjoint([[(0, 4)], [(3, 6)]])
    assert not _are_disjoint([[(0, 4)], None])
    assert not _are_disjoint([[(0, 4)], [("a", "b")]])
    assert not _are_disjoint([[(float("nan"), float("nan"))]])


def test_a_table_without_a_key_has_no_order(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows_of(np.arange(3)))
    with pytest.raises(InvalidInput, match="for tables with a key"):
        table.write_spark(spark.range(3), "append", presorted=True)


@pytest.mark.parametrize("given", [{}, {"write_id": "1", "key": "id"}])
def test_the_option_is_not_for_callers(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="write_spark passes on"):
        WriteOptions.parse({"path": "t", "one_pass": "true", **given})
