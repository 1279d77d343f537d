"""Row ids as a roaring bitmap: the representation of sets with many runs.

The operations are those of `Ranges`, linear in the bitmap's bytes. No function here modifies a
given bitmap, and the creator of a `Bitmap` must not share its roaring bitmap.
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

SHORT_RUN = 4  # rows per run: for shorter runs, adding ids is faster than building run containers


@dataclass(frozen=True, slots=True, eq=False)
class Bitmap:
    """The rows of a roaring bitmap that no other object holds."""

    bitmap: pyroaring.BitMap

    def __iter__(self) -> Iterator[int]:
        return iter(self.bitmap)

    @property
    def run_count(self) -> int:
        """The number of ranges of the same set."""
        return run_count(self.bitmap)

    @property
    def id_count(self) -> int:
        """The number of rows."""
        return len(self.bitmap)

    @property
    def span(self) -> tuple[int, int]:
        """The smallest half-open range that contains all rows; (0, 0) if there are none."""
        return (int(self.bitmap.min()), int(self.bitmap.max()) + 1) if self.bitmap else (0, 0)

    def same(self, other: Bitmap) -> bool:
        """Whether both contain the same rows."""
        return bool(self.bitmap == other.bitmap)

    def union(self, other: Bitmap) -> Bitmap:
        """Return the rows in either set."""
        return _optimized(self.bitmap | other.bitmap)

    def intersect(self, other: Bitmap) -> Bitmap:
        """Return the rows in both sets."""
        return _optimized(self.bitmap & other.bitmap)

    def difference(self, other: Bitmap) -> Bitmap:
        """Return the rows of this set that are not in `other`."""
        return _optimized(self.bitmap - other.bitmap)

    def complement(self, row_count: int) -> Bitmap:
        """Return all other rows below `row_count`."""
        return _optimized(self.bitmap.flip(0, row_count))

    def slice(self, start: int, stop: int) -> Bitmap:
        """Return the rows in [start, stop), renumbered from 0."""
        window = pyroaring.BitMap()
        window.add_range(start, stop)
        return _optimized((self.bitmap & window).shift(-start))

    def shift(self, offset: int) -> Bitmap:
        """Add `offset` to each id."""
        return _optimized(self.bitmap.shift(offset))

    def contains(self, ids: Ids) -> Mask:
        """Return (n,) bool: which of `ids`, in any order, are in the set."""
        members = ids_view(self.bitmap & bitmap_of_ids(np.sort(ids)))
        if not len(members):
            return np.zeros(len(ids), dtype=np.bool_)
        at = np.minimum(np.searchsorted(members, ids), len(members) - 1)
        matches: Mask = members[at] == ids
        return matches

    def to_ids(self) -> Ids:
        """Return the ids, (len,) int64, ascending. Linear in rows."""
        return ids_view(self.bitmap).astype(np.int64)

    def to_mask(self, row_count: int) -> Mask:
        """Return the mask of the rows, (row_count,) bool."""
        mask = np.zeros(row_count, dtype=np.bool_)
        mask[ids_view(self.bitmap)] = True
        return mask


def as_bitmap(rows: Ranges | Bitmap) -> Bitmap:
    """Convert to a bitmap of the same rows."""
    if isinstance(rows, Bitmap):
        return rows
    if rows.id_count <= SHORT_RUN * rows.run_count:
        return Bitmap(bitmap_of_ids(rows.to_ids()))
    return Bitmap(bitmap_of_runs(rows.starts, rows.stops))


def as_ranges(rows: Ranges | Bitmap) -> Ranges:
    """Convert to ranges of the same rows."""
    return rows if isinstance(rows, Ranges) else Ranges(*runs_of_bitmap(rows.bitmap))


def _optimized(bitmap: pyroaring.BitMap) -> Bitmap:
    """Wrap a new bitmap, after shrinking it to its smallest form."""
    bitmap.run_optimize()
    return Bitmap(bitmap)
