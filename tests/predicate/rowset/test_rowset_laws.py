"""Row sets against Python sets and plain masks, on every pair of backings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import InvalidInput
from rowsieve.predicate.rowset import RowSet
from tests.predicate.rowset.rowset_backings import BACKINGS, PAIRS, assert_one_form, backed, rowset
from tests.profiles import examples

ROWS = 40
id_sets = st.frozensets(st.integers(0, ROWS - 1)) | st.builds(
    lambda start, stop: frozenset(range(start, stop)), st.integers(0, ROWS), st.integers(0, ROWS)
)

CONTAINER = 1 << 16
WIDE = 5 * CONTAINER + 7
near_an_edge = st.builds(
    lambda container, distance: min(max(container * CONTAINER + distance, 0), WIDE),
    st.integers(0, 5),
    st.integers(-3, 9),
)
stretches = st.tuples(near_an_edge, near_an_edge, st.sampled_from((1, 1, 2, 7, 40_000)))


@st.composite
def wide_masks(draw: st.DrawFn) -> npt.NDArray[np.bool_]:
    """Rows around the edges of roaring's containers: stretches, turned over where they meet."""
    mask = np.zeros(WIDE, dtype=np.bool_)
    for start, stop, step in draw(st.lists(stretches, max_size=6)):
        mask[start:stop:step] ^= True
    return mask


@pytest.mark.parametrize(("left_backing", "right_backing"), PAIRS)
@examples(400)
@given(a=id_sets, b=id_sets)
def test_two_sets_combine_as_python_sets_do(
    left_backing: str, right_backing: str, a: frozenset[int], b: frozenset[int]
) -> None:
    left, right = rowset(a, ROWS, left_backing), rowset(b, ROWS, right_backing)
    for found, expected in (
        (left.union(right), a | b),
        (left.intersect(right), a & b),
        (left.difference(right), a - b),
        (left.complement(right), b - a),
    ):
        assert list(found) == sorted(expected)
        assert found.row_count == ROWS
        assert_one_form(found)
    assert (left == right) == (a == b)
    assert left == rowset(a, ROWS, right_backing)
    assert hash(left) == hash(rowset(a, ROWS, right_backing))
    assert list(left) == sorted(a)
    assert list(right) == sorted(b)


@pytest.mark.parametrize("backing", BACKINGS)
@examples(400)
@given(
    a=id_sets,
    p=st.integers(0, ROWS),
    q=st.integers(0, ROWS),
    asked=st.lists(st.integers(0, ROWS - 1)),
)
def test_one_set_answers_as_a_python_set_does(
    backing: str, a: frozenset[int], p: int, q: int, asked: list[int]
) -> None:
    rows = rowset(a, ROWS, backing)
    start, stop = sorted((p, q))
    assert len(rows) == len(a)
    assert rows.is_empty == (not a)
    assert rows.is_full == (len(a) == ROWS)
    assert list(rows) == sorted(a)
    assert rows.to_ids().tolist() == sorted(a)
    assert np.flatnonzero(rows.to_mask()).tolist() == sorted(a)
    assert list(rows.to_bitmap()) == sorted(a)
    assert rows.contains(np.array(asked, dtype=np.int64)).tolist() == [row in a for row in asked]
    assert (p in rows) == (p in a) if p < ROWS else True
    assert set(rows.complement()) == set(range(ROWS)) - a
    cut = rows.slice(start, stop)
    assert set(cut) == {row - start for row in a if start <= row < stop}
    assert cut.row_count == stop - start
    assert set(rows.shift(p, ROWS + q + p)) == {row + p for row in a}
    assert cut.shift(start, ROWS) == rows.intersect(RowSet.from_ranges([(start, stop)], ROWS))
    for found in (rows.complement(), cut, rows.shift(p, ROWS + p)):
        assert_one_form(found)


@pytest.mark.parametrize("backing", BACKINGS)
@examples(200)
@given(a=id_sets)
def test_every_way_in_gives_the_same_set(backing: str, a: frozenset[int]) -> None:
    rows = rowset(a, ROWS, backing)
    for other in (
        RowSet.from_bitmap(rows.to_bitmap(), ROWS),
        RowSet.from_mask(rows.to_mask()),
        RowSet.from_ids(rows.to_ids(), ROWS),
        RowSet.from_ids(np.repeat(rows.to_ids(), 2).astype(np.uint32), ROWS),
        RowSet.from_ranges([(row, row + 1) for row in a], ROWS),
        RowSet.from_ranges(np.column_stack(rows.ranges())[::-1], ROWS),
        RowSet.from_bytes(rows.to_bytes(), ROWS),
        rows.union(RowSet.empty(ROWS)),
        rows.intersect(RowSet.full(ROWS)),
    ):
        assert other == rows
        assert hash(other) == hash(rows)
        assert_one_form(other)


@pytest.mark.parametrize(("left_backing", "right_backing"), PAIRS)
@examples(40)
@given(a=wide_masks(), b=wide_masks(), p=near_an_edge, q=near_an_edge)
def test_sets_across_containers_combine_as_masks_do(
    left_backing: str,
    right_backing: str,
    a: npt.NDArray[np.bool_],
    b: npt.NDArray[np.bool_],
    p: int,
    q: int,
) -> None:
    start, stop = sorted((p, q))
    left, right = (
        backed(RowSet.from_mask(a), left_backing),
        backed(RowSet.from_mask(b), right_backing),
    )
    for found, expected in (
        (left, a),
        (left.union(right), a | b),
        (left.intersect(right), a & b),
        (left.difference(right), a & ~b),
        (left.complement(), ~a),
        (left.slice(start, stop), a[start:stop]),
        (left.shift(p, WIDE + p), np.concatenate((np.zeros(p, dtype=np.bool_), a))),
    ):
        assert np.array_equal(found.to_mask(), expected)
        assert np.array_equal(found.to_ids(), np.flatnonzero(expected))
        assert len(found) == int(expected.sum())
        assert found == RowSet.from_mask(expected)
        assert_one_form(found)
    asked = np.arange(0, WIDE, 11)
    assert np.array_equal(left.contains(asked), a[asked])


@examples(200)
@given(st.lists(st.booleans(), max_size=12), st.integers(1, 9), st.integers(0, 8))
def test_row_groups_are_their_rows(kept: list[bool], group_rows: int, missing: int) -> None:
    row_count = max(len(kept) * group_rows - min(missing, group_rows - 1), 0)
    rows = RowSet.from_row_groups(np.array(kept, dtype=np.bool_), group_rows, row_count)
    assert rows.row_count == row_count
    assert set(rows) == {row for row in range(row_count) if kept[row // group_rows]}
    assert_one_form(rows)


COMBINE: tuple[Callable[[RowSet, RowSet], object], ...] = (
    RowSet.union,
    RowSet.intersect,
    RowSet.difference,
    RowSet.complement,
)


@pytest.mark.parametrize("combine", COMBINE)
@pytest.mark.parametrize(("left_backing", "right_backing"), PAIRS)
def test_t34_sets_of_different_sources_never_meet(
    combine: Callable[[RowSet, RowSet], object], left_backing: str, right_backing: str
) -> None:
    left, right = rowset({1, 3}, ROWS, left_backing), rowset({1, 3}, ROWS + 1, right_backing)
    with pytest.raises(InvalidInput, match=r"4[01] rows and 4[01] rows"):
        combine(left, right)
    assert left != right


def test_a_set_is_equal_to_sets_only() -> None:
    assert RowSet.empty(ROWS) != frozenset()
    assert "a" not in RowSet.full(ROWS)
