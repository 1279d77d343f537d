"""Spark over tables that exist in this process only: files, Delta tables, Iceberg tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import rowsieve as rs
from rowsieve.errors import InvalidInput, InvalidPredicate

pytestmark = pytest.mark.spark


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Four files in two directories; one lacks the column `s`, one has wider numbers."""
    folder = tmp_path / "a b's %20é"
    for year in (2023, 2024):
        (folder / f"year={year}").mkdir(parents=True)
        rows = pa.table({"id": pa.array(range(year, year + 10), pa.int32()), "s": ["x", None] * 5})
        pq.write_table(rows, folder / f"year={year}" / "a.parquet", row_group_size=4)
    pq.write_table(pa.table({"id": pa.array([-1, 2**40])}), folder / "year=2024" / "b.parquet")
    return folder


def test_spark_reads_files_as_scans_do(spark: Any, files: Path) -> None:
    table = rs.open_parquet(files)
    frame = table.to_spark(spark)
    assert frame.columns == ["id", "s", "year"]
    wanted = sorted(map(repr, table.to_arrow().to_pylist()))
    assert sorted(repr(row.asDict()) for row in frame.collect()) == wanted
    selected = table.to_spark(spark, where="year = 2024 AND id > 2030", columns=["id"])
    assert sorted(row.id for row in selected.collect()) == [2031, 2032, 2033, 2**40]
    assert selected.rdd.getNumPartitions() == 1
    assert table.to_spark(spark, where="id = 7").collect() == []
    with pytest.raises(InvalidPredicate, match="nothing"):
        table.to_spark(spark, where="nothing = 7")
    with pytest.raises(InvalidInput, match="SparkSession"):
        table.to_spark(None)


def test_scans_of_one_frame_and_of_several_do_not_mix(spark: Any, files: Path) -> None:
    table = rs.open_parquet(files)
    frame = table.to_spark(spark)
    assert (frame.filter("id = -1").count(), frame.count()) == (1, 22)
    other = table.to_spark(spark, where="s = 'x'")
    frame.createOrReplaceTempView("files")
    other.createOrReplaceTempView("some")
    query = "SELECT count(*) AS n FROM files LEFT ANTI JOIN some ON files.id <=> some.id"
    assert spark.sql(query).first().n == 3


def test_a_frame_keeps_its_files_and_notices_a_changed_one(spark: Any, files: Path) -> None:
    frame = rs.open_parquet(files).to_spark(spark)
    pq.write_table(pa.table({"id": [77]}), files / "year=2024" / "new.parquet")
    assert frame.count() == 22
    pq.write_table(pa.table({"id": [78]}), files / "year=2024" / "b.parquet")
    with pytest.raises(Exception, match=r"CorruptData.*b\.parquet"):
        frame.collect()


def test_spark_reads_a_delta_table_with_deletion_vectors(spark: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "delta")
    write_deltalake(uri, pa.table({"id": range(10), "s": ["v"] * 10}), partition_by=["s"])
    DeltaTable(uri).delete("id = 3")
    frame = rs.from_delta(uri).to_spark(spark, where="id < 5")
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 4]
