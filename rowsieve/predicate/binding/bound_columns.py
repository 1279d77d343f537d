"""Columns of a tree that is bound again, under other semantics or another version's schema."""

from __future__ import annotations

from rowsieve.errors import UnknownColumn
from rowsieve.predicate import ir
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema


def known_column(schema: Schema, column: ir.BoundColumn) -> Field:
    """Return the field with the id of a bound column; UnknownColumn if the schema has none."""
    for field in schema.fields:
        if field.id == column.field_id:
            return field
    raise UnknownColumn(
        f"the column {column.name!r} (id {column.field_id}) is not in the schema "
        f"({', '.join(schema.names)})",
        name=column.name,
    )
