"""Membership by searching says what the set says, whatever the order of the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.evaluation.ordered_members import is_member
from rowsieve.predicate.ir import ValueSet
from rowsieve.types.logical import Date, Int, LogicalType, Timestamp
from tests.profiles import examples

TYPES: tuple[tuple[LogicalType, pa.DataType], ...] = (
    (Int(64), pa.int64()),
    (Int(8), pa.int8()),
    (Date(), pa.date32()),
    (Timestamp(), pa.timestamp("us")),
)


def asked(column: Sequence[int | None], members: list[int], types: Any = TYPES[0]) -> Any:
    type_, stored = types
    width = pa.int32() if stored == pa.date32() else pa.int64()
    width = stored if pa.types.is_integer(stored) else width
    values = ValueSet(pa.array(members, width).view(stored), type_)
    return is_member(pa.array(column, width).view(stored), values)


@examples(300)
@given(
    st.lists(st.integers(-9, 9), min_size=32, max_size=80),
    st.lists(st.integers(-12, 12), max_size=3),
    st.sampled_from(TYPES),
)
def test_members_of_an_ascending_column(
    column: list[int], members: list[int], types: tuple[LogicalType, pa.DataType]
) -> None:
    column.sort()
    found = asked(column, members, types)
    if len(members) * 16 <= len(column):
        assert found is not None
        assert found.tolist() == [value in members for value in column]


@examples(300)
@given(
    st.lists(st.none() | st.integers(-9, 9), min_size=16, max_size=40),
    st.lists(st.integers(-12, 12), max_size=90),
)
def test_any_column_is_searched_correctly_or_not_at_all(
    column: list[int | None], members: list[int]
) -> None:
    found = asked(column, members)
    for value, is_found in zip(column, [] if found is None else found.tolist(), strict=False):
        assert value is None or is_found == (value in members)


def test_unordered_values_and_nulls_use_the_hash_table() -> None:
    ascending: list[int | None] = list(range(64))
    assert asked(ascending, [7]).tolist() == [value == 7 for value in ascending]
    assert asked([*ascending[:40], 3, *ascending[40:]], [3]) is None
    assert asked([*ascending, None], [3]) is None


def test_a_long_list_counts_where_it_is_in_the_range_of_the_column() -> None:
    column: list[int | None] = list(range(2048))
    near = [*range(-1500, 0), 1, 2047, *range(2048, 4000)]
    assert asked(column, near[::-1]).tolist() == [value in (1, 2047) for value in column]
    assert asked(column, [*near, *range(130)]) is None  # too many in the range
    assert asked([*column[:9], 3, *column[9:]], near) is None  # does not ascend


@pytest.mark.parametrize("column", [np.arange(64, dtype=np.uint64), np.arange(64, dtype=np.int32)])
def test_other_number_types_are_not_searched(column: Any) -> None:
    assert is_member(pa.array(column), ValueSet(pa.array([3], pa.int64()), Int(64))) is None
