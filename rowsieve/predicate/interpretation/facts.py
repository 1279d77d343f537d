"""Facts about column values, implied by conditions that cannot fail.

A comparison of a column with a constant or with another column of its type, IN, IS NULL and their
negations never fail. So a row that is kept, or raises, satisfies all such conditions in the
top-level AND (invariant 27), and only rows that do not satisfy the earlier conditions of a CASE
reach a later branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import as_mask, compare
from rowsieve.predicate.literal_values import int_range, scalar
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.logical import Bool, Date, Float, Int, Timestamp, is_ordered

_TRUE, _FALSE = (ir.Literal(value=truth, type=Bool()) for truth in (True, False))
_MAX_EXCLUDED = 16
MAX_RANGES = 4
DISCRETE = Int | Date | Timestamp


Range: TypeAlias = tuple[pa.Scalar | None, pa.Scalar | None]
"""Inclusive bounds; None means unbounded."""


@dataclass(frozen=True, slots=True)
class Span:
    """Inclusive bounds of a column's values, and values that it excludes; None means unbounded.

    Values also lie in one of the `ranges`, if there are any.
    """

    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    excluded: frozenset[int] = frozenset()
    ranges: tuple[Range, ...] = ()
    sources: int = 0  # number of conditions behind these bounds


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about columns. `null` and `present`: always NULL, never NULL; `pairs`: `a op b`."""

    spans: Mapping[ir.BoundColumn, Span] = field(default_factory=dict)
    null: frozenset[ir.BoundColumn] = frozenset()
    present: frozenset[ir.BoundColumn] = frozenset()
    pairs: tuple[tuple[ir.ComparisonOp, ir.BoundColumn, ir.BoundColumn], ...] = ()

    @property
    def columns(self) -> frozenset[ir.BoundColumn]:
        """All columns with a fact."""
        paired = (column for _, *pair in self.pairs for column in pair)
        return frozenset([*self.spans, *self.null, *self.present, *paired])

    @property
    def connected(self) -> frozenset[ir.BoundColumn]:
        """Columns with facts of several conditions, which may exclude more than each alone."""
        several = (column for column, span in self.spans.items() if span.sources > 1)
        paired = (column for _, *pair in self.pairs for column in pair)
        return frozenset([*several, *paired, *(self.null & self.present)])

    def about(self, columns: frozenset[ir.BoundColumn]) -> Facts:
        """Keep the facts of these columns only; a pair needs both of its columns."""
        return Facts(
            {column: span for column, span in self.spans.items() if column in columns},
            self.null & columns,
            self.present & columns,
            tuple(pair for pair in self.pairs if {*pair[1:]} <= columns),
        )


def facts_of(terms: Iterable[ir.Predicate]) -> Facts:
    """Derive the facts that hold on rows on which all terms are TRUE."""
    facts = Facts()
    for term in terms:
        facts = _with(facts, term)
    return facts


def facts_against(term: ir.Predicate, known: Facts | None = None) -> Facts:
    """Derive the facts that hold for the non-NULL values on rows on which the term is not TRUE.

    They are added to the `known` ones.
    """
    facts = known or Facts()
    for each in term.terms if isinstance(term, ir.Or) else (term,):
        match each:
            case ir.IsNull(operand=ir.BoundColumn() as column):
                facts = replace(facts, present=facts.present | {column})
            case ir.Comparison(
                op=op, left=ir.BoundColumn() as column, right=ir.Literal() as constant
            ) if not op.is_null_safe and not isinstance(column.type, Float):
                facts = _bounded(facts, op.negated, column, constant)
            case ir.InList(operand=ir.BoundColumn() as column):
                facts = _outside(facts, column, each)
            case ir.Not(term=ir.InList(operand=ir.BoundColumn() as column) as listed):
                if not listed.values.array.null_count:  # NULL among them: never TRUE
                    facts = _inside(facts, column, listed)
    return facts


def bounds_against(
    term: ir.Predicate,
) -> Iterator[tuple[ir.BoundColumn, ir.ComparisonOp, pa.Scalar]]:
    """Yield bounds of float columns that hold for values but NaN where the term is not TRUE."""
    for each in term.terms if isinstance(term, ir.Or) else (term,):
        match each:
            case ir.Comparison(
                op=op, left=ir.BoundColumn() as column, right=ir.Literal() as constant
            ) if isinstance(column.type, Float) and op.is_order and _is_usable(constant, column):
                yield column, op.negated, scalar(constant)


