"""`merge_spark` into tables without a key, against DuckDB's MERGE over tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    KeyViolation,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.providers.spark.frames import spark_read
from rowsieve.providers.spark.reads.placed_rows import placed_frame
from rowsieve.providers.spark.writes import merging_places
from tests.executor.planted import lie

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("s", pa.string())])


def rows_of(*rows: tuple[int | None, int | None, str | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS
    )


def content(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


PARTS = (
    rows_of((1, 1, "a"), (2, 2, "b"), (2, 3, "c"), (None, 4, "d")),
    rows_of((2, 5, "e"), (3, 6, None), (4, 7, "g"), (None, None, "h")),  # a file of another size
    rows_of((3, 8, "i")),
)
SOURCE = rows_of((2, 20, "x"), (3, 30, None), (9, 90, "y"), (9, 91, "z"), (None, 0, "w"))


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Three parts, with a hidden row in the first and in the second."""
    made = rs.create_table(str(tmp_path / "t"), COLUMNS)
    for part in PARTS:
        made.append(part)
    made.delete("n = 2 OR n = 7")
    return made


UPDATE = {"update": {"n": "source.n + target.n", "k": "source.k + 100"}}
MERGES: tuple[tuple[list[str], dict[str, Any], str], ...] = (
    (["k"], {"when_matched": "delete"}, "t.k = s.k WHEN MATCHED THEN DELETE"),
    (
        ["K"],
        {"when_matched": UPDATE, "when_not_matched": "insert"},
        (
            "t.k = s.k WHEN MATCHED THEN UPDATE SET n = s.n + t.n, k = s.k + 100 "
            "WHEN NOT MATCHED THEN INSERT (k, n, s) VALUES (s.k, s.n, s.s)"
        ),
    ),
    (
        ["k"],
        {
            "when_matched": [{"delete": "*", "where": "target.n > 5"}, "update"],
            "when_not_matched": {"insert": {"k": "source.k", "n": "NULL", "s": "upper(source.s)"}},
        },
        (
            "t.k = s.k WHEN MATCHED AND t.n > 5 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET k = s.k, n = s.n, s = s.s "
            "WHEN NOT MATCHED THEN INSERT (k, n, s) VALUES (s.k, NULL, upper(s.s))"
        ),
    ),
    (
        ["k", "s"],
        {"when_not_matched": {"insert": "*", "where": "source.k > 3"}},
        (
            "t.k = s.k AND t.s = s.s WHEN NOT MATCHED AND s.k > 3 "
            "THEN INSERT (k, n, s) VALUES (s.k, s.n, s.s)"
        ),
    ),
    (
        ["k"],
        {
            "when_not_matched_by_source": [
                {"delete": "*", "where": "target.n = 1"},
                {"update": {"s": "'gone'"}},
            ]
        },
        (
            "t.k = s.k WHEN NOT MATCHED BY SOURCE AND t.n = 1 THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'gone'"
        ),
    ),
)


@pytest.mark.parametrize(("on", "clauses", "text"), MERGES)
def test_a_merge_is_that_of_duckdb(
    spark: Any, table: rs.Table, on: list[str], clauses: Mapping[str, Any], text: str
) -> None:
    memory = duckdb.connect()
    for name, rows in {"t": table.to_arrow(), "s": SOURCE}.items():
        memory.register("rows", rows).execute(f"CREATE TABLE {name} AS FROM rows")
    memory.execute(f"MERGE INTO t USING s ON {text}")
    commit = table.merge_spark(spark.createDataFrame(SOURCE), on, **clauses)
    expected = memory.sql("SELECT k, n, s FROM t").to_arrow_table()
    assert content(table.to_arrow()) == content(expected)
    assert commit.operation == "merge"
    assert table.version == 5


def test_repeated_rows_of_the_source_delete_once(spark: Any, table: rs.Table) -> None:
    """As DELETE … WHERE k IN (SELECT k FROM source) does."""
    keys = spark.createDataFrame(pa.table({"k": [2, 2, 3, None]}))
    commit = table.merge_spark(keys, ["k"], when_matched="delete")
    assert (commit.rows_written, commit.rows_deleted) == (0, 4)
    assert {row[0] for row in content(table.to_arrow())} == {1, None}
    assert table.merge_spark(keys, ["k"], when_matched="delete").version == commit.version
    assert table.count() == 3


def test_two_rows_of_the_source_for_one_row_are_an_error(spark: Any, table: rs.Table) -> None:
    twice = spark.createDataFrame(rows_of((1, 5, "x"), (1, 6, "y")))
    for clause in (UPDATE, {"delete": "*", "where": "source.n > 0"}):
        with pytest.raises(KeyViolation, match="2 rows of the source with one row of the table"):
            table.merge_spark(twice, ["k"], when_matched=clause)
    assert table.version == 4


def test_a_concurrent_commit_makes_the_merge_run_again(
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariants I7 and 13: both changes are in the result."""
    other, races = rs.open_table(table.uri), [True]
    places_and_rows = merging_places.PlacedMerge.places_and_rows

    def racing(merge: Any) -> Any:
        found = places_and_rows(merge)
        if races:
            races.pop()
            other.update({"n": "n + 100"}, where="k = 1")
        return found

    monkeypatch.setattr(merging_places.PlacedMerge, "places_and_rows", racing)
    one = spark.createDataFrame(rows_of((1, 5, "x")))
    table.merge_spark(one, ["k"], when_matched={"update": {"n": "source.n + target.n"}})
    assert [row[1] for row in content(table.to_arrow()) if row[0] == 1] == [106]


def test_tables_and_columns_that_cannot_be_merged(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    one = spark.createDataFrame(rows_of((1, 5, "x")))
    with pytest.raises(UnknownColumn, match="'x'"):
        table.merge_spark(one, ["x"], when_matched="delete")
    with pytest.raises(InvalidInput, match="on= names no column"):
        table.merge_spark(one, [], when_matched="delete")
    with pytest.raises(SchemaMismatch, match=r"'k' has Spark's type bigint, and 'k' of the source"):
        table.merge_spark(one.selectExpr("'a' AS k"), ["k"], when_matched="delete")
    empty = rs.create_table(str(tmp_path / "empty"), COLUMNS)
    empty.merge_spark(one, ["k"], when_matched="delete", when_not_matched="insert")
    assert content(empty.to_arrow()) == [(1, 5, "x")]
    lie(table, "native_safe", value=False)
    pinned = spark_read(table, spark, None, None)
    with pytest.raises(UnsupportedOperation, match="numbers in files that Spark reads itself"):
        placed_frame(pinned, "place")
