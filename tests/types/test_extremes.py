"""Every type with an order, over its extreme values: kept, sorted, compared and skipped by.

`EXTREMES` has the values of each type in strictly increasing order. Rows are spread over parts out
of order.
"""

from __future__ import annotations

import decimal
import math
import random
import uuid
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.errors import SchemaMismatch
from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import from_scalar, int_range
from rowsieve.types.encodings import arrow_field, arrow_type
from rowsieve.types.interval_bytes import encoded
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Enum,
    Field,
    Float,
    Int,
    Interval,
    LogicalType,
    Nanos,
    Numeric,
    String,
    Time,
    Timestamp,
    Uuid,
    is_ordered,
    type_name,
)
from tests.strategies import DAY_US, arrow_array, as_decimal

D = decimal.Decimal
_INT64 = 2**63 - 1
_MOMENTS = [-(2**63), -62_135_596_800_000_001, -1, 0, 1, 253_402_300_800_000_000, _INT64]
_NANOS = [-(2**63), -(2**63) + 1, -1_001, -1_000, -1, 0, 1, 999, 1_000, _INT64 - 1, _INT64]
_FLOATS = [-math.inf, -3.4e38, -1.0, -1.5e-45, 0.0, 1.5e-45, 1.0, 3.4e38, math.inf, math.nan]
_WIDE = [D(-(10**38 - 1)), D(-1), D(0), D(1), D(10**38 - 1)]
_TEXTS = ["", "\0", "a", "a\0", "aa", "\x7f", "é", "\ud7ff", "\ue000", "\U0010ffff" * 3]
_LABELS = ("z", "", "\U0010ffff", "a", "it's, \u00e9", "B", "b" * 255, " ")
EXTREMES: list[tuple[LogicalType, list[Any]]] = [
    (Bool(), [False, True]),
    *[
        (Int(bits, signed), sorted({*int_range(Int(bits, signed)), 0, 1, 2 ** (bits - 1) - 2}))
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
    ],
    (Float(32), _FLOATS),
    (Float(64), [-math.inf, -1.7e308, -5e-324, 0.0, 5e-324, 2.0**53, 1.7e308, *_FLOATS[-2:]]),
    (Decimal(38, 0), _WIDE),
    (Decimal(38, 38), [as_decimal(int(value), 38) for value in _WIDE]),
    (Decimal(5, 2), [D("-999.99"), D("-0.01"), D(0), D("0.01"), D("999.99")]),
    (String(), [*_TEXTS, "\U0010ffff" * 100]),
    (Binary(), [b"", b"\0", b"\0\0", b"a", b"\x7f", b"\x80", b"\xff" * 3, b"\xff" * 300]),
    (Date(), [-(2**31), -719_163, -719_162, -1, 0, 2_932_896, 2_932_897, 2**31 - 1]),
    (Time(), [0, 1, 43_200_000_000, DAY_US - 1]),
    (Timestamp(), _MOMENTS),
    (Timestamp(utc=True), _MOMENTS),
    (Nanos(), _NANOS),
    (Nanos(utc=True), _NANOS),
    (Uuid(), [uuid.UUID(int=number).bytes for number in (0, 1, 2**64, 2**127, 2**128 - 1)]),
    (
        Interval(),
        [
            encoded(*parts)
            for parts in (
                (-(2**31), -(2**31), -(2**63)),
                (-1, 0, 0),
                (0, -29, 0),
                (0, 0, 0),
                (0, 0, 1),
                (1, 0, -1),
                (0, 30, 0),
                (2**31 - 1, 2**31 - 1, _INT64),
            )
        ],
    ),
    (
        Numeric(),
        [
            "-Infinity",
            "-1e400",
            "-1e-16383",
            "0",
            "1e-400",
            "0.1",
            "1",
            "9" * 60,
            "1e131071",
            "NaN",
        ],
    ),
    (Enum(_LABELS), list(_LABELS)),
]
_TOGETHER = pytest.mark.parametrize(
    ("type_", "values"), [pytest.param(*case, id=type_name(case[0])) for case in EXTREMES]
)


def _stored(values: list[Any], type_: LogicalType) -> pa.Array:
    if isinstance(type_, Float):
        return pa.array(values, pa.float64()).cast(arrow_type(type_))
    return arrow_array(values, type_)


