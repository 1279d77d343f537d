"""The laws of row sets over parts of one to ten million rows, in both backings.

Masks of that many rows would be slow, so a set is checked against its complement, its pieces and
random rows, whose membership is known from the ranges that it was made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from rowsieve.predicate.rowset import RowSet
from tests.predicate.rowset.rowset_backings import BACKINGS, assert_one_form, backed
from tests.profiles import IS_DEEP

CASES = 10_000 if IS_DEEP else 400
BLOCKS = 10  # cases go by blocks, so that a failure names a seed
MAX_ROWS = 10_000_000
MOST_RUNS = 60
SAMPLE = 64

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """A row set, and the ascending ends of the ranges that it was made of."""

    rows: RowSet
    ends: Ids  # start, stop, start, stop, …

    def holds(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which rows are in it: those after an odd number of ends."""
        odd: npt.NDArray[np.bool_] = np.searchsorted(self.ends, ids, side="right") % 2 == 1
        return odd


def random_set(random: np.random.Generator, row_count: int) -> Known:
    """Between no run and `MOST_RUNS`, of any length, in a backing of its own."""
    runs = int(random.integers(0, min(MOST_RUNS, row_count // 2) + 1))
    ends = np.sort(random.choice(row_count + 1, size=2 * runs, replace=False, shuffle=False))
    ranges = [(int(start), int(stop)) for start, stop in ends.reshape(-1, 2)]
    rows = RowSet.from_ranges(ranges, row_count)
    return Known(backed(rows, BACKINGS[int(random.integers(2))]), ends.astype(np.int64))


def cases(block: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Row counts between 1 and `MAX_ROWS`, as many of each order of magnitude."""
    random = np.random.default_rng(block)
    for _ in range(CASES // BLOCKS):
        yield random, int(np.exp(random.uniform(0, np.log(MAX_ROWS + 1))))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_combined_sets_hold_the_rows_that_they_should(block: int) -> None:
    for random, row_count in cases(block):
        a, b = random_set(random, row_count), random_set(random, row_count)
        ends = np.concatenate([a.ends, b.ends, a.ends - 1, b.ends - 1])
        near = ends[(ends >= 0) & (ends < row_count)]
        asked = np.concatenate([near, random.integers(0, row_count, SAMPLE)])
        in_a, in_b = a.holds(asked), b.holds(asked)
        for found, expected in (
            (a.rows.union(b.rows), in_a | in_b),
            (a.rows.intersect(b.rows), in_a & in_b),
            (a.rows.difference(b.rows), in_a & ~in_b),
            (a.rows.complement(), ~in_a),
            (a.rows.complement(b.rows), ~in_a & in_b),
        ):
            assert np.array_equal(found.contains(asked), expected)
            assert found.row_count == row_count
            assert_one_form(found)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_sets_obey_the_laws_of_sets(block: int) -> None:
    for random, row_count in cases(BLOCKS + block):
        a, b, c = (random_set(random, row_count).rows for _ in range(3))
        assert a.union(b) == b.union(a)
        assert a.intersect(b) == b.intersect(a)
        assert a.union(b.intersect(c)) == a.union(b).intersect(a.union(c))
        assert a.intersect(b.union(c)) == a.intersect(b).union(a.intersect(c))
        assert a.union(b).complement() == a.complement().intersect(b.complement())
        assert a.difference(b) == a.intersect(b.complement())
        assert a.union(a.intersect(b)) == a == a.complement().complement()
        assert len(a.union(b)) + len(a.intersect(b)) == len(a) + len(b)
        assert len(a) + len(a.complement()) == row_count
        assert a.union(a.complement()).is_full
        assert a.intersect(a.complement()).is_empty


@pytest.mark.parametrize("block", range(BLOCKS))
def test_sets_survive_cuts_and_bytes(block: int) -> None:
    for random, row_count in cases(2 * BLOCKS + block):
        a = random_set(random, row_count).rows
        cut = int(random.integers(0, row_count + 1))
        left, right = a.slice(0, cut), a.slice(cut, row_count)
        assert left.shift(0, row_count).union(right.shift(cut, row_count)) == a
        assert len(left) + len(right) == len(a)
        again = RowSet.from_bytes(a.to_bytes(), row_count)
        assert again == a
        assert hash(again) == hash(a)
