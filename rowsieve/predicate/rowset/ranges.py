"""Row ids as half-open ranges: the representation of sets with few runs.

Range i is [starts[i], stops[i]). Ranges ascend with a gap between any two, so each set has one
form. Every operation is linear in the number of ranges, whatever rows they span. The arrays are
read-only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Rows [starts[i], stops[i]): ascending, none empty, no two adjacent."""

    starts: Ids
    stops: Ids

    def __post_init__(self) -> None:
        self.starts.flags.writeable = False
        self.stops.flags.writeable = False

    def __iter__(self) -> Iterator[int]:
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            yield from range(start, stop)

    @property
    def run_count(self) -> int:
        """The number of ranges."""
        return len(self.starts)

    @property
    def id_count(self) -> int:
        """The number of rows."""
        if len(self.starts) < 2:
            return int(self.stops[0] - self.starts[0]) if len(self.starts) else 0
        return int(self.stops.sum()) - int(self.starts.sum())

    @property
    def span(self) -> tuple[int, int]:
        """The smallest half-open range that contains all rows; (0, 0) if there are none."""
        return (int(self.starts[0]), int(self.stops[-1])) if len(self.starts) else (0, 0)

    def same(self, other: Ranges) -> bool:
        """Whether both contain the same rows."""
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.stops, other.stops)

    def union(self, other: Ranges) -> Ranges:
        """Return the rows in either set."""
        starts = np.concatenate((self.starts, other.starts))
        stops = np.concatenate((self.stops, other.stops))
        order = np.argsort(starts, kind="stable")  # two ascending runs: one linear merge
        return joined(starts[order], stops[order])

    def intersect(self, other: Ranges) -> Ranges:
        """Return the rows in both sets: cut each range of the smaller set by the other's ranges."""
        few, many = (self, other) if self.run_count <= other.run_count else (other, self)
        begin = np.searchsorted(many.stops, few.starts, side="right")
        counts = np.searchsorted(many.starts, few.stops, side="left") - begin
        mine = np.repeat(np.arange(few.run_count), counts)
        theirs = np.arange(len(mine)) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
        return Ranges(
            np.maximum(few.starts[mine], many.starts[theirs]),
            np.minimum(few.stops[mine], many.stops[theirs]),
        )

    def difference(self, other: Ranges) -> Ranges:
        """Return the rows of this set that are not in `other`."""
        return self.intersect(other.complement(self.span[1])) if self.run_count else self

    def complement(self, row_count: int) -> Ranges:
        """Return all other rows below `row_count`."""
        starts = np.concatenate(([0], self.stops))
        stops = np.minimum(np.concatenate((self.starts, [row_count])), row_count)
        nonempty = starts < stops
        return Ranges(starts[nonempty], stops[nonempty])

    def slice(self, start: int, stop: int) -> Ranges:
        """Return the rows in [start, stop), renumbered from 0."""
        begin = np.searchsorted(self.stops, start, side="right")
        end = np.searchsorted(self.starts, stop, side="left") if start < stop else begin
        starts = np.maximum(self.starts[begin:end], start) - start
        return Ranges(starts, np.minimum(self.stops[begin:end], stop) - start)

    def shift(self, offset: int) -> Ranges:
        """Add `offset` to each id."""
        return Ranges(self.starts + offset, self.stops + offset)

    def contains(self, ids: Ids) -> Mask:
        """Return (n,) bool: which of `ids`, in any order, are in the set."""
        if not self.run_count:
            return np.zeros(len(ids), dtype=np.bool_)
        at = np.searchsorted(self.starts, ids, side="right") - 1
        inside: Mask = (at >= 0) & (ids < self.stops[np.maximum(at, 0)])
        return inside

    def to_ids(self) -> Ids:
        """Return the ids, (len,) int64, ascending. Linear in rows."""
        counts = self.stops - self.starts
        before = np.cumsum(counts) - counts
        ids: Ids = np.arange(counts.sum()) + np.repeat(self.starts - before, counts)
        return ids

    def to_mask(self, row_count: int) -> Mask:
        """Return the mask of the rows, (row_count,) bool."""
        edges = np.zeros(2 * self.run_count + 2, dtype=np.int64)
        edges[1:-1:2], edges[2:-1:2], edges[-1] = self.starts, self.stops, row_count
        inside = np.zeros(len(edges) - 1, dtype=np.bool_)
        inside[1::2] = True
        mask: Mask = np.repeat(inside, np.diff(edges))
        return mask


def joined(starts: Ids, stops: Ids) -> Ranges:
    """Merge ranges that ascend by start; they may touch, overlap and repeat, but none is empty."""
    if len(starts) == 0:
        return Ranges(starts.copy(), stops.copy())
    reach = np.maximum.accumulate(stops)
    apart = starts[1:] > reach[:-1]
    first = np.concatenate(([True], apart))
    last = np.concatenate((apart, [True]))
    return Ranges(starts[first], reach[last])


def ranges_of_mask(mask: Mask) -> Ranges:
    """Return the ranges of the true rows."""
    inner = np.flatnonzero(mask[1:] != mask[:-1]) + 1
    head = [0] if len(mask) and mask[0] else []
    tail = [len(mask)] if len(mask) and mask[-1] else []
    edges = np.concatenate((np.array(head, np.int64), inner, np.array(tail, np.int64)))
    return Ranges(edges[0::2].copy(), edges[1::2].copy())
