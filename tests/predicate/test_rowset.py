"""Row sets against Python sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import InvalidInput
from rowsieve.predicate.rowset import RowSet
from tests.profiles import examples

ROWS = 40
ids = st.frozensets(st.integers(0, ROWS - 1))


def rowset(rows: frozenset[int]) -> RowSet:
    return RowSet.from_mask(np.isin(np.arange(ROWS), sorted(rows)))


@examples(300)
@given(ids, ids, st.integers(0, ROWS), st.integers(0, ROWS))
def test_algebra_is_that_of_sets(a: frozenset[int], b: frozenset[int], p: int, q: int) -> None:
    start, stop = sorted((p, q))
    left, right = rowset(a), rowset(b)
    assert set(left) == a
    assert len(left) == len(a)
    assert set(left.union(right)) == a | b
    assert set(left.intersect(right)) == a & b
    assert set(left.difference(right)) == a - b
    assert set(left.complement()) == set(range(ROWS)) - a
    assert set(left.slice(start, stop)) == {row - start for row in a if start <= row < stop}
    assert left.is_empty == (not a)
    assert left.is_full == (len(a) == ROWS)


@examples(200)
@given(ids)
def test_masks_bitmaps_and_ranges_give_the_same_set(a: frozenset[int]) -> None:
    expected = rowset(a)
    assert RowSet.from_bitmap(expected.to_bitmap(), ROWS) == expected
    assert RowSet.from_mask(expected.to_mask()) == expected
    assert RowSet.from_ranges([(row, row + 1) for row in a], ROWS) == expected
    assert hash(RowSet.from_mask(expected.to_mask())) == hash(expected)


def test_t34_sets_of_different_sources_never_meet() -> None:
    with pytest.raises(InvalidInput, match="40 rows and 41 rows"):
        RowSet.full(ROWS).union(RowSet.full(ROWS + 1))


@pytest.mark.parametrize("bad", [[(-1, 2)], [(0, ROWS + 1)]])
def test_ids_outside_the_source_are_refused(bad: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidInput, match="row ids must lie in"):
        RowSet.from_ranges(bad, ROWS)
