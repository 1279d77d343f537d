"""The table names everything that the installed Spark has, and nothing that it lacks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rowsieve.bridges.spark_columns import functions, read, table
from rowsieve.bridges.translation import Exactness, Row

# A builder by the name of a function, where the class that it builds has another.
BUILT = {
    "CurDate": "CurrentDate",
    "DatePart": "Extract",
    "LPad": "StringLPad",
    "RPad": "StringRPad",
}


@pytest.mark.spark
def test_every_function_of_the_installed_spark_is_listed(spark: Any) -> None:
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = registry.listFunction().iterator()
    unlisted = set()
    while names.hasNext():
        name = names.next()
        found = registry.lookupFunction(name)
        if not found.isDefined():
            continue
        kind = re.sub(r"(Expression)?Builder$", "", found.get().getClassName().rpartition(".")[2])
        if BUILT.get(kind, kind) not in table.ROWS:
            unlisted.add(f"{name.funcName()}: {kind}")
    assert not unlisted


@pytest.mark.spark
def test_every_class_is_one_of_the_installed_spark(spark: Any) -> None:
    places = (
        *("expressions.", "expressions.variant.", "expressions.json.", "expressions.xml."),
        *("expressions.aggregate.", "expressions.url.", "expressions.st.", "plans.logical."),
        *("analysis.", "expressions.csv.", "expressions.vector.", "expressions.objects."),
    )
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def known(kind: str) -> bool:
        for place in places:
            for suffix in ("", "ExpressionBuilder", "Builder"):
                path = f"org/apache/spark/sql/catalyst/{place}{kind}{suffix}".replace(".", "/")
                if loader.getResource(f"{path}.class") is not None:
                    return True
        return False

    read_here = [row.foreign for row in table.EXPRESSIONS if row.reads is Exactness.EXACT]
    assert [kind for kind in read_here if not known(kind)] == []


@pytest.mark.parametrize("row", table.EXPRESSIONS, ids=lambda row: row.foreign)
def test_what_is_not_exact_says_why(row: Row) -> None:
    if row.reads is not Exactness.EXACT:
        assert row.note


def test_no_class_stands_twice() -> None:
    assert len(table.ROWS) == len(table.EXPRESSIONS)


def test_what_is_read_has_a_reader_or_stands_for_something() -> None:
    handled = set(read.NODES) | set(functions.FUNCTIONS)
    exact = {row.foreign: row for row in table.EXPRESSIONS if row.reads is Exactness.EXACT}
    assert handled <= set(exact)
    assert {name for name, row in exact.items() if row.ours == "what Spark puts for it"} >= set(
        exact
    ) - handled
