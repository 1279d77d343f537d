"""Spark's JVM is asked for a class once, by its full name."""

from __future__ import annotations

from typing import Any

import pytest

from rowsieve.bridges.spark_columns import from_spark_column, java_classes
from rowsieve.bridges.spark_columns.java_classes import java_class, spark_class
from tests.bridges.spark_columns.nasty import SCHEMA

pytestmark = pytest.mark.spark


def test_the_same_condition_asks_for_no_class_again(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.java_gateway import JavaPackage, JVMView
    from pyspark.sql import functions as f

    def read() -> None:
        from_spark_column((f.col("i") > 1) | f.col("i").isin(*range(40)), SCHEMA).exact()

    read()
    ours = set(java_classes._FOUND[spark._jvm])
    for name in (ours | {"org"}) & set(vars(spark._jvm)):  # where `tests.conftest` keeps them, too
        monkeypatch.delitem(vars(spark._jvm), name)
    asked: list[str] = []
    for kind in (JVMView, JavaPackage):
        find = kind.__getattr__

        def noted(self: Any, name: str, find: Any = find) -> Any:
            asked.append(name)
            return find(self, name)

        monkeypatch.setattr(kind, "__getattr__", noted)
    read()
    assert "org.apache.spark.sql.Column" in ours
    assert ours.isdisjoint(asked)
    assert "org" not in asked


def test_a_class_that_is_missing_is_asked_for_again(spark: Any) -> None:
    from py4j.java_gateway import JavaPackage

    assert isinstance(java_class(spark._jvm, "org.apache.spark.sql.Nothing"), JavaPackage)
    missing = [java_class(spark._jvm, "org.apache.Nothing") for _ in range(2)]
    assert missing[0] is not missing[1]
    assert spark_class(spark, "Column") is spark_class(spark, "Column")
