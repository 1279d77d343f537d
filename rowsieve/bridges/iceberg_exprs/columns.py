"""Convert our columns to pyiceberg's fields, and bound fields back.

A column of a type that Iceberg lacks is omitted, so a condition on it is refused.
"""

from __future__ import annotations

from typing import Any

from rowsieve.bridges.base import path_of
from rowsieve.bridges.extras import imported
from rowsieve.bridges.iceberg_exprs.function_table import TYPES
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.binding.enum_labels import with_text
from rowsieve.predicate.ir import Column, FieldAccess, Operand
from rowsieve.types.logical import Decimal, Field, LogicalType, Struct, type_name
from rowsieve.types.schema import Schema


class Columns:
    """The columns of one schema in both forms, struct fields included."""

    def __init__(self, schema: Schema) -> None:
        schema = with_text(schema)
        self._types: Any = imported("pyiceberg.types", "iceberg")
        self._schema = schema
        self._operands: dict[int, tuple[Operand, LogicalType]] = {}
        fields = [self._field(field, Column(field.name)) for field in schema]
        whole: Any = imported("pyiceberg.schema", "iceberg").Schema
        self.foreign = whole(*(field for field in fields if field is not None))

    def bound(self, field_id: int) -> tuple[Operand, LogicalType]:
        """Return operand and type of a field of `foreign`."""
        return self._operands[field_id]

    def named(self, term: Any) -> tuple[Operand, LogicalType]:
        """Return the column of a term that was bound elsewhere, by name, if the types agree."""
        field = term.ref().field
        if term.ref().accessor.inner is not None:
            raise UnsupportedOperation("a member of a struct was bound; give it unbound")
        self._schema.field(field.name)  # UnknownColumn where there is none
        for known in self.foreign.fields:
            if known.name == field.name and known.field_type == field.field_type:
                return self.bound(known.field_id)
        raise UnsupportedOperation(
            f"the column {field.name!r} was bound as {field.field_type}; give it unbound"
        )

    def _field(self, field: Field, operand: Operand) -> Any:
        """Return pyiceberg's field, with an id of ours; None for a type that it lacks."""
        if "." in field.name:
            return None
        type_ = self._type(field.type, operand)
        if type_ is None:
            return None
        field_id = len(self._operands) + 1
        self._operands[field_id] = (operand, field.type)
        return self._types.NestedField(
            field_id, field.name, type_, required=not field.nullable and isinstance(operand, Column)
        )

    def _type(self, type_: LogicalType, operand: Operand) -> Any:
        match type_:
            case Decimal(precision=precision, scale=scale):
                return self._types.DecimalType(precision, scale)
            case Struct(fields=fields):
                made = [self._field(f, FieldAccess(operand, f.name)) for f in fields]
                return self._types.StructType(*(field for field in made if field is not None))
            case _:
                name = TYPES.get(type_)
                return None if name is None else getattr(self._types, name)()


def check_known(type_: LogicalType) -> None:
    """Raise for a type that Iceberg lacks."""
    if type_ not in TYPES and not isinstance(type_, Decimal):
        raise UnsupportedOperation(f"Iceberg has no constants of the type {type_name(type_)}")


def dotted(operand: Operand) -> str:
    """Return pyiceberg's name of a column or of a field below it."""
    column, names = path_of(operand, "pyiceberg")
    if any("." in name for name in (column.name, *names)):
        raise UnsupportedOperation("a dot in the name of a column would be a path in pyiceberg")
    return ".".join((column.name, *names))
