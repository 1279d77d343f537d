"""What Spark really pushes to a Python data source: each filter of it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql.datasource import In, Not

from rowsieve.bridges.spark_columns import to_spark_column
from rowsieve.bridges.spark_columns.long_lists import SHORT
from rowsieve.bridges.spark_filters import FILTERS, from_spark_filters
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import Column, InList, ValueSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Int
from tests.bridges.spark_columns.nasty import BATCH
from tests.bridges.spark_columns.nasty import SCHEMA as NASTY
from tests.bridges.spark_pushed import SCHEMA, PushedSource

pytestmark = pytest.mark.spark

Arriving: TypeAlias = Callable[[Any], list[list[str]]]
# One condition of each column, so that Spark keeps them all: they say nothing of one another.
TEXTS = [
    *("NOT b", "i IN (1, 2, NULL)", "j NOT IN (3, 4, 5)", "k <=> 7", "f >= double('NaN')"),
    *("g <> float('1.5')", "d < 1.5", "s LIKE 'a%' AND s LIKE '%b' AND s LIKE '%c%'", "y = X'FF'"),
    *("t IS NULL", "day > DATE '2024-02-29'", "n <= TIMESTAMP_NTZ '2024-03-31 02:30:00'"),
    *("ts = TIMESTAMP '2024-03-31 02:30:00Z'", "st.x = 1"),
]


@pytest.fixture
def pushed(spark: Any, tmp_path: Path) -> Iterator[Arriving]:
    """The filters that arrive for a condition: each, how exactly it is read, and why not."""
    spark.dataSource.register(PushedSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")

    def arriving(condition: Any) -> list[list[str]]:
        path = tmp_path / f"filters {len(list(tmp_path.iterdir()))}"
        path.touch()
        source = spark.read.format("pushed").option("path", str(path)).load()
        assert source.where(condition).collect() == []
        return [line.split("\t") for line in path.read_text().splitlines()]

    yield arriving
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_every_filter_that_arrives_is_read(pushed: Arriving) -> None:
    from pyspark.sql import functions as f

    arrived = pushed(f.expr(" AND ".join(TEXTS)))
    assert [line for line in arrived if line[1:] != ["exact"]] == []
    shown = "\n".join(line[0] for line in arrived)
    assert [row.foreign for row in FILTERS if f"{row.foreign}(" not in shown] == []
    assert [field.name for field in SCHEMA if f"('{field.name}'," not in shown] == []


def test_a_long_list_that_is_written_arrives_as_one_filter(pushed: Arriving) -> None:
    numbers = ValueSet(pa.array([None, *range(5 * SHORT)], pa.int64()), Int(64))
    days = ValueSet(pa.array(range(2 * SHORT), pa.int32()).view(pa.date32()), Date())
    for listed in (InList(Column("k"), numbers), InList(Column("day"), days)):
        arrived = pushed(to_spark_column(listed, SCHEMA).exact())
        (members,) = [line for line in arrived if line[0].startswith("In(")]
        assert members[1:] == ["exact"]
        assert members[0].count(",") > len(listed.values)


@pytest.mark.parametrize("ansi", [True, False])
def test_in_with_an_empty_list_is_pushed_only_with_its_rule_off(
    spark: Any, pushed: Arriving, *, ansi: bool
) -> None:
    from pyspark.sql import functions as f

    rule = "org.apache.spark.sql.catalyst.optimizer.OptimizeIn"
    nothing, anything = f.col("i").isin([]), ~f.col("i").isin([])
    rows = spark.createDataFrame([(1,), (None,)], "i int")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        usual = pushed(nothing) + pushed(anything)
        spark.conf.set("spark.sql.optimizer.excludedRules", rule)
        arrived = [line for line in pushed(anything) if "In(" in line[0]]
        kept = rows.where(anything).count()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.conf.unset("spark.sql.optimizer.excludedRules")
    assert [line for line in usual if "In(" in line[0]] == []
    assert [line[0] for line in arrived] == ["Not(child=In(attribute=('i',), value=[]))"]
    assert arrived[0][1] == "unsupported"
    assert "ansi=" in arrived[0][2]
    assert kept == (2 if ansi else 1)
    read = from_spark_filters([Not(In(("i",), ()))], NASTY, ansi=ansi).exact()
    found = matching(bind(read, NASTY, Semantics.SPARK), BATCH).sum()
    assert found == BATCH.num_rows - (0 if ansi else BATCH.column("i").null_count)
