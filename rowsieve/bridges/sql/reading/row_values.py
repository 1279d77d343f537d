"""Comparisons of rows in SQL text: `(a, b) < (1, 2)` and `(a, b) IN ((1, 2), (3, 4))`.

Soundness: they are read where the engine compares rows as the SQL standard does: a NULL decides.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate import ir


def compare_rows(reader: Reads, op: ir.ComparisonOp, node: Any) -> ir.Predicate | None:
    """Read `(a, b) = (1, 2)` field by field, as in the SQL standard; None for other nodes."""
    sides = [_row(side) for side in (node.this, node.expression)]
    if sides[0] is None or sides[1] is None:
        return None
    if not op.is_order and not op.is_null_safe:
        return _equal_rows(reader, node, op, sides[0], sides[1])
    if not op.is_order or not reader.dialect.lists.compares_rows:
        raise reader.source.refusal(node, "compare the columns one by one")
    _check_lengths(reader, node, sides[0], sides[1])
    return _ordered_rows(reader, op, sides[0], sides[1])


def _ordered_rows(
    reader: Reads, op: ir.ComparisonOp, left: list[Any], right: list[Any]
) -> ir.Predicate:
    """Expand to the first difference: `a < 1 OR (a = 1 AND b < 2)`; a NULL there decides too."""
    one, other = reader.operand(left[0]), reader.operand(right[0])
    if len(left) == 1:
        return ir.Comparison(op, one, other)
    rest = _ordered_rows(reader, op, left[1:], right[1:])
    first = ir.Comparison(op.strict, one, other)
    return ir.Or((first, ir.And((ir.Comparison(ir.ComparisonOp.EQ, one, other), rest))))


def _check_lengths(reader: Reads, node: Any, left: list[Any], right: list[Any]) -> None:
    if len(left) != len(right):
        raise reader.source.refusal(node, "the rows have different numbers of values")


def _equal_rows(
    reader: Reads, node: Any, op: ir.ComparisonOp, left: list[Any], right: list[Any]
) -> ir.Predicate:
    _check_lengths(reader, node, left, right)
    if not reader.dialect.lists.compares_rows:
        raise reader.source.refusal(node, "compare the columns one by one")
    terms = tuple(
        ir.Comparison(op, reader.operand(one), reader.operand(other))
        for one, other in zip(left, right, strict=True)
    )
    return ir.And(terms) if op is ir.ComparisonOp.EQ else ir.Or(terms)


def row_among(reader: Reads, node: Any) -> ir.Predicate | None:
    """Read `(a, b) IN ((1, 2), (3, 4))`, or return None."""
    if (values := _row(node.this)) is None:
        return None
    rows = [_row(item) for item in node.expressions]
    if not rows or any(row is None for row in rows):
        return None
    equal = tuple(
        _equal_rows(reader, node, ir.ComparisonOp.EQ, values, row)
        for row in rows
        if row is not None
    )
    return ir.Or(equal)


def _row(node: Any) -> list[Any] | None:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "row":
        return list(node.expressions)
    return None
