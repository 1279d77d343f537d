"""Fast paths: compare integer-like columns with constants by the bounds alone.

Most predicates consist of such comparisons, and a small read evaluates them three times: over
parts, row groups and pages. The general path builds abstract values and compares them with Arrow
kernels, at ten times the cost of numpy. `plain_verdicts` decides a whole predicate that restricts
each of its columns to an interval, or one column to a list; `plain_truth` a single comparison of
any predicate.

Soundness: all other cases use the general path: other types, NaN, a missing bound, contradictory
bounds, a constant of another type. The answer is always the one of the general path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Mask, filled, plain_numbers
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.interpretation.abstract import AbstractColumns, Truth
from rowsieve.predicate.interpretation.facts import DISCRETE
from rowsieve.predicate.ir import (
    BoundColumn,
    Comparison,
    ComparisonOp,
    InList,
    Literal,
    Predicate,
    root_conjuncts,
)
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Int


def plain_verdicts(
    predicate: BoundPredicate, columns: AbstractColumns
) -> npt.NDArray[np.int8] | None:
    """Return 0, 1 or 2 per part, as `Verdict` numbers them; None if the general path must decide.

    A part is refuted unless its bounds meet the interval of every column. All its rows match if no
    value may be NULL and the bounds lie within the intervals.
    """
    intervals = _intervals_of(predicate)
    if intervals is None:
        return _plain_members(predicate, columns)
    possible: Mask | None = None
    matching: Mask | None = None
    for column, least, most in intervals:
        known = columns.column(column)
        bounds = None if known is None else known.number_bounds
        if bounds is None or bounds.type != arrow_type(column.type):
            return None
        here, all_ = bounds.present, bounds.certain
        if most is not None:
            here = here & (bounds.lower <= most)
            all_ = all_ & (bounds.upper <= most)
        if least is not None:
            here = here & (bounds.upper >= least)
            all_ = all_ & (bounds.lower >= least)
        if least is not None and most is not None and least > most:
            here = np.zeros_like(here)
        possible = here if possible is None else possible & here
        matching = all_ if matching is None else matching & all_
    assert possible is not None
    assert matching is not None
    return possible.view(np.int8) + (possible & matching).view(np.int8)


def _plain_members(
    predicate: BoundPredicate, columns: AbstractColumns
) -> npt.NDArray[np.int8] | None:
    """`plain_verdicts` of one IN list; a part matches if each value within its bounds is listed."""
    known = predicate.remembered
    if "members" not in known:
        known["members"] = _members(root_conjuncts(predicate.root))
    entry: tuple[BoundColumn, npt.NDArray[Any]] | None = known["members"]
    if entry is None:
        return None
    column, members = entry
    of_parts = columns.column(column)
    bounds = None if of_parts is None else of_parts.number_bounds
    if bounds is None or bounds.type != arrow_type(column.type):
        return None
    first = members.searchsorted(bounds.lower)
    count = members.searchsorted(bounds.upper, side="right") - first
    width = bounds.upper - bounds.lower
    if isinstance(column.type, Int):
        listed = width.astype(np.uint64) == (count - 1).astype(np.uint64)
    else:
        listed = (width == 0) & (count == 1)
    possible: Mask = bounds.present & (count > 0)
    all_: Mask = possible & bounds.certain & listed
    return possible.view(np.int8) + all_.view(np.int8)


def _members(terms: Sequence[Predicate]) -> tuple[BoundColumn, npt.NDArray[Any]] | None:
    """The column and the ascending members, if the only conjunct is an IN list without NULL."""
    if len(terms) != 1 or not isinstance(term := terms[0], InList):
        return None
    column, values = term.operand, term.values
    if not isinstance(column, BoundColumn) or not isinstance(column.type, DISCRETE):
        return None
    if values.array.type != arrow_type(column.type) or values.array.null_count:
        return None
    return column, np.unique(filled(values.array))


Interval: TypeAlias = tuple[BoundColumn, int | None, int | None]
"""A column with the least and greatest value of an interval; None means unbounded."""


def _intervals_of(predicate: BoundPredicate) -> tuple[Interval, ...] | None:
    """Return each column's interval; None unless all conjuncts compare integer-like columns."""
    known = predicate.remembered
    if "intervals" not in known:
        known["intervals"] = _intervals(root_conjuncts(predicate.root))
    intervals: tuple[Interval, ...] | None = known["intervals"]
    return intervals


