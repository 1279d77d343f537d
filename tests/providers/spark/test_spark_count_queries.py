"""Queries that need only the number of a table's rows do not number them; all others do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.spark import read, sql
from rowsieve.providers.spark.reads import hybrid
from rowsieve.providers.spark.reads.file_names import FIRST_WORD, ROW_NUMBERS

pytestmark = pytest.mark.spark

COUNTING = (
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
    "SELECT count(*) FROM (SELECT * FROM c LIMIT 77)",
    "SELECT count(*) FROM c TABLESAMPLE (100 PERCENT)",
)
READING = (
    "SELECT count(s) FROM c",
    "SELECT count(*) FROM c WHERE id > 3",
    "SELECT count(*) FROM c GROUP BY s",
    "SELECT count(*) FROM c a JOIN c b ON a.id = b.id",
    "SELECT count(*), max(id) FROM c",
    "SELECT count(*) FROM c WHERE EXISTS (SELECT 1 FROM c b WHERE b.id = c.id + 1)",
    "SELECT count(*) FROM c WHERE (SELECT max(id) FROM c) > 1000",
    "SELECT count(*) FROM c WHERE s IS NOT NULL OR id IS NULL",
    "SELECT count(*) FROM (SELECT monotonically_increasing_id() AS n FROM c) WHERE n >= 0",
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


def numbers_rows(frame: Any) -> bool:
    """Whether the plan looks up rows by their numbers."""
    return "getbit(" in str(frame._jdf.queryExecution().optimizedPlan())


def test_queries_that_only_count_have_the_same_rows(spark: Any, table: rs.Table) -> None:
    """The source does not number rows."""
    sourced = read(spark, table.uri, routes=["source"])
    for query in COUNTING:
        frame = spark.sql(query)
        assert numbers_rows(frame) == ("id >" in query), query
        by_source = re.sub(r"\b(FROM|JOIN) c\b", r"\1 {c}", query)
        expected = Counter(spark.sql(by_source, c=sourced).collect())
        assert Counter(frame.collect()) == expected, query
        assert Counter(sql(spark, query).collect()) == expected, query
        assert frame.count() == sum(expected.values()), query


def test_queries_that_read_a_column_number_the_rows(spark: Any, table: rs.Table) -> None:
    expected = [109, 105, 99, 109, 109, 107, 0, 109, 109]
    for query, rows in zip(READING, expected, strict=True):
        frame = spark.sql(query)
        assert numbers_rows(frame), query
        first = frame.collect()
        assert (len(first) if "GROUP BY" in query else first[0][0]) == rows, query


def test_frames_that_are_derived_read_the_files(spark: Any, table: rs.Table) -> None:
    """Spark finds `id` below the selection."""
    ones = sql(spark, "SELECT 1 AS one FROM c")
    assert not numbers_rows(ones)
    assert len(ones.filter("id = 3").collect()) == 1
    assert [tuple(row) for row in ones.orderBy("id").limit(1).collect()] == [(1,)]
    ones.createOrReplaceTempView("ones")
    assert spark.sql("SELECT sum(one) FROM ones").first()[0] == 109
    assert sql(spark, "SELECT count(*) FROM ones").first()[0] == 109
    spark.catalog.dropTempView("ones")


@pytest.mark.parametrize(
    ("rows", "copies"),
    [
        ("c", 1),
        ("c LATERAL VIEW explode(array(1, 2)) AS one", 2),
        ("c TABLESAMPLE (100 PERCENT)", 1),
        ("(SELECT 1 FROM c UNION ALL SELECT 2 FROM c)", 2),
    ],
)
def test_the_name_of_the_file_is_read_from_it(
    spark: Any, table: rs.Table, rows: str, copies: int
) -> None:
    names = spark.sql(f"SELECT input_file_name() AS name FROM {rows}")
    assert numbers_rows(names)
    counts = Counter(row.name for row in names.collect())
    assert sorted(counts.values()) == [11 * copies, 98 * copies]


def test_reads_with_a_condition_or_by_the_source_are_right(spark: Any, table: rs.Table) -> None:
    for frame, rows in (
        (read(spark, table.uri, where="id < 3"), 3),
        (read(spark, table.uri, routes=["source"]), 109),
        (read(spark, table.uri, routes=["bitmap"], columns=["s"]), 109),
        (read(spark, table.uri, version=0), 100),
    ):
        assert spark.sql("SELECT count(*) FROM {t}", t=frame).first()[0] == rows


@pytest.mark.parametrize("compared", ["{0} + {1} >= 0", "getbit({0} + {1}, 0) = 1"])
def test_another_condition_on_the_added_columns_is_evaluated(
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch, compared: str
) -> None:
    condition = compared.format(FIRST_WORD, ROW_NUMBERS)
    monkeypatch.setattr(hybrid, "visible_rows", lambda _, scan, files: scan.filter(condition))
    counted = spark.sql("SELECT count(*) FROM {t}", t=read(spark, table.uri))
    assert ROW_NUMBERS in str(counted._jdf.queryExecution().optimizedPlan())


def test_a_session_has_the_rule_once_and_another_counts_without_it(
    spark: Any, table: rs.Table
) -> None:
    frame = read(spark, table.uri)
    rules = str(spark._jsparkSession.experimental().extraOptimizations().mkString())
    assert rules.count("RowsieveCountsVisibleRows") == 1
    frame.createOrReplaceGlobalTempView("everywhere")
    other = spark.newSession().sql("SELECT count(*) FROM global_temp.everywhere")
    assert numbers_rows(other)
    assert other.first()[0] == 109
    spark.catalog.dropGlobalTempView("everywhere")


def test_a_session_that_refuses_the_rule_counts_without_it(
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from rowsieve.providers.spark.reads import counting_rule

    monkeypatch.setattr(counting_rule, "_TEXT", "this is not Java")
    other = spark.newSession()
    frame = read(other, table.uri)
    assert "does not take the rule for counts" in caplog.text
    assert other.sql("SELECT count(*) FROM {t}", t=frame).first()[0] == 109


def test_a_missing_file_is_reported_by_spark(spark: Any, table: rs.Table) -> None:
    frame = spark.sql("SELECT count(*) FROM c")
    files = Path(table.uri.removeprefix("file://")).glob("data/*")
    max(files, key=lambda path: path.stat().st_size).unlink()
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        frame.collect()
