"""Names, types and keys of columns in `merge_spark`: each value goes to its own column, or none."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    InvalidPredicate,
    KeyViolation,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
)

pytestmark = pytest.mark.spark

KEY = uuid.UUID(int=255)


def made(path: Path, rows: pa.Table, *key: str) -> rs.Table:
    return rs.create_table(str(path / uuid.uuid4().hex), rows, key=key)


def content(table: rs.Table) -> list[tuple[Any, ...]]:
    rows = rs.open_table(table.uri).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.fixture
def numbers(tmp_path: Path) -> rs.Table:
    return made(tmp_path, pa.table({"id": [1, 2], "n": [1, 2]}), "id")


@pytest.fixture
def case_sensitive(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


WHOLE: tuple[dict[str, Any], ...] = (
    {"when_matched": {"update": "*", "where": "true"}},
    {"when_matched": "update", "when_not_matched": "insert"},  # an upsert
)


@pytest.mark.parametrize("clauses", WHOLE)
@pytest.mark.usefixtures("case_sensitive")
def test_names_in_two_cases_are_two_columns(
    spark: Any, tmp_path: Path, numbers: rs.Table, clauses: dict[str, Any]
) -> None:
    source = spark.sql("SELECT 2L AS id, 5L AS n, 1L AS ID, 50L AS N")
    numbers.merge_spark(source, ["id"], **clauses)
    assert content(numbers) == [(1, 1), (2, 5)]
    both = made(tmp_path, pa.table({"id": [1, 2], "n": [1, 2], "N": [10, 20]}), "id")
    both.merge_spark(source, ["id"], **clauses)
    assert content(both) == [(1, 1, 10), (2, 5, 50)]
    with pytest.raises(SchemaMismatch, match="has no column 'N'"):
        both.merge_spark(source.drop("N"), ["id"], **clauses)


@pytest.mark.parametrize("clauses", WHOLE)
def test_a_name_that_is_two_columns_of_the_session_is_refused(
    spark: Any, tmp_path: Path, numbers: rs.Table, clauses: dict[str, Any]
) -> None:
    twice = spark.sql("SELECT 2L AS id, 5L AS n, 1L AS N")
    with pytest.raises(SchemaMismatch, match="has the columns n, N for 'n'"):
        numbers.merge_spark(twice, ["id"], **clauses)
    with pytest.raises(SchemaMismatch, match="has the columns id, ID for 'id'"):
        numbers.merge_spark(spark.sql("SELECT 2L id, 2L ID"), ["id"], when_matched="delete")
    both = made(tmp_path, pa.table({"id": [2], "n": [1], "N": [10]}), "id")
    with pytest.raises(UnknownColumn, match=r"'n' is ambiguous.*caseSensitive"):
        both.merge_spark(twice.drop("N"), ["id"], **clauses)


def test_columns_may_have_the_names_that_the_merge_uses(spark: Any, tmp_path: Path) -> None:
    names = ["a.b", "x`y", "source", "target", "_ROWSIEVE_DELETE", "_rowsieve_clause"]
    table = made(tmp_path, pa.table([[1, 2]] * 6, names), "a.b")
    source = spark.createDataFrame(pa.table([[2, 3]] * 6, names))
    table.merge_spark(
        source,
        ["a.b"],
        when_matched={
            "update": {"source": "source.source + target.target", "x`y": "source.`x``y`"}
        },
        when_not_matched={"insert": "*", "where": "source._rowsieve_clause = 3"},
        when_not_matched_by_source="delete",
    )
    assert content(table) == [(2, 2, 4, 2, 2, 2), (3,) * 6]


def test_members_that_are_not_null_are_written_back(spark: Any, tmp_path: Path) -> None:
    member = pa.field("x", pa.int32(), nullable=False)
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("st", pa.struct([member, ("y", pa.string())])),
            ("l", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            ("s", pa.string()),
        ]
    )
    row = {"id": 1, "st": {"x": 1, "y": "a"}, "l": [1], "s": "a"}
    table = made(tmp_path, pa.Table.from_pylist([row], columns), "id")
    one = spark.sql("SELECT 1L AS id")
    table.merge_spark(one, ["id"], when_matched={"update": {"s": "'b'"}})
    assert content(table) == [(1, {"x": 1, "y": "a"}, [1], "b")]
    plus = {"st": "named_struct('x', target.st.x + 1, 'y', 'q')", "l": "array_repeat(7, 2)"}
    table.merge_spark(one, ["id"], when_matched={"update": plus})
    assert content(table) == [(1, {"x": 2, "y": "q"}, [7, 7], "b")]
    null = {"st": "named_struct('x', int(NULL), 'y', 'q')"}
    with pytest.raises(SchemaMismatch, match=r"'st\.x' is NOT NULL"):
        table.merge_spark(one, ["id"], when_matched={"update": null})
    swapped = {"st": "named_struct('y', 'q', 'x', 1)"}
    with pytest.raises(SchemaMismatch, match="build it with named_struct"):
        table.merge_spark(one, ["id"], when_matched={"update": swapped})


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("type_", "key", "value"),
    [
        (pa.int64(), 1, "'x'"),
        (pa.int64(), 1, "1D"),
        (pa.int64(), 1, "true"),
        (pa.int64(), 1, "array(1L)"),
        (pa.string(), "a", "'A' COLLATE UTF8_LCASE"),
        (pa.string(), "1", "1"),
        (pa.date32(), date(2026, 1, 1), "timestamp'2026-01-01 00:00:00'"),
        (pa.timestamp("us"), datetime(2026, 1, 1), "timestamp'2026-01-01 00:00:00'"),
    ],
)
def test_keys_that_spark_compares_by_a_cast_are_refused(
    spark: Any, tmp_path: Path, ansi: str, type_: pa.DataType, key: Any, value: str
) -> None:
    """By a cast, one key matches several keys of the table, or none and all rows are deleted."""
    table = made(tmp_path, pa.table({"k": pa.array([key], type_)}), "k")
    source = spark.sql(f"SELECT {value} AS k")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(SchemaMismatch, match="key column 'k' has Spark's type"):
            table.merge_spark(source, ["k"], when_matched="delete")
        with pytest.raises(SchemaMismatch, match="key column 'k' has Spark's type"):
            table.merge_spark(source, ["k"], when_not_matched_by_source="delete")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert table.count() == 1


def test_keys_of_another_width_are_compared(spark: Any, tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"k": pa.array([1, 2], pa.int32())}), "k")
    table.merge_spark(spark.sql("SELECT 2L + bigint(4e9) * 0 AS k"), ["k"], when_matched="delete")
    table.merge_spark(spark.sql("SELECT 1Y AS k"), ["k"], when_matched="delete")
    assert table.count() == 0


def test_text_that_is_no_uuid_matches_no_row_and_is_refused(spark: Any, tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"u": pa.array([KEY.bytes], pa.uuid())}), "u")
    for text in (KEY.hex, f"{KEY}\n"):
        source = spark.createDataFrame(pa.table({"u": [text, None]}))
        with pytest.raises(
            SchemaMismatch, match=f"'u' is uuid in the table, .* is not a UUID.*{text[:8]}"
        ):
            table.merge_spark(source, ["u"], when_not_matched_by_source="delete")
    source = spark.createDataFrame(pa.table({"u": [str(KEY).upper(), None]}))
    table.merge_spark(source, ["u"], when_not_matched_by_source="delete")
    assert table.count() == 1


def test_the_repeated_key_is_named_as_the_table_has_it(spark: Any, tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"k": [1.0]}), "k")
    zeros = spark.sql("SELECT -0.0D AS k UNION ALL SELECT 0.0D")
    with pytest.raises(KeyViolation, match=r"the key {'k': 0\.0}"):
        table.merge_spark(zeros, ["k"], when_not_matched={"insert": "*", "where": "true"})


@pytest.mark.parametrize(
    ("clause", "error", "message"),
    [
        ({"update": {"n": "sum(source.n)"}}, InvalidPredicate, "invalid expressions: sum"),
        (
            {"delete": "*", "where": "max(source.n) > 0"},
            InvalidPredicate,
            "invalid expressions: max",
        ),
        ({"update": {"n": "rank() OVER (ORDER BY source.n)"}}, InvalidPredicate, "(?i)window"),
        ({"update": {"n": "explode(array(1L))"}}, InvalidPredicate, "(?i)generator"),
        ({"delete": "*", "where": "true; x"}, InvalidPredicate, "(?i)syntax"),
        ({"update": {"n": "1L", "N": "2L"}}, InvalidInput, "two values to a column"),
    ],
)
def test_clauses_are_of_one_row(
    spark: Any, numbers: rs.Table, clause: dict[str, Any], error: type[Exception], message: str
) -> None:
    source = spark.sql("SELECT 2L AS id, 5L AS n")
    with pytest.raises(error, match=message):
        numbers.merge_spark(source, ["id"], when_matched=clause)
    assert rs.open_table(numbers.uri).version == 0


def test_only_frames_of_rows_are_written(spark: Any, numbers: rs.Table) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "1L AS n")
    column = spark.sql("SELECT 1L AS id").id
    writes: list[Callable[[Any], Any]] = [
        lambda frame: numbers.merge_spark(frame, ["id"], when_matched="update"),
        lambda frame: numbers.write_spark(frame, "upsert"),
    ]
    for write in writes:
        with pytest.raises(UnsupportedOperation, match="writeStream"):
            write(stream)
        with pytest.raises(InvalidInput, match="must be a Spark DataFrame, not Column"):
            write(column)


def test_a_client_of_spark_connect_merges(spark: Any, client: Any, numbers: rs.Table) -> None:
    assert spark
    numbers.merge_spark(
        client.sql("SELECT 2L AS id, 5L AS n UNION ALL SELECT 9L, 9L"),
        ["id"],
        when_matched={"update": {"n": "source.n + target.n"}, "where": "source.n > 1"},
        when_not_matched={"insert": {"n": "source.n"}},
        when_not_matched_by_source="delete",
    )
    assert content(numbers) == [(2, 7), (9, 9)]
    one = client.sql("SELECT 9L AS id, 1L AS n")
    for text in ("target.n", "sum(source.n)", "source.zz"):
        with pytest.raises(InvalidPredicate, match=r"Spark refuses n = "):
            numbers.merge_spark(one, ["id"], when_not_matched={"insert": {"n": text}})
    numbers.merge_spark(one, ["id"], when_matched="update", when_not_matched="insert")
    assert content(numbers) == [(2, 7), (9, 1)]


def test_a_column_of_type_time_is_merged_where_the_session_allows_the_type(
    spark: Any, tmp_path: Path
) -> None:
    table = made(tmp_path, pa.table({"id": [1], "at": pa.array([time(1, 2)])}), "id")
    source = spark.createDataFrame([(1,)], "id long")
    try:
        spark.conf.set("spark.sql.timeType.enabled", "false")
        with pytest.raises(UnsupportedOperation, match=r"set spark\.sql\.timeType\.enabled"):
            table.merge_spark(source, ["id"], when_matched="delete")
        assert table.count() == 1
        spark.conf.set("spark.sql.timeType.enabled", "true")
        table.merge_spark(source, ["id"], when_matched="delete")
        assert table.count() == 0
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")
