"""Patterns over abstract values: where text may match LIKE or start with a prefix.

Soundness: each function returns two masks, where text may match and where it may not; a part that
holds text is in at least one of them, and in both if its bounds do not decide.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask, repeated
from rowsieve.predicate.functions.texts.young_letters import has_young
from rowsieve.predicate.interpretation.abstract import AbstractValue, is_point, known
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.like import Pattern, after_prefix


def pattern_truth(
    value: AbstractValue, pattern: Pattern, *, ignore_case: bool
) -> tuple[Mask, Mask]:
    """Whether a value without holes may match, and may not match."""
    true, false = _at_points(value, pattern, ignore_case=ignore_case)
    if ignore_case:
        return true, false
    starts, misses = prefix_truth(value, pattern.prefix)
    true = true & starts
    if pattern.is_exact:
        exact = repeated(pa.scalar(pattern.prefix), len(value.present))
        above = known(ComparisonOp.GT, value.lower, exact)
        below = known(ComparisonOp.LT, value.upper, exact)
        true = value.present & ~(above | below)
        false = value.present & ~(is_point(value) & known(ComparisonOp.EQ, value.lower, exact))
    elif pattern.is_prefix:
        false = misses
    return true, false


def _at_points(value: AbstractValue, pattern: Pattern, *, ignore_case: bool) -> tuple[Mask, Mask]:
    """Whether the pattern may match, and may not match; exact in parts with a single text."""
    points = is_point(value) & value.present
    if not points.any() or (ignore_case and has_young(pattern.regex)):
        return value.present, value.present
    where = np.flatnonzero(points)
    texts = value.lower.take(pa.array(where))
    matches = as_mask(pc.match_substring_regex(texts, pattern.regex, ignore_case=ignore_case))
    true, false = value.present.copy(), value.present.copy()
    true[where], false[where] = matches, ~matches
    return true, false


def prefix_truth(value: AbstractValue, prefix: str) -> tuple[Mask, Mask]:
    """Whether text may start, and may not start, with the prefix."""
    row_count = len(value.present)
    start = repeated(pa.scalar(prefix), row_count)
    stop = after_prefix(prefix)
    true = value.present & ~known(ComparisonOp.LT, value.upper, start)
    inside = known(ComparisonOp.GE, value.lower, start)
    if stop is not None:
        end = repeated(pa.scalar(stop), row_count)
        true &= ~known(ComparisonOp.GE, value.lower, end)
        inside &= known(ComparisonOp.LT, value.upper, end)
    if not prefix:
        inside = value.present
    return true, value.present & ~inside