def _with(facts: Facts, term: ir.Predicate) -> Facts:
    match term:
        case ir.Comparison(
            op=op, left=ir.BoundColumn() as column, right=ir.Literal() as constant
        ) if not op.is_null_safe:
            facts = _bounded(facts, op, column, constant)
        case ir.Comparison(op=op, left=ir.BoundColumn() as a, right=ir.BoundColumn() as b) if (
            not op.is_null_safe
        ):
            facts = replace(facts, present=facts.present | {a, b})
            if a.type == b.type and is_ordered(a.type) and not isinstance(a.type, Float):
                return replace(facts, pairs=(*facts.pairs, (op, a, b)))
            return facts
        case ir.InList(operand=ir.BoundColumn() as column):
            facts = _inside(facts, column, term)
        case ir.Not(term=ir.InList(operand=ir.BoundColumn() as column) as listed):
            facts = _outside(facts, column, listed)
        case ir.Or():
            return _in_a_range(facts, term)
        case ir.IsNull(operand=ir.BoundColumn() as column):
            return replace(facts, null=facts.null | {column})
        case (
            ir.Not(term=ir.IsNull(operand=ir.BoundColumn() as column))
            | ir.Like(operand=ir.BoundColumn() as column)
            | ir.Not(term=ir.Like(operand=ir.BoundColumn() as column))
        ):
            pass
        case ir.BooleanOperand(operand=ir.BoundColumn() as column):
            facts = _bounded(facts, ir.ComparisonOp.EQ, column, _TRUE)
        case ir.Not(term=ir.BooleanOperand(operand=ir.BoundColumn() as column)):
            facts = _bounded(facts, ir.ComparisonOp.EQ, column, _FALSE)
        case _:
            return facts
    return replace(facts, present=facts.present | {column})


def _bounded(
    facts: Facts, op: ir.ComparisonOp, column: ir.BoundColumn, constant: ir.Literal
) -> Facts:
    if not _is_usable(constant, column):
        return facts
    span = facts.spans.get(column, Span())
    if op is ir.ComparisonOp.NE:
        return _excluding(facts, column, (constant.value,))
    lower, upper = span.lower, span.upper
    if not op.holds_if_less:
        end = scalar(_stepped(constant, 1) if op is ir.ComparisonOp.GT else constant)
        lower = _outer(lower, end, ir.ComparisonOp.GT)
    if not op.holds_if_greater:
        end = scalar(_stepped(constant, -1) if op is ir.ComparisonOp.LT else constant)
        upper = _outer(upper, end, ir.ComparisonOp.LT)
    return _spanned(facts, column, replace(span, lower=lower, upper=upper))


def _inside(facts: Facts, column: ir.BoundColumn, listed: ir.InList) -> Facts:
    """Bound a column by the least and the greatest member; by the members if they are few."""
    members = listed.values.array.drop_null()
    if listed.values.type != column.type or not len(members) or not is_ordered(column.type):
        return facts
    if isinstance(column.type, Float):
        return facts
    ends = pc.min_max(members)
    span = facts.spans.get(column, Span())
    lower = _outer(span.lower, ends["min"], ir.ComparisonOp.GT)
    upper = _outer(span.upper, ends["max"], ir.ComparisonOp.LT)
    ranges = span.ranges
    if 1 < len(members) <= MAX_RANGES:
        ranges = _intersected(ranges, [(member, member) for member in members])
    return _spanned(facts, column, replace(span, lower=lower, upper=upper, ranges=ranges))


def _in_a_range(known_facts: Facts, term: ir.Or) -> Facts:
    """Derive ranges of one column that all branches of an OR restrict.

    Only from branches that cannot fail: a row that raises may satisfy none of them.
    """
    if len(term.terms) > MAX_RANGES:
        return known_facts
    spans = []
    for branch in term.terms:
        terms = branch.terms if isinstance(branch, ir.And) else (branch,)
        facts = facts_of(terms) if all(map(_is_plain, terms)) else None
        if facts is None or len(facts.spans) != 1 or facts.present != facts.spans.keys():
            return known_facts
        spans.append(facts.spans)
    column = next(iter(spans[0]))
    if isinstance(column.type, Float) or any(column not in each for each in spans):
        return known_facts
    ranges = [each for said in spans for each in ranges_of(said[column])]
    span = known_facts.spans.get(column, Span())
    if len(ranges) > MAX_RANGES or (None, None) in ranges:
        return replace(known_facts, present=known_facts.present | {column})
    span = replace(span, ranges=_intersected(span.ranges, ranges))
    return _spanned(replace(known_facts, present=known_facts.present | {column}), column, span)


