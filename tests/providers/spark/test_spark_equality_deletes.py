"""Spark reads the rows that equality deletes of an Iceberg table leave, as a scan does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg")

import rowsieve as rs
from rowsieve.providers.spark import read, sql
from tests.foreign import iceberg_tables
from tests.foreign.iceberg_tables import with_delete_file
from tests.foreign.test_equality_deletes import SCHEMA, deletes, rows

pytestmark = pytest.mark.spark

CONDITIONS = ("id > 3", "s = 'a'", "s IS NULL", "id IN (1, 7, NULL)")


@pytest.fixture
def iceberg(tmp_path: Path) -> Any:
    """Two files; the deletes of `id` reach only the first one, those of both columns reach both."""
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(rows(*((i % 7, "ab"[i % 2]) for i in range(40)), (None, "a"), (5, None)))
    by_id = rows((1, ""), (None, "")).select(["id"])
    table = with_delete_file(table, deletes(tmp_path, by_id, [1]))
    table.append(rows((1, "a"), (7, "c"), (5, None), (None, None)))
    return with_delete_file(table, deletes(tmp_path, rows((5, None), (2, "a")), [1, 2]))


def test_spark_reads_the_rows_of_a_scan(spark: Any, tmp_path: Path, iceberg: Any) -> None:
    table = rs.from_iceberg(iceberg)
    content = Counter(map(tuple, (row.values() for row in table.to_arrow().to_pylist())))
    assert content[1, "a"] == 1
    assert not content.keys() & {(5, None), (2, "a"), (None, "a")}
    copy = rs.import_iceberg(iceberg, tmp_path / "copy")
    expected = spark.createDataFrame(table.to_arrow())
    for frame in (table.to_spark(spark), copy.to_spark(spark), read(spark, copy.uri)):
        frame.createOrReplaceTempView("remaining")
        assert Counter(map(tuple, frame.collect())) == content
        assert frame.count() == content.total()
        for condition in CONDITIONS:
            matching = Counter(expected.filter(condition).collect())
            assert Counter(frame.filter(condition).collect()) == matching
            assert (
                Counter(sql(spark, f"SELECT * FROM remaining WHERE {condition}").collect())
                == matching
            )
    for condition in CONDITIONS:
        matching = Counter(expected.filter(condition).collect())
        assert Counter(table.to_spark(spark, where=condition).collect()) == matching
    spark.catalog.dropTempView("remaining")
