"""Bounds of the keys of parts, as the manifest stores them.

Long text and bytes are truncated. Where the truncated bounds of neighbouring parts of one writer
would overlap, because their keys have a long prefix in common, both bounds are kept longer: parts
that seem to overlap are merged by every read, and a compaction would rewrite them without end.

Soundness: a lower bound may be below the least key and an upper bound above the greatest one, never
the other way round. After a truncated column the later columns are infinite (invariant 24).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.bounds import LIMIT_BYTES
from rowsieve.stats.values import lower_bound, upper_bound
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import sort_form

KeyBound = tuple[pa.Scalar | None, ...]

MAX_BYTES: Final = 4096
"""The longest bound of a key column; keys with a longer prefix in common seem to overlap."""


def key_bound(
    key: Sequence[Field], row: Any, side: Literal["lower", "upper"], limit: int = LIMIT_BYTES
) -> KeyBound:
    """Return one row's key as a bound; after a truncated column all columns are infinite."""
    cut = lower_bound if side == "lower" else upper_bound
    bound: list[pa.Scalar | None] = []
    for column in key:
        value = row.column(column.name)[0]
        short = cut(value, limit)
        bound.append(short)
        if short is None or not (short is value or short.equals(value)):
            break
    return tuple(bound) + (None,) * (len(key) - len(bound))


def separated_bounds(
    key: Sequence[Field], ends: Sequence[tuple[Any, Any]], limit: int = LIMIT_BYTES
) -> list[tuple[KeyBound, KeyBound]]:
    """Return the lower and upper bounds of parts in key order, from their first and last rows.

    Where short bounds of neighbours would overlap, both get as long as necessary.
    """
    lower, upper = [], []
    for first, last in ends:
        lower.append(key_bound(key, first, "lower", limit))
        upper.append(key_bound(key, last, "upper", limit))
    for i, j in pairwise(range(len(ends))) if key else ():
        longest = limit
        while not _is_below(key, upper[i], lower[j]) and longest < MAX_BYTES:
            longest = min(4 * longest, MAX_BYTES)
            longer = key_bound(key, ends[i][1], "upper", longest)
            later = key_bound(key, ends[j][0], "lower", longest)
            if _is_below(key, longer, later):
                upper[i], lower[j] = longer, later
    return list(zip(lower, upper, strict=True))


def longest_bound(bounds: Iterable[pa.ChunkedArray]) -> int:
    """The bytes of the longest bound of text or bytes in these columns of a manifest."""
    lengths = (
        pc.max(pc.binary_length(column)).as_py() or 0
        for column in bounds
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    )
    return max(lengths, default=0)


def _is_below(key: Sequence[Field], upper: KeyBound, lower: KeyBound) -> bool:
    """Return whether every key up to `upper` is below every key from `lower` on."""
    for field, one, other in zip(key, upper, lower, strict=True):
        if one is None or other is None:
            return False
        before, after = sort_form(
            pa.array([one.as_py(), other.as_py()], one.type), field.type
        ).to_pylist()
        if before != after:
            return bool(before < after)
    return False
