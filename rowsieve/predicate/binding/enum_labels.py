"""Enums in conditions: as their text, or by the order of their labels.

PostgreSQL orders an enum by the declaration of its labels (`Semantics.orders_enums`). Every value
is one label, so `mood < 'ok'` is the list of the labels before 'ok': text that every engine can
compare, and that has bounds in parts, row groups and pages. Other engines see the text, and compare
that. Soundness: a rewritten condition is TRUE, FALSE and NULL on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.types.enums import extends
from rowsieve.types.logical import Enum, Int, LogicalType, String, type_name
from rowsieve.types.schema import Schema

MAX_RANKED: Final = 256
"""The most labels of an enum whose columns can be compared by order."""
_TYPE: Final = attrgetter("type")


def with_text(schema: Schema) -> Schema:
    """Return the schema with text for enums; `schema` itself if it has none.

    It is not cached by the schema: schemas are equal if only the zones of their instants differ.
    """
    if Enum not in map(type, map(_TYPE, schema.fields)):
        return schema
    fields = (
        replace(field, type=String()) if isinstance(field.type, Enum) else field for field in schema
    )
    return Schema(schema.id, tuple(fields))


def is_enum(operand: ir.Operand) -> bool:
    """Whether a bound operand is a column or a constant of an enum."""
    return isinstance(operand, ir.BoundColumn | ir.Literal) and isinstance(operand.type, Enum)


def as_text(operand: ir.Operand) -> ir.Operand:
    """Return the text of an operand that is an enum."""
    if isinstance(operand, ir.Literal):
        return ir.Literal(operand.value, String())
    return ir.Cast(operand, String())


def read_as_text(operand: ir.Operand) -> ir.Operand:
    """Return a column or constant of an enum with the type of its text; others unchanged."""
    match operand:
        case ir.BoundColumn(field_id=field_id, name=name, type=Enum()):
            return ir.BoundColumn(field_id, name, String())
        case ir.Literal(value=value, type=Enum()):
            return ir.Literal(value, String())
        case _:
            return operand


def compare_enums(
    op: ir.ComparisonOp,
    left: ir.Operand,
    left_type: LogicalType | None,
    right: ir.Operand,
    right_type: LogicalType | None,
) -> ir.Predicate:
    """Bind `left op right` by the order of the labels if a side is an enum.

    InvalidPredicate for text that is not a label, and for a side that is neither text nor such an
    enum.
    """
    if isinstance(left, ir.Literal) and not isinstance(right, ir.Literal):
        op, left, left_type, right, right_type = op.mirrored, right, right_type, left, left_type
    enum = _common(left_type, right_type)
    one, other = as_text(left), as_text(right)
    if not isinstance(right, ir.Literal) or isinstance(left, ir.Literal):
        _check(left, enum)
        _check(right, enum)
        if op.is_order:
            return ir.Comparison(op, _rank(one, enum), _rank(other, enum))
        return ir.Comparison(op, one, other)
    if right.value is None:
        return ir.Comparison(op, one, ir.Literal(None, String()))
    _check(right, enum)
    place = enum.labels.index(str(right.value))
    if not op.is_order:
        return ir.Comparison(op, one, other)
    if op.holds_if_less:
        return _one_of(one, enum.labels[: place + op.holds_if_equal], enum)
    return _one_of(one, enum.labels[place + (not op.holds_if_equal) :], enum)


def enum_members(values: ir.ValueSet, enum: Enum) -> ir.ValueSet:
    """Return the members of an IN list as text; InvalidPredicate if one is not a label."""
    array = values.array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return ir.ValueSet(pa.nulls(len(array), pa.string()), String())
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    if not is_text or not (values.type is None or isinstance(values.type, Enum)):
        raise InvalidPredicate(
            f"{type_name(enum)} IN a list of {array.type} has no meaning; list its labels, or cast "
            "the column to text"
        )
    for text in array.to_pylist():
        _check(ir.Literal(text), enum)
    return ir.ValueSet(array.cast(pa.string()), String())


def _common(left: LogicalType | None, right: LogicalType | None) -> Enum:
    match left, right:
        case (Enum(), None):
            return left
        case (None, Enum()):
            return right
        case (Enum(), Enum()) if extends(left, right):
            return right
        case (Enum(), Enum()) if extends(right, left):
            return left
    shown = " and ".join("text" if type_ is None else type_name(type_) for type_ in (left, right))
    raise InvalidPredicate(
        f"a comparison of {shown} has no meaning; write one of the labels, or cast the enum to "
        "text, as in column::text"
    )


def _check(operand: ir.Operand, enum: Enum) -> None:
    if not isinstance(operand, ir.Literal) or operand.value is None:
        return
    if operand.value not in enum.labels:
        raise InvalidPredicate(
            f"the text {operand.value!r} is not a label of {type_name(enum)}; write one of them, "
            "or cast the column to text, as in column::text"
        )


def _one_of(text: ir.Operand, labels: Sequence[str], enum: Enum) -> ir.Predicate:
    """Build `text IN labels`, NULL for NULL."""
    if not labels:
        return ir.Comparison(ir.ComparisonOp.NE, text, text)
    if len(labels) == len(enum.labels):
        return ir.Comparison(ir.ComparisonOp.EQ, text, text)
    if len(labels) == 1:
        return ir.Comparison(ir.ComparisonOp.EQ, text, ir.Literal(labels[0], String()))
    return ir.InList(text, ir.ValueSet(pa.array(labels, pa.string()), String()))


def _rank(text: ir.Operand, enum: Enum) -> ir.Operand:
    """Build the position of the label; NULL for NULL."""
    if len(enum.labels) > MAX_RANKED:
        raise InvalidPredicate(
            f"two enums of {len(enum.labels):,} labels cannot be ordered, only those of up to "
            f"{MAX_RANKED}; compare with a label"
        )
    branches = tuple(
        (
            ir.Comparison(ir.ComparisonOp.EQ, text, ir.Literal(label, String())),
            ir.Literal(place, Int(32)),
        )
        for place, label in enumerate(enum.labels)
    )
    return ir.Case(branches, ir.Literal(None, Int(32)))
