"""Differential tables in Spark: rows of one time, with their multiplicities or expanded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs
from tests.differential.updates import KV, updates

pytestmark = pytest.mark.spark


def test_a_frame_has_the_rows_of_a_time(spark: Any, tmp_path: Path) -> None:
    forms = {"row_codec": "msgpack", "write_encoding": "codec"}
    table = rs.create_table(tmp_path / "t", KV, mode="differential", properties=forms)
    table.append_updates(updates((1, "a", 0, 2), (2, "b", 0, 1)), upper=1)
    table.set_properties({"write_encoding": "both"})
    table.append_updates(updates((1, "a", 1, -2), (3, None, 1, 4)), upper=2)
    frame = table.to_spark(spark)
    assert sorted(map(tuple, frame.select("k", "_rowsieve_diff").collect())) == [(2, 1), (3, 4)]
    assert table.to_spark(spark, at=0, expanded=True).count() == 3
    assert table.to_spark(spark, "k = 1", ["v"], at=0).collect()[0]["v"] == "a"
    load = spark.read.format("rowsieve")
    assert sorted(map(tuple, load.load(table.uri).select("k", "_rowsieve_diff").collect())) == [
        (2, 1),
        (3, 4),
    ]
    assert spark.read.format("rowsieve").options(at=0, expanded=True).load(table.uri).count() == 3
    first = spark.read.format("rowsieve").options(at=0, where="k = 1").load(table.uri)
    assert [row["_rowsieve_diff"] for row in first.collect()] == [2]
    for at, message in (("2", "not complete"), ("x", "must be an integer")):
        with pytest.raises(Exception, match=message):
            spark.read.format("rowsieve").option("at", at).load(table.uri)
    with pytest.raises(Exception, match="differential"):
        frame.select("k", "v").write.format("rowsieve").mode("append").save(table.uri)
    shadow = {"read_encoding": "shadow", "on_encoding_difference": "raise"}
    assert load.options(expanded=True, **shadow).load(table.uri).count() == 5
    assert table.refresh() == 3
