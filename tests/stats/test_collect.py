"""Collected statistics: counts are right, and every value lies within the bounds."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.stats.collect import StatisticsCollector
from rowsieve.stats.model import ColumnStatistics
from rowsieve.stats.values import extremes, extremes_together
from rowsieve.types.encodings import arrow_field, arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.profiles import examples

VALUES: list[tuple[LogicalType, st.SearchStrategy[Any]]] = [
    (Bool(), st.booleans()),
    (Int(8), st.integers(-128, 127)),
    (Int(64, signed=False), st.integers(0, 2**64 - 1)),
    (Float(), st.floats() | st.sampled_from([0.0, -0.0])),
    (Float(32), st.floats(width=32)),
    (Decimal(38, 3), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda v: decimal_of(v, 3))),
    (String(), st.text(max_size=5) | st.text(st.sampled_from("a\U0010ffff\ud7ff"), min_size=90)),
    (Binary(), st.binary(max_size=5) | st.just(b"\xff" * 200)),
    (Date(), st.dates()),
    (Time(), st.times()),
    (Timestamp(utc=True), st.datetimes(timezones=st.just(datetime.UTC))),
    (Uuid(), st.binary(min_size=16, max_size=16)),
]


def decimal_of(unscaled: int, scale: int) -> decimal.Decimal:
    return decimal.Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def collect(type_: LogicalType, *batches: list[Any], deleted: Any = ()) -> ColumnStatistics:
    field = Field(7, "c", type_)
    schema = pa.schema([arrow_field(field)])
    collector = StatisticsCollector(Schema(0, (field,)))
    for cells in batches:
        collector.add(pa.table([pa.array(cells, arrow_type(type_))], schema=schema))
    if deleted:
        keys = pa.table([pa.array(deleted, arrow_type(type_))], schema=schema)
        collector.add_tombstones(keys)
    return collector.finish()[7]


def plain(bound: pa.Scalar | None) -> Any:
    return None if bound is None else bound.as_py()


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=lambda value: str(value)[:24])
def test_every_value_lies_within_the_bounds(
    type_: LogicalType, values: st.SearchStrategy[Any]
) -> None:
    cells = st.lists(st.none() | values, max_size=6)

    @given(st.lists(cells, min_size=1, max_size=3), st.lists(values, max_size=3))
    @examples(60)
    def check(batches: list[list[Any]], deleted: list[Any]) -> None:
        found = collect(type_, *batches, deleted=deleted)
        rows = [cell for batch in batches for cell in batch]
        numbers = [value for value in [*rows, *deleted] if value is not None]
        ordered = [v for v in numbers if not (isinstance(v, float) and math.isnan(v))]
        assert found.null_count == rows.count(None)
        assert found.nan_count == (
            len(numbers) - len(ordered) if isinstance(type_, Float) else None
        )
        lower, upper = plain(found.lower), plain(found.upper)
        assert (lower is None) == (not ordered)
        assert all(lower <= value for value in ordered)
        assert upper is None or all(value <= upper for value in ordered)
        if upper is None and ordered:
            assert isinstance(type_, String | Binary)
        if found.lower_exact:
            assert lower in rows
        if found.upper_exact:
            assert upper in rows

    check()


def test_short_bounds_of_rows_are_exact() -> None:
    found = collect(String(), ["b", None], ["a"])
    assert found == ColumnStatistics(
        1, None, pa.scalar("a"), pa.scalar("b"), lower_exact=True, upper_exact=True
    )


def test_long_text_is_cut_to_a_hundred_bytes_and_not_exact() -> None:
    found = collect(String(), ["x" * 200])
    assert (plain(found.lower), plain(found.upper)) == ("x" * 100, "x" * 99 + "y")
    assert not found.lower_exact
    assert not found.upper_exact


def test_t13_nan_is_counted_and_bounds_nothing() -> None:
    found = collect(Float(), [math.nan, 1.0, None], [math.nan])
    assert (found.nan_count, found.null_count) == (2, 1)
    assert (plain(found.lower), plain(found.upper)) == (1.0, 1.0)
    nothing = collect(Float(), [math.nan])
    assert (nothing.lower, nothing.upper, nothing.nan_count) == (None, None, 1)


@pytest.mark.parametrize("batches", [([0.0],), ([-0.0],), ([0.0], [-0.0]), ([-0.0, 0.0],)])
def test_t13_a_zero_bound_covers_both_zeros(batches: tuple[list[float], ...]) -> None:
    found = collect(Float(), *batches)
    assert str((plain(found.lower), plain(found.upper))) == "(-0.0, 0.0)"
    assert not found.lower_exact
    assert not found.upper_exact


def test_t4_tombstones_widen_the_bounds_but_are_not_rows() -> None:
    found = collect(Int(), [5, 6], deleted=[1, 5, 9])
    assert (plain(found.lower), plain(found.upper), found.null_count) == (1, 9, 0)
    assert not found.lower_exact
    assert not found.upper_exact
    kept = collect(Int(), [1, 9], deleted=[5])
    assert kept.lower_exact
    assert kept.upper_exact


def test_types_without_an_order_have_counts_only() -> None:
    assert collect(Json(), ["{}", None]) == ColumnStatistics(null_count=1)
    nested = List(Field(8, "item", Float()))
    assert collect(nested, [[1.0], None, []]) == ColumnStatistics(null_count=1)


def test_bounds_beyond_the_calendar_are_kept() -> None:
    far = pa.array([2**62, -(2**62)], pa.timestamp("us"))
    field = Field(1, "c", Timestamp())
    collector = StatisticsCollector(Schema(0, (field,)))
    for chunk in (far[:1], far[1:]):
        collector.add(pa.table([chunk], schema=pa.schema([arrow_field(field)])))
    found = collector.finish()[1]
    assert found.lower is not None
    assert found.upper is not None
    assert (found.lower.value, found.upper.value) == (-(2**62), 2**62)


TOGETHER = [
    *(pa.array([3, 1, 2], type_()) for type_ in (pa.int8, pa.uint64, pa.int64, pa.date32)),
    pa.array([2**64 - 1, 0, 7], pa.uint64()),
    pa.array([-(2**63), 2**63 - 1, 0], pa.int64()),
    pa.array([5, -5, 0], pa.timestamp("us", "UTC")),
    pa.array([9, 8, 7], pa.timestamp("us", "UTC")),
    pa.array([1, 2, 3], pa.timestamp("us")),
    pa.array([9, 8, 7], pa.timestamp("us")),
    pa.array([4, 2, 6], pa.time64("us")),
    pa.array([1, 0, 1], pa.time64("us")),
    pa.array([-7, 7, 0], pa.date32()),
    pa.array([-7, None, 0], pa.int64()),
    pa.array([0.0, math.nan, 1.0]),
    pa.array([-0.0, 0.0, 1.0]),
    pa.array([True, False, True]),
    pa.array([False, False, False]),
    pa.array(["a", "b", "c"]),
    pa.array([1, 2, 3], pa.int64()).cast(pa.decimal128(21, 2)),
    pa.array([9, 5, 6, 7], pa.int64())[1:],
]


@pytest.mark.parametrize("chunked", [False, True])
def test_extremes_found_together_are_those_found_alone(chunked: bool) -> None:
    columns = [
        pa.chunked_array([values[:1], values[1:1], values[1:]]) if chunked else values
        for values in TOGETHER
    ]
    found = extremes_together(columns)
    for values, known in zip(columns, found, strict=True):
        if known is None:
            continue
        for together, alone in zip(known, extremes(values), strict=True):
            assert together is not None
            assert alone is not None
            assert together.type == alone.type
            assert together.equals(alone)
    assert sum(known is not None for known in found) == 13
    assert extremes_together([values[:0] for values in TOGETHER]) == [None] * len(TOGETHER)
    assert extremes_together([]) == []
