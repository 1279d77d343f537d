"""Abstract values: what an operand or a predicate may be on the rows of each of n parts.

A value may be too wide, never too narrow: that is the soundness of all pruning. Bounds are
inclusive and hold for the values that are neither NULL nor NaN; a NULL bound is no bound. Where NaN
may occur there is no upper bound, since NaN sorts above all numbers; where it may be below them
(`NanOrder.SIGNED`, of computed values) no lower one. Bounds that contradict each other mean that
nothing is known, never that nothing is there.

A value with holes is a union of few values without: its alternatives, and its own bounds are their
hull. What changes a value's bounds to say of other values must drop its alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask, compare, null_mask, repeated, without
from rowsieve.predicate.ir import BoundColumn, ComparisonOp, Literal, Operand
from rowsieve.predicate.literals import scalar
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Bool, Float, LogicalType, is_nested, is_ordered

MOST_ALTERNATIVES: Final = 4


@dataclass(frozen=True, slots=True)
class AbstractColumn:
    """What is known of one column in n parts; all members have length n.

    `lower` and `upper` are in the column's storage type; `empty`: it has no non-NULL value there.
    `may_be_nan` is read for floats only; None means that nothing is known of NaN. `all_nan`: every
    value that is not NULL is NaN; None claims that of no part. `ranges`: inclusive bounds, one
    array a side, of which each value that is not NULL lies in some; none claims nothing.
    """

    lower: pa.Array
    upper: pa.Array
    empty: Mask
    may_be_null: Mask
    may_be_nan: Mask | None = None
    all_nan: Mask | None = None
    ranges: tuple[tuple[pa.Array, pa.Array], ...] = ()


class AbstractColumns(Protocol):
    """The statistics of n parts as columns."""

    @property
    def part_count(self) -> int:
        """N."""
        ...

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """What is known of the column; None if nothing is."""
        ...


@runtime_checkable
class KnownExpressions(Protocol):
    """Columns that speak of more than columns: members of structs, paths in JSON, parsed text."""

    def expression(self, operand: Operand) -> AbstractValue | None:
        """What is known of a bound call, cast or member besides what follows from its arguments.

        None says nothing. What is said must hold whatever the semantics.
        """
        ...


@dataclass(frozen=True, slots=True)
class AbstractValue:
    """What an operand may be: a value within bounds, NaN, NULL, a failure; (n,) masks.

    A value that is not NULL lies in one of the `alternatives`, if there are any. They have none
    themselves, and say nothing of NULL and failures.
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
    """What a predicate may be on some row of each part; (n,) masks."""

    true: Mask
    false: Mask
    null: Mask
    fails: Mask


def nowhere(part_count: int) -> Mask:
    """No part."""
    return np.zeros(part_count, dtype=np.bool_)


def everywhere(part_count: int) -> Mask:
    """Every part."""
    return np.ones(part_count, dtype=np.bool_)


def anything(type_: LogicalType, present: Mask, null: Mask, fails: Mask) -> AbstractValue:
    """Any value of the type."""
    unbounded = pa.nulls(len(present), arrow_type(type_))
    nan = present if isinstance(type_, Float) else nowhere(len(present))
    return AbstractValue(type_, unbounded, unbounded, present, null, fails, nan)


def constant(literal: Literal, part_count: int, nan: NanOrder) -> AbstractValue:
    """Exactly this value."""
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


def from_column(
    column: BoundColumn, known: AbstractColumn | None, part_count: int
) -> AbstractValue:
    """A column's statistics as an abstract value; what does not fit the contract is unknown."""
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
    value = settled(value)
    if not known.ranges or isinstance(column.type, Float):
        return value
    return with_alternatives(value, [_cut(value, *ends) for ends in known.ranges])


def _cut(value: AbstractValue, lower: pa.Array, upper: pa.Array) -> AbstractValue:
    """The values of a range, if there may be any."""
    low = inner_bound(ComparisonOp.GE, value.lower, lower)
    high = inner_bound(ComparisonOp.LE, value.upper, upper)
    return limited(replace(value, lower=low, upper=high), ~inverted(low, high))


def nan_alone(value: AbstractValue, known: AbstractColumn | None) -> AbstractValue:
    """A column's value where all of it is NaN: from NaN upward, which sorts above all numbers."""
    if known is None or known.all_nan is None or not known.all_nan.any():
        return value
    where = known.all_nan & value.nan & null_mask(value.lower)  # a bound is that of a number
    nans = pa.array(np.full(len(where), np.nan)).cast(value.lower.type)
    return replace(value, lower=pc.if_else(pa.array(where), nans, value.lower))


def settled(value: AbstractValue) -> AbstractValue:
    """The value with no upper bound where NaN may be, and no bounds where they contradict."""
    if is_nested(value.type):
        return value
    upper = without(value.upper, value.nan)
    wrong = inverted(value.lower, upper)
    return replace(value, lower=without(value.lower, wrong), upper=without(upper, wrong))


