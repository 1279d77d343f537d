"""Joins neighbouring row groups with few wanted pages into units that are read at once.

Each unit has a fixed cost: a Parquet file is built in memory, opened and decoded, and the predicate
is evaluated. So the wanted pages of consecutive row groups are joined, up to the row count of one
row group. A unit has the same pages in the same order as its row groups. A row group with many
wanted pages is decoded by column chunk, as a unit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from rowsieve.predicate.rowset import RowSet

FEW: Final = 0.75  # share of a row group's pages; above it, decoding all pages is cheaper


def units(
    wanted: RowSet, group_rows: int, page_rows: int, *, most_rows: int
) -> Iterator[tuple[int, int]]:
    """The row groups [first, stop) of each unit, in file order; each unit has a wanted row.

    Row groups have `group_rows` rows; pages have `page_rows`, or 0 if single pages cannot be read.
    The last of either may be shorter. The pages of a joined unit have at most `most_rows` rows.
    """
    cut = page_rows if page_rows and not group_rows % page_rows else group_rows
    first, per_group = wanted.span[0] // group_rows, group_rows // cut
    starts_of = np.arange(first, -(-wanted.span[1] // group_rows)) * group_rows
    rows = np.minimum(wanted.row_count - starts_of, group_rows)
    edges = first * group_rows + np.arange(len(rows) * per_group + 1) * cut
    starts, stops = wanted.ranges()
    held = np.searchsorted(starts, edges[1:]) > np.searchsorted(stops, edges[:-1], "right")
    pages = held.reshape(-1, per_group).sum(axis=1)
    few = (pages * cut <= FEW * rows) & (rows > cut)
    unit: list[int] = []
    taken = 0
    for place in np.flatnonzero(pages).tolist():
        more = int(pages[place]) * cut if few[place] else most_rows + 1
        if unit and taken + more > most_rows:
            yield first + unit[0], first + unit[-1] + 1
            unit, taken = [], 0
        unit.append(place)
        taken += more
    if unit:
        yield first + unit[0], first + unit[-1] + 1
