"""Conditions on columns of nanoseconds in Spark, which sees them as microseconds."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of

pytestmark = pytest.mark.spark

NAME = {"ARROW:extension:name": "rowsieve.timestamp_ns.1"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("t", pa.timestamp("ns"), metadata=NAME),
        pa.field("z", pa.timestamp("ns", "UTC"), metadata=NAME),
        pa.field("u", pa.timestamp("us")),
    ]
)
DAY_US = 86_400_000_000
MICROS = [-DAY_US - 1, -DAY_US, -1_000_000, -1, 0, 1, 3_600_000_000, DAY_US, 19_000 * DAY_US, None]
CONDITIONS = [
    "t = timestamp_ntz'1970-01-01 00:00:00'",
    "t < timestamp'1970-01-01 00:00:00'",
    "t >= '1969-12-31 23:59:59.999999'",
    "t > date'1969-12-31'",
    "t IN (timestamp_ntz'1970-01-01 00:00:00.000001', timestamp_ntz'1970-01-02 00:00:00')",
    "t BETWEEN timestamp_ntz'1969-12-31 00:00:00' AND timestamp_ntz'1970-01-01 00:00:00'",
    "t = u",
    "t < timestamp'9999-12-31 00:00:00'",
    "z = timestamp'1970-01-01 00:00:00'",
    "z <= timestamp'1970-01-01 00:00:00Z'",
    "z IN (timestamp'1970-01-01 00:00:00Z')",
    "z < current_timestamp()",
    "z < timestamp'9999-12-31 00:00:00'",
    "year(t) = 1969",
    "hour(z) = 23",
    "date_trunc('day', z) = timestamp'1970-01-01 00:00:00'",
    "cast(t AS date) = date'1969-12-31'",
    "t + INTERVAL 1 DAY > timestamp_ntz'1970-01-01 00:00:00'",
    "unix_micros(z) = -1",
    "coalesce(t, u) IS NULL",
    "t <=> NULL",
]


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    table = rs.create_table(str(tmp_path / uuid.uuid4().hex), SCHEMA, key=["id"])
    for start in range(0, len(MICROS), 3):
        micros = MICROS[start : start + 3]
        ticks = [None if each is None else each * 1_000 for each in micros]
        columns = {
            "id": range(start, start + len(micros)),
            "t": pa.array(ticks, pa.timestamp("ns")),
            "z": pa.array(ticks, pa.timestamp("ns", "UTC")),
            "u": pa.array(micros, pa.timestamp("us")),
        }
        table.upsert(pa.table(columns))
    return table


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_spark_keeps_the_same_rows(spark: Any, table: rs.Table, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = table.to_spark(spark).selectExpr("id", *CONDITIONS)
        wanted = sorted(frame.collect(), key=lambda row: row[0])
        read = table.to_spark(spark, where=CONDITIONS[0])
        assert ids(read) == [row.id for row in wanted if row[1]]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    semantics = Semantics.of_spark(ansi=True, time_zone=zone)
    rows = table.scan(order_by_key=True).to_arrow().combine_chunks().to_batches()[0]
    schema = schema_of(SCHEMA)[0]
    for place, condition in enumerate(CONDITIONS, 1):
        predicate = to_predicate(condition, "spark", schema, semantics)
        found = evaluate(bind(predicate, schema, semantics, now_us=20_000 * DAY_US), rows)
        assert not found.failed.any()
        assert found.true.tolist() == [bool(row[place]) for row in wanted], condition
        assert found.null.tolist() == [row[place] is None for row in wanted], condition


def test_a_row_between_two_microseconds_is_not_one_of_them(spark: Any, table: rs.Table) -> None:
    row = {"id": [99], "t": pa.array([1], pa.timestamp("ns"))}
    table.upsert(pa.table({**row, "z": pa.array([1], pa.timestamp("ns", "UTC")), "u": [None]}))
    for condition in (
        "t = timestamp_ntz'1970-01-01 00:00:00'",
        "z = timestamp'1970-01-01 00:00:00Z'",
    ):
        assert ids(table.to_spark(spark, where=condition)) == [4]
    with pytest.raises(Exception, match="nanoseconds") as found:
        ids(table.to_spark(spark, where="t > timestamp_ntz'1970-01-01 00:00:00'").select("id", "t"))
    assert UnsupportedOperation.__name__ in str(found.value)
