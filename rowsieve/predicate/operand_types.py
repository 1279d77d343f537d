"""The types of bound operands."""

from __future__ import annotations

from typing import assert_never

from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.types.logical import Bool, LogicalType, Struct, Timestamp


def type_of(node: ir.Operand) -> LogicalType:
    """Return the type of a bound operand's values."""
    match node:
        case ir.BoundColumn(type=type_) | ir.Cast(type=type_):
            return type_
        case ir.Literal(type=type_):
            assert type_ is not None
            return type_
        case ir.Call(function=function, arguments=arguments):
            types = [type_of(argument) for argument in arguments]
            return resolve(function, known_of(arguments, types))[1].result
        case ir.FieldAccess(operand=operand, name=name):
            struct = type_of(operand)
            assert isinstance(struct, Struct)
            return next(field.type for field in struct.fields if field.name == name)
        case ir.Case(otherwise=otherwise):
            return type_of(otherwise)
        case ir.Now():
            return Timestamp(utc=True)
        case ir.Condition():
            return Bool()
        case ir.Column(name=name):
            raise AssertionError(f"the column {name!r} is not bound")
        case _:
            assert_never(node)
