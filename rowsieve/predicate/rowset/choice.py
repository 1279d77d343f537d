"""Choose the representation of a set of rows: ranges, unless a bitmap is surely smaller.

The choice depends on the numbers of runs and rows only, so equal sets have one representation. For
ids and masks, runs are counted first and materialised only if ranges are chosen.
"""

from __future__ import annotations

import numpy as np

from rowsieve.predicate.rowset.bitmap import SHORT_RUN, Bitmap, as_bitmap, as_ranges
from rowsieve.predicate.rowset.ranges import Ids, Mask, Ranges, joined, ranges_of_mask
from rowsieve.predicate.rowset.roaring import CONTAINER_ROWS, bitmap_of_ids

RANGES_UP_TO_RUNS = 1024  # ranges are faster for so few runs, and take at most 16 KB
_RUN_BYTES = 16  # two int64
_ROARING_RUN_BYTES = 4  # upper bound, for a run in a run container
_ROARING_CONTAINER_BYTES = 14  # upper bound: header, and another run where one is split


def chosen(rows: Ranges | Bitmap, row_count: int) -> Ranges | Bitmap:
    """Convert the rows of a source of `row_count` rows to the representation for their runs."""
    if isinstance(rows, Ranges) and len(rows.starts) <= RANGES_UP_TO_RUNS:
        return rows
    return as_ranges(rows) if _fit_ranges(rows.run_count, row_count) else as_bitmap(rows)


def chosen_of_ids(ids: Ids, row_count: int) -> Ranges | Bitmap:
    """Build the set of ascending ids, which may repeat."""
    run_count = int(np.count_nonzero(np.diff(ids) > 1)) + 1
    if _fit_ranges(run_count, row_count) or len(ids) > SHORT_RUN * run_count:
        return chosen(joined(ids, ids + 1), row_count)
    return Bitmap(bitmap_of_ids(ids))


def chosen_of_mask(mask: Mask) -> Ranges | Bitmap:
    """Build the set of the true rows of a mask."""
    run_count = int(np.count_nonzero(mask[1:] > mask[:-1])) + int(mask[:1].sum())
    if _fit_ranges(run_count, len(mask)) or np.count_nonzero(mask) > SHORT_RUN * run_count:
        return chosen(ranges_of_mask(mask), len(mask))
    return Bitmap(bitmap_of_ids(np.flatnonzero(mask)))


def _fit_ranges(run_count: int, row_count: int) -> bool:
    containers = -(-row_count // CONTAINER_ROWS)
    bitmap_bytes = run_count * _ROARING_RUN_BYTES + containers * _ROARING_CONTAINER_BYTES
    return run_count <= RANGES_UP_TO_RUNS or run_count * _RUN_BYTES <= bitmap_bytes
