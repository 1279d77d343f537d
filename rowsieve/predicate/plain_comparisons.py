"""Fast path: compare an integer-like column with a constant by the bounds alone.

Most questions to statistics are of this kind, and a small read asks three times: for parts, row
groups and pages. The general path builds abstract values and compares them with Arrow kernels, at
ten times the cost of numpy.

Soundness: all other cases use the general path: other types, NaN, a missing bound, contradictory
bounds, a constant of another type. The answer is always the one of the general path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.abstract import AbstractColumn, AbstractColumns, Truth
from rowsieve.predicate.arrays import plain_numbers
from rowsieve.predicate.facts import DISCRETE
from rowsieve.predicate.ir import BoundColumn, Comparison, ComparisonOp, Literal
from rowsieve.types.encodings import arrow_type

_ORDERED = frozenset(
    (
        ComparisonOp.EQ,
        ComparisonOp.NE,
        ComparisonOp.LT,
        ComparisonOp.LE,
        ComparisonOp.GT,
        ComparisonOp.GE,
    )
)


def plain_truth(node: Comparison, columns: AbstractColumns) -> Truth | None:
    """Return the possible outcomes in each part; None if the general path must decide."""
    column, constant = node.left, node.right
    if not isinstance(column, BoundColumn) or not isinstance(constant, Literal):
        return None
    if not isinstance(column.type, DISCRETE) or constant.type != column.type:
        return None
    value = constant.value
    if node.op not in _ORDERED or not isinstance(value, int):
        return None
    known = columns.column(column)
    if known is None or known.ranges or not _is_bounded(known, arrow_type(column.type)):
        return None
    lower, upper = _numbers(known.lower), _numbers(known.upper)
    if (lower > upper).any():
        return None
    may_hold, may_fail = _outcomes(node.op, lower, upper, value)
    present = ~known.empty
    return Truth(
        may_hold & present, may_fail & present, known.may_be_null, np.zeros_like(known.empty)
    )


def _outcomes(
    op: ComparisonOp, lower: npt.NDArray[Any], upper: npt.NDArray[Any], value: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether some number within the bounds satisfies the comparison, and whether some does not."""
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


def _is_bounded(known: AbstractColumn, type_: pa.DataType) -> bool:
    """Whether both bounds exist in every part, in the column's own type."""
    lower, upper = known.lower, known.upper
    is_typed: bool = lower.type == type_ and upper.type == type_
    return is_typed and not (lower.null_count or upper.null_count)


def _numbers(bound: pa.Array) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = plain_numbers(bound).to_numpy(zero_copy_only=False)
    return numbers
