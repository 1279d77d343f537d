"""Row sets in a backing of the test's choice, whatever their size would choose."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.rowset.bitmap import Bitmap, as_bitmap, as_ranges
from rowsieve.predicate.rowset.ranges import Ranges

BACKINGS = ("ranges", "bitmap")
PAIRS = tuple((left, right) for left in BACKINGS for right in BACKINGS)


def backed(rows: RowSet, backing: str) -> RowSet:
    """The same set, held as `backing` says."""
    held = as_bitmap(rows._rows) if backing == "bitmap" else as_ranges(rows._rows)
    return RowSet(held, rows.row_count)


def rowset(ids: Collection[int], row_count: int, backing: str) -> RowSet:
    """The set of these rows, held as `backing` says."""
    rows = RowSet.from_ids(np.array(sorted(ids), dtype=np.int64), row_count)
    return backed(rows, backing)


def backing_of(rows: RowSet) -> str:
    """How the set is held."""
    return "ranges" if isinstance(rows._rows, Ranges) else "bitmap"


def assert_one_form(rows: RowSet) -> None:
    """Fail unless ranges ascend with gaps, and a bitmap is at least well formed."""
    assert isinstance(rows._rows, Ranges | Bitmap)
    starts, stops = rows.ranges()
    assert starts.dtype == stops.dtype == np.int64
    assert (starts < stops).all()
    assert (starts[1:] > stops[:-1]).all()
    assert len(starts) == 0 or (starts[0] >= 0 and stops[-1] <= rows.row_count)
