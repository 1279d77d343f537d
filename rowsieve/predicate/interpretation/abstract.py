"""Abstract values: the possible values of an operand or a predicate in each of n parts.

Soundness: a value may be too wide, never too narrow; all pruning depends on this. Bounds are
inclusive and hold for the values that are neither NULL nor NaN; a NULL bound is unbounded. NaN
sorts above all numbers, so where it is possible there is no upper bound; where it may also sort
below them (`NanOrder.SIGNED`, computed values only), there is no lower bound either. Contradictory
bounds mean that nothing is known, never that there are no values.

A value with holes is a union of a few values without holes, its alternatives; its own bounds are
their hull. Code that changes the bounds of a value to describe other values must drop its
alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.computed_property import computed_property
from rowsieve.predicate.arrays import (
    Mask,
    as_mask,
    compare,
    null_mask,
    plain_numbers,
    repeated,
    without,
)
from rowsieve.predicate.ir import BoundColumn, ComparisonOp, Literal, Operand
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Bool, Float, LogicalType, Numeric, is_nested, is_ordered
from rowsieve.types.numeric_bytes import exact_of

MAX_ALTERNATIVES: Final = 4


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """Bounds of integers, dates or times that exist in every part; all arrays are (n,).

    `lower` and `upper` are the stored integers of values of `type`, and never contradict.
    `present`: there may be values; `certain`: all rows have one.
    """

    type: pa.DataType
    lower: npt.NDArray[Any]
    upper: npt.NDArray[Any]
    present: Mask
    certain: Mask


@dataclass(frozen=True)
class AbstractColumn:
    """Statistics of one column in n parts; all fields have length n.

    `lower` and `upper` are in the column's storage type. `empty`: every value is NULL. `may_be_nan`
    applies to floats only; None means unknown. `all_nan`: every non-NULL value is NaN; None means
    unknown in every part. `ranges`: inclusive bounds, one array for each side; every non-NULL value
    lies in one of the ranges. An empty tuple means unknown.
    """

    lower: pa.Array
    upper: pa.Array
    empty: Mask
    may_be_null: Mask
    may_be_nan: Mask | None = None
    all_nan: Mask | None = None
    ranges: tuple[tuple[pa.Array, pa.Array], ...] = ()

    @computed_property
    def number_bounds(self) -> NumberBounds | None:
        """The bounds as integers; None if a part has none, or they are of another kind."""
        type_ = self.lower.type
        if self.ranges or self.lower.null_count or self.upper.null_count:
            return None
        if not (pa.types.is_integer(type_) or pa.types.is_date32(type_)) and not (
            pa.types.is_timestamp(type_)
        ):
            return None
        if self.upper.type != type_:
            return None
        lower = plain_numbers(self.lower).to_numpy(zero_copy_only=False)
        upper = plain_numbers(self.upper).to_numpy(zero_copy_only=False)
        if (lower > upper).any():
            return None
        present = ~self.empty
        return NumberBounds(type_, lower, upper, present, present & ~self.may_be_null)


class AbstractColumns(Protocol):
    """The statistics of n parts as columns."""

    @property
    def part_count(self) -> int:
        """The number of parts, n."""

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """Return the statistics of the column; None if there are none."""


@runtime_checkable
class KnownExpressions(Protocol):
    """Columns with statistics of expressions too: struct fields, JSON paths, parsed text."""

    def expression(self, operand: Operand) -> AbstractValue | None:
        """Statistics of a bound call, cast or field access, beyond what its arguments imply.

        None if there are none. They must hold under all semantics.
        """


@dataclass(frozen=True, slots=True)
class AbstractValue:
    """The possible outcomes of an operand: a value within bounds, NaN, NULL, failure; (n,) masks.

    Every non-NULL value lies in one of the `alternatives`, if there are any. Alternatives have no
    alternatives themselves, and do not describe NULL and failures.
    """

    type: LogicalType
    lower: pa.Array
    upper: pa.Array
    present: Mask
    null: Mask
    fails: Mask
    nan: Mask
    alternatives: tuple[AbstractValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Truth:
    """The possible outcomes of a predicate on the rows of each part; (n,) masks."""

    true: Mask
    false: Mask
    null: Mask
    fails: Mask


def nowhere(part_count: int) -> Mask:
    """Return an empty mask."""
    return np.zeros(part_count, dtype=np.bool_)


def everywhere(part_count: int) -> Mask:
    """Return a full mask."""
    return np.ones(part_count, dtype=np.bool_)


def anything(type_: LogicalType, present: Mask, null: Mask, fails: Mask) -> AbstractValue:
    """Return an unbounded value of the type."""
    unbounded = pa.nulls(len(present), arrow_type(type_))
    nan = present if isinstance(type_, Float) else nowhere(len(present))
    return AbstractValue(type_, unbounded, unbounded, present, null, fails, nan)


def constant(literal: Literal, part_count: int, nan: NanOrder) -> AbstractValue:
    """Return the abstract value of a constant."""
    assert literal.type is not None
    value = scalar(literal)
    null = literal.value is None
    present, none = np.full(part_count, not null), nowhere(part_count)
    if is_nested(literal.type):
        return anything(literal.type, present, ~present, none)
    bounds = repeated(value, part_count)
    is_nan = isinstance(literal.value, float) and bool(np.isnan(literal.value))
    lower = pa.nulls(part_count, bounds.type) if is_nan and nan is NanOrder.IEEE else bounds
    upper = pa.nulls(part_count, bounds.type) if is_nan else bounds
    return AbstractValue(
        literal.type, lower, upper, present, ~present, none, np.full(part_count, is_nan)
    )


def unbounded_below(value: AbstractValue) -> AbstractValue:
    """Drop the lower bound where NaN is possible, since it may be below every number."""
    spans = tuple(map(unbounded_below, value.alternatives))
    return replace(value, lower=without(value.lower, value.nan), alternatives=spans)


def from_column(
    column: BoundColumn, known: AbstractColumn | None, part_count: int
) -> AbstractValue:
    """Convert a column's statistics to an abstract value; invalid statistics count as unknown."""
    none, all_ = nowhere(part_count), everywhere(part_count)
    if known is None:
        return anything(column.type, all_, all_, none)
    present = ~known.empty
    storage = arrow_type(column.type)
    if known.lower.type != storage or known.upper.type != storage or not is_ordered(column.type):
        return anything(column.type, present, known.may_be_null, none)
    nan = none
    if isinstance(column.type, Float):
        nan = present if known.may_be_nan is None else known.may_be_nan & present
        nan = nan | as_mask(pc.is_nan(known.lower)) | as_mask(pc.is_nan(known.upper))
    value = AbstractValue(
        column.type, known.lower, known.upper, present, known.may_be_null, none, nan
    )
    value = without_contradictions(value)
    if not known.ranges or isinstance(column.type, Float):
        return value
    return with_alternatives(value, [_cut(value, *ends) for ends in known.ranges])


