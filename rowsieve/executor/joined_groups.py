"""Which row groups of a file are read at once: those of which few pages are wanted.

Reading a page by itself costs more than the page: a file in memory is made, opened and decoded, and
the predicate is evaluated, once for each unit that is read. So the wanted pages of row groups one
after another make one unit, up to the rows of one row group. A unit holds the same pages, in the
same order, as its row groups by themselves. Row groups of which many pages, or all, are wanted are
decoded by column chunk and stay alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from rowsieve.predicate.rowset import RowSet

FEW: Final = 0.5  # of the pages of a row group: from here on decoding all of them is cheaper


def units(
    wanted: RowSet, group_rows: int, page_rows: int, *, most_rows: int
) -> Iterator[tuple[int, int]]:
    """The row groups [first, stop) of each unit, in file order; none without a wanted row.

    Row groups have `group_rows` rows and pages `page_rows`, 0 if they cannot be read one by one;
    the last of either may have less. `most_rows`: of the pages of a unit of several row groups.
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
