"""Spark reads tables whose files have hidden columns of JSON paths as if there were none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.bridges.sql import parse_predicate

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("j", pa.json_())])
COUNT = 20_000  # three pages
PROPERTIES = {"json_shredding": "j.kind, j.n"}


def rows(start: int, stop: int, kind: str = "") -> pa.Table:
    documents = [json.dumps({"kind": kind or f"k{i // 100}", "n": i}) for i in range(start, stop)]
    return pa.table({"id": range(start, stop), "j": documents}, schema=SCHEMA)


@pytest.mark.parametrize("hidden", [False, True])
def test_spark_reads_the_columns_of_the_table(tmp_path: Path, spark: Any, hidden: bool) -> None:
    table = rs.create_table(tmp_path / "t", SCHEMA, key=["id"], properties=PROPERTIES)
    table.upsert(rows(0, COUNT))
    if hidden:
        table.upsert(rows(150, 151, "new"))
    for file in (tmp_path / "t" / "data").glob("*.parquet"):
        assert pq.read_schema(file).names == ["id", "j", "_rowsieve_shredded"]
    frame = table.to_spark(spark)
    assert frame.columns == ["id", "j"]
    found = frame.where("get_json_object(j, '$.kind') IN ('k1', 'new')")
    assert sorted(row.id for row in found.collect()) == [*range(100, 200)]
    assert frame.where("id < 50").count() == 50
    asked = table.to_spark(spark, where=parse_predicate("j->>'kind' = 'k1'"))
    wanted = [i for i in range(100, 200) if not (hidden and i == 150)]
    assert sorted(row.id for row in asked.collect()) == wanted
    loaded = spark.read.format("rowsieve").load(str(tmp_path / "t"))
    assert (loaded.columns, loaded.where("id >= 19990").count()) == (["id", "j"], 10)
