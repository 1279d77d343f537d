"""Functions and casts over abstract values: evaluate the end points with the concrete evaluator.

Soundness: all properties of a function come from the registry. Where the function's row does not
claim a property, or an end point is missing or fails, the result may be any value, NULL or an
error.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnreadText
from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask, without
from rowsieve.predicate.functions.casting.casts import cast_rule, gives_null, spelled_range, wraps
from rowsieve.predicate.functions.numbers.float_range import (
    excludes_zero,
    fails_out_of_range,
    may_underflow,
)
from rowsieve.predicate.functions.numbers.numeric import UNSETTLED_NAN
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.functions.row import (
    AtInfinity,
    Direction,
    Function,
    NullRule,
    Range,
    Signature,
)
from rowsieve.predicate.functions.texts.young_letters import CASED, are_young
from rowsieve.predicate.functions.times.infinite_times import nearly_infinite
from rowsieve.predicate.interpretation.abstract import (
    AbstractValue,
    anything,
    everywhere,
    hull_of_two,
    inner_bound,
    inverted,
    is_point,
    join,
    known,
    limited,
    meet,
    nowhere,
    with_alternatives,
    without_contradictions,
)
from rowsieve.predicate.interpretation.facts import DISCRETE
from rowsieve.predicate.interpretation.narrow import neighbours
from rowsieve.predicate.ir import Call, ComparisonOp, Literal
from rowsieve.predicate.semantics import FloatDomain, NanOrder, OnFailure, Semantics
from rowsieve.types.logical import Float, Int, LogicalType, Numeric, String, Time, is_ordered

_MAX_CORNER_ARGUMENTS = 6


def call(
    node: Call,
    row: Function,
    signature: Signature,
    arguments: Sequence[AbstractValue],
    semantics: Semantics,
) -> AbstractValue:
    """Return the possible results of a call."""
    if row.nulls is NullRule.ALL:
        return _within(_one_of(row, arguments), row, signature, arguments, semantics)
    part_count = len(arguments[0].present)
    fails = np.logical_or.reduce([value.fails for value in arguments])
    if row.nulls is NullRule.FIRST:
        null = arguments[0].null | _may_be_equal(arguments)
        present = arguments[0].present & ~_are_equal(arguments, semantics)
        first = _without_points(limited(arguments[0], present), arguments[1])
        return replace(first, null=null, fails=fails)
    bounds = _bounds(node, row, signature, arguments, semantics)
    none = nowhere(part_count)
    nan = none if bounds.nan is None else bounds.nan
    safe = none if bounds.safe is None else bounds.safe
    ranged = isinstance(signature.result, Float) and fails_out_of_range(row.name, semantics)
    risky = ~safe if ranged or row.can_fail(signature) else nowhere(part_count)
    if ranged:
        risky = risky | may_underflow(row.name, arguments)
    present, null, risky = _presence(row.nulls, arguments, risky)
    lower, upper = bounds.lower, bounds.upper
    if row.at_infinity is not None:
        low, high = _infinite(arguments, semantics)
        risky = risky | (present & (low | high))
        if row.at_infinity is not AtInfinity.FAILS:
            null = null | (present & (low | high))
        lower, upper = without(lower, low), without(upper, high)
    if row.nulls is NullRule.ANY:  # bounds hold only for rows with all arguments present
        any_null = np.logical_or.reduce([value.null for value in arguments])
        lower, upper = without(lower, any_null), without(upper, any_null)
    if isinstance(signature.result, Float):
        if semantics.nan is NanOrder.SIGNED and row.name in UNSETTLED_NAN:
            risky = risky | np.logical_and.reduce([value.nan for value in arguments])
        nan = nan | np.logical_or.reduce([value.nan for value in arguments])
    elif semantics.integer_overflow is OnFailure.WRAP and row.can_fail(signature):
        lower, upper = without(lower, ~safe), without(upper, ~safe)  # the result may be anything
    result = AbstractValue(
        signature.result, lower, upper, present, null, fails | risky, nan & present
    )
    if row.at_infinity is not None:
        near = np.logical_or.reduce(nearly_infinite(result, semantics))
        result = replace(result, fails=result.fails | near)
    if row.nulls is NullRule.STRICT and row.name in BUILT_IN:  # others may return anything
        return _at_points(without_contradictions(result), row, signature, arguments, semantics)
    return without_contradictions(result)


def _infinite(arguments: Sequence[AbstractValue], semantics: Semantics) -> tuple[Mask, Mask]:
    """Return where a time may be near negative and near positive infinity."""
    sides = [nearly_infinite(value, semantics) for value in arguments]
    low, high = (np.logical_or.reduce(masks) for masks in zip(*sides, strict=True))
    return low, high


def _presence(
    rule: NullRule, arguments: Sequence[AbstractValue], risky: Mask
) -> tuple[Mask, Mask, Mask]:
    """Return where the result may be a value, be NULL, or fail; `risky`: where a call may fail."""
    all_present = np.logical_and.reduce([value.present for value in arguments])
    any_null = np.logical_or.reduce([value.null for value in arguments])
    if rule is NullRule.STRICT:
        return all_present, any_null | (risky & all_present), risky & all_present
    if rule is NullRule.PARTIAL:
        return all_present, any_null | all_present, risky & all_present
    all_ = everywhere(len(risky))
    return all_, nowhere(len(risky)) if rule is NullRule.NEVER else all_, risky


def _at_points(
    result: AbstractValue,
    row: Function,
    signature: Signature,
    arguments: Sequence[AbstractValue],
    semantics: Semantics,
) -> AbstractValue:
    """Set the exact value in parts where each argument is one value; -0.0 and 0.0 count as two."""
    has_order = all(is_ordered(value.type) for value in (result, *arguments))
    if not has_order or any(isinstance(value.type, Float) for value in arguments):
        return result
    vague = result.present & ~known(ComparisonOp.EQ, result.lower, result.upper)
    for value in arguments:
        vague = vague & value.present & known(ComparisonOp.EQ, value.lower, value.upper)
        if isinstance(value.type, String) and row.name in CASED:
            vague = vague & ~are_young(value.lower)
    where = np.flatnonzero(vague)
    if not len(where):
        return result
    places = pa.array(where)
    points = [value.lower.take(places) for value in arguments]
    try:
        computed = row.evaluate(points, signature, semantics)
    except UnreadText:  # evaluating the condition raises it, if a row has such text
        return replace(result, fails=result.fails | vague)
    failed = np.zeros(len(where), np.bool_) if computed.failed is None else computed.failed
    absent = null_mask(computed.values)
    lower, upper = (
        pc.replace_with_mask(end, pa.array(vague), computed.values)
        for end in (result.lower, result.upper)
    )
    present, null, fails = result.present.copy(), result.null.copy(), result.fails.copy()
    present[where] = ~absent
    null[where] = np.logical_or.reduce([v.null[where] for v in arguments]) | (absent & ~failed)
    fails[where] = np.logical_or.reduce([v.fails[where] for v in arguments]) | failed
    exact = replace(result, lower=lower, upper=upper, present=present, null=null, fails=fails)
    if isinstance(result.type, Float):
        nan = result.nan.copy()
        nan[where] = as_mask(pc.is_nan(computed.values))
        exact = replace(exact, nan=nan)
    return without_contradictions(exact)


def cast_value(
    value: AbstractValue, target: LogicalType, semantics: Semantics, *, quiet: bool
) -> AbstractValue:
    """Return the possible results of a cast; `quiet`: a value that does not fit gives NULL."""
    rule = cast_rule(value.type, target)
    assert rule is not None
    risky = value.present if rule.can_fail else nowhere(len(value.present))
    result = anything(target, value.present, value.null, value.fails)
    if rule.increasing:
        strict = _strict(semantics)
        ends = [
            rule.evaluate(bound, value.type, target, strict) for bound in (value.lower, value.upper)
        ]
        lower, upper = (_usable(end) for end in ends)
        missing = null_mask(lower) | null_mask(upper) | _may_be_no_number(value, target)
        if value.type == Float(64) and semantics.float_range is OnFailure.ERROR:
            missing = missing | ~excludes_zero(value)
        risky = risky & missing
        if not quiet and wraps(value.type, target, semantics):
            lower, upper = without(lower, risky), without(upper, risky)  # it may be anything
            risky = nowhere(len(risky))
        if rule.rises_at is not None:
            unordered = ~(rule.rises_at(value.lower) & rule.rises_at(value.upper))
            lower, upper = without(lower, unordered), without(upper, unordered)
        nan = value.nan if isinstance(target, Float) else nowhere(len(risky))
        result = without_contradictions(replace(result, lower=lower, upper=upper, nan=nan))
    elif isinstance(value.type, Int) and isinstance(target, String):
        lower, upper = spelled_range(value.lower, value.upper)
        result = replace(result, lower=lower, upper=upper)
    if rule.can_fail or isinstance(target, Time):  # days near infinity have no time
        risky = np.logical_or.reduce([risky, *nearly_infinite(value, semantics)])
    if gives_null(target, semantics, try_=quiet):
        return replace(result, null=result.null | risky)
    if semantics.lenient_float_casts and isinstance(value.type, Float):
        result = replace(result, null=result.null | risky)
    return replace(result, fails=result.fails | risky)


def _may_be_no_number(value: AbstractValue, target: LogicalType) -> Mask:
    """Where infinity may be cast although the greatest numbers fail, or NaN may occur."""
    if not isinstance(value.type, Float):
        return nowhere(len(value.present))
    if isinstance(target, Int):
        return value.nan | as_mask(pc.is_inf(value.lower)) | as_mask(pc.is_inf(value.upper))
    return as_mask(pc.is_inf(value.lower)) | as_mask(pc.is_inf(value.upper))


def _usable(end: Computed) -> pa.Array:
    return without(end.values, end.failed)


def _strict(semantics: Semantics) -> Semantics:
    """Return the semantics under which every overflow and failed cast is an error."""
    return replace(
        semantics,
        integer_overflow=OnFailure.ERROR,
        quotient_overflow=OnFailure.ERROR,
        integer_division_by_zero=OnFailure.ERROR,
        float_division_by_zero=OnFailure.ERROR,
        decimal_overflow=OnFailure.ERROR,
        failed_cast=OnFailure.ERROR,
        lenient_float_casts=False,
        infinite_float32=False,
        negative_roots_fail=True,
        float_domain=FloatDomain.ERROR,
        shifts_wrap=False,
    )


def _one_of(row: Function, arguments: Sequence[AbstractValue]) -> AbstractValue:
    """Return the union of the arguments; a lazy function stops at the first that is never NULL."""
    result = arguments[0]
    null = arguments[0].null
    for value in arguments[1:]:
        result = join(result, limited(value, null) if row.lazy else value)
        null = null & value.null
    return replace(result, null=null)


def _within(
    value: AbstractValue,
    row: Function,
    signature: Signature,
    arguments: Sequence[AbstractValue],
    semantics: Semantics,
) -> AbstractValue:
    """Return the union of the arguments, intersected with the bounds that the row computes."""
    if row.bounds is None or isinstance(signature.result, Numeric):
        return value
    bounds = row.bounds(arguments, signature, semantics)
    if bounds is None:
        return value
    return meet(value, replace(value, lower=bounds.lower, upper=bounds.upper))


def _may_be_equal(arguments: Sequence[AbstractValue]) -> Mask:
    """Where the first argument may equal another one, or the bounds cannot exclude it."""
    first = arguments[0]
    equal = nowhere(len(first.present))
    for other in arguments[1:]:
        apart = known(ComparisonOp.GT, first.lower, other.upper)
        apart |= known(ComparisonOp.LT, first.upper, other.lower)
        equal |= other.present & ~apart
    return equal & first.present


def _are_equal(arguments: Sequence[AbstractValue], semantics: Semantics) -> Mask:
    """Where the first argument always equals another one, which is never NULL."""
    first = arguments[0]
    if semantics.nested_zeros_differ and isinstance(first.type, Float):
        return nowhere(len(first.present))  # bounds do not distinguish -0.0 from 0.0
    equal = nowhere(len(first.present))
    for other in arguments[1:]:
        same = is_point(first) & is_point(other) & known(ComparisonOp.EQ, first.lower, other.lower)
        equal |= same & ~other.null & other.present
    return equal


def _without_points(value: AbstractValue, other: AbstractValue) -> AbstractValue:
    """Exclude the other value where it is a single value that is never NULL."""
    if value.alternatives or not isinstance(value.type, DISCRETE):
        return value
    point = is_point(other) & other.present & ~other.null
    if not point.any():
        return value
    above, below = (without(neighbours(other.lower, value.type, step), ~point) for step in (1, -1))
    greatest, least = (known(ComparisonOp.EQ, other.lower, next_) for next_ in (above, below))
    spans = [
        replace(value, upper=inner_bound(ComparisonOp.LE, value.upper, below)),
        replace(value, lower=inner_bound(ComparisonOp.GE, value.lower, above)),
    ]
    ends = (point & least, ~point | greatest)
    there = [
        limited(span, span.present & ~end & ~inverted(span.lower, span.upper))
        for span, end in zip(spans, ends, strict=True)
    ]
    return with_alternatives(value, there)


def _bounds(
    node: Call,
    row: Function,
    signature: Signature,
    arguments: Sequence[AbstractValue],
    semantics: Semantics,
) -> Range:
    """Return bounds of the results: by the row's own rule, else by its directions, else none."""
    part_count = len(arguments[0].present)
    free = anything(signature.result, *(everywhere(part_count) for _ in range(3)))
    unknown = Range(free.lower, free.upper, free.nan)
    if isinstance(signature.result, Numeric):  # only its bytes and its float have bounds
        return unknown
    if row.bounds is not None:
        bounds = row.bounds(arguments, signature, _strict(semantics))
        if bounds is not None:
            return bounds
    directions = row.direction(signature)
    moving = [index for index, term in enumerate(node.arguments) if not isinstance(term, Literal)]
    if any(directions[index] is Direction.NONE for index in moving):
        return unknown
    if not any(direction is not Direction.NONE for direction in directions):
        return unknown
    strict = _strict(semantics)
    if any(directions[index] is Direction.EITHER for index in moving):
        if len(moving) > _MAX_CORNER_ARGUMENTS:
            return unknown
        corners = [
            dict(zip(moving, choice, strict=True))
            for choice in itertools.product((False, True), repeat=len(moving))
        ]
        return _hull(row, signature, arguments, corners, strict)
    low = {index: directions[index] is Direction.DECREASING for index in moving}
    high = {index: not upper for index, upper in low.items()}
    lower = _corner(row, signature, arguments, low, strict)
    upper = _corner(row, signature, arguments, high, strict)
    nan = null_mask(upper) if isinstance(signature.result, Float) else None
    return Range(lower, upper, nan, safe=~(null_mask(lower) | null_mask(upper)))


