"""Finds statistics that describe the values of an expression, not only of the columns it reads.

They exist for fields of structs, lengths and elements of lists, values of maps, numbers in text,
text in one case, and values at JSON paths: as JSON, as text, and cast to a number.

Soundness: the value holds only for expressions that read nothing but the subject, and under every
`Semantics`: where an expression may fail, it may also be NULL. A cast cannot fail only if every
text of the part is known to be a literal of the target type.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import null_mask
from rowsieve.predicate.interpretation.abstract import AbstractValue, from_column, meet
from rowsieve.stats.json_expressions import Subjects, cast_of_path, path_of, value_at
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.sound_casts import cast_soundly, widen_elsewhere
from rowsieve.stats.subjects import (
    AS_INT,
    AS_LOWER,
    AS_NUMBER,
    AS_UPPER,
    COMPARABLES,
    EXTENTS,
    LENGTH,
    derived,
)
from rowsieve.types.logical import (
    ANY_DECIMAL,
    Binary,
    Decimal,
    Float,
    Int,
    List,
    LogicalType,
    Map,
    Numeric,
    String,
    Struct,
)
from rowsieve.types.numeric_bytes import from_numbers

_OF_NUMERIC = {each.what: each for each in COMPARABLES[Numeric]}


def value_of(operand: ir.Operand, statistics: Subjects) -> AbstractValue | None:
    """The value of a call, a cast or a field in every part; None without statistics."""
    match operand:
        case ir.FieldAccess():
            member = as_member(operand)
            return None if member is None else _value(member.field_id, member.type, statistics)
        case ir.Call():
            return _call(operand, statistics)
        case ir.Cast(operand=inner, type=target):
            path = path_of(inner)
            if path is not None:
                return cast_of_path(path, target, statistics)
            return _cast_of_text(inner, target, statistics)
        case _:
            return None


def as_member(operand: ir.Operand) -> ir.BoundColumn | None:
    """A column, or a field of a struct at any depth as a column; None for other operands."""
    match operand:
        case ir.BoundColumn():
            return operand
        case ir.FieldAccess(operand=parent, name=name):
            outer = as_member(parent)
            if outer is None or not isinstance(outer.type, Struct):
                return None
            members = [field for field in outer.type.fields if field.name == name]
            if len(members) != 1:
                return None
            return ir.BoundColumn(members[0].id, f"{outer.name}.{name}", members[0].type)
        case _:
            return None


def _call(node: ir.Call, statistics: Subjects) -> AbstractValue | None:
    if node.function in _OF_NUMERIC and isinstance(node.arguments[0], ir.Cast | ir.Call):
        return _of_number(node.function, node.arguments[0], statistics)
    path = path_of(node)
    if path is not None:
        return value_at(path, statistics)
    column = as_member(node.arguments[0]) if node.arguments else None
    if column is None:
        return None
    for each in EXTENTS if column.type == Binary() else COMPARABLES.get(type(column.type), ()):
        if each.what == node.function:
            return _value(Derived(column.field_id, each.what), each.type, statistics)
    match node.function, column.type:
        case ("upper" | "lower") as function, String():
            what = AS_UPPER if function == "upper" else AS_LOWER
            return _value(Derived(column.field_id, what), String(), statistics)
        case "list_length", List() | Map():
            length = _value(Derived(column.field_id, LENGTH), Int(), statistics)
            return None if length is None else cast_soundly(length, Int(32))
        case "list_element", List(element=element):
            return _one_of(_value(element.id, element.type, statistics))
        case "map_value", Map(value=value):
            return _one_of(_value(value.id, value.type, statistics))
        case _:
            return None


def _of_number(function: str, number: ir.Operand, statistics: Subjects) -> AbstractValue | None:
    """The bytes or the float of a text or JSON number that is cast to an unbounded number.

    The statistics of such numbers are decimals, whose bounds hold for the exact numbers too: they
    exist only where no digit was rounded away, or were rounded outward.
    """
    value: AbstractValue | None = None
    match number:
        case ir.Cast(operand=inner, type=Numeric()):
            value = value_of(ir.Cast(inner, ANY_DECIMAL), statistics)
        case ir.Call(function="json_number", arguments=(inner,)):
            path = path_of(inner)
            if path is not None and not path.as_text:
                value = cast_of_path(replace(path, as_text=True), ANY_DECIMAL, statistics)
    if value is None:
        return None
    numeric = _OF_NUMERIC[function]
    lower, upper = (numeric.kernel(from_numbers(end)) for end in (value.lower, value.upper))
    nan = value.fails if isinstance(numeric.type, Float) else value.nan
    return replace(value, type=numeric.type, lower=lower, upper=upper, nan=nan, alternatives=())


def _one_of(elements: AbstractValue | None) -> AbstractValue | None:
    """One of the elements, or NULL if the index is out of range."""
    if elements is None:
        return None
    return replace(elements, null=np.ones_like(elements.null))


def _cast_of_text(
    inner: ir.Operand, target: LogicalType, statistics: Subjects
) -> AbstractValue | None:
    column = as_member(inner)
    if column is None or not isinstance(column.type, String):
        return None
    if not isinstance(target, Int | Float | Decimal):
        return None
    kinds = (AS_INT,) if isinstance(target, Int) else (AS_NUMBER, AS_INT)
    bounds: AbstractValue | None = None
    for what in kinds:  # if all numbers are whole, only `as_int` may exist
        value = _cast_of_numbers(Derived(column.field_id, what), target, statistics)
        if value is not None:
            bounds = value if bounds is None else meet(bounds, value)
    return bounds


def _cast_of_numbers(
    subject: Derived, target: LogicalType, statistics: Subjects
) -> AbstractValue | None:
    described, known = derived(subject), statistics.subject(subject)
    if known is None or described is None:
        return None
    value = _value(subject, described.type, statistics)
    assert value is not None
    spelled = known.empty | ~(null_mask(known.lower) | null_mask(known.upper))
    return widen_elsewhere(cast_soundly(value, target), spelled)


def _value(subject: Subject, type_: LogicalType, statistics: Subjects) -> AbstractValue | None:
    known = statistics.subject(subject)
    if known is None:
        return None
    return from_column(ir.BoundColumn(0, str(subject), type_), known, statistics.part_count)
