"""Ranks of whole lists and structs sort like the values do, judged by comparing two values."""

from __future__ import annotations

import datetime
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.types import numeric_bytes
from rowsieve.types.interval_bytes import from_arrow
from rowsieve.types.logical import (
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    Numeric,
    String,
    Struct,
)
from rowsieve.types.ordering.nested_ranks import has_ranks, order_form
from tests.profiles import examples

ITEM = Struct((Field(1, "a", Int(8)), Field(2, "b", List(Field(3, "x", Float())))))
ARROW_ITEM = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.float64()))])
TYPES: list[tuple[LogicalType, pa.DataType]] = [
    (ITEM, ARROW_ITEM),
    (List(Field(4, "x", Int(8))), pa.list_(pa.int8())),
    (List(Field(4, "x", String())), pa.list_(pa.string())),
    (List(Field(4, "x", List(Field(5, "y", Int(8))))), pa.list_(pa.list_(pa.int8()))),
    (List(Field(4, "x", ITEM)), pa.list_(ARROW_ITEM)),
    (Struct((Field(4, "p", ITEM), Field(5, "q", Int(8)))),
     pa.struct([("p", ARROW_ITEM), ("q", pa.int8())])),
]  # fmt: skip


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(type_):
        members = {member.name: values_of(member.type) for member in type_}
        return st.none() | st.fixed_dictionaries(members)
    if pa.types.is_list(type_):
        return st.none() | st.lists(values_of(type_.value_type), max_size=3)
    if pa.types.is_string(type_):
        return st.none() | st.sampled_from(["", "a", "ab", "\U0010ffff"])
    if pa.types.is_floating(type_):
        return st.none() | st.sampled_from([math.nan, -0.0, 0.0, math.inf, -1.5])
    return st.none() | st.integers(-1, 2)


def compared(left: Any, right: Any) -> int:
    """-1, 0 or 1: NULL is above all, NaN above numbers, a list below those that begin with it."""
    if left is None or right is None:
        return (left is None) - (right is None)
    if isinstance(left, dict):
        left, right = ([row[name] for name in sorted(row)] for row in (left, right))
    if isinstance(left, list):
        for pair in zip(left, right, strict=False):
            if found := compared(*pair):
                return found
        return (len(left) > len(right)) - (len(left) < len(right))
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        return math.isnan(left) - math.isnan(right)
    return int(left > right) - int(left < right)


@pytest.mark.parametrize(("logical", "type_"), TYPES)
@examples(60)
@given(data=st.data())
def test_ranks_compare_like_the_values(
    logical: LogicalType, type_: pa.DataType, data: st.DataObject
) -> None:
    values = data.draw(st.lists(values_of(type_), max_size=8))
    start = data.draw(st.integers(0, len(values)))
    ranks = order_form(pa.array(values, type_)[start:], logical).to_pylist()
    rows = list(zip(ranks, values[start:], strict=True))
    assert [rank is None for rank in ranks] == [value is None for value in values[start:]]
    for (first, left), (second, right) in itertools.combinations(rows, 2):
        if left is not None and right is not None:
            assert np.sign(first - second) == compared(left, right), (left, right)


def test_intervals_and_unbounded_numbers_have_ranks() -> None:
    spans = from_arrow(pa.array([datetime.timedelta(days=31), datetime.timedelta(days=2)]))
    month = from_arrow(pa.array([(1, 0, 0)], pa.month_day_nano_interval()))
    assert order_form(pa.concat_arrays([spans, month]), Interval()).to_pylist() == [2, 0, 1]
    numbers = numeric_bytes.from_text(pa.array(["NaN", "1e60", None, "-1e60", "5"]))
    assert order_form(numbers, Numeric()).to_pylist() == [3, 2, None, 0, 1]


def test_a_long_list_costs_no_more_than_its_items() -> None:
    long = list(range(3_000))
    values = pa.array([[*long, 2], long, [*long, 1], [5]], pa.list_(pa.int64()))
    assert order_form(values, List(Field(1, "x", Int()))).to_pylist() == [2, 0, 1, 3]


def test_json_and_maps_have_no_ranks() -> None:
    assert not has_ranks(Json())
    assert not has_ranks(List(Field(1, "x", Json())))
    assert not has_ranks(Map(Field(1, "key", String()), Field(2, "value", Int())))