def _corner(
    row: Function,
    signature: Signature,
    arguments: Sequence[AbstractValue],
    uppers: dict[int, bool],
    semantics: Semantics,
) -> pa.Array:
    """Evaluate one choice of bounds; NULL where a bound is missing or infinite, or the call fails.

    Infinity is not an end point for arithmetic: infinity - infinity is NaN inside a range.
    """
    ends = []
    for index, value in enumerate(arguments):
        end = value.upper if uppers.get(index, True) else value.lower
        if isinstance(value.type, Float):
            finite = pc.fill_null(pc.is_finite(end), False)  # noqa: FBT003
            end = without(end, ~finite.to_numpy(zero_copy_only=False))
        ends.append(end)
    missing = np.logical_or.reduce([null_mask(end) for end in ends])
    return without(_usable(row.evaluate(ends, signature, semantics)), missing)


def _hull(
    row: Function,
    signature: Signature,
    arguments: Sequence[AbstractValue],
    corners: list[dict[int, bool]],
    semantics: Semantics,
) -> Range:
    """Return the least and the greatest corner, where all corners are known."""
    part_count = len(arguments[0].present)
    none, all_ = nowhere(part_count), everywhere(part_count)
    safe, hull = all_, None
    for corner in corners:
        end = _corner(row, signature, arguments, corner, semantics)
        safe = safe & ~null_mask(end)
        point = AbstractValue(signature.result, end, end, all_, none, none, none)
        hull = point if hull is None else hull_of_two(hull, point)
    assert hull is not None
    nan = ~safe if isinstance(signature.result, Float) else None
    return Range(without(hull.lower, ~safe), without(hull.upper, ~safe), nan, safe)
