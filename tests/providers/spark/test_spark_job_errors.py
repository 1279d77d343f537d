"""Failed jobs of Spark, run by calls of ours: the error names the file or the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import (
    CorruptData,
    JobFailed,
    NotFound,
    SchemaMismatch,
    UnsupportedOperation,
)
from rowsieve.providers.spark.job_errors import own_error
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark
COLUMNS = pa.schema([("id", pa.int64()), ("s", pa.string())])
WRITES: dict[str, Callable[[rs.Table, Any], Any]] = {
    "upsert": lambda table, frame: table.write_spark(frame, mode="upsert"),
    "presorted": lambda table, frame: table.write_spark(frame, mode="upsert", presorted=True),
    "merge": lambda table, frame: table.merge_spark(
        frame, on=["id"], when_matched="delete", when_not_matched="insert"
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), COLUMNS, key=["id"])


def put(path: Path, *ids: int) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": ids, "s": [f"{i}" for i in ids]}, schema=COLUMNS), path)


def vanished(session: Any, folder: Path) -> Any:
    """A frame of two files; Spark lists both, then one is removed."""
    put(folder / "kept.parquet", 1, 2)
    put(folder / "gone.parquet", 3, 4)
    frame = session.read.parquet(str(folder))
    assert frame.columns == ["id", "s"]  # a client lists the files now
    (folder / "gone.parquet").unlink()
    return frame


@pytest.mark.parametrize("write", list(WRITES) if IS_DEEP else ["upsert"])
def test_an_input_file_that_vanished_is_named(
    spark: Any, tmp_path: Path, table: rs.Table, write: str
) -> None:
    with pytest.raises(NotFound, match=r"into file:.*/t: the file .*/in/gone\.parquet does not"):
        WRITES[write](table, vanished(spark, tmp_path / "in"))
    assert table.refresh() == 0


@pytest.mark.skipif(not IS_DEEP, reason="starts a server of Spark Connect")
def test_a_client_of_spark_connect_gets_the_same_error(
    client: Any, tmp_path: Path, table: rs.Table
) -> None:
    with pytest.raises(NotFound, match=r"the file .*/in/gone\.parquet does not exist"):
        table.write_spark(vanished(client, tmp_path / "in"), mode="upsert")
    assert table.refresh() == 0


@pytest.mark.skipif(not IS_DEEP, reason="each task fails four times")
def test_an_input_file_of_other_types_or_bytes_is_named(
    spark: Any, tmp_path: Path, table: rs.Table
) -> None:
    path = tmp_path / "in" / "a.parquet"
    put(path, *range(5000))
    frame = spark.read.parquet(str(path.parent))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptData, match=r"/in/a\.parquet cannot be read"):
        table.write_spark(frame, mode="upsert")
    pq.write_table(pa.table({"id": [1.5], "s": ["x"]}), path)
    with pytest.raises(SchemaMismatch, match=r"/in/a\.parquet has columns of other types"):
        table.write_spark(frame, mode="upsert")
    assert table.refresh() == 0


@pytest.mark.skipif(not IS_DEEP, reason="each task fails four times")
def test_other_failures_of_a_job_say_that_nothing_was_committed(
    spark: Any, table: rs.Table
) -> None:
    from pyspark.errors import PythonException
    from pyspark.sql import functions

    dies = functions.udf(lambda _: os._exit(3), "string")
    refuses = functions.udf(lambda value: value.missing, "string")
    rows = spark.range(2)
    with pytest.raises(JobFailed, match=r"nothing was committed: Job aborted .*crashed") as caught:
        table.write_spark(rows.select("id", dies("id").alias("s")), mode="upsert")
    assert caught.value.__cause__ is not None
    with pytest.raises(PythonException, match="AttributeError"):  # as in any action of Spark
        table.write_spark(rows.select("id", refuses("id").alias("s")), mode="upsert")
    assert table.refresh() == 0


def test_errors_of_others_are_left() -> None:
    assert own_error(ValueError("FAILED_READ_FILE"), "write") is None


def test_a_source_that_spark_does_not_find_is_our_error(spark: Any) -> None:
    with pytest.raises(Exception, match="rowsieve_absent") as caught:
        spark.read.format("rowsieve_absent").load("/t")
    own = own_error(caught.value, "read /t")
    assert isinstance(own, UnsupportedOperation)
    assert "register(spark)" in str(own)
