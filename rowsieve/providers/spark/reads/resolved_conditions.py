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

from rowsieve.bridges.spark_columns import long_lists
from rowsieve.bridges.spark_columns.classic import Node
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.bridges.sql.spark.catalyst_classes import COMPARISONS, TEXT_TESTS
from rowsieve.bridges.sql.spark.column_words import SparkList
from rowsieve.bridges.sql.spark.type_names import held_type, type_named
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
    Json,
    LogicalType,
    String,
    Struct,
    Timestamp,
)

_PACKAGE: Final = "org.apache.spark.sql.catalyst.expressions."
_DEEPEST: Final = 50
_COMPARED: Final = (Bool, Int, Float, Decimal, String, Binary, Date, Timestamp)
Columns = Mapping[int, Field]  # by the id of the attribute


def predicate_of(node: Node, columns: Columns, depth: int = 0) -> ir.Predicate:
    """The predicate of a condition; UnsupportedOperation if it is not known to mean the same."""
    kind = kind_of(node, depth)
    if kind in ("And", "Or"):
        join = ir.And if kind == "And" else ir.Or
        return join(tuple(predicate_of(child, columns, depth + 1) for child in node.children))
    if kind == "Not":
        return ir.Not(predicate_of(node.children[0], columns, depth + 1))
    if kind in ("IsNull", "IsNotNull"):
        null_check = ir.IsNull(_column(node.children[0], columns)[0])
        return null_check if kind == "IsNull" else ir.Not(null_check)
    if kind in COMPARISONS:
        return _comparison(COMPARISONS[kind], node, columns)
    if kind == "In":
        return _in_list(node, columns)
    if kind == "InSet":
        operand, type_ = _column(node.children[0], columns)
        return ir.InList(operand, members_of(node, type_))
    if kind in TEXT_TESTS:
        text, type_ = _column(node.children[0], columns)
        piece = _literal(node.children[1], type_)
        if not isinstance(type_, String):
            raise refusal(kind)
        return ir.BooleanOperand(ir.Call(TEXT_TESTS[kind], (text, piece)))
    if kind == "Like":
        return _like(node, columns)
    if kind == "AttributeReference":
        operand, type_ = _column(node, columns)
        if isinstance(type_, Bool):
            return ir.BooleanOperand(operand)
    raise refusal(kind)


def kind_of(node: Node, depth: int = 0) -> str:
    """The class, which is in Spark's package of expressions, not one of that name elsewhere."""
    if depth > _DEEPEST or node.fields["class"] != _PACKAGE + node.kind:
        raise refusal(node.kind)
    return node.kind


def refusal(kind: str) -> UnsupportedOperation:
    """The error for a class that is not read."""
    return UnsupportedOperation(f"{kind}: prune does not read this")


def _comparison(op: ir.ComparisonOp, node: Node, columns: Columns) -> ir.Predicate:
    left, right = node.children
    if kind_of(left) == "Literal":
        other, type_ = _column(right, columns)
        return ir.Comparison(op, _literal(left, type_), other)
    operand, type_ = _column(left, columns)
    if kind_of(right) == "Literal":
        return ir.Comparison(op, operand, _literal(right, type_))
    other, its_type = _column(right, columns)
    if its_type != type_:
        raise refusal(node.kind)
    return ir.Comparison(op, operand, other)


def _in_list(node: Node, columns: Columns) -> ir.Predicate:
    operand, type_ = _column(node.children[0], columns)
    members = [_literal(child, type_).value for child in node.children[1:]]
    if not members or isinstance(type_, Float):  # sets compare floats by their bits
        raise refusal(node.kind)
    return ir.InList(operand, ir.ValueSet(pa.array(members, arrow_type(type_)), type_))


def _like(node: Node, columns: Columns) -> ir.Predicate:
    text, type_ = _column(node.children[0], columns)
    pattern = _literal(node.children[1], type_).value
    if not isinstance(pattern, str) or str(node.source().escapeChar()) in pattern:
        raise refusal(node.kind)
    return ir.Like(text, pattern)


