"""Every function that the engines share, written for Spark, gives what Spark gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Operand
from tests.bridges.sql.spelled import CALLS, OTHERS, ours, table, written
from tests.bridges.sql.test_engine_functions import alike
from tests.providers.spark.test_spark_functions import local

pytestmark = pytest.mark.spark

ROWS = table()


def _spoken() -> list[tuple[str, Operand]]:
    found = []
    for operands in (*CALLS.values(), *OTHERS.values()):
        for operand in operands:
            try:
                found.append((written(operand, "spark"), operand))
            except UnsupportedOperation:
                continue
    return found


SPOKEN = _spoken()


@pytest.fixture(scope="module")
def columns(spark: Any) -> list[list[Any]]:
    """What Spark gives for each text, on the rows where we do not fail."""
    spark.createDataFrame(ROWS).coalesce(1).createOrReplaceTempView("spelled")
    selected = ", ".join(
        f"CASE WHEN try_row[{place}] THEN {text} END AS c{place}"
        for place, (text, _) in enumerate(SPOKEN)
    )
    good = [[not bad for bad in ours(operand, "spark", ROWS)[1]] for _, operand in SPOKEN]
    rows = ROWS.append_column("try_row", pa.array([list(row) for row in zip(*good, strict=True)]))
    spark.createDataFrame(rows).coalesce(1).createOrReplaceTempView("spelled")
    found: pa.Table = spark.sql(f"SELECT {selected} FROM spelled").toArrow()
    return [[local(cell) for cell in column.to_pylist()] for column in found.columns]


@pytest.mark.parametrize("place", range(len(SPOKEN)), ids=[text for text, _ in SPOKEN])
def test_a_function_returns_the_values_of_spark(place: int, columns: list[list[Any]]) -> None:
    values, _ = ours(SPOKEN[place][1], "spark", ROWS)
    assert len(columns[place]) == len(values)
    wrong = [p for p in zip(columns[place], values, strict=True) if not alike(*p)]
    assert not wrong, wrong
