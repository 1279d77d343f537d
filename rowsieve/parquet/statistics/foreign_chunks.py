"""The statistics of column chunks in a footer of another writer; doubtful ones are unknown.

Soundness (trap T32, invariant 45): of a chunk, these are unknown:

- a bound of the wrong length or of a boolean beyond 1, and a negative count of NULLs;
- bounds of text, bytes, fixed-length values and unsigned numbers, unless the footer declares for
  all columns that bounds are in the order of the type: older files order them by signed bytes;
- what its writer is known to make wrongly (`rowsieve.parquet.statistics.known_faults`);
- everything, if its claims contradict each other or the schema: as many NULLs as rows and yet
  bounds, more NULLs than rows, NULLs in a required column, a type or number of values that is not
  its column's.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.footer_fields import MAX, MIN, NULLS, OLD_MAX, OLD_MIN
from rowsieve.parquet.foreign_footer.schema_tree import BOOLEAN, FIXED, LENGTHS, Leaf
from rowsieve.parquet.foreign_footer.struct_lanes import Numbers
from rowsieve.parquet.foreign_footer.struct_shapes import Path
from rowsieve.parquet.statistics.known_faults import Claim
from rowsieve.parquet.statistics.stored_bounds import StoredBounds
from rowsieve.predicate.arrays import Mask

_NUMPY: Final = {0: "?", 1: "<i4", 2: "<i8", 4: "<f4", 5: "<f8"}  # by physical type


class ChunkStatistics(NamedTuple):
    """The statistics of a column chunk; None is unknown."""

    nulls: int | None = None
    lower: bytes | None = None
    upper: bytes | None = None


def stored_chunks(footer: CheckedFooter, leaf: int) -> StoredBounds:
    """The statistics of one leaf column in every row group."""
    column, rows = footer.leaves[leaf], footer.rows
    lower, upper = _paths(footer, column)
    bounded = _well_formed(footer, leaf, lower) & _well_formed(footer, leaf, upper)
    nulls = footer.numbers(NULLS, leaf)
    counted = nulls >= 0
    wrong = footer.suspicious[leaf :: len(footer.leaves)].copy()
    if not column.repetitions:
        wrong |= counted & (nulls > rows)
        wrong |= counted & (nulls == rows) & bounded
        if not column.definitions:
            wrong |= counted & (nulls > 0)
    if column.doubts & Claim.NULLS:
        nulls = np.full(len(rows), -1, np.int64)
    if column.doubts & Claim.BOUNDS or not _has_order(footer, column):
        bounded = np.zeros(len(rows), np.bool_)
    nulls = np.where(wrong, -1, nulls)
    bounded = bounded & ~wrong
    return StoredBounds(
        rows, nulls, bounded, _values(footer, leaf, lower, bounded),
        _values(footer, leaf, upper, bounded),
    )  # fmt: skip


def chunk_statistics(footer: CheckedFooter, group: int, leaf: int) -> ChunkStatistics:
    """The statistics of one chunk, with bounds as the file stores them."""
    if footer.suspicious[group * len(footer.leaves) + leaf]:
        return ChunkStatistics()
    column = footer.leaves[leaf]
    nulls = int(footer.numbers(NULLS, leaf)[group])
    bounds = []
    for path in _paths(footer, column):
        place = group * len(footer.leaves) + leaf
        there = _has_order(footer, column) and _well_formed(footer, leaf, path)[group]
        start, stop = footer.chunks.values[path][place], footer.chunks.stops[path][place]
        bounds.append(footer.data[start:stop] if there else None)
    return ChunkStatistics(None if nulls < 0 else nulls, *bounds)


def value_in(bound: bytes, leaf: Leaf) -> Any:
    """Decode a bound of the right length to a value for `StoredBounds`."""
    match leaf.physical:
        case 0:
            return bound != b"\0"
        case 1 | 2:
            return int.from_bytes(bound, "little", signed=True)
        case 4:
            return struct.unpack("<f", bound)[0]
        case 5:
            return struct.unpack("<d", bound)[0]
        case _:
            return bound


def is_bound(bound: Any, leaf: Leaf) -> bool:
    """Return whether the bytes have the length of a bound of this column."""
    if not isinstance(bound, bytes):
        return False
    length = leaf.width if leaf.physical == FIXED else LENGTHS.get(leaf.physical, len(bound))
    return len(bound) == length and (leaf.physical != BOOLEAN or bound[0] <= 1)


def _has_order(footer: CheckedFooter, leaf: Leaf) -> bool:
    return leaf.has_order and (footer.ordered or leaf.is_signed)


def _paths(footer: CheckedFooter, leaf: Leaf) -> tuple[Path, Path]:
    """Where the bounds lie: the older fields count only if no orders are declared."""
    may_be_older = not footer.ordered and leaf.is_signed
    if may_be_older and not (footer.chunks.stops[MIN] >= 0).any():
        return OLD_MIN, OLD_MAX
    return MIN, MAX


def _well_formed(footer: CheckedFooter, leaf: int, path: Path) -> Mask:
    """(groups,) whether a bound is there and has the length of its type."""
    step, column = len(footer.leaves), footer.leaves[leaf]
    starts, stops = footer.chunks.values[path][leaf::step], footer.chunks.stops[path][leaf::step]
    length = column.width if column.physical == FIXED else LENGTHS.get(column.physical)
    right = stops >= 0 if length is None else stops - starts == length
    right = np.asarray(right & (stops >= 0))
    if column.physical == BOOLEAN:  # 0 or 1
        right[right] = _gathered(footer.data, starts[right], np.dtype(np.uint8)) <= 1
    return right


def _values(footer: CheckedFooter, leaf: int, path: Path, bounded: Mask) -> list[Any]:
    """(groups,) the physical values of bounds; None where there is none."""
    step, column = len(footer.leaves), footer.leaves[leaf]
    starts, stops = footer.chunks.values[path][leaf::step], footer.chunks.stops[path][leaf::step]
    bounds: list[Any] = [None] * len(bounded)
    places = np.flatnonzero(bounded)
    if (form := _NUMPY.get(column.physical)) is not None:
        values = _gathered(footer.data, starts[places], np.dtype(form)).tolist()
    else:
        edges = zip(starts[places].tolist(), stops[places].tolist(), strict=True)
        values = [footer.data[start:stop] for start, stop in edges]
    for place, value in zip(places.tolist(), values, strict=True):
        bounds[place] = value
    return bounds


def _gathered(data: bytes, starts: Numbers, form: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values of a fixed width that lie at these positions."""
    whole = np.frombuffer(data, np.uint8)
    cells = whole[starts[:, None] + np.arange(form.itemsize)]
    return np.ascontiguousarray(cells).view(form)[:, 0] if len(starts) else np.zeros(0, form)
