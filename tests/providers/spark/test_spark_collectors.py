"""The collectors that a table's property names make the statistics of Spark's tasks, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.config import Config
from rowsieve.errors import InvalidInput
from rowsieve.providers.spark.procedure_engine import SparkEngine
from tests.small_tables import KV
from tests.stats.test_named_collectors import Tens, bounds

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("former_config")]

REWRITE = """
    CALL system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))
"""


def test_tasks_collect_by_the_entry_point_of_their_process(spark: Any, tmp_path: Path) -> None:
    rs.configure(Config(collectors={"hundreds": Tens}))  # that of the driver: what it writes shows
    catalog = rs.Catalog(tmp_path / "catalog")
    properties: dict[str, str | float] = {"collectors": "v: hundreds", "inline_bytes": 0}
    table = catalog.create_table("db.t", KV, key=["k"], properties=properties)
    first = spark.range(3).selectExpr("id AS k", "id + 111 AS v")
    table.write_spark(first, "upsert")
    assert bounds(table) == [(100, 200)]
    second = spark.range(2, 5).selectExpr("id AS k", "id + 311 AS v")
    table.merge_spark(second, ["k"], when_matched="update", when_not_matched="insert")
    assert bounds(table) == [(100, 200), (300, 400)]
    assert table.scan("v > 200 AND v < 300").explain().parts_read == 0
    catalog.call(REWRITE, engine=SparkEngine(spark))
    assert bounds(table) == [(100, 400)]
    table.write_spark(first, "overwrite")
    assert bounds(table) == [(100, 200)]


def test_a_task_without_the_collector_fails_and_nothing_is_written(
    spark: Any, tmp_path: Path
) -> None:
    rs.configure(Config(collectors={"tens": Tens}))  # the workers do not have it
    table = rs.create_table(
        tmp_path / "t", KV, key=["k"], properties={"collectors": "v: tens", "inline_bytes": 0}
    )
    with pytest.raises(InvalidInput, match=r"'tens'.*registered are: hundreds"):
        table.write_spark(spark.range(3).selectExpr("id AS k", "id AS v"), "upsert")
    assert table.refresh() == 0
    assert table.count() == 0
