"""Queries on Spark's column `_metadata` of our files run, or are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.providers.spark import prune, read, sql

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    rows = pa.table({"id": range(100)})
    return rs.create_table(str(tmp_path / "t"), rows, key=["id"], properties={"inline_bytes": 0})


def test_files_without_hidden_rows_have_them(spark: Any, table: rs.Table) -> None:
    frame = read(spark, table.uri).filter("_metadata.row_index < 3 AND id < 50")
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2]
    assert sorted(row.id for row in prune(frame).collect()) == [0, 1, 2]
    query = f"SELECT count(*) FROM rowsieve.`{table.uri.removeprefix('file://')}`"
    assert sql(spark, f"{query} WHERE _metadata.row_index < 3").first()[0] == 3


def test_numbers_of_rows_beside_hidden_ones_are_refused(spark: Any, table: rs.Table) -> None:
    table.delete("id = 1")
    frame = read(spark, table.uri)
    names = frame.select("_metadata.file_name")
    assert names.count() == prune(names).count() == 99
    with pytest.raises(UnsupportedOperation, match=r"_metadata\.row_index"):
        prune(frame.filter("_metadata.row_index < 3"))
    path = f"rowsieve.`{table.uri.removeprefix('file://')}`"
    with pytest.raises(UnsupportedOperation, match=r"input_file_name\(\)"):
        sql(spark, f"SELECT _metadata.row_index FROM {path}")
    assert sql(spark, f"SELECT input_file_name() FROM {path}").count() == 99
    with pytest.raises(UnknownColumn, match="_metadata"):
        table.to_spark(spark, where="_metadata.row_index < 3")
