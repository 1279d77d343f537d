"""MERGE, UPDATE and DELETE on views of our tables by `sql`, against DuckDB in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    InvalidPredicate,
    KeyViolation,
    RowsieveError,
    SchemaMismatch,
    UnsupportedOperation,
)
from rowsieve.providers.spark import read, sql
from rowsieve.providers.spark.writes import merge_frame, merging_places
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
CONTENT: list[tuple[int, int | None, str | None]] = [
    *((1, 1, "a"), (2, 2, "b"), (3, 3, "c"), (4, None, None), (5, 5, "e"), (6, 6, "f")),
]
SOURCE: list[tuple[int, int | None, str | None]] = [(2, 20, "x"), (3, None, "y"), (9, 90, None)]


def rows_of(rows: list[tuple[int, int | None, str | None]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS
    )


def content(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


@pytest.fixture(params=["k"])
def key(request: pytest.FixtureRequest) -> list[str]:
    """The key of the table, or none."""
    return list(request.param)


@pytest.fixture
def table(key: list[str], spark: Any, tmp_path: Path) -> Iterator[rs.Table]:
    """A table of two parts, its view `v`, and a view `src` of the rows of the source."""
    made = rs.create_table(str(tmp_path / "t"), rows_of(CONTENT[:3]), key=key)
    (made.upsert if key else made.append)(rows_of(CONTENT[3:]))
    made.to_spark(spark).createOrReplaceTempView("v")
    spark.createDataFrame(rows_of(SOURCE)).createOrReplaceTempView("src")
    yield made
    spark.catalog.dropTempView("v")
    spark.catalog.dropTempView("src")


def by_duckdb(statements: list[str]) -> list[tuple[Any, ...]]:
    with duckdb.connect() as memory:
        given = {"v": rows_of(CONTENT), "src": rows_of(SOURCE)}
        for name, rows in given.items():
            memory.register("given", rows)
            memory.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        for statement in statements:
            memory.execute(statement)
        return content(memory.sql("SELECT * FROM v").to_arrow_table())


STATEMENTS = [
    ["DELETE FROM v WHERE k = 1"],
    ["DELETE FROM v"],
    ["delete from v where k in (select k from src)"],
    ["DELETE FROM v WHERE k NOT IN (SELECT k FROM src WHERE k IS NOT NULL)"],
    ["DELETE FROM v WHERE NOT EXISTS (SELECT 1 FROM src WHERE src.k = v.k) AND n > 1"],
    ["DELETE FROM v WHERE n = (SELECT max(n) FROM v)", "DELETE FROM v WHERE n > 4"],
    ["DELETE FROM v WHERE n > 100"],
    ["UPDATE v SET n = n + 1, s = s || '!' WHERE n IS NULL OR n > 2"],
    ["UPDATE v SET s = NULL", "UPDATE v SET n = k * 10 WHERE s IS NULL AND k <> 2"],
    ["UPDATE v SET n = (SELECT max(n) FROM src) WHERE k IN (SELECT k FROM src)"],
    ["MERGE INTO v USING src ON v.k = src.k WHEN MATCHED THEN DELETE"],
    [
        (
            "MERGE INTO v AS t USING (SELECT k + 1 AS k, n FROM src) AS q ON q.k = t.k "
            "WHEN MATCHED AND t.n > 3 THEN UPDATE SET n = q.n + t.n, s = 'both' "
            "WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED AND q.n IS NOT NULL THEN INSERT (k, n) VALUES (q.k, q.n)"
        ),
        "DELETE FROM v WHERE s = 'both'",
    ],
    [
        (
            "MERGE INTO v t USING src ON t.k = src.k WHEN MATCHED THEN UPDATE SET n = src.n, "
            "s = src.s WHEN NOT MATCHED THEN INSERT (k, n, s) VALUES (src.k, src.n, upper('z')) "
            "WHEN NOT MATCHED BY SOURCE AND t.k IN (SELECT k - 1 FROM src) THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = t.n - 1"
        ),
    ],
    [
        (
            "MERGE INTO v USING (SELECT v.k AS other, max(v.n) AS m FROM v GROUP BY v.k) g "
            "ON v.k = g.other WHEN MATCHED AND g.m > 2 THEN UPDATE SET n = g.m + 1"
        ),
    ],
]


KEYS = ("k", "")
# Each by one kind of table in the normal profile, in turn.
CASES = [
    (key, statements)
    for place, statements in enumerate(STATEMENTS)
    for key in (KEYS if IS_DEEP else KEYS[place % 2 :][:1])
]


@pytest.mark.parametrize(("key", "statements"), CASES, indirect=["key"])
def test_a_statement_changes_the_table_as_in_duckdb(
    spark: Any, table: rs.Table, statements: list[str]
) -> None:
    for statement in statements:
        assert sql(spark, statement).columns == []
    assert content(rs.open_table(table.uri).scan().to_arrow()) == by_duckdb(statements)
    assert content(spark.table("v").toArrow()) == by_duckdb(statements)  # the view shows it
    assert table.version <= rs.open_table(table.uri).version <= table.version + len(statements)


@pytest.mark.parametrize("key", KEYS, indirect=True)
def test_stars_write_all_columns_of_the_source(spark: Any, table: rs.Table) -> None:
    stars = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    sql(spark, f"MERGE INTO v USING src AS s ON v.k = s.k {stars}")
    wanted = {row[0]: row for row in [*CONTENT, *SOURCE]}
    assert content(table.scan(version=table.refresh()).to_arrow()) == sorted(wanted.values())


REFUSED = [
    ("MERGE INTO v USING src ON v.k = src.k AND v.n > 1 WHEN MATCHED THEN DELETE", "ON .*n > 1"),
    ("MERGE INTO v USING src ON v.k = src.k OR TRUE WHEN MATCHED THEN DELETE", "does not take ON"),
    ("MERGE INTO v USING src ON v.k = v.n WHEN MATCHED THEN DELETE", "does not take ON"),
    ("MERGE INTO v USING src ON v.k = src.k AND v.k = src.n WHEN MATCHED THEN DELETE", "two cond"),
    ("MERGE INTO v USING v ON v.k = v.k WHEN MATCHED THEN DELETE", "two tables named v"),
    (
        "MERGE WITH SCHEMA EVOLUTION INTO v USING src ON v.k = src.k WHEN MATCHED THEN DELETE",
        "SCHEMA EVOLUTION",
    ),
    ("UPDATE v SET n = DEFAULT", "DEFAULT as the value of n"),
    ("UPDATE v SET n = 1, N = 2", "two values for N"),
    ("UPDATE v SET s.x = 1", "an assignment to s.x"),
    ("WITH q AS (SELECT 1 AS k) DELETE FROM v WHERE k IN (SELECT k FROM q)", "WITH; write its"),
]


def test_a_part_that_a_merge_lacks_is_refused(spark: Any, table: rs.Table) -> None:
    for statement, message in REFUSED:
        with pytest.raises(UnsupportedOperation, match=message):
            sql(spark, statement)
    assert rs.open_table(table.uri).version == table.version


ERRORS: list[tuple[str, type[RowsieveError], str]] = [
    ("UPDATE v SET n = 'x'", SchemaMismatch, "cast it"),
    ("UPDATE v SET n = nosuch", InvalidPredicate, "nosuch"),
    ("DELETE FROM v WHERE n", InvalidPredicate, "not boolean"),
    (
        (
            "MERGE INTO v USING (SELECT 1L AS k UNION ALL SELECT 1L) q ON v.k = q.k "
            "WHEN MATCHED THEN UPDATE SET n = 1"
        ),
        KeyViolation,
        "2 rows|key",
    ),
]


@pytest.mark.parametrize(("statement", "error", "message"), ERRORS)
def test_an_error_changes_nothing(
    spark: Any, table: rs.Table, statement: str, error: type[RowsieveError], message: str
) -> None:
    with pytest.raises(error, match=message):
        sql(spark, statement)
    assert rs.open_table(table.uri).version == table.version
    assert content(spark.table("v").toArrow()) == sorted(CONTENT)


@pytest.mark.parametrize("key", KEYS, indirect=True)
def test_a_key_is_not_assigned(spark: Any, table: rs.Table) -> None:
    if table.key:
        with pytest.raises(UnsupportedOperation, match="key column 'k'"):
            sql(spark, "UPDATE v SET k = k + 1")
        with pytest.raises(UnsupportedOperation, match="must be the key of the table"):
            sql(spark, "MERGE INTO v USING src ON v.n = src.n WHEN MATCHED THEN DELETE")
    else:
        sql(spark, "UPDATE v SET k = k + 10")
        assert rs.open_table(table.uri).count("k > 10") == len(CONTENT)


def test_views_of_a_fixed_version_or_of_some_rows_are_read_only(
    spark: Any, table: rs.Table
) -> None:
    frames = {
        "fixed": read(spark, table.uri, version=table.version),
        "opened": rs.open_table(table.uri, version=0).to_spark(spark),
        "some_rows": table.to_spark(spark, where="k > 1"),
        "some_columns": table.to_spark(spark, columns=["k", "n"]),
        "joined": table.to_spark(spark).crossJoin(spark.range(2)),
        "filtered": table.to_spark(spark).where("k > 1"),
        "sourced": spark.read.format("rowsieve").load(table.uri),
    }
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
        for statement in (f"DELETE FROM {name} WHERE k = 1", f"UPDATE {name} SET n = 1"):
            with pytest.raises(UnsupportedOperation, match="a temporary view of all its columns"):
                sql(spark, statement)
        spark.catalog.dropTempView(name)
    assert rs.open_table(table.uri).version == table.version


@pytest.mark.parametrize("key", KEYS, indirect=True)
def test_a_statement_sees_one_version_even_after_a_conflict(  # invariants 7 and 23
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit between reading and writing: both sides of the statement are read again."""
    other, raced = rs.open_table(table.uri), list[Any]()
    module, name = (merge_frame, "write_rows") if table.key else (merging_places, "hide_places")
    write = getattr(module, name)

    def racing(*arguments: Any, **options: Any) -> Any:
        if not raced:
            raced.append(other.update({"n": "1000"}, where="k = 6"))
        return write(*arguments, **options)

    monkeypatch.setattr(module, name, racing)
    sql(spark, "DELETE FROM v WHERE n = (SELECT max(n) FROM v)")
    assert raced
    left = rs.open_table(table.uri).scan().to_arrow()["k"].to_pylist()
    assert sorted(left) == [1, 2, 3, 4, 5]
