"""Long lists cross between Spark and here in one piece, and keep the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.bridges.spark_columns import classic, from_spark_column, to_spark_column
from rowsieve.bridges.spark_columns.long_lists import SHORT
from rowsieve.predicate import ir
from rowsieve.types.logical import Int, String, Time
from tests.bridges.spark_columns.nasty import (
    BATCH,
    FLAT,
    SCHEMA,
    every_other,
    in_driver,
    in_spark,
    ours,
    theirs,
)
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark

MANY = 1_000_000


def test_lists_of_every_type_keep_the_rows(spark: Any) -> None:
    lists = [every_other(field.name, SHORT + 1, null=bool(at % 2)) for at, field in enumerate(FLAT)]
    wanted: list[ir.Predicate] = [*lists, *map(ir.Not, lists)]
    columns = [to_spark_column(predicate, SCHEMA).exact() for predicate in wanted]
    rows = [ours(predicate) for predicate in wanted]
    for frame in (in_spark(spark), in_driver(spark)):
        for predicate, found, mine in zip(wanted, theirs(frame, columns), rows, strict=True):
            assert found == mine, predicate
    for column, mine in zip(columns[: len(lists)], rows[: len(lists)], strict=True):
        assert ours(from_spark_column(column, SCHEMA).exact()) == mine
        assert mine


def test_a_list_of_times_passes_both_ways(spark: Any) -> None:
    array = pa.array([n * 250_000_001 for n in range(2 * SHORT)]).view(pa.time64("us"))
    schema = SCHEMA.__class__(0, (FLAT[0].__class__(1, "at", Time()),))
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        listed = ir.InList(ir.Column("at"), ir.ValueSet(array, Time()))
        read = from_spark_column(to_spark_column(listed, schema).exact(), schema).exact()
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")
    assert isinstance(read, ir.InList)
    assert read.values.ordered.equals(array)


NUMBERS = ", ".join(map(str, range(-SHORT, SHORT)))
DAYS = ", ".join(f"date_add(DATE '2024-02-01', {number})" for number in range(2 * SHORT))
LETTERS = ", ".join(f"'{chr(96 + number)}'" for number in range(1, 2 * SHORT))
TEXTS = [
    f"i IN ({NUMBERS})",
    f"k NOT IN ({NUMBERS}, NULL)",
    f"i8 IN ({NUMBERS}, 1.5)",
    f"u64 IN ({NUMBERS}, 18446744073709551615)",
    f"k + 0 IN ({NUMBERS}, 1 + 11)",
    f"f NOT IN ({NUMBERS}, -0.0D, double('NaN'))",
    f"s IN ({LETTERS}, 'SS', NULL)",
    f"CASE WHEN i IN ({NUMBERS}) THEN 1 ELSE 2 END IN ({NUMBERS})",
    f"NOT (i IN ({NUMBERS}) AND (b OR small NOT IN ({NUMBERS})))",
    f"coalesce(i IN ({NUMBERS}), b)",
    f"day IN ({DAYS})",
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:24])
def test_long_lists_of_constants_are_read_as_spark_means_them(spark: Any, text: str) -> None:
    from pyspark.sql import functions as f

    column = f.expr(text)
    read = from_spark_column(column, SCHEMA).exact()
    assert [ours(read)] == theirs(in_spark(spark), [column])


def test_a_list_with_a_column_is_read_item_by_item(spark: Any) -> None:
    from pyspark.sql import functions as f

    column = f.expr(f"i IN ({NUMBERS}, small)")
    read = from_spark_column(column, SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert [ours(read)] == theirs(in_spark(spark), [column])


def test_a_list_with_a_constant_that_fails_fails_as_in_spark(spark: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    column = f.expr(f"i IN ({NUMBERS}, CAST('x' AS int))")
    read = from_spark_column(column, SCHEMA).exact()
    assert ours(read) is None
    with pytest.raises(PySparkException):
        theirs(in_spark(spark), [column])


def test_a_set_is_compared_in_its_own_type(spark: Any) -> None:
    listed = every_other("u64", SHORT + 1, null=False)  # decimals in Spark, in this frame bigints
    column = to_spark_column(listed, SCHEMA).exact()
    narrow = in_spark(spark).selectExpr("try_cast(u64 AS bigint) AS u64")
    cells = BATCH.column("u64").to_pylist()
    fits = [row for row, cell in enumerate(cells) if cell is not None and cell < 2**63]
    wanted = sorted(set(ours(listed) or ()) & set(fits))
    assert theirs(narrow, [column]) == [wanted]
    assert wanted


@pytest.mark.parametrize("count", [SHORT, SHORT + 1])
def test_only_long_lists_become_sets(spark: Any, count: int) -> None:
    from pyspark.sql import functions as f

    column = f.col("k").isin(list(range(count)))
    ((_, node),) = classic.conditions(column)
    assert isinstance(node, classic.Node)
    assert len(node.children) == (2 if count > SHORT else count + 1)
    written = to_spark_column(from_spark_column(column, SCHEMA).exact(), SCHEMA).exact()
    assert written._jc.node().getClass().getSimpleName() == (
        "ExpressionColumnNode" if count > SHORT else "SqlExpression"
    )


def test_a_list_inside_a_choice_is_one_list(spark: Any) -> None:
    from pyspark.sql import functions as f

    column = f.when(f.col("i").isin(list(range(2 * SHORT))), f.lit(1)).otherwise(f.lit(0)) == 1
    read = from_spark_column(column, SCHEMA).exact()
    (case,) = [node for node in _operands(read) if isinstance(node, ir.Case)]
    (branch,) = case.branches
    assert isinstance(branch[0], ir.InList)
    assert len(branch[0].values) == 2 * SHORT


def test_a_million_values_pass_both_ways(spark: Any) -> None:
    count = MANY if IS_DEEP else MANY // 20  # not all: the session has a gigabyte for all tests
    numbers = ir.ValueSet(pa.array(np.arange(count) * 7), Int(64))
    texts = ir.ValueSet(pa.array([f"n{n}" for n in range(count)]), String())
    for name, values in (("k", numbers), ("s", texts)):
        column = to_spark_column(ir.InList(ir.Column(name), values), SCHEMA).exact()
        read = from_spark_column(column, SCHEMA).exact()
        assert isinstance(read, ir.InList)
        assert read.operand == ir.Column(name)
        assert read.values.ordered.equals(values.ordered)


def _operands(predicate: Any) -> list[Any]:
    return [predicate.left, predicate.right]