def inverted(lower: pa.Array, upper: pa.Array) -> Mask:
    """(n,) where both bounds exist and the lower one is above the upper one, NaN being greatest.

    The one test of bounds that contradict each other: whoever finds such bounds believes neither.
    """
    return known(ComparisonOp.GT, lower, upper)


def join(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """Either of the two, as alternatives."""
    both = hull_of_two(left, right)
    if not is_ordered(left.type) or isinstance(left.type, Bool):  # the hull of booleans is exact
        return both
    spans = _few([*spans_of(left), *spans_of(right)])
    return replace(both, alternatives=spans if len(spans) > 1 else ())


def hull_of_two(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """Either of the two, or anything between them."""
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
    """The alternatives of a value; the value itself if it has none."""
    return value.alternatives or (value,)


def with_alternatives(value: AbstractValue, spans: Sequence[AbstractValue]) -> AbstractValue:
    """The value as these; as it is where they would leave nothing of it, a contradiction."""
    lost = value.present & ~np.logical_or.reduce([span.present for span in spans])
    if lost.any():
        free = anything(value.type, lost, lost, lost)
        spans = [hull_of_two(spans[0], free), *spans[1:]]
    return replace(value, alternatives=_few(spans))


def _few(spans: Sequence[AbstractValue]) -> tuple[AbstractValue, ...]:
    """As many alternatives as there may be: equal ones and the last ones become one."""
    found: list[AbstractValue] = []
    for span in spans:
        none = nowhere(len(span.present))
        span = replace(span, null=none, fails=none, alternatives=())  # noqa: PLW2901
        same = next((i for i, one in enumerate(found) if _have_equal_bounds(one, span)), None)
        if same is None and len(found) == MOST_ALTERNATIVES:
            same = MOST_ALTERNATIVES - 1
        if same is not None:
            found[same] = hull_of_two(found[same], span)
        elif span.present.any():
            found.append(span)
    return tuple(found)


def _have_equal_bounds(one: AbstractValue, other: AbstractValue) -> bool:
    return bool(one.lower.equals(other.lower) and one.upper.equals(other.upper))


def meet(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """Both of the two, of one operand: what one of them excludes does not occur."""
    both = _met(left, right)
    if not left.alternatives or not is_ordered(left.type):
        return replace(both, alternatives=())
    spans = []
    for span in left.alternatives:
        lower, upper = _inner_bounds(span, right)
        here = span.present & right.present & ~inverted(lower, without(upper, span.nan))
        spans.append(limited(_met(span, right), here))
    return with_alternatives(both, spans)


def _met(left: AbstractValue, right: AbstractValue) -> AbstractValue:
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
    return settled(replace(both, lower=lower, upper=upper))


def _inner_bounds(left: AbstractValue, right: AbstractValue) -> tuple[pa.Array, pa.Array]:
    lower = inner_bound(ComparisonOp.GE, left.lower, right.lower)
    return lower, inner_bound(ComparisonOp.LE, left.upper, right.upper)


def inner_bound(op: ComparisonOp, left: pa.Array, right: pa.Array) -> pa.Array:
    """The narrower bound; where one is missing, the other."""
    narrower = pc.if_else(compare(op, left, right, NanOrder.GREATEST), left, right)
    return pc.coalesce(narrower, left, right)


def _outer(
    op: ComparisonOp, left: pa.Array, right: pa.Array, left_present: Mask, right_present: Mask
) -> pa.Array:
    """The bound that holds for both; where one side has no value, the other's."""
    both = pc.if_else(compare(op, left, right, NanOrder.GREATEST), left, right)
    one = pc.if_else(pa.array(right_present), both, left)
    return pc.if_else(pa.array(left_present), one, right)


def limited(value: AbstractValue, where: Mask) -> AbstractValue:
    """The value on the parts where it can occur at all, and nothing on the others."""
    return replace(
        value,
        present=value.present & where,
        null=value.null & where,
        fails=value.fails & where,
        nan=value.nan & where,
        alternatives=tuple(limited(span, where) for span in value.alternatives),
    )


def known(op: ComparisonOp, left: pa.Array, right: pa.Array) -> Mask:
    """Where both bounds exist and the comparison holds, NaN being greatest."""
    return as_mask(compare(op, left, right, NanOrder.GREATEST))


def is_point(value: AbstractValue) -> Mask:
    """Where it has exactly one value, if it has one: -0.0 and 0.0 count as one."""
    return known(ComparisonOp.EQ, value.lower, value.upper) & ~value.nan


def over_alternatives(
    values: Sequence[AbstractValue], apply: Callable[[Sequence[AbstractValue]], AbstractValue]
) -> AbstractValue:
    """What a function gives of values, one alternative of one of them after another.

    Each row has NULL, a failure or a value of some alternative there, so the union holds for all.
    """
    place = next((i for i, value in enumerate(values) if value.alternatives), None)
    if place is None:
        return apply(values)
    whole, result = values[place], None
    for span in whole.alternatives:
        one = replace(span, null=whole.null, fails=whole.fails)
        found = apply([*values[:place], one, *values[place + 1 :]])
        result = found if result is None else join(result, found)
    assert result is not None
    return result
