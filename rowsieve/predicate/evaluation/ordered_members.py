"""Sorted IN lists: find ranges that contain a member, and values that are members."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Mask, as_mask, compare, filled, null_mask
from rowsieve.predicate.ir import ComparisonOp, ValueSet
from rowsieve.predicate.semantics import NanOrder

_SHORT_LIST = 16  # rows per member; above it, searching the column for each member is faster
_LONG_LIST = 2  # members per row; above it, searching the members is faster than hashing


def members_within(lower: pa.Array, upper: pa.Array, values: ValueSet) -> tuple[Mask, Mask]:
    """Return masks, (n,): a member lies in [lower, upper]; a member equals `lower`.

    A NULL bound is unbounded, and equals no member. O((n + m) log m) for m members.
    """
    ordered = values.ordered
    no_lower, no_upper = null_mask(lower), null_mask(upper)
    first = np.where(no_lower, 0, _insertion_points(ordered, lower, right=False))
    after_lower = _insertion_points(ordered, lower, right=True)
    stop = np.where(no_upper, len(ordered), _insertion_points(ordered, upper, right=True))
    return first < stop, (after_lower > first) & ~no_lower


def are_members(lower: pa.Array, upper: pa.Array, values: ValueSet) -> Mask:
    """Return (n,): every integer in [lower, upper] is a member; false where a bound is NULL."""
    members = np.unique(filled(values.ordered))
    low, high = filled(lower), filled(upper)
    first, stop = np.searchsorted(members, low), np.searchsorted(members, high, side="right")
    known: Mask = ~(null_mask(lower) | null_mask(upper)) & (stop > first)
    last = members[np.maximum(stop - 1, 0)] if len(members) else low
    start = members[np.minimum(first, len(members) - 1)] if len(members) else high
    dense = (last - start).astype(np.uint64) == (stop - first - 1).astype(np.uint64)
    whole: Mask = known & (start == low) & (last == high) & dense
    return whole


def is_member(column: pa.Array, values: ValueSet) -> Mask | None:
    """Return (n,): the value is a member, for integers, dates and times.

    None if a hash table is faster: it is rebuilt for each call, while the sorted members are
    cached. Searching is faster for long lists, and for few members within the range of a column
    that ascends, as the key of a part does. The result for NULL is undefined.
    """
    if pa.types.is_floating(column.type) or not _is_plain(column.type):
        return None
    if len(values) < _LONG_LIST * max(1, len(column)):
        return _is_member_if_ascending(column, values)
    ordered, keys = filled(values.ordered), filled(column)
    if not len(ordered):
        return np.zeros(len(keys), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    matches: Mask = ordered[places] == keys
    return matches


def _is_member_if_ascending(column: pa.Array, values: ValueSet) -> Mask | None:
    """`is_member` for a column that ascends and is much longer than the list is in its range.

    None for any other. Checks every value of the column, whatever the file promises.
    """
    if column.null_count or not len(column):
        return None
    keys, ordered = filled(column), filled(values.ordered)
    if keys.dtype != ordered.dtype or keys[0] > keys[-1]:
        return None
    start, end = ordered.searchsorted(keys[0]), ordered.searchsorted(keys[-1], side="right")
    in_range = ordered[start:end]
    if len(in_range) * _SHORT_LIST > len(keys) or (keys[1:] < keys[:-1]).any():
        return None
    members = np.unique(in_range)
    first, stop = keys.searchsorted(members), keys.searchsorted(members, side="right")
    counts = stop - first
    before = np.cumsum(counts) - counts
    matches = np.zeros(len(keys), dtype=np.bool_)
    matches[np.arange(counts.sum()) + np.repeat(first - before, counts)] = True
    return matches


def _insertion_points(ordered: pa.Array, keys: pa.Array, *, right: bool) -> npt.NDArray[np.int64]:
    """Count the members below each key, or up to it with `right`."""
    if _is_plain(ordered.type):
        counts = np.searchsorted(filled(ordered), filled(keys), side="right" if right else "left")
        return counts.astype(np.int64)
    op = ComparisonOp.LE if right else ComparisonOp.LT
    low = np.zeros(len(keys), dtype=np.int64)
    high = np.full(len(keys), len(ordered), dtype=np.int64)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        probe = ordered.take(pa.array(np.where(open_, middle, 0)))
        before = as_mask(compare(op, probe, keys, NanOrder.GREATEST))
        low = np.where(open_ & before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    return low


def _is_plain(type_: Any) -> bool:
    """Whether numpy orders the type as we do: NaN is last, and -0.0 equals 0.0."""
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_time64(type_)
        or pa.types.is_timestamp(type_)
    )
