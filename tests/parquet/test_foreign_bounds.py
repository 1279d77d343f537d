"""Each guard of `foreign_column` by itself: doubtful statistics of other writers are unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.statistics.foreign_statistics import foreign_column
from rowsieve.parquet.statistics.stored_bounds import StoredBounds
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.types import logical

LONG = FileColumn(0, "c", pa.int64(), "INT64", 0)
DOUBLE = FileColumn(0, "c", pa.float64(), "DOUBLE", 0)
MILLIS = FileColumn(0, "c", pa.timestamp("ms"), "INT64", 0)
NANOS = FileColumn(0, "c", pa.timestamp("ns"), "INT64", 0)
INT = logical.Int(64, signed=True)
FLOAT = logical.Float(64)
TIME = logical.Timestamp(utc=False)
Group = tuple[int, int, Any, Any]
"""The rows, NULLs, lower and upper bound that a row group claims; -1 NULLs are unknown."""


def found(
    groups: Sequence[Group], column: FileColumn, type_: logical.LogicalType
) -> AbstractColumn:
    rows, nulls, lower, upper = map(list, zip(*groups, strict=True))
    bounded = np.array([bound is not None for bound in lower], np.bool_)
    stored = StoredBounds(np.array(rows), np.array(nulls), bounded, lower, upper)
    return foreign_column(stored, column, type_)


def bounds(groups: Sequence[Group], column: FileColumn, type_: logical.LogicalType) -> list[Any]:
    known = found(groups, column, type_)
    raw = [values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
           for values in (known.lower, known.upper)]  # fmt: skip
    return list(zip(*(values.to_pylist() for values in raw), strict=True))


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param((5, 0, 1, 9), (1, 9), id="well formed"),
        pytest.param((5, -1, 1, 9), (1, 9), id="unknown NULLs"),
        pytest.param((5, 6, 1, 9), (None, None), id="more NULLs than rows"),
        pytest.param((5, 5, 1, 9), (None, None), id="NULL alone"),
        pytest.param((5, 0, 9, 1), (None, None), id="inverted"),
    ],
)
def test_doubtful_bounds_are_unknown(group: Group, expected: Any) -> None:
    good = (4, 0, 2, 3)
    assert bounds([good, group, good], LONG, INT) == [(2, 3), expected, (2, 3)]


@pytest.mark.parametrize(
    ("nulls", "empty", "may_be_null"),
    [(-1, False, True), (0, False, False), (2, False, True), (5, True, True), (6, False, True)],
)
def test_only_a_possible_count_of_nulls_is_believed(
    nulls: int, empty: bool, may_be_null: bool
) -> None:
    known = found([(5, nulls, 1, 9)], LONG, INT)
    assert (known.empty.tolist(), known.may_be_null.tolist()) == ([empty], [may_be_null])


@pytest.mark.parametrize(
    ("group", "lower"),
    [
        pytest.param((5, 0, 1.0, 9.0), 1.0, id="well formed"),
        pytest.param((5, 0, math.nan, 9.0), None, id="NaN below"),
        pytest.param((5, 0, 1.0, math.nan), 1.0, id="NaN above"),
        pytest.param((5, 0, 9.0, 1.0), None, id="inverted"),
    ],
)
def test_a_float_may_be_nan_whatever_its_bounds_are(group: Group, lower: Any) -> None:
    # trap T13: both guards, because either one hides that the other is gone
    known = found([group, (3, 3, None, None)], DOUBLE, FLOAT)
    assert known.lower.to_pylist() == [lower, None]
    assert known.upper.to_pylist() == [None, None]
    assert known.may_be_nan is not None
    assert known.may_be_nan.tolist() == [True, False]


@pytest.mark.parametrize(
    ("column", "group", "expected"),
    [
        pytest.param(MILLIS, (5, 0, -3, 7), (-3_000, 7_000), id="milliseconds"),
        pytest.param(NANOS, (5, 0, -1, 1), (-1, 1), id="nanoseconds are rounded outward"),
        pytest.param(MILLIS, (5, 0, -(2**62), 2**62), (None, None), id="beyond 64 bits"),
        pytest.param(
            FileColumn(0, "c", pa.timestamp("ns"), "INT96", 0), (5, 0, 1, 2), (None, None), id="96"
        ),
        pytest.param(
            FileColumn(0, "c", pa.timestamp("ms", "UTC"), "INT64", 0),
            (5, 0, 1, 2),
            (None, None),
            id="an instant for a local time",
        ),
        pytest.param(LONG, (5, 0, 1, 2), (None, None), id="a number for a time"),
    ],
)
def test_bounds_of_times_are_converted_outward(
    column: FileColumn, group: Group, expected: Any
) -> None:
    assert bounds([group], column, TIME) == [expected]


def test_types_that_are_not_merely_widened_have_no_bounds() -> None:
    assert bounds([(5, 0, 1, 300)], LONG, logical.Int(8, signed=True)) == [(None, None)]
    assert bounds([(5, 0, 1, 9)], LONG, logical.String()) == [(None, None)]
