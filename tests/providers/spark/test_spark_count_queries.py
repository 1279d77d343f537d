"""Queries that need only the number of a table's rows run without reading it; no other does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.spark import read, sql
from rowsieve.providers.spark.reads.counted_query import CountedQuery

pytestmark = pytest.mark.spark

WITHOUT_READING = (
    "SELECT count(*) FROM c",
    "SELECT count(1), sum(2), max('x') FROM c WHERE 1 < 2",
    "SELECT count(*) FROM c a CROSS JOIN c b",
    "WITH x AS (SELECT * FROM c) SELECT count(*) FROM (SELECT 1 FROM x UNION ALL SELECT 2 FROM x)",
    "SELECT count(*) + (SELECT count(*) FROM c WHERE id > 3) FROM c",
    "SELECT count(*) FROM c UNION ALL SELECT count(*) FROM c WHERE id > 3",
    "SELECT 7 AS n FROM c LIMIT 5",
    "SELECT DISTINCT 'a' FROM c",
    "SELECT row_number() OVER (ORDER BY 1) AS n FROM (SELECT 1 FROM c)",
    "SELECT count(*) FROM c HAVING count(*) > 1000",
)
READING = (
    "SELECT count(s) FROM c",
    "SELECT count(*) FROM c WHERE id > 3",
    "SELECT count(*) FROM c GROUP BY s",
    "SELECT count(*) FROM c a JOIN c b ON a.id = b.id",
    "SELECT count(*), max(id) FROM c",
    "SELECT count(*) FROM c WHERE EXISTS (SELECT 1 FROM c b WHERE b.id = c.id + 1)",
)


@pytest.fixture
def table(tmp_path: Path, spark: Any) -> Iterator[rs.Table]:
    """The view `c` of 109 rows: one is deleted, and one of 11 others replaces a row."""
    rows = pa.table({"id": range(100), "s": [f"text {i}" for i in range(100)]})
    made = rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    made.delete(keys=pa.table({"id": [50]}))
    made.upsert(pa.table({"id": range(99, 110), "s": ["new"] * 11}))
    read(spark, made.uri).createOrReplaceTempView("c")
    yield made
    spark.catalog.dropTempView("c")


def reads_files(frame: Any) -> bool:
    return "FileScan" in str(frame._jdf.queryExecution().executedPlan())


def test_queries_that_only_count_have_the_same_rows(spark: Any, table: rs.Table) -> None:
    for query in WITHOUT_READING:
        found, expected = sql(spark, query), spark.sql(query)
        assert isinstance(found, CountedQuery), query
        assert reads_files(found), query  # what derived frames start from
        if "id >" not in query:
            assert not reads_files(found._counted), query
        rows = Counter(expected.collect())
        assert Counter(found.collect()) == rows, query
        assert found.toArrow().equals(expected.toArrow()), query
        assert found.first() == expected.first(), query
        assert found.count() == sum(rows.values()), query


def test_queries_that_read_a_column_are_left(spark: Any, table: rs.Table) -> None:
    for query in READING:
        found = sql(spark, query)
        assert not isinstance(found, CountedQuery), query
        assert Counter(found.collect()) == Counter(spark.sql(query).collect()), query


def test_frames_that_are_derived_read_the_files(spark: Any, table: rs.Table) -> None:
    """Spark finds `id` below the selection."""
    ones = sql(spark, "SELECT 1 AS one FROM c")
    assert isinstance(ones, CountedQuery)
    assert len(ones.filter("id = 3").collect()) == 1
    assert [tuple(row) for row in ones.orderBy("id").limit(1).collect()] == [(1,)]
    ones.createOrReplaceTempView("ones")
    assert spark.sql("SELECT sum(one) FROM ones").first()[0] == 109
    assert sql(spark, "SELECT count(*) FROM ones").first()[0] == 109
    spark.catalog.dropTempView("ones")


def test_reads_with_a_condition_or_unknown_rows_are_left(spark: Any, table: rs.Table) -> None:
    for name, frame, rows in (
        ("some", read(spark, table.uri, where="id < 3"), 3),
        ("sourced", read(spark, table.uri, routes=["source"]), 109),
    ):
        frame.createOrReplaceTempView(name)
        found = sql(spark, f"SELECT count(*) FROM {name}")
        assert not isinstance(found, CountedQuery)
        assert found.first()[0] == rows
        spark.catalog.dropTempView(name)


def test_a_cached_query_is_read_from_the_cache(spark: Any, table: rs.Table) -> None:
    found = sql(spark, "SELECT count(*) AS n FROM c").cache()
    try:
        assert found.collect()[0].n == 109
        assert "InMemory" in str(found._to_run()._jdf.queryExecution().executedPlan())
    finally:
        found.unpersist()


def test_a_missing_file_is_reported_by_spark(spark: Any, table: rs.Table) -> None:
    found = sql(spark, "SELECT count(*) FROM c")
    files = Path(table.uri.removeprefix("file://")).glob("data/*")
    max(files, key=lambda path: path.stat().st_size).unlink()
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        found.collect()