def _cut(value: AbstractValue, lower: pa.Array, upper: pa.Array) -> AbstractValue:
    """Restrict a value to a range, where it may have a value at all."""
    low = inner_bound(ComparisonOp.GE, value.lower, lower)
    high = inner_bound(ComparisonOp.LE, value.upper, upper)
    return limited(replace(value, lower=low, upper=high), ~inverted(low, high))


def nan_alone(value: AbstractValue, known: AbstractColumn | None) -> AbstractValue:
    """Set the bounds of a float column where every value is NaN: NaN is above all numbers."""
    if known is None or known.all_nan is None or not known.all_nan.any():
        return value
    where = known.all_nan & value.nan & null_mask(value.lower)  # bounds are numbers
    nans = pa.array(np.full(len(where), np.nan)).cast(value.lower.type)
    return replace(value, lower=pc.if_else(pa.array(where), nans, value.lower))


def without_contradictions(value: AbstractValue) -> AbstractValue:
    """Drop the upper bound where NaN is possible, and both bounds where they contradict."""
    if is_nested(value.type) or isinstance(value.type, Numeric):  # Arrow orders no structs
        return value
    upper = without(value.upper, value.nan)
    wrong = inverted(value.lower, upper)
    return replace(value, lower=without(value.lower, wrong), upper=without(upper, wrong))


def inverted(lower: pa.Array, upper: pa.Array) -> Mask:
    """Where both bounds exist and the lower one is above the upper one; NaN is greatest.

    The only test for contradictory bounds: callers then ignore both.
    """
    return known(ComparisonOp.GT, lower, upper)


