"""Tables of odd names in Spark: read and written by their URI and by their path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.odd_names import ODD_NAMES
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark

NAMES = ODD_NAMES if IS_DEEP else ("a b", "a%20b", "a?b", "a\nb", "s3:x")


def test_odd_names_side_by_side_are_read_and_written_by_uri_and_by_path(
    spark: Any, tmp_path: Path
) -> None:
    """Each table's rows say which one it is."""
    made = {
        name: rs.create_table(tmp_path / name, pa.table({"id": [1], "n": [number]}), key=["id"])
        for number, name in enumerate(NAMES)
    }
    reader = spark.read.format("rowsieve")
    for number, (name, table) in enumerate(made.items()):
        frames = (table.to_spark(spark), reader.load(table.uri), reader.load(f"{tmp_path}/{name}"))
        for frame in frames:
            assert [tuple(row) for row in frame.collect()] == [(1, number)]
    for number, (name, table) in enumerate(made.items()):
        place = table.uri if number % 2 else f"{tmp_path}/{name}"
        rows = spark.createDataFrame([(2, number)], "id long, n long").coalesce(1)
        rows.write.format("rowsieve").mode("append").option("mode", "upsert").save(place)
    for number, table in enumerate(made.values()):
        found = rs.open_table(table.uri).scan(order_by_key=True).to_arrow().to_pylist()
        assert found == [{"id": 1, "n": number}, {"id": 2, "n": number}]
    assert {path.name for path in tmp_path.iterdir()} == set(NAMES)
