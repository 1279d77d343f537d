"""Columns as conditions of scans, of frames and of `translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.languages import bridge_of
from rowsieve.bridges.spark_columns import is_spark_column
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidInput, UnknownColumn, UnsupportedOperation

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    rows = pa.table(
        {"id": [1, 2, 3], "s": ["a", "b", None], "u": pa.array([1, 2, 255], pa.uint8())}
    )
    return rs.create_table(str(tmp_path / "t"), rows, key=["id"])


def test_scans_and_changes_take_columns(spark: Any, table: rs.Table) -> None:
    from pyspark.sql import functions as f

    assert table.scan(where=f.col("s") == "a").count() == 1
    assert table.scan(where=f.col("u") + 1 > 2).count() == 2
    with pytest.raises(UnknownColumn):
        table.scan(where=f.col("nowhere") == 1)
    with pytest.raises(UnsupportedOperation, match="condition 2 of 2"):
        table.scan(where=(f.col("id") > 1) & f.expr("s LIKE s"))
    assert table.delete(f.col("s").isNull()).rows_deleted == 1


def test_frames_accept_the_same_conditions_as_scans(spark: Any, table: rs.Table) -> None:
    import datafusion
    from pyspark.sql import functions as f

    for where in (f.col("id") >= 2, datafusion.col("id") >= datafusion.lit(2), "id >= 2"):
        assert table.to_spark(spark, where=where).count() == 2
    with pytest.raises(UnsupportedOperation, match="condition 1 of 1"):
        table.to_spark(spark, where=f.expr("s LIKE s"))
    with pytest.raises(InvalidInput, match="int"):
        table.to_spark(spark, where=5)


def test_columns_are_translated(spark: Any, table: rs.Table) -> None:
    from pyspark.sql import functions as f

    column = (f.col("id") == 1) | f.col("s").isin("a", "b")
    made = rs.translate(column, target="duckdb", schema=table)
    assert made.exactness is Exactness.EXACT
    assert table.scan(where=made.expression, dialect="duckdb").count() == 2
    back = rs.translate(made.expression, "duckdb", target="spark_columns", schema=table)
    assert is_spark_column(back.exact())
    assert table.to_spark(spark).filter(back.exact()).count() == 2
    wraps = rs.translate("id + 1 > 0", "datafusion", target="spark_columns", schema=table)
    assert wraps.exactness is Exactness.UNSUPPORTED
    found = bridge_of(column)
    assert found is not None
    assert found.name == "spark_columns"
