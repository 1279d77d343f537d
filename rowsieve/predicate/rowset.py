"""A set of row ids of one source, as sorted half-open ranges.

Row ids belong to one file of a known number of rows and die with it (trap T23); sets of different
id spaces never meet, which `intersect` and its fellows check by the row count (trap T34). Algebra
is linear in ranges, never in rows. Immutable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyroaring

from rowsieve.errors import InvalidInput

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """Rows [starts[i], stops[i]) of a source of `row_count` rows; ranges ascend with gaps."""

    starts: Ids
    stops: Ids
    row_count: int

    @classmethod
    def empty(cls, row_count: int) -> RowSet:
        """No row."""
        return cls.from_ranges([], row_count)

    @classmethod
    def full(cls, row_count: int) -> RowSet:
        """Every row."""
        return cls.from_ranges([(0, row_count)], row_count)

    @classmethod
    def from_ranges(cls, ranges: list[tuple[int, int]], row_count: int) -> RowSet:
        """From half-open ranges in any order; they may touch and overlap."""
        pairs = np.array(sorted(r for r in ranges if r[0] < r[1]), dtype=np.int64).reshape(-1, 2)
        if len(pairs) and (pairs[0, 0] < 0 or pairs[:, 1].max() > row_count):
            raise InvalidInput(f"row ids must lie in [0, {row_count}), got {ranges[:3]}")
        return _merged(pairs[:, 0], pairs[:, 1], row_count)

    @classmethod
    def from_mask(cls, mask: npt.NDArray[np.bool_]) -> RowSet:
        """The rows where `mask`, (n,) bool, is true; n is the row count."""
        edges = np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))
        return cls(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), len(mask))

    @classmethod
    def from_ids(cls, ids: Ids, row_count: int) -> RowSet:
        """The rows with these ids, ascending and each once."""
        return _merged(ids, ids + 1, row_count)

    @property
    def size_bytes(self) -> int:
        """Memory that it holds."""
        return int(self.starts.nbytes + self.stops.nbytes)

    @classmethod
    def from_bitmap(cls, bitmap: pyroaring.BitMap, row_count: int) -> RowSet:
        """From a roaring bitmap of row ids below `row_count`."""
        ids = np.frombuffer(bitmap.to_array(), dtype=np.uint32).astype(np.int64)
        if len(ids) and ids[-1] >= row_count:
            raise InvalidInput(f"row id {ids[-1]} is outside a source of {row_count} rows")
        return _merged(ids, ids + 1, row_count)

    def __len__(self) -> int:
        return int((self.stops - self.starts).sum())

    def __iter__(self) -> Iterator[int]:
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            yield from range(start, stop)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowSet):
            return NotImplemented
        return (
            self.row_count == other.row_count
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.stops, other.stops)
        )

    def __hash__(self) -> int:
        return hash((self.row_count, self.starts.tobytes(), self.stops.tobytes()))

    @property
    def is_empty(self) -> bool:
        """Whether it holds no row."""
        return len(self.starts) == 0

    @property
    def is_full(self) -> bool:
        """Whether it holds every row."""
        return len(self) == self.row_count

    def complement(self) -> RowSet:
        """Every other row."""
        starts = np.concatenate(([0], self.stops))
        stops = np.concatenate((self.starts, [self.row_count]))
        kept = starts < stops
        return RowSet(starts[kept], stops[kept], self.row_count)

    def union(self, other: RowSet) -> RowSet:
        """Rows of either."""
        self._check(other)
        starts = np.concatenate((self.starts, other.starts))
        order = np.argsort(starts, kind="stable")
        stops = np.concatenate((self.stops, other.stops))
        return _merged(starts[order], stops[order], self.row_count)

    def intersect(self, other: RowSet) -> RowSet:
        """Rows of both."""
        return self.complement().union(other.complement()).complement()

    def difference(self, other: RowSet) -> RowSet:
        """Rows of this one that are not in `other`."""
        return self.intersect(other.complement())

    def slice(self, start: int, stop: int) -> RowSet:
        """Rows [start, stop), renumbered from 0, of a source of stop - start rows."""
        first = int(np.searchsorted(self.stops, start, side="right"))
        last = int(np.searchsorted(self.starts, stop, side="left"))
        starts = np.clip(self.starts[first:last], start, stop) - start
        stops = np.clip(self.stops[first:last], start, stop) - start
        return RowSet(starts, stops, stop - start)

    def to_mask(self) -> npt.NDArray[np.bool_]:
        """(row_count,) bool."""
        edges = np.zeros(self.row_count + 1, dtype=np.int8)
        edges[self.starts] += 1
        edges[self.stops] -= 1
        return np.cumsum(edges[:-1], dtype=np.int8).astype(bool)

    def to_bitmap(self) -> pyroaring.BitMap:
        """As a roaring bitmap."""
        bitmap = pyroaring.BitMap()
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            bitmap.add_range(start, stop)
        return bitmap

    def _check(self, other: RowSet) -> None:
        if self.row_count != other.row_count:
            raise InvalidInput(
                f"row sets of different sources: {self.row_count} rows and {other.row_count} rows"
            )


def _merged(starts: Ids, stops: Ids, row_count: int) -> RowSet:
    """Join ranges, ascending by start, that touch or overlap."""
    if len(starts) == 0:
        none = np.empty(0, dtype=np.int64)
        return RowSet(none, none, row_count)
    reach = np.maximum.accumulate(stops)
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return RowSet(starts[first], reach[last], row_count)
