"""The classes of Catalyst that are spelled are those that the installed Spark makes."""

from __future__ import annotations

from typing import Any

import pytest

from rowsieve.bridges.spark_columns import classic
from rowsieve.bridges.translation import Exactness
from tests.profiles import IS_DEEP


@pytest.mark.spark
def test_every_class_is_one_of_the_installed_spark(spark: Any) -> None:
    places = ("expressions/", "analysis/", "expressions/aggregate/")
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def is_known(kind: str) -> bool:
        paths = [f"org/apache/spark/sql/catalyst/{place}{kind}.class" for place in places]
        return any(loader.getResource(path) is not None for path in paths)

    kinds = [row.foreign for row in classic.ROWS if row.reads is Exactness.EXACT]
    assert [kind for kind in kinds if not is_known(kind)] == []


def test_no_class_has_two_rows() -> None:
    kinds = [row.foreign for row in classic.ROWS]
    assert len(kinds) == len(set(kinds))


def test_classes_that_are_not_exact_have_a_note() -> None:
    assert all(row.note for row in classic.ROWS if row.reads is not Exactness.EXACT)


@pytest.mark.spark
def test_every_function_of_pyspark_is_read_or_refused(spark: Any) -> None:
    """None of them is an error of another kind, whatever it is given."""
    from pyspark.sql import functions as f

    from rowsieve.bridges.spark_columns import from_spark_column
    from tests.bridges.spark_columns.nasty import SCHEMA

    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = str(registry.listFunction().mkString(" ")).split()
    assert len(names) > 400
    short = sorted({name.rpartition(".")[2] for name in names})
    for name in short if IS_DEEP else short[::5]:
        column = f.call_function(f"`{name}`", f.col("i"))
        found = from_spark_column(column, SCHEMA)
        assert found.exactness is Exactness.EXACT or found.notes, name
