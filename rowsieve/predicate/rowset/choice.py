"""Which backing a set of rows calls for: ranges, unless a bitmap is surely smaller.

The choice rests on the number of runs and rows alone, so a set is held alike however it came
about. Where many ids or a mask come in, runs are counted first and spelt out only if they are kept.
"""

from __future__ import annotations

import numpy as np

from rowsieve.predicate.rowset.bitmap import SHORT_RUN, Bitmap, as_bitmap, as_ranges
from rowsieve.predicate.rowset.ranges import Ids, Mask, Ranges, joined, ranges_of_mask
from rowsieve.predicate.rowset.roaring import CONTAINER_ROWS, bitmap_of_ids

FEW_RUNS = 1024  # so few runs are quicker as ranges, and 16 KB at most
_RUN_BYTES = 16  # two int64
_ROARING_RUN_BYTES = 4  # at most: a run of a run container
_ROARING_CONTAINER_BYTES = 14  # at most: its header, and one run more where a run is cut


def chosen(rows: Ranges | Bitmap, row_count: int) -> Ranges | Bitmap:
    """The rows, of a source of `row_count` rows, in the backing that their runs call for."""
    return as_ranges(rows) if _fit_ranges(rows.run_count, row_count) else as_bitmap(rows)


def chosen_of_ids(ids: Ids, row_count: int) -> Ranges | Bitmap:
    """The rows of ascending ids, which may repeat."""
    run_count = int(np.count_nonzero(np.diff(ids) > 1)) + 1
    if _fit_ranges(run_count, row_count) or len(ids) > SHORT_RUN * run_count:
        return chosen(joined(ids, ids + 1), row_count)
    return Bitmap(bitmap_of_ids(ids))


def chosen_of_mask(mask: Mask) -> Ranges | Bitmap:
    """The true rows of a mask."""
    run_count = int(np.count_nonzero(mask[1:] > mask[:-1])) + int(mask[:1].sum())
    if _fit_ranges(run_count, len(mask)) or np.count_nonzero(mask) > SHORT_RUN * run_count:
        return chosen(ranges_of_mask(mask), len(mask))
    return Bitmap(bitmap_of_ids(np.flatnonzero(mask)))


def _fit_ranges(run_count: int, row_count: int) -> bool:
    containers = -(-row_count // CONTAINER_ROWS)
    bitmap_bytes = run_count * _ROARING_RUN_BYTES + containers * _ROARING_CONTAINER_BYTES
    return run_count <= FEW_RUNS or run_count * _RUN_BYTES <= bitmap_bytes
