"""Overlap groups: connected groups of parts whose key ranges overlap.

Parts that share a key are in the same group, so each group can be merged, pruned and read
independently, and a group of one part needs no merge. Ranges are inclusive and may be too wide,
never too narrow: overlap is <=, a missing bound is infinite, and after a truncated key column the
later columns are infinite (invariant 24). If a lower bound is above the upper one, both are
ignored: the part may hold any key. An overlap group is never cut by file (trap T5).

Grouping is vectorised: bounds become integers that sort like the keys (`key_codes`), so a plan over
100,000 parts costs sorts, not comparisons in Python. Use `KeyRange` for a few parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import as_mask
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import KeyOrder, KeyPart, sort_form
from rowsieve.types.widening import holds_all_of, widened

BoundPart: TypeAlias = tuple[int, KeyPart]
Bound: TypeAlias = tuple[BoundPart, ...]
"""A key bound that compares like keys do, with infinite ends."""
Indices: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[Any]
Side: TypeAlias = Literal["lower", "upper"]

_BELOW: BoundPart = (0, 0)
_ABOVE: BoundPart = (2, 0)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The range of keys that a part may hold, with tombstones; both ends are inclusive."""

    lower: Bound
    upper: Bound

    def overlaps(self, other: KeyRange) -> bool:
        """Return whether the ranges have a key in common."""
        return self.lower <= other.upper and other.lower <= self.upper


def key_ranges(parts: pa.Table, order: KeyOrder) -> list[KeyRange]:
    """Return the key range of each part of a manifest table, in its order. O(parts)."""
    lowers = _bounds(parts, order, "lower", _BELOW)
    uppers = _bounds(parts, order, "upper", _ABOVE)
    any_key = KeyRange((_BELOW,) * len(order.fields), (_ABOVE,) * len(order.fields))
    return [
        KeyRange(lower, upper) if lower <= upper else any_key
        for lower, upper in zip(lowers, uppers, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Disjoint groups of parts: group i is `members[starts[i]:starts[i + 1]]`, never empty."""

    members: Indices
    starts: Indices

    @classmethod
    def singles(cls, count: int) -> Groups:
        """Return one group for each part, in order."""
        return cls(np.arange(count), np.arange(count + 1))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        members, starts = self.members.tolist(), self.starts.tolist()
        for start, stop in itertools.pairwise(starts):
            yield members[start:stop]

    def only(self, mask: npt.NDArray[np.bool_]) -> Groups:
        """Return the groups with only the kept members, without empty groups."""
        starts = np.flatnonzero(np.diff(self.of_members()[mask], prepend=-1))
        return Groups(self.members[mask], np.append(starts, mask.sum()))

    def of_members(self) -> Indices:
        """(n,) the group number of each member."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


def overlap_groups(parts: pa.Table, order: KeyOrder) -> Groups:
    """Group the parts of a manifest by overlap; groups ascend, and their keys are disjoint."""
    return group_by_codes(*key_codes(parts, order))


def group_by_codes(lower: Codes, upper: Codes) -> Groups:
    """Group parts by the codes of their bounds (`key_codes`); (n,) each."""
    wrong = lower > upper
    if wrong.any():
        lower, upper = np.where(wrong, lower.min(), lower), np.where(wrong, upper.max(), upper)
    members = np.argsort(lower, kind="stable")
    reach = np.maximum.accumulate(upper[members])
    first = np.ones(len(members), dtype=np.bool_)
    first[1:] = lower[members][1:] > reach[:-1]
    return Groups(members, np.append(np.flatnonzero(first), len(members)))


def key_codes(parts: pa.Table, order: KeyOrder) -> tuple[Codes, Codes]:
    """Return integers that compare like the lower and upper bounds: (n,) each.

    An infinite bound may get the code of the least or greatest finite bound. This does not change
    overlap, which only tests whether a lower bound is above an upper one.
    """
    columns = [
        (_sort_form(parts, field, "lower"), _sort_form(parts, field, "upper"))
        for field in order.fields
    ]
    lower, upper = columns[0]
    if len(columns) == 1 and pa.types.is_integer(lower.type):
        limits = np.iinfo(lower.type.to_pandas_dtype())
        return _filled(lower, limits.min), _filled(upper, limits.max)
    count = parts.num_rows
    is_upper = np.arange(2 * count) >= count
    infinite = np.zeros(2 * count, dtype=np.bool_)
    codes = np.zeros(2 * count, dtype=np.int64)
    for lower, upper in columns:
        both = pa.concat_arrays([lower, upper])
        infinite |= as_mask(both.is_null())
        ranks, end = _ranks(both)
        ranks = np.where(infinite, np.where(is_upper, end, 0), ranks)
        codes = np.unique(codes * (end + 1) + ranks, return_inverse=True)[1]
    return codes[:count], codes[count:]


def _ranks(values: pa.Array) -> tuple[Indices, int]:
    """Return dense ranks from 1 in the order of the values, and a number above all ranks."""
    if pa.types.is_integer(values.type):
        distinct, ranks = np.unique(_filled(values, 0), return_inverse=True)
        return ranks + 1, len(distinct) + 1
    positions = pc.sort_indices(values)
    ordered = values.take(positions)
    grows = np.ones(len(values), dtype=np.int64)
    grows[1:] = as_mask(
        pc.fill_null(
            pc.not_equal(ordered[1:], ordered[:-1]), pa.scalar(value=False, type=pa.bool_())
        )
    )
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[positions.to_numpy()] = np.cumsum(grows)
    return ranks, len(values) + 1


def _sort_form(parts: pa.Table, field: Field, side: Side) -> pa.Array:
    """Return one bound of one key column; NULL, unknown and unreadable mean infinite.

    Bounds from before the column was widened are cast.
    """
    type_ = arrow_type(field.type)
    index = parts.schema.get_field_index(f"key.{field.id}.{side}")
    if index < 0 or not holds_all_of(type_, parts.schema.field(index).type):
        return sort_form(pa.nulls(parts.num_rows, type_), field.type)
    chunks = widened(parts.column(index), type_).chunks
    array = chunks[0] if len(chunks) == 1 else pa.concat_arrays([*chunks, pa.nulls(0, type_)])
    return sort_form(array, field.type)


def _filled(values: pa.Array, missing: int) -> Codes:
    return np.asarray(values.fill_null(missing).to_numpy(zero_copy_only=False))


def _bounds(parts: pa.Table, order: KeyOrder, side: Side, infinite: BoundPart) -> list[Bound]:
    columns = [_sort_form(parts, field, side).to_pylist() for field in order.fields]
    return [_bound(values, infinite) for values in zip(*columns, strict=True)]


def _bound(values: tuple[KeyPart | None, ...], infinite: BoundPart) -> Bound:
    parts: list[BoundPart] = []
    for value in values:
        if value is None:
            break
        parts.append((1, value))
    return tuple(parts) + (infinite,) * (len(values) - len(parts))
