"""Which changes give a table the columns of another schema, or of data.

Columns are matched by name, exactly or else uniquely ignoring case. No column is dropped, renamed
or moved: names alone do not say that this is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rowsieve.errors import InvalidSchemaChange
from rowsieve.types.encodings import arrow_type, logical_type
from rowsieve.types.evolution import AddColumn, SchemaChange, WidenColumn
from rowsieve.types.logical import Field, is_nested, type_name
from rowsieve.types.schema import Schema
from rowsieve.types.widening import is_widened


def columns_to_add(schema: Schema, wanted: pa.Schema) -> tuple[SchemaChange, ...]:
    """Return the additions of the columns that only `wanted` has; they may be NULL."""
    return tuple(
        AddColumn(pa.field(field.name, field.type, metadata=field.metadata))
        for field in wanted
        if _found(schema, field.name) is None
    )


def changes_towards(schema: Schema, wanted: pa.Schema) -> tuple[SchemaChange, ...]:
    """Return the changes that add the columns of `wanted`, and widen those that are narrower there.

    InvalidSchemaChange for a column whose type differs otherwise. A column that already holds all
    values of the wanted type stays as it is.
    """
    return tuple(_changes(schema, wanted))


def _changes(schema: Schema, wanted: pa.Schema) -> Iterator[SchemaChange]:
    yield from columns_to_add(schema, wanted)
    for field in wanted:
        column = _found(schema, field.name)
        if column is None:
            continue
        if is_nested(column.type):
            if arrow_type(column.type) != field.type:
                raise _unrelated(column, str(field.type))
            continue
        new = logical_type(field, lambda: 0)
        if is_widened(new, column.type):
            continue
        if not is_widened(column.type, new):
            raise _unrelated(column, type_name(new))
        yield WidenColumn(column.name, field)


def _found(schema: Schema, name: str) -> Field | None:
    exact = [field for field in schema if field.name == name]
    found = exact or [field for field in schema if field.name.lower() == name.lower()]
    return found[0] if found else None


def _unrelated(column: Field, wanted: str) -> InvalidSchemaChange:
    return InvalidSchemaChange(
        f"column {column.name!r} is {type_name(column.type)} in the table and {wanted} in the "
        "wanted columns, which does not hold all its values in the same order; leave the column as "
        "it is, or add one under another name"
    )
