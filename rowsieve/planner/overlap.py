"""Which parts may hold the same key: the connected groups of overlapping key ranges.

A key that two parts share lies in one group, so groups can be merged, pruned and read without each
other, and a group of one part needs no merge at all. Ranges are inclusive and may be too wide,
never too narrow: overlap is <=, a missing bound is infinite, and after a truncated key column the
later ones are infinite (invariant 24). An overlap group is never cut by file (trap T5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from rowsieve.types.keys import KeyOrder, KeyPart, sort_form

BoundPart: TypeAlias = tuple[int, KeyPart]
Bound: TypeAlias = tuple[BoundPart, ...]
"""A key bound that compares like keys do, with infinite ends."""

_BELOW: BoundPart = (0, 0)
_ABOVE: BoundPart = (2, 0)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """All keys a part may hold, tombstones included; both ends belong to it."""

    lower: Bound
    upper: Bound

    def overlaps(self, other: KeyRange) -> bool:
        """Whether a key may lie in both."""
        return self.lower <= other.upper and other.lower <= self.upper


def key_ranges(parts: pa.Table, order: KeyOrder) -> list[KeyRange]:
    """The key range of every part of a manifest table, in its order."""
    lowers = _bounds(parts, order, "lower", _BELOW)
    uppers = _bounds(parts, order, "upper", _ABOVE)
    return [KeyRange(lower, upper) for lower, upper in zip(lowers, uppers, strict=True)]


def overlap_groups(ranges: Sequence[KeyRange]) -> list[list[int]]:
    """Indices of the ranges, grouped by overlap; groups ascend and their keys are disjoint."""
    groups: list[list[int]] = []
    reach: Bound | None = None
    for index in sorted(range(len(ranges)), key=lambda i: ranges[i].lower):
        span = ranges[index]
        if reach is not None and span.lower <= reach:
            groups[-1].append(index)
            reach = max(reach, span.upper)
        else:
            groups.append([index])
            reach = span.upper
    return groups


def _bounds(parts: pa.Table, order: KeyOrder, side: str, infinite: BoundPart) -> list[Bound]:
    columns = []
    for field in order.fields:
        name = f"key.{field.id}.{side}"
        if name in parts.column_names:
            columns.append(sort_form(parts.column(name), field.type).to_pylist())
        else:
            columns.append([None] * parts.num_rows)
    return [_bound(values, infinite) for values in zip(*columns, strict=True)]


def _bound(values: tuple[KeyPart | None, ...], infinite: BoundPart) -> Bound:
    parts: list[BoundPart] = []
    for value in values:
        if value is None:
            break
        parts.append((1, value))
    return tuple(parts) + (infinite,) * (len(values) - len(parts))
