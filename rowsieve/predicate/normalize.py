"""Normalise predicates: flatten, remove needless NOT, and merge an OR of equalities into IN.

Soundness: every rewrite keeps the outcome of each row: TRUE, FALSE, NULL or failed. So no term
moves into or out of the top-level AND, whose conjuncts are evaluated independently, except as in
`root_conjuncts`; for the same reason De Morgan's laws are not applied. Idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import compare
from rowsieve.predicate.limits import check_limits
from rowsieve.predicate.literal_values import array_of, scalar
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Nanos,
    Numeric,
    String,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.numeric_bytes import exact_of, of_exact

# Equal intervals, numerics and JSON values may have different bytes; -0.0 and NaN are the engine's.
_COMPARED_AS_STORED = (Bool, Int, Decimal, Date, Time, Timestamp, Nanos, String, Binary, Uuid)

_Points: TypeAlias = tuple[ir.Operand, LogicalType | None, type | None, ir.ComparisonOp]


def normalize(
    predicate: ir.Predicate, semantics: Semantics | None = None, *, within_limits: bool = False
) -> ir.Predicate:
    """Return the normal form of a bound or unbound tree.

    NOT over `<` becomes `>=` only if the semantics order NaN. Equalities become IN unless IN
    compares differently from `=`. `within_limits`: `check_limits` has already accepted the tree.
    """
    if not within_limits:
        check_limits(predicate)
    total = semantics is not None and semantics.nan is not NanOrder.IEEE
    lists = semantics is None or semantics.bitwise_lists_from is None
    return _normal(predicate, _Rules(total, lists))


@dataclass(frozen=True, slots=True)
class _Rules:
    """Which rewrites the semantics allow."""

    total_order: bool
    lists: bool


def _normal(node: ir.Predicate, rules: _Rules) -> ir.Predicate:
    match node:
        case ir.And(terms=terms):
            return ir.conjoin(_normal(term, rules) for term in terms)
        case ir.Or(terms=terms):
            plain = ir.disjoin(_normal(term, rules) for term in terms)
            return (
                _factored(_with_lists(plain)) if rules.lists and isinstance(plain, ir.Or) else plain
            )
        case ir.Not(term=term):
            return _negated(_normal(term, rules), total_order=rules.total_order)
        case ir.BooleanOperand(operand=ir.Condition(predicate=inner)):
            return _normal(inner, rules)
        case ir.BooleanOperand(operand=ir.Literal(value=bool() as value)):
            return ir.TRUE if value else ir.FALSE
        case ir.Comparison():
            return _folded(node)
        case _:
            return node


def _negated(term: ir.Predicate, *, total_order: bool) -> ir.Predicate:
    match term:
        case ir.TruePredicate():
            return ir.FALSE
        case ir.FalsePredicate():
            return ir.TRUE
        case ir.Not(term=inner):
            return inner
        case ir.Comparison(op=op, left=left, right=right) if total_order or not op.is_order:
            return ir.Comparison(op.negated, left, right)
        case _:
            return ir.Not(term)


def _folded(node: ir.Comparison) -> ir.Predicate:
    """Evaluate a comparison of two bound constants if TRUE or FALSE; NULL has no node."""
    left, right = node.left, node.right
    if not isinstance(left, ir.Literal) or not isinstance(right, ir.Literal):
        return node
    if left.type is None or right.type is None or left.value is None or right.value is None:
        return node
    if not isinstance(left.type, _COMPARED_AS_STORED) or type(left.type) is not type(right.type):
        return node
    if isinstance(left.type, Timestamp) and left.type != right.type:
        return node  # the session's time zone decides the result
    if node.op.is_null_safe:
        op = ir.ComparisonOp.NE if node.op is ir.ComparisonOp.DISTINCT else ir.ComparisonOp.EQ
    else:
        op = node.op
    sides = [pa.repeat(scalar(side), 1) for side in (left, right)]
    return ir.TRUE if compare(op, sides[0], sides[1], NanOrder.GREATEST)[0].as_py() else ir.FALSE


def _with_lists(disjunction: ir.Or) -> ir.Predicate:
    """Merge equalities and INs of one operand into one IN, and comparisons into the weakest.

    The result takes the position of the first. `x > 1 OR x > 2` becomes `x > 1`, which has the same
    outcome for every x, NULL or failed included.
    """
    groups: dict[_Points, list[ir.Predicate]] = {}
    for term in disjunction.terms:
        if (key := _points_of(term)) is not None:
            groups.setdefault(key, []).append(term)
    merged = {id(terms[0]): _merged(key, terms) for key, terms in groups.items() if len(terms) > 1}
    if not merged:
        return disjunction  # which `disjoin` has made
    absorbed = {id(term) for terms in groups.values() if len(terms) > 1 for term in terms[1:]}
    return ir.disjoin(
        merged.get(id(term), term) for term in disjunction.terms if id(term) not in absorbed
    )


def _factored(node: ir.Predicate) -> ir.Predicate:
    """Factor terms: `a = 1 AND b = 2 OR a = 3 AND b = 2` becomes `a IN (1, 3) AND b = 2`.

    Factors by the side that leaves fewer terms, until nothing can be joined. This helps with long
    lists of two-column keys, which often share values in one column.
    """
    while isinstance(node, ir.Or):
        joined = min((_joined(node, side) for side in (0, 1)), key=len)
        if len(joined) == len(node.terms):
            return node
        node = ir.disjoin(joined)
    return node


def _joined(node: ir.Or, side: int) -> list[ir.Predicate]:
    """Join the pairs that differ in the points of one side only, and return all terms."""
    groups: dict[object, list[ir.Predicate]] = {}
    for term in node.terms:
        key: object = id(term)
        if isinstance(term, ir.And) and len(term.terms) == 2:
            points = _points_of(term.terms[side])
            if points is not None and all(map(_cannot_fail, term.terms)):
                key = (points, term.terms[1 - side])
        groups.setdefault(key, []).append(term)
    return [terms[0] if len(terms) == 1 else _one_pair(terms, side) for terms in groups.values()]


def _cannot_fail(term: ir.Predicate) -> bool:
    """Whether the term cannot fail: at the top, a failure has another effect than within an OR."""
    match term:
        case ir.Comparison(left=operand, right=ir.Literal()) | ir.InList(operand=operand):
            return isinstance(operand, ir.Column | ir.BoundColumn)
        case _:
            return False


def _one_pair(terms: Sequence[ir.Predicate], side: int) -> ir.Predicate:
    pairs = [term.terms for term in terms if isinstance(term, ir.And)]
    listed = _with_lists(ir.Or(tuple(pair[side] for pair in pairs)))
    other = pairs[0][1 - side]
    return ir.And((listed, other) if side == 0 else (other, listed))


def _points_of(term: ir.Predicate) -> _Points | None:
    """Return the operand, the kind of constants and the operator of a mergeable term.

    Not for floats, because IN may distinguish -0.0 from 0.0 where `=` does not.
    """
    match term:
        case ir.Comparison(op=op, left=operand, right=ir.Literal(value=int(), type=type_)) if (
            op.is_order and isinstance(type_, Int | Date | Timestamp)
        ):
            return None if isinstance(operand, ir.Literal) else (operand, type_, None, op)
        case ir.Comparison(
            op=ir.ComparisonOp.EQ, left=operand, right=ir.Literal(value=value, type=type_)
        ):
            if value is None or isinstance(operand, ir.Literal):
                return None
            if type_ is None:
                small = isinstance(value, int) and not isinstance(value, bool) and _fits(value)
                known = small or isinstance(value, str)
                return (operand, None, type(value), ir.ComparisonOp.EQ) if known else None
            return None if isinstance(type_, Float) else (operand, type_, None, ir.ComparisonOp.EQ)
        case ir.InList(operand=operand, values=values):
            if values.type is None or isinstance(values.type, Float):
                return None
            return operand, values.type, None, ir.ComparisonOp.EQ
    return None


def _merged(key: _Points, terms: Sequence[ir.Predicate]) -> ir.Predicate:
    operand, type_, _, op = key
    if op is ir.ComparisonOp.EQ:
        return ir.InList(operand, _members(terms, type_))
    constants = [
        term.right.value
        for term in terms
        if isinstance(term, ir.Comparison)
        and isinstance(term.right, ir.Literal)
        and isinstance(term.right.value, int)
    ]
    weakest = max(constants) if op.holds_if_less else min(constants)  # it implies the rest
    return ir.Comparison(op, operand, ir.Literal(weakest, type_))


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _members(terms: Sequence[ir.Predicate], type_: LogicalType | None) -> ir.ValueSet:
    arrays = []
    for term in terms:
        if isinstance(term, ir.InList):
            arrays.append(term.values.array)
            continue
        assert isinstance(term, ir.Comparison)
        assert isinstance(term.right, ir.Literal)
        if type_ is None:
            arrays.append(pa.array([term.right.value]))
        else:
            arrays.append(array_of([term.right.value], type_))
    joined = pa.concat_arrays(arrays)
    if isinstance(type_, Numeric):
        return ir.ValueSet(of_exact(pc.unique(exact_of(joined))), type_)
    return ir.ValueSet(pc.unique(joined), type_)
