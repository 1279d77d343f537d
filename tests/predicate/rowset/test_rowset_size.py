"""What row sets cost: as many bytes and steps as they have runs, whatever the rows they span."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.rowset.bitmap import as_bitmap
from tests.predicate.rowset.rowset_backings import BACKINGS, PAIRS, backed, backing_of

ROWS = 20_000_000
LIMIT = 1 << 32


@cache
def every(step: int) -> RowSet:
    """One row in `step`."""
    return RowSet.from_ids(np.arange(0, ROWS, step), ROWS)


def blocks(start: int) -> RowSet:
    """Eleven stretches of 200 million rows: half of the largest source."""
    return RowSet.from_ranges(
        [(first, first + 200_000_000) for first in range(start, LIMIT - 200_000_000, 400_000_000)],
        LIMIT,
    )


def peak_bytes(work: Callable[[], object]) -> int:
    """The most that Python and numpy held at once, above what they held before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bitmap_bytes(rows: RowSet) -> int:
    """What the containers of a set's bitmap take, as it is held: a copy would be made smaller."""
    found = as_bitmap(rows._rows).bitmap.get_statistics()
    return (
        found["n_bytes_array_containers"]
        + found["n_bytes_bitset_containers"]
        + found["n_bytes_run_containers"]
    )


def test_few_runs_are_ranges_and_many_are_a_bitmap() -> None:
    assert backing_of(RowSet.full(LIMIT)) == "ranges"
    assert backing_of(every(20_000)) == "ranges"
    assert backing_of(every(1_000)) == "bitmap"
    assert backing_of(every(1_000).complement()) == "bitmap"
    assert backing_of(every(2)) == "bitmap"


@pytest.mark.parametrize("step", [2, 3, 6, 1_000])
def test_many_rows_come_in_and_go_out_whole(step: int) -> None:
    """The ways in that make a bitmap without spelling out its runs, where runs are short."""
    row_count = 1_000_000
    mask = np.arange(row_count) % step == 0
    for kept in (mask, ~mask):
        ids = np.flatnonzero(kept)
        rows = RowSet.from_mask(kept)
        assert np.array_equal(rows.to_mask(), kept)
        assert np.array_equal(rows.to_ids(), ids)
        assert RowSet.from_ids(ids, row_count) == rows
        assert RowSet.from_ids(np.repeat(ids, 2), row_count) == rows
        assert RowSet.from_ranges(np.column_stack((ids, ids + 1)), row_count) == rows
        assert bitmap_bytes(rows) <= (row_count // 8) + 8_192
        assert backing_of(rows) == ("ranges" if step == 1_000 else "bitmap")
        assert backing_of(RowSet.from_ids(np.repeat(ids, 2), row_count)) == backing_of(rows)


def test_the_backing_follows_every_operation() -> None:
    odd = every(2).complement()
    assert backing_of(odd.union(every(2))) == "ranges"
    assert backing_of(odd.intersect(every(2))) == "ranges"
    assert backing_of(odd.difference(RowSet.full(ROWS))) == "ranges"
    assert backing_of(odd.slice(0, 100)) == "ranges"
    assert backing_of(RowSet.full(ROWS).difference(odd)) == "bitmap"
    assert backing_of(odd.shift(5, ROWS + 5)) == "bitmap"
    assert (
        backing_of(RowSet.from_bytes(backed(every(20_000), "bitmap").to_bytes(), ROWS)) == "ranges"
    )
    assert backing_of(RowSet.from_bitmap(odd.to_bitmap(), ROWS)) == "bitmap"


@pytest.mark.parametrize(("step", "bound"), [(2, 2_600_000), (40, 1_100_000), (1_000, 50_000)])
@pytest.mark.parametrize("dense", [False, True])
def test_many_runs_take_a_bitmaps_bytes(step: int, bound: int, dense: bool) -> None:
    """At most a bit a row, and 4 bytes a run: 16 of them would be ranges."""
    rows = every(step).complement() if dense else every(step)
    assert len(rows) == (ROWS - ROWS // step if dense else ROWS // step)
    assert bitmap_bytes(rows) <= (bound if not dense else min(2 * bound, 2_600_000))
    assert len(rows.to_bytes()) <= bitmap_bytes(rows) + 12 * (ROWS >> 16) + 100


@pytest.mark.parametrize(("left_backing", "right_backing"), PAIRS)
def test_algebra_is_linear_in_runs_never_in_rows(left_backing: str, right_backing: str) -> None:
    left, right = backed(blocks(0), left_backing), backed(blocks(100_000_000), right_backing)

    def work() -> None:
        assert len(left.union(right)) > 3_000_000_000
        assert len(left.intersect(right)) > 900_000_000
        assert len(left.difference(right)) > 900_000_000
        assert len(left.complement()) > 2_000_000_000
        assert len(left.slice(5, LIMIT - 5).shift(5, LIMIT)) > 1_900_000_000
        assert left.contains(np.array([3, 399_999_999])).tolist() == [True, False]
        assert len(left.ranges()[0]) == 11
        assert hash(left) != hash(right)
        assert left != right
        assert RowSet.from_bytes(left.to_bytes(), LIMIT) == left
        assert not left.is_full
        assert next(iter(left)) == 0

    # A range in a bitmap is a piece in each of its 65,536 containers; a bit a row would be 512 MB.
    mixed = "bitmap" in (left_backing, right_backing)
    assert peak_bytes(work) < (16_000_000 if mixed else 100_000)


def test_a_bitmap_of_many_runs_is_never_expanded_to_rows() -> None:
    holes = every(1_000)
    rows = holes.complement()  # 20 million rows but 20 thousand
    few = RowSet.from_ranges([(7, 19_000_000)], ROWS)
    moved = holes.shift(1, ROWS + 1).slice(0, ROWS)

    def work() -> None:
        assert len(rows.intersect(few)) == 19_000_000 - 7 - 18_999
        assert rows.union(holes).is_full
        assert len(rows.difference(moved)) == ROWS - 40_000
        assert rows.complement() == holes
        assert len(rows.slice(1, 1_000_001)) == 999_000
        assert len(rows.ranges()[0]) == 20_000
        assert rows.contains(np.array([0, 1])).tolist() == [False, True]
        assert RowSet.from_bytes(rows.to_bytes(), ROWS) == rows

    assert peak_bytes(work) < 5_000_000  # 20,000 runs; a byte a row would be 20 MB


@pytest.mark.parametrize("backing", BACKINGS)
def test_the_cost_of_a_slice_depends_on_its_size_only(backing: str) -> None:
    """A read slices a part's rows once per row group: no slice may copy the rest."""
    rows = backed(every(20), backing)
    kept = rows.slice(10_000_000, 10_000_400)
    assert kept.to_ids().tolist() == list(range(0, 400, 20))
    assert peak_bytes(lambda: rows.slice(10_000_000, 10_000_400)) < 10_000