def join(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """Return the union of two values, as alternatives."""
    both = hull_of_two(left, right)
    if not is_ordered(left.type) or isinstance(left.type, Bool):  # the hull of booleans is exact
        return both
    spans = _merge_surplus([*spans_of(left), *spans_of(right)])
    return replace(both, alternatives=spans if len(spans) > 1 else ())


def hull_of_two(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """Return the convex hull of two values."""
    both = replace(
        left,
        present=left.present | right.present,
        null=left.null | right.null,
        fails=left.fails | right.fails,
        nan=left.nan | right.nan,
        alternatives=(),
    )
    if not is_ordered(left.type):
        return both
    lower = _outer(ComparisonOp.LE, left.lower, right.lower, left.present, right.present)
    upper = _outer(ComparisonOp.GE, left.upper, right.upper, left.present, right.present)
    return replace(both, lower=lower, upper=upper)


def spans_of(value: AbstractValue) -> tuple[AbstractValue, ...]:
    """Return the alternatives of a value; the value itself if it has none."""
    return value.alternatives or (value,)


def with_alternatives(value: AbstractValue, spans: Sequence[AbstractValue]) -> AbstractValue:
    """Replace the alternatives of a value; unchanged where that would leave a contradiction."""
    lost = value.present & ~np.logical_or.reduce([span.present for span in spans])
    if lost.any():
        free = anything(value.type, lost, lost, lost)
        spans = [hull_of_two(spans[0], free), *spans[1:]]
    return replace(value, alternatives=_merge_surplus(spans))


def _merge_surplus(spans: Sequence[AbstractValue]) -> tuple[AbstractValue, ...]:
    """Limit the number of alternatives: merge equal ones, then the last ones."""
    merged: list[AbstractValue] = []
    for span in spans:
        none = nowhere(len(span.present))
        span = replace(span, null=none, fails=none, alternatives=())  # noqa: PLW2901
        same = next((i for i, one in enumerate(merged) if _have_equal_bounds(one, span)), None)
        if same is None and len(merged) == MAX_ALTERNATIVES:
            same = MAX_ALTERNATIVES - 1
        if same is not None:
            merged[same] = hull_of_two(merged[same], span)
        elif span.present.any():
            merged.append(span)
    return tuple(merged)


def _have_equal_bounds(one: AbstractValue, other: AbstractValue) -> bool:
    return bool(one.lower.equals(other.lower) and one.upper.equals(other.upper))


def meet(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """Return the intersection of two values of one operand: outcomes that both allow."""
    both = _intersection(left, right)
    if not left.alternatives or not is_ordered(left.type):
        return replace(both, alternatives=())
    spans = []
    for span in left.alternatives:
        lower, upper = _inner_bounds(span, right)
        here = span.present & right.present & ~inverted(lower, without(upper, span.nan))
        spans.append(limited(_intersection(span, right), here))
    return with_alternatives(both, spans)


def _intersection(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    both = replace(
        left,
        present=left.present & right.present,
        null=left.null & right.null,
        fails=left.fails & right.fails,
        nan=left.nan & right.nan,
    )
    if not is_ordered(left.type):
        return both
    lower, upper = _inner_bounds(left, right)
    return without_contradictions(replace(both, lower=lower, upper=upper))


def _inner_bounds(left: AbstractValue, right: AbstractValue) -> tuple[pa.Array, pa.Array]:
    lower = inner_bound(ComparisonOp.GE, left.lower, right.lower)
    return lower, inner_bound(ComparisonOp.LE, left.upper, right.upper)


def inner_bound(op: ComparisonOp, left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the narrower bound; the existing one where the other is missing."""
    narrower = pc.if_else(compare(op, left, right, NanOrder.GREATEST), left, right)
    return pc.coalesce(narrower, left, right)


def _outer(
    op: ComparisonOp, left: pa.Array, right: pa.Array, left_present: Mask, right_present: Mask
) -> pa.Array:
    """Return the wider bound; where one side has no value, the other side's."""
    both = pc.if_else(compare(op, left, right, NanOrder.GREATEST), left, right)
    one = pc.if_else(pa.array(right_present), both, left)
    return pc.if_else(pa.array(left_present), one, right)


def limited(value: AbstractValue, where: Mask) -> AbstractValue:
    """Return the value where it is possible at all, and no value elsewhere."""
    return replace(
        value,
        present=value.present & where,
        null=value.null & where,
        fails=value.fails & where,
        nan=value.nan & where,
        alternatives=tuple(limited(span, where) for span in value.alternatives),
    )


def known(op: ComparisonOp, left: pa.Array, right: pa.Array) -> Mask:
    """Where both bounds exist and the comparison holds; NaN is greatest."""
    if pa.types.is_struct(left.type):  # unbounded numbers, which their exact bytes order
        left, right = exact_of(left), exact_of(right)
    return as_mask(compare(op, left, right, NanOrder.GREATEST))


def is_point(value: AbstractValue) -> Mask:
    """Where the value has exactly one non-NULL value; -0.0 and 0.0 count as one."""
    return known(ComparisonOp.EQ, value.lower, value.upper) & ~value.nan


def nan_as_upper(value: AbstractValue) -> pa.Array:
    """Return the upper bounds, with NaN where a float has none: no value is above NaN.

    For semantics that order NaN; a value whose lower bound is NaN is then a point.
    """
    if not isinstance(value.type, Float):
        return value.upper
    return pc.fill_null(value.upper, pa.scalar(np.nan).cast(value.upper.type))


def over_alternatives(
    values: Sequence[AbstractValue], apply: Callable[[Sequence[AbstractValue]], AbstractValue]
) -> AbstractValue:
    """Apply a function to each combination of alternatives, and return the union of the results.

    Each row has NULL, a failure or a value of some alternative, so the union holds for all rows.
    """
    place = next((i for i, value in enumerate(values) if value.alternatives), None)
    if place is None:
        return apply(values)
    whole, result = values[place], None
    for span in whole.alternatives:
        one = replace(span, null=whole.null, fails=whole.fails)
        outcome = apply([*values[:place], one, *values[place + 1 :]])
        result = outcome if result is None else join(result, outcome)
    assert result is not None
    return result
