"""Cut the output of a merge at the keys where older parts begin.

A new part with few rows over many keys overlaps all older parts between its first and its last key.
Then all of them are one group, which is rewritten for these few rows. If the new part is cut at the
first keys of the older parts, each piece overlaps only the older part around its rows, and no other
part is rewritten.

Soundness: a cut is a value of the first key column, and a row's range depends only on its value
there. So any cuts keep all versions of a key in one range.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.planner.overlap import Indices, key_codes, overlap_groups
from rowsieve.storage.manifests.key_bounds import MAX_BYTES, longest_bound
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder

_CHARACTER_BYTES: Final = 4  # truncated text may be shorter than the limit by this


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
    """Count the keys below a value; O(log n)."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys.key(middle)[0] < value:
            low = middle + 1
        else:
            high = middle
    return low


def newest_over_disjoint(parts: PartTable, ages: Indices, order: KeyOrder) -> int:
    """Count the newest parts, by whole commits, so that the remaining parts do not overlap.

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
    """Count the cuts inside the first `newer` parts, if all other parts give cuts.

    0 if a bound is unknown or was truncated at the greatest length: such parts would be cut again
    in every pass.
    """
    (field,) = first.fields
    bounds = [parts.column(f"key.{field.id}.{side}") for side in ("lower", "upper")]
    if any(column.null_count for column in bounds):
        return 0
    if longest_bound(column[:newer] for column in bounds) > MAX_BYTES - _CHARACTER_BYTES:
        return 0
    lower, upper = key_codes(parts.select("key.").table, first)
    cuts = np.unique(lower[newer:])
    inside = np.searchsorted(cuts, upper[:newer], "right") - np.searchsorted(
        cuts, lower[:newer], "right"
    )
    return int(inside.sum())
