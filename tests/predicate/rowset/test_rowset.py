"""What row sets refuse, and that nothing changes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyroaring
import pytest

from rowsieve.errors import InvalidInput
from rowsieve.predicate.rowset import RowSet
from tests.predicate.rowset.rowset_backings import BACKINGS, rowset

ROWS = 40
TOO_MANY = (1 << 32) + 1


@pytest.mark.parametrize("bad", [[(-1, 2)], [(0, ROWS + 1)], [(ROWS + 5, ROWS + 5)], [(1, 2**62)]])
def test_ranges_outside_the_source_are_refused(bad: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidInput, match=r"row ids must lie in \[0, 40\)"):
        RowSet.from_ranges(bad, ROWS)


def test_a_range_that_stops_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"got \[5, 3\)"):
        RowSet.from_ranges([(1, 2), (5, 3)], ROWS)


@pytest.mark.parametrize(
    "bad",
    [
        [(0.5, 2)],
        [(1, 2), (3,)],
        [(1, 2, 3), (4, 5, 6)],
        [1, 2],
        [("a", "b")],
        [(1, 2**63)],
        [(1, 2**64)],
        np.ones((2, 2), dtype=np.bool_),
    ],
)
def test_invalid_ranges_are_rejected(bad: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidInput, match=r"row ranges must be \(n, 2\) integers"):
        RowSet.from_ranges(bad, ROWS)


@pytest.mark.parametrize("bad", [[3, 2], [1, 2, 1]])
def test_ids_that_do_not_ascend_are_refused(bad: list[int]) -> None:
    with pytest.raises(InvalidInput, match="must ascend"):
        RowSet.from_ids(np.array(bad), ROWS)


@pytest.mark.parametrize("bad", [[-1, 2], [0, ROWS], [2**63]])
def test_ids_outside_the_source_are_refused(bad: list[int]) -> None:
    with pytest.raises(InvalidInput, match=r"row ids must lie in \[0, 40\)"):
        RowSet.from_ids(np.array(bad), ROWS)
    with pytest.raises(InvalidInput, match=r"row ids must lie in \[0, 40\)"):
        RowSet.full(ROWS).contains(np.array(bad))


@pytest.mark.parametrize("bad", [np.array([1.0]), np.array([[1, 2]]), np.array([True])])
def test_invalid_ids_are_rejected(bad: np.typing.NDArray[np.int64]) -> None:
    with pytest.raises(InvalidInput, match=r"row ids must be \(n,\) integers"):
        RowSet.from_ids(bad, ROWS)


@pytest.mark.parametrize("backing", BACKINGS)
def test_asking_for_a_row_outside_the_source_is_refused(backing: str) -> None:
    rows = rowset({1, 3}, ROWS, backing)
    assert 3 in rows
    assert np.int64(2) not in rows
    for row in (-1, ROWS, 2**70):
        with pytest.raises(InvalidInput, match="row ids must"):
            assert row in rows


def test_a_bitmap_outside_the_source_is_refused() -> None:
    with pytest.raises(InvalidInput, match="row id 40 is outside a source of 40 rows"):
        RowSet.from_bitmap(pyroaring.BitMap([3, ROWS]), ROWS)


@pytest.mark.parametrize("bad", [np.zeros((2, 2), dtype=np.bool_), np.zeros(3, dtype=np.int8)])
def test_invalid_masks_are_rejected(bad: np.typing.NDArray[np.bool_]) -> None:
    with pytest.raises(InvalidInput, match=r"must be \(n,\) bool"):
        RowSet.from_mask(bad)


@pytest.mark.parametrize(("groups", "group_rows"), [(3, 10), (5, 10), (4, 0), (4, -10), (1, 39)])
def test_row_groups_that_do_not_make_the_source_are_refused(groups: int, group_rows: int) -> None:
    with pytest.raises(InvalidInput, match="do not make a source of 40 rows"):
        RowSet.from_row_groups(np.ones(groups, dtype=np.bool_), group_rows, ROWS)


def test_one_row_group_may_be_short() -> None:
    assert RowSet.from_row_groups(np.ones(1, dtype=np.bool_), 1 << 70, ROWS).is_full


@pytest.mark.parametrize("backing", BACKINGS)
@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (0, ROWS + 1), (3, 2), (ROWS + 1, ROWS + 1)])
def test_slices_outside_the_source_are_refused(backing: str, start: int, stop: int) -> None:
    with pytest.raises(InvalidInput, match="not within a source of 40 rows"):
        rowset({1, 3}, ROWS, backing).slice(start, stop)


@pytest.mark.parametrize("backing", BACKINGS)
@pytest.mark.parametrize(("offset", "row_count"), [(-2, ROWS), (37, ROWS), (0, 3), (2**70, ROWS)])
def test_shifts_out_of_the_source_are_refused(backing: str, offset: int, row_count: int) -> None:
    with pytest.raises(InvalidInput, match=f"outside a source of {row_count} rows"):
        rowset({1, 3}, ROWS, backing).shift(offset, row_count)


@pytest.mark.parametrize(
    "make",
    [
        RowSet.empty,
        RowSet.full,
        lambda n: RowSet.from_ranges([], n),
        lambda n: RowSet.from_ids(np.array([], dtype=np.int64), n),
        lambda n: RowSet.from_bitmap(pyroaring.BitMap(), n),
        lambda n: RowSet.from_row_groups(np.ones(1, dtype=np.bool_), n, n),
        lambda n: RowSet.full(3).shift(0, n),
        lambda n: RowSet.from_bytes(RowSet.empty(3).to_bytes(), n),
    ],
)
@pytest.mark.parametrize("row_count", [TOO_MANY, -1])
def test_a_source_of_more_rows_than_ids_is_refused(
    make: Callable[[int], RowSet], row_count: int
) -> None:
    with pytest.raises(InvalidInput, match="row ids are limited to 4,294,967,296 per source"):
        make(row_count)


@pytest.mark.parametrize("backing", BACKINGS)
def test_the_last_possible_row_is_a_row_like_any_other(backing: str) -> None:
    limit = 1 << 32
    last = rowset({0, limit - 1}, limit, backing)
    assert list(last) == [0, limit - 1]
    assert last.ranges()[1].tolist() == [1, limit]
    assert last.complement().ranges()[0].tolist() == [1]
    assert len(last.complement()) == limit - 2
    assert last.complement().union(last).is_full
    assert last.slice(limit - 1, limit).is_full
    assert last.slice(limit, limit).is_empty
    assert RowSet.full(1).shift(limit - 1, limit) == last.difference(rowset({0}, limit, backing))
    assert rowset({limit - 1}, limit, backing).shift(1 - limit, 1).is_full
    assert RowSet.from_bytes(last.to_bytes(), limit) == last
    assert RowSet.from_bitmap(last.to_bitmap(), limit) == last
    assert last.contains(np.array([limit - 1, 5, 0])).tolist() == [True, False, True]


@pytest.mark.parametrize("backing", BACKINGS)
def test_a_source_without_rows_has_one_set(backing: str) -> None:
    none = rowset((), 0, backing)
    assert none.is_empty
    assert none.is_full
    assert none == none.complement() == none.slice(0, 0) == none.union(none)
    assert none == RowSet.from_mask(np.zeros(0, dtype=np.bool_))
    assert none == RowSet.from_row_groups(np.zeros(0, dtype=np.bool_), 7, 0)
    assert none.to_mask().shape == (0,)
    assert none.to_ids().shape == (0,)


@pytest.mark.parametrize("backing", BACKINGS)
def test_changing_results_does_not_change_a_set(backing: str) -> None:
    rows = rowset({1, 3}, ROWS, backing)
    rows.to_bitmap().add(7)
    rows.to_mask()[7] = True
    rows.to_ids()[0] = 7
    for ends in rows.ranges():
        with pytest.raises(ValueError, match="read-only"):
            ends[0] = 0
    assert list(rows) == [1, 3]


def test_changing_inputs_does_not_change_a_set() -> None:
    bitmap = pyroaring.BitMap(range(0, 10_000, 2))
    ids = np.arange(0, 10_000, 2)
    mask = np.arange(10_000) % 2 == 0
    pairs = np.column_stack((ids, ids + 1))
    sets = (
        RowSet.from_bitmap(bitmap, 10_000),
        RowSet.from_ids(ids, 10_000),
        RowSet.from_mask(mask),
        RowSet.from_ranges(pairs, 10_000),
    )
    bitmap.add(1)
    ids[:] = 0
    mask[:] = False
    pairs[:] = 0
    for rows in sets:
        assert np.array_equal(rows.to_ids(), np.arange(0, 10_000, 2))


def test_a_frozen_bitmap_is_a_bitmap() -> None:
    rows = RowSet.from_bitmap(pyroaring.FrozenBitMap([1, 3]), ROWS)
    assert list(rows) == [1, 3]


@pytest.mark.parametrize("backing", BACKINGS)
def test_a_set_has_a_repr_of_one_line(backing: str) -> None:
    rows = rowset({1, 2, 9}, ROWS, backing)
    assert repr(rows) == "RowSet(3 of 40 rows, 2 ranges in [1, 10))"
    assert repr(rowset((), ROWS, backing)) == "RowSet(0 of 40 rows, 0 ranges)"
