"""Reads conditions that Spark has resolved, as predicates.

Spark's optimiser has replaced names by columns, functions by their classes, implicit casts by casts
and constant expressions by their values. So the settings of the session, views and functions of the
user have no influence here. Soundness: a class, type or constant that is not listed is refused.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.bridges.spark_columns.classic import Node
from rowsieve.bridges.sql.spark_type_names import type_named
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)

_PACKAGE: Final = "org.apache.spark.sql.catalyst.expressions."
_DEEPEST: Final = 50
_COMPARISONS: Final[Mapping[str, ir.ComparisonOp]] = {
    "EqualTo": ir.ComparisonOp.EQ,
    "EqualNullSafe": ir.ComparisonOp.NOT_DISTINCT,
    "LessThan": ir.ComparisonOp.LT,
    "LessThanOrEqual": ir.ComparisonOp.LE,
    "GreaterThan": ir.ComparisonOp.GT,
    "GreaterThanOrEqual": ir.ComparisonOp.GE,
}
_TEXTS: Final[Mapping[str, str]] = {
    "StartsWith": "starts_with",
    "EndsWith": "ends_with",
    "Contains": "contains",
}
_COMPARED: Final = (Bool, Int, Float, Decimal, String, Binary, Date, Timestamp)
Columns = Mapping[int, Field]  # by the id of the attribute


def predicate_of(node: Node, columns: Columns, depth: int = 0) -> ir.Predicate:
    """The predicate of a condition; UnsupportedOperation if it is not known to mean the same."""
    kind = _kind(node, depth)
    if kind in ("And", "Or"):
        join = ir.And if kind == "And" else ir.Or
        return join(tuple(predicate_of(child, columns, depth + 1) for child in node.children))
    if kind == "Not":
        return ir.Not(predicate_of(node.children[0], columns, depth + 1))
    if kind in ("IsNull", "IsNotNull"):
        found = ir.IsNull(_column(node.children[0], columns)[0])
        return found if kind == "IsNull" else ir.Not(found)
    if kind in _COMPARISONS:
        return _comparison(_COMPARISONS[kind], node, columns)
    if kind == "In":
        return _in_list(node, columns)
    if kind in _TEXTS:
        text, type_ = _column(node.children[0], columns)
        piece = _literal(node.children[1], type_)
        if not isinstance(type_, String):
            raise _refusal(kind)
        return ir.BooleanOperand(ir.Call(_TEXTS[kind], (text, piece)))
    if kind == "Like":
        return _like(node, columns)
    if kind == "AttributeReference":
        operand, type_ = _column(node, columns)
        if isinstance(type_, Bool):
            return ir.BooleanOperand(operand)
    raise _refusal(kind)


def _kind(node: Node, depth: int = 0) -> str:
    """The class in Spark's package of expressions, not one of the same name elsewhere."""
    if depth > _DEEPEST or node.fields["class"] != _PACKAGE + node.kind:
        raise _refusal(node.kind)
    return node.kind


def _refusal(kind: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"{kind}: prune does not read this")


def _comparison(op: ir.ComparisonOp, node: Node, columns: Columns) -> ir.Predicate:
    left, right = node.children
    if _kind(left) == "Literal":
        other, type_ = _column(right, columns)
        return ir.Comparison(op, _literal(left, type_), other)
    operand, type_ = _column(left, columns)
    if _kind(right) == "Literal":
        return ir.Comparison(op, operand, _literal(right, type_))
    other, its_type = _column(right, columns)
    if its_type != type_:
        raise _refusal(node.kind)
    return ir.Comparison(op, operand, other)


def _in_list(node: Node, columns: Columns) -> ir.Predicate:
    operand, type_ = _column(node.children[0], columns)
    members = [_literal(child, type_).value for child in node.children[1:]]
    if not members or isinstance(type_, Float):  # sets compare floats by their bits
        raise _refusal(node.kind)
    return ir.InList(operand, ir.ValueSet(pa.array(members, arrow_type(type_)), type_))


def _like(node: Node, columns: Columns) -> ir.Predicate:
    text, type_ = _column(node.children[0], columns)
    pattern = _literal(node.children[1], type_).value
    if not isinstance(pattern, str) or str(node.source().escapeChar()) in pattern:
        raise _refusal(node.kind)
    return ir.Like(text, pattern)


def _column(node: Node, columns: Columns) -> tuple[ir.Column, LogicalType]:
    """A column of ours whose type is the same in Spark, and the type."""
    if _kind(node) != "AttributeReference":
        raise _refusal(node.kind)
    field = columns.get(int(node.fields["exprId"]["id"]))
    if field is None:  # of another relation, in a correlated subquery
        raise _refusal(node.kind)
    if not isinstance(field.type, _COMPARED) or type_named(node.fields["dataType"]) != field.type:
        raise _refusal(node.kind)
    return ir.Column(field.name), field.type


def _literal(node: Node, type_: LogicalType) -> ir.Literal:
    """A constant of this type that is not NULL."""
    text = node.fields.get("value")
    if _kind(node) != "Literal" or text is None or type_named(node.fields["dataType"]) != type_:
        raise _refusal(node.kind)
    value: Any
    match type_:
        case Date() | Timestamp():
            value = int(node.source().value())  # JSON shows it by the clock of the driver
        case Int():
            value = int(text)
        case Binary():
            value = bytes(node.source().value())
        case Bool():
            value = text == "true"
        case Float():
            value = float(np.float32(text)) if type_.bits == 32 else float(text)
        case Decimal(scale=scale):
            with decimal.localcontext(prec=60):
                value = decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-scale))
        case _:
            value = _text(bytes(node.source().value().getBytes()))
    return ir.Literal(value, type_)


def _text(found: bytes) -> str:
    """Spark's text, which may be other bytes than UTF-8."""
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise _refusal("Literal") from None
