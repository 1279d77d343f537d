"""What the conjuncts of a predicate say of a column to each other.

A row that survives, or raises, satisfies every conjunct that cannot fail: `ts >= a AND ts < b`
holds on it, whatever stands beside it (invariant 27). So the other conjuncts need to be looked at
between a and b only: `extract(month FROM ts) = 7` beside one year refutes parts that hold other
Julys. This serves to refute parts, never to prove that all of their rows match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.abstract import (
    AbstractColumn,
    AbstractColumns,
    AbstractValue,
    KnownExpressions,
)
from rowsieve.predicate.arrays import as_mask, compare
from rowsieve.predicate.ir import (
    BoundColumn,
    Comparison,
    ComparisonOp,
    Literal,
    Operand,
    Predicate,
    walk,
)
from rowsieve.predicate.literals import int_range, scalar
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Int, LogicalType, Timestamp

_ABOVE = (ComparisonOp.GT, ComparisonOp.GE, ComparisonOp.EQ)
_BELOW = (ComparisonOp.LT, ComparisonOp.LE, ComparisonOp.EQ)


@dataclass(frozen=True, slots=True)
class Span:
    """Inclusive bounds that the conjuncts set to a column; None is no bound."""

    lower: pa.Scalar | None
    upper: pa.Scalar | None


def spans(terms: Sequence[Predicate]) -> dict[BoundColumn, Span]:
    """The columns that conjuncts of the form `column op constant` bound."""
    found: dict[BoundColumn, Span] = {}
    for term in terms:
        if not isinstance(term, Comparison) or not isinstance(term.left, BoundColumn):
            continue
        constant = term.right
        if not isinstance(constant, Literal) or not _is_usable(constant, term.left.type):
            continue
        span = found.get(term.left, Span(None, None))
        if term.op in _ABOVE:
            end = scalar(_stepped(constant, 1) if term.op is ComparisonOp.GT else constant)
            span = replace(span, lower=_outer(span.lower, end, ComparisonOp.GT))
        if term.op in _BELOW:
            end = scalar(_stepped(constant, -1) if term.op is ComparisonOp.LT else constant)
            span = replace(span, upper=_outer(span.upper, end, ComparisonOp.LT))
        if span != Span(None, None):
            found[term.left] = span
    return found


def touches(term: Predicate, columns: dict[BoundColumn, Span]) -> bool:
    """Whether a conjunct says of a bounded column more than a bound."""
    if isinstance(term, Comparison) and isinstance(term.left, BoundColumn):
        return not isinstance(term.right, Literal)
    return any(isinstance(node, BoundColumn) and node in columns for node in walk(term))


@dataclass(frozen=True, slots=True)
class NarrowedColumns:
    """The statistics of the rows that lie within the spans."""

    inner: AbstractColumns
    spans: dict[BoundColumn, Span]

    @property
    def part_count(self) -> int:
        """N."""
        return self.inner.part_count

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """What is known of the column on those rows; contradicting bounds say nothing."""
        known, span = self.inner.column(column), self.spans.get(column)
        if span is None:
            return known
        count, storage = self.part_count, arrow_type(column.type)
        none = np.zeros(count, dtype=np.bool_)
        nothing = pa.nulls(count, storage)
        if known is None or known.lower.type != storage or known.upper.type != storage:
            known = AbstractColumn(nothing, nothing, none, none)
        may_be_nan = known.may_be_nan if span.upper is None else none
        lower = _tightened(known.lower, span.lower, ComparisonOp.GT)
        upper = _tightened(known.upper, span.upper, ComparisonOp.LT)
        return replace(known, lower=lower, upper=upper, may_be_null=none, may_be_nan=may_be_nan)

    def expression(self, operand: Operand) -> AbstractValue | None:
        """What is known of expressions on all rows holds on these."""
        if isinstance(self.inner, KnownExpressions):
            return self.inner.expression(operand)
        return None


def _is_usable(constant: Literal, type_: LogicalType) -> bool:
    if constant.value is None or constant.type != type_:
        return False
    return not (isinstance(constant.value, float) and constant.value != constant.value)


def _stepped(constant: Literal, step: int) -> Literal:
    """The next value of a type that has one."""
    type_, value = constant.type, constant.value
    if not isinstance(type_, Int | Date | Timestamp) or not isinstance(value, int):
        return constant
    bits = type_ if isinstance(type_, Int) else Int(32 if isinstance(type_, Date) else 64)
    low, high = int_range(bits)
    return Literal(value + step, type_) if low <= value + step <= high else constant


def _outer(own: pa.Scalar | None, other: pa.Scalar, op: ComparisonOp) -> pa.Scalar:
    if own is None:
        return other
    sides = [pa.repeat(side, 1) for side in (other, own)]
    return other if as_mask(compare(op, sides[0], sides[1], NanOrder.GREATEST))[0] else own


def _tightened(bound: pa.Array, end: pa.Scalar | None, op: ComparisonOp) -> pa.Array:
    if end is None:
        return bound
    ends = pa.repeat(end, len(bound))
    closer = pc.fill_null(compare(op, ends, bound, NanOrder.GREATEST), True)  # noqa: FBT003
    return pc.if_else(closer, ends, bound)
