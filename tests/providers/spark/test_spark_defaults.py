"""Columns that an INSERT of our `sql` does not name: each gets its default, whatever its type."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.spark import sql

pytestmark = pytest.mark.spark

MOMENT = datetime.datetime(2020, 1, 1, 0, 30, 0, 1)
DEFAULTS = {
    "local": ("timestamp", MOMENT),
    "julian": ("timestamp", datetime.datetime(1582, 10, 10)),
    "last": ("timestamp", datetime.datetime.max),
    "instant": ("timestamptz", MOMENT.replace(tzinfo=datetime.UTC)),
    "nanos": ("timestamp_ns", pa.scalar(5000, pa.timestamp("ns"))),
    "day": ("date", datetime.date(1, 1, 1)),
    "uuid": ("uuid", uuid.UUID(int=5)),
    "large": ("uint64", 2**64 - 1),
    "decimal": ("decimal(38,10)", decimal.Decimal("1234567890123456789012345678.0123456789")),
    "numeric": ("numeric", decimal.Decimal("1.50")),
    "bytes": ("binary", b"\x00\xff"),
    "text": ("string", 'it\'s "x" \\ é\n'),
    "infinite": ("float64", float("-inf")),
    "nothing": ("int32", None),
}


@pytest.fixture
def far_zone(spark: Any) -> Iterator[None]:
    """The zone of the session is none in which tests run."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    yield
    spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.usefixtures("far_zone")
def test_columns_without_a_value_have_their_defaults(spark: Any, tmp_path: Path) -> None:
    lake = rs.Catalog(str(tmp_path))
    table = lake.create_table("db.t", pa.table({"id": [1]}), key=["id"])
    for name, (type_, default) in DEFAULTS.items():
        table.add_column(name, type_, default=default)
    sql(spark, "INSERT INTO db.t (id) SELECT id FROM range(2, 4)", lake)
    sql(spark, "INSERT INTO db.t (id, text) VALUES (4, 'it''s \"x\" \\\\ é\\n')", lake)
    rows = lake.open_table("db.t").scan(order_by_key=True).to_arrow().drop_columns("id").to_pylist()
    assert len(rows) == 4
    assert rows[1:] == rows[:1] * 3  # the first row is older than the columns
