"""Statements on procedures and views of a catalog's tables, in a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.providers.spark import sql
from rowsieve.providers.spark.statements import create_views

pytestmark = pytest.mark.spark


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "lake")
    for name in ("db.flights", "other.flights"):
        table = catalog.create_table(name, pa.schema([("id", pa.int64())]), ["id"])
        for i in range(5):
            table.upsert(pa.table({"id": [i]}))
    return catalog


def test_statements_run_in_spark_or_on_its_workers(spark: Any, catalog: rs.Catalog) -> None:
    views = create_views(spark, catalog)
    assert views == {"db_flights": "db.flights", "other_flights": "other.flights"}
    assert sql(spark, "SELECT count(*) AS n FROM db_flights").first().n == 5
    call = "CALL system.rewrite_data_files(table => 'db.flights', where => 'id % 2 >= 0')"
    assert sql(spark, call, catalog).first().rewritten_data_files_count == 5
    optimize = "ALTER TABLE other.flights EXECUTE optimize(file_size_threshold => '1GB')"
    assert sql(spark, optimize, catalog).first().added_data_files_count == 1
    (line, *_) = sql(spark, f"EXPLAIN {optimize}", catalog).collect()
    assert line.plan.startswith("Output [rewritten_data_files_count")
    names = [row.procedure for row in sql(spark, "SHOW PROCEDURES", catalog).collect()]
    assert {"rewrite_data_files", "register_table"} <= set(names)
    described = sql(spark, "DESCRIBE PROCEDURE system.register_table", catalog).collect()
    assert [row.parameter for row in described] == ["schema", "table_name", "uri"]
    assert create_views(spark, catalog, "db") == {"flights": "db.flights"}
    assert spark.sql("SELECT sum(id) AS n FROM flights").first().n == 10
    with pytest.raises(InvalidInput, match="needs a catalog"):
        sql(spark, call)


def test_views_of_one_name_are_refused(spark: Any, catalog: rs.Catalog) -> None:
    catalog.create_table("db.a_b", pa.table({"id": [1]}))
    catalog.create_table("db_a.b", pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="two tables would have the view db_a_b"):
        create_views(spark, catalog)
