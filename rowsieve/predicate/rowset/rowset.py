"""`RowSet`: row ids of one source, which every stage of a read uses to select rows.

Row ids belong to one file with a known number of rows, and are meaningless elsewhere (trap T23).
Operations on two sets check that their row counts are equal, because ids of different sources must
not be mixed (trap T34). The rows of `p` and the complement of the rows of `NOT p` differ by the
rows where `p` is NULL, so callers must not complement matches (trap T8).

A set with few ranges is stored as ranges, any other as a roaring bitmap; the API does not expose
which. Sets are immutable: inputs are copied, and results are copies or read-only. Operations are
linear in runs or bitmap bytes, never in rows, except for conversions of rows (`from_ids`,
`from_mask`, `to_ids`, `to_mask`, iteration).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt
import pyroaring

from rowsieve.errors import InvalidInput, repr_of
from rowsieve.predicate.rowset.bitmap import Bitmap, as_bitmap, as_ranges
from rowsieve.predicate.rowset.choice import chosen, chosen_of_ids, chosen_of_mask
from rowsieve.predicate.rowset.ranges import Ids, Mask, Ranges, joined
from rowsieve.predicate.rowset.roaring import ID_LIMIT
from rowsieve.predicate.rowset.serialized import decode, encode

_NO_RANGES = Ranges(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

_MAX_BITS = 1_024  # of an argument; Python writes no integer of more than 4,300 digits


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowSet:
    """A subset of the rows 0 to `row_count` - 1 of one source. Create it with a class method."""

    _rows: Ranges | Bitmap
    row_count: int

    @classmethod
    def empty(cls, row_count: int) -> RowSet:
        """Return the empty set."""
        _check_space(row_count)
        return cls(_NO_RANGES, row_count)

    @classmethod
    def full(cls, row_count: int) -> RowSet:
        """Return the set of all rows."""
        _check_space(row_count)
        if not row_count:
            return cls(_NO_RANGES, 0)
        return cls(Ranges(np.zeros(1, dtype=np.int64), np.array([row_count])), row_count)

    @classmethod
    def from_ranges(
        cls, ranges: Sequence[tuple[int, int]] | npt.NDArray[np.integer], row_count: int
    ) -> RowSet:
        """Build from half-open ranges, pairs or (n, 2) integers, in any order; they may overlap."""
        _check_space(row_count)
        pairs = _integers(ranges, "ranges", 2)
        starts, stops = pairs[:, 0], pairs[:, 1]
        if (starts < 0).any() or (stops > row_count).any():
            bad = pairs[(starts < 0) | (stops > row_count)][0]
            raise InvalidInput(f"row ids must lie in [0, {row_count}), got [{bad[0]}, {bad[1]})")
        if (starts > stops).any():
            bad = pairs[starts > stops][0]
            raise InvalidInput(f"a range must not stop before it starts, got [{bad[0]}, {bad[1]})")
        order = np.argsort(starts, kind="stable")
        order = order[(starts < stops)[order]]
        begins: Ids = starts[order].astype(np.int64)
        ends: Ids = stops[order].astype(np.int64)
        return _row_set(joined(begins, ends), row_count)

    @classmethod
    def from_ids(cls, ids: npt.NDArray[np.integer], row_count: int) -> RowSet:
        """Build from (n,) ascending integers, which may repeat."""
        _check_space(row_count)
        rows = _integers(ids, "ids", 1)
        if (rows[1:] < rows[:-1]).any():
            raise InvalidInput("row ids must ascend: sort them before making a row set")
        if len(rows) and (rows[0] < 0 or rows[-1] >= row_count):
            raise InvalidInput(f"row ids must lie in [0, {row_count}), got {rows[0]} to {rows[-1]}")
        return cls(chosen_of_ids(rows.astype(np.int64), row_count), row_count)

    @classmethod
    def from_mask(cls, mask: Mask) -> RowSet:
        """Build from a mask, (n,) bool, of the rows; n is the row count."""
        if not isinstance(mask, np.ndarray):
            raise InvalidInput(f"a row mask must be a NumPy array, not {type(mask).__name__}")
        if mask.ndim != 1 or mask.dtype != np.bool_:
            raise InvalidInput(
                f"a row mask must be (n,) bool, got {mask.shape} {mask.dtype}; replace NULLs, "
                "and cast numbers to bool"
            )
        _check_space(len(mask))
        return cls(chosen_of_mask(mask), len(mask))

    @classmethod
    def from_row_groups(cls, mask: Mask, group_rows: int, row_count: int) -> RowSet:
        """Build from a mask of row groups, (g,) bool.

        Every group has `group_rows` rows, except the last one, which has the remaining rows.
        """
        _check_space(row_count)
        _check_whole(group_rows, "group_rows")
        groups = cls.from_mask(mask)
        if group_rows < 1 or groups.row_count != -(-row_count // group_rows):
            raise InvalidInput(
                f"{groups.row_count} row groups of {group_rows} rows do not make a source of "
                f"{row_count} rows"
            )
        rows = min(group_rows, row_count)
        starts, stops = groups.ranges()
        return _row_set(Ranges(starts * rows, np.minimum(stops * rows, row_count)), row_count)

    @classmethod
    def from_bitmap(cls, bitmap: pyroaring.AbstractBitMap, row_count: int) -> RowSet:
        """Build from a roaring bitmap of row ids below `row_count`; it is copied."""
        _check_space(row_count)
        if not isinstance(bitmap, pyroaring.AbstractBitMap):
            raise InvalidInput(f"bitmap must be a roaring bitmap, not {type(bitmap).__name__}")
        if len(bitmap) and bitmap.max() >= row_count:
            raise InvalidInput(f"row id {bitmap.max()} is outside a source of {row_count} rows")
        copy = pyroaring.BitMap(bitmap)
        copy.run_optimize()
        return _row_set(Bitmap(copy), row_count)

    @classmethod
    def from_bytes(cls, data: bytes, row_count: int) -> RowSet:
        """Decode the output of `to_bytes`; CorruptData unless it has `row_count` rows."""
        _check_space(row_count)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidInput(f"data must be bytes, not {type(data).__name__}")
        return _row_set(decode(data, row_count), row_count)

    def __len__(self) -> int:
        return self._rows.id_count

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, int | np.integer):
            return False
        return bool(self.contains(np.array([row]))[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowSet):
            return NotImplemented
        if self.row_count != other.row_count:
            return False
        mine, theirs = self._rows, other._rows
        if isinstance(mine, Bitmap) and isinstance(theirs, Bitmap):
            return mine.same(theirs)
        return as_ranges(mine).same(as_ranges(theirs))

    def __hash__(self) -> int:
        starts, stops = self.ranges()
        return hash((self.row_count, starts.tobytes(), stops.tobytes()))

    def __repr__(self) -> str:
        first, stop = self.span
        within = f" in [{first}, {stop})" if stop else ""
        runs = self._rows.run_count
        return f"RowSet({len(self)} of {self.row_count} rows, {runs} ranges{within})"

    @property
    def is_empty(self) -> bool:
        """Whether the set has no rows."""
        rows = self._rows
        return len(rows.starts) == 0 if isinstance(rows, Ranges) else rows.id_count == 0

    @property
    def is_full(self) -> bool:
        """Whether the set has all rows."""
        return len(self) == self.row_count

    @property
    def span(self) -> tuple[int, int]:
        """The smallest half-open range that contains all rows of the set; (0, 0) if it is empty."""
        return self._rows.span

    @property
    def size_bytes(self) -> int:
        """The approximate memory size."""
        if isinstance(self._rows, Ranges):
            return self._rows.starts.nbytes + self._rows.stops.nbytes
        return len(self._rows.bitmap.serialize())

    def contains(self, ids: npt.NDArray[np.integer]) -> Mask:
        """Return (n,) bool: which of `ids`, (n,) integers in any order, are in the set."""
        rows = _integers(ids, "ids", 1)
        if len(rows) and (rows.min() < 0 or rows.max() >= self.row_count):
            raise InvalidInput(
                f"row ids must lie in [0, {self.row_count}), got {rows.min()} to {rows.max()}"
            )
        return self._rows.contains(rows.astype(np.int64))

    def union(self, other: RowSet) -> RowSet:
        """Return the rows in either set."""
        self._check(other)
        mine, theirs = self._rows, other._rows
        if isinstance(mine, Ranges) and isinstance(theirs, Ranges):
            return _row_set(mine.union(theirs), self.row_count)
        return _row_set(as_bitmap(mine).union(as_bitmap(theirs)), self.row_count)

    def intersect(self, other: RowSet) -> RowSet:
        """Return the rows in both sets."""
        self._check(other)
        mine, theirs = self._rows, other._rows
        if isinstance(mine, Ranges) and isinstance(theirs, Ranges):
            return _row_set(mine.intersect(theirs), self.row_count)
        return _row_set(as_bitmap(mine).intersect(as_bitmap(theirs)), self.row_count)

    def difference(self, other: RowSet) -> RowSet:
        """Return the rows of this set that are not in `other`."""
        self._check(other)
        mine, theirs = self._rows, other._rows
        if isinstance(mine, Ranges) and isinstance(theirs, Ranges):
            return _row_set(mine.difference(theirs), self.row_count)
        return _row_set(as_bitmap(mine).difference(as_bitmap(theirs)), self.row_count)

    def complement(self, within: RowSet | None = None) -> RowSet:
        """Return all other rows of the source or of `within`. Not the rows of a NOT: see above."""
        if within is not None:
            self._check(within)
            return within.difference(self)
        return _row_set(self._rows.complement(self.row_count), self.row_count)

    def slice(self, start: int, stop: int) -> RowSet:
        """Return the rows in [start, stop), renumbered from 0, of a source of stop - start rows."""
        _check_whole(start, "start")
        _check_whole(stop, "stop")
        if not 0 <= start <= stop <= self.row_count:
            raise InvalidInput(
                f"rows [{start}, {stop}) are not within a source of {self.row_count} rows"
            )
        return _row_set(self._rows.slice(start, stop), stop - start)

    def shift(self, offset: int, row_count: int) -> RowSet:
        """Add `offset` to each id; the new source, of `row_count` rows, must contain them all."""
        _check_space(row_count)
        _check_whole(offset, "offset")
        if self.is_empty:
            return RowSet.empty(row_count)
        first, last = self.span[0] + offset, self.span[1] - 1 + offset
        if first < 0 or last >= row_count:
            raise InvalidInput(
                f"rows moved by {offset} reach from {first} to {last}, outside a source of "
                f"{row_count} rows"
            )
        return _row_set(self._rows.shift(offset), row_count)

    def ranges(self) -> tuple[Ids, Ids]:
        """Return (starts, stops): half-open ranges, ascending, not adjacent; read-only arrays."""
        ranges = as_ranges(self._rows)
        return ranges.starts, ranges.stops

    def to_ids(self) -> Ids:
        """Return the ids, (len,) int64, ascending."""
        return self._rows.to_ids()

    def to_mask(self) -> Mask:
        """Return the mask of the rows, (row_count,) bool."""
        return self._rows.to_mask(self.row_count)

    def to_bitmap(self) -> pyroaring.BitMap:
        """Return a new roaring bitmap, which the caller owns."""
        bitmap = as_bitmap(self._rows).bitmap
        return bitmap.copy() if isinstance(self._rows, Bitmap) else bitmap

    def to_bytes(self) -> bytes:
        """Serialise with version and checksum, for `from_bytes`."""
        return encode(self._rows, self.row_count)

    def _check(self, other: RowSet) -> None:
        if not isinstance(other, RowSet):
            raise InvalidInput(f"a RowSet can be combined with another one, not {type(other)!r}")
        if self.row_count != other.row_count:
            raise InvalidInput(
                f"row sets of different sources: {self.row_count} rows and {other.row_count} rows"
            )


def _row_set(rows: Ranges | Bitmap, row_count: int) -> RowSet:
    return RowSet(chosen(rows, row_count), row_count)


def _check_space(row_count: int) -> None:
    _check_whole(row_count, "row_count")
    if not 0 <= row_count <= ID_LIMIT:
        raise InvalidInput(
            f"a source of {row_count} rows cannot be addressed: row ids are limited to "
            f"{ID_LIMIT:,} per source; split it into smaller files"
        )


def _check_whole(value: object, name: str) -> None:
    """Refuse a value that is not a whole number; `checked` is too slow for each part's row set."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, Integral)):
        raise InvalidInput(f"{name} must be a whole number, not {type(value).__name__}")
    if int(value).bit_length() > _MAX_BITS:
        raise InvalidInput(f"{name} is a number of more than {_MAX_BITS:,} bits")


def _integers(values: object, what: str, dimensions: int) -> npt.NDArray[np.integer]:
    """Convert to (n,) or (n, 2) integers; raise rather than truncate, wrap or reshape values."""
    shape = "(n,)" if dimensions == 1 else "(n, 2)"
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"row {what} must be {shape} integers, got {repr_of(values)}") from error
    if array.shape == (0,):  # an empty list has no type of its own
        return np.empty((0, 2)[:dimensions], dtype=np.int64)
    fits = array.ndim == dimensions and array.shape[1:] in {(), (2,)}
    if not fits or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"row {what} must be {shape} integers, got {array.shape} of type {array.dtype}"
        )
    return array
