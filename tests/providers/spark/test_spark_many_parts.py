"""Spark lists the files of tables of many parts without a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.providers.spark import read
from tests.providers.spark.test_spark_counts import jobs_of

pytestmark = pytest.mark.spark

PARTS = 34  # Spark's default threshold is 32
THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """Ids 0 to 67, two in each part."""
    folder = str(tmp_path_factory.mktemp("many") / "t")
    made = rs.create_table(folder, pa.schema([("id", pa.int64())]), key=["id"])
    for part in range(PARTS):
        made.upsert(pa.table({"id": [2 * part, 2 * part + 1]}))
    return made


@pytest.mark.parametrize("explicit", [None, "5"])
def test_many_files_are_listed_without_a_job(
    spark: Any, table: rs.Table, explicit: str | None
) -> None:
    default = spark.conf.get(THRESHOLD)
    if explicit is not None:
        spark.conf.set(THRESHOLD, explicit)
    try:
        found, jobs = jobs_of(spark, lambda: read(spark, table.uri))
        assert jobs == 0
        frame: Any = found
        assert sorted(row.id for row in frame.collect()) == list(range(2 * PARTS))
        assert spark.conf.get(THRESHOLD) == (explicit or default)
        is_set = spark._jsparkSession.conf().getAll().contains(THRESHOLD)
        assert is_set is (explicit is not None)
    finally:
        spark.conf.unset(THRESHOLD)


@pytest.mark.parametrize("missing", [1, PARTS])  # all: the one whose footer is read is missing
def test_a_missing_file_of_many_is_an_error(spark: Any, tmp_path: Path, missing: int) -> None:
    made = rs.create_table(str(tmp_path / "t"), pa.table({"id": [0]}), key=["id"])
    for i in range(1, PARTS):
        made.upsert(pa.table({"id": [i]}))
    for file in sorted((tmp_path / "t").rglob("*.parquet"))[:missing]:
        file.unlink()
    with pytest.raises(CorruptData, match=r"is missing: data/.*\.parquet"):
        read(spark, made.uri)
    assert not spark._jsparkSession.conf().getAll().contains(THRESHOLD)


def test_a_line_break_in_a_path_separates_no_files(spark: Any, tmp_path: Path) -> None:
    made = rs.create_table(str(tmp_path / "a\nb"), pa.table({"id": [7]}), key=["id"])
    assert [row.id for row in read(spark, made.uri).collect()] == [7]