def _spread(values: pa.Array, type_: LogicalType, key: str) -> rs.Table:
    """A table with a row per value, `id` its place in the order, and a NULL; three rows a part."""
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), arrow_field(Field(9, "c", type_))]
    )
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", schema, key=[key])
    places = list(range(len(values)))
    random.Random(len(values)).shuffle(places)
    if key == "id":
        places.append(len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    for start in range(0, len(places), 3):
        taken = pa.array(places[start : start + 3])
        table.upsert(pa.table({"id": taken, "c": values.take(taken)}))
    return table


@_TOGETHER
def test_extremes_are_kept_and_compare_as_they_sort(type_: LogicalType, values: list[Any]) -> None:
    stored = _stored(values, type_)
    table = _spread(stored, type_, "id")
    kept = table.scan(order_by_key=True).to_arrow().column("c").combine_chunks()
    assert _plain(kept.slice(0, len(stored))) == _plain(stored)
    for place, value in enumerate(stored):
        literal = ir.Literal(from_scalar(value, type_).value, type_)
        below, upto = list(range(place)), list(range(place + 1))
        above = list(range(place + 1, len(stored)))
        for op, wanted in (("<", below), ("=", [place]), (">", above), ("<=", upto)):
            where = ir.Comparison(ir.ComparisonOp(op), ir.Column("c"), literal)
            for pruning in ("on", "off"):
                found = table.scan(where=where, pruning=pruning).to_arrow()
                assert sorted(found.column("id").to_pylist()) == wanted, (op, place, pruning)
    assert table.scan(where="c IS NULL").to_arrow().column("id").to_pylist() == [len(stored)]


@_TOGETHER
def test_keys_sort_as_their_values(type_: LogicalType, values: list[Any]) -> None:
    stored = _stored(values, type_)
    if not is_ordered(type_):
        with pytest.raises(rs.errors.RowsieveError, match="key"):
            _spread(stored, type_, "c")
        return
    table = _spread(stored, type_, "c")
    found = table.scan(order_by_key=True).to_arrow()
    wanted = list(range(len(stored)))
    if isinstance(type_, Enum):  # a key sorts as text
        wanted.sort(key=lambda place: values[place].encode())
    assert found.column("id").to_pylist() == wanted
    table.upsert(pa.table({"id": [77], "c": stored.slice(1, 1)}))
    assert table.scan().count() == len(stored)


@_TOGETHER
def test_engines_get_the_extremes(type_: LogicalType, values: list[Any]) -> None:
    stored = _stored(values, type_)
    table = _spread(stored, type_, "id")
    rows = table.scan(order_by_key=True).to_arrow().column("c").combine_chunks()
    dataset = table.to_dataset().to_table().sort_by("id").column("c").combine_chunks()
    context = SessionContext()
    context.register_table("t", table)
    seen = context.sql("SELECT c FROM t ORDER BY id").to_arrow_table().column("c")
    assert _plain(dataset) == _plain(rows)
    assert _plain(seen.combine_chunks().cast(rows.type)) == _plain(rows)


def _plain(values: pa.Array) -> str:
    """The values in a form that has NaN equal to itself, and times of any year."""
    type_ = values.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        values = values.cast(pa.int32() if pa.types.is_date(type_) else pa.int64())
    return repr(values.to_pylist())


@pytest.mark.parametrize("micros", [-1, DAY_US, 2 * DAY_US])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_time_outside_of_a_day_is_refused(unit: str, micros: int) -> None:
    ticks = micros * {"us": 1, "ns": 1_000}[unit]
    values = pa.array([0, ticks], pa.int64()).view(pa.time64(unit))
    table = rs.create_table(
        f"memory:///{uuid.uuid4().hex}", pa.schema({"id": pa.int64(), "c": pa.time64("us")}), ["id"]
    )
    with pytest.raises(SchemaMismatch, match=r"column 'c'.*within a day.*row 1"):
        table.upsert(pa.table({"id": [1, 2], "c": values}))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Rome", "+05:30"])
def test_timestamps_of_every_unit_are_exact_or_refused(unit: str, zone: str | None) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    most = (_INT64 // 10**6 - 1) * per_second
    most = min(most, _INT64 // per_second * per_second)
    ticks = pa.array([-most, -per_second, 0, per_second, most], pa.int64())
    values = ticks.view(pa.timestamp(unit, zone))
    table = rs.create_table(
        f"memory:///{uuid.uuid4().hex}", {"id": range(5), "c": values}, key=["id"]
    )
    kept = table.scan(order_by_key=True).to_arrow().column("c").combine_chunks()
    assert kept.cast(pa.timestamp(unit, "UTC" if zone else None)).view(pa.int64()).equals(ticks)
    if unit in ("s", "ms"):
        beyond = pa.array([_INT64], pa.int64()).view(pa.timestamp(unit, zone))
        with pytest.raises(SchemaMismatch, match="column 'c'"):
            table.upsert(pa.table({"id": [9], "c": beyond}))