def _column(node: Node, columns: Columns) -> tuple[ir.Column, LogicalType]:
    """A column of ours whose type is the same in Spark, and the type."""
    (*_, name), type_ = path_of(node, columns)
    if node.kind != "AttributeReference" or isinstance(type_, Json):
        raise refusal(node.kind)
    return ir.Column(name), type_


def path_of(node: Node, columns: Columns) -> tuple[tuple[str, ...], LogicalType]:
    """The names of a column or of a field of a struct, and its type.

    The type is the same in Spark, or JSON, which is text there.
    """
    kind, ordinals = kind_of(node), []
    while kind == "GetStructField":
        ordinals.append(int(node.fields["ordinal"]))
        (node,) = node.children
        kind = kind_of(node)
    if kind != "AttributeReference":
        raise refusal(kind)
    field = columns.get(int(node.fields["exprId"]["id"]))
    if field is None:  # a column of another relation, in a correlated subquery
        raise refusal(kind)
    if node.fields["dataType"] != spark_schema([field])[0].dataType.jsonValue():
        raise refusal(kind)
    names = [field.name]
    for ordinal in reversed(ordinals):
        assert isinstance(field.type, Struct)
        siblings = field.type.fields
        field = siblings[ordinal]
        if sum(each.name.lower() == field.name.lower() for each in siblings) > 1:
            raise UnsupportedOperation(f"{kind}: two members have the name {field.name!r}")
        names.append(field.name)
    if not isinstance(field.type, (*_COMPARED, Json)):
        raise refusal(kind)
    if not isinstance(field.type, Json) and held_type(field.type) != field.type:
        raise refusal(kind)
    return tuple(names), field.type


def members_of(node: Node, type_: LogicalType) -> ir.ValueSet:
    """The members of an `InSet`, which are of this type and not NULL."""
    if isinstance(type_, String):
        listed = long_lists.listed_set(node.children[0], node.source(), "string")
        assert isinstance(listed, SparkList)
        values = listed.values.array
    elif isinstance(type_, Int | Date | Timestamp | Decimal):
        texts = str(node.source().hset().mkString("\n")).split("\n")
        values = pa.array([_number(text, type_) for text in texts], arrow_type(type_))
    else:  # sets compare floats by their bits
        raise refusal(node.kind)
    if values.null_count:
        raise refusal(node.kind)
    return ir.ValueSet(values, type_)


def _number(text: str, type_: LogicalType) -> Any:
    if text == "null":
        return None
    return _decimal(text, type_.scale) if isinstance(type_, Decimal) else int(text)


def _decimal(text: str, scale: int) -> decimal.Decimal:
    with decimal.localcontext(prec=60):
        return decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-scale))


def _literal(node: Node, type_: LogicalType) -> ir.Literal:
    """A constant of this type that is not NULL."""
    if kind_of(node) != "Literal" or type_named(node.fields["dataType"]) != type_:
        raise refusal(node.kind)
    return ir.Literal(constant_of(node, type_), type_)


def constant_of(node: Node, type_: LogicalType) -> Any:
    """The value of a constant of this type; NULL is refused."""
    text = node.fields.get("value")
    if text is None:
        raise refusal(node.kind)
    match type_:
        case Date() | Timestamp():
            return int(node.source().value())  # JSON shows it by the clock of the driver
        case Int():
            return int(text)
        case Binary():
            return bytes(node.source().value())
        case Bool():
            return text == "true"
        case Float():
            return float(np.float32(text)) if type_.bits == 32 else float(text)
        case Decimal(scale=scale):
            return _decimal(text, scale)
        case String():
            return _text(bytes(node.source().value().getBytes()))
        case _:
            raise refusal(node.kind)


def _text(text: bytes) -> str:
    """Spark's text, which may be other bytes than UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise refusal("Literal") from None
