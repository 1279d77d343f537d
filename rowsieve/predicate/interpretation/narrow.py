"""Restrict the statistics of a column by the other conjuncts of a predicate.

A row that is kept, or raises, satisfies every conjunct that cannot fail: `ts >= a AND ts < b` holds
on it, whatever the other conjuncts are (invariant 27). So the other conjuncts are interpreted
between a and b only: `extract(month FROM ts) = 7` together with one year refutes parts that hold
July of other years. If no value is possible within the bounds, no row of the part is kept.

Soundness: the result only refutes parts. It never proves that all rows of a part match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import Mask, compare, filled, null_mask, with_nulls
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.interpretation.abstract import (
    AbstractColumn,
    AbstractColumns,
    AbstractValue,
    KnownExpressions,
    from_column,
    known,
)
from rowsieve.predicate.interpretation.facts import (
    DISCRETE,
    MAX_RANGES,
    Facts,
    Range,
    Span,
    facts_of,
    ranges_of,
    whole_range,
)
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Float, Int, Timestamp

_EQ, _NE, _LT, _LE = ir.ComparisonOp.EQ, ir.ComparisonOp.NE, ir.ComparisonOp.LT, ir.ComparisonOp.LE
_GT, _GE = ir.ComparisonOp.GT, ir.ComparisonOp.GE
_LEAVES: dict[
    ir.ComparisonOp, frozenset[str]
] = {  # which of less, equal and greater each operator allows
    _EQ: frozenset("="),
    _NE: frozenset("<>"),
    _LT: frozenset("<"),
    _LE: frozenset("<="),
    _GT: frozenset(">"),
    _GE: frozenset(">="),
}
_ROUNDS = 2
_TOGETHER = "what the conjuncts say together"


def restricts(term: ir.Predicate, facts: Facts) -> bool:
    """Whether a conjunct restricts a column of the facts beyond the facts themselves."""
    if isinstance(term, ir.Comparison) and isinstance(term.left, ir.BoundColumn):
        if isinstance(term.right, ir.Literal) and term.op in _LEAVES:
            return False
    elif isinstance(term, ir.IsNull) and isinstance(term.operand, ir.BoundColumn):
        return False
    columns = facts.columns
    return any(isinstance(node, ir.BoundColumn) and node in columns for node in ir.walk(term))


def combined_facts(
    predicate: BoundPredicate, terms: Sequence[ir.Predicate]
) -> tuple[Facts, Sequence[ir.Predicate]]:
    """Combine the facts that the conjuncts imply; also return the conjuncts to test within them.

    `terms` are those of the predicate. The result is cached on the predicate, since parts, row
    groups and pages are tested one after another.
    """
    known = predicate.remembered
    if _TOGETHER not in known:
        facts = facts_of(terms)
        others = [term for term in terms if restricts(term, facts)]
        asked = {
            node for term in others for node in ir.walk(term) if isinstance(node, ir.BoundColumn)
        }
        facts = facts.about(facts.connected | asked)
        void = not others and adds_nothing(facts)
        known[_TOGETHER] = (Facts(), ()) if void else (facts, others)
    combined: tuple[Facts, Sequence[ir.Predicate]] = known[_TOGETHER]
    return combined


def adds_nothing(facts: Facts) -> bool:
    """Whether the facts refute only parts that a single conjunct already refutes.

    True for bounds with room between them: a range of values intersects all of `a <= x`, `x <= b`
    and `a <= b`, or fails one of the first two.
    """
    if facts.pairs or facts.null:
        return False
    spans = facts.spans.values()
    return not any(span.excluded or span.ranges or _is_void(span) for span in spans)


def _is_void(span: Span) -> bool:
    if span.lower is None or span.upper is None:
        return False
    return bool(known(_GT, pa.repeat(span.lower, 1), pa.repeat(span.upper, 1))[0])


@dataclass(frozen=True, slots=True)
class NarrowedColumns:
    """Statistics of the rows with the facts; `refuted`: parts without such rows."""

    inner: AbstractColumns
    known: dict[ir.BoundColumn, AbstractColumn]
    refuted: Mask

    @property
    def part_count(self) -> int:
        """The number of parts, n."""
        return self.inner.part_count

    def column(self, column: ir.BoundColumn) -> AbstractColumn | None:
        """Return the statistics of the column on those rows."""
        return self.known.get(column) or self.inner.column(column)

    def expression(self, operand: ir.Operand) -> AbstractValue | None:
        """Return the statistics of an expression on all rows, which hold on these rows too."""
        if isinstance(self.inner, KnownExpressions):
            return self.inner.expression(operand)
        return None


def narrowed(columns: AbstractColumns, facts: Facts) -> NarrowedColumns:
    """Restrict the columns by the facts."""
    part_count = columns.part_count
    refuted = np.zeros(part_count, dtype=np.bool_)
    if facts.null & facts.present or _contradict(facts.pairs):
        refuted = ~refuted
    by_column: dict[ir.BoundColumn, AbstractColumn] = {}
    for column in facts.columns:
        by_column[column] = _of_statistics(column, columns.column(column), part_count)
    for column, span in facts.spans.items():
        by_column[column] = _within(by_column[column], column, span)
    for _ in range(_ROUNDS if facts.pairs else 0):
        for op, left, right in facts.pairs:
            by_column[left], by_column[right] = _paired(op, left, by_column[left], by_column[right])
    paired = {column for _, *pair in facts.pairs for column in pair}
    none = np.zeros(part_count, dtype=np.bool_)
    for column, within in by_column.items():
        gone = within.empty
        span_of = facts.spans.get(column)
        bounded = span_of is not None and (span_of.sources > 1 or column not in facts.present)
        compared = bounded or column in paired
        if compared and not isinstance(column.type, Float):  # NaN lies outside all bounds
            gone = gone | known(_GT, within.lower, within.upper)
        if span_of is not None and (ranges := _ranges(column, span_of, part_count)):
            within = replace(within, ranges=ranges)  # noqa: PLW2901
            gone = gone | ~_has_value_between(within)
        null = within.may_be_null
        if column in facts.present:
            refuted, null = refuted | gone, none
        if column in facts.null:
            refuted, gone = refuted | ~null, ~none
        by_column[column] = replace(within, empty=gone, may_be_null=null)
    return NarrowedColumns(columns, by_column, refuted)


def _of_statistics(
    column: ir.BoundColumn, statistics: AbstractColumn | None, part_count: int
) -> AbstractColumn:
    """What statistics say of a column, before any fact of the predicate."""
    known_facts = from_column(column, statistics, part_count)
    return AbstractColumn(
        known_facts.lower,
        known_facts.upper,
        ~known_facts.present,
        known_facts.null,
        known_facts.nan,
        all_nan=None if statistics is None else statistics.all_nan,
        ranges=() if statistics is None else statistics.ranges,
    )


def _within(facts: AbstractColumn, column: ir.BoundColumn, span: Span) -> AbstractColumn:
    nan, all_nan = facts.may_be_nan, facts.all_nan
    if span.upper is not None:  # rows within the span are not NaN
        nan, all_nan = None if nan is None else np.zeros_like(nan), None
    lower = _tightened(facts.lower, span.lower, _GT)
    upper = _tightened(facts.upper, span.upper, _LT)
    if span.excluded and isinstance(column.type, DISCRETE):
        lower = _past_excluded(lower, column, span.excluded, 1)
        upper = _past_excluded(upper, column, span.excluded, -1)
    return replace(facts, lower=lower, upper=upper, may_be_nan=nan, all_nan=all_nan)


def _ranges(
    column: ir.BoundColumn, span: Span, part_count: int
) -> tuple[tuple[pa.Array, pa.Array], ...]:
    """Return the ranges of a span between its excluded values; none for floats, because of NaN."""
    if isinstance(column.type, Float):
        return ()
    ends = ranges_of(span) if span.ranges else []
    if isinstance(column.type, DISCRETE) and 0 < len(span.excluded) < MAX_RANGES:
        ends = [
            piece
            for each in ends or [(span.lower, span.upper)]
            for piece in _around(column, span, each)
        ]
    if not 0 < len(ends) <= MAX_RANGES:
        return ()
    nothing = pa.nulls(part_count, arrow_type(column.type))
    return tuple(
        (
            nothing if low is None else pa.repeat(low, part_count),
            nothing if high is None else pa.repeat(high, part_count),
        )
        for low, high in ends
    )


def _around(column: ir.BoundColumn, span: Span, ends: Range) -> Iterator[Range]:
    """Split a range at the values that a span excludes."""
    assert isinstance(column.type, DISCRETE)
    low, (least, greatest) = ends[0], whole_range(column.type)
    for value in sorted(span.excluded):
        if least < value:
            yield low, scalar(ir.Literal(value - 1, column.type))
        if value == greatest:
            return
        low = scalar(ir.Literal(value + 1, column.type))
        if ends[0] is not None:
            low = _greater(ends[0], low)
    yield low, ends[1]


def _greater(one: pa.Scalar, other: pa.Scalar) -> pa.Scalar:
    sides = [pa.repeat(side, 1) for side in (one, other)]
    return _inner(sides[0], sides[1], _GT)[0]


def _has_value_between(within: AbstractColumn) -> Mask:
    """Return the parts, (n,) bool, in which a range contains a value between the bounds."""
    met = np.zeros(len(within.empty), dtype=np.bool_)
    for lower, upper in within.ranges:
        met |= ~known(_GT, _inner(within.lower, lower, _GT), _inner(within.upper, upper, _LT))
    return met


def _tightened(bound: pa.Array, end: pa.Scalar | None, op: ir.ComparisonOp) -> pa.Array:
    if end is None:
        return bound
    return _inner(bound, pa.repeat(end, len(bound)), op)


def _inner(bound: pa.Array, other: pa.Array, op: ir.ComparisonOp) -> pa.Array:
    """Return the narrower of two bounds; the existing one where one is missing."""
    closer = compare(op, other, bound, NanOrder.GREATEST)
    return pc.coalesce(pc.if_else(closer, other, bound), bound, other)


def _past_excluded(
    bound: pa.Array, column: ir.BoundColumn, excluded: Sequence[int] | frozenset[int], step: int
) -> pa.Array:
    """Move a bound past the values that the column does not have."""
    numbers, nulls = filled(bound).copy(), null_mask(bound)
    assert isinstance(column.type, DISCRETE)
    low, high = whole_range(column.type)
    for value in sorted(excluded, reverse=step < 0):
        if low <= value + step <= high:
            numbers[numbers == value] = value + step
    return with_nulls(numbers, nulls, arrow_type(column.type))


def _paired(
    op: ir.ComparisonOp, column: ir.BoundColumn, left: AbstractColumn, right: AbstractColumn
) -> tuple[AbstractColumn, AbstractColumn]:
    """Restrict both sides of `left op right` by each other."""
    if op in (_GT, _GE):
        right, left = _paired(op.mirrored, column, right, left)
        return left, right
    if op is _EQ:
        lower = _inner(left.lower, right.lower, _GT)
        upper = _inner(left.upper, right.upper, _LT)
        return replace(left, lower=lower, upper=upper), replace(right, lower=lower, upper=upper)
    if op is _NE:
        return left, right
    above, below = left.lower, right.upper
    if op is _LT and isinstance(column.type, DISCRETE):
        above, below = neighbours(above, column.type, 1), neighbours(below, column.type, -1)
    return (
        replace(left, upper=_inner(left.upper, below, _LT)),
        replace(right, lower=_inner(right.lower, above, _GT)),
    )


def neighbours(values: pa.Array, type_: Int | Date | Timestamp, step: int) -> pa.Array:
    """Return the next values, upward or downward; the same value where there is none."""
    numbers, nulls = filled(values), null_mask(values)
    end = whole_range(type_)[step > 0]
    one = numbers.dtype.type(1)
    moved = np.where(numbers == end, numbers, numbers + one if step > 0 else numbers - one)
    return with_nulls(moved, nulls, arrow_type(type_))


def _contradict(pairs: Sequence[tuple[ir.ComparisonOp, ir.BoundColumn, ir.BoundColumn]]) -> bool:
    """Whether no two values satisfy all the comparisons of two columns."""
    left: dict[tuple[ir.BoundColumn, ir.BoundColumn], frozenset[str]] = {}
    for op, a, b in pairs:
        if (b, a) in left:
            a, b, op = b, a, op.mirrored  # noqa: PLW2901 - the mirrored pair
        left[a, b] = left.get((a, b), frozenset("<=>")) & _LEAVES[op]
    return not all(left.values())