def _intervals(terms: Sequence[Predicate]) -> tuple[Interval, ...] | None:
    intervals: dict[BoundColumn, tuple[int | None, int | None]] = {}
    for term in terms:
        if not isinstance(term, Comparison) or (ends := _ENDS.get(term.op)) is None:
            return None
        column, constant = term.left, term.right
        if not isinstance(column, BoundColumn) or not isinstance(constant, Literal):
            return None
        value = constant.value
        if not isinstance(column.type, DISCRETE) or constant.type != column.type:
            return None
        if not isinstance(value, int):
            return None
        least, most = intervals.get(column, (None, None))
        if (above := ends[0]) is not None:
            least = value + above if least is None else max(least, value + above)
        if (below := ends[1]) is not None:
            most = value + below if most is None else min(most, value + below)
        intervals[column] = least, most
    return tuple((column, least, most) for column, (least, most) in intervals.items()) or None


_ENDS: Mapping[ComparisonOp, tuple[int | None, int | None]] = {
    ComparisonOp.EQ: (0, 0),
    ComparisonOp.LT: (None, -1),
    ComparisonOp.LE: (None, 0),
    ComparisonOp.GT: (1, None),
    ComparisonOp.GE: (0, None),
}
"""How far from the constant the least and the greatest value of the interval are."""


def plain_sides(node: Comparison) -> tuple[BoundColumn, int] | None:
    """The column and the stored integer that it is compared with; None if it is another kind."""
    column, constant = node.left, node.right
    if not isinstance(column, BoundColumn) or not isinstance(constant, Literal):
        return None
    if not isinstance(column.type, DISCRETE) or constant.type != column.type:
        return None
    value = constant.value
    return (column, value) if not node.op.is_null_safe and isinstance(value, int) else None


def plain_truth(node: Comparison, columns: AbstractColumns) -> Truth | None:
    """Return the possible outcomes in each part; None if the general path must decide."""
    if (sides := plain_sides(node)) is None:
        return None
    column, value = sides
    known = columns.column(column)
    bounds = None if known is None else known.number_bounds
    if known is None or bounds is None or bounds.type != arrow_type(column.type):
        return None
    may_hold, may_fail = _outcomes(node.op, bounds.lower, bounds.upper, value)
    present = bounds.present
    return Truth(
        may_hold & present, may_fail & present, known.may_be_null, np.zeros_like(known.empty)
    )


def plain_truths(
    column: BoundColumn, op: ComparisonOp, constants: pa.Array, columns: AbstractColumns
) -> tuple[Mask, Mask, Mask, Mask] | None:
    """Compare a column with constants of its type, none NULL, as `plain_truth` does with each.

    The masks of each outcome are (constants or 1, parts).
    """
    if not isinstance(column.type, DISCRETE) or op.is_null_safe:
        return None
    known = columns.column(column)
    bounds = None if known is None else known.number_bounds
    if known is None or bounds is None or bounds.type != arrow_type(column.type):
        return None
    values = plain_numbers(constants).to_numpy(zero_copy_only=False)[:, np.newaxis]
    may_hold, may_fail = _outcomes(op, bounds.lower, bounds.upper, values)
    none = np.zeros_like(known.empty)[np.newaxis]
    return (
        may_hold & bounds.present,
        may_fail & bounds.present,
        known.may_be_null[np.newaxis],
        none,
    )


def _outcomes(
    op: ComparisonOp,
    lower: npt.NDArray[Any],
    upper: npt.NDArray[Any],
    value: int | npt.NDArray[Any],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two masks: some number within the bounds satisfies it, and some number does not."""
    match op:
        case ComparisonOp.LT:
            return lower < value, upper >= value
        case ComparisonOp.LE:
            return lower <= value, upper > value
        case ComparisonOp.GT:
            return upper > value, lower <= value
        case ComparisonOp.GE:
            return upper >= value, lower < value
    within = (lower <= value) & (upper >= value)
    others = (lower != value) | (upper != value)
    return (within, others) if op is ComparisonOp.EQ else (others, within)
