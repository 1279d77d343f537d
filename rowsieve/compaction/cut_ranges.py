"""Cut what is merged at the keys where older parts begin.

A new part with few rows over many keys overlaps all older parts between its first and its last key,
so that all of them would be one group, and rewritten for these rows. Cut at the older parts' first
keys, it overlaps only those that have a key near its rows, and the others stay as they are.

Soundness: a cut is a value of the first key column, and a row's range follows from that value
alone. So all versions of a key are in one range, wherever the cuts are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.planner.overlap import Indices, key_codes, overlap_groups
from rowsieve.storage.manifests.key_bounds import MOST_BYTES, longest_bound
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder

_CHARACTER_BYTES: Final = 4  # by which truncated text may be shorter than the limit


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Ranges of the first key column: below the first cut, between cuts, from the last cut on."""

    order: KeyOrder
    cuts: tuple[Any, ...]

    @classmethod
    def of(cls, parts: PartTable, first: KeyOrder) -> KeyRanges:
        """The ranges that begin where these parts begin; `first` is the first key column."""
        (field,) = first.fields
        lower = parts.column(f"key.{field.id}.lower").drop_null()
        form = first.columns(pa.table({field.name: lower})).arrays[0]
        return cls(first, tuple(sorted(set(form.to_pylist()))))

    def split(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The number of each range that has rows, and these; the rows are sorted by key."""
        if not rows.num_rows:
            return
        keys = self.order.columns(rows)
        first, last = (bisect_right(self.cuts, keys.key(i)[0]) for i in (0, len(keys) - 1))
        places = [_count_below(keys, cut) for cut in self.cuts[first:last]]
        for number, (start, stop) in enumerate(
            zip([0, *places], [*places, len(keys)], strict=True), first
        ):
            if stop > start:
                yield number, rows.slice(start, stop - start)


def _count_below(keys: KeyColumns, value: Any) -> int:
    """How many keys are below a value; O(log n)."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys.key(middle)[0] < value:
            low = middle + 1
        else:
            high = middle
    return low


def newest_over_disjoint(parts: PartTable, ages: Indices, order: KeyOrder) -> int:
    """How many of the parts, newest first by whole commits, are above parts that do not overlap.

    `ages` are the commits of the parts, newest first.
    """
    starts = np.flatnonzero(np.diff(ages, prepend=ages[:1] + 1))
    keys = parts.select("key.").table
    low, high = 0, len(starts) - 1  # the oldest commit alone never overlaps itself
    while low < high:
        middle = (low + high) // 2
        rest = keys.slice(int(starts[middle]))
        if len(overlap_groups(rest, order)) == rest.num_rows:
            high = middle
        else:
            low = middle + 1
    return int(starts[low])


def cut_count(parts: PartTable, newer: int, first: KeyOrder) -> int:
    """How many cuts lie inside the first `newer` parts, if the others are cut at.

    0 if a bound is unknown or was truncated at the greatest length, so that a part with such bounds
    is never cut again and again.
    """
    (field,) = first.fields
    bounds = [parts.column(f"key.{field.id}.{side}") for side in ("lower", "upper")]
    if any(column.null_count for column in bounds):
        return 0
    if longest_bound(column[:newer] for column in bounds) > MOST_BYTES - _CHARACTER_BYTES:
        return 0
    lower, upper = key_codes(parts.select("key.").table, first)
    cuts = np.unique(lower[newer:])
    inside = np.searchsorted(cuts, upper[:newer], "right") - np.searchsorted(
        cuts, lower[:newer], "right"
    )
    return int(inside.sum())
