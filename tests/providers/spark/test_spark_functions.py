"""Functions give what Spark gives, all of them in few queries."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.bridges.sql.test_engine_functions import COMMON, OWN, TABLE, alike, ours

pytestmark = pytest.mark.spark

TEXTS = [*COMMON, *OWN["spark"]]


@pytest.fixture(scope="module")
def columns(spark: Any) -> list[list[Any]]:
    """What Spark gives for each text, as columns."""
    spark.createDataFrame(TABLE).coalesce(1).createOrReplaceTempView("engine_functions")
    selected = ", ".join(f"{text} AS c{place}" for place, text in enumerate(TEXTS))
    found: pa.Table = spark.sql(f"SELECT {selected} FROM engine_functions").toArrow()
    return [[local(cell) for cell in column.to_pylist()] for column in found.columns]


def local(cell: Any) -> Any:
    """Instants as the clock of the session, which is UTC."""
    return cell.replace(tzinfo=None) if isinstance(cell, datetime.datetime) else cell


@pytest.mark.parametrize("place", range(len(TEXTS)), ids=TEXTS)
def test_a_function_returns_the_values_of_spark(place: int, columns: list[list[Any]]) -> None:
    values, failed = ours(TEXTS[place], "spark", TABLE)
    assert not any(failed)
    assert all(map(alike, columns[place], values)), (columns[place], values)
