"""`${name}` in Spark's SQL text, which Spark replaces by a setting even inside a string."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.spark_columns import from_spark_column
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of

TEXTS = ["${x}", "a${env:HOME}b", "${", "$", "${a b}", "$${x}}", "\\${x}", "'${x}"]
ROWS = pa.record_batch({"s": pa.array(TEXTS), "${x}": range(len(TEXTS))})
SCHEMA, _ = schema_of(ROWS.schema)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("s = '${x}'", 5),
        ("`${x}` = 1", 1),
        ("s IN ('a', '${env:HOME}')", 12),
        ("s LIKE '%${x}'", 9),
    ],
)
def test_text_with_a_variable_is_refused(text: str, offset: int) -> None:
    with pytest.raises(InvalidPredicate, match=r"replaces it by a setting") as raised:
        rs.translate(text, "spark", target="rowsieve", schema=ROWS.schema, strict=True)
    assert raised.value.position == offset
    for dialect in ("postgres", "duckdb", "datafusion", "trino"):
        other = text.replace("`", '"')
        assert rs.translate(other, dialect, target="rowsieve", schema=ROWS.schema).expression


def test_braces_that_are_no_variable_are_read() -> None:
    for text in ("s = '${a b}'", "s = '${'", "s = '${}'", "s = '$ {x}'", r"s = '\u0024{x}'"):
        assert rs.translate(text, "spark", target="rowsieve", schema=ROWS.schema).expression


def conditions() -> list[str]:
    quoted = ["'" + text.replace("'", "''") + "'" for text in TEXTS]
    return [*(f"s = {text}" for text in quoted), f"s IN ({', '.join(quoted)})", "s LIKE '%${x}%'"]


def bound(predicate: Predicate | None) -> BoundPredicate:
    assert predicate is not None
    return bind(predicate, SCHEMA, Semantics.SPARK)


@pytest.mark.parametrize("where", conditions())
def test_written_text_has_no_variable_and_reads_back(where: str) -> None:
    text = rs.translate(where, "duckdb", target="spark", schema=ROWS.schema, strict=True).expression
    back = rs.translate(text, "spark", target="rowsieve", schema=ROWS.schema, strict=True)
    ours = rs.translate(where, "duckdb", target="rowsieve", schema=ROWS.schema, strict=True)
    assert str(back.expression) == str(ours.expression)


def test_a_name_with_a_variable_is_not_written_for_spark() -> None:
    found = rs.translate('"${x}" = 1', "duckdb", target="spark", schema=ROWS.schema)
    assert found.expression is None
    assert "replaces" in found.notes[0]


@pytest.mark.spark
def test_spark_keeps_the_rows_that_the_written_text_keeps(spark: Any) -> None:
    frame = spark.createDataFrame(pa.Table.from_batches([ROWS]))
    for where in conditions():
        text = rs.translate(where, "duckdb", target="spark", schema=ROWS.schema).expression
        column = rs.translate(
            where, "duckdb", target="spark_columns", schema=ROWS.schema
        ).expression
        ours = rs.translate(where, "duckdb", target="rowsieve", schema=ROWS.schema).expression
        kept = pa.Table.from_batches([ROWS]).filter(pa.array(matching(bound(ours), ROWS)))
        for condition in (text, column):
            assert frame.where(condition).toArrow()["s"].to_pylist() == kept["s"].to_pylist(), where
    assert frame.where("s = '${x}'").count() == 0  # Spark asks for an empty text


@pytest.mark.spark
def test_columns_of_constants_have_no_variables(spark: Any) -> None:
    from pyspark.sql import functions as f

    frame = spark.createDataFrame(pa.Table.from_batches([ROWS]))
    for column in (f.col("s") == "${x}", f.col("`${x}`") == 3, f.col("s").isin("${", "${x}")):
        ours = matching(bound(from_spark_column(column, SCHEMA).exact()), ROWS)
        assert frame.where(column).count() == ours.sum() > 0