def _is_plain(term: ir.Predicate) -> bool:
    match term:
        case ir.Comparison(op=op, left=ir.BoundColumn(), right=ir.Literal()):
            return not op.is_null_safe
        case ir.InList(operand=ir.BoundColumn()) | ir.Not(term=ir.InList(operand=ir.BoundColumn())):
            return True
        case _:
            return False


def ranges_of(span: Span) -> list[Range]:
    """Return the ranges of a span within its bounds; excluded values are not removed."""
    return list(_intersected(span.ranges, [(span.lower, span.upper)]))


def _intersected(left: Sequence[Range], right: Sequence[Range]) -> tuple[Range, ...]:
    """Intersect two unions of ranges; a single empty range if nothing is left."""
    if not left:
        return tuple(right)
    overlaps = [
        (
            b[0]
            if a[0] is None
            else a[0]
            if b[0] is None
            else _outer(a[0], b[0], ir.ComparisonOp.GT),
            b[1]
            if a[1] is None
            else a[1]
            if b[1] is None
            else _outer(a[1], b[1], ir.ComparisonOp.LT),
        )
        for a in left
        for b in right
    ]
    filled = [each for each in overlaps if not _is_empty(each)]
    if len(filled) > MAX_RANGES:
        return tuple(left)
    return tuple(filled or overlaps[:1])


def _is_empty(range_: Range) -> bool:
    low, high = range_
    if low is None or high is None:
        return False
    sides = [pa.repeat(side, 1) for side in (low, high)]
    return bool(as_mask(compare(ir.ComparisonOp.GT, sides[0], sides[1], NanOrder.GREATEST))[0])


def _outside(facts: Facts, column: ir.BoundColumn, listed: ir.InList) -> Facts:
    members = listed.values.array.drop_null()
    if listed.values.type != column.type or len(members) > _MAX_EXCLUDED:
        return facts
    if not isinstance(column.type, Int):
        return facts
    return _excluding(facts, column, members.to_pylist())


def _excluding(facts: Facts, column: ir.BoundColumn, values: Sequence[ir.PhysicalValue]) -> Facts:
    span = facts.spans.get(column, Span())
    whole = frozenset(value for value in values if isinstance(value, int))
    if not isinstance(column.type, DISCRETE) or len(span.excluded | whole) > _MAX_EXCLUDED:
        return facts
    return _spanned(facts, column, replace(span, excluded=span.excluded | whole))


def _spanned(facts: Facts, column: ir.BoundColumn, span: Span) -> Facts:
    counted = replace(span, sources=span.sources + 1)
    return replace(facts, spans={**facts.spans, column: counted})


def _is_usable(constant: ir.Literal, column: ir.BoundColumn) -> bool:
    if constant.value is None or constant.type != column.type:
        return False
    return not (isinstance(constant.value, float) and constant.value != constant.value)


def _stepped(constant: ir.Literal, step: int) -> ir.Literal:
    """Return the next value, for types that have one."""
    type_, value = constant.type, constant.value
    if not isinstance(type_, DISCRETE) or not isinstance(value, int):
        return constant
    low, high = whole_range(type_)
    return ir.Literal(value + step, type_) if low <= value + step <= high else constant


def whole_range(type_: Int | Date | Timestamp) -> tuple[int, int]:
    """Return the least and the greatest value of a type that is stored as integers."""
    return int_range(type_ if isinstance(type_, Int) else Int(32 if type_ == Date() else 64))


def _outer(bound: pa.Scalar | None, other: pa.Scalar, op: ir.ComparisonOp) -> pa.Scalar:
    if bound is None:
        return other
    sides = [pa.repeat(side, 1) for side in (other, bound)]
    return other if as_mask(compare(op, sides[0], sides[1], NanOrder.GREATEST))[0] else bound
