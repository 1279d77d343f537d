"""Row ids as a roaring bitmap: the backing of sets of many runs.

The same operations as `Ranges`, linear in the bitmap's bytes. Nothing here changes a bitmap that
it was given, and who makes a `Bitmap` lets nobody else hold its bitmap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyroaring

from rowsieve.predicate.rowset.ranges import Ids, Mask, Ranges
from rowsieve.predicate.rowset.roaring import (
    bitmap_of_ids,
    bitmap_of_runs,
    ids_view,
    run_count,
    runs_of_bitmap,
)

SHORT_RUN = 4  # rows a run: roaring takes so few ids quicker than numpy lays out their run


@dataclass(frozen=True, slots=True, eq=False)
class Bitmap:
    """The rows of a roaring bitmap that nobody else holds."""

    bitmap: pyroaring.BitMap

    def __iter__(self) -> Iterator[int]:
        return iter(self.bitmap)

    @property
    def run_count(self) -> int:
        """How many ranges it would be."""
        return run_count(self.bitmap)

    @property
    def id_count(self) -> int:
        """How many rows."""
        return len(self.bitmap)

    @property
    def first(self) -> int:
        """The least id of a set that is not empty."""
        return int(self.bitmap.min())

    @property
    def last(self) -> int:
        """The greatest id of a set that is not empty."""
        return int(self.bitmap.max())

    def same(self, other: Bitmap) -> bool:
        """Whether both hold the same rows."""
        return bool(self.bitmap == other.bitmap)

    def union(self, other: Bitmap) -> Bitmap:
        """Rows of either."""
        return _optimized(self.bitmap | other.bitmap)

    def intersect(self, other: Bitmap) -> Bitmap:
        """Rows of both."""
        return _optimized(self.bitmap & other.bitmap)

    def difference(self, other: Bitmap) -> Bitmap:
        """Rows of this set that are not in `other`."""
        return _optimized(self.bitmap - other.bitmap)

    def complement(self, row_count: int) -> Bitmap:
        """Every other row below `row_count`."""
        return _optimized(self.bitmap.flip(0, row_count))

    def slice(self, start: int, stop: int) -> Bitmap:
        """Rows [start, stop), renumbered from 0."""
        window = pyroaring.BitMap()
        window.add_range(start, stop)
        return _optimized((self.bitmap & window).shift(-start))

    def shift(self, offset: int) -> Bitmap:
        """Each id plus `offset`."""
        return _optimized(self.bitmap.shift(offset))

    def contains(self, ids: Ids) -> Mask:
        """(n,) bool: which of `ids`, in any order, are held."""
        held = ids_view(self.bitmap & bitmap_of_ids(np.sort(ids)))
        if not len(held):
            return np.zeros(len(ids), dtype=np.bool_)
        at = np.minimum(np.searchsorted(held, ids), len(held) - 1)
        found: Mask = held[at] == ids
        return found

    def to_ids(self) -> Ids:
        """(len,) int64, ascending. Linear in rows."""
        return ids_view(self.bitmap).astype(np.int64)

    def to_mask(self, row_count: int) -> Mask:
        """(row_count,) bool."""
        mask = np.zeros(row_count, dtype=np.bool_)
        mask[ids_view(self.bitmap)] = True
        return mask


def as_bitmap(rows: Ranges | Bitmap) -> Bitmap:
    """The same rows as a bitmap."""
    if isinstance(rows, Bitmap):
        return rows
    if rows.id_count <= SHORT_RUN * rows.run_count:
        return Bitmap(bitmap_of_ids(rows.to_ids()))
    return Bitmap(bitmap_of_runs(rows.starts, rows.stops))


def as_ranges(rows: Ranges | Bitmap) -> Ranges:
    """The same rows as ranges."""
    return rows if isinstance(rows, Ranges) else Ranges(*runs_of_bitmap(rows.bitmap))


def _optimized(bitmap: pyroaring.BitMap) -> Bitmap:
    """Take a bitmap just made, in its smallest form."""
    bitmap.run_optimize()
    return Bitmap(bitmap)
