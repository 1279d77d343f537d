"""Comparisons of abstract values that are not nested: where `left op right` may be TRUE or FALSE.

Soundness: an outcome that two values of a part can have is in the result. `unordered` marks the
parts in which NaN may meet a value under IEEE 754, where every comparison but `<>` is FALSE; it is
None if NaN has a place in the order.
"""

from __future__ import annotations

import numpy as np

from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.interpretation.abstract import (
    AbstractValue,
    Truth,
    known,
    nan_as_upper,
    nowhere,
    spans_of,
)
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.types.logical import Float


def compare_values(
    op: ComparisonOp, left: AbstractValue, right: AbstractValue, unordered: Mask | None
) -> Truth:
    """Compute `left op right` of values that are not nested."""
    if op.is_null_safe:
        return distinct(op, left, right, _ordered(ComparisonOp.EQ, left, right, unordered))
    true, false = _ordered(op, left, right, unordered)
    null = (left.null & (right.null | right.present)) | (right.null & left.present)
    return Truth(true, false, null, left.fails | right.fails)


def _ordered(
    op: ComparisonOp, left: AbstractValue, right: AbstractValue, unordered: Mask | None
) -> tuple[Mask, Mask]:
    """Whether the comparison may be TRUE, and may be FALSE."""
    if op is ComparisonOp.NE:
        same, different = _ordered(ComparisonOp.EQ, left, right, unordered)
        return different, same
    none = nowhere(len(left.present))
    true, false = none, none if unordered is None else unordered
    for one in spans_of(left):
        for other in spans_of(right):
            may_hold, may_not = _ordered_spans(op, one, other, is_nan_ordered=unordered is None)
            true, false = true | may_hold, false | may_not
    return true, false


def _ordered_spans(
    op: ComparisonOp, left: AbstractValue, right: AbstractValue, *, is_nan_ordered: bool
) -> tuple[Mask, Mask]:
    both = left.present & right.present
    if op.is_order and op.holds_if_greater:
        left, right = right, left
        op = op.mirrored
    left_upper, right_upper = left.upper, right.upper
    if is_nan_ordered and isinstance(left.type, Float):  # both sides have one type
        left_upper, right_upper = nan_as_upper(left), nan_as_upper(right)
    if op is ComparisonOp.LT:
        true = both & ~known(ComparisonOp.GE, left.lower, right_upper)
        false = both & ~known(ComparisonOp.LT, left_upper, right.lower)
    elif op is ComparisonOp.LE:
        true = both & ~known(ComparisonOp.GT, left.lower, right_upper)
        false = both & ~known(ComparisonOp.LE, left_upper, right.lower)
    else:
        apart = known(ComparisonOp.GT, left.lower, right_upper)
        apart |= known(ComparisonOp.LT, left_upper, right.lower)
        same = known(ComparisonOp.GE, left.lower, right_upper)
        same &= known(ComparisonOp.LE, left_upper, right.lower)
        true, false = both & ~apart, both & ~same
    return true, false


def distinct(
    op: ComparisonOp, left: AbstractValue, right: AbstractValue, equal: tuple[Mask, Mask]
) -> Truth:
    """Compute IS [NOT] DISTINCT FROM; `equal`: where both are values, and may be equal or not."""
    same, different = equal
    same = same | (left.null & right.null)
    different = different | (left.null & right.present) | (left.present & right.null)
    fails = left.fails | right.fails
    none = np.zeros_like(fails)
    if op is ComparisonOp.DISTINCT:
        return Truth(different, same, none, fails)
    return Truth(same, different, none, fails)


def reflexive(op: ComparisonOp, value: AbstractValue) -> Truth:
    """Compute `x op x`."""
    none = np.zeros_like(value.null)
    null_safe = op.is_null_safe
    occurs = value.present | value.null if null_safe else value.present
    null = none if null_safe else value.null
    if not op.holds_if_equal:
        return Truth(none, occurs, null, value.fails)
    return Truth(occurs, none, null, value.fails)
